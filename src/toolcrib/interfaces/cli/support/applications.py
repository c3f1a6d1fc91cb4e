"""Loads the crib of an application, given on the command line as `module:name`, as for ASGI servers.

Only the person who starts the process can name it; stored names are never imported.
"""

import importlib
import inspect
import os
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, cast

from toolcrib.contracts import InvalidInput

if TYPE_CHECKING:
    from toolcrib.crib import Crib

_MOST_NAMED: Final = 5
"""Modules and names that an error lists."""


def load_crib(name: str, *, store: str | None = None, engine: str | None = None) -> "Crib":
    """Import an application, from the working directory too, and take or make its crib.

    Args:
        name: `module:name`; the name is of a `Crib`, or of a function without parameters that returns one.
        store: An option of the command line, which the application's `Crib.from_settings()` finds; none if null.
        engine: Likewise.

    Raises:
        InvalidInput: There is no such module, or no such crib in it; the message lists what was found.
    """
    from toolcrib.crib import Crib

    module_name, _, attribute = name.partition(":")
    if not module_name or not attribute:
        msg = f"the application {name!r} is not of the form module:name, such as shop.tools:crib"
        raise InvalidInput(msg)
    with _settings(store=store, engine=engine):
        module = _module(module_name)
        found: Any = getattr(module, attribute, _MISSING)
        if found is _MISSING:
            raise InvalidInput(f"the module {module_name!r} has no {attribute!r}; {_cribs_in(module)}")
        if callable(found) and not isinstance(found, Crib):
            found = _made_by(cast("Callable[[], object]", found), name)
    if not isinstance(found, Crib):
        msg = f"{name!r} is of type {type(found).__name__}, not a Crib or a function that returns one"
        raise InvalidInput(f"{msg}; {_cribs_in(module)}")
    return found


_MISSING: Final = object()


def _made_by(function: Callable[[], object], name: str) -> object:
    """What a function of the application returns.

    Raises:
        InvalidInput: It has parameters.
    """
    try:
        inspect.signature(function).bind()
    except TypeError as problem:
        msg = f"{name!r} cannot be called without arguments ({problem}); name a function without parameters"
        raise InvalidInput(msg) from problem
    except ValueError:  # a built-in function without a signature
        pass
    return function()


def _cribs_in(module: ModuleType) -> str:
    """What could have been meant in a module."""
    from toolcrib.crib import Crib

    cribs = [name for name, value in vars(module).items() if isinstance(value, Crib)]
    functions = [
        name
        for name, value in vars(module).items()
        if inspect.isfunction(value) and value.__module__ == module.__name__ and not inspect.signature(value).parameters
    ]
    parts = [
        f"{what} {', '.join(names[:_MOST_NAMED])}"
        for what, names in (("cribs:", cribs), ("functions without parameters:", functions))
        if names
    ]
    return f"it has {'; '.join(parts)}" if parts else "it has no crib; add crib = Crib.from_settings() to it"


def _module(name: str) -> Any:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as missing:
        if missing.name is None or not f"{name}.".startswith(f"{missing.name}."):
            raise  # it is there, and lacks something itself
        msg = f"there is no module {name!r} in {here} or among the installed packages; {_modules_here(name)}"
        raise InvalidInput(msg) from missing


def _modules_here(name: str) -> str:
    """What could have been meant in the working directory."""
    from toolcrib.core.expressions.suggestions import suggestion

    names = sorted(path.stem for path in Path.cwd().glob("*.py") if path.stem.isidentifier())
    if not names:
        return "start in the application's folder"
    meant = suggestion(name.partition(".")[0], names)
    return f"{meant}modules here: {', '.join(names[:_MOST_NAMED])}"


@contextmanager
def _settings(**given: str | None) -> Generator[None]:
    """Put the options of the command line into the environment while the application is loaded."""
    from toolcrib.crib.settings import variable_of

    variables = {variable_of(key): value for key, value in given.items() if value is not None}
    before = {name: os.environ[name] for name in variables if name in os.environ}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name in variables:
            del os.environ[name]
        os.environ.update(before)

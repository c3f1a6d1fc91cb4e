"""Loads the crib of an application, given on the command line as `module:name`, as for ASGI servers.

Only the person who starts the process can name it; stored names are never imported.
"""

import importlib
import os
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from toolcrib.contracts import InvalidInput

if TYPE_CHECKING:
    from toolcrib.crib import Crib


def load_crib(name: str, *, store: str | None = None, engine: str | None = None) -> "Crib":
    """Import an application, from the working directory too, and take or make its crib.

    Args:
        name: `module:name`; the name is of a `Crib`, or of a function without parameters that returns one.
        store: An option of the command line, which the application's `Crib.from_settings()` finds; none if null.
        engine: Likewise.

    Raises:
        InvalidInput: There is no such crib.
    """
    from toolcrib.crib import Crib

    module_name, _, attribute = name.partition(":")
    if not module_name or not attribute:
        msg = f"the application {name!r} is not of the form module:name, such as shop.tools:crib"
        raise InvalidInput(msg)
    with _settings(store=store, engine=engine):
        found: Any = getattr(_module(module_name), attribute, None)
        if callable(found) and not isinstance(found, Crib):
            found = cast("Callable[[], object]", found)()
    if not isinstance(found, Crib):
        msg = f"{name!r} is no Crib and no function that returns one"
        raise InvalidInput(msg)
    return found


def _module(name: str) -> Any:
    sys.path.insert(0, str(Path.cwd()))
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as missing:
        if missing.name is None or not f"{name}.".startswith(f"{missing.name}."):
            raise  # it is there, and lacks something itself
        msg = f"there is no module {name!r} here or among what is installed; start in the application's folder"
        raise InvalidInput(msg) from missing


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

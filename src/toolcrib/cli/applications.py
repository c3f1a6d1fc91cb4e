"""The crib of an application, named on the command line as `module:name`, the way that ASGI servers name theirs.

Only who starts the process names it; nothing that is stored is ever imported.
"""

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from toolcrib.contracts import InvalidInput

if TYPE_CHECKING:
    from toolcrib.crib import Crib


def load_crib(name: str) -> "Crib":
    """Import an application, from the working directory too, and take or make its crib.

    Args:
        name: `module:name`; the name is of a `Crib`, or of a function without parameters that returns one.

    Raises:
        InvalidInput: There is none.
    """
    from toolcrib.crib import Crib

    module_name, _, attribute = name.partition(":")
    if not module_name or not attribute:
        msg = f"the application {name!r} is not of the form module:name, such as shop.tools:crib"
        raise InvalidInput(msg)
    sys.path.insert(0, str(Path.cwd()))
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as missing:
        if missing.name is None or not f"{module_name}.".startswith(f"{missing.name}."):
            raise  # it is there, and lacks something itself
        msg = f"there is no module {module_name!r} here or among what is installed; start in the application's folder"
        raise InvalidInput(msg) from missing
    found: Any = getattr(module, attribute, None)
    if callable(found) and not isinstance(found, Crib):
        found = cast("Callable[[], object]", found)()
    if not isinstance(found, Crib):
        msg = f"{name!r} is no Crib and no function that returns one"
        raise InvalidInput(msg)
    return found

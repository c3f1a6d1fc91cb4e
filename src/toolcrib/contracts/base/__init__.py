"""The basis of all contracts: the base model, errors, identities, principals, envelopes and implementations.

Any package may import it; most names are in `toolcrib.contracts` too.
"""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def names_on_use(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a package whose names load when they are first used.

    A process then loads the modules that it uses, and not all those of a package of which it uses one name.

    Args:
        package: The package, as `__name__`.
        homes: Its names, separated by spaces, by the module that has them.
    """
    modules = {name: module for module, names in homes.items() for name in names.split()}

    def load(name: str) -> Any:
        if name not in modules:
            msg = f"module {package!r} has no attribute {name!r}"
            raise AttributeError(msg)
        value = getattr(import_module(modules[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return load

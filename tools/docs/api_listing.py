"""The listing of the public API: a line for each name, signature and field, so that a change of one is seen in review.

    python -m tools.docs.api_listing           # writes docs/api.txt

A test holds the file against the code. Methods that the standard library or pydantic bring are left out.
"""

import dataclasses
import inspect
import re
from collections.abc import Iterator
from functools import cached_property
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import msgspec
from pydantic import BaseModel

from toolcrib.contracts import Record
from tools.docs.python_reference import methods, parts

LISTING: Final = Path("docs/api.txt")
PACKAGES: Final = ("toolcrib", "toolcrib.testing", "toolcrib.contracts", "toolcrib.core.export")
"""What `docs/versioning.md` promises, without the synchronous crib, whose committed source says as much."""
_ADDRESS: Final = re.compile(r" at 0x[0-9a-f]+")
_SPACE: Final = re.compile(r"\s+")
_MODULE: Final = re.compile(r"\b(?:toolcrib|collections|datetime|typing|decimal)(?:\.[a-z_0-9]+)*\.(?=[A-Za-z])")
_QUOTED: Final = re.compile(r"""(: |-> )(?:'([^']*)'|"([^"]*)")(?=[,) =]|$)""")
"""An annotation of a module whose annotations are texts."""
_FORWARD: Final = re.compile(r"ForwardRef\('([^']*)'\)")
"""A type that pydantic has not looked up yet: it does with the first use of the model."""


def listing() -> str:
    """The whole file."""
    shown = set[int]()
    lines = [line for package in PACKAGES for line in _package(package, shown)]
    lines += [line for name, part in parts() for line in _members(f"toolcrib.Crib.{name}", part)]
    return "\n".join(dict.fromkeys(_ADDRESS.sub("", line) for line in lines)) + "\n"


def _package(package: str, shown: set[int]) -> Iterator[str]:
    """What a package offers, without the classes that another package has shown."""
    module = import_module(package)
    for name in sorted(module.__all__):
        value = getattr(module, name)
        place = f"{package}.{name}"
        if inspect.isclass(value):
            if id(value) not in shown:
                shown.add(id(value))
                yield from _class(place, value)
        elif inspect.ismodule(value):
            yield from _module(place, value)
        elif callable(value):
            yield f"{place}{_signature(value)}"
        else:
            yield f"{place}: {_shown(type(value) if not _is_alias(value) else value)}"


def _module(place: str, module: ModuleType) -> Iterator[str]:
    """The functions and classes that a module without `__all__` defines."""
    for name, value in sorted(vars(module).items()):
        if name.startswith("_") or getattr(value, "__module__", "") != module.__name__:
            continue
        if inspect.isclass(value):
            yield from _class(f"{place}.{name}", value)
        elif callable(value):
            yield f"{place}.{name}{_signature(value)}"


def _class(place: str, kind: type[Any]) -> Iterator[str]:
    if issubclass(kind, BaseModel | Record):
        yield f"{place}: {'model' if issubclass(kind, BaseModel) else 'record'}"
        for name, field in kind.model_fields.items():
            need = "" if field.is_required() else " = …"
            yield f"{place}.{name}: {_shown(field.annotation)}{need}"
        return
    yield f"{place}{_signature(kind)}"
    yield from _members(place, kind)


def _members(place: str, kind: type[Any]) -> Iterator[str]:
    """Public methods, properties and fields of a class, with those that it has from other classes of ours."""
    for owner in reversed([each for each in kind.__mro__ if each.__module__.startswith("toolcrib")]):
        for name, function in methods(owner):
            if name not in ("__call__", "__init__"):
                yield f"{place}.{name}{_signature(function)}"
        call = vars(owner).get("__call__")
        if inspect.isfunction(call) and owner is kind:
            yield f"{place}.__call__{_signature(call)}"
        for name, value in sorted(vars(owner).items()):
            if isinstance(value, property | cached_property) and not name.startswith("_"):
                function = value.fget if isinstance(value, property) else value.func
                returned = inspect.signature(function).return_annotation if function else Any
                yield f"{place}.{name}: {_shown(returned)}"
    yield from _fields(place, kind)


def _fields(place: str, kind: type[Any]) -> Iterator[str]:
    if not dataclasses.is_dataclass(kind) and not issubclass(kind, msgspec.Struct):
        return
    for owner in reversed(kind.__mro__):
        for name, annotation in inspect.get_annotations(owner).items():
            if not name.startswith("_"):
                yield f"{place}.{name}: {_shown(annotation)}"


def _signature(value: Any) -> str:
    try:
        return _plain(_QUOTED.sub(r"\1\2\3", str(inspect.signature(value))))
    except (NameError, TypeError, ValueError):  # written in C, or with names that only a type checker has
        return "(…)"


def _is_alias(value: object) -> bool:
    return type(value).__module__ in ("typing", "types")


def _shown(annotation: Any) -> str:
    return _plain(annotation if isinstance(annotation, str) else inspect.formatannotation(annotation))


def _plain(text: str) -> str:
    """Without the modules of names, which may move."""
    return _MODULE.sub("", _SPACE.sub(" ", _FORWARD.sub(r"\1", text)))


def main() -> None:
    """Write the file."""
    LISTING.write_text(listing(), encoding="utf-8")
    print(f"wrote {LISTING}")


if __name__ == "__main__":
    main()

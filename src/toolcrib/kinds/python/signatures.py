"""The signature of a callable that is to be a tool: its function, its open parameters, its docstring."""

import inspect
import re
from collections.abc import Callable, Mapping
from functools import partial
from types import FunctionType, MethodType
from typing import Any, Final, NamedTuple

from toolcrib.contracts import InvalidDefinition

_SECTION: Final = re.compile(r"^(?::|@|\.\.|-+[ \t\r\f\v]*$)|:[ \t\r\f\v]*$", re.MULTILINE)
"""What begins a section of a docstring, in every style; other things may look like it."""


class Documentation(NamedTuple):
    """What a docstring says."""

    summary: str
    parameters: Mapping[str, str | None]


def read_docstring(text: str) -> Documentation:
    """The summary and the descriptions of parameters of a docstring in any of the usual styles."""
    if _SECTION.search(text):
        from docstring_parser import parse  # noqa: PLC0415 - heavy

        found = parse(text)
        first, rest = found.short_description, found.long_description
        parameters = {parameter.arg_name: parameter.description for parameter in found.params}
    else:
        first, _, rest = text.partition("\n")
        rest, parameters = rest.strip(), {}
    return Documentation("\n\n".join(filter(None, (first, rest))), parameters)


def inner_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function that has the type hints and the docstring.

    Raises:
        InvalidDefinition: It cannot be called, or is a method of a type that is written in C.
    """
    whole = _whole(function)
    if not callable(whole):
        msg = f"expected a function, got {type(whole).__name__}: {whole!r:.100}; pass a function, a method or a @tool"
        raise InvalidDefinition(msg)
    inner = whole if hasattr(whole, "__name__") else whole.__call__
    if not hasattr(inner, "__module__"):
        raise InvalidDefinition(_untold(function))
    return inner


def has_object(function: Callable[..., Any]) -> bool:
    """Whether it is a method of an object, which its calls share."""
    return isinstance(function, MethodType) and not isinstance(function.__self__, type)


def name_of(function: Callable[..., Any]) -> str:
    """The default name of its tool; for a callable object, the name of its class."""
    whole = _whole(function)
    return getattr(whole, "__name__", type(whole).__name__)


def open_parameters(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """The parameters that are still to be given.

    Raises:
        InvalidDefinition: It is written in C, and its parameters are unknown.
    """
    try:
        parameters = inspect.signature(function).parameters
    except ValueError:
        raise InvalidDefinition(_untold(function)) from None
    held = function.keywords if isinstance(function, partial) else {}
    return {name: parameter for name, parameter in parameters.items() if name not in held}


def public_methods(thing: object) -> Mapping[str, Callable[..., Any]]:
    """The public methods of an object, by name. Properties are not evaluated, so there are no side effects."""
    kind = type(thing)
    named = {name: inspect.getattr_static(kind, name) for name in dir(kind) if not name.startswith("_")}
    methods = (name for name, found in named.items() if isinstance(found, FunctionType | classmethod | staticmethod))
    return {name: getattr(thing, name) for name in methods}


def _whole(function: Callable[..., Any]) -> Callable[..., Any]:
    """What a partial is a part of."""
    while isinstance(function, partial):
        function = function.func
    return function


def _untold(function: Callable[..., Any]) -> str:
    return f"{function!r} does not declare its parameters; wrap it in a function"

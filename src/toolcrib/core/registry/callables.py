"""What can be a tool besides a plain function: a bound method, a `functools.partial`, an object that can be called.

The object of a method and what a partial holds already are no arguments of the tool: the model neither sees nor sets
them. Nothing here is called.
"""

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from types import FunctionType, MethodType
from typing import Any

from toolcrib.contracts import InvalidDefinition


def inner_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function that has the type hints and the docstring.

    Raises:
        InvalidDefinition: It cannot be called, or is a method of a type that is written in C.
    """
    whole = _whole(function)
    if not callable(whole):
        msg = f"{whole!r} cannot be called, so it is no tool; give a function or a method"
        raise InvalidDefinition(msg)
    inner = whole if hasattr(whole, "__name__") else whole.__call__
    if not hasattr(inner, "__module__"):
        raise InvalidDefinition(_untold(function))
    return inner


def has_object(function: Callable[..., Any]) -> bool:
    """Whether it is a method of an object, which its calls share."""
    return isinstance(function, MethodType) and not isinstance(function.__self__, type)


def name_of(function: Callable[..., Any]) -> str:
    """The name that a tool of it has by itself: of an object that can be called, its class's."""
    whole = _whole(function)
    return getattr(whole, "__name__", type(whole).__name__)


def open_parameters(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """The parameters that are still to be given.

    Raises:
        InvalidDefinition: It is written in C, and does not tell its parameters.
    """
    try:
        parameters = inspect.signature(function).parameters
    except ValueError:
        raise InvalidDefinition(_untold(function)) from None
    held = function.keywords if isinstance(function, partial) else {}
    return {name: parameter for name, parameter in parameters.items() if name not in held}


def public_methods(thing: object) -> Mapping[str, Callable[..., Any]]:
    """The methods of an object that are not private, by name. Properties are not looked at, so nothing happens here."""
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
    return f"{function!r} does not tell its parameters; wrap it in a function of your own"

"""Why a function cannot be a tool: messages that name the parameter or the option, and what to write instead."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, get_args, get_origin

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from toolcrib.contracts import InvalidDefinition, ToolDefinition

_TYPES: Final = (
    "str, int, float, bool, date, datetime, Decimal, an Enum, a list or dict of these, a dataclass, a TypedDict or a "
    "pydantic model"
)
"""What has a JSON form."""


def refuse_option(name: str, error: ValidationError) -> InvalidDefinition:
    """The refusal of options of `@tool` that are unknown or not of their type.

    Args:
        name: Of the tool.
        error: Of pydantic, for `ToolDefinition`.
    """
    listed = "; ".join(_option_problem(found) for found in error.errors(include_url=False))
    return InvalidDefinition(f"tool {name!r}: {listed}; correct it in @tool(...)")


def _option_problem(found: ErrorDetails) -> str:
    field = ".".join(map(str, found["loc"]))
    if found["type"] == "extra_forbidden":
        from toolcrib.core.expressions.suggestions import suggestion  # noqa: PLC0415 - heavy

        meant = suggestion(field, ToolDefinition.model_fields).strip()
        return f"there is no option {field!r}; {meant or 'leave it out'}"
    return f"option {field!r} is {repr(found['input'])[:100]}: {found['msg'].removeprefix('Value error, ')}"


def refuse_types(name: str, parameters: Mapping[str, Any], result: Any) -> InvalidDefinition:
    """The refusal of a signature with a type that JSON cannot represent.

    Args:
        name: Of the tool.
        parameters: Types of the parameters by their names.
        result: Type of the result; `Any` if there is none.
    """
    problems = [*_type_problems(parameters), *_result_problems(result)]
    return InvalidDefinition(f"tool {name!r}: {'; '.join(problems) or _UNNAMED}; use {_TYPES}")


_UNNAMED: Final = "JSON cannot represent its types together"


def _type_problems(parameters: Mapping[str, Any]) -> Iterator[str]:
    for parameter, hint in parameters.items():
        if _has_form(hint, "validation"):
            continue
        if get_origin(hint) is Annotated and _has_form(get_args(hint)[0], "validation"):
            yield f"the constraints of parameter {parameter!r} cannot be applied: check its pattern and limits"
        else:
            bound = "bind it with functools.partial if a model cannot give it"
            yield f"JSON cannot represent the type {shown(hint)} of parameter {parameter!r}; {bound}"


def _result_problems(hint: Any) -> Iterator[str]:
    if not _has_form(hint, "serialization"):
        yield f"JSON cannot represent the type {shown(hint)} of the result; pass output_schema=None to have it as text"


def _has_form(hint: Any, mode: Any) -> bool:
    try:
        TypeAdapter(hint).json_schema(mode=mode)
    except Exception:  # noqa: BLE001 - whatever a type's own hooks raise: it has no form
        return False
    return True


def shown(hint: Any) -> str:
    """A type as its author has written it, nearly: a class by its name."""
    return hint.__qualname__.rpartition("<locals>.")[2] if isinstance(hint, type) else str(hint).replace("typing.", "")


def refuse_generator(name: str, hint: Any, element: Any, *, is_asynchronous: bool) -> InvalidDefinition:
    """The refusal of a generator with the return type of another kind of function.

    Args:
        name: Of the tool.
        hint: Its return type.
        element: Type of what it yields, as far as the return type tells.
        is_asynchronous: Whether it is an async generator.
    """
    kind, right = ("an async", "AsyncIterator") if is_asynchronous else ("a", "Iterator")
    return InvalidDefinition(
        f"tool {name!r} is {kind} generator, and its return type is {shown(hint)}; write {right}[{shown(element)}]"
    )


def refuse_returned(name: str, returned: Any, element: Any) -> InvalidDefinition:
    """The refusal of a generator that returns a value: its output is what it yields."""
    return InvalidDefinition(
        f"tool {name!r} is a generator that returns {shown(returned)}, which would be lost: yield it, and write "
        f"Iterator[{shown(element)}]"
    )

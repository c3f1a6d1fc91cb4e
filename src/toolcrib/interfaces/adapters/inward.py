"""Makes tools of a crib from callables that other frameworks describe by a JSON Schema."""

from collections.abc import Callable
from typing import Any

from pydantic import BaseModel

from toolcrib.contracts import JsonSchema
from toolcrib.kinds.python.functions import FunctionTool, ToolOptions, tool


def adopt(
    call: Callable[..., Any],
    original: object,
    *,
    name: str,
    description: str,
    schema: JsonSchema,
    options: ToolOptions,
) -> FunctionTool[..., Any]:
    """A Python tool that calls what another framework calls.

    Args:
        call: Takes the arguments by name.
        original: What the author wrote, whose type names the function in the definition.
        name: Of the tool; `options` may have another.
        description: Likewise.
        schema: Of the arguments, an object.
        options: As for `toolcrib.tool`.

    Raises:
        InvalidDefinition: The name, the schema or an option is not valid.
    """
    place = original if callable(original) and hasattr(original, "__qualname__") else type(original)
    call.__module__, call.__qualname__ = place.__module__, getattr(place, "__qualname__", type(place).__name__)
    call.__doc__ = None
    described: ToolOptions = {
        "name": name,
        "description": description,
        "input_schema": {"type": "object", "properties": {}, **schema},
        "output_schema": None,
        **options,
    }
    return tool(**described)(call)


def schema_of_model(model: type[BaseModel]) -> JsonSchema:
    """The schema of a model's fields without the titles that pydantic makes of their names."""
    from toolcrib.kinds.python.schemas import schema_of_arguments  # noqa: PLC0415 - loaded when used

    schema = schema_of_arguments(model)
    return {keyword: value for keyword, value in schema.items() if keyword not in {"description", "title"}}

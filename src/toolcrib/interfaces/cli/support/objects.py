"""JSON objects that are given on the command line."""

import json
from typing import TYPE_CHECKING, cast

import typer

if TYPE_CHECKING:
    from toolcrib.contracts import Json, JsonObject


def json_value(text: str, option: str) -> "Json":
    """The JSON that an option gives.

    Raises:
        typer.BadParameter: It is not JSON.
    """
    try:
        return json.loads(text)
    except json.JSONDecodeError as problem:
        raise typer.BadParameter(f"{option} is not JSON: {problem}") from None


def json_object(text: str, option: str) -> "JsonObject":
    """The object that an option gives.

    Args:
        text: What was typed.
        option: `--input`.

    Raises:
        typer.BadParameter: It is not JSON, or no object.
    """
    found = json_value(text, option)
    if not isinstance(found, dict):
        raise typer.BadParameter(f"{option} must be one JSON object")
    return cast("JsonObject", found)

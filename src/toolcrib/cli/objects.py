"""JSON objects that are given on the command line."""

import json
from typing import TYPE_CHECKING, cast

import typer

if TYPE_CHECKING:
    from toolcrib.contracts import JsonObject


def json_object(text: str, option: str) -> "JsonObject":
    """The object that an option gives.

    Args:
        text: What was typed.
        option: `--input`.

    Raises:
        typer.BadParameter: It is not JSON, or no object.
    """
    try:
        found = json.loads(text)
    except json.JSONDecodeError as problem:
        raise typer.BadParameter(f"{option} is not JSON: {problem}") from None
    if not isinstance(found, dict):
        raise typer.BadParameter(f"{option} must be one JSON object")
    return cast("JsonObject", found)

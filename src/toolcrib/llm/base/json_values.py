"""Lenient readers for providers' JSON and for JSON Schemas.

A value of the wrong type counts as absent. A missing required value is an error with its name.
"""

from decimal import Decimal
from math import isfinite
from typing import Any

import orjson

from toolcrib.contracts import resolve_pointer
from toolcrib.contracts.base.errors import ModelError


def obj(value: Any) -> dict[str, Any]:
    """The object, or an empty one."""
    return value if isinstance(value, dict) else {}  # pyright: ignore[reportUnknownVariableType] - JSON has no other keys


def arr(value: Any) -> list[Any]:
    """The array, or an empty one."""
    return value if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType] - Any in, Any out


def text(value: Any) -> str:
    """The string, or an empty one."""
    return value if isinstance(value, str) else ""


def count(value: Any) -> int:
    """The whole number, or 0; some gateways write counts as floats."""
    return int(value) if isinstance(value, int | float) else 0


def amount(value: Any) -> Decimal | None:
    """The number as it was written, 0 or more; null for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value) or value < 0:
        return None
    return Decimal(str(value))


def json_text(value: Any) -> str:
    """A value as JSON text; a string is taken to be JSON text already."""
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def load_object(data: bytes, provider: str) -> dict[str, Any]:
    """The JSON object of an answer.

    Raises:
        ModelError: `bad_response`, the answer is empty, not JSON or not an object.
    """
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        if not data.strip():
            raise ModelError("bad_response", f"{provider} answered with an empty body; check base_url") from None
        start = data[:80].decode("utf-8", "replace")
        raise ModelError(
            "bad_response",
            f"{provider} answered with {len(data)} bytes that are not JSON ({error}): {start!r}...; check base_url",
        ) from error
    if not isinstance(value, dict):
        raise ModelError("bad_response", f"{provider} answered with a JSON {type(value).__name__}, expected an object")
    return value  # pyright: ignore[reportUnknownVariableType] - JSON has no other keys


def missing(provider: str, field: str, holder: dict[str, Any]) -> ModelError:
    """The error for a needed field that is not there."""
    found = ", ".join(sorted(holder)) or "nothing"
    return ModelError("bad_response", f"{provider} answered without {field!r}; it sent {found}")


def follow_references(root: dict[str, Any], schema: Any) -> dict[str, Any]:
    """The schema that a reference means; a chain of references is followed as far as it leads somewhere new.

    Args:
        root: Where references lead.
        schema: A part of it.
    """
    seen: set[str] = set()
    found = obj(schema)
    while (reference := text(found.get("$ref"))) and reference not in seen:
        seen.add(reference)
        found = obj(resolve_pointer(root, reference))
    return found

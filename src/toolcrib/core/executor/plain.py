"""What may stand in an envelope: JSON that nobody else holds, and text that is Unicode.

Values come from callers, functions and foreign systems, so nothing is taken for granted about them. This module knows
neither tools nor secrets.
"""

from collections.abc import Iterable
from typing import cast

import orjson

from toolcrib.contracts import InvalidInput, Json, JsonObject

MAX_DEPTH = 100
"""Levels of nesting. Whoever writes an envelope down gives up at 254 (orjson), and an event adds a few of its own."""


def plain(value: Json) -> Json:
    """A copy of a value that is nothing but JSON, so that whoever keeps the original cannot change it.

    Moments, UUIDs, enums and dataclasses become what JSON has for them; a number that is not finite becomes null, as in
    ECMAScript's `JSON.stringify`.

    Raises:
        InvalidInput: The value is not JSON, has an integer beyond 64 bits, or is nested too deep.
    """
    try:
        text = orjson.dumps(value)
    except orjson.JSONEncodeError as problem:
        raise InvalidInput(str(problem)) from None
    copy = orjson.loads(text)
    if text.count(b"[") + text.count(b"{") > MAX_DEPTH and _is_deep(copy):
        raise InvalidInput(f"nested more than {MAX_DEPTH} levels deep")
    return copy


def legible(text: str) -> str:
    """The text with `?` in place of lone surrogates, which no encoding can carry."""
    return text.encode("utf-8", "replace").decode()


def _is_deep(value: Json) -> bool:
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [inner for outer in level for inner in _inside(outer) if isinstance(inner, dict | list)]
        if not level:
            return False
    return True


def _inside(value: Json) -> Iterable[Json]:
    if isinstance(value, dict):
        return cast("JsonObject", value).values()
    return cast("list[Json]", value) if isinstance(value, list) else ()

"""Values made short enough to look at: lists and texts end with what was left out. The journal has the rest."""

from typing import cast

import orjson

from toolcrib.contracts import Json, JsonObject

_ITEMS, _LENGTH = 50, 300
"""Where shortening starts: items of a list, characters of a text."""
_SHORTEST = 20
_DEEPER = 4
"""Lists inside lists are cut so much sooner: what each of a hundred batches says counts more than all of the first."""


def shortened(value: Json, limit: int) -> Json:
    """The value, with lists and texts cut until its JSON has at most `limit` characters, or cutting helps no more."""
    short, items, length = value, _ITEMS, _LENGTH
    while len(orjson.dumps(short).decode()) > limit and (items > 1 or length > _SHORTEST):
        short = _cut(value, items, length)
        items, length = max(items // 2, 1), max(length // 2, _SHORTEST)
    return short


def clipped(text: str, limit: int) -> str:
    """The text, or its beginning and how long it is."""
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"


def _cut(value: Json, items: int, length: int) -> Json:
    if isinstance(value, str):
        return clipped(value, length)
    if isinstance(value, dict):
        return {key: _cut(item, items, length) for key, item in cast("JsonObject", value).items()}
    if isinstance(value, list):
        whole = cast("list[Json]", value)
        kept = [_cut(item, max(items // _DEEPER, 1), length) for item in whole[:items]]
        return [*kept, f"… {len(whole) - items} more of {len(whole)}"] if len(whole) > items else kept
    return value

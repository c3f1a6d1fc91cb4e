"""A server's words made fit to be shown: bounded, and without characters that show nothing.

Characters of control and format hide text from whoever reads a description and not from the model that is given it.
What the words say is not judged here: they stay claims of the other side.
"""

import unicodedata
from typing import Final, cast

from toolcrib.contracts import Json, JsonObject, JsonSchema
from toolcrib.core.providers.losses import Losses

MAX_DESCRIPTION: Final = 4_000
"""Characters of a description that a model sees."""
MAX_TITLE: Final = 100

_HIDDEN: Final = frozenset({"Cc", "Cf", "Co", "Cs", "Zl", "Zp"})
"""Unicode categories: control, format, private use, surrogate, separators of lines and paragraphs."""
_PROSE: Final = frozenset({"title", "description"})
_MOST_LEVELS: Final = 100


def prose(text: str, limit: int, place: str, what: str, losses: Losses) -> str:
    """A text without hidden characters, at most `limit` characters long; what goes is a loss."""
    shown = visible(text)
    if shown != text:
        losses.changed(place, "text", what, "characters that show nothing were taken out")
    if len(shown) <= limit:
        return shown.strip()
    losses.changed(place, "text", what, f"cut to {limit} characters")
    return shown[: limit - 1].rstrip() + "…"


def visible(text: str) -> str:
    """A text without the characters that show nothing, but for line breaks and tabs."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(char for char in text if char in "\n\t" or unicodedata.category(char) not in _HIDDEN)


def legible_schema(schema: JsonSchema) -> JsonSchema:
    """A schema whose titles and descriptions show all of their characters; the rest of it is not touched."""
    return cast("JsonSchema", _legible(schema, _MOST_LEVELS))


def _legible(value: Json, levels: int) -> Json:
    if levels == 0:
        return value
    if isinstance(value, list):
        return [_legible(item, levels - 1) for item in cast("list[Json]", value)]
    if not isinstance(value, dict):
        return value
    members = cast("JsonObject", value)
    return {
        name: visible(item) if name in _PROSE and isinstance(item, str) else _legible(item, levels - 1)
        for name, item in members.items()
    }

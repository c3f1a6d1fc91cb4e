"""Prose of a document made lean enough for a model's context: no markup, no line breaks, bounded."""

import html
import re
from typing import Final

from toolcrib.core.providers.losses import Losses

MAX_DESCRIPTION: Final = 500
"""Characters of a description that a model sees."""

_TAG: Final = re.compile(r"</?[a-zA-Z][^<>]*>")
_LINK: Final = re.compile(r"!?\[([^\[\]]*)\]\([^()\s]*\)")
"""Markdown, of which the text is kept."""


def plain(text: object) -> str:
    """Text without HTML tags and addresses of links, with single spaces; empty for anything that is no text."""
    return " ".join(html.unescape(_TAG.sub(" ", _LINK.sub(r"\1", text))).split()) if isinstance(text, str) else ""


def lean(text: object, place: str, losses: Losses) -> str:
    """Plain text of bounded length; what is cut off is a loss."""
    found = plain(text)
    if not found and text != "":
        losses.dropped(place, "text", "description", "holds no text")
    if len(found) > MAX_DESCRIPTION:
        losses.changed(place, "text", "description", f"cut to {MAX_DESCRIPTION} characters")
    return trimmed(found)


def trimmed(text: str, limit: int = MAX_DESCRIPTION) -> str:
    """At most `limit` characters, cut between words and marked with an ellipsis."""
    if len(text) <= limit:
        return text
    cut = text[: limit - 1]
    return (cut.rpartition(" ")[0] or cut).rstrip(" ,;:.") + "…"

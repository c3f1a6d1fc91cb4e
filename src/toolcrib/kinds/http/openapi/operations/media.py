"""Media types: which of several is taken, and how its content is written."""

import re
from collections.abc import Sequence
from typing import Final

from toolcrib.contracts import BodyEncoding
from toolcrib.kinds.http.openapi.operations.parts import Media

FORM: Final = "application/x-www-form-urlencoded"
JSON_TYPE: Final = "application/json"
_JSON: Final = re.compile(
    r"(application/json|[a-z0-9.+*-]+/[a-z0-9.+*-]+\+json|text/json|text/x-json)\s*(;.*)?", re.IGNORECASE
)
_LINES: Final = re.compile(r"application/((x-)?ndjson|jsonl|x-jsonlines|json-seq)\s*(;.*)?", re.IGNORECASE)
_TEXT: Final = re.compile(r"text/.+|.+[/+](xml|yaml|x-yaml|javascript|graphql)\s*(;.*)?|application/csv", re.IGNORECASE)
_ANY: Final = frozenset({"*/*", "application/*", "*", "application/any", "any"})
_ORDER: Final[tuple[BodyEncoding, ...]] = ("json", "form", "multipart", "text", "binary")


def is_json(media_type: str) -> bool:
    """Whether a media type is JSON (RFC 6839, section 3.1), or so open that JSON fits."""
    return _JSON.fullmatch(media_type) is not None or media_type.lower() in _ANY


def is_lines(media_type: str) -> bool:
    """Whether it is a sequence of JSON values."""
    return _LINES.fullmatch(media_type) is not None


def is_text(media_type: str) -> bool:
    """Whether it is text that is not JSON."""
    return _TEXT.fullmatch(media_type) is not None and not is_json(media_type)


def encoding_of(media_type: str) -> BodyEncoding:
    """How a request body of a media type is written."""
    if is_json(media_type):
        return "json"
    lower = media_type.lower()
    if lower.startswith(FORM):
        return "form"
    if lower.startswith("multipart/"):
        return "multipart"
    return "text" if is_text(media_type) or is_lines(media_type) else "binary"


def content_type(media_type: str) -> str:
    """The type to send: JSON where the document leaves it open."""
    return JSON_TYPE if media_type.lower() in _ANY else media_type


def preferred(media: Sequence[Media], *, files: bool) -> Media:
    """The media type to send: JSON before forms before the rest; a multipart form first where there are files."""
    order = ("multipart", *_ORDER) if files else _ORDER
    return min(media, key=lambda found: order.index(encoding_of(found.type)))

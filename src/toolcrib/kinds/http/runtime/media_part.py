"""Media types as far as requests and answers need them (RFC 9110, section 8.3; RFC 6839). Nothing is guessed here."""

import re
from email.message import Message
from functools import lru_cache
from typing import Final, NamedTuple

_JSON: Final = re.compile(r"[^;]+[/+]json\s*(;.*)?", re.IGNORECASE | re.DOTALL)


class MediaType(NamedTuple):
    """A parsed `Content-Type`."""

    name: str
    """`type/subtype` in lower case."""
    charset: str | None


def is_json(content_type: str) -> bool:
    """Whether a media type is JSON: `application/json`, or one with the suffix `+json`."""
    return _JSON.fullmatch(content_type) is not None


@lru_cache(256)
def media_type(content_type: str) -> MediaType:
    """Name and charset; `text/plain` for what is no media type, as MIME has it (RFC 2045, section 5.2)."""
    message = Message()
    message["content-type"] = content_type
    return MediaType(message.get_content_type(), message.get_content_charset())

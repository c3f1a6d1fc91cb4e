"""Media types (RFC 9110, section 8.3; RFC 6839), and the decoding of text by its character set.

The character set is determined as in browsers (WHATWG HTML): by byte order mark, header and document; otherwise UTF-8
if the bytes are valid, else windows-1252. Decoding never fails; undecodable bytes are replaced.
"""

import codecs
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


_MARKS: Final = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_DECLARED: Final = re.compile(
    rb"""<\?xml[^>]{0,200}?encoding\s*=\s*["']([\w.:-]{1,40})["']|<meta[^>]{0,200}?charset\s*=\s*["']?([\w.:-]{1,40})""",
    re.IGNORECASE,
)
_WHERE_DECLARED: Final = 2_048
"""Bytes from the beginning in which a document may declare its characters."""
_LATIN: Final = frozenset({"iso-8859-1", "latin-1", "latin1", "us-ascii", "ascii"})
"""Names that mean windows-1252 on the web; their character sets are subsets of it."""
_LAST: Final = "windows-1252"


def decode_text(body: bytes, charset: str | None, *, declares: bool = False) -> str:
    """The text that bytes are.

    Args:
        body: The bytes.
        charset: What the header says, if it says something.
        declares: Whether the text itself may declare its characters, as HTML and XML do.
    """
    marked = next((name for mark, name in _MARKS if body.startswith(mark)), None)
    if marked is not None:
        return body.decode(marked, errors="replace")
    declared = _DECLARED.search(body, 0, _WHERE_DECLARED) if declares else None
    encoding = charset or ((declared[1] or declared[2]).decode("ascii") if declared else "utf-8")
    try:
        return body.decode(_LAST if encoding.lower() in _LATIN else encoding, errors="replace" if charset else "strict")
    except (LookupError, UnicodeError):
        pass
    try:
        return body.decode()
    except UnicodeDecodeError:
        return body.decode(_LAST, errors="replace")

"""Serializes values into paths, queries, headers and cookies (OpenAPI 3.1, section 4.8.12; RFC 6570).

Each piece of a value is percent-encoded separately, so a value cannot change the structure. Null members of lists and
objects are left out, as in RFC 6570, section 2.3.
"""

import re
from collections.abc import Iterator
from typing import Final, cast
from urllib.parse import quote

import orjson

from toolcrib.contracts import Json, JsonObject
from toolcrib.kinds.http.runtime.media import is_json
from toolcrib.kinds.http.shape import HttpParameter

_RESERVED: Final = ":/?@!$'()*,;[]"
"""What `allow_reserved` leaves as it is: of the reserved characters, those that cannot end or split a query."""
_UNRESERVED: Final = re.compile(r"[A-Za-z0-9._~-]*")
"""What stays as it is anyway: most names and values do, at a tenth of the time."""
_DELIMITERS: Final = {"spaceDelimited": " ", "pipeDelimited": "|", "tabDelimited": "\t"}
"""Between the pieces of a value that is not exploded; a comma in all other styles."""


def path_piece(parameter: HttpParameter, value: Json) -> str:
    """The text that replaces `{name}` in a path: styles simple, label and matrix, and those with a delimiter."""
    if parameter.content_type is not None:
        return _encode(as_media(parameter.content_type, value))
    if parameter.style in {"label", "matrix"}:
        return _with_prefix(parameter, value)
    if isinstance(value, dict) and parameter.explode:
        return ",".join(f"{_encode(key)}={_encode(member)}" for key, member in _members(value))
    delimiter = quote(_DELIMITERS.get(parameter.style, ","), safe=",")
    return delimiter.join(map(_encode, _flat(value)))


def query_pairs(parameter: HttpParameter, value: Json) -> Iterator[tuple[str, str]]:
    """Encoded names and values of a query, form or cookie parameter: form, deepObject, and those with a delimiter."""
    safe = _RESERVED if parameter.allow_reserved else ""
    name = _encode(parameter.name)
    if parameter.content_type is not None:
        yield name, _encode(as_media(parameter.content_type, value), safe)
        return
    found = list(_pairs(parameter, name, value, safe))
    yield from found
    if not found and parameter.allow_empty:
        yield name, ""


def header_value(parameter: HttpParameter, value: Json) -> str:
    """The value of a header parameter: style simple, or one with a delimiter; not encoded."""
    if parameter.content_type is not None:
        return as_media(parameter.content_type, value)
    if isinstance(value, dict) and parameter.explode:
        return ",".join(f"{key}={text(member)}" for key, member in _members(value))
    return _DELIMITERS.get(parameter.style, ",").join(map(text, _flat(value)))


def text(value: Json) -> str:
    """A value as text: strings as they are, everything else as JSON."""
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def as_media(content_type: str, value: Json) -> str:
    """A value as the text of a media type: JSON, a string with its quotes too, or plain."""
    return orjson.dumps(value).decode() if is_json(content_type) else text(value)


def _with_prefix(parameter: HttpParameter, value: Json) -> str:
    """Styles label (`.a.b`) and matrix (`;name=a`), whose pieces have the separator before them."""
    name = _encode(parameter.name)
    separator, named = (".", "") if parameter.style == "label" else (";", f"{name}=")
    if isinstance(value, dict) and parameter.explode:
        pieces = [f"{_encode(key)}={_encode(member)}" for key, member in _members(value)]
    elif isinstance(value, list) and parameter.explode:
        pieces = [named + _encode(piece) for piece in _flat(cast("list[Json]", value))]
    else:
        joined = ",".join(map(_encode, _flat(value)))
        pieces = [named + joined if joined else named.rstrip("=")]
    return separator + separator.join(pieces)


def _pairs(parameter: HttpParameter, name: str, value: Json, safe: str) -> Iterator[tuple[str, str]]:
    if parameter.style == "deepObject":
        yield from _deep(name, value, safe)
    elif isinstance(value, dict) and parameter.explode:
        for key, member in _members(value):
            yield _encode(key), _encode(member, safe)
    elif isinstance(value, list) and parameter.explode:
        for entry in _flat(cast("list[Json]", value)):
            yield name, _encode(entry, safe)
    elif pieces := [_encode(piece, safe) for piece in _flat(value)]:
        yield name, quote(_DELIMITERS.get(parameter.style, ","), safe=",").join(pieces)


def _deep(name: str, value: Json, safe: str) -> Iterator[tuple[str, str]]:
    """`name[key]=value`: an object's names and a list's positions in brackets, at every depth.

    OpenAPI leaves lists and deeper objects undefined. Positions are what PHP, qs and Stripe read, and the only way in
    which a list of objects can be read back.
    """
    if isinstance(value, dict):
        for key, member in _members(value):
            yield from _deep(f"{name}%5B{_encode(key)}%5D", member, safe)
    elif isinstance(value, list):
        for index, entry in enumerate(_flat(cast("list[Json]", value))):
            yield from _deep(f"{name}%5B{index}%5D", entry, safe)
    else:
        yield name, _encode(value, safe)


def _members(value: Json) -> Iterator[tuple[str, Json]]:
    return ((key, member) for key, member in cast("JsonObject", value).items() if member is not None)


def _flat(value: Json) -> list[Json]:
    """The pieces of a value that is not exploded; an object's keys and values in turn."""
    if isinstance(value, dict):
        return [piece for pair in _members(value) for piece in pair]
    return [piece for piece in cast("list[Json]", value) if piece is not None] if isinstance(value, list) else [value]


def _encode(value: Json, safe: str = "") -> str:
    written = text(value)
    return written if _UNRESERVED.fullmatch(written) else quote(written, safe=safe)

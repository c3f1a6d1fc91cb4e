"""How OpenAPI writes a value into a path, a query, a header or a cookie (OpenAPI 3.1, section 4.8.12; RFC 6570).

Every piece that comes from a value is percent-encoded on its own, so a value can never become structure.
"""

from collections.abc import Iterator
from typing import Final, cast
from urllib.parse import quote

import orjson

from toolcrib.contracts import HttpParameter, Json, JsonObject

_RESERVED: Final = ":/?@!$'()*,;[]"
"""What `allow_reserved` leaves as it is: of the reserved characters, those that cannot end or split a query."""
_DELIMITERS: Final = {"form": ",", "spaceDelimited": "%20", "pipeDelimited": "%7C"}


def path_piece(parameter: HttpParameter, value: Json) -> str:
    """The text that stands for `{name}` in a path: styles simple, label and matrix."""
    separator = {"label": ".", "matrix": ";"}.get(parameter.style, ",")
    prefix = separator if parameter.style in {"label", "matrix"} else ""
    named = f"{quote(parameter.name, safe='')}=" if parameter.style == "matrix" else ""
    if isinstance(value, dict) and parameter.explode:
        pieces = [f"{_encoded(key)}={_encoded(member)}" for key, member in cast("JsonObject", value).items()]
        return prefix + separator.join(pieces)
    if isinstance(value, list) and parameter.explode:
        return prefix + separator.join(named + _encoded(entry) for entry in cast("list[Json]", value))
    return prefix + named + ",".join(map(_encoded, _flat(value)))


def query_pairs(parameter: HttpParameter, value: Json) -> Iterator[tuple[str, str]]:
    """Encoded names and values of a query or cookie parameter: form, spaceDelimited, pipeDelimited and deepObject."""
    safe = _RESERVED if parameter.allow_reserved else ""
    name = quote(parameter.name, safe="")
    if parameter.style == "deepObject":
        yield from _deep(name, value)
    elif isinstance(value, dict) and parameter.explode:
        for key, member in cast("JsonObject", value).items():
            yield _encoded(key), _encoded(member, safe)
    elif isinstance(value, list) and parameter.explode:
        for entry in cast("list[Json]", value):
            yield name, _encoded(entry, safe)
    elif pieces := [_encoded(piece, safe) for piece in _flat(value)]:
        yield name, _DELIMITERS.get(parameter.style, ",").join(pieces)


def header_value(parameter: HttpParameter, value: Json) -> str:
    """The value of a header parameter: style simple, not encoded."""
    if isinstance(value, dict) and parameter.explode:
        return ",".join(f"{key}={text(member)}" for key, member in cast("JsonObject", value).items())
    return ",".join(map(text, _flat(value)))


def text(value: Json) -> str:
    """A value as text: strings as they are, everything else as JSON."""
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _deep(name: str, value: Json) -> Iterator[tuple[str, str]]:
    """`name[key]=value`, nested objects in further brackets, arrays as repeated names."""
    if isinstance(value, dict):
        for key, member in cast("JsonObject", value).items():
            yield from _deep(f"{name}%5B{_encoded(key)}%5D", member)
    elif isinstance(value, list):
        for entry in cast("list[Json]", value):
            yield name, _encoded(entry)
    else:
        yield name, _encoded(value)


def _flat(value: Json) -> list[Json]:
    """The pieces of a value that is not exploded; an object's keys and values in turn."""
    if isinstance(value, dict):
        return [piece for pair in cast("JsonObject", value).items() for piece in pair]
    return cast("list[Json]", value) if isinstance(value, list) else [value]


def _encoded(value: Json, safe: str = "") -> str:
    return quote(text(value), safe=safe)

"""JSON pointers (RFC 6901) as places in documents: written as `/paths/~1deals/get`, read from `$ref` fragments."""

from typing import cast
from urllib.parse import unquote

from toolcrib.contracts import Json, JsonObject, escaped, unescaped


class Nothing:
    """What stands where a pointer leads nowhere; JSON has no value for it, for null is one."""


NOTHING = Nothing()


def child(place: str, key: str | int | None) -> str:
    """The place of a member or an entry."""
    return f"{place}/{escaped(str(key))}"


def find(value: Json, pointer: str) -> "Json | Nothing":
    """The value behind a pointer, or `NOTHING`. Percent-encoding, as in a fragment, is undone."""
    for part in pointer.split("/")[1:]:
        key = unescaped(unquote(part))
        if isinstance(value, dict):
            value = cast("JsonObject", value).get(key, NOTHING)
        elif (
            isinstance(value, list) and key.isdecimal() and key.isascii() and int(key) < len(cast("list[Json]", value))
        ):
            value = cast("list[Json]", value)[int(key)]
        else:
            return NOTHING
    return value


def normal(pointer: str) -> str:
    """A pointer of a fragment as a place: without percent-encoding."""
    return unquote(pointer)


def last(pointer: str) -> str:
    """The name at the end of a pointer."""
    return unescaped(unquote(pointer.rpartition("/")[2]))

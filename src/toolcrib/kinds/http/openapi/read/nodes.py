"""A value of an untrusted document with its position, so that losses can be reported by place.

Also JSON pointers (RFC 6901).
"""

from collections.abc import Iterator
from typing import Final, NamedTuple, cast
from urllib.parse import unquote

from toolcrib.contracts import Json, JsonObject, escape_name, unescape_name


class Nothing:
    """The value at a pointer without a target. Null cannot be used, because it is a JSON value."""


NOTHING = Nothing()


def child(place: str, key: str | int | None) -> str:
    """The place of a member or an entry."""
    return f"{place}/{escape_name(str(key))}"


def find(value: Json, pointer: str) -> "Json | Nothing":
    """The value behind a pointer, or `NOTHING`. Percent-encoding, as in a fragment, is undone."""
    for part in pointer.split("/")[1:]:
        key = unescape_name(unquote(part))
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
    return unescape_name(unquote(pointer.rpartition("/")[2]))


_TRUE: Final = frozenset({"true", "yes"})


class Node(NamedTuple):
    """A JSON value and its place. Members are nodes again; what is missing or of another type is empty."""

    value: Json
    place: str
    """JSON pointer, after the URI for documents other than the main one."""
    base: str
    """URI that relative references in it are resolved against; empty for the main document."""

    def get(self, key: str) -> "Node":
        """A member of an object; null if there is none."""
        return Node(self.object.get(key), child(self.place, key), self.base)

    def has(self, key: str) -> bool:
        """Whether the value is an object with this member."""
        return key in self.object

    @property
    def object(self) -> JsonObject:
        """The value if it is an object."""
        value: Json = self.value
        return cast("JsonObject", value) if isinstance(value, dict) else {}

    @property
    def list(self) -> "list[Json]":
        """The value if it is an array."""
        value: Json = self.value
        return cast("list[Json]", value) if isinstance(value, list) else []

    def members(self) -> Iterator[tuple[str, "Node"]]:
        """The members of an object, in order."""
        for key, value in self.object.items():
            yield key, Node(value, child(self.place, key), self.base)

    def entries(self) -> Iterator["Node"]:
        """The entries of an array, in order."""
        for index, value in enumerate(self.list):
            yield Node(value, f"{self.place}/{index}", self.base)

    def text(self, key: str) -> str:
        """A member that is text."""
        found = self.object.get(key)
        return found if isinstance(found, str) else ""

    def flag(self, key: str, *, default: bool = False) -> bool:
        """A member that is true or false, also where it is written as text."""
        found = self.object.get(key)
        if isinstance(found, str):
            return found.strip().lower() in _TRUE
        return found if isinstance(found, bool) else default

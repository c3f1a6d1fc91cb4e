"""A value of an untrusted document together with where it stands: everything that is read can be reported by place."""

from collections.abc import Iterator
from typing import Final, NamedTuple, cast

from toolcrib.contracts import Json, JsonObject
from toolcrib.kinds.http.openapi.read.pointers import child

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

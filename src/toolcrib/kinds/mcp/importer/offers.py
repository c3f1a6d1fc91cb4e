"""What an MCP server offers: the entries of its lists, each with a fingerprint.

All of it is unverified. An annotation that a tool only reads is stored as a claim of the server, and the fingerprint
detects later changes (trust on first use, the defence against a "rug pull").
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, cast

from toolcrib.contracts import InvalidInput, Json, JsonObject, content_hash
from toolcrib.kinds.mcp.shape import McpCapability

NAMED_BY: Final[Mapping[str, str]] = {
    "tools": "name",
    "prompts": "name",
    "resources": "uri",
    "resourceTemplates": "uriTemplate",
}
"""The lists of a server (specification 2025-11-25 and 2026-07-28), each with the field that names its entries."""

_CAPABILITIES: Final[Mapping[str, McpCapability]] = {
    "tools": "tool",
    "prompts": "prompt",
    "resources": "resource",
    "resourceTemplates": "resource",
}
_NOT_SAID_OF_IT: Final = frozenset({"_meta", "icons"})
"""Left out of the fingerprint: what concerns a display or a transport, and may differ from one list to the next."""


@dataclass(frozen=True, slots=True)
class ServerOffer:
    """One tool, resource, template of resources, or prompt of a server."""

    list_name: str
    """Of `NAMED_BY`."""
    name: str
    """By which the server knows it."""
    document: JsonObject
    """The entry as it was received."""
    place: str
    """JSON pointer into the lists."""
    fingerprint: Mapping[str, str]
    """Hash of each field but those of `_NOT_SAID_OF_IT`."""

    @property
    def capability(self) -> McpCapability:
        """What it is called as."""
        return _CAPABILITIES[self.list_name]

    @property
    def key(self) -> tuple[McpCapability, str]:
        """What a server may offer once."""
        return self.capability, self.name

    def text(self, field: str) -> str:
        """A field that is a text; empty for anything else."""
        found = self.document.get(field)
        return found if isinstance(found, str) else ""


@dataclass(frozen=True, slots=True)
class Unusable:
    """An entry of a list that cannot be offered."""

    name: str
    place: str
    why: str


@dataclass(frozen=True, slots=True)
class ServerListing:
    """All that a server offers at a moment."""

    offers: tuple[ServerOffer, ...]
    """Each `key` once."""
    unusable: tuple[Unusable, ...] = ()
    server: JsonObject | None = None
    """`name` and `version` as the server gives them; they identify nothing."""
    is_cut_off: bool = False
    """Whether a list has further pages that could not be read; one of `unusable` says which and why."""

    def find(self, capability: McpCapability, name: str) -> ServerOffer | None:
        """The offer of this name."""
        return next((offer for offer in self.offers if offer.key == (capability, name)), None)


def read_listing(lists: Mapping[str, Iterable[Json]], server: JsonObject | None = None) -> ServerListing:
    """A listing of a server's lists.

    An entry that is named twice is not offered at all: which of the two a call would reach, only the server knows.

    Args:
        lists: Entries by the names of `NAMED_BY`.
        server: What the server says of itself.
    """
    read = [entry for name, entries in lists.items() for entry in _read(name, entries)]
    times = Counter(entry.key for entry in read if isinstance(entry, ServerOffer))
    offers = [entry for entry in read if isinstance(entry, ServerOffer) and times[entry.key] == 1]
    unusable = [entry for entry in read if isinstance(entry, Unusable)]
    unusable += [
        Unusable(entry.name, entry.place, f"the server lists {times[entry.key]} of this name")
        for entry in read
        if isinstance(entry, ServerOffer) and times[entry.key] > 1
    ]
    return ServerListing(tuple(offers), tuple(unusable), server)


def differences(trusted: Mapping[str, str], offer: ServerOffer) -> list[str]:
    """The fields in which an offer is not what was trusted, by name."""
    fields = trusted.keys() | offer.fingerprint.keys()
    return sorted(name for name in fields if trusted.get(name) != offer.fingerprint.get(name))


def _read(list_name: str, entries: Iterable[Json]) -> Iterator[ServerOffer | Unusable]:
    for index, entry in enumerate(entries):
        place = f"/{list_name}/{index}"
        document = cast("JsonObject", entry) if isinstance(entry, dict) else JsonObject()
        name = document.get(NAMED_BY[list_name])
        if not isinstance(name, str) or not name:
            yield Unusable("", place, f"it has no {NAMED_BY[list_name]}")
            continue
        try:
            fingerprint = {
                field: content_hash(value) for field, value in document.items() if field not in _NOT_SAID_OF_IT
            }
        except InvalidInput as problem:
            yield Unusable(name, place, f"it is no plain JSON: {problem}")
            continue
        yield ServerOffer(list_name, name, document, place, fingerprint)

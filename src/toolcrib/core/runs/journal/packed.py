"""The events of a run in the memory of the process that drives it: the last ones as they are, older ones packed.

A run of ten thousand calls has twenty thousand events, which as objects take 8 kB for each call. What is far back is
hardly ever read before the run has ended, so it is kept as compressed JSON, about 0.2 kB for each event, and is read
anew when somebody asks for it. It is no cache of the store: it holds what may not be durable yet.
"""

import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, overload

from pydantic import TypeAdapter

from toolcrib.contracts import RunEvent
from toolcrib.infrastructure.store import Entry

PACK: Final = 256
"""Events that are packed together."""
KEPT: Final = 1_024
"""Events at the end that are kept as they are, at least."""

_SHOWN: Final[TypeAdapter[list[RunEvent]]] = TypeAdapter(list[RunEvent])


class PackedEntries(Sequence[Entry]):
    """A list to which events are added at its end.

    Args:
        entries: What it begins with.
    """

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self._packs: list[bytes] = []
        self._recent: list[Entry] = []
        for entry in entries:
            self.append(entry)

    def append(self, entry: Entry) -> None:
        """Add the next event."""
        self._recent.append(entry)
        if len(self._recent) == KEPT + PACK:
            self._packs.append(_packed(self._recent[:PACK]))
            del self._recent[:PACK]

    def __len__(self) -> int:
        return len(self._packs) * PACK + len(self._recent)

    def __iter__(self) -> Iterator[Entry]:
        for pack in self._packs:
            yield from _unpacked(pack)
        yield from self._recent

    @overload
    def __getitem__(self, place: int) -> Entry: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Entry]: ...
    def __getitem__(self, place: int | slice) -> Entry | Sequence[Entry]:
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(len(self)))]
        if place < 0:
            place += len(self)
        pack, within = divmod(place, PACK)
        if 0 <= pack < len(self._packs):
            return _unpacked(self._packs[pack])[within]
        if not 0 <= place < len(self):
            raise IndexError(place)
        return self._recent[place - len(self._packs) * PACK]


def _packed(entries: Sequence[Entry]) -> bytes:
    return zlib.compress(_SHOWN.dump_json([entry.shown() for entry in entries]), level=1)


def _unpacked(pack: bytes) -> Sequence[Entry]:
    return [Entry.of(shown) for shown in _SHOWN.validate_json(zlib.decompress(pack))]

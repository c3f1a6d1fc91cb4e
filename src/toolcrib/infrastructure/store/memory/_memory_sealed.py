"""Sealed values in memory."""

from collections.abc import Sequence
from dataclasses import replace

from toolcrib.infrastructure.store.ports.sealed import Place, SealedValue, require_next


class MemorySealedValues:
    """Sealed values, in a dictionary."""

    def __init__(self) -> None:
        self._values: dict[Place, SealedValue] = {}

    async def put(self, value: SealedValue) -> None:
        known = self._values.get(value.place)
        require_next(value, known.version if known else 0)
        self._values[value.place] = value

    async def get(self, place: Place) -> SealedValue | None:
        return self._values.get(place)

    async def list(self, realm: str | None) -> Sequence[SealedValue]:
        return [self._values[place] for place in sorted(self._values) if realm in {None, place.realm}]

    async def reseal(self, old: SealedValue, sealed: str) -> bool:
        if self._values.get(old.place) != old:
            return False
        self._values[old.place] = replace(old, sealed=sealed)
        return True

    async def remove(self, place: Place) -> bool:
        return self._values.pop(place, None) is not None

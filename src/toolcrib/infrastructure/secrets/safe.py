"""Values in the store that only the master keys open, each at its place, with its version.

It keeps what the vault and the connections give it, and knows neither scopes nor tokens.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from toolcrib.contracts import InvalidSettings, Unavailable
from toolcrib.infrastructure.secrets.sealing import MasterKeys, no_master_keys
from toolcrib.infrastructure.store import Place, SealedValue, SealedValues


class Opened(NamedTuple):
    """A value and its version."""

    value: str
    version: int


class Safe:
    """Seals what goes into the store and opens what comes out.

    Args:
        values: Where sealed values are kept.
        keys: The master keys; null if the operator has given none: then nothing can be put in or taken out.
    """

    def __init__(self, values: SealedValues, keys: MasterKeys | None) -> None:
        self._values = values
        self._keys = keys

    async def put(self, place: Place, value: str, *, after: int, made_by: str, at: datetime) -> int:
        """Keep a value in the place of the version that was read; 0 for a new one. Returns its version.

        Raises:
            Conflict: Another version is there by now.
            InvalidSettings: There are no master keys.
        """
        version = after + 1
        sealed = self._require().seal(value, place, version)
        await self._values.put(SealedValue(place, version, sealed, made_by, at))
        return version

    async def take(self, place: Place) -> Opened | None:
        """The value at a place.

        Raises:
            InvalidSettings: It cannot be opened.
        """
        found = await self._values.get(place)
        if found is None:
            return None
        return Opened(self._require().open(found.sealed, place, found.version), found.version)

    def stamp(self, text: str, place: Place) -> str:
        """A text sealed for a place, kept by somebody else. Raises as `put`."""
        return self._require().seal(text, place, 1)

    def read_stamp(self, sealed: str, place: Place) -> str | None:
        """The text that was stamped for a place; null if it was not."""
        try:
            return self._require().open(sealed, place, 1)
        except InvalidSettings:
            return None

    async def look(self, place: Place) -> SealedValue | None:
        """What is at a place, unopened."""
        return await self._values.get(place)

    async def list(self, realm: str | None) -> Sequence[SealedValue]:
        """What is kept for a realm, unopened; for every realm if null."""
        return await self._values.list(realm)

    async def remove(self, place: Place) -> bool:
        """Remove a value; of those who do so at the same time, one gets true."""
        return await self._values.remove(place)

    async def rotate(self) -> int:
        """Seal all values of all realms under the newest master key; returns how many were under an older one.

        Raises:
            Unavailable: A value kept changing while it was sealed anew.
        """
        keys, count = self._require(), 0
        for found in await self._values.list(None):
            sealed = keys.reseal(found.sealed, found.place, found.version)
            if sealed is None:
                continue
            if not await self._values.reseal(found, sealed) and await self._is_old(found.place):
                raise Unavailable(f"{found.place.name!r} changed while it was sealed anew; rotate again")
            count += 1
        return count

    async def _is_old(self, place: Place) -> bool:
        found = await self._values.get(place)
        return found is not None and self._require().reseal(found.sealed, place, found.version) is not None

    def _require(self) -> MasterKeys:
        if self._keys is None:
            raise no_master_keys()
        return self._keys

"""Rows whose values only the holder of the master keys can read: secrets, and the tokens of connections.

The store sees places, versions and sealed text. It opens nothing and knows no key.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple, Protocol

from toolcrib.contracts import Conflict


class Place(NamedTuple):
    """Where a sealed value is kept."""

    realm: str
    """Empty for what belongs to all realms."""
    scope: str
    """What kind of thing it is, and whose: `realm`, `user:ann`, `connection:ann`."""
    name: str


@dataclass(frozen=True, slots=True)
class SealedValue:
    """One version of a sealed value."""

    place: Place
    version: int
    """1, 2, 3…; each change is a new one, which takes the place of the old one."""
    sealed: str = field(repr=False)
    made_by: str
    created_at: datetime


class SealedValues(Protocol):
    """Sealed values by place."""

    async def put(self, value: SealedValue) -> None:
        """Store a version.

        Raises:
            Conflict: The version before it is not the one that is stored: somebody else has changed the value.
        """
        ...

    async def get(self, place: Place) -> SealedValue | None:
        """The value at a place."""
        ...

    async def list(self, realm: str | None) -> Sequence[SealedValue]:
        """All values of a realm, of every realm for null; by place."""
        ...

    async def reseal(self, old: SealedValue, sealed: str) -> bool:
        """Write the same version under another key; false if it has changed since it was read."""
        ...

    async def remove(self, place: Place) -> bool:
        """Remove a value. Of those who remove it at the same time, one gets true."""
        ...


def require_next(value: SealedValue, stored: int) -> None:
    """Refuse a version that does not follow the stored one; 0 stands for none.

    Raises:
        Conflict: Names both.
    """
    if value.version != stored + 1:
        msg = (
            f"{value.place.name!r} of {value.place.scope} has version {stored} and this would be version "
            f"{value.version}: it has changed since it was read; read it again and repeat the change"
        )
        raise Conflict(msg)

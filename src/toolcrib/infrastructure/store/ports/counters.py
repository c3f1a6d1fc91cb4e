"""Counters that several processes count on together, up to a limit: reserved before, settled after.

A counter is a number under a key, which is forgotten some time after it is of no use. What is reserved under a ticket
counts like what was spent, until it is settled or its time is over: so what a process that died had reserved is free
again. What is counted, in which unit and under which key, is the caller's.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from msgspec import Struct


class Charge(Struct, frozen=True):
    """An amount for one counter."""

    realm: str
    made_by: str
    key: str
    amount: int
    limit: int
    """The most that the counter may come to by a reservation."""
    expires_at: datetime
    """When the counter may be forgotten."""


class Reserved(Struct, frozen=True):
    """What became of a reservation."""

    used: tuple[int, ...]
    """What each counter had come to before, other reservations included."""
    refused: int | None = None
    """The first charge that did not fit, as an index; null if all did, and only then was anything reserved."""


class Counters(Protocol):
    """Counters by key."""

    async def reserve(self, ticket: str, charges: Sequence[Charge], *, now: datetime, until: datetime) -> Reserved:
        """Set amounts aside, all of them or none.

        Args:
            ticket: Names the reservation; one that has the same name is replaced.
            charges: For which counters; no key is there twice.
            now: The present.
            until: When the reservation is over if nobody settles it.

        Raises:
            Unavailable: The counters cannot be reached; perhaps it was reserved.
        """
        ...

    async def settle(self, ticket: str, charges: Sequence[Charge]) -> None:
        """Count amounts in the place of a reservation, whether or not its time is over. No limit is asked.

        Raises:
            Unavailable: The counters cannot be reached.
        """
        ...

    async def purge(self, *, now: datetime) -> int:
        """Forget what has expired; returns how many entries that were."""
        ...

"""Counters in memory."""

from collections.abc import Sequence
from datetime import datetime

from toolcrib.infrastructure.store.ports.counters import Charge, Reserved

_SETTLED = ""
"""The ticket of what was spent."""


class MemoryCounters:
    """Counters, in a dictionary."""

    def __init__(self) -> None:
        self._entries: dict[str, dict[str, tuple[int, datetime]]] = {}
        """Amount and end of each ticket, by key."""

    async def reserve(self, ticket: str, charges: Sequence[Charge], *, now: datetime, until: datetime) -> Reserved:
        used = tuple(self._used(charge.key, ticket, now) for charge in charges)
        pairs = enumerate(zip(used, charges, strict=True))
        refused = next((index for index, (before, each) in pairs if before + each.amount > each.limit), None)
        if refused is None:
            for charge in charges:
                self._entries.setdefault(charge.key, {})[ticket] = charge.amount, until
        return Reserved(used, refused)

    async def settle(self, ticket: str, charges: Sequence[Charge]) -> None:
        for charge in charges:
            entries = self._entries.setdefault(charge.key, {})
            entries.pop(ticket, None)
            before, _ = entries.get(_SETTLED, (0, None))
            entries[_SETTLED] = before + charge.amount, charge.expires_at

    async def purge(self, *, now: datetime) -> int:
        old = [
            (key, ticket)
            for key, entries in self._entries.items()
            for ticket, (_, ends) in entries.items()
            if ends <= now
        ]
        for key, ticket in old:
            del self._entries[key][ticket]
        self._entries = {key: entries for key, entries in self._entries.items() if entries}
        return len(old)

    def _used(self, key: str, ticket: str, now: datetime) -> int:
        entries = self._entries.get(key, {}).items()
        return sum(amount for name, (amount, ends) in entries if name != ticket and ends > now)

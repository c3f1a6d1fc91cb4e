"""What a transport knows of a failure and the protocol above it cannot say, kept until the request that met it asks.

The SDK turns whatever a transport meets into an error of the protocol. Ours carries a ticket, which nobody but this
process can write, and behind the ticket is what really happened.
"""

import secrets
from dataclasses import dataclass, field
from typing import Final, cast

from toolcrib.contracts import Json, JsonObject
from toolcrib.core.executor import CallFailed

_TICKET: Final = "toolcrib_ticket"
_MOST_KEPT: Final = 1_000


@dataclass(slots=True)
class Troubles:
    """Of one connection."""

    last: CallFailed | None = None
    """What ended the connection, if it has ended."""
    said: str = ""
    """The end of what a program wrote to its standard error, without its secrets."""
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """Of the credentials that were sent last; they must not be shown."""
    _kept: dict[str, CallFailed] = field(default_factory=dict[str, CallFailed])

    def keep(self, failure: CallFailed) -> JsonObject:
        """The data of an error of the protocol that stands for a failure."""
        self.last = failure
        if len(self._kept) >= _MOST_KEPT:
            del self._kept[next(iter(self._kept))]
        ticket = secrets.token_hex(16)
        self._kept[ticket] = failure
        return {_TICKET: ticket}

    def behind(self, data: Json) -> CallFailed | None:
        """The failure that an error's data stands for; null if they stand for none."""
        if not isinstance(data, dict):
            return None
        ticket = cast("JsonObject", data).get(_TICKET)
        return self._kept.pop(ticket, None) if isinstance(ticket, str) else None

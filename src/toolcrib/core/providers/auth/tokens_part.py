"""Tokens of this process: fetched once for all calls that need them, kept in memory, never stored or shown.

Each token is fetched once, however many calls wait for it, and used until shortly before it expires. What a token is
asked for with is a `TokenSource`: an OAuth 2 grant, or a login of the system's own.
"""

import asyncio
from dataclasses import dataclass, field
from typing import Final, Protocol

from toolcrib.core.executor import CallFailed, Clock
from toolcrib.core.providers.auth.tokens import Endpoints, Issued
from toolcrib.infrastructure.net import HttpSession

LEEWAY_S: Final = 30.0
"""Seconds before its expiry from which on a token is not used any more; a tenth of a shorter life."""

_MAX_KEPT: Final = 1_000


def usable_s(life_s: float) -> float:
    """Seconds that a token is used which lives so long."""
    return life_s - min(LEEWAY_S, life_s / 10)


class TokenSource(Protocol):
    """What a token is asked for with."""

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not be shown."""
        ...

    def key(self) -> str:
        """Equal for sources that get the same token; holds no secret."""
        ...

    async def fetch(self, endpoints: Endpoints, refresh_token: str | None) -> Issued:
        """A new token.

        Args:
            endpoints: The way out.
            refresh_token: The latest one that this source was given; null if it was given none.

        Raises:
            CallFailed: There is none.
        """
        ...


@dataclass(slots=True)
class _Kept:
    """What is known of one source."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    token: str | None = field(default=None, repr=False)
    until: float = 0.0
    refresh_token: str | None = field(default=None, repr=False)
    """The latest one that the endpoint gave."""


class Tokens:
    """Tokens by source.

    Args:
        session: The way out.
        clock: Time.
    """

    def __init__(self, session: HttpSession, clock: Clock) -> None:
        self.endpoints: Final = Endpoints(session)
        self._clock = clock
        self._kept: dict[str, _Kept] = {}

    async def token(self, source: TokenSource) -> str:
        """A token that is valid now; fetched if there is none.

        Raises:
            CallFailed: `AUTH_REQUIRED` if the endpoint refuses; `POLICY_DENIED`, `NETWORK_ERROR`, `TIMEOUT`,
                `RATE_LIMIT` or `PROVIDER_ERROR` if it cannot be asked or does not answer as it should.
        """
        kept = self._kept.get(key := source.key())
        if kept is None:
            if len(self._kept) >= _MAX_KEPT:
                del self._kept[next(iter(self._kept))]  # the oldest; all of them would be a rush at the endpoints
            kept = self._kept[key] = _Kept()
        async with kept.lock:
            if kept.token is None or self._clock.monotonic() >= kept.until:
                try:
                    issued = await source.fetch(self.endpoints, kept.refresh_token)
                except CallFailed as failure:
                    failure.secrets += source.secrets
                    raise
                kept.token, kept.until = issued.token, self._clock.monotonic() + usable_s(issued.life_s)
                kept.refresh_token = issued.refresh_token or kept.refresh_token
            return kept.token

    def forget(self, tokens: tuple[str, ...]) -> bool:
        """Do not use these tokens again; returns whether there is anything to ask for anew."""
        for kept in self._kept.values():
            if kept.token in tokens:
                kept.token = None
        return bool(tokens)

"""Cached results in Redis, for all processes. A result that is not there, or cannot be read, is called again.

Only what the executor may call again is here. What reference lists keep under their keys is no cache: their history is
in the store.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final, cast

from pydantic_core import from_json, to_json

from toolcrib.contracts import JsonObject
from toolcrib.infrastructure.redis import PREFIX, RedisServer

_LONGEST: Final = timedelta(days=30)
"""How long what may be kept for ever is kept: every key has an end, so that what nobody asks for goes away."""


class RedisResults:
    """The executor's `Results`, in Redis.

    Args:
        server: Where.
        now: The current moment, from which a result's life is measured; its end comes by the server's clock.
    """

    def __init__(self, server: RedisServer, now: Callable[[], datetime]) -> None:
        self._server = server
        self._now = now

    async def get(self, key: str, *, now: datetime) -> JsonObject | None:
        """The stored envelope as JSON, unless it has expired.

        Raises:
            Unavailable: Redis does not answer.
        """
        del now
        stored = await self._server.ask("GET", _name(key))
        try:
            value = None if stored is None else from_json(stored)
        except ValueError:
            return None
        return cast("JsonObject", value) if isinstance(value, dict) else None

    async def put(self, key: str, value: JsonObject, *, realm: str, made_by: str, expires_at: datetime | None) -> None:
        """Store an envelope as JSON; 30 days for null expiry.

        Raises:
            Unavailable: Redis does not answer, or has no room.
        """
        del realm, made_by
        life = _LONGEST if expires_at is None else min(expires_at - self._now(), _LONGEST)
        if life > timedelta():
            await self._server.ask("SET", _name(key), to_json(value), "PX", max(life // timedelta(milliseconds=1), 1))


def _name(key: str) -> str:
    return f"{PREFIX}:result:{key}"

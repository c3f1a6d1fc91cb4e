"""Rate limits that all processes keep together: exact sliding windows in Redis, on its clock.

A tool's executions are a sorted set of moments, never more of them than its limit. While Redis is away, every process
keeps the limits by itself, so that together they may run a tool as many times more often as there are processes.
"""

import secrets
from typing import Final, Protocol

from toolcrib.contracts import RateLimit, Unavailable
from toolcrib.infrastructure.redis import PREFIX, RedisServer, Script

_TAKE: Final = Script.of("""
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local window, limit = tonumber(ARGV[1]), tonumber(ARGV[2])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - window)
local taken = redis.call('ZCARD', KEYS[1])
if taken >= limit then
    local blocking = redis.call('ZRANGE', KEYS[1], taken - limit, taken - limit, 'WITHSCORES')
    return math.max(blocking[2] + window - now, 1)
end
redis.call('ZADD', KEYS[1], string.format('%.0f', now), ARGV[3])
redis.call('PEXPIRE', KEYS[1], math.ceil(window / 1000))
return 0
""")
"""Takes one execution and returns 0, or the microseconds until one is possible. The moment that blocks is the one after
whose end fewer than the limit are left, which is not the oldest if the limit was lowered."""

_MICROS: Final = 1_000_000


class LocalRates(Protocol):
    """Rate limits of one process: the executor's `Rates`."""

    async def take(self, key: str, limit: RateLimit, *, now: float) -> float | None:
        """Count one execution at monotonic time `now`, or say in how many seconds one will be possible."""
        ...


class RedisRates:
    """The executor's `Rates`, in Redis.

    Args:
        server: Where.
        alone: Counts while the server is away.
    """

    def __init__(self, server: RedisServer, alone: LocalRates) -> None:
        self._server = server
        self._alone = alone

    async def take(self, key: str, limit: RateLimit, *, now: float) -> float | None:
        """Count one execution, or say in how many seconds one will be possible."""
        arguments = (round(limit.per_s * _MICROS), limit.count, secrets.token_bytes(12))
        try:
            wait = await self._server.run(_TAKE, (f"{PREFIX}:rate:{key}",), arguments)
        except Unavailable:
            return await self._alone.take(key, limit, now=now)
        return wait / _MICROS if wait else None

"""Counters that processes share in Redis, on its clock.

A counter is a hash: what was settled, and each reservation with its end. Redis tries the whole reservation in one step.
What it loses is spent no more: keep it on disk (`appendonly yes`) where that matters.
"""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Final

from toolcrib.infrastructure.redis import PREFIX, RedisServer, Script, Word
from toolcrib.infrastructure.store import Charge, Reserved

_RESERVE: Final = Script.of("""
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local mine, life = 'r:' .. ARGV[1], tonumber(ARGV[2])
local used, refused = {}, 0
for index, key in ipairs(KEYS) do
    local total, fields = 0, redis.call('HGETALL', key)
    for at = 1, #fields, 2 do
        local name, value = fields[at], fields[at + 1]
        if name == 'settled' then
            total = total + tonumber(value)
        elseif name ~= mine then
            local amount, ends = string.match(value, '^(%d+):(%d+)$')
            if tonumber(ends) > now then
                total = total + tonumber(amount)
            else
                redis.call('HDEL', key, name)
            end
        end
    end
    used[index] = total
    if refused == 0 and total + tonumber(ARGV[3 * index]) > tonumber(ARGV[3 * index + 1]) then
        refused = index
    end
end
if refused == 0 then
    for index, key in ipairs(KEYS) do
        redis.call('HSET', key, mine, string.format('%s:%.0f', ARGV[3 * index], now + life))
        redis.call('PEXPIRE', key, ARGV[3 * index + 2])
    end
end
used[#used + 1] = refused
return used
""")
"""Gets the ticket, the life of the reservation, and of each counter the amount, the limit and its life; returns
what each has come to, and the first that refuses, counted from 1, or 0."""

_SETTLE: Final = Script.of("""
for index, key in ipairs(KEYS) do
    redis.call('HDEL', key, 'r:' .. ARGV[1])
    redis.call('HINCRBY', key, 'settled', ARGV[2 * index])
    redis.call('PEXPIRE', key, ARGV[2 * index + 1])
end
""")

_MILLISECOND: Final = timedelta(milliseconds=1)


class RedisCounters:
    """The store's `Counters`, in Redis.

    Args:
        server: Where.
        now: The current moment, from which lives are measured.
    """

    def __init__(self, server: RedisServer, now: Callable[[], datetime]) -> None:
        self._server = server
        self._now = now

    async def reserve(self, ticket: str, charges: Sequence[Charge], *, now: datetime, until: datetime) -> Reserved:
        """Set amounts aside, all of them or none.

        Raises:
            Unavailable: Redis does not answer; perhaps it was reserved.
        """
        arguments: list[Word] = [ticket, _milliseconds(until - now)]
        for charge in charges:
            arguments += [charge.amount, charge.limit, self._life(charge)]
        *used, refused = await self._server.run(_RESERVE, _keys(charges), arguments)
        return Reserved(tuple(used), refused - 1 if refused else None)

    async def settle(self, ticket: str, charges: Sequence[Charge]) -> None:
        """Count amounts in the place of a reservation; twice if the connection was lost when Redis had done it.

        Raises:
            Unavailable: Redis does not answer.
        """
        arguments: list[Word] = [ticket]
        for charge in charges:
            arguments += [charge.amount, self._life(charge)]
        await self._server.run(_SETTLE, _keys(charges), arguments)

    async def purge(self, *, now: datetime) -> int:
        """Nothing: keys end by themselves."""
        del now
        return 0

    def _life(self, charge: Charge) -> int:
        return max(_milliseconds(charge.expires_at - self._now()), 1)


def _keys(charges: Sequence[Charge]) -> list[str]:
    return [f"{PREFIX}:counter:{charge.key}" for charge in charges]


def _milliseconds(span: timedelta) -> int:
    return span // _MILLISECOND

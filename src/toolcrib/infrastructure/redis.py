"""Shared state in Redis: cached results, exact rate limits, and counters of spending caps.

One server, or a compatible service, by URL; not a Redis cluster. After a failure, the server is skipped for a second.
Losing the server is logged once, and so is its return. Errors and logs contain no command data and no credentials of
the URL. Redis never has the only copy of data that must not be lost: a missing result is computed again, and rate
limits fall back to each process. Lost counters are forgotten; enable persistence (`appendonly yes`) if that matters.
The client loads on first use.
"""

import hashlib
import importlib.util
import logging
import secrets
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, cast
from urllib.parse import parse_qsl, urlsplit

from msgspec import Struct
from pydantic_core import from_json, to_json

from toolcrib.contracts import SCHEMA_VERSION, InvalidSettings, JsonObject, RateLimit, Unavailable
from toolcrib.contracts.base.errors import missing_extra
from toolcrib.infrastructure.store import Charge, Reserved

__all__ = [
    "RedisCounters",
    "RedisRates",
    "RedisResults",
    "RedisServer",
]


if TYPE_CHECKING:
    from redis.asyncio import Redis

Word: TypeAlias = str | bytes | int

PREFIX: Final = f"toolcrib:{SCHEMA_VERSION}"
"""What all keys begin with: what another release writes in another way is not read."""

_PARAMETERS: Final = frozenset({"ssl_ca_certs", "ssl_certfile", "ssl_keyfile"})
_MOST_CONNECTIONS: Final = 32
_PATIENCE_S: Final = 1.0
"""Seconds for a connection, for an answer, and until a server that failed is tried again."""
_logger = logging.getLogger(__name__)


class Script(Struct, frozen=True):
    """A program in Lua that Redis runs in one step."""

    text: str
    sha: str

    @classmethod
    def of(cls, text: str) -> "Script":
        """The script with the name that Redis gives it."""
        return cls(text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())


class RedisServer:
    """A server that is connected when it is first needed.

    Args:
        url: `redis://user:password@host:6379/0`, or `rediss://…` with TLS; certificates are named by `ssl_ca_certs`,
            `ssl_certfile` and `ssl_keyfile`.
        monotonic: Seconds of a clock that never goes back.

    Raises:
        InvalidSettings: The URL cannot be used, or the client is not installed.
    """

    def __init__(self, url: str, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.address = _address(url)
        """Host, port and database, to name the server by."""
        self._url = url
        self._monotonic = monotonic
        self._client: Redis | None = None
        self._tried_again_at: float | None = None
        """When the server is tried again; null while it answers."""

    async def ask(self, *command: Word) -> Any:
        """Send a command, and wait for its answer.

        Raises:
            Unavailable: The server does not answer, or refuses.
        """
        from redis.exceptions import NoScriptError, RedisError  # noqa: PLC0415 - part of an extra

        if self._tried_again_at is not None:
            if self._monotonic() < self._tried_again_at:
                raise self._unavailable("has failed a moment ago")
            self._tried_again_at = self._monotonic() + _PATIENCE_S  # one asks, and the others do not wait for it
        try:
            answer = await cast("Any", self._ensure_client()).execute_command(*command)
        except NoScriptError:
            raise
        except (RedisError, OSError) as error:
            raise self._note_failure(error) from None
        if self._tried_again_at is not None:
            self._tried_again_at = None
            _logger.warning("Redis at %s answers again", self.address)
        return answer

    async def run(self, script: Script, keys: Sequence[str], arguments: Sequence[Word]) -> Any:
        """Run a script, which is sent when the server does not have it yet.

        Raises:
            Unavailable: The server does not answer, or refuses.
        """
        from redis.exceptions import NoScriptError  # noqa: PLC0415 - part of an extra

        try:
            return await self.ask("EVALSHA", script.sha, len(keys), *keys, *arguments)
        except NoScriptError:
            return await self.ask("EVAL", script.text, len(keys), *keys, *arguments)

    async def close(self) -> None:
        """Let go of all connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    def _ensure_client(self) -> "Redis":
        if self._client is None:
            from redis.asyncio import BlockingConnectionPool, Redis  # noqa: PLC0415 - part of an extra
            from redis.asyncio.retry import Retry  # noqa: PLC0415 - as above
            from redis.backoff import NoBackoff  # noqa: PLC0415 - as above

            pool = cast("Any", BlockingConnectionPool).from_url(
                self._url,
                max_connections=_MOST_CONNECTIONS,
                timeout=_PATIENCE_S,
                socket_timeout=_PATIENCE_S,
                socket_connect_timeout=_PATIENCE_S,
                retry=Retry(NoBackoff(), 1),  # a connection that was idle for long may be gone, and the server not
            )
            self._client = Redis.from_pool(pool)
        return self._client

    def _note_failure(self, error: Exception) -> Unavailable:
        problem = self._unavailable(_kind(error))
        if self._tried_again_at is None:
            _logger.warning("%s; trying again in %g s, and from then on", problem, _PATIENCE_S)
        self._tried_again_at = self._monotonic() + _PATIENCE_S
        return problem

    def _unavailable(self, what: str) -> Unavailable:
        return Unavailable(f"Redis at {self.address} {what}; check that it runs, and the setting `redis`")


def _address(url: str) -> str:
    """Host, port and database of a URL.

    Raises:
        InvalidSettings: It cannot be used. The message does not repeat it.
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        raise InvalidSettings("the host in the URL of Redis is not an address") from None
    if parts.scheme not in {"redis", "rediss"} or not parts.hostname:
        raise InvalidSettings("the URL of Redis must be redis://host:port/database, or rediss:// with TLS")
    unknown = [name for name, _ in parse_qsl(parts.query, keep_blank_values=True) if name not in _PARAMETERS]
    if unknown:
        msg = f"the URL of Redis has the parameter {unknown[0]!r}; it may have {', '.join(sorted(_PARAMETERS))}"
        raise InvalidSettings(msg)
    database = parts.path.strip("/")
    try:
        port = parts.port or 6379
    except ValueError:
        raise InvalidSettings("the port in the URL of Redis is not a port") from None
    if database and not database.isdecimal():
        raise InvalidSettings("the database in the URL of Redis must be a number")
    if importlib.util.find_spec("redis") is None:
        raise InvalidSettings(missing_extra("a Redis server", "redis", "redis"))
    return f"{parts.hostname}:{port}/{database or 0}"


def _kind(error: Exception) -> str:
    """What happened. A refusal's first word is Redis' name for it; what follows may repeat a command."""
    from redis.exceptions import AuthenticationError, ResponseError  # noqa: PLC0415 - part of an extra

    if isinstance(error, AuthenticationError):
        return "refuses the user or the password"
    if isinstance(error, ResponseError):
        name = str(error).partition(" ")[0]
        return f"refuses: {name}" if name.isupper() else f"refuses ({type(error).__name__})"
    return f"does not answer ({type(error).__name__})"


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

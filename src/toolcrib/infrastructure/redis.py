"""One Redis server, by URL: commands and scripts, and what is said when it does not answer.

A server that has failed is left alone for a second, so that its absence costs its users nothing but its help; then the
next command tries it again. That it went away is logged once, and once that it is back. No error and no log line has
what a command carried or what the URL has before its host.

It is one server, or what looks like one; this is no client of a Redis cluster.
"""

import hashlib
import importlib.util
import logging
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast
from urllib.parse import parse_qsl, urlsplit

from msgspec import Struct

from toolcrib.contracts import SCHEMA_VERSION, InvalidSettings, Unavailable

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
            answer = await cast("Any", self._connected()).execute_command(*command)
        except NoScriptError:
            raise
        except (RedisError, OSError) as error:
            raise self._gone(error) from None
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

    def _connected(self) -> "Redis":
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

    def _gone(self, error: Exception) -> Unavailable:
        problem = self._unavailable(_kind(error))
        if self._tried_again_at is None:
            _logger.warning("%s; trying again in %g s, and from then on", problem, _PATIENCE_S)
        self._tried_again_at = self._monotonic() + _PATIENCE_S
        return problem

    def _unavailable(self, what: str) -> Unavailable:
        return Unavailable(f"Redis at {self.address} {what}; check that it runs and what the setting `redis` says")


def _address(url: str) -> str:
    """Host, port and database of a URL.

    Raises:
        InvalidSettings: It cannot be used. The message does not repeat it.
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        raise InvalidSettings("the host in the URL of Redis is no address") from None
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
        raise InvalidSettings("the port in the URL of Redis is no port") from None
    if database and not database.isdecimal():
        raise InvalidSettings("the database in the URL of Redis must be a number")
    if importlib.util.find_spec("redis") is None:
        raise InvalidSettings("the client of Redis is not installed; pip install 'toolcrib[redis]'")
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

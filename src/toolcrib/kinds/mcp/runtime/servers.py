"""The connections of a process to MCP servers: opened on demand, and shared by the calls of one principal.

Principals never share a connection. The key of a connection contains all that it was opened with, so a change of the
provider or of a program's variable opens a new one. The number is limited; the least recently used connection is
closed. After failed attempts to connect, further attempts wait with exponential backoff.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from toolcrib.contracts import (
    SECRET_REFERENCE,
    ErrorCode,
    InvalidDefinition,
    McpConnection,
    Principal,
    ProviderDefinition,
    Reason,
    content_hash,
)
from toolcrib.core.executor import CallFailed, Clock, error
from toolcrib.core.providers import ProviderAccess
from toolcrib.infrastructure.net import HttpSession
from toolcrib.kinds.mcp.importer import AllowedPrograms
from toolcrib.kinds.mcp.runtime.connection import Connection
from toolcrib.kinds.mcp.runtime.server_target import ServerTarget

IDLE_S: Final = 300.0
MOST: Final = 64
"""Connections at a time."""

_FIRST_WAIT_S: Final = 0.5
_LONGEST_WAIT_S: Final = 60.0
_INHERITED: Final = ("HOME", "LANG", "PATH", "TMPDIR")
"""Variables of ours that a program gets, which no provider can set unless the operator lets it."""
_REACHED_BY: Final = {
    "name",
    "connection",
    "base_url",
    "variables",
    "auth",
    "schemes",
    "security",
    "headers",
    "timeout_s",
}
"""Fields of a provider that a connection depends on."""
_FAILED: Final = frozenset({ErrorCode.NETWORK_ERROR, ErrorCode.TIMEOUT, ErrorCode.PROVIDER_ERROR})
"""Failures to connect after which the next attempt waits."""


@dataclass(slots=True)
class _Failures:
    """How often in a row a server could not be connected."""

    count: int = 0
    not_before: float = 0.0


class McpServers:
    """Finds or opens the connection for a call.

    Args:
        session: The way out.
        access: Credentials of providers.
        commands: Which programs may be started.
        environment: Variables of this process, of which a program gets a few.
        clock: Time.
        idle_s: Seconds after which an idle connection is closed.
        most: Connections at a time.
    """

    def __init__(
        self,
        session: HttpSession,
        access: ProviderAccess,
        *,
        commands: AllowedPrograms,
        environment: Mapping[str, str],
        clock: Clock,
        idle_s: float = IDLE_S,
        most: int = MOST,
    ) -> None:
        self._session = session
        self._access = access
        self.commands = commands
        """Which programs may be started."""
        self._environment = environment
        self._clock = clock
        self._idle_s = idle_s
        self._most = most
        self._connections: dict[str, Connection] = {}
        self._closing: list[Connection] = []
        self._failures: dict[str, _Failures] = {}

    @asynccontextmanager
    async def connection(
        self, realm: str, provider: ProviderDefinition, principal: Principal
    ) -> AsyncGenerator[Connection]:
        """The connection of a principal to a provider, which stays open as long as the context.

        Raises:
            CallFailed: The provider is no MCP server, may not be started, could not be connected a moment ago, or there
                are too many connections.
        """
        reach = await self._reach(provider, principal)
        reached_by = provider.model_dump(mode="json", include=set(_REACHED_BY))
        key = content_hash([realm, principal.id, reached_by, dict(reach.environment)])
        found = self._connections.get(key)
        if found is None or found.has_ended:
            self._check_wait(key, provider)
            self._make_room()
            found = self._connections[key] = Connection(reach, idle_s=self._idle_s)
        found.take()
        try:
            yield found
            self._failures.pop(key, None)
        except CallFailed as failure:
            if found.never_opened and failure.error.code in _FAILED:
                self._wait_longer(key)
            raise
        finally:
            found.give_back()

    async def close(self) -> None:
        """Close all connections, and wait until they are."""
        known = [*self._connections.values(), *self._closing]
        self._connections.clear()
        self._closing.clear()
        await asyncio.gather(*(connection.close() for connection in known))

    async def _reach(self, provider: ProviderDefinition, principal: Principal) -> ServerTarget:
        connection = provider.connection
        if not isinstance(connection, McpConnection):
            message = f"provider {provider.name!r} is reached as {connection.kind!r}, and is no MCP server"
            raise CallFailed(error(ErrorCode.PROVIDER_ERROR, Reason.NOT_FOUND, message), sent=False)
        try:
            self.commands.check(provider)
        except InvalidDefinition as problem:
            raise CallFailed(
                error(ErrorCode.POLICY_DENIED, Reason.TOOL_NOT_ALLOWED, str(problem)), sent=False
            ) from None
        given: dict[str, str] = {}
        secrets: list[str] = []
        for name, text in connection.environment.items():
            given[name] = text
            if SECRET_REFERENCE.fullmatch(text):
                given[name] = await self._secret(provider, text, principal)
                secrets.append(given[name])
        ours = {name: self._environment[name] for name in _INHERITED if name in self._environment}
        environment = {"PATH": os.defpath, **ours, **given} if connection.transport == "stdio" else {}
        return ServerTarget(
            provider,
            connection,
            principal,
            self._session,
            self._access,
            self._clock.now,
            environment=environment,
            secrets=tuple(secrets),
        )

    async def _secret(self, provider: ProviderDefinition, reference: str, principal: Principal) -> str:
        value = await self._access.secret(reference, principal)
        if value is None:
            message = (
                f"provider {provider.name!r} needs {reference}, which is not set or not released; "
                "set it, release variables by TOOLCRIB_RELEASED_ENV, call again"
            )
            raise CallFailed(error(ErrorCode.AUTH_REQUIRED, Reason.MISSING_SECRET, message))
        return value

    def _check_wait(self, key: str, provider: ProviderDefinition) -> None:
        failures = self._failures.get(key)
        wait = 0.0 if failures is None else failures.not_before - self._clock.monotonic()
        if failures is not None and wait > 0:
            message = (
                f"provider {provider.name!r}: its MCP server could not be connected {failures.count} times in a row; "
                f"the next attempt is in {wait:.1f} s"
            )
            found = error(ErrorCode.NETWORK_ERROR, Reason.TOOL_FAILED, message)
            raise CallFailed(found.model_copy(update={"retry_after_s": wait}), sent=False)

    def _wait_longer(self, key: str) -> None:
        failures = self._failures.setdefault(key, _Failures())
        wait = min(_FIRST_WAIT_S * 2**failures.count, _LONGEST_WAIT_S) if failures.count else 0.0
        failures.count += 1
        failures.not_before = self._clock.monotonic() + wait

    def _make_room(self) -> None:
        """Forget connections that have ended; if there are too many, close the one that was idle for the longest time.

        Raises:
            CallFailed: All of them are in use.
        """
        for key in [key for key, connection in self._connections.items() if connection.has_ended]:
            self._closing.append(self._connections.pop(key))
        self._closing = [connection for connection in self._closing if not connection.is_closed]
        if len(self._connections) < self._most:
            return
        idle = [key for key, connection in self._connections.items() if not connection.users]
        if not idle:
            message = f"all {self._most} connections to MCP servers are in use; call again in a moment"
            found = error(ErrorCode.RATE_LIMIT, Reason.RATE_LIMITED, message)
            raise CallFailed(found.model_copy(update={"retry_after_s": 1.0}), sent=False)
        longest = min(idle, key=lambda key: self._connections[key].used_at)
        self._connections[longest].leave()
        self._closing.append(self._connections.pop(longest))

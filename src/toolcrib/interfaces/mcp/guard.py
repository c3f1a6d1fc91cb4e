"""Policy, journal, approvals and budgets around one MCP server, for a client that uses it already.

A client starts this in place of the server. The server is imported into a store, and its tools, resources and prompts
are offered under the names that they have there. Each call is a call of the crib: a run in the journal, with the checks
of every call. What the server has changed since the last start is blocked until a person has accepted it, if it could
harm.

Example:
    from toolcrib.interfaces.mcp.guard import GuardedServer

    files = GuardedServer(name="files", command=("/usr/bin/mcp-files", "/data"), approve=("write_*",))
    print(files.program_line)
"""

import shlex
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, cast

from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from toolcrib.contracts import InvalidDefinition, McpOffer, ToolDefinition, ToolRevision
from toolcrib.core.providers import ImportedApi
from toolcrib.crib import Crib
from toolcrib.interfaces.mcp.server import McpServer
from toolcrib.kinds.mcp.shape import McpImplementation


@dataclass(frozen=True, slots=True)
class GuardedServer:
    """An MCP server, and what of it needs approval or is hidden; patterns are those of file names (`*`, `?`)."""

    name: str
    """Of the provider in the store."""
    command: tuple[str, ...] = ()
    """The program; or a URL instead."""
    url: str = ""
    variables: tuple[str, ...] = ()
    """Environment variables that the program gets."""
    approve: tuple[str, ...] = ()
    """Names of tools each call of which needs approval."""
    deny: tuple[str, ...] = ()
    """Names of tools that clients do not see."""
    accept: bool = False
    """Accept what the server has changed since it was guarded last, and another command or address."""

    @property
    def program_line(self) -> str:
        """The program as the operator's list of allowed programs has it."""
        return " ".join((*(f"{name}=" for name in self.variables), shlex.join(self.command)))

    def name_of(self, tool: ToolRevision) -> str | None:
        """The name under which a tool is offered; null if it is not of this server, or hidden."""
        implementation = tool.definition.implementation
        if not isinstance(implementation, McpImplementation) or implementation.provider != self.name:
            return None
        name = tool.name if implementation.capability == "resource" else implementation.name
        return None if _matches(name, self.deny) else name


@asynccontextmanager
async def guard(crib: Crib, guarded: GuardedServer) -> AsyncGenerator[tuple[Server[Any], ImportedApi]]:
    """Import the server, and have its offers served under the same names.

    Args:
        crib: Is opened, and closed at the end. Its operator must have allowed the program.
        guarded: The server.

    Raises:
        Unavailable: It cannot be started or connected.
        InvalidInput: Its answers do not follow the protocol.
    """
    async with crib:
        environment = {name: f"${{env:{name}}}" for name in guarded.variables}
        imported = await crib.imports.mcp(
            guarded.url, name=guarded.name, command=guarded.command, environment=environment, accept=guarded.accept
        )
        for tool in crib.registry.current(crib.principal.realm):
            name = guarded.name_of(tool)
            if name is not None:
                await _save(crib, tool, needs_approval=_matches(name, guarded.approve))
        server = McpServer(lambda _: crib, self_approval=True, name_of=guarded.name_of)
        async with server.open():
            yield server.build(), imported


async def serve_guard(crib: Crib, guarded: GuardedServer) -> None:
    """Guard a server for one client on standard input and output, until the client closes them."""
    async with guard(crib, guarded) as (server, _), stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


async def _save(crib: Crib, tool: ToolRevision, *, needs_approval: bool) -> None:
    """Store how a tool is offered, if that has changed."""
    definition = tool.definition
    changed = definition.model_copy(update={"requires_confirmation": needs_approval, "mcp": await _offer(crib, tool)})
    if changed != definition:
        await crib.save(changed, after=tool.revision)


async def _offer(crib: Crib, tool: ToolRevision) -> McpOffer | None:
    """A resource and a prompt as what they are at the server; a tool where the address has more than variables."""
    implementation = cast("McpImplementation", tool.definition.implementation)
    if implementation.capability == "tool":
        return None
    uri = implementation.name if implementation.capability == "resource" else None
    offer = McpOffer(show_as=implementation.capability, uri=uri)
    try:
        await crib.check(_with(tool.definition, offer))
    except InvalidDefinition:
        return None
    return offer


def _with(definition: ToolDefinition, offer: McpOffer) -> ToolDefinition:
    return definition.model_copy(update={"mcp": offer})


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)

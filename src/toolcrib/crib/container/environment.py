"""The runtimes of a crib by the kind of tool that they execute, with the connections that they hold."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from toolcrib.crib.container.keeping import Keeping
from toolcrib.crib.container.outside import Outside
from toolcrib.infrastructure.net import HttpSession
from toolcrib.infrastructure.store import transactions_of
from toolcrib.kinds.entity.importer import Databases
from toolcrib.kinds.mcp.importer import Commands
from toolcrib.kinds.runtimes_part import (
    EntityRuntime,
    GrpcRuntime,
    HttpRuntime,
    McpRuntime,
    McpServers,
    PluginHost,
    PluginRuntimes,
    PythonRuntime,
    Runtime,
)


@dataclass(frozen=True, slots=True)
class Reaching:
    """All ways out of the executor but those that are runs of their own."""

    by_kind: Mapping[str, Runtime]
    functions: PythonRuntime
    grpc: GrpcRuntime
    """Has the connections to gRPC servers."""
    entities: EntityRuntime
    """Has the connections to databases."""
    mcp: McpServers
    """Has the connections to MCP servers."""
    plugins: PluginRuntimes
    commands: Commands
    """Tells which programs may be started."""

    @classmethod
    def wire(cls, outside: Outside, session: HttpSession, keeping: Keeping) -> Self:
        """Make them; nothing is connected."""
        access, attic, clock = keeping.access, outside.store.blobs, outside.clock
        functions = PythonRuntime(session, transactions_of(outside.store))
        grpc = GrpcRuntime(session, access, attic)
        entities = EntityRuntime(Databases(session.route), access, clock=clock)
        commands = Commands(outside.mcp_commands)
        mcp = McpServers(session, access, commands=commands, environment=outside.environment, clock=clock)
        plugins = PluginRuntimes(outside.plugins.runtimes(PluginHost(session, keeping.secrets.resolve, clock)))
        by_kind: dict[str, Runtime] = {
            "python": functions,
            "http": HttpRuntime(session, access, attic=attic, clock=clock),
            "grpc": grpc,
            "entity": entities,
            "mcp": McpRuntime(mcp, access, attic=attic),
            "plugin": plugins,
        }
        return cls(by_kind, functions, grpc, entities, mcp, plugins, commands)

    async def close(self) -> None:
        """Let go of the connections."""
        await self.grpc.close()
        await self.entities.close()
        await self.mcp.close()

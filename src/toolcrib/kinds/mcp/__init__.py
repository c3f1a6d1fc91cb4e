"""Tools of kind `mcp`: tools, resources and prompts of MCP servers.

Imported by `kinds.table`; other packages import the modules.
"""

from typing import TYPE_CHECKING

from toolcrib.core.kinds import KindSpec
from toolcrib.kinds.mcp.commands import CONNECTION, IMPORTERS
from toolcrib.kinds.mcp.shape import McpImplementation

if TYPE_CHECKING:
    from toolcrib.core.kinds import Runtime, RuntimeParts


def _open_runtime(parts: "RuntimeParts") -> "Runtime":
    from toolcrib.kinds.mcp.importer import AllowedPrograms
    from toolcrib.kinds.mcp.runtime import McpRuntime, McpServers

    commands = AllowedPrograms(parts.mcp_commands)
    servers = McpServers(
        parts.session, parts.access, commands=commands, environment=parts.environment, clock=parts.clock
    )
    return McpRuntime(servers, parts.access, blob_sink=parts.blobs)


KIND = KindSpec(
    McpImplementation,
    open_runtime=_open_runtime,
    importers=IMPORTERS,
    connection=CONNECTION,
)

"""Executes tools of MCP servers (modelcontextprotocol.io) with the official SDK.

`servers` finds or opens the `connection` for a call. Only `transports` and `session` use the SDK, which loads with the
first connection. `runtime` reads results, `failures` maps failures to errors. Requests and credentials go through this
library: the SDK gets neither a socket nor a secret. Imported by `kinds.mcp` and `crib`.
"""

from typing import TYPE_CHECKING

from toolcrib.contracts.base import names_on_use

if TYPE_CHECKING:
    from toolcrib.kinds.mcp.runtime.runtime import McpRuntime
    from toolcrib.kinds.mcp.runtime.servers import McpServers
else:
    __getattr__ = names_on_use(
        __name__,
        {
            "toolcrib.kinds.mcp.runtime.runtime": "McpRuntime",
            "toolcrib.kinds.mcp.runtime.servers": "McpServers",
        },
    )

__all__ = ["McpRuntime", "McpServers"]

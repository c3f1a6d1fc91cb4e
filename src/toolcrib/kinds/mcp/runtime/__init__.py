"""Runs tools that are MCP servers' (modelcontextprotocol.io), over the official SDK.

`servers` finds or opens the `connection` for a call, `_transports` and `_session` are the only modules that know the
SDK, which loads with the first connection; `results` reads what comes back, `failures` says what goes wrong. The way
out and the credentials are ours: the SDK gets neither a socket nor a secret.
"""

from toolcrib.kinds.mcp.runtime.runtime import McpRuntime
from toolcrib.kinds.mcp.runtime.servers import McpServers

__all__ = ["McpRuntime", "McpServers"]

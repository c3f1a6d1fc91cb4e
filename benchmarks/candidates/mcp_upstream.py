"""An MCP server with one tool that repeats its argument: `python -m benchmarks.candidates.mcp_upstream PORT`."""

import sys

from mcp.server.mcpserver import MCPServer

server = MCPServer("upstream", log_level="ERROR")


@server.tool()
def echo(text: str) -> str:
    """Repeat a text."""
    return text


if __name__ == "__main__":
    server.run("streamable-http", port=int(sys.argv[1]), stateless_http=True, json_response=True)

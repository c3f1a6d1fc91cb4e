"""The MCP server on standard input and output, for a client that starts it as a command."""

from mcp.server.stdio import stdio_server

from toolcrib.crib import ActingCrib, Crib
from toolcrib.interfaces.mcp.server import McpServer


async def serve_stdio(crib: Crib, acting: ActingCrib, *, self_approval: bool = False) -> None:
    """Serve one client until it closes standard input. Nothing else may write to standard output meanwhile.

    Args:
        crib: Is opened, and closed at the end.
        acting: The same crib as the principal that the client acts as.
        self_approval: Whether the person at the client may decide on its calls.
    """
    server = McpServer(lambda _: acting, self_approval=self_approval).build()
    async with crib, stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())

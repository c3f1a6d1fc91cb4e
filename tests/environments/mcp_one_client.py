"""The client of the SDK's version 1: as `fastmcp_client`; the third argument is its transport, `http` or `sse`."""

import asyncio
import json
import sys

from mcp import ClientSession
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamablehttp_client


async def main(url: str, key: str, transport: str) -> None:
    """List, call once with right arguments, and once with wrong ones."""
    connect = streamablehttp_client if transport == "http" else sse_client
    async with (
        connect(url, headers={"Authorization": f"Bearer {key}"}) as streams,
        ClientSession(streams[0], streams[1]) as session,
    ):
        await session.initialize()
        listed = [each.name for each in (await session.list_tools()).tools]
        found = await session.call_tool("search", {"company": "Acme"})
        wrong = await session.call_tool("search", {"compny": "Acme"})
    refused = wrong.content[0].text if wrong.isError else None
    said = {"tools": listed, "found": json.loads(found.content[0].text), "wrong": refused}
    sys.stdout.write(json.dumps(said))


asyncio.run(main(*sys.argv[1:]))

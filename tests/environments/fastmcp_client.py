"""FastMCP's client: prints what it lists at an address, and what the tool `search` answers."""

import asyncio
import json
import sys

from fastmcp import Client
from fastmcp.client.transports import StreamableHttpTransport


async def main(url: str, key: str) -> None:
    """List, call once with right arguments, and once with wrong ones."""
    transport = StreamableHttpTransport(url, headers={"Authorization": f"Bearer {key}"})
    async with Client(transport) as client:
        listed = [each.name for each in await client.list_tools()]
        found = await client.call_tool("search", {"company": "Acme"})
        wrong = await client.call_tool("search", {"compny": "Acme"}, raise_on_error=False)
    refused = wrong.content[0].text if wrong.is_error else None
    said = {"tools": listed, "found": json.loads(found.content[0].text), "wrong": refused}
    sys.stdout.write(json.dumps(said))


asyncio.run(main(*sys.argv[1:]))

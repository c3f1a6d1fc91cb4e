"""The MCP adapters of LangChain, over the SDK's version 1: as `mcp_one_client`."""

import asyncio
import json
import sys

from langchain_core.tools import ToolException
from langchain_mcp_adapters.client import MultiServerMCPClient


async def main(url: str, key: str, transport: str) -> None:
    """List, call once with right arguments, and once with wrong ones."""
    connection = {
        "url": url,
        "transport": "streamable_http" if transport == "http" else "sse",
        "headers": {"Authorization": f"Bearer {key}"},
    }
    tools = {each.name: each for each in await MultiServerMCPClient({"toolcrib": connection}).get_tools()}
    [found] = await tools["search"].ainvoke({"company": "Acme"})
    try:
        refused = str(await tools["search"].ainvoke({"compny": "Acme"}))
    except ToolException as error:
        refused = str(error)
    said = {"tools": list(tools), "found": json.loads(found["text"]), "wrong": refused}
    sys.stdout.write(json.dumps(said))


asyncio.run(main(*sys.argv[1:]))

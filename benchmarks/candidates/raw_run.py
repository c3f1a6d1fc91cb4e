"""The floor: an agent loop as one would write it by hand with aiohttp and orjson, dicts all the way.

It parses every answer, runs the calls of an answer concurrently and appends to the history. It validates nothing,
guards nothing and keeps no journal.
"""

import asyncio
import inspect
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import orjson

from benchmarks.measure import Plan, Run, main
from benchmarks.script import INSTRUCTIONS, QUESTION, get_time, get_weather

TOOLS = {"get_weather": get_weather, "get_time": get_time}

TOOL_SCHEMAS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": inspect.getdoc(function),
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        },
    }
    for name, function in TOOLS.items()
]


async def call_tool(call: dict[str, Any]) -> dict[str, Any]:
    """Run one tool call and return the message that answers it."""
    function = call["function"]
    content = await TOOLS[function["name"]](**orjson.loads(function["arguments"]))
    return {"role": "tool", "tool_call_id": call["id"], "content": content}


@asynccontextmanager
async def open_run(plan: Plan) -> AsyncGenerator[Run]:
    """One client session for all runs."""
    url = f"{plan.base_url}/chat/completions"
    headers = {"content-type": "application/json", "authorization": "Bearer none"}
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:

        async def run() -> str:
            messages: list[dict[str, Any]] = [
                {"role": "system", "content": INSTRUCTIONS},
                {"role": "user", "content": QUESTION},
            ]
            while True:
                body = orjson.dumps({"model": plan.model, "messages": messages, "tools": TOOL_SCHEMAS})
                async with session.post(url, data=body) as response:
                    response.raise_for_status()
                    answer = orjson.loads(await response.read())["choices"][0]["message"]
                calls = answer.get("tool_calls")
                if not calls:
                    return answer["content"]
                messages.append({"role": "assistant", "content": answer["content"], "tool_calls": calls})
                messages += await asyncio.gather(*(call_tool(call) for call in calls))

        yield run


if __name__ == "__main__":
    main(open_run)

"""A shop that orders bolts: every kind of tool once, and one with a model inside that uses them.

    python -m examples.kinds.demo

The model is a script: it calls the tools one after the other and reports what came back.
"""

import asyncio
import json

from examples.kinds.counterparts import ORDERS, database, warehouse, web
from toolcrib import CompositeRoute, Crib, EgressPolicy, Result, ScriptedModel, ToolDefinition, code_tool, tool
from toolcrib.contracts import ClientResult, JsonObject, ProviderDefinition
from toolcrib.kinds.http.shape import HttpImplementation, HttpParameter
from toolcrib.llm import Message, Request, ToolCall, ToolResult

PLAN: tuple[tuple[str, JsonObject], ...] = (
    ("missing", {"sku": "bolt"}),
    ("look_up", {"what": "price", "sku": "bolt", "pieces": 20}),
    ("get_rate", {"currency": "EUR"}),
    ("total", {"usd": 10.0, "per_usd": 0.9}),
    ("show", {"text": "20 bolts cost 9.00 EUR"}),
)
MISSING = """
def main(sku):
    ordered = sum(row["pieces"] for row in search_orders(filter="sku eq '" + sku + "'")["items"])
    return {"pieces": ordered - Warehouse_Count(sku=sku)["pieces"]}
"""


@tool(side_effects="none")
def total(usd: float, per_usd: float) -> float:
    """An amount in another currency."""
    return usd * per_usd


@tool(side_effects="writes", runs_on="client")
def show(text: str) -> dict[str, str]:
    """Show a text on the screen of whoever asked: the client gets what this returns, and says what became of it."""
    return {"notice": text}


def script(request: Request) -> Message | str:
    """What the model says next."""
    results = [part.text for message in request.messages for part in message.parts if isinstance(part, ToolResult)]
    if len(results) == len(PLAN):
        return "; ".join(results)
    name, arguments = PLAN[len(results)]
    return Message("assistant", (ToolCall(f"call_{len(results)}", name, json.dumps(arguments)),))


async def define(crib: Crib, *, web_port: int, grpc_port: int) -> None:
    """One tool of each kind."""
    crib.add(total, show)  # python, and one whose act happens at a client
    await crib.add_entities("shop", database(), ORDERS)  # entity
    await crib.imports.mcp(f"http://127.0.0.1:{web_port}/mcp", name="supplier")  # mcp: quote
    await crib.imports.grpc(f"grpc://127.0.0.1:{grpc_port}", name="warehouse")  # grpc: Warehouse_Count
    await crib.save_provider(ProviderDefinition(name="bank", base_url=f"http://127.0.0.1:{web_port}"))
    currency = {"type": "object", "properties": {"currency": {"type": "string"}}, "required": ["currency"]}
    parameter = HttpParameter(name="currency", argument="currency", place="query")
    implementation = HttpImplementation(method="GET", url="/rate", provider="bank", parameters=(parameter,))
    rate = ToolDefinition(name="get_rate", input_schema=currency, side_effects="reads", implementation=implementation)
    tools = ["search_orders", "Warehouse_Count"]
    sku = {"type": "object", "properties": {"sku": {"type": "string"}}, "required": ["sku"]}
    crib.add(rate, code_tool("missing", MISSING, tools=tools, input_schema=sku, side_effects="reads"))  # http, code
    crib.composite_tool(
        "look_up",
        input_schema={"type": "object", "properties": {"what": {}, "sku": {"type": "string"}, "pieces": {}}},
        routes=[
            CompositeRoute(id="stock", when="${input.what == 'stock'}", tool="Warehouse_Count"),
            CompositeRoute(id="price", when="${input.what == 'price'}", tool="quote"),
        ],
    )


async def main() -> Result:
    """Define the tools, let the model use them, and be the client that shows what it wants to show."""
    async with web() as web_port, warehouse() as grpc_port:
        egress = EgressPolicy(allow=(f"127.0.0.1:{web_port}", f"127.0.0.1:{grpc_port}"))
        async with Crib("memory://", egress=egress, models={"scripted:buyer": ScriptedModel(script)}) as crib:
            await define(crib, web_port=web_port, grpc_port=grpc_port)
            buyer = crib.agentic_tool("buyer", mode="agentic", model="scripted:buyer", tools=[name for name, _ in PLAN])
            waiting = await buyer("Buy the bolts that are missing.")
            [prepared] = await crib.pending_handoffs(waiting.run_id)
            print(f"the client shows {prepared.output}")
            shown = ClientResult(output={"answer": "seen"})
            await crib.return_client_result(waiting.run_id, prepared.position, shown)
            return await crib.resume(waiting.run_id)


if __name__ == "__main__":
    print(asyncio.run(main()).output)

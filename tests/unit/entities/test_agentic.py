"""An agentic tool over the tools of entities, with a scripted model and real databases."""

import pytest

from tests.unit.entities.shop import Order, engine_for
from toolcrib import Crib, ScriptedModel
from toolcrib.llm import Request

pytestmark = pytest.mark.requirement("entities.agentic")

PLAN = """{
  "reading": [
    {"words": "Close", "use": "change", "value": "CLOSED"},
    {"words": "the", "use": "none"},
    {"words": "open", "use": "condition", "value": "OPEN"},
    {"words": "urgent", "use": "condition", "value": "urgent"},
    {"words": "order", "use": "request"}
  ],
  "reasoning": "find the open order and close it",
  "search_orders": {"input": {"filter": "status eq 'OPEN' and contains(note,'urgent')"}},
  "update_order": {"input": {
    "id": "${search_orders.items[0].id}",
    "version": "${search_orders.items[0].version}",
    "status": "CLOSED"
  }}
}"""


def answer(request: Request) -> str:
    return PLAN if request.output_name == "plan" else '{"summary": "closed one order"}'


async def test_a_fixed_sequence_searches_and_updates_with_the_version_that_it_found(database_url: str):
    with engine_for(database_url) as engine:
        async with Crib("memory://", models={"scripted:m": ScriptedModel(answer)}) as crib:
            await crib.add_entities("shop", engine, Order)
            made = (await crib.call("create_order", {"total": "5.00", "note": "urgent"})).output
            await crib.call("create_order", {"total": "6.00"})
            closing = crib.agentic_tool(
                "closing", mode="deterministic", model="scripted:m", steps=["search_orders", "update_order"]
            )
            result = await closing("Close the open urgent order")
            after = (await crib.call("get_order", {"id": made["id"]})).output

    assert result.summary.status == "completed", result.summary.error
    assert (after["status"], after["version"]) == ("CLOSED", 2)

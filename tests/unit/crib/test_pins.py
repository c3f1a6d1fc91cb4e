"""A run keeps the tools that it began with, whatever is saved while it is open."""

import orjson
import pytest

from toolcrib import Crib, ScriptedModel, tool
from toolcrib.llm import Message, Text, ToolCall


def looks_then_answers() -> ScriptedModel:
    """Calls `look`, asks a person by calling `act`, calls `look` again, and answers."""
    calls = [ToolCall("a", "look", "{}"), ToolCall("b", "act", "{}"), ToolCall("c", "look", "{}")]
    return ScriptedModel(
        lambda request: (
            "done"
            if len(request.messages) // 2 >= len(calls)
            else Message("assistant", (Text("next"), calls[len(request.messages) // 2]))
        ),
        name="walk",
    )


@pytest.mark.requirement("agents.pinned_tools")
async def test_a_tool_that_is_saved_anew_while_a_run_waits_does_not_change_the_run():
    @tool(side_effects="reads", name="look")
    async def look() -> str:
        """Look."""
        return "as it was"

    @tool(side_effects="reads", name="look")
    async def look_anew() -> str:
        """Look, in another way."""
        return "anew"

    @tool(requires_confirmation=True, idempotent=True)
    async def act() -> str:
        """Act."""
        return "acted"

    async with Crib("memory://", models={"scripted:walk": looks_then_answers()}) as crib:
        crib.add(look, act)
        walk = crib.agentic_tool("walk", mode="agentic", model="scripted:walk", tools=["look", "act"])
        waiting = await walk("go")
        crib.add(look_anew)
        await crib.decide(waiting.run_id, "t2.c1", approve=True)

        ended = await crib.resume(waiting.run_id)
        later = await crib.call("look")

    assert [envelope.output for envelope in ended.envelopes] == ["as it was", "acted", "as it was"]
    assert later.output == "anew"


@pytest.mark.requirement("agents.pinned_tools")
async def test_a_tool_that_is_removed_while_a_run_waits_is_still_found_by_the_run():
    @tool(side_effects="reads")
    async def look() -> str:
        """Look."""
        return "seen"

    @tool(requires_confirmation=True, idempotent=True)
    async def act() -> str:
        """Act."""
        return "acted"

    async with Crib("memory://", models={"scripted:walk": looks_then_answers()}) as crib:
        crib.add(look, act)
        walk = crib.agentic_tool("walk", mode="agentic", model="scripted:walk", tools=["look", "act"])
        waiting = await walk("go")
        await crib.registry.remove(crib.principal.realm, "look")
        await crib.decide(waiting.run_id, "t2.c1", approve=True)

        ended = await crib.resume(waiting.run_id)

    assert ended.ok, orjson.dumps(ended.summary.model_dump(mode="json"))
    assert [envelope.output for envelope in ended.envelopes] == ["seen", "acted", "seen"]

"""The compliance checklist of 002, for a client's tool that an agent calls."""

from typing import Any, cast

import pytest

from tests.unit.executions.house import MODEL, agent, open_crib, results, turn
from toolcrib import Crib, ScriptedModel, tool
from toolcrib.contracts import AgentRequest, CallFinished, JsonSchema, ToolEnvelope

pytestmark = pytest.mark.requirement("handoff.compliance")

GO = AgentRequest(message="go", session_id="s1")


@tool(side_effects="reads", runs_on="client", usage="Ask before you guess.")
async def choose(item: str) -> Any:
    """Lets the person choose."""
    if item == "broken":
        raise RuntimeError("the shop is closed")
    return {"ask": item}


async def open_shop(*answers: Any, model: ScriptedModel | None = None) -> Crib:
    """A crib whose agent may let the person choose."""
    crib = Crib("memory://", models={MODEL: model or ScriptedModel(list(answers))})
    crib.add(choose)
    await crib.save(agent(tools=["choose"]))
    return crib


async def test_the_model_is_told_the_tools_usage_under_its_one_name():
    model = ScriptedModel(["Hello."])
    async with await open_shop(model=model) as crib:
        await crib.executions.execute("clerk", GO)

    [offered] = model.requests[0].tools.tools
    assert offered.name == "choose"
    assert "Ask before you guess." in offered.description


async def test_a_tool_says_where_it_is_carried_out_and_its_envelopes_follow():
    async with await open_crib(turn(("look", "hat"), ("pick", "hat")), "Done.") as crib:
        waiting = await crib.executions.execute("clerk", GO)
        found = [crib.registry.require("default", name).definition.runs_on for name in ("look", "pick")]

    assert found == ["server", "client"]
    assert [call.requires_client_execution for call in waiting.tools_by_id.values()] == [False]
    assert [call.requires_client_execution for call in waiting.tool_calls] == [True]


async def test_a_preparation_that_raises_is_a_failed_call_that_is_in_the_journal_and_hands_nothing_over():
    async with await open_shop(turn(("choose", "broken")), "It is closed.") as crib:
        answer = await crib.executions.execute("clerk", GO)
        events = await crib.store.journal.events(answer.run_id)

    [envelope] = [entry.event.envelope for entry in events if isinstance(entry.event, CallFinished)]
    assert (answer.status, answer.tool_calls) == ("completed", ())
    assert envelope.error is not None
    assert "the shop is closed" in envelope.error.message


async def test_equal_arguments_are_prepared_equally():
    async with await open_shop(turn(("choose", "hat"), ("choose", "hat"))) as crib:
        one, other = (await crib.executions.execute("clerk", GO)).tool_calls

    assert (one.output, one.input) == (other.output, other.input)
    assert one.call_id != other.call_id


async def test_every_envelope_names_its_session_and_its_conversation():
    async with await open_shop(turn(("choose", "hat"), ("choose", "broken")), "Done.") as crib:
        waiting = await crib.executions.execute("clerk", GO)
        request = AgentRequest(run_id=waiting.run_id, tool_results=results(waiting, "red"))
        answer = await crib.executions.execute("clerk", request)

    def named(call: ToolEnvelope) -> tuple[str | None, str | None]:
        return call.session_id, call.conversation_id

    calls = [*waiting.tool_calls, *waiting.tools_by_id.values(), *answer.tools_by_id.values()]
    assert waiting.conversation_id is not None
    assert [named(call) for call in calls] == [("s1", waiting.conversation_id)] * 4


async def test_what_the_client_brings_has_the_shape_that_the_tool_promises():
    promised: JsonSchema = {"type": "object", "required": ["colour"]}
    async with await open_crib(turn(("pick", "hat"), ("pick", "coat")), "Done.") as crib:
        pick = crib.registry.require("default", "pick").definition
        revision = await crib.save(pick.model_copy(update={"output_schema": promised}))
        crib._parts.functions.bind(revision.content_hash, cast("Any", _pick))  # pyright: ignore[reportPrivateUsage] - as in the suite
        waiting = await crib.executions.execute("clerk", GO)
        brought = results(waiting, {"colour": "red"}, "red")
        answer = await crib.executions.execute("clerk", AgentRequest(run_id=waiting.run_id, tool_results=brought))

    fits, does_not = (answer.tools_by_id[call_id] for call_id in answer.tool_order)
    assert fits.output == {"colour": "red"}
    assert does_not.error is not None
    assert does_not.error.reason == "output_schema_mismatch"


@tool(name="pick", side_effects="reads", runs_on="client")
async def _pick(item: str) -> Any:
    """Lets the person at the client choose."""
    return {"ask": item}

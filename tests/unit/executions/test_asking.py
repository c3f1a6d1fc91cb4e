"""Asking agents and agentic tools, and how their executions stand."""

from pathlib import Path
from typing import Any

import pytest

from tests.unit.executions.house import MODEL, Desk, agent, open_crib, turn
from toolcrib import Crib, Principal
from toolcrib.contracts import (
    AgentRequest,
    AgentResponse,
    Conflict,
    InvalidInput,
    JsonSchema,
    NotFound,
    PinnedHandle,
    PinSelector,
    Reason,
)

GO = AgentRequest(message="go")


@pytest.mark.requirement("executions.asked", "outputs.standing")
async def test_an_agent_answers_a_message_with_all_that_its_execution_was():
    async with await open_crib(turn(("look", "hat"), ("fail", "coat")), "A hat.") as crib:
        answer = await crib.executions.execute("clerk", AgentRequest(message="go", session_id="s1"))

    look, fail = (answer.tools_by_id[call_id] for call_id in answer.tool_order)
    assert (answer.agent, answer.status, answer.stop_reason) == ("clerk@1.0.0", "completed", "final_answer")
    assert (answer.response, answer.output, answer.error) == ("A hat.", None, None)
    [warning] = answer.warnings
    assert warning.startswith("1 call was without a result (1 failed), and the model went on; fail: ")
    assert (look.output, fail.status, answer.last_tool) == ("hat is here", "error", look)
    assert (answer.iterations, answer.cost_usd) == (2, 0)
    assert answer.tokens == answer.usage.input_tokens + answer.usage.output_tokens > 0
    assert answer.conversation_id is not None
    assert {call.session_id for call in answer.tools_by_id.values()} == {"s1"}
    assert {call.conversation_id for call in answer.tools_by_id.values()} == {answer.conversation_id}


@pytest.mark.requirement("executions.asked")
async def test_variables_are_told_with_the_message():
    async with await open_crib("Hello.") as crib:
        answer = await crib.executions.execute("clerk", AgentRequest(message="go", context={"shop": "Rome"}))
        run = await crib.store.journal.run(answer.run_id)

    assert run.request.input == {"message": "go", "context": {"shop": "Rome"}}


@pytest.mark.requirement("executions.asked", "outputs.response")
async def test_an_agentic_tool_takes_a_message_as_its_task_or_parameters():
    schema: JsonSchema = {"type": "object", "properties": {"task": {"type": "string"}, "n": {"type": "integer"}}}
    async with await open_crib("First.", '{"summary": "Second.", "n": 2}') as crib:
        crib.agentic_tool("finder", mode="agentic", model=MODEL, tools=["look"], input_schema=schema)
        first = await crib.executions.execute("finder", GO)
        second = await crib.executions.execute("finder", AgentRequest(params={"task": "find", "n": 2}))
        inputs = [(await crib.store.journal.run(answer.run_id)).request.input for answer in (first, second)]

    assert (first.response, first.output, first.handles) == ("First.", {"summary": "First."}, {})
    assert second.response != ""
    assert inputs == [{"task": "go"}, {"task": "find", "n": 2}]


@pytest.mark.requirement("executions.asked")
@pytest.mark.parametrize(
    ("name", "request_", "problem"),
    [
        ("clerk", AgentRequest(), "'clerk' takes a message or params, and the request has neither"),
        ("clerk", AgentRequest(message="go", params={}), "the request has both"),
        ("look", GO, "'look' is neither an agent nor an agentic tool"),
        (
            "finder",
            AgentRequest(message="go", context={"a": 1}),
            "'finder' is told variables with a message",
        ),
        ("clerk", AgentRequest(params={"message": "go"}, context={"a": 1}), "put them into params"),
    ],
)
async def test_a_request_that_says_too_little_or_too_much_is_refused(name: str, request_: AgentRequest, problem: str):
    async with await open_crib() as crib:
        crib.agentic_tool("finder", mode="agentic", model=MODEL, tools=["look"])
        with pytest.raises(InvalidInput, match=problem):
            await crib.executions.execute(name, request_)
        assert await crib.store.journal.runs("default") == []


@pytest.mark.requirement("executions.asked")
async def test_an_agent_that_is_not_there_is_not_found():
    async with await open_crib() as crib:
        with pytest.raises(NotFound):
            await crib.executions.execute("nobody", GO)


@pytest.mark.requirement("executions.queued")
async def test_a_submitted_execution_is_queued_until_an_engine_carries_it_out(tmp_path: Path):
    async with await open_crib("Hello.", store=f"sqlite:///{tmp_path / 'crib.db'}") as crib:
        queued = await crib.executions.submit("clerk", GO)
        await crib.recover()
        answer = await crib.executions.respond(queued.run_id)

    assert (queued.status, queued.response, queued.iterations, queued.tokens) == ("queued", "", 0, 0)
    assert (answer.status, answer.response) == ("completed", "Hello.")


@pytest.mark.requirement("executions.conversations")
async def test_a_conversation_goes_on_with_its_next_message():
    async with await open_crib("First.", "Second.", "Third.") as crib:
        first = await crib.executions.execute("clerk", GO)
        conversation_id = first.conversation_id or ""
        second = await crib.executions.continue_(conversation_id, "and then?")
        third = await crib.executions.execute("clerk", AgentRequest(message="more", conversation_id=conversation_id))
        conversation = await crib.conversations.get(conversation_id)

    assert (first.response, second.output, third.response) == ("First.", "Second.", "Third.")
    assert {answer.conversation_id for answer in (first, second, third)} == {conversation_id}
    assert (conversation.turn_count, conversation.ended_turns) == (3, 3)


@pytest.mark.requirement("executions.conversations")
async def test_a_message_does_not_overtake_a_turn_that_waits_for_the_client():
    async with await open_crib(turn(("pick", "hat")), "Done.") as crib:
        waiting = await crib.executions.execute("clerk", GO)
        with pytest.raises(Conflict, match=waiting.run_id):
            await crib.executions.continue_(waiting.conversation_id or "", "and then?")
        assert (await crib.executions.respond(waiting.run_id)).status == "awaiting_client"


@pytest.mark.requirement("executions.refused", "executions.access")
async def test_who_may_not_use_an_agent_gets_an_execution_that_was_refused():
    stranger = Principal(id="stranger", grants=())
    async with await open_crib() as crib:
        answer = await crib.acting_as(stranger).executions.execute("clerk", GO)
        queued = await crib.acting_as(stranger).executions.submit("clerk", GO)

    assert (answer.status, answer.stop_reason, answer.conversation_id) == ("failed", "policy", None)
    assert answer.error is not None
    assert answer.error.reason is Reason.PERMISSION_MISSING
    assert (queued.status, queued.response, queued.tools_by_id) == ("failed", "", {})


@pytest.mark.requirement("executions.access")
async def test_who_may_read_the_runs_of_an_agent_sees_how_they_stand():
    reader = Principal(id="reader", grants=("ai://runs/clerk/read",))
    async with await open_crib("Hello.") as crib:
        answer = await crib.executions.execute("clerk", GO)

        assert await crib.acting_as(reader).executions.respond(answer.run_id) == answer


@pytest.mark.requirement("executions.asked")
async def test_a_dry_run_skips_what_would_write():
    desk = Desk()
    async with await open_crib(turn(("show", "hat"), ("look", "hat")), "Done.", desk=desk) as crib:
        answer = await crib.executions.execute("clerk", AgentRequest(message="go", dry_run=True))

    assert [answer.tools_by_id[call_id].status for call_id in answer.tool_order] == ["skipped", "success"]
    assert desk.done == [("look", "hat")]


@pytest.mark.requirement("outputs.always")
async def test_all_fields_of_a_response_are_on_the_wire():
    async with await open_crib("Hello.", definition=agent(tools=["look"])) as crib:
        wire: dict[str, Any] = (await crib.executions.execute("clerk", GO)).model_dump(mode="json")

    assert wire.keys() == AgentResponse.model_fields.keys()
    assert (wire["tools_by_id"], wire["tool_order"], wire["last_tool"], wire["traces_url"]) == ({}, [], None, None)


@pytest.mark.requirement("executions.queued")
async def test_what_this_process_cannot_carry_out_stays_queued_for_one_that_can(tmp_path: Path):
    url = f"sqlite:///{tmp_path / 'crib.db'}"
    async with await open_crib(store=url):
        pass
    async with Crib(url) as stranger:
        queued = await stranger.executions.execute("clerk", GO)
    async with await open_crib("Hello.", store=url) as crib:
        await crib.recover()
        answer = await crib.executions.respond(queued.run_id)

    assert queued.status == "queued"
    assert "lacks the Python function of look@1.0.0" in queued.warnings[0]
    assert (answer.status, answer.response, answer.warnings) == ("completed", "Hello.", ())


@pytest.mark.requirement("outputs.always")
async def test_a_run_of_any_tool_has_the_same_outputs_in_python():
    async with await open_crib() as crib:
        result = await crib.invoke("look", {"item": "hat"})

    assert result.outputs.response == "hat is here"
    assert [result.outputs.tools_by_id[call_id] for call_id in result.outputs.tool_order] == result.envelopes


@pytest.mark.requirement("outputs.always")
async def test_one_call_of_an_agent_is_no_execution_of_it_and_has_no_handles():
    pins = [PinnedHandle(name="found", selector=PinSelector(tool="look"))]
    async with await open_crib("Hello.", definition=agent(pins=pins)) as crib:
        result = await crib.invoke("clerk", {"message": "go"}, as_call=True)

        assert (await crib.executions.respond(result.run_id)).handles == {}

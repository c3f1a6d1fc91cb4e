"""Agents for AG-UI, through its own client, which refuses a stream whose events are out of order."""

import sys
from typing import Any

import pytest

from tests.unit.agui.client import ask, user
from tests.unit.executions.house import agent, turn
from tests.unit.openai_endpoint.served import endpoint
from tests.unit.server.client import checked
from toolcrib import Crib, ToolContext, tool
from toolcrib.contracts import ModelError
from toolcrib.interfaces.server import agui
from toolcrib.llm import Message, Text, Thinking, ToolCall

RUN = ["RUN_STARTED", "RUN_FINISHED"]


@tool(side_effects="none")
async def order(item: str, context: ToolContext) -> str:
    """Order something in a size."""
    size = await context.ask(f"Which size of {item}?", str)
    return f"{item} in {size}"


def with_order(crib: Crib) -> None:
    crib.add(order)


@pytest.mark.requirement("agui.stream")
async def test_a_chat_streams_what_the_agent_says_and_calls() -> None:
    said = Message("assistant", (Text("I look."), ToolCall("m1", "look", '{"item": "hat"}')))
    async with endpoint(said, "The hat is here.") as served:
        told = await ask(served, messages=[user("Where is the hat?")], threadId="thread-7", runId="run-7")

    assert told.failure is None
    assert told.kinds == [
        "RUN_STARTED",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_END",
        "TOOL_CALL_START",
        "TOOL_CALL_ARGS",
        "TOOL_CALL_END",
        "TOOL_CALL_RESULT",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_END",
        "RUN_FINISHED",
    ]
    assert told.text == "I look.The hat is here."
    [call], [args], [result] = told.of("TOOL_CALL_START"), told.of("TOOL_CALL_ARGS"), told.of("TOOL_CALL_RESULT")
    assert (call["toolCallName"], args["delta"], result["content"]) == ("look", '{"item":"hat"}', "hat is here")
    assert {event.get("threadId") for event in (told.events[0], told.last)} == {"thread-7"}
    assert {event.get("runId") for event in (told.events[0], told.last)} == {"run-7"}
    facts = told.last["metadata"]["toolcrib"]
    assert (told.last["outcome"]["type"], facts["status"], facts["run_id"]) == (
        "success",
        "completed",
        told.events[0]["metadata"]["toolcrib"]["run_id"],
    )


@pytest.mark.requirement("agui.stream")
async def test_reasoning_is_a_message_of_its_own_and_a_failed_call_has_a_result() -> None:
    thought = Message("assistant", (Thinking("Hm."), ToolCall("m1", "fail", '{"item": "hat"}')))
    async with endpoint(thought, "It failed.") as served:
        told = await ask(served, messages=[user("Break the hat")])

    assert told.failure is None
    assert [event["delta"] for event in told.of("REASONING_MESSAGE_CONTENT")] == ["Hm."]
    [result] = told.of("TOOL_CALL_RESULT")
    assert result["metadata"]["toolcrib"]["status"] == "error"
    assert "hat" not in result["content"] or "error" in result["content"]


@pytest.mark.requirement("agui.thread")
async def test_what_was_said_before_and_what_the_client_shares_is_context() -> None:
    async with endpoint("Red.") as served:
        told = await ask(
            served,
            messages=[
                {"id": "s", "role": "system", "content": "Be brief."},
                user("I have a hat."),
                {"id": "a", "role": "assistant", "content": "Fine."},
                user("Which colour?", 2),
            ],
            context=[{"description": "page", "value": "/hats"}],
            state={"cart": ["hat"]},
        )
        [prompt] = served.prompts()

    assert (told.failure, told.text) == (None, "Red.")
    for shown in ("Be brief.", "I have a hat.", "Fine.", "/hats", "cart", "Which colour?"):
        assert shown in prompt


@pytest.mark.requirement("agui.client_tools")
async def test_a_client_tool_is_called_in_the_browser_and_its_result_continues_the_run() -> None:
    async with endpoint(turn(("pick", "hat")), "The red one.") as served:
        first = await ask(served, messages=[user("Which hat?")], tools=[{"name": "pick", "description": "Picks"}])
        [call] = first.of("TOOL_CALL_START")
        called = {"id": "a", "role": "assistant", "toolCalls": [_function(call["toolCallId"], "pick")]}
        result = {"id": "t", "role": "tool", "toolCallId": call["toolCallId"], "content": '"red"'}
        second = await ask(served, messages=[user("Which hat?"), called, result], runId="r2")

    assert (first.failure, second.failure) == (None, None)
    assert first.last["outcome"] == {"type": "success", "pendingToolCallIds": [call["toolCallId"]]}
    assert second.text == "The red one."


def _function(call_id: str, name: str) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": "{}"}}


@pytest.mark.requirement("agui.interrupts")
async def test_a_question_interrupts_and_its_answer_resumes() -> None:
    definition = agent(tools=("order",))
    async with endpoint(turn(("order", "hat")), "Ordered.", definition=definition, prepare=with_order) as served:
        first = await ask(served, messages=[user("Order a hat")])
        [interrupt] = first.last["outcome"]["interrupts"]
        resume = [{"interruptId": interrupt["id"], "status": "resolved", "payload": "L"}]
        second = await ask(served, messages=[user("Order a hat")], resume=resume, runId="r2")
        run_id = second.last["metadata"]["toolcrib"]["run_id"]
        envelopes = (await served.server.crib.executions.respond(run_id)).tools_by_id

    assert (first.failure, second.failure) == (None, None)
    assert (interrupt["reason"], interrupt["message"]) == ("question", "Which size of hat?")
    assert (second.text, second.last["outcome"]["type"]) == ("Ordered.", "success")
    assert [each.output for each in envelopes.values()] == ["hat in L"]


@pytest.mark.requirement("agui.interrupts")
async def test_a_question_that_is_not_answered_cancels_the_run() -> None:
    definition = agent(tools=("order",))
    async with endpoint(turn(("order", "hat")), definition=definition, prepare=with_order) as served:
        first = await ask(served, messages=[user("Order a hat")])
        [interrupt] = first.last["outcome"]["interrupts"]
        resume = [{"interruptId": interrupt["id"], "status": "cancelled"}]
        second = await ask(served, messages=[user("Order a hat")], resume=resume)

    assert (second.failure, second.last["outcome"]) == (None, {"type": "cancelled"})


@pytest.mark.requirement("agui.interrupts")
@pytest.mark.parametrize(
    ("entry", "status"),
    [
        ({"status": "resolved", "payload": {"approved": True}}, "success"),
        ({"status": "resolved", "payload": {"approved": False, "reason": "too dear"}}, "denied"),
        ({"status": "cancelled"}, "denied"),
    ],
)
async def test_an_approval_interrupts_and_the_decision_resumes(entry: dict[str, Any], status: str) -> None:
    async with endpoint(turn(("pay", "hat")), "Done.") as served:
        served.server.app.state.self_approval = True
        first = await ask(served, messages=[user("Pay for the hat")])
        [interrupt] = first.last["outcome"]["interrupts"]
        second = await ask(served, messages=[], resume=[{"interruptId": interrupt["id"], **entry}])
        run_id = second.last["metadata"]["toolcrib"]["run_id"]
        [envelope] = (await served.server.crib.executions.respond(run_id)).tools_by_id.values()

    assert (first.failure, second.failure) == (None, None)
    assert (interrupt["reason"], interrupt["metadata"]["toolcrib"]["tool"]) == ("approval", "pay")
    assert (envelope.status, second.text) == (status, "Done.")


@pytest.mark.requirement("agui.interrupts")
async def test_who_started_a_run_does_not_decide_on_its_calls_and_others_runs_are_not_resumed() -> None:
    async with endpoint(turn(("pay", "hat")), "Done.") as served:
        first = await ask(served, messages=[user("Pay for the hat")])
        [interrupt] = first.last["outcome"]["interrupts"]
        approve = [{"interruptId": interrupt["id"], "status": "resolved", "payload": {"approved": True}}]
        own = await ask(served, messages=[], resume=approve)
        foreign = await ask(served, messages=[], resume=approve, key="colleague")
        unknown = await ask(served, messages=[], resume=[{"interruptId": "run_x/question", "status": "resolved"}])

    assert "403" in (own.failure or "")
    assert [("422" in (each.failure or ""), each.events) for each in (foreign, unknown)] == [(True, []), (True, [])]


@pytest.mark.requirement("agui.stream")
async def test_a_failed_run_ends_with_an_error_and_its_code() -> None:
    async with endpoint(ModelError("auth", "the key is refused", status=401)) as served:
        told = await ask(served, messages=[user("Hi")])

    assert told.failure is None
    assert (told.kinds, told.last["message"]) == (["RUN_STARTED", "RUN_ERROR"], "the key is refused")
    assert told.last["code"] == "AUTH_REQUIRED"


@pytest.mark.requirement("agui.visibility")
async def test_an_agent_that_a_key_may_not_execute_is_as_unknown_as_one_that_is_not_there() -> None:
    async with endpoint("Hi.") as served:
        hidden = await ask(served, messages=[user("Hi")], key="reader")
        unknown = await ask(served, "nothing", messages=[user("Hi")])
        strange = await ask(served, messages=[user("Hi")], key="nobody")
        path = "http://crib/ag-ui/clerk"
        wrong = await served.server.client.post(path, json={"threadId": 7})
        empty = await served.server.client.post(path, json={"threadId": "t", "runId": "r", "messages": []})
        image = {"type": "image", "source": {"type": "url", "value": "https://example.org/a.png"}}
        parts = {"threadId": "t", "runId": "r", "messages": [{"id": "u", "role": "user", "content": [image]}]}
        pictured = await served.server.client.post(path, json=parts)

    assert [("404" in (each.failure or ""), each.events) for each in (hidden, unknown)] == [(True, []), (True, [])]
    assert "401" in (strange.failure or "")
    assert "threadId" in checked(wrong, 422)["detail"]
    assert "the last message is missing" in checked(empty, 422)["detail"]
    assert "agents fetch none" in checked(pictured, 422)["detail"]


@pytest.mark.requirement("packaging.extras")
async def test_a_missing_package_is_named_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [each for each in sys.modules if each.startswith("toolcrib.interfaces.server.agui.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr(agui, "client_runs", raising=False)
    monkeypatch.setitem(sys.modules, "ag_ui", None)
    async with endpoint("Hello.") as served:
        refused = await served.server.client.post("http://crib/ag-ui/clerk", json={"threadId": "t", "runId": "r"})

    assert "pip install 'toolcrib[ag-ui]'" in checked(refused, 503)["detail"]

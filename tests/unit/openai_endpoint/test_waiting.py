"""Runs that wait: for the client, for an answer, for a decision."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import openai
import orjson
import pytest

from tests.unit.agents.crm import DONE, Crm
from tests.unit.agents.test_planning import LIVE
from tests.unit.agents.test_small_models import ACME, SMALL, outline, said_of
from tests.unit.executions.house import agent, open_crib, turn
from tests.unit.openai_endpoint.served import Endpoint, endpoint
from tests.unit.openai_endpoint.test_chat import facts, said, user
from tests.unit.server.client import checked
from toolcrib import Crib, ScriptedModel
from toolcrib.contracts import ModelError
from toolcrib.llm import Message, Request, Response, ToolCall

PICK: Any = {"type": "function", "function": {"name": "pick", "parameters": {"type": "object", "properties": {}}}}
SHOW: Any = {"type": "function", "name": "show", "parameters": {}, "strict": False}


@pytest.mark.requirement("openai_endpoint.client_tools")
async def test_client_calls_come_out_of_a_chat_and_their_results_continue_the_run() -> None:
    async with endpoint(turn(("pick", "hat"), ("look", "hat"), ("show", "coat")), "The red one.") as served:
        create = served.client.chat.completions.create
        messages: list[Any] = [user("Which hat?")]
        waiting = await create(model="clerk", messages=messages, tools=[PICK])
        asked = waiting.choices[0].message
        calls: list[Any] = list(asked.tool_calls or [])
        messages += [asked.model_dump(), tool(calls[0].id, '"red"')]
        partly = await create(model="clerk", messages=messages)
        messages.append(tool(calls[1].id, '{"shown": true}'))
        answer = await create(model="clerk", messages=messages)
        again = await create(model="clerk", messages=messages)
        run = await served.server.crib.executions.respond(facts(answer)["run_id"])
    assert (waiting.choices[0].finish_reason, asked.content) == ("tool_calls", None)
    assert [(call.type, call.function.name, json.loads(call.function.arguments)) for call in calls] == [
        ("function", "pick", {"item": "hat"}),
        ("function", "show", {"item": "coat"}),
    ]
    assert [call.model_extra["toolcrib_payload"] for call in calls] == [{"ask": "hat"}, {"open": "coat"}]
    assert [call.id for call in partly.choices[0].message.tool_calls or []] == [calls[1].id]
    assert (answer.choices[0].message.content, answer.choices[0].finish_reason) == ("The red one.", "stop")
    assert (again.id, answer.id) == (waiting.id, waiting.id)
    outputs = {call.name: call.output for call in run.tools_by_id.values()}
    assert outputs == {"pick": "red", "look": "hat is here", "show": {"shown": True}}


def tool(call_id: str, content: str) -> Any:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


@pytest.mark.requirement("openai_endpoint.client_tools", "openai_endpoint.streaming")
async def test_client_calls_are_streamed_and_so_is_what_follows_their_results() -> None:
    async with endpoint(turn(("pick", "hat"), text="I ask."), "The red one.") as served:
        create = served.client.chat.completions.create
        chunks = [chunk async for chunk in await create(model="clerk", messages=[user("Which?")], stream=True)]
        [call] = [call for chunk in chunks for call in chunk.choices[0].delta.tool_calls or []]
        assert call.id is not None
        rest = await create(model="clerk", messages=[user("Which?"), tool(call.id, "red, I think")], stream=True)
        after = [chunk async for chunk in rest]
        run = await served.server.crib.executions.respond(facts(after[-1])["run_id"])
    assert chunks[-1].choices[0].finish_reason == "tool_calls"
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "I ask."
    assert "".join(chunk.choices[0].delta.content or "" for chunk in after) == "The red one."
    assert [call.output for call in run.tools_by_id.values()] == ["red, I think"]


@pytest.mark.requirement("openai_endpoint.client_tools", "openai_endpoint.streaming")
@pytest.mark.parametrize("previous", [True, False])
async def test_client_calls_of_a_response_are_items_and_their_outputs_continue_it(previous: bool) -> None:
    async with endpoint(turn(("show", "coat"), text="I show it."), "Shown.", "Anything else?") as served:
        async with served.client.responses.stream(model="clerk", input="Show it", tools=[SHOW]) as stream:
            kinds = [event.type async for event in stream]
            waiting = await stream.get_final_response()
        items: list[Any] = list(waiting.output)
        output: Any = {"type": "function_call_output", "call_id": items[1].call_id, "output": "null"}
        before = waiting.id if previous else openai.omit
        answer = await served.client.responses.create(model="clerk", input=[output], previous_response_id=before)
        more = await served.client.responses.create(model="clerk", input="Thanks", previous_response_id=answer.id)
        again = await served.client.responses.retrieve(answer.id)
    assert [(item.type, getattr(item, "phase", None)) for item in items] == [
        ("message", "commentary"),
        ("function_call", None),
    ]
    assert (items[1].name, json.loads(items[1].arguments)) == ("show", {"item": "coat"})
    assert "response.function_call_arguments.done" in kinds
    assert [answer.output_text, more.output_text] == ["Shown.", "Anything else?"]
    assert answer.id != waiting.id
    assert again.id == answer.id
    assert more.conversation == waiting.conversation


@pytest.mark.requirement("openai_endpoint.keys", "openai_endpoint.client_tools")
async def test_results_are_taken_for_ones_own_calls_of_the_same_agent_only() -> None:
    async with endpoint(turn(("pick", "hat")), "Done.") as served:
        served.server.crib.agent("other", model="scripted:m", system_prompt="Other.")
        create = served.client.chat.completions.create
        waiting = await create(model="clerk", messages=[user("Which?")])
        [call] = waiting.choices[0].message.tool_calls or []
        for key, model, call_id in (
            ("owner", "clerk", "call_of_nobody"),
            ("owner", "clerk", f"call_0_{'0' * 32}"),
            ("owner", "other", call.id),
            ("colleague", "clerk", call.id),
        ):
            client = served.client_of(key)
            with pytest.raises(openai.BadRequestError, match="has no call") as refused:
                await client.chat.completions.create(model=model, messages=[user("Which?"), tool(call_id, "x")])
            assert refused.value.param == "tool_call_id"
        state = await served.server.crib.executions.respond(facts(waiting)["run_id"])
        done = await create(model="clerk", messages=[tool(call.id, "red")])
        with pytest.raises(openai.ConflictError):
            await create(model="clerk", messages=[tool(call.id, "blue")])
    assert state.status == "awaiting_client"
    assert done.choices[0].message.content == "Done."


@asynccontextmanager
async def asking(*more: Message | str) -> AsyncGenerator[tuple[Endpoint, Crm]]:
    """An agent whose agentic tool asks which deals are meant."""
    crm = Crm(1)
    answers = [{"wants": "other", "question": "Which deals?"}, outline(ACME), said_of("Move them"), DONE]
    small = ScriptedModel([orjson.dumps(one).decode() for one in answers])
    small.name = SMALL

    def prepare(crib: Crib) -> None:
        crib.add(*crm.tools)
        steps = ["search_deals", "update_deals"]
        crib.agentic_tool("deals", mode="deterministic", model=SMALL, steps=steps, context=LIVE)

    calls = Message("assistant", (ToolCall("m1", "deals", json.dumps({"task": "Move them to Negotiation"})),))
    clerk = agent(tools=("deals",))
    async with endpoint(calls, "Moved.", *more, definition=clerk, prepare=prepare, models={SMALL: small}) as served:
        yield served, crm


@pytest.mark.requirement("openai_endpoint.waiting")
async def test_in_a_chat_the_agent_asks_what_its_tool_asks() -> None:
    async with asking() as (served, crm):
        answer = await served.client.chat.completions.create(model="clerk", messages=[user("Move them")])
    assert facts(answer)["status"] == "completed"
    assert "Which deals?" in str(served.model.requests[-1].messages[-1])
    assert not crm.updates


@pytest.mark.requirement("openai_endpoint.waiting", "openai_endpoint.responses")
async def test_the_next_input_of_a_conversation_answers_a_question() -> None:
    async with asking() as (served, crm):
        asked = await served.client.responses.create(model="clerk", input="Move them")
        answer = await served.client.responses.create(
            model="clerk", input="those of Acme", previous_response_id=asked.id
        )
    assert (asked.status, asked.output_text.split("\n")[0]) == ("completed", "Which deals?")
    assert (answer.output_text, answer.conversation) == ("Moved.", asked.conversation)
    assert answer.id != asked.id
    assert len(crm.updates) == 1


@pytest.mark.requirement("openai_endpoint.waiting", "openai_endpoint.keys")
async def test_a_note_tells_nothing_of_a_run_of_somebody_else() -> None:
    async with endpoint("Mine.", "Yours.", "Mine again.") as served:
        create = served.client.chat.completions.create
        mine = await create(model="clerk", messages=[user("Hello")])
        note = f"[Run {facts(mine)['run_id']} waits for an approval.]"
        chat = [user("Hello"), said(note), user("And?")]
        await served.client_of("colleague").chat.completions.create(model="clerk", messages=chat)
        theirs = served.prompts()[-1]
        await create(model="clerk", messages=chat)
    assert note in theirs
    assert "Mine." not in theirs
    assert "Mine." in served.prompts()[-1]


@pytest.mark.requirement("openai_endpoint.waiting")
async def test_a_chat_is_told_of_an_approval_and_later_what_came_of_it() -> None:
    async with endpoint(turn(("pay", "hat")), "The hat is paid.", "You are welcome.") as served:
        create = served.client.chat.completions.create
        waits = await create(model="clerk", messages=[user("Pay the hat")])
        told = str(waits.choices[0].message.content)
        [waiting] = (await served.server.get("/approvals", {"status": "waiting"}))["items"]
        path = f"/api/v1/approvals/{waiting['approval_id']}/decide"
        checked(await served.server.client_of("boss").post(path, json={"approved": True}), 200)
        await served.server.finished(facts(waits)["run_id"])
        await create(model="clerk", messages=[user("Pay the hat"), said(told), user("Thanks")])
    assert waits.choices[0].finish_reason == "stop"
    assert waiting["approval_id"] in told
    assert told.endswith(f"[Run {facts(waits)['run_id']} waits for an approval.]")
    assert "The hat is paid." in served.prompts()[-1]
    assert "waits" not in served.prompts()[-1]
    assert served.desk.done == [("pay", "hat")]


@pytest.mark.requirement("openai_endpoint.waiting")
async def test_a_chat_is_told_later_that_the_run_was_cancelled() -> None:
    async with endpoint(turn(("pay", "hat")), "You are welcome.") as served:
        create = served.client.chat.completions.create
        waits = await create(model="clerk", messages=[user("Pay the hat")])
        told = str(waits.choices[0].message.content)
        await served.server.crib.cancel(facts(waits)["run_id"])
        await create(model="clerk", messages=[user("Pay the hat"), said(told), user("Thanks")])
    assert "was cancelled" in served.prompts()[-1]
    assert "waits" not in served.prompts()[-1]
    assert served.desk.done == []


@pytest.mark.requirement("openai_endpoint.waiting")
async def test_a_chat_is_told_later_why_the_run_failed() -> None:
    down = ModelError("auth", "the model is down")
    async with endpoint(turn(("pay", "hat")), down, "You are welcome.") as served:
        create = served.client.chat.completions.create
        waits = await create(model="clerk", messages=[user("Pay the hat")])
        [waiting] = (await served.server.get("/approvals", {"status": "waiting"}))["items"]
        path = f"/api/v1/approvals/{waiting['approval_id']}/decide"
        checked(await served.server.client_of("boss").post(path, json={"approved": True}), 200)
        await served.server.finished(facts(waits)["run_id"])
        told = str(waits.choices[0].message.content)
        await create(model="clerk", messages=[user("Pay the hat"), said(told), user("Thanks")])
    assert "The run failed: " in served.prompts()[-1]
    assert "the model is down" in served.prompts()[-1]


@pytest.mark.requirement("openai_endpoint.client_tools")
async def test_client_calls_of_a_nested_agent_come_out_of_the_outer_one() -> None:
    ask = Message("assistant", (ToolCall("m1", "clerk", json.dumps({"message": "Which hat?"})),))
    outer = agent("desk", tools=("clerk",))
    async with endpoint(ask, turn(("pick", "hat")), "Red.", "The red one.") as served:
        await served.server.crib.save(outer)
        create = served.client.chat.completions.create
        waiting = await create(model="desk", messages=[user("Which?")])
        [call] = waiting.choices[0].message.tool_calls or []
        with pytest.raises(openai.BadRequestError, match="has no call"):
            await create(model="clerk", messages=[user("Which?"), tool(call.id, "red")])
        answer = await create(model="desk", messages=[user("Which?"), tool(call.id, "red")])
    assert (answer.choices[0].message.content, answer.id) == ("The red one.", waiting.id)


@pytest.mark.requirement("openai_endpoint.waiting")
async def test_a_run_for_which_the_server_lacks_a_function_waits_for_a_worker(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'crib.db'}"
    async with await open_crib(store=url):
        pass
    async with endpoint(store=url, functions=False) as served:
        queued = await served.client.chat.completions.create(model="clerk", messages=[user("Look")])
    text = str(queued.choices[0].message.content)
    assert "lacks the Python function of look@1.0.0" in text
    assert text.endswith(f"[Run {facts(queued)['run_id']} waits for a worker.]")
    assert (facts(queued)["status"], queued.choices[0].finish_reason) == ("queued", "stop")


@pytest.mark.requirement("openai_endpoint.errors")
async def test_a_chat_whose_run_is_cancelled_meanwhile_is_a_conflict_that_is_not_repeated() -> None:
    asked, go = asyncio.Event(), asyncio.Event()

    class SlowModel(ScriptedModel):
        async def request(self, request: Request) -> Response:
            asked.set()
            await go.wait()
            return await super().request(request)

    async with endpoint(model=SlowModel(["Hello."])) as served:
        create = served.client.chat.completions.create
        request = asyncio.create_task(create(model="clerk", messages=[user("Hello")]))
        await asked.wait()
        [run] = await served.server.crib.store.journal.runs("default")
        await served.server.crib.cancel(run.run_id)
        go.set()
        with pytest.raises(openai.ConflictError, match="was cancelled") as cancelled:
            await request
        runs = await served.server.crib.store.journal.runs("default")
    assert cancelled.value.code == "cancelled"
    assert len(runs) == 1


@pytest.mark.requirement("openai_endpoint.waiting", "openai_endpoint.responses")
async def test_a_conversation_that_waits_for_an_approval_takes_no_message() -> None:
    async with endpoint(turn(("pay", "hat")), "Paid.") as served:
        waits = await served.client.responses.create(model="clerk", input="Pay the hat")
        with pytest.raises(openai.ConflictError, match="waits in run") as busy:
            await served.client.responses.create(model="clerk", input="And?", previous_response_id=waits.id)
    assert (busy.value.type, busy.value.code) == ("invalid_request_error", "conflict")
    assert waits.status == "completed"
    assert "pay waits for a person" in waits.output_text

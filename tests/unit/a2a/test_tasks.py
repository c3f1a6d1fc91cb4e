"""Agents by A2A, through the SDK's own client over a port."""

from datetime import timedelta
from typing import Any

import pytest
from a2a.types import CancelTaskRequest, GetTaskRequest, ListTasksRequest, SubscribeToTaskRequest, TaskState
from a2a.utils.errors import (
    InvalidParamsError,
    InvalidRequestError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnsupportedOperationError,
)
from google.protobuf.json_format import MessageToDict

from tests.unit.a2a.client import a2a_client, data_of, said, send, state_of, task_from, texts_of
from tests.unit.executions.house import agent, turn
from tests.unit.openai_endpoint.served import endpoint
from toolcrib import Crib, ToolContext, tool
from toolcrib.contracts import ModelError
from toolcrib.llm import Message, Text, ToolCall


@tool(side_effects="none")
async def order(item: str, context: ToolContext) -> str:
    """Order something in a size."""
    size = await context.ask(f"Which size of {item}?", str)
    return f"{item} in {size}"


def with_order(crib: Crib) -> None:
    crib.add(order)


@pytest.mark.requirement("a2a.tasks")
@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON"])
async def test_a_message_is_a_task_and_its_context_a_conversation(binding: str) -> None:
    async with endpoint("Red.", "Because.") as served, a2a_client(served, binding=binding, streaming=False) as client:
        first = await task_from(client, said("Which colour?"))
        second = await task_from(client, said("Why?", context=first.context_id))
        again = await client.get_task(GetTaskRequest(id=first.id, history_length=1))
        bare = await client.get_task(GetTaskRequest(id=first.id, history_length=0))
        answer = await served.server.crib.executions.respond(first.id)
        prompts = served.prompts()

    [artifact] = first.artifacts
    assert (state_of(first), texts_of(artifact.parts)) == ("completed", ["Red."])
    assert (first.id, first.context_id) == (answer.run_id, answer.conversation_id)
    assert second.context_id == first.context_id
    assert second.id != first.id
    assert "Why?" in prompts[1]
    assert [texts_of(message.parts) for message in again.history] == [["Which colour?"]]
    assert [*bare.history] == []
    assert MessageToDict(first.metadata)["toolcrib"]["status"] == "completed"


@pytest.mark.requirement("a2a.stream")
@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON"])
async def test_a_stream_has_the_task_the_answer_as_it_comes_and_the_end(binding: str) -> None:
    looked = Message("assistant", (Text("I look."), ToolCall("m1", "look", '{"item": "hat"}')))
    async with endpoint(looked, "It is here.") as served, a2a_client(served, binding=binding) as client:
        events = await send(client, said("Where is the hat?"))

    kinds = [event.WhichOneof("payload") for event in events]
    assert (kinds[0], kinds[-1]) == ("task", "status_update")
    assert set(kinds[1:-1]) == {"artifact_update"}
    shown = ""
    for event in events[1:-1]:
        update = event.artifact_update
        shown = "".join([shown if update.append else "", *texts_of(update.artifact.parts)])
    assert shown == "It is here."
    assert any("I look." in texts_of(event.artifact_update.artifact.parts)[0] for event in events[1:-1])
    assert events[-2].artifact_update.last_chunk
    assert state_of(events[-1].status_update) == "completed"


@pytest.mark.requirement("a2a.tasks")
async def test_an_answer_that_is_structured_is_data() -> None:
    schema = {"type": "object", "properties": {"colour": {"type": "string"}}, "required": ["colour"]}
    definition = agent(tools=(), response_format="structured", response_schema=schema)
    async with endpoint('{"colour": "red"}', definition=definition) as served, a2a_client(served) as client:
        events = await send(client, said("Which colour?", data={"shade": 3}))
        [prompt] = served.prompts()

    [update] = [event.artifact_update for event in events if event.WhichOneof("payload") == "artifact_update"]
    assert data_of(update.artifact.parts) == [{"colour": "red"}]
    assert '{"shade":3}' in prompt


@pytest.mark.requirement("a2a.tasks")
async def test_a_failed_run_is_a_failed_task_that_says_why() -> None:
    failure = ModelError("auth", "the key is refused", status=401)
    async with endpoint(failure) as served, a2a_client(served, streaming=False) as client:
        task = await task_from(client, said("Hi"))

    assert state_of(task) == "failed"
    assert texts_of(task.status.message.parts) == ["the key is refused"]
    assert data_of(task.status.message.parts)[0]["error"]["code"] == "AUTH_REQUIRED"
    assert [*task.artifacts] == []


@pytest.mark.requirement("a2a.input")
async def test_a_question_needs_input_and_the_answer_continues_the_task() -> None:
    definition = agent(tools=("order",))
    script = (turn(("order", "hat")), "Ordered.")
    async with endpoint(*script, definition=definition, prepare=with_order) as served, a2a_client(served) as client:
        *_, asked = await send(client, said("Order a hat"))
        task_id = asked.status_update.task_id
        with pytest.raises(InvalidParamsError, match="is of context"):
            await send(client, said("L", task=task_id, context="other"))
        *_, ended = await send(client, said("L", task=task_id))
        task = await client.get_task(GetTaskRequest(id=task_id))
        with pytest.raises(UnsupportedOperationError, match="has ended"):
            await send(client, said("M", task=task_id))

    status = asked.status_update.status
    assert (state_of(asked.status_update), texts_of(status.message.parts)) == ("input_required", ["Which size of hat?"])
    assert data_of(status.message.parts)[0]["question"]["text"] == "Which size of hat?"
    assert state_of(ended.status_update) == "completed"
    assert [texts_of(each.parts) for each in task.history] == [["Order a hat"], ["Which size of hat?"], ["L"]]
    assert [each.role for each in task.history] == [1, 2, 1]


@pytest.mark.requirement("a2a.input")
@pytest.mark.parametrize(("approved", "status"), [(True, "success"), (False, "denied")])
async def test_an_approval_needs_input_and_data_decides(approved: bool, status: str) -> None:
    async with endpoint(turn(("pay", "hat")), "Done.") as served, a2a_client(served, streaming=False) as client:
        task = await task_from(client, said("Pay for the hat"))
        [asked] = data_of(task.status.message.parts)[0]["approvals"]
        with pytest.raises(InvalidParamsError, match="waits for approvals"):
            await task_from(client, said("Yes", task=task.id))
        decision = {"approved": approved, "reason": "so be it"}
        with pytest.raises(InvalidRequestError):
            await task_from(client, said(data=decision, task=task.id))
        served.server.app.state.self_approval = True
        ended = await task_from(client, said(data=decision, task=task.id))
        [envelope] = (await served.server.crib.executions.respond(task.id)).tools_by_id.values()

    assert (state_of(task), asked["name"], asked["input"]) == ("input_required", "pay", {"item": "hat"})
    assert (state_of(ended), envelope.status) == ("completed", status)


@pytest.mark.requirement("a2a.input")
async def test_a_call_of_the_client_needs_input_and_its_result_is_data() -> None:
    async with endpoint(turn(("pick", "hat")), "The red one.") as served, a2a_client(served, streaming=False) as client:
        task = await task_from(client, said("Which hat?"))
        [call] = data_of(task.status.message.parts)[0]["tool_calls"]
        wrongs: list[Any] = [{"x": 1}, {"tool_results": []}, {"tool_results": [{"output": 1}]}]
        for wrong in wrongs:
            with pytest.raises(InvalidParamsError, match="tool_results"):
                await task_from(client, said(data=wrong, task=task.id))
        result = {"call_id": call["call_id"], "run_id": call["run_id"], "output": {"number": 7}}
        ended = await task_from(client, said(data={"tool_results": [result]}, task=task.id))
        [envelope] = (await served.server.crib.executions.respond(task.id)).tools_by_id.values()

    assert (state_of(task), call["name"], state_of(ended)) == ("input_required", "pick", "completed")
    assert envelope.output == {"number": 7}
    assert isinstance(envelope.output["number"], int)


@pytest.mark.requirement("a2a.listing")
async def test_a_client_lists_its_own_tasks_in_pages_and_no_others() -> None:
    script = ("One.", "Two.", turn(("pay", "hat")))
    async with endpoint(*script) as served, a2a_client(served, streaming=False) as client:
        first = await task_from(client, said("1"))
        second = await task_from(client, said("2", context=first.context_id))
        third = await task_from(client, said("3"))
        page = await client.list_tasks(ListTasksRequest(page_size=2, include_artifacts=True))
        rest = await client.list_tasks(ListTasksRequest(page_size=2, page_token=page.next_page_token))
        of_context = await client.list_tasks(ListTasksRequest(context_id=first.context_id))
        waiting = await client.list_tasks(ListTasksRequest(status=TaskState.TASK_STATE_INPUT_REQUIRED))
        late = ListTasksRequest()
        late.status_timestamp_after.FromDatetime(third.status.timestamp.ToDatetime() + timedelta(days=1))
        later = await client.list_tasks(late)
        with pytest.raises(InvalidParamsError, match="there is no page"):
            await client.list_tasks(ListTasksRequest(page_token="elsewhere"))
        async with a2a_client(served, key="colleague", streaming=False) as other:
            foreign = await other.list_tasks(ListTasksRequest())
            with pytest.raises(TaskNotFoundError):
                await other.get_task(GetTaskRequest(id=first.id))
            with pytest.raises(TaskNotFoundError):
                await task_from(other, said("Hi", task=third.id))
            with pytest.raises(InvalidParamsError, match="conversation"):
                await task_from(other, said("Hi", context=first.context_id))

    assert [task.id for task in (*page.tasks, *rest.tasks)] == [third.id, second.id, first.id]
    assert (page.total_size, page.page_size, rest.next_page_token) == (3, 2, "")
    assert texts_of(page.tasks[1].artifacts[0].parts) == ["Two."]
    assert [*rest.tasks[0].artifacts] == []
    assert {task.id for task in of_context.tasks} == {first.id, second.id}
    assert [task.id for task in waiting.tasks] == [third.id]
    assert (later.total_size, foreign.total_size) == (0, 0)


@pytest.mark.requirement("a2a.listing")
async def test_a_task_that_waits_is_cancelled_and_one_that_has_ended_is_not() -> None:
    async with endpoint(turn(("pay", "hat"))) as served, a2a_client(served) as client:
        *_, asked = await send(client, said("Pay for the hat"))
        task_id = asked.status_update.task_id
        stream = client.subscribe(SubscribeToTaskRequest(id=task_id))
        followed = [await anext(stream), await anext(stream)]
        cancelled = await client.cancel_task(CancelTaskRequest(id=task_id))
        followed += [event async for event in stream]
        with pytest.raises(TaskNotCancelableError, match="has ended"):
            await client.cancel_task(CancelTaskRequest(id=task_id))
        with pytest.raises(UnsupportedOperationError, match="has ended"):
            [event async for event in client.subscribe(SubscribeToTaskRequest(id=task_id))]

    assert [event.WhichOneof("payload") for event in followed] == ["task", "status_update", "status_update"]
    assert [state_of(event.status_update) for event in followed[1:]] == ["input_required", "canceled"]
    assert state_of(cancelled) == "canceled"


@pytest.mark.requirement("a2a.tasks")
async def test_a_client_that_does_not_wait_asks_again() -> None:
    async with endpoint("Red.") as served, a2a_client(served, streaming=False, at_once=True) as client:
        begun = await task_from(client, said("Which colour?"))
        async for _ in served.server.crib.executions.follow(begun.id, drive=True):
            pass
        ended = await client.get_task(GetTaskRequest(id=begun.id))

    assert state_of(begun) in {"submitted", "working"}
    assert state_of(ended) == "completed"


@pytest.mark.requirement("a2a.tasks")
async def test_arguments_of_an_agent_with_a_schema_of_its_own_are_data() -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {"message": {"type": "string"}, "deal": {"type": "integer"}},
        "required": ["message", "deal"],
    }
    definition = agent(tools=(), input_schema=schema)
    async with endpoint("Done.", definition=definition) as served, a2a_client(served, streaming=False) as client:
        task = await task_from(client, said(data={"message": "Close it", "deal": 7}))
        run = await served.server.crib.store.journal.run(task.id)
        wrong = await task_from(client, said(data={"message": "Close it", "deal": "all"}))

    assert (state_of(task), run.request.input) == ("completed", {"message": "Close it", "deal": 7})
    assert texts_of(task.history[0].parts) == ["Close it"]
    assert state_of(wrong) == "failed"
    assert "deal" in texts_of(wrong.status.message.parts)[0]

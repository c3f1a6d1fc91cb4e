"""The Responses API with the clients of OpenAI's SDK."""

from typing import Any

import openai
import pytest

from tests.unit.executions.house import turn
from tests.unit.openai_endpoint.served import PROMPT, endpoint


@pytest.mark.requirement("openai_endpoint.responses", "openai_endpoint.clients")
async def test_a_stored_response_is_a_turn_that_the_next_one_continues() -> None:
    async with endpoint("Hello Ann.", "You are Ann.", "Still Ann.") as served:
        create = served.client.responses.create
        first = await create(model="clerk", input="I am Ann.", metadata={"ticket": "7"}, temperature=0.5)
        second = await create(model="clerk", input="Who am I?", previous_response_id=first.id)
        assert second.conversation is not None
        third = await create(model="clerk", input="And now?", conversation=second.conversation.id)
        conversation = await served.server.get(f"/ai/conversations/{second.conversation.id}")
    assert [answer.output_text for answer in (first, second, third)] == ["Hello Ann.", "You are Ann.", "Still Ann."]
    assert [turn["message"] for turn in conversation["turns"]] == ["I am Ann.", "Who am I?", "And now?"]
    assert (first.status, first.metadata, first.model) == ("completed", {"ticket": "7"}, "clerk")
    assert second.previous_response_id == first.id
    assert first.usage is not None
    assert first.usage.total_tokens == first.usage.input_tokens + first.usage.output_tokens > 0
    assert [message.text for message in served.model.requests[1].messages][:1] == ["I am Ann."]


@pytest.mark.requirement("openai_endpoint.responses", "openai_endpoint.system")
async def test_one_that_is_not_stored_takes_all_messages_and_keeps_no_conversation() -> None:
    items: Any = [
        {"role": "user", "content": [{"type": "input_text", "text": "I am Ann."}]},
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hello Ann."}]},
        {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "a hat"},
        {"role": "user", "content": "Who am I?"},
    ]
    async with endpoint("Ann.") as served:
        answer = await served.client.responses.create(model="clerk", input=items, instructions="Be rude.", store=False)
        conversations = (await served.server.get("/ai/conversations"))["items"]
        [request] = served.model.requests
        with pytest.raises(openai.BadRequestError, match="was not stored"):
            await served.client.responses.create(model="clerk", input="More?", previous_response_id=answer.id)
    assert (answer.output_text, answer.conversation, conversations) == ("Ann.", None, [])
    shown = request.messages[-1].text
    assert shown.endswith("\n\nWho am I?")
    assert "Be rude." in shown
    assert "look({})" in shown
    assert "a hat" in shown
    assert PROMPT in request.system
    assert "rude" not in request.system


@pytest.mark.requirement("openai_endpoint.streaming", "openai_endpoint.clients")
async def test_a_stream_has_typed_events_and_its_items_are_those_of_the_response() -> None:
    async with endpoint(turn(("look", "hat"), text="I look."), "It is here.") as served:
        async with served.client.responses.stream(model="clerk", input="Where?") as stream:
            events = [event async for event in stream]
            final = await stream.get_final_response()
        again = await served.client.responses.retrieve(final.id)
    assert [event.sequence_number for event in events] == sorted({event.sequence_number for event in events})
    kinds = [event.type for event in events]
    assert kinds[:2] == ["response.created", "response.in_progress"]
    assert kinds[-1] == "response.completed"
    deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert "".join(deltas) == "I look.It is here."
    items: list[Any] = list(final.output)
    assert [(item.phase, item.content[0].text) for item in items] == [
        ("commentary", "I look."),
        ("final_answer", "It is here."),
    ]
    done = [event.item.id for event in events if event.type == "response.output_item.done"]
    assert done == [item.id for item in items]
    assert (again.output_text, again.status, again.usage) == ("It is here.", "completed", final.usage)


@pytest.mark.requirement("openai_endpoint.current")
async def test_a_response_in_the_background_is_read_and_cancelled_by_its_id() -> None:
    async with endpoint(turn(("pay", "hat")), "Paid.") as served:
        begun = await served.client.responses.create(model="clerk", input="Pay", background=True)
        await served.server.finished(run_of(begun))
        waits = await served.client.responses.retrieve(begun.id)
        cancelled = await served.client.responses.cancel(begun.id)
        again = await served.client.responses.cancel(begun.id)
        for key in ("reader", "stranger"):
            for act in (served.client_of(key).responses.retrieve, served.client_of(key).responses.cancel):
                with pytest.raises(openai.NotFoundError, match="there is no response"):
                    await act(begun.id)
        with pytest.raises(openai.NotFoundError, match="there is no response"):
            await served.client.responses.retrieve("resp_of_nobody")
    assert begun.status in {"queued", "in_progress"}
    assert "pay waits for a person to approve it" in waits.output_text
    assert (cancelled.status, again.status) == ("cancelled", "cancelled")
    assert cancelled.id == begun.id


def run_of(response: Any) -> str:
    return response.model_extra["toolcrib"]["run_id"]


@pytest.mark.requirement("openai_endpoint.responses")
async def test_only_the_last_response_of_its_own_agent_is_continued() -> None:
    async with endpoint("One.", "Two.") as served:
        create = served.client.responses.create
        first = await create(model="clerk", input="1")
        await create(model="clerk", input="2", previous_response_id=first.id)
        with pytest.raises(openai.ConflictError, match="a later response has continued"):
            await create(model="clerk", input="3", previous_response_id=first.id)
        with pytest.raises(openai.NotFoundError, match="no conversation"):
            await create(model="clerk", input="3", conversation={"id": "conv_of_nobody"})
        served.server.crib.agent("other", model="scripted:m", system_prompt="Other.")
        with pytest.raises(openai.BadRequestError, match="is of 'clerk', not of 'other'"):
            await create(model="other", input="3", previous_response_id=first.id)
        with pytest.raises(openai.NotFoundError) as unknown:
            await create(model="clerk", input="3", previous_response_id="resp_0")
    assert unknown.value.code == "previous_response_not_found"
    assert unknown.value.param == "previous_response_id"
    assert len(served.model.requests) == 2

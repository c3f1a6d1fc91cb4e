"""Within one run: results are shortened when the prompt outgrows the model's room, and what cannot fit is refused."""

from typing import Any

import orjson
import pytest

from tests.unit.conversations.talk import ANN, BOB, calls, helper, talking
from toolcrib.agents.model.context_window import trim_message
from toolcrib.contracts import AgentMemory, LimitReached
from toolcrib.llm import Message, Request, ToolCall, ToolResult, user
from toolcrib.llm.base.prices import context_window, estimate_tokens

pytestmark = pytest.mark.requirement("conversations.trimming")

LONG = '{"word": "abcd", "size": 400}'


def results(request: Request) -> list[str]:
    return [part.text for message in request.messages for part in message.parts if isinstance(part, ToolResult)]


def tokens(request: Request) -> int:
    return estimate_tokens(request.messages, system=request.system, tools=request.tools)


async def test_older_results_are_shortened_first_and_many_at_once():
    sizes = (orjson.dumps({"word": "abcd", "size": 400 + number}).decode() for number in range(7))
    script = [*(calls(("look_up", size)) for size in sizes), "done"]
    async with talking(script, helper(llm={"max_input_tokens": 2000})) as talk:
        answer = await talk.say("Look seven times.")

    assert answer.response == "done"
    assert all(tokens(request) <= 2000 for request in talk.model.requests)
    short = [["beginning of" in text for text in results(request)] for request in talk.model.requests]
    assert short[-1] == sorted(short[-1], reverse=True)
    assert not short[-1][-1]
    assert len({sum(row) for row in short}) < len(short) - 2  # in jumps, not at each turn


async def test_the_newest_results_are_shortened_if_nothing_else_helps():
    many = calls(*(("look_up", LONG) for _ in range(6)))
    async with talking([many, "done"], helper(llm={"max_input_tokens": 1500})) as talk:
        answer = await talk.say("Look six times at once.")

    assert answer.response == "done"
    assert all("beginning of" in text for text in results(talk.model.requests[-1]))


async def test_what_cannot_fit_ends_with_one_error_that_has_the_numbers():
    async with talking(["never"], helper(llm={"max_input_tokens": 500})) as talk:
        answer = await talk.say("x" * 8000)
        events = [entry.event for entry in await talk.crib.store.journal.events(answer.run_id)]

    assert (answer.status, answer.stop_reason) == ("failed", "error")
    assert answer.error is not None
    assert "'scripted:model' may read 500; send a shorter message" in answer.error.message
    assert [event.limit for event in events if isinstance(event, LimitReached)] == ["max_input_tokens"]
    assert not talk.model.requests


async def test_a_run_that_goes_on_shortens_the_same_and_the_next_turn_shows_it_so():
    script: list[Any] = [*(calls(("look_up", LONG)) for _ in range(4)), calls(("send", '{"text": "x"}')), "sent", "ok"]
    agent = helper(llm={"max_input_tokens": 1500}, memory=AgentMemory(max_context_tokens=1400))
    async with talking(script, agent) as talk:
        waiting = await talk.say("Look, then send.")
        await talk.crib.acting_as(BOB).decide(waiting.run_id, "t5.c1", approve=True)
        await talk.crib.resume(waiting.run_id)
        await talk.say("And now?", waiting.conversation_id, who=ANN)

    before, after, following = talk.model.requests[-3:]
    assert after.messages[: len(before.messages)] == before.messages
    assert following.messages[: len(after.messages)] == after.messages
    assert any("beginning of" in text for text in results(following))


def test_what_is_short_stays_the_very_same_and_shortening_twice_is_shortening_once():
    short = Message("user", (ToolResult("1", "a", "x" * 500),))
    long = Message("user", (ToolResult("1", "a", "x" * 501),))

    assert trim_message(short) is short
    assert trim_message(trim_message(long)) == trim_message(long) != long
    assert trim_message(user("x" * 9000)).text == "x" * 9000


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (orjson.dumps({"ids": list(range(1000)), "text": "y" * 2000}).decode(), dict),
        ("{" + "x" * 2000, {}),
        (orjson.dumps({f"key {number}": number for number in range(500)}).decode(), {}),
    ],
)
def test_long_arguments_become_short_ones_that_are_still_an_object(args: str, expected: Any):
    (call,) = trim_message(Message("assistant", (ToolCall("1", "a", args, signature="seal"),))).calls

    found = orjson.loads(call.args)
    assert isinstance(found, dict)
    assert expected is dict or found == expected
    assert len(call.args) <= 1000
    assert call.signature is None


def test_the_room_of_a_known_model_is_its_context_without_the_answer():
    assert context_window("anthropic", "claude-sonnet-4-5") == 200_000
    assert context_window("scripted", "model") is None

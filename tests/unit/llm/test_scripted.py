"""The scripted twin of a model."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from toolcrib.contracts.base.errors import InvalidInput, ModelError
from toolcrib.llm import (
    CallDelta,
    CallEnd,
    CallStart,
    Cost,
    Done,
    Message,
    Opaque,
    Request,
    Response,
    ScriptedModel,
    Text,
    TextChunk,
    Thinking,
    ThinkingChunk,
    TokenUsage,
    ToolCall,
    ToolResult,
    UsageUpdate,
    assistant,
    user,
)

pytestmark = pytest.mark.requirement("llm.scripted_twin")

ASK = Request(messages=(user("Two plus two?"),))


async def test_answers_come_in_order_and_every_request_is_kept():
    model = ScriptedModel(["four", assistant("five")], name="sums")

    answers = [await model.request(ASK), await model.request(ASK)]

    assert [answer.message.text for answer in answers] == ["four", "five"]
    assert [answer.stop for answer in answers] == ["end", "end"]
    assert answers[0].model == model.name == "scripted:sums"
    assert model.requests == [ASK, ASK]


async def test_a_streamed_answer_adds_up_to_the_same_response():
    call = ToolCall("c1", "add", '{"a": 2}')
    message = Message("assistant", (Thinking("let me see"), Text("I will add."), call))

    events = [event async for event in ScriptedModel([message]).stream(ASK)]

    assert "".join(e.text for e in events if isinstance(e, ThinkingChunk)) == "let me see"
    assert "".join(e.text for e in events if isinstance(e, TextChunk)) == "I will add."
    assert [e for e in events if isinstance(e, CallStart | CallDelta | CallEnd)] == [
        CallStart(0, "c1", "add"),
        CallDelta(0, '{"a": 2}'),
        CallEnd(0, call),
    ]
    *_, usage, done = events
    assert isinstance(done, Done)
    assert usage == UsageUpdate(done.response.usage)
    assert done.response.message == message
    assert done.response.stop == "tool_calls"
    assert done.response == await ScriptedModel([message]).request(ASK)


async def test_a_function_sees_the_request_and_may_wait():
    async def echo(request: Request) -> str:
        return request.messages[-1].text.upper()

    assert (await ScriptedModel(echo).request(ASK)).message.text == "TWO PLUS TWO?"
    assert (await ScriptedModel(lambda request: request.messages[0].text).request(ASK)).message.text == "Two plus two?"


async def test_tokens_are_estimated_by_characters_and_marked():
    answer = await ScriptedModel(["four"]).request(Request(messages=(user("a" * 40),), system="b" * 40))

    assert answer.usage == TokenUsage(input=21, output=1, estimated=True)


async def test_every_part_counts_for_the_estimate_and_only_what_is_said_is_streamed():
    parts = (
        Thinking("1234", "5678"),
        Opaque("x", "123456", "said"),
        ToolResult("c", "f", "12"),
        ToolCall("c", "f", "123"),
    )

    events = [event async for event in ScriptedModel([Message("assistant", parts)]).stream(ASK)]

    assert "".join(event.text for event in events if isinstance(event, TextChunk)) == "said"
    assert isinstance(events[-1], Done)
    assert events[-1].response.usage.output == 5


async def test_a_response_s_own_usage_stands():
    response = Response(assistant("x"), "length", "max_tokens", TokenUsage(7, 9), "m", "id")

    assert await ScriptedModel([response]).request(ASK) == response


async def test_a_scripted_failure_is_raised():
    model = ScriptedModel([ModelError("overloaded", "busy"), "ok"])

    with pytest.raises(ModelError, match="busy"):
        await model.request(ASK)
    assert (await model.request(ASK)).message.text == "ok"


async def test_a_script_that_ended_says_how_many_answers_it_had():
    model = ScriptedModel(["one"], name="short")
    await model.request(ASK)

    with pytest.raises(InvalidInput, match="scripted:short was asked 2 times, but its script has 1 answers"):
        await model.request(ASK)


def test_a_script_costs_nothing_and_says_so():
    assert ScriptedModel([]).cost(TokenUsage(10, 10), datetime.now(UTC)) == Cost(Decimal(0), "scripted")
    assert repr(ScriptedModel([], name="x")) == "ScriptedModel('scripted:x')"

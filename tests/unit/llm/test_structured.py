"""Structured answers at endpoints that cannot enforce a schema, over a transport in memory."""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

from toolcrib.infrastructure.net import HttpResponse, HttpStream, Timeouts
from toolcrib.llm import (
    AnthropicWire,
    CallDelta,
    CallEnd,
    CallStart,
    ChatWire,
    Done,
    Endpoint,
    Model,
    Quirks,
    Reasoning,
    Request,
    Text,
    TextChunk,
    TokenUsage,
    Tool,
    ToolCall,
    ToolSet,
    UsageUpdate,
    user,
)

pytestmark = pytest.mark.requirement("llm.structured_output")

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "integer", "minimum": 0}}, "required": ["a"]}
ASK = Request(messages=(user("how many?"),), output_schema=SCHEMA)
LOOK = Tool("look", "Looks.", {"type": "object", "properties": {}})


class MemoryTransport:
    """The in-memory twin of `HttpTransport`: gives one answer and keeps what was sent."""

    def __init__(self, answer: Any, *events: Any) -> None:
        self._answer = json.dumps(answer).encode()
        self._events = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)
        self.sent: dict[str, Any] = {}
        self.url = ""

    async def post(self, url: str, body: bytes, headers: Mapping[str, str], timeouts: Timeouts) -> HttpResponse:
        self.url, self.sent = url, json.loads(body)
        return HttpResponse(200, {}, self._answer, url)

    @asynccontextmanager
    async def stream(
        self, url: str, body: bytes, headers: Mapping[str, str], timeouts: Timeouts
    ) -> AsyncGenerator[HttpStream]:
        self.url, self.sent = url, json.loads(body)
        yield HttpStream(200, {}, url, self._chunks())

    async def _chunks(self) -> AsyncIterator[bytes]:
        yield self._events


def model(transport: MemoryTransport, quirks: Quirks, *, anthropic: bool = False) -> Model:
    wire = AnthropicWire() if anthropic else ChatWire("x")
    endpoint = Endpoint(provider="x", model="m", base_url="http://x", wire=wire, quirks=quirks, key_required=False)
    return Model(endpoint, transport)


def called(*names: str) -> dict[str, Any]:
    calls = [{"id": f"c{i}", "function": {"name": name, "arguments": '{"a": 3}'}} for i, name in enumerate(names)]
    return {"choices": [{"message": {"tool_calls": calls}, "finish_reason": "tool_calls"}]}


async def test_without_any_means_the_prompt_states_the_schema():
    transport = MemoryTransport({"choices": [{"message": {"content": "{}"}}]})

    await model(transport, Quirks(structured="prompt")).request(ASK)

    assert "response_format" not in transport.sent
    assert transport.sent["messages"][0]["content"].startswith("Answer with one JSON value and nothing else. Its JSON")
    assert '"minimum":0' in transport.sent["messages"][0]["content"]


async def test_guaranteed_json_is_asked_for_beside_the_prompt():
    transport = MemoryTransport({"choices": [{"message": {"content": "{}"}}]})

    await model(transport, Quirks(structured="json_object")).request(ASK)

    assert transport.sent["response_format"] == {"type": "json_object"}
    assert '"minimum":0' in transport.sent["messages"][0]["content"]


async def test_an_answer_tool_is_forced_and_its_arguments_are_the_text():
    transport = MemoryTransport(called("answer"))

    answer = await model(transport, Quirks(structured="tool")).request(ASK)

    assert transport.sent["tool_choice"] == {"type": "function", "function": {"name": "answer"}}
    assert transport.sent["tools"][0]["function"]["parameters"] == SCHEMA
    assert answer.message.parts == (Text('{"a": 3}'),)
    assert (answer.stop, answer.raw_stop) == ("end", "tool_calls")


async def test_beside_other_tools_the_model_may_still_call_them():
    transport = MemoryTransport(called("look", "answer_"))
    request = Request(messages=ASK.messages, output_schema=SCHEMA, tools=ToolSet([LOOK, Tool("answer", "", SCHEMA)]))

    answer = await model(transport, Quirks(structured="tool")).request(request)

    assert transport.sent["tool_choice"] == "required"
    assert [tool["function"]["name"] for tool in transport.sent["tools"]] == ["look", "answer", "answer_"]
    assert answer.message.parts == (ToolCall("c0", "look", '{"a": 3}'), Text('{"a": 3}'))
    assert answer.stop == "tool_calls"


async def test_beside_tools_that_it_may_not_call_the_model_is_forced_to_the_answer():
    transport = MemoryTransport(called("answer"))
    request = Request(messages=ASK.messages, output_schema=SCHEMA, tools=ToolSet([LOOK]), tool_choice="none")

    answer = await model(transport, Quirks(structured="tool")).request(request)

    assert transport.sent["tool_choice"] == {"type": "function", "function": {"name": "answer"}}
    assert answer.message.text == '{"a": 3}'


async def test_a_model_that_thinks_is_told_and_not_forced():
    transport = MemoryTransport(called("look"))
    request = Request(messages=ASK.messages, output_schema=SCHEMA, reasoning=Reasoning("low"))

    answer = await model(transport, Quirks(structured="tool")).request(request)

    assert "tool_choice" not in transport.sent
    assert "calling the tool `answer`" in transport.sent["messages"][0]["content"]
    assert answer.message.calls


async def test_a_streamed_answer_tool_is_streamed_text():
    deltas = [
        {"tool_calls": [{"index": 0, "id": "c0", "function": {"name": "answer", "arguments": '{"a"'}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": ": 3}"}}]},
        {"tool_calls": [{"index": 1, "id": "c1", "function": {"name": "look", "arguments": "{}"}}]},
    ]
    chunks = [{"choices": [{"delta": delta}]} for delta in deltas]
    end: dict[str, Any] = {"choices": [{"delta": {}, "finish_reason": "tool_calls"}], "usage": {"prompt_tokens": 1}}
    transport = MemoryTransport({}, *chunks, end)
    request = Request(messages=ASK.messages, output_schema=SCHEMA, tools=ToolSet([LOOK]))

    *events, done = [event async for event in model(transport, Quirks(structured="tool")).stream(request)]

    look = ToolCall("c1", "look", "{}")
    assert [event for event in events if not isinstance(event, UsageUpdate)] == [
        TextChunk('{"a"'),
        TextChunk(": 3}"),
        CallStart(0, "c1", "look"),
        CallDelta(0, "{}"),
        CallEnd(0, look),
    ]
    assert isinstance(done, Done)
    assert done.response.message.parts == (Text('{"a": 3}'), look)


async def test_a_schema_beyond_anthropic_s_dialect_becomes_a_tool():
    call = {"type": "tool_use", "id": "c", "name": "answer", "input": {"a": 3}}
    transport = MemoryTransport({"content": [call], "stop_reason": "tool_use"})

    response = await model(transport, Quirks(strict="anthropic"), anthropic=True).request(ASK)

    assert transport.sent["tool_choice"] == {"type": "tool", "name": "answer"}
    assert "output_config" not in transport.sent
    assert response.message.text == '{"a": 3}'


async def test_where_the_api_enforces_a_schema_nothing_is_added():
    transport = MemoryTransport({"choices": [{"message": {"content": "{}"}}]})

    response = await model(transport, Quirks()).request(ASK)

    assert transport.url == "http://x/chat/completions"
    assert transport.sent["model"] == "m"
    assert transport.sent["response_format"]["type"] == "json_schema"
    assert len(transport.sent["messages"]) == 1
    assert response.usage.estimated
    assert response.usage.input > 0


def test_the_price_of_a_call_comes_from_the_model_s_table():
    cost = model(MemoryTransport({}), Quirks()).cost(TokenUsage(1, 1), datetime.now(UTC))

    assert cost.usd is None

"""The Anthropic Messages wire: what is sent, and what comes back."""

import json
from collections.abc import Sequence
from typing import Any

import orjson
import pytest

from toolcrib.contracts.base.errors import ModelError
from toolcrib.llm import (
    AnthropicWire,
    CallDelta,
    CallEnd,
    CallStart,
    Done,
    Event,
    Message,
    NamedTool,
    Opaque,
    Quirks,
    Reasoning,
    Request,
    Response,
    Text,
    TextChunk,
    Thinking,
    TokenUsage,
    Tool,
    ToolCall,
    ToolResult,
    ToolSet,
    user,
)

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
CLOSED = {**SCHEMA, "additionalProperties": False}
ANTHROPIC = Quirks(strict="anthropic", penalties=False)


def sent_bytes(request: Request, quirks: Quirks = ANTHROPIC, *, stream: bool = False) -> bytes:
    path, body = AnthropicWire().build(request, quirks, stream=stream)
    assert path == "/v1/messages"
    return orjson.dumps(body)


def body_of(request: Request, quirks: Quirks = ANTHROPIC, *, stream: bool = False) -> dict[str, Any]:
    return json.loads(sent_bytes(request, quirks, stream=stream))


def ask(*messages: Message, **settings: Any) -> Request:
    return Request(model="m", messages=messages or (user("hi"),), **settings)


def blocks_of(*parts: Any) -> list[dict[str, Any]]:
    (message,) = body_of(ask(Message("assistant", parts)))["messages"]
    return message["content"]


def whole(*blocks: dict[str, Any], stop: str | None = "end_turn", **more: Any) -> Response:
    content: dict[str, Any] = {"id": "i", "model": "m", "content": blocks, "stop_reason": stop, "usage": {}, **more}
    return AnthropicWire().parse(json.dumps(content).encode())


def fed(*events: dict[str, Any]) -> list[Event]:
    decoder = AnthropicWire().decoder()
    return [told for event in events for told in decoder.feed(json.dumps(event).encode())] + list(decoder.close())


def block_events(start: dict[str, Any], *deltas: dict[str, Any], index: int = 0) -> list[dict[str, Any]]:
    return [
        {"type": "content_block_start", "index": index, "content_block": start},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


BEGIN = {"type": "message_start", "message": {"id": "i", "model": "m", "usage": {"input_tokens": 3}}}
DELTA = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 5}}
END = [DELTA, {"type": "message_stop"}]


def response_in(events: Sequence[Event]) -> Response:
    done = events[-1]
    assert isinstance(done, Done)
    return done.response


@pytest.mark.requirement("llm.anthropic_requests")
def test_a_history_is_sent_as_alternating_turns_of_blocks():
    history = (
        user("hi"),
        user("there"),
        Message("assistant", (Text(""),)),
        Message("assistant", (Text("I look."), ToolCall("c:1", "look", '{"a": 1.0}'))),
        Message("user", (ToolResult("c:1", "look", "seen"), ToolResult("d", "look", "no", is_error=True))),
    )

    body = body_of(ask(*history, system="Be brief."))

    assert body == {
        "model": "m",
        "max_tokens": 4096,
        "system": "Be brief.",
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "hi"}, {"type": "text", "text": "there"}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "I look."},
                    {"type": "tool_use", "id": "c_1", "name": "look", "input": {"a": 1.0}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "c_1", "content": "seen"},
                    {"type": "tool_result", "tool_use_id": "d", "content": "no", "is_error": True},
                ],
            },
        ],
    }


@pytest.mark.requirement("llm.nothing_lost")
def test_arguments_and_opaque_blocks_are_sent_byte_for_byte():
    raw = '{"type": "new_block",  "n": 1e5, "big": 18446744073709551616}'

    body = sent_bytes(ask(Message("assistant", (ToolCall("c", "f", '{"n":1e5}'), Opaque("anthropic", raw)))))

    assert b'"input":{"n":1e5}' in body
    assert raw.encode() in body


@pytest.mark.requirement("llm.nothing_lost")
def test_an_unknown_block_comes_and_goes_byte_for_byte():
    raw = '{"type": "new_block",  "n": 1e5, "big": 18446744073709551616}'
    body = b'{"content": [%s], "stop_reason": "end_turn"}' % raw.encode()

    answer = AnthropicWire().parse(body)

    assert answer.message.parts == (Opaque("anthropic", raw),)
    start = b'{"type":"content_block_start","index":0,"content_block":%s}' % raw.encode()
    decoder = AnthropicWire().decoder()
    rest = [{"type": "content_block_stop", "index": 0}, *END]
    events = [event for data in (start, *map(orjson.dumps, rest)) for event in decoder.feed(data)]
    assert response_in(events).message == answer.message


@pytest.mark.requirement("llm.anthropic_requests")
@pytest.mark.parametrize(
    ("args", "sent"),
    [("", {}), ('{"a": 1', {"invalid_json": '{"a": 1'}), ("[1]", {"not_an_object": [1]})],
)
def test_arguments_that_are_no_object_are_shown_to_the_model_as_it_wrote_them(args: str, sent: Any):
    assert blocks_of(ToolCall("c", "f", args))[0]["input"] == sent


@pytest.mark.requirement("llm.nothing_lost")
def test_thinking_goes_back_signed_and_in_order_to_its_origin_only():
    parts = (
        Thinking("hm", "sig", origin="anthropic"),
        Thinking(signature="xyz", redacted=True, origin="anthropic"),
        Thinking("unsigned", origin="anthropic"),
        Thinking("foreign", "sig", origin="deepseek"),
        Opaque("openai", "{}", "I won't."),
        Opaque("openai", "{}"),
        ToolCall("c", "f", "{}", '{"anthropic":{"caller":{"type":"code"}}}'),
        ToolCall("d", "f", "{}", '{"gemini":{"x":1}}'),
        ToolCall("e", "f", "{}", "bytes"),
    )

    assert blocks_of(*parts) == [
        {"type": "thinking", "thinking": "hm", "signature": "sig"},
        {"type": "redacted_thinking", "data": "xyz"},
        {"type": "text", "text": "I won't."},
        {"type": "tool_use", "id": "c", "name": "f", "input": {}, "caller": {"type": "code"}},
        {"type": "tool_use", "id": "d", "name": "f", "input": {}},
        {"type": "tool_use", "id": "e", "name": "f", "input": {}},
    ]


@pytest.mark.requirement("llm.anthropic_requests")
def test_settings_are_sent_as_the_api_takes_them():
    body = body_of(
        ask(max_tokens=7, temperature=0.2, top_p=0.9, frequency_penalty=0.1, extra={"service_tier": "auto"}),
        stream=True,
    )

    del body["messages"]
    expected = {"model": "m", "max_tokens": 7, "temperature": 0.2, "top_p": 0.9, "stream": True, "service_tier": "auto"}
    assert body == expected
    assert "temperature" not in body_of(ask(temperature=0.2), Quirks(sampling=False))


@pytest.mark.requirement("llm.anthropic_requests")
@pytest.mark.parametrize(
    ("reasoning", "thinking", "config"),
    [
        (Reasoning("high"), {"type": "adaptive"}, {"effort": "high"}),
        (Reasoning("none"), {"type": "disabled"}, None),
        (Reasoning(budget_tokens=2048), {"type": "enabled", "budget_tokens": 2048}, None),
        (None, None, None),
    ],
)
def test_reasoning_is_an_effort_or_a_budget(reasoning: Reasoning | None, thinking: Any, config: Any):
    body = body_of(ask(reasoning=reasoning))

    assert (body.get("thinking"), body.get("output_config")) == (thinking, config)


@pytest.mark.requirement("llm.anthropic_requests")
@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        ("auto", {"type": "auto", "disable_parallel_tool_use": True}),
        ("none", {"type": "none"}),
        (NamedTool("a"), {"type": "tool", "name": "a", "disable_parallel_tool_use": True}),
    ],
)
def test_one_call_at_a_time_is_asked_for(choice: Any, sent: Any):
    tools = ToolSet([Tool("a", "A.", SCHEMA)])

    assert body_of(ask(tools=tools, tool_choice=choice, parallel_tool_calls=False)).get("tool_choice") == sent
    assert "tool_choice" not in body_of(ask(parallel_tool_calls=False))


@pytest.mark.requirement("llm.anthropic_requests")
@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        ("auto", None),
        ("none", {"type": "none"}),
        ("required", {"type": "any"}),
        (NamedTool("a"), {"type": "tool", "name": "a"}),
    ],
)
def test_a_tool_choice_is_sent_unless_it_is_the_default(choice: Any, sent: Any):
    tools = ToolSet([Tool("a", "A.", SCHEMA)])

    body = body_of(ask(tools=tools, tool_choice=choice))

    assert body.get("tool_choice") == sent
    assert body["tools"] == [{"name": "a", "description": "A.", "input_schema": SCHEMA}]


@pytest.mark.requirement("llm.strict_schemas")
def test_tools_are_strict_where_it_is_asked_for():
    tools = ToolSet([Tool("a", "A.", SCHEMA), Tool("b", "B.", {"type": "object"})])

    rendered = body_of(ask(tools=tools), Quirks(strict_tools=True))["tools"]

    assert rendered[0] == {"name": "a", "description": "A.", "input_schema": CLOSED, "strict": True}
    assert rendered[1] == {"name": "b", "description": "B.", "input_schema": {"type": "object"}}


@pytest.mark.requirement("llm.structured_output")
def test_an_output_schema_is_the_api_s_own_format():
    body = body_of(ask(output_schema=SCHEMA, reasoning=Reasoning("low")))

    assert body["output_config"] == {"format": {"type": "json_schema", "schema": CLOSED}, "effort": "low"}
    assert "output_config" not in body_of(ask(output_schema=SCHEMA), Quirks(structured="prompt"))


@pytest.mark.requirement("llm.anthropic_requests")
def test_the_key_and_the_api_s_version_are_headers():
    assert AnthropicWire().headers("k") == {"x-api-key": "k", "anthropic-version": "2023-06-01"}
    assert AnthropicWire().headers(None) == {"anthropic-version": "2023-06-01"}


@pytest.mark.requirement("llm.lenient_parsing")
@pytest.mark.parametrize(
    ("raw", "stop"),
    [
        ("end_turn", "end"),
        ("stop_sequence", "end"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("tool_use", "tool_calls"),
        ("pause_turn", "pause"),
        ("refusal", "refusal"),
        ("new_reason", "other"),
        (None, "end"),
    ],
)
def test_stop_reasons_are_mapped(raw: str | None, stop: str):
    answer = whole({"type": "text", "text": "hi"}, stop=raw)

    assert (answer.stop, answer.raw_stop) == (stop, raw or "")


@pytest.mark.requirement("llm.lenient_parsing")
def test_a_call_without_id_arguments_and_stop_reason_is_understood():
    answer = whole({"type": "tool_use", "name": "f"}, stop=None)

    assert answer.message.parts == (ToolCall("call_0", "f", "{}"),)
    assert answer.stop == "tool_calls"


@pytest.mark.requirement("llm.lenient_parsing")
def test_cached_tokens_are_counted_into_the_input():
    usage = {
        "input_tokens": 1,
        "cache_read_input_tokens": 2,
        "cache_creation_input_tokens": 4,
        "output_tokens": 8,
        "output_tokens_details": {"thinking_tokens": 3},
    }

    assert whole(usage=usage).usage == TokenUsage(7, 8, 2, 4, 3)
    assert whole(usage=None).usage == TokenUsage(estimated=True)


@pytest.mark.requirement("llm.lenient_parsing")
@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b'{"id": "x"}', "without 'content'"),
        (b'{"content": [{"type": "tool_use", "id": "c"}]}', r"without 'content\[0\].name'"),
        (b'{"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}', "overloaded_error: busy"),
    ],
)
def test_an_answer_that_lacks_what_is_needed_is_an_error(body: bytes, field: str):
    with pytest.raises(ModelError, match=field):
        AnthropicWire().parse(body)


@pytest.mark.requirement("llm.error_kinds")
def test_a_page_instead_of_an_error_is_quoted():
    error = AnthropicWire().error(502, {"request-id": "req_9"}, b"<html>nginx</html>")

    assert (error.kind, error.request_id, "<html>nginx" in str(error)) == ("server", "req_9", True)


@pytest.mark.requirement("llm.stream_equals_whole")
def test_a_streamed_call_starts_grows_and_ends():
    call: dict[str, Any] = {"type": "tool_use", "id": "c", "name": "f", "input": {}}
    deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in ("", '{"n":', "1e5}")]

    events = fed(BEGIN, *block_events(call, *deltas), *END)

    whole_call = ToolCall("c", "f", '{"n":1e5}')
    assert [event for event in events if isinstance(event, CallStart | CallDelta | CallEnd)] == [
        CallStart(0, "c", "f"),
        CallDelta(0, '{"n":'),
        CallDelta(0, "1e5}"),
        CallEnd(0, whole_call),
    ]
    assert response_in(events) == Response(
        Message("assistant", (whole_call,)), "end", "end_turn", TokenUsage(3, 5), "m", "i"
    )


@pytest.mark.requirement("llm.lenient_parsing")
def test_arguments_of_a_call_may_stand_in_its_start_or_be_cut_off():
    given = {"type": "tool_use", "id": "c", "name": "f", "input": {"a": 1}}
    cut = {"type": "input_json_delta", "partial_json": '{"a": '}

    assert response_in(fed(BEGIN, *block_events(given), *END)).message.calls[0].args == '{"a": 1}'
    assert response_in(fed(BEGIN, *block_events(given, cut), *END)).message.calls[0].args == '{"a": '


@pytest.mark.requirement("llm.lenient_parsing")
def test_unknown_events_are_skipped_and_unknown_deltas_merged():
    deltas = [{"type": "new_delta", "note": "a"}, {"type": "new_delta", "note": "b", "n": 7}]
    late: dict[str, Any] = {"type": "message_start", "message": {}}

    events = fed({"type": "ping"}, BEGIN, *block_events({"type": "new"}, *deltas), {"type": "new_event"}, *END, late)

    (part,) = response_in(events).message.parts
    assert isinstance(part, Opaque)
    assert json.loads(part.raw) == {"type": "new", "note": "ab", "n": 7}


@pytest.mark.requirement("llm.lenient_parsing")
def test_blocks_that_start_with_text_or_never_stop_are_whole():
    start = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "he"}}
    delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "y"}}
    stray = {"type": "content_block_stop", "index": 9}

    events = fed(BEGIN, start, delta, stray, *END)

    assert [event for event in events if isinstance(event, TextChunk)] == [TextChunk("he"), TextChunk("y")]
    assert response_in(events).message.text == "hey"


@pytest.mark.requirement("llm.lenient_parsing")
def test_a_stream_without_its_last_event_is_complete_after_the_stop_reason():
    text = {"type": "text", "text": "hi"}

    assert response_in(fed(BEGIN, *block_events(text), DELTA)).message.text == "hi"
    with pytest.raises(ModelError, match="after 1 complete blocks") as caught:
        fed(BEGIN, *block_events(text))
    assert caught.value.kind == "stream_cut"


@pytest.mark.requirement("llm.lenient_parsing", "llm.error_kinds")
@pytest.mark.parametrize(
    ("event", "message"),
    [
        ({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}, "overloaded_error: busy"),
        ({"type": "content_block_delta", "index": 0, "delta": {}}, "without 'content_block_start'"),
        ({"type": "content_block_start", "index": 0}, "without 'content_block'"),
        ({"type": "message_stop"}, "without 'message_start'"),
    ],
)
def test_a_broken_stream_is_an_error(event: Any, message: str):
    with pytest.raises(ModelError, match=message):
        fed(event)


CACHED = {"cache_control": {"type": "ephemeral"}}
TURNS = (
    user("Look."),
    Message("assistant", (ToolCall("a", "look", "{}"),)),
    Message("user", (ToolResult("a", "look", "1"), ToolResult("a", "look", "2"))),
    Message("assistant", (ToolCall("b", "look", "{}"),)),
    Message("user", (ToolResult("b", "look", "3"), Text("Go on."))),
)
LOOK = ToolSet([Tool("look", "", SCHEMA)])
CACHING = Quirks(prompt_cache=True)


def marks_in(body: dict[str, Any]) -> list[list[bool]]:
    return [["cache_control" in block for block in message["content"]] for message in body["messages"]]


@pytest.mark.requirement("llm.prompt_cache")
def test_what_the_next_turn_repeats_is_marked_for_the_cache():
    body = body_of(ask(*TURNS, system="Be brief.", tools=LOOK), CACHING)

    assert body["system"] == [{"type": "text", "text": "Be brief.", **CACHED}]
    assert marks_in(body) == [[False], [False], [False, True], [False], [False, True]]


@pytest.mark.requirement("llm.prompt_cache")
def test_a_block_that_goes_back_as_it_came_is_not_marked():
    body = body_of(ask(Message("user", (Opaque("anthropic", '{"type":"x"}'),)), tools=LOOK), CACHING)

    assert marks_in(body) == [[False]]
    assert "system" not in body


@pytest.mark.requirement("llm.prompt_cache")
@pytest.mark.parametrize(
    ("quirks", "settings"),
    [
        (CACHING, {"tools": LOOK, "prompt_cache": False}),
        (CACHING, {}),
        (Quirks(), {"tools": LOOK}),
    ],
    ids=["not wanted", "a single question", "an endpoint without marks"],
)
def test_nothing_else_is_marked_for_the_cache(quirks: Quirks, settings: dict[str, Any]):
    body = body_of(ask(*TURNS, system="Be brief.", **settings), quirks)

    assert "cache_control" not in json.dumps(body)

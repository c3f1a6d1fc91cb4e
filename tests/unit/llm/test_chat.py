"""The Chat Completions wire: what is sent, and what unusual servers answer."""

import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.contracts.base.errors import ModelError
from toolcrib.llm import (
    CallDelta,
    CallEnd,
    CallStart,
    ChatWire,
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
    ThinkingChunk,
    TokenUsage,
    Tool,
    ToolCall,
    ToolResult,
    ToolSet,
    user,
)

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
CLOSED = {**SCHEMA, "additionalProperties": False}
LOOSE: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}}}
OPENAI = Quirks(strict="openai", strict_tools=True, max_tokens_field="max_completion_tokens")


def body_of(
    request: Request, quirks: Quirks | None = None, *, stream: bool = False, origin: str = "x"
) -> dict[str, Any]:
    path, body = ChatWire(origin).build(request, quirks or Quirks(), stream=stream)
    assert path == "/chat/completions"
    return json.loads(orjson.dumps(body))


def ask(*messages: Message, **settings: Any) -> Request:
    return Request(model="m", messages=messages or (user("hi"),), **settings)


def whole(message: dict[str, Any], finish: str | None = "stop", **more: Any) -> Response:
    content = {"id": "i", "model": "m", "choices": [{"message": message, "finish_reason": finish}], **more}
    return ChatWire("x").parse(json.dumps(content).encode())


def streamed(*deltas: dict[str, Any], finish: str | None = "stop") -> list[Event]:
    decoder = ChatWire("x").decoder()
    chunks: list[dict[str, Any]] = [{"id": "i", "model": "m", "choices": [{"delta": delta}]} for delta in deltas]
    chunks.append({"choices": [{"delta": {}, "finish_reason": finish}]})
    events = [event for chunk in chunks for event in decoder.feed(json.dumps(chunk).encode())]
    return [*events, *decoder.feed(b"[DONE]"), *decoder.feed(b"late"), *decoder.close()]


def response_in(events: list[Event]) -> Response:
    assert isinstance(events[-1], Done)
    return events[-1].response


@pytest.mark.requirement("llm.chat_requests")
def test_a_history_is_sent_as_system_user_assistant_and_tool_messages():
    history = (
        user("hi"),
        Message(
            "assistant", (Thinking("hm", origin="x"), Text("I "), Text("look."), ToolCall("c", "look", '{"a":1.0'))
        ),
        Message("user", (Text("and?"), ToolResult("c", "look", "seen"), Text("well?"))),
        Message("assistant", (ToolCall("d", "look", "{}"),)),
        Message("assistant", ()),
    )

    body = body_of(ask(*history, system="Be brief."), Quirks(system_role="developer"))

    assert body == {
        "model": "m",
        "messages": [
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "content": "hi"},
            {
                "role": "assistant",
                "content": "I look.",
                "tool_calls": [{"id": "c", "type": "function", "function": {"name": "look", "arguments": '{"a":1.0'}}],
            },
            {"role": "tool", "tool_call_id": "c", "content": "seen"},
            {"role": "user", "content": "and?\n\nwell?"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "d", "type": "function", "function": {"name": "look", "arguments": "{}"}}],
            },
            {"role": "assistant", "content": ""},
        ],
    }


SEALS = st.sampled_from(
    (None, '{"x": {"note": 1}}', '{"x": {"custom": {"input": "a"}}}', '{"other": {"note": 1}}', "no")
)
SAID = st.builds(Text, st.text("aä", max_size=2)) | st.builds(
    ToolCall, st.sampled_from("cd"), st.just("look"), st.sampled_from(("{}", "")), SEALS
)


@pytest.mark.requirement("llm.chat_requests")
@given(parts=st.lists(SAID, max_size=4), place=st.integers(0, 4))
def test_texts_and_calls_are_sent_alike_whatever_else_stands_beside_them(parts: list[Text | ToolCall], place: int):
    beside = [*parts[:place], Thinking("of another maker", origin="y"), *parts[place:]]

    plain, mixed = (body_of(ask(Message("assistant", tuple(each)))) for each in (parts, beside))

    assert orjson.dumps(plain) == orjson.dumps(mixed)


@pytest.mark.requirement("llm.lenient_parsing")
@given(
    silent=st.dictionaries(
        st.sampled_from(
            ("annotations", "audio", "executed_tools", "function_call", "refusal", "reasoning", "tool_calls")
        ),
        st.sampled_from((None, "", [], {})),
    ),
    details=st.dictionaries(
        st.sampled_from(("prompt_tokens_details", "completion_tokens_details")),
        st.none() | st.dictionaries(st.sampled_from(("cached_tokens", "audio_tokens", "reasoning_tokens")), st.just(0)),
    ),
)
def test_fields_that_say_nothing_change_no_answer(silent: dict[str, Any], details: dict[str, Any]):
    usage = {"prompt_tokens": 5, "completion_tokens": 2.0}
    plain = whole({"content": "hi"}, usage=usage)

    assert whole({"content": "hi", **silent}, usage=usage | details) == plain
    assert plain.usage == TokenUsage(5, 2)


@pytest.mark.requirement("llm.chat_requests")
def test_parts_that_a_side_cannot_say_are_left_out():
    call, result = ToolCall("c", "f", "{}"), ToolResult("c", "f", "seen")

    messages = body_of(ask(Message("user", (call, Text("hi"))), Message("assistant", (result, Text("ho")))))["messages"]

    assert messages == [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}]
    only_results = body_of(ask(Message("user", (result,))))["messages"]
    assert only_results == [{"role": "tool", "tool_call_id": "c", "content": "seen"}]


@pytest.mark.requirement("llm.chat_requests")
def test_settings_are_named_as_the_endpoint_names_them():
    request = ask(
        max_tokens=7,
        temperature=0.2,
        top_p=0.9,
        frequency_penalty=0.1,
        presence_penalty=0.3,
        reasoning=Reasoning("low"),
        extra={"seed": 1, "top_p": 0.5},
    )
    body = body_of(request, OPENAI, stream=True)

    del body["messages"]
    assert body == {
        "model": "m",
        "max_completion_tokens": 7,
        "temperature": 0.2,
        "top_p": 0.5,
        "frequency_penalty": 0.1,
        "presence_penalty": 0.3,
        "reasoning_effort": "low",
        "seed": 1,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    assert "stream_options" not in body_of(request, Quirks(stream_usage=False), stream=True)
    assert body_of(ask(), Quirks(max_tokens_default=9))["max_tokens"] == 9


@pytest.mark.requirement("llm.quirks")
def test_settings_that_an_endpoint_refuses_are_not_sent_and_are_named():
    request = ask(temperature=0.2, presence_penalty=0.1)
    reasoning, no_penalties = Quirks(sampling=False), Quirks(penalties=False)

    assert "temperature" not in body_of(request, reasoning)
    assert reasoning.settings_to_drop(request) == ("temperature", "presence_penalty")
    assert body_of(request, no_penalties)["temperature"] == 0.2
    assert no_penalties.settings_to_drop(request) == ("presence_penalty",)
    assert Quirks().settings_to_drop(request) == ()


@pytest.mark.requirement("llm.chat_requests")
@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        ("auto", None),
        ("none", "none"),
        ("required", "required"),
        (NamedTool("a"), {"type": "function", "function": {"name": "a"}}),
    ],
)
def test_a_tool_choice_is_sent_unless_it_is_the_default(choice: Any, sent: Any):
    tools = ToolSet([Tool("a", "A.", SCHEMA)])

    assert body_of(ask(tools=tools, tool_choice=choice)).get("tool_choice") == sent
    assert "tool_choice" not in body_of(ask(tool_choice=choice))


@pytest.mark.requirement("llm.chat_requests")
def test_one_call_at_a_time_is_asked_for_where_the_model_knows_it():
    request = ask(tools=ToolSet([Tool("a", "A.", SCHEMA)]), parallel_tool_calls=False)

    assert body_of(request)["parallel_tool_calls"] is False
    assert "parallel_tool_calls" not in body_of(request, Quirks(sampling=False))
    assert "parallel_tool_calls" not in body_of(ask(parallel_tool_calls=False))


@pytest.mark.requirement("llm.chat_requests", "llm.strict_schemas")
def test_tools_are_strict_where_endpoint_tool_and_schema_allow_it():
    tools = ToolSet([Tool("a", "A.", SCHEMA), Tool("b", "B.", LOOSE), Tool("c", "C.", SCHEMA, strict=False)])

    functions = [tool["function"] for tool in body_of(ask(tools=tools), OPENAI)["tools"]]

    assert functions == [
        {"name": "a", "description": "A.", "parameters": CLOSED, "strict": True},
        {"name": "b", "description": "B.", "parameters": LOOSE},
        {"name": "c", "description": "C.", "parameters": SCHEMA},
    ]
    assert body_of(ask(tools=tools))["tools"][0]["function"] == {"name": "a", "description": "A.", "parameters": SCHEMA}


@pytest.mark.requirement("llm.chat_requests")
def test_a_tool_set_is_rendered_once_and_old_ones_are_forgotten():
    wire = ChatWire()

    def rendered(name: str) -> Any:
        tools = ToolSet([Tool(name, "A.", SCHEMA)])
        return wire.build(ask(tools=tools), Quirks(), stream=False)[1]["tools"]

    first = rendered("a")
    assert rendered("a") is first
    for number in range(64):
        rendered(f"t{number}")
    assert rendered("a") is not first


@pytest.mark.requirement("llm.structured_output")
@pytest.mark.parametrize(
    ("quirks", "schema", "sent"),
    [
        (Quirks(), SCHEMA, {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA}}),
        (OPENAI, SCHEMA, {"type": "json_schema", "json_schema": {"name": "answer", "schema": CLOSED, "strict": True}}),
        (OPENAI, LOOSE, {"type": "json_schema", "json_schema": {"name": "answer", "schema": LOOSE, "strict": False}}),
        (Quirks(structured="json_object"), SCHEMA, {"type": "json_object"}),
        (Quirks(structured="prompt"), SCHEMA, None),
    ],
)
def test_an_output_schema_is_sent_as_the_endpoint_takes_it(quirks: Quirks, schema: dict[str, Any], sent: Any):
    assert body_of(ask(output_schema=schema), quirks).get("response_format") == sent


@pytest.mark.requirement("llm.chat_requests")
def test_the_key_is_a_bearer_token():
    assert ChatWire().headers("k") == {"authorization": "Bearer k"}
    assert ChatWire().headers(None) == {}


@pytest.mark.requirement("llm.nothing_lost")
def test_fields_without_a_neutral_shape_go_back_only_to_who_sent_them_and_takes_them():
    details = [{"type": "reasoning.encrypted", "data": "QUJD"}]
    answer = whole({"content": "hi", "refusal": None, "reasoning": "hm", "reasoning_details": details, "audio": None})
    takes = Quirks(thinking_field="reasoning", replay_fields=frozenset({"reasoning_details"}))

    def sent(quirks: Quirks, origin: str) -> dict[str, Any]:
        return body_of(ask(answer.message), quirks, origin=origin)["messages"][0]

    plain = {"role": "assistant", "content": "hi"}
    assert sent(takes, "x") == {**plain, "reasoning": "hm", "reasoning_details": details}
    assert sent(Quirks(), "x") == plain
    assert sent(takes, "y") == plain


@pytest.mark.requirement("llm.nothing_lost")
def test_a_refusal_is_seen_as_text_and_goes_back_as_a_refusal():
    answer = whole({"content": None, "refusal": "I won't."})

    assert (answer.stop, answer.message.text) == ("refusal", "I won't.")
    back = body_of(ask(answer.message), Quirks(replay_fields=frozenset({"refusal"})), origin="x")["messages"][0]
    assert back == {"role": "assistant", "content": "", "refusal": "I won't."}
    assert body_of(ask(answer.message), origin="x")["messages"][0]["content"] == "I won't."
    assert body_of(ask(answer.message), origin="y")["messages"][0]["content"] == "I won't."


@pytest.mark.requirement("llm.nothing_lost")
def test_pieces_of_content_keep_their_kind():
    pieces = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
        {"type": "text", "text": "see"},
        {"type": "text", "text": ""},
        {"type": "reference", "reference_ids": [1]},
        {"type": "refusal", "refusal": "no"},
    ]

    answer = whole({"content": pieces})

    assert answer.message.parts == (
        Thinking("hm", origin="x"),
        Text("see"),
        Opaque("x", '{"content":[{"type":"reference","reference_ids":[1]}]}'),
        Opaque("x", '{"content":[{"type":"refusal","refusal":"no"}]}', "no"),
    )
    back = body_of(ask(answer.message), origin="x")["messages"][0]
    assert back["content"] == [pieces[1], pieces[3], pieces[4]]
    assert (
        response_in(streamed(*({"content": [piece]} for piece in pieces))).message.parts[:2] == answer.message.parts[:2]
    )


@pytest.mark.requirement("llm.lenient_parsing")
@pytest.mark.parametrize(
    ("message", "call"),
    [
        (
            {"tool_calls": [{"id": "c", "function": {"name": "f", "arguments": {"a": 1}}}]},
            ToolCall("c", "f", '{"a":1}'),
        ),
        ({"tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]}, ToolCall("call_i_0", "f", "{}")),
        ({"tool_calls": [{"id": "c", "function": {"name": "f"}}]}, ToolCall("c", "f", "{}")),
        ({"function_call": {"name": "f", "arguments": "{}"}}, ToolCall("call_i_0", "f", "{}")),
        (
            {"tool_calls": [{"id": "c", "extra_content": {"s": 1}, "function": {"name": "f", "arguments": "{}"}}]},
            ToolCall("c", "f", "{}", '{"x":{"extra_content":{"s":1}}}'),
        ),
    ],
    ids=["arguments as an object", "no id", "no arguments", "legacy", "signed"],
)
def test_unusual_calls_are_understood_whole_and_streamed(message: dict[str, Any], call: ToolCall):
    answer = whole({"content": None, **message})
    assert (answer.message.parts, answer.stop) == ((call,), "tool_calls")
    assert response_in(streamed(message)).message == answer.message


@pytest.mark.requirement("llm.nothing_lost")
def test_a_signed_call_goes_back_signed_to_its_origin_only():
    call = ToolCall("c", "f", "{}", '{"x":{"extra_content":{"s":1}}}')

    assert body_of(ask(Message("assistant", (call,))))["messages"][0]["tool_calls"][0]["extra_content"] == {"s": 1}
    assert (
        "extra_content" not in body_of(ask(Message("assistant", (call,))), origin="y")["messages"][0]["tool_calls"][0]
    )
    foreign = ToolCall("c", "f", "{}", "opaque bytes")
    assert len(body_of(ask(Message("assistant", (foreign,))))["messages"][0]["tool_calls"][0]) == 3


def _call(index: int | None, id_: str | None, name: str | None, arguments: str | None) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    delta = {
        "index": index,
        "id": id_,
        "function": {key: value for key, value in function.items() if value is not None},
    }
    return {"tool_calls": [{key: value for key, value in delta.items() if value is not None}]}


@pytest.mark.requirement("llm.lenient_parsing")
@pytest.mark.parametrize(
    "deltas",
    [
        [_call(0, "a", "f", ""), _call(0, None, None, '{"x":1}'), _call(1, "b", "g", "{}")],
        [_call(0, "a", "f", '{"x"'), _call(0, "a", "f", ":1}"), _call(1, "b", "g", "{}")],
        [_call(None, "a", "f", '{"x"'), _call(None, None, None, ":1}"), _call(None, "b", "g", "{}")],
        [_call(None, "a", "f", '{"x"'), _call(None, "a", None, ":1}"), _call(None, "b", "g", "{}")],
        [_call(0, "a", "f", '{"x":1}'), _call(0, "b", "g", "{}")],
        [_call(0, "a", None, None), _call(0, None, "f", '{"x":1}'), _call(1, "b", "g", None)],
    ],
    ids=["usual", "repeated names", "no index", "id instead of index", "one index for all", "name later"],
)
def test_call_deltas_of_all_servers_add_up(deltas: list[dict[str, Any]]):
    events = streamed(*deltas, finish="tool_calls")

    calls = (ToolCall("a", "f", '{"x":1}'), ToolCall("b", "g", "{}"))
    assert response_in(events).message.calls == calls
    assert [event for event in events if isinstance(event, CallStart)] == [
        CallStart(0, "a", "f"),
        CallStart(1, "b", "g"),
    ]
    assert [event for event in events if isinstance(event, CallEnd)] == [CallEnd(0, calls[0]), CallEnd(1, calls[1])]
    assert "".join(event.args for event in events if isinstance(event, CallDelta) and event.index == 0) == '{"x":1}'


@pytest.mark.requirement("llm.lenient_parsing")
def test_nameless_calls_without_index_and_id_are_told_apart_by_their_names():
    events = streamed(_call(None, None, "f", "{}"), _call(None, None, "g", "{}"))

    assert [call.name for call in response_in(events).message.calls] == ["f", "g"]


@pytest.mark.requirement("llm.lenient_parsing")
def test_reasoning_details_of_a_stream_are_joined():
    details = [
        {"type": "reasoning.text", "index": 0, "text": "I "},
        {"type": "reasoning.text", "index": 0, "text": "look", "signature": None},
        {"type": "reasoning.text", "index": 0, "text": "", "signature": "sig"},
        {"type": "reasoning.encrypted", "index": 1, "data": "QUJD"},
    ]

    events = streamed(
        *({"reasoning_details": [detail]} for detail in details), {"reasoning_details": []}, {"x_id": "7"}
    )

    assert "".join(event.text for event in events if isinstance(event, ThinkingChunk)) == "I look"
    thinking, opaque = response_in(events).message.parts
    assert thinking == Thinking("I look", origin="x")
    assert isinstance(opaque, Opaque)
    assert json.loads(opaque.raw) == {
        "reasoning_details": [
            {"type": "reasoning.text", "index": 0, "text": "I look", "signature": "sig"},
            {"type": "reasoning.encrypted", "index": 1, "data": "QUJD"},
        ],
        "x_id": "7",
    }


@pytest.mark.requirement("llm.lenient_parsing")
def test_a_streamed_refusal_is_text_and_a_refusal():
    events = streamed({"refusal": "I "}, {"refusal": "won't."})

    assert [event for event in events if isinstance(event, TextChunk)] == [TextChunk("I "), TextChunk("won't.")]
    assert response_in(events).stop == "refusal"


@pytest.mark.requirement("llm.lenient_parsing")
@pytest.mark.parametrize(
    ("raw", "stop"),
    [
        ("stop", "end"),
        ("length", "length"),
        ("content_filter", "content_filter"),
        ("eos", "end"),
        (None, "end"),
        ("x", "other"),
    ],
)
def test_stop_reasons_are_mapped(raw: str | None, stop: str):
    answer = whole({"content": "hi"}, raw)

    assert (answer.stop, answer.raw_stop) == (stop, raw or "")


@pytest.mark.requirement("llm.lenient_parsing")
def test_usage_is_read_wherever_it_stands():
    counts = {"prompt_tokens": 10, "completion_tokens": 5.0, "prompt_cache_hit_tokens": 4}

    assert whole({"content": "x"}, usage=counts).usage == TokenUsage(10, 5, 4)
    assert whole({"content": "x"}, x_groq={"usage": counts}).usage == TokenUsage(10, 5, 4)
    assert whole({"content": "x"}, usage={"prompt_tokens": None, "prompt_tokens_details": None}).usage == TokenUsage()
    assert whole({"content": "x"}).usage == TokenUsage(estimated=True)


@pytest.mark.requirement("llm.lenient_parsing")
def test_a_call_without_a_name_is_an_error_that_names_the_field():
    with pytest.raises(ModelError, match=r"without 'choices\[0\].message.tool_calls\[0\].function.name'"):
        whole({"tool_calls": [{"id": "c", "function": {"arguments": "{}"}}]})


@pytest.mark.requirement("llm.nothing_lost")
def test_a_call_of_a_custom_tool_goes_back_as_it_came():
    call = {"id": "c", "type": "custom", "custom": {"name": "shell", "input": "ls -l"}}
    answer = whole({"tool_calls": [call]}, "tool_calls")

    assert [(part.name, part.args) for part in answer.message.calls] == [("shell", "ls -l")]
    assert body_of(ask(answer.message))["messages"][0]["tool_calls"] == [call]


@pytest.mark.requirement("llm.nothing_lost")
def test_reasoning_may_be_a_piece_of_the_content_in_its_place():
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    pieces = [thought, {"type": "text", "text": "Hello."}, {"type": "image_url", "image_url": "x"}]
    response = whole({"content": pieces})

    def sent(quirks: Quirks) -> Any:
        return body_of(ask(response.message), quirks)["messages"][0]["content"]

    assert sent(Quirks(thinking_field="content")) == pieces
    assert sent(Quirks()) == pieces[1:]


@pytest.mark.requirement("llm.lenient_parsing")
def test_a_legacy_call_of_nothing_in_a_stream_is_none():
    delta = {"content": "Hello.", "function_call": {"name": "", "arguments": ""}}

    assert response_in(streamed(delta)).message.parts == (Text("Hello."),)


@pytest.mark.requirement("llm.lenient_parsing")
def test_fields_that_are_there_for_their_names_only_say_nothing():
    answer = whole(
        {
            "content": "hi",
            "audio": {"id": "", "data": "", "expires_at": 0},
            "function_call": {"name": "", "arguments": ""},
            "tool_calls": None,
            "refusal": "",
        }
    )

    assert answer.message.parts == (Text("hi"),)


@pytest.mark.requirement("llm.lenient_parsing")
def test_a_choice_that_was_filtered_away_has_no_message_and_says_so():
    content: dict[str, Any] = {"choices": [{"finish_reason": "content_filter", "content_filter_results": {}}]}
    answer = ChatWire("x").parse(json.dumps(content).encode())

    assert (answer.stop, answer.message.parts) == ("content_filter", ())


@pytest.mark.requirement("llm.error_kinds")
def test_an_error_in_a_stream_has_the_status_that_stands_in_it():
    fault = {"message": "did not match", "code": "tool_use_failed", "status_code": 400}

    with pytest.raises(ModelError) as raised:
        ChatWire("x").decoder().feed(json.dumps({"error": fault}).encode())

    assert (raised.value.kind, raised.value.status) == ("bad_request", 400)


@pytest.mark.requirement("llm.error_kinds")
@pytest.mark.parametrize("choice", [{"error": {"message": "upstream", "code": 502}}])
def test_an_error_inside_a_choice_is_raised(choice: dict[str, Any]):
    content = json.dumps({"choices": [choice]}).encode()

    with pytest.raises(ModelError, match="502: upstream"):
        ChatWire("x").parse(content)
    with pytest.raises(ModelError, match="502: upstream"):
        ChatWire("x").decoder().feed(content)


@pytest.mark.requirement("llm.error_kinds")
@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'[{"error": {"message": "first"}}]', "first"),
        (b'{"detail": "not here"}', "not here"),
        (b'{"message": "plain"}', "plain"),
        (b'{"error": {"metadata": {"raw": "upstream"}}}', "upstream"),
        (b"", "no message"),
        (b"[]", "no message"),
    ],
)
def test_error_bodies_of_all_shapes_are_read(body: bytes, message: str):
    assert message in str(ChatWire("x").error(400, {}, body))

"""The Gemini generateContent wire: what is sent, and what comes back."""

import json
from collections.abc import Sequence
from typing import Any

import orjson
import pytest

from toolcrib.contracts.base.errors import ModelError
from toolcrib.llm import (
    CallDelta,
    CallEnd,
    CallStart,
    Done,
    Event,
    GeminiWire,
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
    UsageUpdate,
    user,
)
from toolcrib.llm.base.transport import SseParser

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
PLAIN = Quirks()
SIGNED = '{"google":{"thoughtSignature":"sig"}}'


def body_of(request: Request, quirks: Quirks = PLAIN, *, stream: bool = False) -> dict[str, Any]:
    _, body = GeminiWire().build(request, quirks, stream=stream)
    return json.loads(orjson.dumps(body))


def ask(*messages: Message, **settings: Any) -> Request:
    return Request(model="m", messages=messages or (user("hi"),), **settings)


def parts_of(*parts: Any, quirks: Quirks = PLAIN) -> list[dict[str, Any]]:
    (content,) = body_of(ask(Message("assistant", parts)), quirks)["contents"]
    return content["parts"]


def config_of(**settings: Any) -> dict[str, Any] | None:
    return body_of(ask(**settings)).get("generationConfig")


def chunk(*parts: Any, stop: Any = None, **more: Any) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
    if stop is not None:
        candidate["finishReason"] = stop
    return {"candidates": [candidate], "modelVersion": "m-1", "responseId": "r", **more}


def whole(*parts: Any, stop: Any = "STOP", **more: Any) -> Response:
    return GeminiWire().parse(json.dumps(chunk(*parts, stop=stop, **more)).encode())


def fed(*chunks: dict[str, Any]) -> list[Event]:
    decoder = GeminiWire().decoder()
    return [event for piece in chunks for event in decoder.feed(json.dumps(piece).encode())] + list(decoder.close())


def response_in(events: Sequence[Event]) -> Response:
    done = events[-1]
    assert isinstance(done, Done)
    return done.response


def call(name: str = "f", **more: Any) -> dict[str, Any]:
    return {"functionCall": {"name": name, "args": {}, **more}}


@pytest.mark.requirement("llm.gemini_requests")
def test_a_history_is_sent_as_alternating_turns_of_parts():
    history = (
        user("hi"),
        user("there"),
        Message("assistant", (Text(""),)),
        Message("assistant", (Text("I look."), ToolCall("c1", "look", '{"a": 1.0}'), ToolCall("c2", "look", "{}"))),
        Message("user", (ToolResult("c1", "look", "seen"), ToolResult("c2", "look", "no", is_error=True))),
    )

    assert body_of(ask(*history, system="Be brief.")) == {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [
            {"role": "user", "parts": [{"text": "hi"}, {"text": "there"}]},
            {
                "role": "model",
                "parts": [
                    {"text": "I look."},
                    {"functionCall": {"id": "c1", "name": "look", "args": {"a": 1.0}}},
                    {"functionCall": {"id": "c2", "name": "look", "args": {}}},
                ],
            },
            {
                "role": "user",
                "parts": [
                    {"functionResponse": {"id": "c1", "name": "look", "response": {"output": "seen"}}},
                    {"functionResponse": {"id": "c2", "name": "look", "response": {"error": "no"}}},
                ],
            },
        ],
    }


@pytest.mark.requirement("llm.gemini_requests")
@pytest.mark.parametrize(
    ("model", "stream", "path"),
    [
        ("gemini-3-flash", False, "/models/gemini-3-flash:generateContent"),
        ("gemini-3-flash", True, "/models/gemini-3-flash:streamGenerateContent?alt=sse"),
        ("tunedModels/mine", False, "/tunedModels/mine:generateContent"),
        ("a?b#c", False, "/models/a%3Fb%23c:generateContent"),
    ],
)
def test_the_model_and_the_method_are_in_the_path(model: str, stream: bool, path: str):
    found, body = GeminiWire().build(Request(model=model, messages=()), Quirks(), stream=stream)

    assert found == path
    assert body == {"contents": []}


@pytest.mark.requirement("llm.gemini_requests")
def test_the_key_is_a_header_and_never_in_the_url():
    assert GeminiWire().headers("k") == {"x-goog-api-key": "k"}
    assert GeminiWire().headers(None) == {}


@pytest.mark.requirement("llm.gemini_requests")
def test_settings_are_sent_as_the_api_takes_them():
    extra: dict[str, Any] = {"generationConfig": {"topK": 3, "topP": 0.5}, "safetySettings": []}

    body = body_of(
        ask(max_tokens=7, temperature=0.2, top_p=0.9, frequency_penalty=0.1, presence_penalty=0, extra=extra)
    )

    assert body["safetySettings"] == []
    assert body["generationConfig"] == {
        "maxOutputTokens": 7,
        "temperature": 0.2,
        "topP": 0.5,
        "topK": 3,
        "frequencyPenalty": 0.1,
        "presencePenalty": 0,
    }
    assert body_of(ask(temperature=0.2), Quirks(sampling=False)).keys() == {"contents"}


@pytest.mark.requirement("llm.gemini_requests")
@pytest.mark.parametrize(
    ("reasoning", "level", "budget"),
    [
        (
            Reasoning("high"),
            {"includeThoughts": True, "thinkingLevel": "high"},
            {"includeThoughts": True, "thinkingBudget": 24576},
        ),
        (
            Reasoning("none"),
            {"includeThoughts": False, "thinkingLevel": "minimal"},
            {"includeThoughts": False, "thinkingBudget": 0},
        ),
        (
            Reasoning("vast"),
            {"includeThoughts": True, "thinkingLevel": "vast"},
            {"includeThoughts": True, "thinkingBudget": -1},
        ),
        (
            Reasoning(budget_tokens=2048),
            {"includeThoughts": True, "thinkingBudget": 2048},
            {"includeThoughts": True, "thinkingBudget": 2048},
        ),
        (Reasoning(), {"includeThoughts": True}, {"includeThoughts": True}),
    ],
)
def test_reasoning_is_a_level_or_a_budget(reasoning: Reasoning, level: Any, budget: Any):
    request = ask(reasoning=reasoning)

    assert body_of(request)["generationConfig"]["thinkingConfig"] == level
    assert body_of(request, Quirks(effort_as_budget=True))["generationConfig"]["thinkingConfig"] == budget


@pytest.mark.requirement("llm.gemini_requests")
@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        ("auto", None),
        ("none", {"mode": "NONE"}),
        ("required", {"mode": "ANY"}),
        (NamedTool("a"), {"mode": "ANY", "allowedFunctionNames": ["a"]}),
    ],
)
def test_a_tool_choice_is_sent_unless_it_is_the_default(choice: Any, sent: Any):
    body = body_of(ask(tools=ToolSet([Tool("a", "A.", SCHEMA)]), tool_choice=choice))

    declaration = {"name": "a", "description": "A.", "parametersJsonSchema": SCHEMA}
    assert body["tools"] == [{"functionDeclarations": [declaration]}]
    assert body.get("toolConfig") == (sent and {"functionCallingConfig": sent})


@pytest.mark.requirement("llm.gemini_requests")
def test_a_schema_is_sent_without_what_the_api_refuses():
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {
            "kind": {"const": "a", "title": "Kind"},
            "flag": {"const": True},
            "none": {"const": None},
            "mail": {"type": "string", "format": "email", "description": "Where to."},
            "day": {"type": "string", "format": "date"},
            "id": {"type": "string", "format": "uuid"},
            "other": {"$ref": "#/$defs/other", "description": "Another."},
            "many": {"type": "array", "items": {"anyOf": [{"const": 1}, {"type": "null"}]}},
            "const": {"type": "string"},
        },
        "additionalProperties": False,
        "$defs": {"other": {"type": "object", "additionalProperties": {"const": 2.5}}},
    }

    sent = body_of(ask(tools=ToolSet([Tool("a", "A.", schema)])))["tools"][0]["functionDeclarations"][0]

    assert sent["parametersJsonSchema"] == {
        "type": "object",
        "properties": {
            "kind": {"type": "string", "enum": ["a"], "title": "Kind"},
            "flag": {"type": "boolean"},
            "none": {},
            "mail": {"type": "string", "description": "Where to. (format: email)"},
            "day": {"type": "string", "format": "date"},
            "id": {"type": "string", "description": "(format: uuid)"},
            "other": {"$ref": "#/$defs/other"},
            "many": {"type": "array", "items": {"anyOf": [{"type": "integer", "enum": [1]}, {"type": "null"}]}},
            "const": {"type": "string"},
        },
        "additionalProperties": False,
        "$defs": {"other": {"type": "object", "additionalProperties": {"type": "number", "enum": [2.5]}}},
    }


@pytest.mark.requirement("llm.structured_output")
def test_an_output_schema_is_the_api_s_own_format():
    assert config_of(output_schema=SCHEMA) == {
        "responseMimeType": "application/json",
        "responseJsonSchema": SCHEMA,
    }
    json_only = body_of(ask(output_schema=SCHEMA), Quirks(structured="json_object"))
    assert json_only["generationConfig"] == {"responseMimeType": "application/json"}
    assert "generationConfig" not in body_of(ask(output_schema=SCHEMA), Quirks(structured="prompt"))


@pytest.mark.requirement("llm.nothing_lost")
def test_signed_and_unknown_parts_go_back_as_they_came_to_their_origin_only():
    parts = (
        Thinking("hm", "sig", origin="google"),
        Thinking("unsigned", origin="google"),
        Thinking("foreign", "sig", origin="anthropic"),
        Text("signed", SIGNED),
        Text("", SIGNED),
        Text("foreign", '{"openai":{"id":"x"}}'),
        Opaque("google", '{"executableCode": {"code": "1e5"}}', ""),
        Opaque("google", '{"candidate":{"groundingMetadata":{}}}'),
        Opaque("openai", "{}", "I won't."),
        Opaque("openai", "{}"),
        ToolCall("c", "f", "{}", SIGNED),
        ToolCall("d", "f", "{}", '{"google":{"functionCall":{"new":1}}}'),
        ToolCall("e", "f", "{}", '{"anthropic":{"caller":1}}'),
    )

    assert parts_of(*parts) == [
        {"text": "hm", "thought": True, "thoughtSignature": "sig"},
        {"text": "unsigned", "thought": True},
        {"text": "signed", "thoughtSignature": "sig"},
        {"text": "", "thoughtSignature": "sig"},
        {"text": "foreign"},
        {"executableCode": {"code": "1e5"}},
        {"text": "I won't."},
        {"functionCall": {"id": "c", "name": "f", "args": {}}, "thoughtSignature": "sig"},
        {"functionCall": {"id": "d", "name": "f", "args": {}, "new": 1}},
        {"functionCall": {"id": "e", "name": "f", "args": {}}},
    ]


@pytest.mark.requirement("llm.gemini_requests")
def test_a_turn_of_calls_from_elsewhere_is_marked_where_the_endpoint_wants_it():
    strict = Quirks(signed_calls=True)
    foreign = (Text("x"), ToolCall("c", "f", "{}"), ToolCall("d", "f", "{}"))

    marked = parts_of(*foreign, quirks=strict)

    assert [part.get("thoughtSignature") for part in marked] == [None, "skip_thought_signature_validator", None]
    own = parts_of(ToolCall("c", "f", "{}", SIGNED), ToolCall("d", "f", "{}"), quirks=strict)
    assert [part.get("thoughtSignature") for part in own] == ["sig", None]
    assert not any("thoughtSignature" in part for part in parts_of(*foreign))


@pytest.mark.requirement("llm.nothing_lost")
def test_arguments_and_opaque_parts_keep_their_very_bytes():
    code = '{"executableCode": {"language": "PYTHON",  "code": "1", "n": 1e5}}'
    content = b'{"candidates": [{"content": {"parts": [%s, {"functionCall": {"name": "f", "args": {"n":1e5}}}]}}]}'

    answer = GeminiWire().parse(content % code.encode())

    assert answer.message.parts == (Opaque("google", code), ToolCall("call__0", "f", '{"n":1e5}'))
    sent = orjson.dumps(GeminiWire().build(ask(answer.message), Quirks(), stream=False)[1])
    assert code.encode() in sent
    assert b'"args":{"n":1e5}' in sent


@pytest.mark.requirement("llm.nothing_lost")
def test_signed_text_stays_apart_and_can_be_read():
    signed = {"text": "world", "thoughtSignature": "sig"}

    answer = whole({"text": "hel"}, {"text": "lo "}, signed, {"text": "", "thoughtSignature": "end"})

    assert answer.message.text == "hello world"
    assert parts_of(*answer.message.parts) == [{"text": "hello "}, signed, {"text": "", "thoughtSignature": "end"}]


@pytest.mark.requirement("llm.nothing_lost")
def test_what_stands_beside_the_content_is_kept_and_not_sent():
    body = chunk({"text": "hi"}, stop="STOP")
    body["candidates"][0] |= {
        "groundingMetadata": {"webSearchQueries": ["x"]},
        "citationMetadata": {},
        "avgLogprobs": 1,
    }

    message = GeminiWire().parse(json.dumps(body).encode()).message

    kept = Opaque("google", '{"candidate":{"groundingMetadata":{"webSearchQueries":["x"]}}}')
    assert message.parts == (Text("hi"), kept)
    assert parts_of(*message.parts) == [{"text": "hi"}]


@pytest.mark.requirement("llm.lenient_parsing")
def test_calls_without_ids_get_ids_and_keep_theirs():
    answer = whole(call(), {**call(id="c"), "thoughtSignature": "sig"}, call(args=None), call(willContinue=True))

    assert answer.message.calls == (
        ToolCall("call_r_0", "f", "{}"),
        ToolCall("c", "f", "{}", SIGNED),
        ToolCall("call_r_2", "f", "{}"),
        ToolCall("call_r_3", "f", "{}", '{"google":{"functionCall":{"willContinue":true}}}'),
    )
    assert answer.stop == "tool_calls"


@pytest.mark.requirement("llm.lenient_parsing")
@pytest.mark.parametrize(
    ("raw", "stop"),
    [
        ("STOP", "end"),
        (1, "end"),
        ("MAX_TOKENS", "length"),
        (2, "length"),
        ("SAFETY", "content_filter"),
        ("RECITATION", "content_filter"),
        ("IMAGE_SAFETY", "content_filter"),
        ("MALFORMED_FUNCTION_CALL", "other"),
        ("NEW_REASON", "other"),
        (99, "other"),
        (None, "end"),
    ],
)
def test_finish_reasons_are_mapped(raw: Any, stop: str):
    assert whole({"text": "hi"}, stop=raw).stop == stop


@pytest.mark.requirement("llm.lenient_parsing")
def test_an_answer_without_content_is_understood():
    body = {"candidates": [{"finishReason": "SAFETY", "finishMessage": "No."}]}

    answer = GeminiWire().parse(json.dumps(body).encode())

    assert (answer.stop, answer.raw_stop, answer.message.text) == ("content_filter", "SAFETY", "")
    assert GeminiWire().parse(b'{"candidates": [{}]}').message.parts == ()


@pytest.mark.requirement("llm.lenient_parsing")
def test_tokens_of_thoughts_and_of_the_provider_s_tools_are_counted_in():
    usage = {
        "promptTokenCount": 17,
        "toolUsePromptTokenCount": 100,
        "candidatesTokenCount": 4,
        "thoughtsTokenCount": 30,
        "cachedContentTokenCount": 8,
    }

    assert whole(usageMetadata=usage).usage == TokenUsage(input=117, output=34, cache_read=8, reasoning=30)
    assert whole().usage == TokenUsage(estimated=True)


@pytest.mark.requirement("llm.stream_equals_whole")
def test_chunks_add_up_to_the_answer_that_they_are_pieces_of():
    signed = {"text": "", "thoughtSignature": "end"}
    first = {"usageMetadata": {"promptTokenCount": 9}}
    grounding = chunk(signed, stop="STOP", usageMetadata={"promptTokenCount": 9, "candidatesTokenCount": 5})
    grounding["candidates"][0]["groundingMetadata"] = {"webSearchQueries": ["x"]}

    events = fed(
        chunk({"text": "I", "thought": True}, **first),
        chunk({"text": " think", "thought": True}),
        chunk({"text": "he"}),
        chunk({"text": "llo"}),
        chunk({**call(id="c"), "thoughtSignature": "sig"}),
        grounding,
        {"usageMetadata": {"candidatesTokenCount": 6}},
    )

    made = ToolCall("c", "f", "{}", SIGNED)
    assert events[:-1] == [
        ThinkingChunk("I"),
        UsageUpdate(TokenUsage(9)),
        ThinkingChunk(" think"),
        TextChunk("he"),
        TextChunk("llo"),
        CallStart(0, "c", "f"),
        CallDelta(0, "{}"),
        CallEnd(0, made),
        UsageUpdate(TokenUsage(9, 5)),
        UsageUpdate(TokenUsage(9, 6)),
    ]
    expected = (
        Thinking("I think", origin="google"),
        Text("hello"),
        made,
        Text("", '{"google":{"thoughtSignature":"end"}}'),
        Opaque("google", '{"candidate":{"groundingMetadata":{"webSearchQueries":["x"]}}}'),
    )
    assert response_in(events) == Response(
        Message("assistant", expected), "tool_calls", "STOP", TokenUsage(9, 6, more={"web_search": 1}), "m-1", "r"
    )


@pytest.mark.requirement("llm.stream_equals_whole", "llm.sse_any_cut")
@pytest.mark.parametrize("step", [1, 2, 3, 7, 64, 10_000])
def test_a_stream_means_the_same_wherever_it_is_cut(step: int):
    chunks = [chunk({"text": "größ"}), chunk({"text": "er"}, call(id="c")), chunk(stop="STOP")]
    stream = b"".join(b"data: " + json.dumps(each, ensure_ascii=False).encode() + b"\r\n\r\n" for each in chunks)
    parser, decoder = SseParser(), GeminiWire().decoder()

    for start in range(0, len(stream), step):
        for data in parser.feed(stream[start : start + step]):
            decoder.feed(data)

    assert response_in(decoder.close()) == response_in(fed(*chunks))


@pytest.mark.requirement("llm.stream_equals_whole")
def test_signed_thoughts_are_not_joined_with_later_ones():
    signed = {"text": "a", "thought": True, "thoughtSignature": "s"}

    message = response_in(fed(chunk(signed), chunk({"text": "b", "thought": True}, stop="STOP"))).message

    assert message.parts == (Thinking("a", "s", origin="google"), Thinking("b", origin="google"))
    assert whole({"text": "b", "thought": True}, signed).message.parts == message.parts[::-1]


@pytest.mark.requirement("llm.lenient_parsing")
def test_an_array_of_pieces_is_one_answer():
    pieces = [chunk({"text": "he"}), chunk({"text": "y"}, stop="STOP")]

    assert GeminiWire().parse(json.dumps(pieces).encode()).message.text == "hey"
    with pytest.raises(ModelError, match="ended its answer in the middle") as caught:
        GeminiWire().parse(json.dumps(pieces).encode()[:-4])
    assert caught.value.kind == "stream_cut"


@pytest.mark.requirement("llm.lenient_parsing")
def test_a_stream_without_a_finish_reason_was_cut():
    with pytest.raises(ModelError, match="after 5 characters of text and 1 tool calls, without a finish") as caught:
        fed(chunk({"text": "hello"}, call()))
    assert caught.value.kind == "stream_cut"


@pytest.mark.requirement("llm.error_kinds")
@pytest.mark.parametrize(
    ("body", "kind", "code", "message"),
    [
        (
            {"promptFeedback": {"blockReason": "SAFETY", "blockReasonMessage": "No."}},
            "content_filter",
            "SAFETY",
            "SAFETY: No.",
        ),
        ({"promptFeedback": {"blockReason": "OTHER"}}, "content_filter", "OTHER", "the prompt was blocked"),
        ({"promptFeedback": {}}, "bad_response", None, "without 'candidates'"),
        ({"error": {"code": 503, "status": "UNAVAILABLE"}}, "overloaded", "UNAVAILABLE", "503 UNAVAILABLE"),
        (chunk({"functionCall": {"args": {}}}), "bad_response", None, r"without 'functionCall[0].name'"),
    ],
)
def test_an_answer_that_is_an_error_raises_it(body: Any, kind: str, code: str | None, message: str):
    with pytest.raises(ModelError) as caught:
        GeminiWire().parse(json.dumps(body).encode())

    assert (caught.value.kind, caught.value.provider_code) == (kind, code)
    assert message in str(caught.value)


DETAIL = "type.googleapis.com/google.rpc."
RETRY = {"@type": f"{DETAIL}RetryInfo", "retryDelay": "17.5s"}
BAD_KEY = {"@type": f"{DETAIL}ErrorInfo", "reason": "API_KEY_INVALID"}
QUOTA = "You exceeded your current quota, please check your plan."


def quota(id_: str) -> dict[str, Any]:
    return {"@type": f"{DETAIL}QuotaFailure", "violations": [{"quotaId": id_}]}


@pytest.mark.requirement("llm.error_kinds")
@pytest.mark.parametrize(
    ("status", "error", "kind", "code", "wait"),
    [
        (
            429,
            {"code": 429, "message": QUOTA, "status": "RESOURCE_EXHAUSTED", "details": [quota("PerMinute"), RETRY]},
            "rate_limit",
            "RESOURCE_EXHAUSTED",
            17.5,
        ),
        (
            429,
            {"code": 429, "message": QUOTA, "status": "RESOURCE_EXHAUSTED", "details": [quota("RequestsPerDay")]},
            "quota",
            "RESOURCE_EXHAUSTED",
            None,
        ),
        (
            400,
            {"message": "bad key", "status": "INVALID_ARGUMENT", "details": [BAD_KEY]},
            "auth",
            "API_KEY_INVALID",
            None,
        ),
        (
            400,
            {"message": "The input token count (9) exceeds the maximum number of tokens allowed (8).", "status": "X"},
            "context_length",
            "X",
            None,
        ),
        (400, {"message": "no", "status": "INVALID_ARGUMENT"}, "bad_request", "INVALID_ARGUMENT", None),
        (403, {"message": "no", "status": "PERMISSION_DENIED"}, "auth", "PERMISSION_DENIED", None),
        (404, {"message": "no", "status": "NOT_FOUND"}, "not_found", "NOT_FOUND", None),
        (500, {"message": "no", "status": "INTERNAL"}, "server", "INTERNAL", None),
        (503, {"message": "no", "status": "UNAVAILABLE"}, "overloaded", "UNAVAILABLE", None),
        (504, {"message": "no", "status": "DEADLINE_EXCEEDED"}, "timeout", "DEADLINE_EXCEEDED", None),
    ],
)
def test_an_error_is_mapped_by_its_details_status_and_message(
    status: int, error: Any, kind: str, code: str, wait: float | None
):
    for body in ({"error": error}, [{"error": error}]):
        found = GeminiWire().error(status, {}, json.dumps(body).encode())

        assert (found.kind, found.provider_code, found.retry_after_s) == (kind, code, wait)
        assert error["message"] in str(found)


@pytest.mark.requirement("llm.error_kinds")
@pytest.mark.parametrize("body", [b"<html>proxy</html>", b'{"error": "proxy"}', b'{"message": "proxy"}'])
def test_an_error_of_something_in_between_is_quoted(body: bytes):
    found = GeminiWire().error(502, {"retry-after": "3"}, body)

    assert (found.kind, found.retry_after_s, "proxy" in str(found)) == ("server", 3.0, True)

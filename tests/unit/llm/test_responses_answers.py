"""The OpenAI Responses wire: what comes back, whole and streamed."""

import json
from typing import Any

import pytest

from tests.unit.llm.responses_items import (
    CALL,
    ORIGIN,
    REASONING,
    SEARCH,
    answer,
    completed,
    event,
    message,
    parsed,
    said,
)
from toolcrib.contracts.base.errors import ModelError
from toolcrib.llm import (
    CallDelta,
    CallEnd,
    CallStart,
    Done,
    Event,
    Opaque,
    Response,
    ResponsesWire,
    Text,
    TextChunk,
    Thinking,
    ThinkingChunk,
    TokenUsage,
    ToolCall,
    UsageUpdate,
)

pytestmark = pytest.mark.requirement("llm.nothing_lost", "llm.lenient_parsing", "llm.stream_equals_whole")


def fed(*events: dict[str, Any]) -> list[Event]:
    decoder = ResponsesWire().decoder()
    return [event for data in events for event in decoder.feed(json.dumps(data).encode())] + list(decoder.close())


def response_in(events: list[Event]) -> Response:
    done = events[-1]
    assert isinstance(done, Done)
    return done.response


def test_items_are_parts_in_their_order():
    response = parsed(REASONING, SEARCH, message(said("Hello."), phase="final_answer"), CALL)

    assert response.message.parts == (
        Thinking("Look\n\ntwice", json.dumps(REASONING), "rs_1", origin=ORIGIN),
        Opaque(ORIGIN, json.dumps(SEARCH)),
        Text("Hello.", response.message.parts[2].signature if isinstance(response.message.parts[2], Text) else None),
        ToolCall("call_1", "look", '{"a": 1}', response.message.calls[0].signature),
    )
    assert (response.stop, response.raw_stop, response.model, response.id) == (
        "tool_calls",
        "completed",
        "m-1",
        "resp_1",
    )


def test_reasoning_may_be_open_or_wholly_hidden():
    open_: dict[str, Any] = {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]}
    hidden: dict[str, Any] = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}

    first, second = parsed(open_, hidden).message.parts

    assert first == Thinking("hm", json.dumps(open_), origin=ORIGIN)
    assert second == Thinking("", json.dumps(hidden), "rs_1", redacted=True, origin=ORIGIN)


@pytest.mark.parametrize(
    ("item", "text"),
    [
        (message(said("a", annotations=[{"type": "url_citation"}])), "a"),
        (message(said("a"), said("b")), "ab"),
        (message(said("a", logprobs=[{"token": "a"}])), "a"),
        (message({"type": "hologram"}), ""),
        (message(), ""),
    ],
)
def test_a_message_of_more_than_one_plain_text_is_kept_as_it_is(item: Any, text: str):
    response = parsed(item)

    assert response.message.parts == (Opaque(ORIGIN, json.dumps(item), text),)
    assert response.stop == "end"


def test_a_refusal_is_text_for_a_reader():
    response = parsed(message({"type": "refusal", "refusal": "No."}))

    assert (response.message.text, response.stop) == ("No.", "refusal")


@pytest.mark.parametrize(
    ("fields", "stop", "raw_stop"),
    [
        (
            {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
            "length",
            "max_output_tokens",
        ),
        (
            {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}},
            "content_filter",
            "content_filter",
        ),
        ({"status": "incomplete"}, "other", "incomplete"),
        ({"status": None}, "end", ""),
        ({"status": "complete"}, "end", "complete"),
    ],
)
def test_why_an_answer_ended(fields: dict[str, Any], stop: str, raw_stop: str):
    response = parsed(message(said("Hel")), **fields)

    assert (response.stop, response.raw_stop) == (stop, raw_stop)


def test_tokens_are_counted_with_their_cache_classes():
    usage = {
        "input_tokens": 10,
        "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 3},
        "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 2},
    }

    assert parsed(usage=usage).usage == TokenUsage(10, 5, 4, 3, 2)
    assert parsed().usage.estimated


def test_what_servers_write_differently_is_understood():
    response = parsed(
        {"role": "assistant", "content": "Hello."},
        {"type": "function_call", "name": "a", "arguments": {"x": 1}},
        {"type": "function_call", "name": "b", "id": "fc_2"},
    )

    assert response.message.parts == (
        Text("Hello."),
        ToolCall("call_1", "a", '{"x":1}'),
        ToolCall("fc_2", "b", "{}", response.message.calls[1].signature),
    )


def test_what_is_needed_and_missing_is_named():
    with pytest.raises(ModelError, match="without 'output'"):
        ResponsesWire().parse(b'{"id": "1"}')
    with pytest.raises(ModelError, match=r"without 'output\[1\].name'"):
        parsed(CALL, {"type": "function_call"})


@pytest.mark.parametrize(
    ("body", "kind", "code"),
    [
        (
            {"status": "failed", "error": {"code": "rate_limit_exceeded", "message": "slow"}},
            "rate_limit",
            "rate_limit_exceeded",
        ),
        ({"status": "failed", "error": {"code": "server_error", "message": "oops"}}, "server", "server_error"),
        ({"status": "failed"}, "server", None),
    ],
)
def test_an_error_in_the_body_is_raised(body: dict[str, Any], kind: str, code: str | None):
    for read in (
        lambda: parsed(**body),
        lambda: fed({"type": "response.failed", "response": answer(**body)}),
    ):
        with pytest.raises(ModelError) as caught:
            read()
        assert (caught.value.kind, caught.value.provider_code) == (kind, code)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"error": {"message": "bad", "code": "invalid_api_key"}}', "bad"),
        (b'[{"error": "bad"}]', "bad"),
        (b'{"detail": "bad"}', "bad"),
        (b"<html>", "<html>"),
    ],
)
def test_an_error_status_is_explained(body: bytes, message: str):
    error = ResponsesWire().error(401, {}, body)

    assert error.kind == "auth"
    assert message in str(error)


def test_a_key_is_sent_as_a_bearer_token():
    assert ResponsesWire().headers("k") == {"authorization": "Bearer k"}
    assert ResponsesWire().headers(None) == {}


def test_all_that_happens_is_told():
    text = message(said("Hello."))
    items = (REASONING, text, CALL)
    events = fed(
        event("created", response=answer(status="in_progress")),
        event("output_item.added", 0, item={"type": "reasoning"}),
        event("reasoning_summary_part.added", 0, summary_index=0),
        event("reasoning_summary_text.delta", 0, delta="Look"),
        event("reasoning_summary_part.added", 0, summary_index=1),
        event("reasoning_summary_text.delta", 0, delta="twice"),
        event("output_item.done", 0, item=REASONING),
        event("output_item.added", 1, item=message()),
        event("output_text.delta", 1, delta="Hel"),
        event("output_text.delta", 1, delta="lo."),
        event("output_text.done", 1, text="Hello."),
        event("output_item.done", 1, item=text),
        event("output_item.added", 2, item={**CALL, "arguments": ""}),
        event("function_call_arguments.delta", 2, delta='{"a"'),
        event("function_call_arguments.delta", 2, delta=": 1}"),
        event("output_item.done", 2, item=CALL),
        event("hologram.delta", 3, delta="?"),
        completed(*items, usage={"input_tokens": 3}),
    )

    whole = parsed(*items, usage={"input_tokens": 3})
    assert events == [
        ThinkingChunk("Look"),
        ThinkingChunk("\n\n"),
        ThinkingChunk("twice"),
        TextChunk("Hel"),
        TextChunk("lo."),
        CallStart(0, "call_1", "look"),
        CallDelta(0, '{"a"'),
        CallDelta(0, ": 1}"),
        CallEnd(0, whole.message.calls[0]),
        UsageUpdate(TokenUsage(3)),
        Done(whole),
    ]


def test_the_last_event_alone_tells_everything_too():
    *events, done = fed(completed(message(said("Hello.")), CALL))

    call = parsed(CALL).message.calls[0]
    assert events == [
        CallStart(0, "call_1", "look"),
        CallDelta(0, '{"a": 1}'),
        CallEnd(0, call),
        TextChunk("Hello."),
    ]
    assert done == Done(parsed(message(said("Hello.")), CALL))


def test_items_may_stand_in_their_own_events_only():
    done = fed(event("output_item.done", 0, item=CALL), completed())[-1]

    assert done == Done(parsed(CALL))


def test_open_reasoning_and_refusals_are_streamed():
    refusal = message({"type": "refusal", "refusal": "No."})
    events = fed(
        event("reasoning_text.delta", delta="hm"),
        event("reasoning_text.delta", delta=""),
        event("refusal.delta", 1, delta="No."),
        completed(refusal),
    )

    assert events == [ThinkingChunk("hm"), TextChunk("No."), Done(parsed(refusal))]


def test_deltas_of_an_unannounced_call_wait_for_the_call():
    events = fed(
        event("output_item.added", item={"type": "function_call"}),
        event("function_call_arguments.delta", delta="{"),
        event("output_item.added", item=SEARCH),
        event("output_item.done", item=CALL),
        completed(CALL),
    )

    assert events[1:2] == [CallDelta(0, '{"a": 1}')]
    assert response_in(events) == parsed(CALL)


def test_nothing_is_heard_after_the_end():
    decoder = ResponsesWire().decoder()
    end = json.dumps(completed()).encode()

    assert list(decoder.feed(b"[DONE]")) == []
    assert len(decoder.feed(end)) == 1
    assert list(decoder.feed(end)) == []
    assert list(decoder.close()) == []


def test_an_incomplete_answer_is_an_answer():
    cut = answer(message(said("Hel")), status="incomplete", incomplete_details={"reason": "max_output_tokens"})

    assert response_in(fed(event("incomplete", response=cut))).stop == "length"


def test_a_stream_without_its_last_event_is_cut():
    with pytest.raises(ModelError, match="after 1 complete items and 3 characters") as caught:
        fed(event("output_text.delta", delta="Hel"), event("output_item.done", item=SEARCH))
    assert caught.value.kind == "stream_cut"


@pytest.mark.parametrize(
    "data",
    [
        {"type": "error", "code": "server_overloaded", "message": "busy"},
        {"type": "error", "error": {"code": "server_overloaded", "message": "busy"}},
        {"error": {"code": "server_overloaded", "message": "busy"}},
    ],
)
def test_an_error_event_is_raised(data: dict[str, Any]):
    with pytest.raises(ModelError, match="busy") as caught:
        fed(data)
    assert caught.value.kind == "overloaded"

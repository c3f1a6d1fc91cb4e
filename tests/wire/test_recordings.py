"""Real answers of providers, replayed: all are understood, nothing is lost, streams mean what whole answers mean."""

import json
from collections.abc import Iterable
from typing import Any

import orjson
import pytest

from tests.wire import restream
from tests.wire.recordings import Exchange, exchanges
from toolcrib.contracts.errors import ModelErrorKind
from toolcrib.llm import (
    AnthropicWire,
    ChatWire,
    Done,
    Event,
    Quirks,
    Request,
    Response,
    TextDelta,
    Wire,
    decode_response,
    encode_response,
)
from toolcrib.llm.sse import SseParser

EXCHANGES = exchanges()
ANSWERS = [exchange for exchange in EXCHANGES if exchange.status < 400]
REFUSALS = [exchange for exchange in EXCHANGES if exchange.status >= 400]
WHOLE = [exchange for exchange in ANSWERS if not exchange.streams]

answers = pytest.mark.parametrize("exchange", ANSWERS, ids=lambda exchange: exchange.id)
whole_answers = pytest.mark.parametrize("exchange", WHOLE, ids=lambda exchange: exchange.id)

KINDS: dict[tuple[int, str], ModelErrorKind] = {
    (400, "context_length_exceeded"): "context_length",
    (400, "content_filter"): "content_filter",
    (401, "invalid_api_key"): "auth",
    (401, "authentication_error"): "auth",
    (404, "DeploymentNotFound"): "not_found",
    (404, "model_not_found"): "not_found",
    (404, "not_found_error"): "not_found",
    (404, ""): "not_found",
    (413, "request_too_large"): "bad_request",
    (429, ""): "rate_limit",
    (429, "rate_limit_exceeded"): "rate_limit",
    (429, "rate_limit_error"): "rate_limit",
    (429, "insufficient_quota"): "quota",
    (500, "server_error"): "server",
    (500, "api_error"): "server",
    (503, "server_overloaded"): "overloaded",
    (504, ""): "timeout",
    (529, "overloaded_error"): "overloaded",
}
KINDS_BY_MESSAGE: dict[str, ModelErrorKind] = {
    "prompt is too long": "context_length",
    "content filtering policy": "content_filter",
    "credit balance is too low": "quota",
    "does not support effort": "bad_request",
    "not supported with this model": "bad_request",
    "Tool call validation failed": "bad_request",
}


def wire_of(exchange: Exchange) -> Wire:
    return ChatWire(exchange.host) if exchange.api == "chat" else AnthropicWire()


def decoded(wire: Wire, body: bytes, *, step: int | None = None) -> list[Event]:
    parser, decoder = SseParser(), wire.decoder()
    step = step or len(body)
    chunks = [body[start : start + step] for start in range(0, len(body), step)]
    events = [event for chunk in chunks for data in parser.feed(chunk) for event in decoder.feed(data)]
    return [*events, *(event for data in parser.close() for event in decoder.feed(data)), *decoder.close()]


def response_in(events: Iterable[Event]) -> Response:
    (done,) = [event for event in events if isinstance(event, Done)]
    return done.response


def response_to(exchange: Exchange) -> Response:
    wire = wire_of(exchange)
    return response_in(decoded(wire, exchange.body)) if exchange.streams else wire.parse(exchange.body)


def recorded_message(exchange: Exchange) -> dict[str, Any]:
    return json.loads(exchange.body)["choices"][0]["message"]


def sent_back(exchange: Exchange, response: Response) -> Any:
    """The answer as the next request would send it, to an endpoint that takes all of its own fields back."""
    message = recorded_message(exchange) if exchange.api == "chat" else {}
    field = next((name for name in ("reasoning_content", "reasoning") if message.get(name)), None)
    quirks = Quirks(thinking_field=field, replay_fields=frozenset(message))
    _, body = wire_of(exchange).build(Request(messages=(response.message,)), quirks, stream=False)
    return orjson.loads(orjson.dumps(body))["messages"][0]


@pytest.mark.requirement("llm.wire_recordings")
def test_there_are_recordings_of_both_apis_whole_streamed_and_refused():
    for api in ("chat", "anthropic"):
        assert [exchange for exchange in WHOLE if exchange.api == api]
        assert [exchange for exchange in ANSWERS if exchange.api == api and exchange.streams]
        assert [exchange for exchange in REFUSALS if exchange.api == api]


@answers
@pytest.mark.requirement("llm.wire_recordings")
def test_a_recorded_answer_is_understood(exchange: Exchange):
    response = response_to(exchange)

    assert response.message.parts
    assert response.stop in {"end", "tool_calls", "length"}
    assert response.model
    assert response.id
    assert all(json.loads(call.args) is not None for call in response.message.calls)


@pytest.mark.parametrize("exchange", REFUSALS, ids=lambda exchange: exchange.id)
@pytest.mark.requirement("llm.error_kinds")
def test_a_recorded_refusal_is_the_right_kind_of_error(exchange: Exchange):
    error = wire_of(exchange).error(exchange.status, exchange.headers, exchange.body)

    by_message = [kind for phrase, kind in KINDS_BY_MESSAGE.items() if phrase in str(error)]
    assert error.kind == (by_message or [KINDS[exchange.status, error.provider_code or ""]])[0]
    assert error.status == exchange.status


@answers
@pytest.mark.requirement("llm.journal_format")
def test_a_recorded_answer_survives_the_journal(exchange: Exchange):
    response = response_to(exchange)

    assert decode_response(encode_response(response)) == response


@whole_answers
@pytest.mark.requirement("llm.nothing_lost")
def test_a_recorded_answer_goes_back_as_it_came(exchange: Exchange):
    rebuilt = sent_back(exchange, response_to(exchange))

    if exchange.api == "anthropic":
        said = [block for block in json.loads(exchange.body)["content"] if block != {"type": "text", "text": ""}]
        assert rebuilt["content"] == [_without_defaults(block) for block in said]
        return
    message = recorded_message(exchange)
    for name, value in message.items():
        if name == "tool_calls":
            ids = [call.id for call in response_to(exchange).message.calls]
            assert rebuilt.get(name, []) == [_call(call, id_) for call, id_ in zip(value or (), ids, strict=True)]
        elif value not in (None, [], {}, ""):
            assert rebuilt[name] == value


@whole_answers
@pytest.mark.requirement("llm.stream_equals_whole")
def test_a_recorded_answer_means_the_same_when_it_is_streamed(exchange: Exchange):
    wire = wire_of(exchange)
    stream = restream.chat(exchange.body) if exchange.api == "chat" else restream.anthropic(exchange.body)
    whole = wire.parse(exchange.body)

    events = decoded(wire, stream)

    streamed = response_in(events)
    assert _comparable(streamed) == _comparable(whole)
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == whole.message.text


@pytest.mark.parametrize("api", ["chat", "anthropic"])
@pytest.mark.requirement("llm.stream_equals_whole", "llm.sse_any_cut")
def test_a_hand_written_pair_is_equal_wherever_the_stream_is_cut(api: str):
    whole, streamed = [exchange for exchange in ANSWERS if exchange.id.startswith(f"{api}_pair")]
    expected = _comparable(wire_of(whole).parse(whole.body))

    for step in (1, 2, 3, 5, 64, 1000):
        assert _comparable(response_in(decoded(wire_of(streamed), streamed.body, step=step))) == expected


def _comparable(response: Response) -> Response:
    """JSON texts in one spelling: pieces of a stream may be spelt with other white space than the whole."""
    data = json.loads(encode_response(response))
    for part in data["response"]["message"]["parts"]:
        for name in ("args", "raw"):
            if name in part:
                part[name] = json.dumps(json.loads(part[name]), sort_keys=True)
    return decode_response(json.dumps(data))


def _without_defaults(block: dict[str, Any]) -> dict[str, Any]:
    """What our rendering leaves out of a block, because the API fills it in."""
    if block["type"] == "tool_use":
        return {name: value for name, value in block.items() if value != {"type": "direct"}}
    return {name: value for name, value in block.items() if name != "citations" or value}


def _call(call: dict[str, Any], id_: str) -> dict[str, Any]:
    """The call as recorded; one that came without an id has the one that we gave it."""
    known = {"id": call["id"] or id_, "type": "function", "function": call["function"]}
    return known | {name: value for name, value in call.items() if name not in {*known, "index"}}

"""Real answers of providers, replayed: all are understood, nothing is lost, streams mean what whole answers mean."""

import json
import random
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import orjson
import pytest

from tests.wire import restream
from tests.wire.recordings import WIRES, Exchange, exchanges
from tests.wire.walk import leaves, said_in
from toolcrib.contracts.base.errors import ModelError, ModelErrorKind
from toolcrib.llm import (
    Done,
    Event,
    Quirks,
    Request,
    Response,
    TextChunk,
    Thinking,
    ThinkingChunk,
    Wire,
    decode_response,
    encode_response,
)
from toolcrib.llm.base.transport import SseParser

EXCHANGES = exchanges()
ANSWERS = [exchange for exchange in EXCHANGES if exchange.status < 400 and not exchange.fails]
FAILURES = [exchange for exchange in EXCHANGES if exchange.status < 400 and exchange.fails]
REFUSALS = [exchange for exchange in EXCHANGES if exchange.status >= 400]
WHOLE = [exchange for exchange in ANSWERS if not exchange.streams]
STREAMS = [exchange for exchange in ANSWERS if exchange.streams]

answers = pytest.mark.parametrize("exchange", ANSWERS, ids=lambda exchange: exchange.id)
refusals = pytest.mark.parametrize("exchange", REFUSALS, ids=lambda exchange: exchange.id)
streams = pytest.mark.parametrize("exchange", STREAMS, ids=lambda exchange: exchange.id)

PLAUSIBLE: dict[int, tuple[ModelErrorKind, ...]] = {
    400: ("bad_request", "context_length", "content_filter", "quota", "auth", "not_found"),
    401: ("auth",),
    402: ("quota",),
    403: ("auth",),
    404: ("not_found",),
    408: ("timeout",),
    413: ("bad_request", "context_length"),
    422: ("bad_request",),
    429: ("rate_limit", "quota"),
    500: ("server",),
    502: ("server",),
    503: ("overloaded",),
    504: ("timeout",),
    529: ("overloaded",),
}
KINDS_BY_MESSAGE: dict[str, ModelErrorKind] = {
    "prompt is too long": "context_length",
    "maximum context length": "context_length",
    "content filtering policy": "content_filter",
    "credit balance is too low": "quota",
    "exceeded your current quota": "quota",
    "does not support effort": "bad_request",
    "not supported with this model": "bad_request",
    "Tool call validation failed": "bad_request",
}


def decoded(wire: Wire, chunks: Iterable[bytes]) -> list[Event]:
    parser, decoder = SseParser(), wire.decoder()
    events = [event for chunk in chunks for data in parser.feed(chunk) for event in decoder.feed(data)]
    return [*events, *(event for data in parser.close() for event in decoder.feed(data)), *decoder.close()]


def cut(body: bytes, places: Iterable[int]) -> list[bytes]:
    bounds = [0, *sorted(places), len(body)]
    return [body[start:end] for start, end in pairwise(bounds)]


def response_in(events: Iterable[Event]) -> Response:
    (done,) = [event for event in events if isinstance(event, Done)]
    return done.response


def response_to(exchange: Exchange) -> Response:
    wire = exchange.wire
    return response_in(decoded(wire, [exchange.body])) if exchange.streams else wire.parse(exchange.body)


@pytest.mark.requirement("llm.wire_recordings")
def test_there_are_recordings_of_every_api_whole_streamed_and_refused():
    for api in WIRES:
        assert [exchange for exchange in WHOLE if exchange.api == api]
        assert [exchange for exchange in STREAMS if exchange.api == api]
        assert [exchange for exchange in REFUSALS if exchange.api == api]


@answers
@pytest.mark.requirement("llm.wire_recordings")
def test_a_recorded_answer_is_understood(exchange: Exchange):
    response = response_to(exchange)
    said = said_in(exchange)

    assert response.message.text == said.text
    assert "".join(part.text for part in response.message.parts if isinstance(part, Thinking)) == said.thinking
    assert [(call.name, json.loads(call.args)) for call in response.message.calls] == said.calls
    assert response.stop != "other" or response.raw_stop in {"queued", "UNEXPECTED_TOOL_CALL"}
    assert (response.stop == "tool_calls") >= bool(said.calls and response.stop == "end")
    assert len({call.id for call in response.message.calls}) == len(said.calls)
    if said.tokens is not None:
        assert (response.usage.input, response.usage.output) == said.tokens
    assert response.usage.estimated is (said.tokens is None)


@answers
@pytest.mark.requirement("llm.nothing_lost", "llm.journal_format")
def test_all_that_a_recorded_answer_says_is_in_the_journal(exchange: Exchange):
    response = response_to(exchange)
    stored = encode_response(response)
    kept = "\n".join(leaves(json.loads(stored)))

    assert decode_response(stored) == response
    assert [leaf for leaf in said_in(exchange).leaves if leaf not in kept] == []


@refusals
@pytest.mark.requirement("llm.error_kinds")
def test_a_recorded_refusal_is_the_right_kind_of_error(exchange: Exchange):
    error = exchange.wire.error(exchange.status, exchange.headers, exchange.body)

    by_message = [kind for phrase, kind in KINDS_BY_MESSAGE.items() if phrase in str(error)]
    assert error.kind in (by_message or PLAUSIBLE[exchange.status])
    assert error.status == exchange.status
    assert "no message" not in str(error)


@pytest.mark.parametrize("exchange", FAILURES, ids=lambda exchange: exchange.id)
@pytest.mark.requirement("llm.error_kinds")
def test_a_recorded_failure_inside_an_answer_is_raised(exchange: Exchange):
    with pytest.raises(ModelError, match=exchange.host):
        response_to(exchange)


def same_api(api: str) -> list[Exchange]:
    return [exchange for exchange in WHOLE if exchange.api == api]


@pytest.mark.parametrize("exchange", same_api("anthropic"), ids=lambda exchange: exchange.id)
@pytest.mark.requirement("llm.nothing_lost")
def test_an_anthropic_message_goes_back_as_it_came(exchange: Exchange):
    _, body = exchange.wire.build(Request(messages=(response_to(exchange).message,)), Quirks(), stream=False)
    messages = orjson.loads(orjson.dumps(body))["messages"]

    said = [block for block in json.loads(exchange.body)["content"] if block != {"type": "text", "text": ""}]
    assert (messages[0]["content"] if messages else []) == [_without_defaults(block) for block in said]


@pytest.mark.parametrize("exchange", same_api("chat"), ids=lambda exchange: exchange.id)
@pytest.mark.requirement("llm.nothing_lost")
def test_a_chat_message_goes_back_as_it_came_to_an_endpoint_that_takes_all_of_its_own_fields(exchange: Exchange):
    message = json.loads(exchange.body)["choices"][0].get("message", {})
    field = "content" if isinstance(message.get("content"), list) else None
    field = next((name for name in ("reasoning_content", "reasoning") if message.get(name)), field)
    quirks = Quirks(thinking_field=field, replay_fields=frozenset(message))
    response = response_to(exchange)

    _, body = exchange.wire.build(Request(messages=(response.message,)), quirks, stream=False)
    rebuilt = orjson.loads(orjson.dumps(body))["messages"][0]

    for name, value in message.items():
        if name == "tool_calls":
            ids = [call.id for call in response.message.calls]
            assert rebuilt.get(name, []) == [_call(call, id_) for call, id_ in zip(value or (), ids, strict=True)]
        elif name == "function_call" and list(leaves(value)):
            assert response.message.calls[0].name == value["name"]
        elif list(leaves(value)) and name not in {"function_call", "reasoning_content"} - {field}:
            assert rebuilt[name] == value


@pytest.mark.parametrize("exchange", same_api("responses"), ids=lambda exchange: exchange.id)
@pytest.mark.requirement("llm.nothing_lost")
def test_items_go_back_as_they_came(exchange: Exchange):
    _, body = exchange.wire.build(Request(messages=(response_to(exchange).message,)), Quirks(), stream=False)

    items = json.loads(exchange.body)["output"]
    kept = [
        item for item in items if item["type"] != "reasoning" or item.get("encrypted_content") or item.get("content")
    ]
    assert [_plain(item) for item in orjson.loads(orjson.dumps(body))["input"]] == [_plain(item) for item in kept]


@pytest.mark.parametrize("exchange", [each for each in WHOLE if each.api != "gemini"], ids=lambda exchange: exchange.id)
@pytest.mark.requirement("llm.stream_equals_whole")
def test_a_recorded_answer_means_the_same_when_it_is_streamed(exchange: Exchange):
    stream = {"chat": restream.chat, "anthropic": restream.anthropic, "responses": restream.responses}[exchange.api]
    whole = exchange.wire.parse(exchange.body)

    events = decoded(exchange.wire, [stream(exchange.body)])

    assert _comparable(response_in(events)) == _comparable(whole)
    assert "".join(event.text for event in events if isinstance(event, TextChunk)) == whole.message.text


@streams
@pytest.mark.requirement("llm.stream_equals_whole", "llm.sse_any_cut")
def test_a_recorded_stream_means_the_same_wherever_it_is_cut(exchange: Exchange):
    expected = decoded(exchange.wire, [exchange.body])
    dice = random.Random(exchange.id)

    for cuts in (1, 10, 100):
        places = [dice.randrange(len(exchange.body)) for _ in range(cuts)]
        assert decoded(exchange.wire, cut(exchange.body, places)) == expected


@streams
@pytest.mark.requirement("llm.stream_equals_whole")
def test_the_deltas_of_a_recorded_stream_add_up_to_its_answer(exchange: Exchange):
    events = decoded(exchange.wire, [exchange.body])
    message = response_in(events).message

    assert "".join(event.text for event in events if isinstance(event, TextChunk)) == message.text
    thoughts = "".join(event.text for event in events if isinstance(event, ThinkingChunk))
    assert thoughts == "".join(part.text for part in message.parts if isinstance(part, Thinking))


@pytest.mark.parametrize("api", ["chat", "anthropic", "responses"])
@pytest.mark.requirement("llm.stream_equals_whole", "llm.sse_any_cut")
def test_a_hand_written_pair_is_equal_wherever_the_stream_is_cut(api: str):
    whole, streamed = [exchange for exchange in ANSWERS if exchange.id.startswith(f"{api}_pair")]
    expected = _comparable(whole.wire.parse(whole.body))

    for step in (1, 2, 3, 5, 64, 1000):
        chunks = cut(streamed.body, range(step, len(streamed.body), step))
        assert _comparable(response_in(decoded(streamed.wire, chunks))) == expected


def _comparable(response: Response) -> Response:
    """JSON texts in one spelling: pieces of a stream may be spelt with other white space than the whole."""
    data = json.loads(encode_response(response))
    for part in data["response"]["message"]["parts"]:
        for name in ("args", "raw", "signature"):
            if part.get(name, "")[:1] in ("{", "["):
                part[name] = json.dumps(json.loads(part[name]), sort_keys=True)
    return decode_response(json.dumps(data))


def _without_defaults(block: dict[str, Any]) -> dict[str, Any]:
    """What our rendering leaves out of a block, because the API fills it in."""
    if block["type"] == "tool_use":
        return {name: value for name, value in block.items() if value not in (None, {"type": "direct"})}
    return {name: value for name, value in block.items() if name != "citations" or value}


def _call(call: dict[str, Any], id_: str) -> dict[str, Any]:
    """The call as recorded; one that came without an id has the one that we gave it."""
    known = {"id": call.get("id") or id_, "type": "function", "function": call["function"]}
    return known | {name: value for name, value in call.items() if name not in {*known, "index"}}


def _plain(item: dict[str, Any]) -> dict[str, Any]:
    """An item without the empty fields of its texts, which the API fills in."""
    if item["type"] != "message":
        return {name: value for name, value in item.items() if value is not None}
    content = [{name: value for name, value in piece.items() if value not in ([], None)} for piece in item["content"]]
    return {**item, "content": content}

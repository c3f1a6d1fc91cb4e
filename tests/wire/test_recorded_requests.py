"""Requests of other clients, rebuilt from their neutral form: we would have sent the same."""

import orjson
import pytest

from tests.wire.conversations import essence, neutral
from tests.wire.recordings import Exchange, exchanges
from toolcrib.llm import Quirks, Request

pytestmark = pytest.mark.requirement("llm.same_requests")

SENT = [
    (exchange, request)
    for exchange in exchanges()
    if exchange.api != "gemini" and exchange.status < 400 and exchange.request
    if (request := neutral(exchange)) is not None
]


def test_there_are_requests_of_each_api_that_can_be_said_in_our_words():
    assert {exchange.api for exchange, _ in SENT} == {"anthropic", "chat", "responses"}


@pytest.mark.parametrize(("exchange", "request_"), SENT, ids=lambda given: getattr(given, "id", ""))
def test_a_recorded_request_is_what_we_would_send(exchange: Exchange, request_: Request):
    quirks = Quirks(thinking_field="reasoning_content", replay_fields=frozenset({"reasoning_details"}))
    _, body = exchange.wire.build(request_, quirks, stream=False)

    assert essence(exchange.api, orjson.loads(orjson.dumps(body))) == essence(exchange.api, exchange.request)

"""The mock provider: its script, whole and streamed, and what it refuses."""

from collections.abc import AsyncGenerator
from typing import Any

import orjson
import pytest
from aiohttp.test_utils import TestClient, TestServer

from benchmarks.mock_provider import MockProvider, call_id
from benchmarks.script import ANSWER, QUESTION, TURNS
from toolcrib.llm.base.messages import Done
from toolcrib.llm.base.transport import SseParser
from toolcrib.llm.wires import ChatWire

pytestmark = pytest.mark.requirement("benchmarks.provider")

PATH = "/v1/chat/completions"


@pytest.fixture
async def client() -> AsyncGenerator[TestClient[Any, Any]]:
    async with TestClient(TestServer(MockProvider().application())) as client:
        yield client


def asked(*answered: tuple[int, int], **fields: Any) -> dict[str, Any]:
    """A request whose history has the results of these calls, by turn and index."""
    results = [{"role": "tool", "tool_call_id": call_id(*place), "content": "fine"} for place in answered]
    return {"model": "agent", "messages": [{"role": "user", "content": QUESTION}, *results], **fields}


FIRST, SECOND = [(0, 0), (0, 1)], [(1, 0), (1, 1)]


@pytest.mark.parametrize(("turn", "answered"), [(0, []), (1, FIRST), (2, [*FIRST, *SECOND])])
async def test_the_history_says_which_turn_it_is_whole_and_streamed(
    client: TestClient[Any, Any], turn: int, answered: list[tuple[int, int]]
):
    wire = ChatWire()
    whole = await client.post(PATH, json=asked(*answered))
    streamed = await client.post(PATH, json=asked(*answered, stream=True))
    response = wire.parse(await whole.read())

    called = [(call.name, orjson.loads(call.args)["city"]) for call in response.message.calls]
    assert called == list(TURNS[turn] if turn < len(TURNS) else ())
    assert (response.message.text == ANSWER) == (turn == len(TURNS))

    parser, decoder = SseParser(), wire.decoder()
    events = [event for data in parser.feed(await streamed.read()) for event in decoder.feed(data)]
    assert [*events, *decoder.close()][-1] == Done(response)


@pytest.mark.parametrize("answered", [FIRST[:1], [*FIRST, SECOND[0]], SECOND])
async def test_a_history_without_the_result_of_an_earlier_call_is_refused(
    client: TestClient[Any, Any], answered: list[tuple[int, int]]
):
    answer = await client.post(PATH, json=asked(*answered))

    assert answer.status == 400
    assert "the history has no result of" in (await answer.json())["error"]["message"]


async def test_only_answers_of_the_script_are_counted(client: TestClient[Any, Any]):
    assert (await client.post(PATH, json=asked(model="other"))).status == 404
    await client.post(PATH, json=asked())

    assert await (await client.get("/answered")).text() == "1"

"""A loopback OpenAI Chat Completions provider that plays `benchmarks.script`, as JSON and as server-sent events.

It runs in a process of its own, so its CPU never counts. The next answer follows from the request alone: the tool
results in the history say which turn it is, and a history that lacks the result of an earlier call is refused, so a
candidate that skips work fails instead of winning. Answers are rendered once, at import. Not a general mock: no errors,
no limits, no other API.

    python -m benchmarks.mock_provider       prints the port, then serves until it is ended
"""

import asyncio
from collections.abc import Iterator
from typing import Any

import orjson
from aiohttp import web

from benchmarks.script import ANSWER, INTERIM, TURNS

LATENCY_S = {"agent": 0.0, "agent-slow": 0.1}
"""Seconds before an answer, by model name."""

USAGE = {"prompt_tokens": 120, "completion_tokens": 30, "total_tokens": 150}
PIECE = 12
"""Characters of text or of arguments in one streamed event."""


def call_id(turn: int, index: int) -> str:
    """The provider's id of a scripted call."""
    return f"call_{turn}_{index}"


CALL_IDS = [{call_id(turn, index) for index in range(len(calls))} for turn, calls in enumerate(TURNS)]


def tool_calls(turn: int) -> list[dict[str, Any]]:
    """The calls of one turn in the wire format; the turn after the last has none."""
    calls = TURNS[turn] if turn < len(TURNS) else ()
    return [
        {
            "id": call_id(turn, index),
            "type": "function",
            "function": {"name": name, "arguments": orjson.dumps({"city": city}).decode()},
        }
        for index, (name, city) in enumerate(calls)
    ]


def as_json(turn: int) -> bytes:
    """The whole answer of a turn as one `chat.completion` object."""
    calls = tool_calls(turn)
    message: dict[str, Any] = {"role": "assistant", "content": INTERIM if calls else ANSWER, "refusal": None}
    if calls:
        message["tool_calls"] = calls
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "tool_calls" if calls else "stop"}
    return orjson.dumps({**head(turn, "chat.completion"), "choices": [choice], "usage": USAGE})


def as_events(turn: int) -> bytes:
    """The same answer as a burst of `chat.completion.chunk` events, usage last, then `[DONE]`."""
    chunks: list[dict[str, Any]] = [
        {"choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}], "usage": None}
        for delta, finish in deltas(turn)
    ]
    chunks.append({"choices": [], "usage": USAGE})
    shared = head(turn, "chat.completion.chunk")
    events = [b"data: " + orjson.dumps({**shared, **chunk}) + b"\n\n" for chunk in chunks]
    return b"".join([*events, b"data: [DONE]\n\n"])


def deltas(turn: int) -> Iterator[tuple[dict[str, Any], str | None]]:
    """Each delta of a streamed answer with its finish reason, which only the last one has."""
    calls = tool_calls(turn)
    yield {"role": "assistant", "content": ""}, None
    for piece in pieces(INTERIM if calls else ANSWER):
        yield {"content": piece}, None
    for index, call in enumerate(calls):
        function = call["function"]
        yield {"tool_calls": [{**call, "index": index, "function": {**function, "arguments": ""}}]}, None
        for piece in pieces(function["arguments"]):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}, None
    yield {}, "tool_calls" if calls else "stop"


def pieces(text: str) -> Iterator[str]:
    """A text in streamed pieces."""
    return (text[start : start + PIECE] for start in range(0, len(text), PIECE))


def head(turn: int, kind: str) -> dict[str, Any]:
    """Fields that every answer and every chunk of a turn carry."""
    return {"id": f"chatcmpl-{turn}", "object": kind, "created": 1760000000, "model": "agent"}


JSON_ANSWERS = [as_json(turn) for turn in range(len(TURNS) + 1)]
STREAMED_ANSWERS = [as_events(turn) for turn in range(len(TURNS) + 1)]


class MockProvider:
    """The two routes: the API, and a counter of the requests answered."""

    def __init__(self) -> None:
        self.answered = 0

    def application(self) -> web.Application:
        """The routes as an aiohttp application."""
        app = web.Application()
        app.router.add_post("/v1/chat/completions", self.complete)
        app.router.add_get("/answered", self.count)
        return app

    async def complete(self, request: web.Request) -> web.Response:
        """Answer the next turn of the script, after the model's latency."""
        body = orjson.loads(await request.read())
        latency = LATENCY_S.get(body["model"])
        if latency is None:
            return refusal(404, f"model {body['model']!r} is unknown; there are {sorted(LATENCY_S)}")
        results = {message["tool_call_id"] for message in body["messages"] if message["role"] == "tool"}
        turn = sum(1 for ids in CALL_IDS if ids & results)
        missing = set[str]().union(*CALL_IDS[:turn]) - results
        if missing:
            return refusal(400, f"the history has no result of {sorted(missing)}")
        if latency:
            await asyncio.sleep(latency)
        self.answered += 1
        if body.get("stream"):
            return web.Response(body=STREAMED_ANSWERS[turn], content_type="text/event-stream")
        return web.Response(body=JSON_ANSWERS[turn], content_type="application/json")

    async def count(self, request: web.Request) -> web.Response:
        """How many model calls were answered since the start, as plain text."""
        return web.Response(text=str(self.answered))


def refusal(status: int, message: str) -> web.Response:
    """An error in the provider's format."""
    return web.json_response({"error": {"message": message, "type": "invalid_request_error"}}, status=status)


async def serve() -> None:
    """Serve on a free loopback port and print its number."""
    runner = web.AppRunner(MockProvider().application(), access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=1024).start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve())

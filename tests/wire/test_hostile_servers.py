"""Models against servers on loopback that hang, lie, flood and break off: always one clear error."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from tests.unit.net.servers import answering, serving_raw
from toolcrib.contracts.base.errors import EgressDenied, ModelError, ModelErrorKind
from toolcrib.infrastructure.net import EgressPolicy, HttpSession, Timeouts
from toolcrib.llm import Done, Event, HttpTransport, Model, Request, TextChunk, open_model, user

KEY = "sk-secret-0123456789"
ASK = Request(messages=(user("hello"),), timeouts=Timeouts(connect_s=5, read_idle_s=0.1, total_s=None))
STREAM_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"

BUSY = b'data: {"error": {"message": "busy", "code": "server_overloaded"}}\n\n'


def chunk(text: str, finish: str | None = None) -> bytes:
    content = {"id": "1", "model": "m", "choices": [{"delta": {"content": text}, "finish_reason": finish}]}
    return b"data: " + json.dumps(content).encode() + b"\n\n"


def answer(status: str, body: bytes, *headers: str, content_type: str = "application/json") -> bytes:
    lines = [f"HTTP/1.1 {status}", f"content-type: {content_type}", f"content-length: {len(body)}", *headers]
    return "\r\n".join([*lines, "connection: close", "", ""]).encode() + body


@asynccontextmanager
async def model_at(raw: bytes, *, hang: bool = False, provider: str = "openai-compatible") -> AsyncGenerator[Model]:
    """A model whose server answers with these bytes and then closes, or says no more."""

    async def hanging(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(raw)
        await writer.drain()
        await reader.read()
        while await reader.read(65536):
            pass

    async with (
        serving_raw(hanging if hang else answering(raw)) as port,
        HttpSession(EgressPolicy(allow=(f"127.0.0.1:{port}",))) as session,
    ):
        base_url = f"http://127.0.0.1:{port}/v1"
        yield open_model(f"{provider}:m", HttpTransport(session), base_url=base_url, key=lambda: KEY)


async def failure(model: Model, *, stream: bool) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await (collected(model) if stream else model.request(ASK))
    assert KEY not in str(caught.value)
    assert KEY not in repr(vars(caught.value))
    return caught.value


async def collected(model: Model) -> list[Event]:
    return [event async for event in model.stream(ASK)]


both = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


@both
@pytest.mark.parametrize(
    ("raw", "kind", "message"),
    [
        (answer("200 OK", b'{"id": "1", "choices": [{"mess'), "bad_response", "not JSON"),
        (answer("200 OK", b"[1, 2]"), "bad_response", "JSON list, expected an object"),
        (answer("200 OK", b'{"id": "1"}'), "bad_response", "without 'choices'"),
        (answer("200 OK", b'{"choices": [{"text": "old"}]}'), "bad_response", "without 'choices[0].message'"),
        (answer("200 OK", b""), "bad_response", "empty body"),
        (answer("200 OK", b'{"error": {"message": "busy", "code": 503}}'), "overloaded", "busy"),
        (answer("200 OK", b"<html>login</html>", content_type="text/html"), "bad_response", "<html>login"),
        (answer("200 OK", b'"' + b"x" * 10_000_000 + b'"'), "bad_response", "too large"),
        (answer("502 Bad Gateway", b"<html>nginx</html>", content_type="text/html"), "server", "502: <html>nginx"),
        (answer("307 Temporary Redirect", b"", "location: http://127.0.0.1/"), "bad_response", "307"),
        (answer("401 Unauthorized", b'{"error": {"message": "bad key ' + KEY.encode() + b'"}}'), "auth", "[api key]"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{", "connection", "could not be reached"),
        (b"not http at all\r\n\r\n", "connection", "could not be reached"),
        (b"", "connection", "could not be reached"),
    ],
    ids=[
        "half a JSON",
        "a list",
        "no choices",
        "no message",
        "empty 200",
        "error in a 200",
        "a page",
        "10 MB",
        "HTML 502",
        "a redirect",
        "an echoed key",
        "a cut body",
        "no HTTP",
        "nothing",
    ],
)
@pytest.mark.requirement("llm.hostile_servers")
async def test_a_broken_answer_is_one_clear_error(raw: bytes, kind: ModelErrorKind, message: str, stream: bool):
    async with model_at(raw) as model:
        error = await failure(model, stream=stream)

    if stream and raw.startswith(b"HTTP/1.1 200 OK\r\ncontent-length: 100"):
        assert error.kind == "stream_cut"
        return
    assert (error.kind, message in str(error)) == (kind, True), str(error)


@both
@pytest.mark.requirement("llm.hostile_servers")
async def test_a_server_that_hangs_is_a_time_out(stream: bool):
    async with model_at(b"", hang=True) as model:
        assert (await failure(model, stream=stream)).kind == "timeout"


@pytest.mark.requirement("llm.hostile_servers")
async def test_a_stream_that_falls_silent_is_a_time_out():
    async with model_at(STREAM_HEAD + chunk("hel"), hang=True) as model:
        assert (await failure(model, stream=True)).kind == "timeout"


@pytest.mark.parametrize(
    ("raw", "kind", "message"),
    [
        (STREAM_HEAD + chunk("hel") + chunk("lo"), "stream_cut", "after 5 characters"),
        (STREAM_HEAD + chunk("hel")[:-20], "stream_cut", "after 0 characters"),
        (STREAM_HEAD, "stream_cut", "after 0 characters"),
        (
            STREAM_HEAD + chunk("hel") + b'data: {"error": {"message": "busy", "code": "server_overloaded"}}\n\n',
            "overloaded",
            "busy",
        ),
        (STREAM_HEAD + chunk("hel") + b"data: {oops}\n\n", "bad_response", "not JSON"),
        (STREAM_HEAD + b"data: [DONE]\n\n", "bad_response", "no 'choices'"),
        (STREAM_HEAD + chunk("x" * 100) * 90_000, "bad_response", "too large"),
        (STREAM_HEAD + b"data: " + b"x" * 5_000_000, "bad_response", "event of more than"),
    ],
    ids=[
        "no end",
        "half an event",
        "no event",
        "error in mid-stream",
        "broken event",
        "only the end",
        "flood",
        "endless event",
    ],
)
@pytest.mark.requirement("llm.hostile_servers")
async def test_a_broken_stream_is_one_clear_error(raw: bytes, kind: ModelErrorKind, message: str):
    async with model_at(raw) as model:
        error = await failure(model, stream=True)

    assert (error.kind, message in str(error)) == (kind, True), str(error)


@both
@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("retry-after: 17", 17.0),
        ("retry-after-ms: 1500", 1.5),
        ("date: Fri, 21 Nov 2025 10:00:00 GMT\r\nretry-after: Fri, 21 Nov 2025 10:01:00 GMT", 60.0),
        ("date: Fri, 21 Nov 2025 10:00:00 GMT\r\nretry-after: Fri, 21 Nov 2025 09:00:00 GMT", 0.0),
        ("retry-after: soon", None),
        ("retry-after: -1", None),
        ("x-nothing: 1", None),
    ],
)
@pytest.mark.requirement("llm.error_kinds")
async def test_a_rate_limit_says_how_long_to_wait(header: str, seconds: float | None, stream: bool):
    raw = answer("429 Too Many Requests", b'{"error": {"message": "slow down"}}', header, "x-request-id: req_7")
    async with model_at(raw) as model:
        error = await failure(model, stream=stream)

    assert (error.kind, error.status, error.request_id, error.retry_after_s) == ("rate_limit", 429, "req_7", seconds)


@pytest.mark.requirement("llm.hostile_servers")
async def test_a_server_that_ignores_the_wish_for_a_stream_is_understood():
    body = b'{"id": "1", "model": "m", "choices": [{"message": {"content": "hello"}, "finish_reason": "stop"}]}'
    async with model_at(answer("200 OK", body)) as model:
        (done,) = await collected(model)

    assert isinstance(done, Done)
    assert done.response.message.text == "hello"
    assert done.response.usage.estimated


@pytest.mark.requirement("llm.hostile_servers")
async def test_a_stream_without_its_end_marker_is_complete_after_the_finish_reason():
    async with model_at(STREAM_HEAD + chunk("hel") + chunk("lo", "stop")[:-1]) as model:
        *deltas, done = await collected(model)

    assert deltas == [TextChunk("hel"), TextChunk("lo")]
    assert isinstance(done, Done)
    assert done.response.message.text == "hello"


@pytest.mark.requirement("llm.hostile_servers")
async def test_a_reader_that_leaves_early_closes_the_connection():
    closed = asyncio.Event()

    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(STREAM_HEAD + chunk("hel"))
        while await reader.read(65536):
            pass
        closed.set()

    async with serving_raw(endless) as port, HttpSession(EgressPolicy(allow=(f"127.0.0.1:{port}",))) as session:
        model = open_model("ollama:m", HttpTransport(session), base_url=f"http://127.0.0.1:{port}")
        events = model.stream(Request(messages=(user("hello"),)))
        assert await anext(events) == TextChunk("hel")
        await events.aclose()
        await asyncio.wait_for(closed.wait(), 5)


@pytest.mark.requirement("llm.hostile_servers")
async def test_an_address_that_egress_forbids_is_denied_before_the_key_leaves():
    async with HttpSession() as session:
        model = open_model("ollama:m", HttpTransport(session))

        with pytest.raises(EgressDenied):
            await model.request(ASK)

"""The work that is counted, each in memory and on SQLite."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass
from tempfile import TemporaryDirectory
from typing import Any, Final

import orjson

from benchmarks.costs.counting import REPEATS, CannotCountError, Counts, LoopClock, Work, count, deterministic
from benchmarks.costs.network import CountingLoop, Server
from benchmarks.costs.where import CallTree
from benchmarks.executor_call import ARGUMENTS, calling, convert
from benchmarks.measure import Plan
from benchmarks.mock_provider import CALL_IDS, JSON_ANSWERS
from benchmarks.script import ANSWER, QUESTION, get_time, get_weather
from toolcrib import Crib, tool
from toolcrib.contracts import JsonObject, ToolRevision
from toolcrib.contracts.workflows import WorkflowDefinition
from toolcrib.core.executor import CallRequest
from toolcrib.core.runs import RunContext, RunEnd

STEPS: Final = (4, 12)
"""Calls and steps of the two runs whose difference tells what one costs."""
MODEL_PORT: Final = 8001


def provider(body: bytes) -> bytes:
    """The answer of `benchmarks.mock_provider`."""
    results = {each["tool_call_id"] for each in orjson.loads(body)["messages"] if each["role"] == "tool"}
    return JSON_ANSWERS[sum(1 for ids in CALL_IDS if ids & results)]


SERVERS: Final[Mapping[int, Server]] = {MODEL_PORT: provider}
_PLAN: Final = Plan(f"http://127.0.0.1:{MODEL_PORT}/v1", "agent", warm_up=0, runs=1, in_flight=1, least_cpu_s=0)


@tool(side_effects="writes")
async def put(key: str) -> dict[str, str]:
    """Write something outside."""
    return {"put": key}


@dataclass(frozen=True, slots=True)
class Opened:
    """Work that is ready."""

    one: Work
    none: Work | None = None
    """What of it is not to be counted: the difference is what `units` of the work cost."""
    units: int = 1


Open = Callable[[str], AbstractAsyncContextManager[Opened]]


def _crib(store: str) -> Crib:
    return Crib(store, environment={"OPENAI_API_KEY": "benchmark"}, clock=LoopClock())


@asynccontextmanager
async def bare_loop(_: str) -> AsyncGenerator[Opened]:
    """The unit: an agent run as one would write it by hand (`benchmarks.candidates.raw_run`)."""
    from benchmarks.candidates.raw_run import open_run

    async with open_run(_PLAN) as run:
        yield Opened(_checked(run))


@asynccontextmanager
async def agent_run(store: str) -> AsyncGenerator[Opened]:
    """The same script by an agentic tool: three model requests, four calls."""
    async with _crib(store) as crib:
        crib.add(tool(side_effects="none")(get_weather), tool(side_effects="none")(get_time))
        bench = crib.agentic_tool(
            "bench",
            mode="agentic",
            model=f"openai:{_PLAN.model}",
            base_url=_PLAN.base_url,
            tools=["get_weather", "get_time"],
        )

        async def run() -> str:
            return (await bench(QUESTION)).unwrap()["summary"]

        yield Opened(_checked(run))


def _checked(run: Callable[[], Awaitable[str]]) -> Work:
    async def work() -> None:
        answer = await run()
        if answer != ANSWER:
            raise RuntimeError(f"the run ended with {answer!r} instead of {ANSWER!r}")

    return work


@asynccontextmanager
async def executor_call(store: str) -> AsyncGenerator[Opened]:
    """One call of a tool without effects, by a run's program (`benchmarks.executor_call`)."""
    calls = 0

    async def program(context: RunContext, called: ToolRevision) -> RunEnd:
        for number in range(calls):
            call = CallRequest(f"t1.c{number}", called.name, dict(ARGUMENTS), called.content_hash)
            envelope = await context.make(call)
            if not envelope.ok:
                raise RuntimeError(envelope.error)
        return RunEnd()

    async with _crib(store) as crib, calling(crib, program) as start:

        def run(wanted: int) -> Work:
            async def work() -> None:
                nonlocal calls
                calls = wanted
                await start()

            return work

        fewer, more = STEPS
        yield Opened(run(more), run(fewer), more - fewer)


@asynccontextmanager
async def workflow_step(store: str) -> AsyncGenerator[Opened]:
    """One step of a chain, which writes: its intent is durable before the call, its outcome after."""
    async with _crib(store) as crib:
        crib.add(put)
        for steps in STEPS:
            await crib.save(WorkflowDefinition.model_validate({"name": f"w{steps}", "steps": _chain(steps)}).tool())

        def run(steps: int) -> Work:
            async def work() -> None:
                result = await crib.invoke(f"w{steps}", {})
                if not result.ok:
                    raise RuntimeError(result.error)

            return work

        fewer, more = STEPS
        yield Opened(run(more), run(fewer), more - fewer)


def _chain(steps: int) -> list[JsonObject]:
    return [
        {"name": f"s{number}", "tool": "put", "input": {"key": f"${{s{number - 1}.put}}" if number else "x"}}
        for number in range(steps)
    ]


class _Client(asyncio.Transport):
    """The server's end of a connection: what it writes is the answer."""

    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 2), "sockname": ("127.0.0.1", 1)})
        self.answer = b""
        self.answered = asyncio.Event()

    def write(self, data: Any) -> None:
        self.answer += bytes(data)
        head, end, body = self.answer.partition(b"\r\n\r\n")
        if end and f"content-length: {len(body)}".encode() in head:
            self.answered.set()

    def is_closing(self) -> bool:
        return False

    def pause_reading(self) -> None:
        """A request comes in one piece."""

    def resume_reading(self) -> None:
        """Likewise."""


@asynccontextmanager
async def rest_call(store: str) -> AsyncGenerator[Opened]:
    """One `POST /ai/tools/NAME/execute` of a Python tool, on a connection that is kept: uvicorn, routes, crib, run."""
    import uvicorn
    from uvicorn.protocols.http.h11_impl import H11Protocol
    from uvicorn.server import ServerState

    from toolcrib.interfaces.server.app import create_app
    from toolcrib.interfaces.server.http.keys import KeyRing

    async with _crib(store) as crib:
        crib.add(convert)
        await crib.open()
        ring = KeyRing(crib.store.api_keys, b"p" * 32, crib.clock)
        key = await ring.issue(crib.principal)
        app = create_app(crib, ring.authenticate)
        config = uvicorn.Config(app, ws="none", log_level="warning", access_log=False, server_header=False)
        config.load()
        protocol, client = H11Protocol(config, ServerState(), {}), _Client()
        protocol.connection_made(client)
        body = orjson.dumps({"params": ARGUMENTS})
        request = (
            f"POST /api/v1/ai/tools/convert/execute HTTP/1.1\r\nHost: toolcrib\r\nAuthorization: Bearer {key}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        ).encode() + body

        async def work() -> None:
            client.answer = b""
            client.answered.clear()
            protocol.data_received(request)
            await client.answered.wait()
            if not client.answer.startswith(b"HTTP/1.1 200") or b'"status":"success"' not in client.answer:
                raise RuntimeError(client.answer.decode())

        yield Opened(work)


WORKS: Final[Mapping[str, Open]] = {
    "executor call": executor_call,
    "agent run": agent_run,
    "workflow step": workflow_step,
    "REST call": rest_call,
}
BARE: Final = "bare loop"
"""The unit of agent runs: shown beside the others, and not held to anything."""
STORES: Final = ("memory", "SQLite")
NAMES: Final = tuple(f"{name}, {store}" for name in WORKS for store in STORES)


@contextmanager
def opened(name: str) -> Generator[tuple[CountingLoop, Callable[[], AbstractAsyncContextManager[Opened]]]]:
    """The loop of a work, and what opens it there."""
    if name not in (BARE, *NAMES):
        raise CannotCountError(f"there is no work {name!r}; there are: {BARE}; {'; '.join(NAMES)}")
    kind, _, store = name.partition(", ")
    make = bare_loop if name == BARE else WORKS[kind]
    with TemporaryDirectory() as folder, deterministic(SERVERS) as loop:
        url = f"sqlite:///{folder}/store.db" if store == "SQLite" else "memory://"
        yield loop, lambda: make(url)


def measure(name: str) -> Counts:
    """What one of a work costs."""

    async def measured(open_it: Callable[[], AbstractAsyncContextManager[Opened]]) -> Counts:
        async with open_it() as work:
            counts = await count(work.one)
            return counts.beyond(await count(work.none), work.units) if work.none else counts

    with opened(name) as (loop, open_it):
        return loop.run_until_complete(measured(open_it))


def follow(name: str) -> tuple[CallTree, int]:
    """The calls of a work by function, module and package, and of how many runs they are."""
    tree = CallTree()

    async def followed(open_it: Callable[[], AbstractAsyncContextManager[Opened]]) -> int:
        async with open_it() as work:
            for _ in range(REPEATS):
                await work.one()
            await tree.follow(work.one, REPEATS)
            return REPEATS

    with opened(name) as (loop, open_it):
        return tree, loop.run_until_complete(followed(open_it))

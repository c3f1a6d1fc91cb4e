"""Bad input gives one clear error that says what to do, and the run that met it is in the journal, ended."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable

import pytest
from aiohttp import web

from toolcrib import Crib, EgressPolicy, Limits, tool
from toolcrib.contracts import (
    AgenticImplementation,
    InvalidDefinition,
    InvalidSettings,
    NotFound,
    RunFinished,
    ToolDefinition,
)
from toolcrib.core.runs import Result
from toolcrib.kinds.python.shape import PythonImplementation

KEY = "sk-a-key-that-nobody-may-see-0123456789"


@tool(side_effects="reads")
async def search(company: str) -> list[str]:
    """Find the deals of a company."""
    return [company]


async def _hang(request: web.Request) -> web.Response:
    await asyncio.Event().wait()
    return web.Response()


async def _half(request: web.Request) -> web.Response:
    return web.Response(text='{"choices": [{"mess', content_type="application/json")


async def _huge(request: web.Request) -> web.Response:
    return web.Response(body=b'{"choices": "' + b"a" * 10_000_000 + b'"}', content_type="application/json")


async def _page(request: web.Request) -> web.Response:
    return web.Response(text="<html>sign in</html>", content_type="text/html")


async def _echo(request: web.Request) -> web.Response:
    error = {"error": {"message": f"bad key: {request.headers['authorization']}"}}
    return web.json_response(error, status=401)


async def _cut(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"content-length": "1000", "content-type": "application/json"})
    await response.prepare(request)
    await response.write(b'{"id": "x"')
    assert request.transport is not None
    request.transport.close()
    return response


Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
PROVIDERS: dict[str, Handler] = {
    "half": _half,
    "huge": _huge,
    "page": _page,
    "echo": _echo,
    "cut": _cut,
    "hang": _hang,
}


@pytest.fixture
async def provider() -> AsyncGenerator[str]:
    """Address of a provider with one bad habit per path."""
    app = web.Application()
    for name, handler in PROVIDERS.items():
        app.router.add_post(f"/{name}/chat/completions", handler)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    yield f"http://{host}:{port}"
    await runner.cleanup()


async def ended_run(crib: Crib, result: Result) -> RunFinished:
    """The last event of the run as the journal has it, after checking that the whole run is there."""
    run = await crib.store.journal.run(result.run_id)
    events = await crib.store.journal.events(result.run_id)
    assert run.ended
    assert [entry.number for entry in events] == list(range(1, len(events) + 1))
    assert isinstance(events[-1].event, RunFinished)
    return events[-1].event


@pytest.mark.requirement("bad_input.missing_key")
async def test_a_missing_key_is_named_and_nothing_is_sent():
    async with Crib("memory://", environment={}) as crib:
        crib.add(search)
        result = await crib.agentic_tool("deals", mode="agentic", model="openai:gpt-4o", tools=["search"])("find")
        finished = await ended_run(crib, result)
    assert finished.status == "failed"
    assert finished.error is not None
    assert "OPENAI_API_KEY is not set" in finished.error.message
    assert "export it" in finished.error.message


@pytest.mark.requirement("bad_input.wrong_model")
@pytest.mark.parametrize(
    ("model", "advice"),
    [
        ("gpt-4o", "did you mean openai:gpt-4o?"),
        ("opnai:gpt-4o", "did you mean 'openai'?"),
        ("openai-compatible:qwen", "needs base_url"),
    ],
)
async def test_a_model_that_means_nothing_is_refused_where_it_is_written(model: str, advice: str):
    crib = Crib("memory://")
    with pytest.raises(InvalidSettings, match=advice.replace("?", r"\?")):
        crib.agentic_tool("deals", mode="agentic", model=model, tools=["search"])


@pytest.mark.requirement("bad_input.bad_schema")
async def test_a_schema_that_is_none_is_refused_with_its_place():
    broken = ToolDefinition(
        name="broken",
        input_schema={"type": "object", "properties": {"a": {"type": "strng"}}},
        implementation=PythonImplementation(function="nowhere:broken"),
    )
    async with Crib("memory://") as crib:
        with pytest.raises(InvalidDefinition, match=r"tool 'broken': input_schema .*properties/a/type"):
            await crib.save(broken)
        with pytest.raises(NotFound, match="broken"):
            await crib.call("broken")


@pytest.mark.requirement("bad_input.unknown_placeholder")
async def test_an_unknown_placeholder_is_refused_with_the_nearest_known_one():
    crib = Crib("memory://")
    with pytest.raises(InvalidDefinition, match=r"\{\{user_tsk\}\}.*did you mean 'user_task'"):
        crib.agentic_tool("deals", mode="agentic", model="openai:x", tools=["search"], system_prompt="{{user_tsk}}")


@pytest.mark.requirement("bad_input.provider", "bad_input.no_secrets")
@pytest.mark.parametrize(
    ("habit", "said"),
    [
        ("half", "not JSON"),
        ("huge", "more than 8388608 bytes"),
        ("page", "check base_url"),
        ("echo", "401"),
        ("cut", "127.0.0.1"),
    ],
)
async def test_a_bad_answer_ends_the_run_with_one_clear_error(provider: str, habit: str, said: str):
    async with Crib("memory://", environment={"OPENAI_API_KEY": KEY}, clock=_Impatient()) as crib:
        crib.add(search)
        handle = crib.agentic_tool(
            "deals", mode="agentic", model="openai:x", base_url=f"{provider}/{habit}", tools=["search"]
        )
        result = await handle("find")
        finished = await ended_run(crib, result)
    assert finished.status == "failed"
    assert finished.error is not None
    assert said in finished.error.message or said in str(finished.error.details)
    assert KEY not in "".join(entry.model_dump_json() for entry in result.events)
    assert KEY not in result.trace.model_dump_json()


@pytest.mark.requirement("bad_input.provider")
async def test_a_provider_that_hangs_is_ended_by_the_runs_time_out(provider: str):
    async with Crib("memory://", environment={"OPENAI_API_KEY": KEY}) as crib:
        crib.add(search)
        handle = crib.agentic_tool(
            "deals",
            mode="agentic",
            model="openai:x",
            base_url=f"{provider}/hang",
            tools=["search"],
            limits=Limits(timeout_s=0.3),
        )
        finished = await ended_run(crib, await handle("find"))
    assert (finished.status, finished.stop_reason) == ("timed_out", "timeout")
    assert finished.error is not None
    assert "timeout_s=0.3" in finished.error.message


@pytest.mark.requirement("bad_input.provider")
async def test_a_model_address_that_a_definition_names_is_under_the_egress_guard(provider: str):
    async with Crib("memory://", environment={"OPENAI_API_KEY": KEY}, egress=EgressPolicy()) as crib:
        crib.add(search)
        unpriced = Limits(allow_unpriced=True)
        trusted = crib.agentic_tool("deals", mode="agentic", model="openai:x", tools=["search"], limits=unpriced)
        implementation = trusted.definition.implementation
        assert isinstance(implementation, AgenticImplementation)
        llm = implementation.llm.model_copy(update={"base_url": f"{provider}/half"})
        foreign = trusted.definition.model_copy(
            update={"name": "foreign", "implementation": implementation.model_copy(update={"llm": llm})}
        )
        await crib.save(foreign)
        finished = await ended_run(crib, await crib.invoke("foreign", {"task": "find"}))
    assert finished.error is not None
    assert "egress denied" in finished.error.message


class _Impatient:
    """A real clock whose sleeps take no time, so that retries do not slow a test."""

    def __init__(self) -> None:
        from toolcrib.core.engines import SystemClock

        self._clock = SystemClock()
        self.now = self._clock.now
        self.monotonic = self._clock.monotonic

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)

"""Generators as tools: what they may look like, what becomes of what they yield, and how they are stopped."""

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterable, Iterator
from typing import Annotated, Any, cast

import pytest
from pydantic import BaseModel

from toolcrib import Crib, ToolContext, tool, tools_of
from toolcrib.contracts import (
    CallFinished,
    ContentFilter,
    InvalidDefinition,
    Json,
    JsonSchema,
    SecretReference,
    ToolEnvelope,
)
from toolcrib.contracts.runs.stream import StreamDone, ToolOutput, ToolProgress
from toolcrib.core.runs.views.stream import StreamMessage
from toolcrib.kinds.code.checks import code_tool

WAIT_S = 20.0


class Deal(BaseModel):
    name: str
    value: int = 1


def words() -> Iterator[str]:
    yield "one "
    yield "two"


def typed() -> Generator[str, None, None]:
    yield from words()


def endless() -> Iterable[Deal]:
    yield Deal(name="Acme")


async def later() -> AsyncIterator[str]:
    for word in words():
        await asyncio.sleep(0)
        yield word


async def numbers() -> AsyncGenerator[int, None]:
    yield 1
    yield 2


def plain():
    yield "one"
    yield 2


def noted() -> Annotated[Iterator[str], "words"]:
    yield "one"


def listed() -> Iterator[str]:
    return iter(["one", "two"])


def whole() -> Iterator[str]:
    return ["one", "two"]  # type: ignore[return-value]


async def given() -> AsyncIterator[int]:
    return numbers()


class Book:
    def lines(self, count: int) -> Iterator[str]:
        for line in range(count):
            yield f"{line};"


TEXT: JsonSchema = {"type": "string"}


@pytest.mark.requirement("runtimes.generators")
@pytest.mark.parametrize(
    ("function", "schema", "output"),
    [
        (words, TEXT, "one two"),
        (typed, TEXT, "one two"),
        (later, TEXT, "one two"),
        (noted, TEXT, "one"),
        (numbers, {"type": "array", "items": {"type": "integer"}}, [1, 2]),
        (plain, None, ["one", 2]),
        (listed, {"type": "array", "items": TEXT}, ["one", "two"]),
        (whole, {"type": "array", "items": TEXT}, ["one", "two"]),
        (given, {"type": "array", "items": {"type": "integer"}}, [1, 2]),
    ],
)
async def test_text_is_joined_and_everything_else_is_a_list(
    function: Callable[[], Any], schema: JsonSchema | None, output: Json
):
    made = tool(side_effects="none")(function)

    assert made.definition.output_schema == schema
    assert (await called(made)).output == output


@pytest.mark.requirement("runtimes.generators")
async def test_elements_are_json_as_their_type_has_them():
    made = tool(side_effects="none")(endless)
    result = await called(made)

    assert result.output == [{"name": "Acme", "value": 1}]
    assert made.definition.output_schema is not None
    assert made.definition.output_schema["items"] == {"$ref": "#/$defs/Deal"}
    assert await tool(words).run({}, None) == "one two"  # type: ignore[arg-type]


@pytest.mark.requirement("runtimes.generators")
async def test_a_method_of_an_object_may_be_a_generator():
    async with Crib("memory://") as crib:
        crib.add(*tools_of(Book(), side_effects="none"))
        assert (await crib.call("lines", count=3)).output == "0;1;2;"


@pytest.mark.requirement("runtimes.generators")
async def test_sandboxed_code_gets_the_whole_output():
    async with Crib("memory://") as crib:
        crib.add(tool(side_effects="none")(words))
        await crib.save(code_tool("twice", "def main(): return words() * 2", tools=("words",)))
        result = await crib.call("twice")
        assert result.output == "one twoone two", result.error


@pytest.mark.requirement("runtimes.generators")
async def test_a_dry_run_does_not_begin_a_generator_that_writes():
    begun = list[int]()

    @tool(side_effects="writes")
    def writes() -> Iterator[str]:
        begun.append(1)
        yield "done"

    async with Crib("memory://") as crib:
        crib.add(writes)
        result = await crib.invoke("writes", {}, dry_run=True)
    assert (result.status, begun) == ("completed", [])


def returns_text() -> str:  # type: ignore[misc]
    yield "one"  # type: ignore[misc]


def returns_list() -> list[int]:  # type: ignore[misc]
    yield 1  # type: ignore[misc]


async def is_async() -> Iterator[str]:  # type: ignore[misc]
    yield "one"  # type: ignore[misc]


def is_not_async() -> AsyncIterator[str]:  # type: ignore[misc]
    yield "one"  # type: ignore[misc]


def returns_more() -> Generator[str, None, int]:
    yield "one"
    return 1


def is_unknown() -> Iterator[threading.Lock]:  # type: ignore[valid-type]
    yield threading.Lock()


@pytest.mark.requirement("runtimes.generators_refused")
@pytest.mark.parametrize(
    ("function", "advice"),
    [
        (returns_text, r"is a generator, and its return type is str; write Iterator\[str\]"),
        (returns_list, r"return type is list\[int\]; write Iterator\[int\]"),
        (is_async, r"is an async generator, .*; write AsyncIterator\[str\]"),
        (is_not_async, r"is a generator, .*; write Iterator\[str\]"),
        (returns_more, r"returns int, which would be lost: yield it, and write Iterator\[str\]"),
        (is_unknown, r"JSON cannot represent the type .* of the result"),
    ],
)
def test_what_cannot_be_yielded_is_refused_where_it_is_decorated(function: Callable[[], Any], advice: str):
    with pytest.raises(InvalidDefinition, match=advice):
        tool(function)


async def called(function: Any, **arguments: Any) -> ToolEnvelope:
    """The result of one direct call."""
    async with Crib("memory://") as crib:
        crib.add(function)
        return await crib.call(function, **arguments)


@pytest.mark.requirement("runtimes.generators_bounded")
@pytest.mark.parametrize("is_async", [False, True])
async def test_a_generator_that_yields_too_much_is_stopped_and_closed(is_async: bool):
    state = {"yielded": 0, "closed": 0}

    @tool(side_effects="none", max_output_bytes=100)
    def forever() -> Iterator[str]:
        try:
            while True:
                state["yielded"] += 1
                yield "0123456789"
        finally:
            state["closed"] += 1

    @tool(side_effects="none", max_output_bytes=100)
    async def forever_later() -> AsyncIterator[int]:
        try:
            while True:
                state["yielded"] += 1
                yield 123456789
        finally:
            state["closed"] += 1

    function = forever_later if is_async else forever
    async with Crib("memory://") as crib:
        crib.add(function)
        events = await followed(crib, function.definition.name)
        [finished] = [end async for end in ends(crib, events)]

    assert state == {"yielded": 10, "closed": 1}
    envelope = finished.envelope
    assert envelope.ok
    assert envelope.truncated
    assert "yielded more than its max_output_bytes=100" in envelope.metadata["warnings"][0]
    shown = [event for _, event in events if isinstance(event, ToolOutput)]
    assert sum(len(piece.text or piece.items or ()) for piece in shown) == len(envelope.output)


async def ends(crib: Crib, events: list[StreamMessage]) -> AsyncIterator[CallFinished]:
    """The ends of calls in the journal of the run that events are of."""
    last = events[-1].event
    assert isinstance(last, StreamDone)
    for entry in await crib.store.journal.events(last.result.run_id):
        if isinstance(entry.event, CallFinished):
            yield entry.event


async def followed(crib: Crib, name: str, **arguments: Any) -> list[StreamMessage]:
    """All that a follower sees of one call, which is driven here."""
    run_id = await crib.submit(name, arguments)
    return [message async for message in crib.stream(run_id, drive=True)]


@pytest.mark.requirement("live.outputs")
@pytest.mark.parametrize("is_async", [False, True])
async def test_a_follower_gets_each_piece_while_the_tool_runs(is_async: bool):
    seen, go = list[str](), threading.Event()

    @tool(side_effects="none")
    def slow() -> Iterator[str]:
        yield "first "
        assert go.wait(WAIT_S), "the first piece was not shown while the tool ran"
        yield "second"

    @tool(side_effects="none")
    async def slow_later() -> AsyncIterator[str]:
        yield "first "
        async with asyncio.timeout(WAIT_S):
            await asyncio.to_thread(go.wait, WAIT_S)
        yield "second"

    function = slow_later if is_async else slow
    async with Crib("memory://") as crib:
        crib.add(function)
        run_id = await crib.submit(function.definition.name, {})
        async for _, event in crib.stream(run_id, drive=True):
            if isinstance(event, ToolOutput):
                assert event.text is not None
                assert event.offset == len("".join(seen))
                seen.append(event.text)
                go.set()

    assert "".join(seen) == "first second"
    assert seen[0] == "first "


@pytest.mark.requirement("live.outputs")
async def test_what_must_be_seen_whole_is_not_shown_in_pieces():
    @tool(side_effects="none", secrets=(SecretReference(name="key", reference="${env:LIVE_KEY}"),))
    async def leaks(context: ToolContext) -> AsyncIterator[str]:
        yield context.auth["key"][:4]
        context.progress(1, message=f"with {context.auth['key']}")
        await asyncio.sleep(0)
        yield context.auth["key"][4:]

    async with Crib("memory://", environment={"LIVE_KEY": "verysecretvalue"}) as crib:
        crib.add(leaks)
        messages = await followed(crib, "leaks")

    assert "verysecretvalue" not in str(messages)
    assert [event.text for _, event in messages if isinstance(event, ToolOutput)] == ["[secret]"]
    assert [event.message for _, event in messages if isinstance(event, ToolProgress)] == ["with [secret]"]


@pytest.mark.requirement("runtimes.generators_fail")
async def test_an_exception_in_the_midst_keeps_its_traceback_and_what_was_yielded():
    @tool(side_effects="none")
    def breaks() -> Iterator[str]:
        yield "one "
        raise KeyError("missing")

    @tool(side_effects="none")
    def breaks_at_once() -> Iterator[str]:
        raise KeyError("missing")
        yield "never"

    @tool(side_effects="none")
    def yields_other_things() -> Iterator[str]:
        yield 3  # type: ignore[misc]

    async with Crib("memory://") as crib:
        crib.add(breaks, breaks_at_once, yields_other_things)
        result = await crib.call(breaks)
        assert result.run_id is not None
        [found] = await crib.executions.tracebacks(result.run_id)
        [end] = [
            entry.event
            for entry in await crib.store.journal.events(result.run_id)
            if entry.event.type == "call_finished"
        ]
        other = await crib.call(yields_other_things)
        at_once = await crib.call(breaks_at_once)

    assert result.error is not None
    assert "breaks' raised KeyError: 'missing'" in result.error.message
    assert 'raise KeyError("missing")' in found.text
    assert "BrokenOff" not in found.text
    assert isinstance(end, CallFinished)
    assert (end.envelope.output, end.envelope.partial) == (None, "one ")
    assert other.error is not None
    assert "yielded a int, and its return type says str" in other.error.message
    assert at_once.error is not None


@pytest.mark.requirement("runtimes.generators_closed")
@pytest.mark.parametrize("is_async", [False, True])
async def test_a_generator_whose_call_times_out_is_closed(is_async: bool):
    closed, go = threading.Event(), threading.Event()

    @tool(side_effects="none", timeout_s=0.1)
    def stuck() -> Iterator[str]:
        try:
            yield "one"
            go.wait(WAIT_S)
            yield "two"
            raise AssertionError("it went on")
        finally:
            closed.set()

    @tool(side_effects="none", timeout_s=0.1)
    async def stuck_later() -> AsyncIterator[str]:
        try:
            yield "one"
            await asyncio.Event().wait()
        finally:
            closed.set()

    result = await called(stuck_later if is_async else stuck)
    go.set()

    assert result.error is not None
    assert result.error.code == "TIMEOUT"
    assert await asyncio.to_thread(closed.wait, WAIT_S)


@pytest.mark.requirement("runtimes.generators_closed")
async def test_a_generator_whose_run_is_cancelled_is_closed():
    begun, closed = asyncio.Event(), asyncio.Event()

    @tool(side_effects="none")
    async def stuck() -> AsyncIterator[str]:
        try:
            yield "one"
            begun.set()
            await asyncio.Event().wait()
        finally:
            closed.set()

    async with Crib("memory://") as crib:
        crib.add(stuck)
        run_id = await crib.submit("stuck", {})
        driving = asyncio.create_task(cast("Any", crib.engine).drive(run_id))
        await begun.wait()
        assert await crib.cancel(run_id)
        async with asyncio.timeout(WAIT_S):
            await closed.wait()
        assert (await driving).result.status == "cancelled"


@pytest.mark.requirement("live.outputs")
async def test_an_output_that_a_filter_must_see_whole_comes_in_one_piece():
    from toolcrib import ScriptedModel
    from toolcrib.contracts import AgentRequest
    from toolcrib.llm import Message, ToolCall

    @tool(side_effects="none")
    async def letter() -> AsyncIterator[str]:
        yield "the pass"
        await asyncio.sleep(0)
        yield "word is long"

    script = [Message("assistant", (ToolCall("c1", "letter", "{}"),)), "Done."]
    async with Crib("memory://", models={"scripted:m": ScriptedModel(script)}) as crib:
        crib.add(letter)
        rules = (ContentFilter(words=("password",), action="redact", applies_to=("tool_output",)),)
        crib.agent("desk", model="scripted:m", tools=["letter"], guardrails=rules)
        begun = await crib.executions.submit("desk", AgentRequest(message="read it"))
        messages = [message async for message in crib.stream(begun.run_id, drive=True)]

    [piece] = [event for _, event in messages if isinstance(event, ToolOutput)]
    assert piece.text is not None
    assert "password" not in piece.text

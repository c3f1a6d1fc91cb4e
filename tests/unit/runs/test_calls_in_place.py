"""Calls that a program waits for at once are made in its own task; and what a run leaves behind."""

import asyncio
import gc
import weakref
from contextvars import ContextVar

import pytest

from tests.twins import echo, make_definition
from tests.unit.runs.house import House, ask, settled
from toolcrib.contracts import ErrorCode, Json, Reason, RunSuspended
from toolcrib.core.executor import Dispatch, Outcome
from toolcrib.core.runs import RunContext
from toolcrib.core.runs.context.pending import apart

pytestmark = pytest.mark.requirement("runs.made_in_place")

MARK: ContextVar[str] = ContextVar("MARK", default="none")


async def test_a_call_is_made_in_the_task_of_its_program_with_context_variables_of_its_own():
    seen: list[tuple[bool, str]] = []
    own: list[asyncio.Task[object] | None] = []

    async def work(dispatch: Dispatch) -> Outcome:
        seen.append((asyncio.current_task() is own[0], MARK.get()))
        MARK.set(dispatch.position)
        await asyncio.sleep(0)
        seen.append((asyncio.current_task() is own[0], MARK.get()))
        return echo(dispatch)

    async def script(context: RunContext) -> Json:
        own.append(asyncio.current_task())
        MARK.set("program")
        first = await context.make(ask("t1.c1", n=1))
        second = await context.make(ask("t1.c2", n=2))
        return [first.output, second.output, MARK.get()]

    house = House(script, work)
    await house.save()
    driven = await house.start()
    assert driven.result.output == [{"n": 1}, {"n": 2}, "program"]
    assert seen == [(True, "program"), (True, "t1.c1"), (True, "program"), (True, "t1.c2")]


async def test_a_call_that_the_journal_knows_is_not_made_again():
    async def script(context: RunContext) -> Json:
        found = await context.make(ask("t1.c1", n=1))
        signal = await context.wait_signal("go")
        return [found.output, None if signal is None else signal.payload]

    house = House(script)
    await house.save()
    first = await house.start()
    assert first.result.status == "awaiting_client"
    await house.signal(first.result.run_id, "go", {"n": 2})
    driven = await house.engine.resume(first.result.run_id)
    assert driven.result.output == [{"n": 1}, {"n": 2}]
    assert house.dispatched == ["t1.c1"]


async def test_a_call_that_asks_suspends_its_run_and_is_made_when_it_was_approved():
    async def script(context: RunContext) -> Json:
        return (await context.make(ask("t1.c1", "confirmed", n=1))).output

    house = House(script)
    await house.save(make_definition("confirmed", requires_confirmation=True))
    first = await house.start()
    assert first.result.status == "awaiting_approval"
    events = await house.events(first.result.run_id)
    assert isinstance(events[-1], RunSuspended)
    assert house.dispatched == []


async def test_what_a_tool_raises_or_waits_for_too_long_is_its_own_failure():
    async def work(dispatch: Dispatch) -> Outcome:
        if dispatch.position == "slow":
            await asyncio.Event().wait()
        raise ValueError("no")

    async def script(context: RunContext) -> Json:
        failed = await context.make(ask("bad"))
        late = await context.make(ask("slow", "quick"))
        return [found.error.code if found.error else None for found in (failed, late)]

    house = House(script, work)
    await house.save()
    await house.save(make_definition("quick", timeout_s=0.01))
    driven = await house.start()
    assert driven.result.output == [ErrorCode.UNKNOWN, ErrorCode.TIMEOUT]


async def test_a_cancelled_run_cuts_off_the_call_that_it_makes():
    started = asyncio.Event()
    ended: list[str] = []

    async def work(dispatch: Dispatch) -> Outcome:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(dispatch.position)
        return echo(dispatch)

    async def script(context: RunContext) -> Json:
        return (await context.make(ask("t1.c1"))).output

    house = House(script, work)
    await house.save()
    driving = asyncio.create_task(house.start())
    await started.wait()
    [run] = await house.store.journal.runs("default", status="running")
    await house.engine.cancel(run.run_id, by="ann")
    result = (await driving).result
    assert (result.status, ended) == ("cancelled", ["t1.c1"])
    assert result.error is not None
    assert result.error.reason is Reason.CANCELLED


async def test_calls_that_never_wait_let_others_in_after_every_few():
    turns: list[int] = []

    async def script(context: RunContext) -> Json:
        for number in range(25):
            await context.make(ask(f"t1.c{number}"))
        return len(turns)

    async def beside() -> None:
        while len(turns) < 1000:
            turns.append(1)
            await asyncio.sleep(0)

    house = House(script)
    await house.save()
    other = asyncio.create_task(beside())
    await settled()
    before = len(turns)
    driven = await house.start()
    other.cancel()
    assert driven.result.output >= before + 2


@pytest.mark.requirement("runs.no_cycles")
@pytest.mark.parametrize("waits", [False, True])
async def test_a_run_that_has_ended_or_waits_is_gone_without_the_garbage_collector(waits: bool):
    left: list[weakref.ref[RunContext]] = []

    async def script(context: RunContext) -> Json:
        left.append(weakref.ref(context))
        context.partial = lambda: context.run_id
        await context.wait_all([context.call(ask(f"t1.c{number}", n=number)) for number in range(3)])
        await context.make(ask("t1.c4"))
        if waits:
            await context.wait_signal("go")
        return None

    house = House(script)
    await house.save()
    await house.start()  # what is made once is there from now on
    gc.collect()
    gc.disable()
    try:
        await house.start()
        await settled()
        house.dispatcher.dispatched.clear()  # a twin keeps what it was given
        assert [each() for each in left] == [None, None]
    finally:
        gc.enable()


async def test_two_parts_of_a_program_may_wait_for_the_same_calls():
    async def script(context: RunContext) -> Json:
        calls = [context.call(ask(f"t1.c{number}", n=number)) for number in range(2)]

        async def wait() -> int:
            return len(await context.wait_all(calls))

        return await context.wait_all([context.start(wait()), context.start(wait())])

    house = House(script)
    await house.save()
    assert (await house.start()).result.output == [2, 2]


def test_work_in_place_that_is_given_up_is_closed():
    ended: list[str] = []

    async def work() -> None:
        try:
            await asyncio.sleep(0)
        finally:
            ended.append("closed")

    async def program() -> None:
        await apart(work())

    begun = program()
    begun.send(None)
    begun.close()
    assert ended == ["closed"]

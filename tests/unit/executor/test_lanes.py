"""Who may run now: parallel up to a number, sequential tools alone, in the order of the requests."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from tests.twins import Rig, make_context, make_tool
from toolcrib.contracts import Limits, RateLimit, ToolEnvelope
from toolcrib.core.executor import Dispatch, Lanes, Outcome, SlidingWindow

TOOLS = (make_tool("any"), make_tool("alone", sequential=True))


class Floor:
    """Calls that run until they are let go, so that a test sees who runs beside whom."""

    def __init__(self, max_parallel: int = 8) -> None:
        self.rig = Rig(*TOOLS, behaviour=self._work)
        limits = Limits(max_parallel_calls=max_parallel, max_tool_calls=1000)
        self.context = make_context(limits=limits, journal=self.rig.journal)
        self.running: list[str] = []
        self._gates: dict[str, asyncio.Event] = {}
        self._tasks: dict[str, asyncio.Task[ToolEnvelope]] = {}

    async def _work(self, dispatch: Dispatch) -> Outcome:
        self.running.append(dispatch.position)
        try:
            await self._gates[dispatch.position].wait()
        finally:
            self.running.remove(dispatch.position)
        return Outcome(dispatch.position)

    async def ask(self, *positions: str) -> None:
        """Request calls in this order; those that begin with `!` run alone."""
        for position in positions:
            self._gates[position] = asyncio.Event()
            name = "alone" if position.startswith("!") else "any"
            work: Coroutine[Any, Any, ToolEnvelope] = self.rig.run(name, position=position, context=self.context)
            self._tasks[position] = asyncio.create_task(work)
        await self.settle()

    async def end(self, *positions: str) -> None:
        """Let running calls end."""
        for position in positions:
            self._gates[position].set()
            assert (await self._tasks[position]).output == position
        await self.settle()

    async def cancel(self, *positions: str, settle: bool = True) -> None:
        """Cancel calls, running or not."""
        for position in positions:
            self._tasks[position].cancel()
        if settle:
            await asyncio.gather(*(self._tasks[position] for position in positions), return_exceptions=True)
            await self.settle()

    async def settle(self) -> None:
        """Give every task the turns it can use."""
        for _ in range(20):
            await asyncio.sleep(0)


@pytest.mark.requirement("executor.lanes")
async def test_calls_run_beside_each_other_up_to_the_limit_in_the_order_of_the_requests():
    floor = Floor(max_parallel=2)
    await floor.ask("a", "b", "c", "d")
    assert floor.running == ["a", "b"]

    await floor.end("b")
    assert floor.running == ["a", "c"]

    await floor.end("a", "c", "d")
    assert floor.running == []


@pytest.mark.requirement("executor.lanes")
async def test_a_sequential_call_waits_for_all_before_it_and_all_after_it_wait_for_it():
    floor = Floor()
    await floor.ask("a", "b", "!c", "d", "!e")
    assert floor.running == ["a", "b"]

    await floor.end("a")
    assert floor.running == ["b"]
    await floor.end("b")
    assert floor.running == ["!c"]
    await floor.ask("f")
    assert floor.running == ["!c"]
    await floor.end("!c")
    assert floor.running == ["d"]
    await floor.end("d")
    assert floor.running == ["!e"]
    await floor.end("!e")
    assert floor.running == ["f"]
    await floor.end("f")


@pytest.mark.requirement("executor.lanes")
async def test_time_in_the_queue_is_told():
    floor = Floor()
    await floor.ask("!a", "b")
    floor.rig.clock.advance(3)
    floor._gates["b"].set()  # pyright: ignore[reportPrivateUsage] - lets b pass as soon as it starts
    await floor.end("!a")

    assert (await floor._tasks["b"]).timings.queue == 3  # pyright: ignore[reportPrivateUsage] - the envelope is the point


@pytest.mark.requirement("executor.lanes_cancelled")
async def test_a_running_call_that_is_cancelled_leaves_its_lane():
    floor = Floor(max_parallel=1)
    await floor.ask("a", "b")

    await floor.cancel("a")

    assert floor.running == ["b"]
    await floor.end("b")


@pytest.mark.requirement("executor.lanes_cancelled")
async def test_a_waiting_barrier_that_is_cancelled_no_longer_holds_up_the_others():
    floor = Floor()
    await floor.ask("a", "!b", "c")
    assert floor.running == ["a"]

    await floor.cancel("!b")

    assert floor.running == ["a", "c"]
    await floor.end("a", "c")


@pytest.mark.requirement("executor.lanes_cancelled")
async def test_a_waiting_call_that_is_cancelled_in_the_moment_in_which_a_lane_becomes_free_is_skipped():
    lanes = Lanes(1)
    reached: list[str] = []

    async def hold(name: str, until: asyncio.Event) -> None:
        await lanes.enter(alone=False)
        reached.append(name)
        await until.wait()
        lanes.leave()

    gate = asyncio.Event()
    first = asyncio.create_task(hold("first", gate))
    second = asyncio.create_task(hold("second", gate))
    third = asyncio.create_task(hold("third", gate))
    await asyncio.sleep(0)

    gate.set()
    second.cancel()

    results = await asyncio.gather(first, second, third, return_exceptions=True)
    assert results[0] is results[2] is None
    assert isinstance(results[1], asyncio.CancelledError)
    assert reached == ["first", "third"]


@pytest.mark.requirement("executor.lanes_cancelled")
@pytest.mark.parametrize("alone", [False, True])
async def test_a_call_that_is_cancelled_after_its_turn_came_and_before_it_ran_gives_its_lane_back(alone: bool):
    lanes = Lanes(1)
    reached: list[str] = []

    async def enter(name: str, *, alone: bool) -> None:
        await lanes.enter(alone=alone)
        reached.append(name)
        lanes.leave()

    await lanes.enter(alone=True)
    late = asyncio.create_task(enter("late", alone=alone))
    last = asyncio.create_task(enter("last", alone=True))
    await asyncio.sleep(0)
    lanes.leave()
    late.cancel()

    await asyncio.gather(late, last, return_exceptions=True)

    assert late.cancelled()
    assert reached == ["last"]


@pytest.mark.requirement("executor.rate_limit")
async def test_a_window_forgets_the_tools_that_were_not_used_for_longest():
    rates = SlidingWindow()
    once = RateLimit(count=1, per_s=1e9)
    assert await rates.take("first", once, now=0) is None
    assert await rates.take("first", once, now=1) == 1e9 - 1

    for number in range(10_000):
        assert await rates.take(f"tool {number}", once, now=1) is None

    assert await rates.take("first", once, now=1) is None

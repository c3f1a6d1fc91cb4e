"""Calls that are under way side by side: who is told of which end, and when."""

import asyncio
from collections.abc import Collection, Coroutine
from typing import Any

import pytest

from tests.twins import ManualClock
from toolcrib.core.runs import ConcurrentCalls, Pending, Suspended
from toolcrib.core.runs.context.pending import Suspension

pytestmark = pytest.mark.requirement("workflow_running.underway")


async def ends_with(result: int, after: "asyncio.Event | None" = None) -> int:
    if after is not None:
        await after.wait()
    return result


def quiet() -> Suspension:
    """Of a run for which no signal comes."""

    async def arrived() -> Collection[str]:
        return ()

    return Suspension(ManualClock(), arrived)


async def parks(*signals: str) -> int:
    raise Suspended("awaiting_client", *signals)


def started(parking: Suspension, work: Coroutine[Any, Any, int]) -> Pending[int]:
    task = asyncio.ensure_future(work)
    parking.begin()
    task.add_done_callback(lambda _: parking.end())
    return Pending(parking, task)


async def test_all_that_have_ended_are_told_at_once_in_the_order_in_which_they_ended_and_only_once():
    gate = asyncio.Event()
    parking = quiet()
    underway = ConcurrentCalls[str, int](parking)
    underway.add("last", started(parking, ends_with(1, gate)))
    underway.add("known", Pending[int](parking, None, 2))
    underway.add("quick", started(parking, ends_with(3)))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert [(key, ended.result()) for key, ended in await underway.next()] == [("known", 2), ("quick", 3)]

    assert len(underway) == 1
    gate.set()
    assert [(key, ended.result()) for key, ended in await underway.next()] == [("last", 1)]
    assert not underway


async def test_what_waits_for_a_signal_is_told_when_nothing_else_is_left_and_stays():
    gate = asyncio.Event()
    parking = quiet()
    underway = ConcurrentCalls[str, int](parking)
    for key, work in (("a", parks("one")), ("b", parks("two")), ("c", ends_with(1, gate))):
        underway.add(key, started(parking, work))
    asyncio.get_running_loop().call_later(0, gate.set)
    assert [key for key, _ in await underway.next()] == ["c"]

    assert len(underway) == 2
    with pytest.raises(Suspended) as wait:
        await underway.next()
    assert wait.value.signals == ("one", "two")
    assert len(underway) == 2


async def test_a_failure_is_told_like_any_end_and_is_raised_by_who_asks_for_the_result():
    async def fails() -> int:
        raise LookupError("gone")

    parking = quiet()
    underway = ConcurrentCalls[str, int](parking)
    underway.add("a", started(parking, fails()))
    ((key, ended),) = await underway.next()
    assert key == "a"
    with pytest.raises(LookupError, match="gone"):
        ended.result()


async def test_who_gives_up_waiting_can_wait_again():
    gate = asyncio.Event()
    parking = quiet()
    underway = ConcurrentCalls[str, int](parking)
    underway.add("a", started(parking, ends_with(1, gate)))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await underway.next()
    gate.set()
    assert [key for key, _ in await underway.next()] == ["a"]


async def test_what_was_known_is_done_and_has_its_result_at_once():
    known = Pending[int](quiet(), None, 7)
    assert (known.done, known.parked, known.task) == (True, False, None)
    assert await known == 7


async def test_of_parts_that_are_watched_it_is_known_which_wait_and_they_can_be_cut_off():
    parking = quiet()
    underway, gate = ConcurrentCalls[str, int](parking), asyncio.Event()
    with underway.watching():
        underway.add("waits", started(parking, parking.through(lambda: parks("one"))))
        underway.add("works", started(parking, ends_with(1, gate)))
    await underway.stir()
    assert (underway.waiting, underway.working) == (1, 1)

    gate.set()
    await underway.stir()
    await underway.stir()  # who has not fetched what is done does not wait
    assert [(key, ended.result()) for key, ended in underway.take_ended()] == [("works", 1)]
    await underway.stop()
    assert (underway.waiting, underway.working) == (0, 0)
    await underway.stop()


async def test_who_watches_a_run_does_not_count_what_waits_in_another_one_that_it_calls():
    parking, other, gate = quiet(), quiet(), asyncio.Event()
    underway = ConcurrentCalls[str, int](parking)

    async def calls() -> int:
        with pytest.raises(Suspended):
            await other.through(lambda: parks("one"))
        await gate.wait()
        return 1

    with underway.watching():
        underway.add("calls", started(parking, calls()))
    await asyncio.sleep(0)
    assert (underway.waiting, underway.working) == (0, 1)
    gate.set()
    await underway.stir()


async def test_two_parts_may_wait_for_one_call():
    gate = asyncio.Event()
    parking = quiet()
    shared = parking.start(ends_with(1, gate))
    first, second = (asyncio.create_task(parking.results([shared])) for _ in range(2))
    await asyncio.sleep(0)
    gate.set()

    assert (await first, await second) == ([1], [1])

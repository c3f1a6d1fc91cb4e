"""What happens to runs when somebody sets the machine's clock: nothing is done twice, and nothing is lost."""

import asyncio
from datetime import datetime, timedelta

import pytest

from tests.twins import make_definition
from tests.unit.engines.test_ownership import Gate
from tests.unit.runs.house import LEASE_S, House, StandingClock, ask, settled
from toolcrib.contracts import Conflict, Fenced, Json
from toolcrib.core.runs import RunContext

pytestmark = pytest.mark.requirement("leaving.clock")


class SettableClock(StandingClock):
    """Its time of day can be set; what it measures goes on as before."""

    def __init__(self) -> None:
        super().__init__()
        self.set_by = timedelta()

    def now(self) -> datetime:
        return super().now() + self.set_by


async def once(context: RunContext) -> Json:
    return (await context.call(ask("a", "act"))).output


async def in_the_middle() -> tuple[House, SettableClock, Gate, "asyncio.Task[object]", str]:
    """A process in the middle of an effect that cannot be repeated."""
    clock, gate = SettableClock(), Gate()
    house = House(once, gate, clock=clock)
    await house.save(make_definition("act", side_effects="writes"))
    driving = asyncio.create_task(house.start())
    await settled()
    (run,) = await house.store.journal.runs("default")
    return house, clock, gate, driving, run.run_id


async def test_a_clock_that_is_set_forward_lets_another_process_take_a_run_and_do_nothing_twice():
    house, clock, gate, driving, run_id = await in_the_middle()
    clock.set_by = timedelta(hours=1)

    other = House(once, other=house, owner="other")
    driven = await other.engine.resume(run_id)
    gate.open.set()

    with pytest.raises(Fenced):
        await driving
    (envelope,) = (await other.envelopes(run_id)).values()
    assert envelope.error is not None
    assert (driven.result.status, envelope.error.reason) == ("completed", "outcome_unknown")
    assert (house.dispatched, other.dispatched) == (["a"], [])


async def test_a_clock_that_is_set_forward_costs_a_process_nothing_whose_heart_beats_first():
    house, clock, gate, driving, run_id = await in_the_middle()
    clock.set_by = timedelta(hours=1)
    await clock.pass_time(LEASE_S / 3)

    with pytest.raises(Conflict, match="another process drives it"):
        await House(once, other=house, owner="other").engine.drive(run_id)
    gate.open.set()

    await driving
    assert (await house.store.journal.run(run_id)).status == "completed"


async def test_a_clock_that_is_set_back_delays_the_recovery_of_a_dead_process_and_loses_nothing():
    house, clock, _, driving, run_id = await in_the_middle()
    driving.cancel()
    await asyncio.gather(driving, return_exceptions=True)
    clock.set_by = -timedelta(hours=1)
    other = House(once, other=house, owner="other")
    clock.advance(LEASE_S + 1)
    assert await other.engine.recover() == []

    clock.advance(3600)

    (driven,) = await other.engine.recover()
    assert driven.result.run_id == run_id
    assert driven.result.status == "completed"

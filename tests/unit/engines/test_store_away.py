"""A store that goes away in the middle of a run: that is no end of the run, which goes on from its journal."""

from collections.abc import Awaitable
from typing import Any

import pytest

from tests.twins import make_definition
from tests.unit.engines.family import Family, acts, other_store
from tests.unit.runs.house import LEASE_S, House, ask
from toolcrib.contracts import Json, Signal
from toolcrib.contracts.base.errors import StoreUnavailable
from toolcrib.core.engines import DriveResult
from toolcrib.core.executor import Dispatch, Outcome
from toolcrib.core.runs import RunContext
from toolcrib.infrastructure.store import Journal

pytestmark = pytest.mark.requirement("store.away")


class Flickering:
    """A journal that is away while it is told to be."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.away = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.journal, name)

    def append(self, *arguments: Any) -> Awaitable[None]:
        return self._fail() if self.away else self.journal.append(*arguments)

    async def signals(self, run_id: str) -> dict[str, Signal]:
        if self.away:
            await self._fail()
        return dict(await self.journal.signals(run_id))

    async def _fail(self) -> None:
        raise StoreUnavailable("the store crib at db:5432 failed: connection refused")


async def resumed_later(house: House) -> DriveResult:
    """What becomes of the only run once its lease is over."""
    house.clock.advance(LEASE_S)
    (driven,) = await house.engine.recover()
    return driven


async def test_a_run_whose_look_into_the_store_fails_goes_on_although_the_store_was_away_for_a_moment_only():
    store: Any = other_store(Flickering)
    looks = [True, False]

    async def script(context: RunContext) -> Json:
        envelope = await context.call(ask("a"))
        store.other.away = looks.pop(0)
        try:
            await context.wait_signal("go", timeout_s=0)
        finally:
            store.other.away = False
        return envelope.output

    house = House(script, store=store)
    await house.save()
    with pytest.raises(StoreUnavailable):
        await house.start()
    (run,) = await store.journal.runs("default")
    assert run.status == "running"

    driven = await resumed_later(house)
    assert (driven.result.status, driven.result.output) == ("completed", {})
    assert house.dispatched == ["a"]


async def test_a_call_whose_intent_cannot_be_written_is_made_when_the_store_is_back():
    store: Any = other_store(Flickering)

    async def script(context: RunContext) -> Json:
        return (await context.call(ask("a", "act"))).output

    house = House(script, store=store)
    await house.save(make_definition("act", side_effects="writes"))
    request = await house.request()
    run_id = await house.engine.create(request)
    store.other.away = True
    with pytest.raises(StoreUnavailable):
        await house.engine.drive(run_id)
    assert house.dispatched == []

    store.other.away = False
    assert (await resumed_later(house)).result.status == "completed"
    assert house.dispatched == ["a"]


async def test_a_tool_that_meets_the_store_while_that_is_away_has_not_failed():
    away = [True]

    async def meets_it(dispatch: Dispatch) -> Outcome:
        if away:
            raise StoreUnavailable("the store crib at db:5432 failed: connection refused")
        return Outcome(dispatch.input)

    async def script(context: RunContext) -> Json:
        return (await context.call(ask("a", n=1))).output

    house = House(script, meets_it)
    await house.save()
    with pytest.raises(StoreUnavailable):
        await house.start()
    away.clear()

    assert (await resumed_later(house)).result.output == {"n": 1}


async def test_a_nested_run_whose_store_goes_away_takes_its_parent_with_it_and_both_go_on():
    away = [True]

    async def child(context: RunContext) -> Json:
        if away:
            raise StoreUnavailable("the store crib at db:5432 failed: connection refused")
        return await acts(context)

    family = Family(child)
    with pytest.raises(StoreUnavailable):
        await family.start()
    assert {run.status for run in await family.house.store.journal.runs("default")} == {"running"}
    away.clear()

    family.house.clock.advance(LEASE_S)
    await family.house.engine.recover()
    assert {run.status for run in await family.house.store.journal.runs("default")} == {"completed"}

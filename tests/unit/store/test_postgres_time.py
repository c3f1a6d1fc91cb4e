"""Machines whose clocks differ by hours and share a server: its time counts for leases and for waits."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from datetime import datetime, timedelta

import pytest

from tests.unit.store.samples import FIRST, LEASE_S, NOON, claimed, entry, later, new_run
from toolcrib.infrastructure.store import Lease, RunChange, Store, open_store

pytestmark = [pytest.mark.requirement("postgres.time"), pytest.mark.slow]

EARLY, LATE = NOON - timedelta(days=400), NOON + timedelta(days=40_000)
"""What clocks may say that are wrong."""


@pytest.fixture
async def stores(postgres_store: str) -> AsyncGenerator[tuple[Store, Store]]:
    first, second = open_store(postgres_store), open_store(postgres_store)
    async with AsyncExitStack() as stack:
        for store in (first, second):
            await store.open()
            stack.push_async_callback(store.close)
        yield first, second


async def test_a_living_lease_is_not_taken_over_by_a_machine_that_is_ahead(stores: tuple[Store, Store]):
    await stores[0].journal.create(new_run(), FIRST)
    assert (await claimed(stores[0].journal, at=EARLY)).run.updated_at == EARLY

    assert list(await stores[1].journal.claimable(now=LATE, limit=10)) == []
    assert await stores[1].journal.claim("r1", owner="p2", now=LATE, lease_s=LEASE_S) is None
    assert list(await stores[0].journal.renew(["r1"], owner="p1", now=EARLY, lease_s=LEASE_S)) == ["r1"]
    assert await stores[1].journal.claim("r1", owner="p2", now=LATE, lease_s=LEASE_S) is None


async def test_a_lease_that_is_over_is_taken_over_by_a_machine_that_is_behind(stores: tuple[Store, Store]):
    await stores[0].journal.create(new_run(), FIRST)
    assert await stores[0].journal.claim("r1", owner="p1", now=LATE, lease_s=-1)

    assert list(await stores[1].journal.claimable(now=EARLY, limit=10)) == ["r1"]
    assert (await claimed(stores[1].journal, owner="p2", at=EARLY)).run.epoch == 2


@pytest.mark.parametrize("at", [EARLY, LATE])
async def test_a_run_that_is_created_with_a_lease_has_one_of_that_length(stores: tuple[Store, Store], at: datetime):
    for run_id, seconds in (("held", LEASE_S), ("over", -1)):
        run = new_run(run_id, status="running", epoch=1, created_at=at, updated_at=at)
        await stores[0].journal.create(run, FIRST, lease=Lease("p1", at + timedelta(seconds=seconds)))

    assert list(await stores[1].journal.claimable(now=NOON, limit=10)) == ["over"]


@pytest.mark.parametrize(("seconds", "found"), [(3600, []), (-1, ["r1"])])
async def test_a_wait_is_as_long_as_the_machine_says_that_begins_it(
    stores: tuple[Store, Store], seconds: float, found: list[str]
):
    await stores[0].journal.create(new_run(), FIRST)
    await claimed(stores[0].journal)
    wait = RunChange("awaiting_approval", waiting_for=("approval:t1.c1",), wake_at=later(seconds))
    await stores[0].journal.append("r1", 1, [entry(2)], wait)

    for clock in (EARLY, LATE):
        assert list(await stores[1].journal.claimable(now=clock, limit=10)) == found
    assert (await stores[1].journal.run("r1")).wake_at == later(seconds)


async def test_a_run_that_waits_for_nothing_but_a_process_is_taken_at_once(stores: tuple[Store, Store]):
    await stores[0].journal.create(new_run(), FIRST)
    await claimed(stores[0].journal, at=LATE)
    await stores[0].journal.append("r1", 1, [], RunChange("queued"))

    assert list(await stores[1].journal.claimable(now=EARLY, limit=10)) == ["r1"]

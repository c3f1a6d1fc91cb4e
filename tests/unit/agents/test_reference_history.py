"""Readings of reference data over time: their history, those that are not believed, a schedule for all processes."""

from pathlib import Path
from typing import Any

import pytest

from tests.unit.agents.test_reference_sync import HOUR, House
from tests.unit.runs_trace.house import StillClock
from toolcrib import Crib, ReferenceSource, tool
from toolcrib.contracts import NotFound, ProviderDefinition, Unavailable
from toolcrib.crib.maintenance import by_the_clock, forget_what_has_expired, sync_reference_data
from toolcrib.infrastructure.store import MemoryStore

STAGES = ReferenceSource(name="stages", tool="list_stages", max_age_s=HOUR, keep=3)


def stages(count: int) -> list[dict[str, Any]]:
    return [{"id": str(number), "label": f"stage {number}"} for number in range(count)]


async def house_with(count: int, **changes: Any) -> House:
    house = await House(source=STAGES.model_copy(update=changes)).ready()
    house.crm.stages = stages(count)
    await house.crib.reference_data.sync()
    return house


@pytest.mark.requirement("agentic.reference_history")
async def test_what_readings_brought_is_listed_newest_first_and_equal_readings_are_one():
    house = await house_with(5)
    house.clock.advance(60)
    await house.crib.reference_data.sync()
    house.clock.advance(60)
    house.crm.stages = stages(6)
    await house.crib.reference_data.sync()

    newer, older = await house.crib.reference_data.history("crm", "stages")

    assert (newer.size, older.size) == (6, 5)
    assert (older.fetched_at - older.first_at).total_seconds() == 60
    assert newer.first_at == newer.fetched_at
    assert newer.id != older.id


@pytest.mark.requirement("agentic.reference_history")
async def test_no_more_readings_are_kept_than_the_source_says():
    house = await house_with(5)
    for count in range(6, 11):
        house.crm.stages = stages(count)
        await house.crib.reference_data.sync()

    assert [each.size for each in await house.crib.reference_data.history("crm", "stages")] == [10, 9, 8]


@pytest.mark.requirement("agentic.reference_doubt")
@pytest.mark.parametrize(("before", "after", "believed"), [(3, 0, False), (10, 4, False), (10, 5, True), (4, 1, True)])
async def test_a_list_that_has_lost_too_much_is_not_used_and_the_one_before_is(before: int, after: int, believed: bool):
    house = await house_with(before)
    house.crm.stages = stages(after)
    house.clock.advance(90)

    (snapshot,) = await house.crib.reference_data.sync()

    assert snapshot.size == (after if believed else before)
    assert (snapshot.error is None) == believed
    if not believed:
        assert snapshot.error is not None
        assert f"was read with {after} values, and the snapshot in use has {before}" in snapshot.error
        assert (snapshot.age_s, snapshot.failed_at) == (90, house.clock.now())
        newest, _ = await house.crib.reference_data.history("crm", "stages")
        assert (newest.size, newest.refused) == (after, snapshot.error)


@pytest.mark.requirement("agentic.reference_doubt")
async def test_a_doubtful_list_is_used_once_somebody_accepts_it_or_it_has_recovered():
    house = await house_with(10)
    house.crm.stages = []
    await house.crib.reference_data.sync()
    (accepted,) = await house.crib.reference_data.sync(accept=True)
    house.crm.stages = stages(10)
    (recovered,) = await house.crib.reference_data.sync()

    assert (accepted.size, accepted.error) == (0, None)
    assert (recovered.size, recovered.error) == (10, None)


@pytest.mark.requirement("agentic.reference_doubt")
async def test_a_run_uses_the_list_before_a_doubtful_one_and_warns():
    house = await house_with(10)
    house.crm.stages = []
    house.clock.advance(HOUR + 1)

    result = await house.run()

    assert "'stages' was read with 0 values, and the snapshot in use has 10" in result.summary.warnings[0]
    assert "the values used are those of" in result.summary.warnings[0]


@pytest.mark.requirement("agentic.reference_history")
async def test_a_failure_is_shown_until_a_reading_succeeds():
    house = await house_with(5)
    house.fails = True
    await house.crib.reference_data.sync()
    (failed,) = await house.crib.reference_data.list()
    house.fails = False
    await house.crib.reference_data.sync()
    (well,) = await house.crib.reference_data.list()

    assert failed.error is not None
    assert "no connection" in failed.error
    assert (well.error, well.failed_at) == (None, None)


async def serving(store: Any, clock: StillClock, asked: list[str], name: str) -> Crib:
    """One of several processes that share a store."""

    @tool(side_effects="reads")
    async def list_stages() -> list[str]:
        asked.append(name)
        return ["a", "b"]

    crib = Crib(store, clock=clock)
    crib.add(list_stages)
    source = STAGES.model_copy(update={"sync_every_s": 600.0})
    later = ReferenceSource(name="never", tool="list_stages")
    await crib.save_provider(
        ProviderDefinition(name="crm", base_url="https://crm.example", reference_data=(source, later))
    )
    return crib


@pytest.mark.requirement("agentic.reference_schedule")
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_of_several_processes_one_reads_a_list_in_each_span_of_its_schedule(kind: str, tmp_path: Path):
    clock, asked = StillClock(), list[str]()
    store: Any = MemoryStore() if kind == "memory" else f"sqlite:///{tmp_path}/crib.db"
    cribs = [await serving(store, clock, asked, name) for name in ("one", "other")]

    for seconds in (0, 60, 540, 600):
        clock.advance(seconds)
        for crib in cribs:
            await sync_reference_data(crib)

    assert len(asked) == 3
    assert [each.size for each in await cribs[0].reference_data.history("crm", "stages")] == [2]
    for crib in cribs[: 1 if kind == "memory" else 2]:
        await crib.close()


@pytest.mark.requirement("agentic.reference_schedule")
async def test_what_has_expired_is_forgotten_and_nothing_else():
    house = await house_with(5)
    cache = house.crib.store.cache
    now = house.clock.now()
    assert await cache.add("k", {}, realm="default", made_by="me", now=now, expires_at=now)
    await forget_what_has_expired(house.crib)

    assert await cache.purge(now=now) == 0
    assert (await house.crib.reference_data.list())[0].size == 5


@pytest.mark.requirement("agentic.reference_schedule")
async def test_a_scheduled_reading_that_fails_is_logged_and_the_next_span_has_another(
    caplog: pytest.LogCaptureFixture,
):
    house = await house_with(5, sync_every_s=60.0)
    house.fails = True

    await sync_reference_data(house.crib)

    assert "provider crm: reference data 'stages' could not be read" in caplog.text


class Stop(Exception):
    """Ends a loop."""


class Impatient(StillClock):
    """A clock whose second sleep ends whoever sleeps."""

    naps = 0

    async def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self.naps += 1
        if self.naps > 1:
            raise Stop
        self.advance(seconds)


@pytest.mark.requirement("agentic.reference_schedule")
async def test_a_store_that_is_not_there_is_logged_and_asked_again(caplog: pytest.LogCaptureFixture):
    async def fails(crib: Crib) -> None:
        tried.append(crib)
        raise Unavailable("no store")

    tried: list[Crib] = []
    crib = Crib("memory://", clock=Impatient())
    with pytest.raises(Stop):
        await by_the_clock(crib, 5.0, fails)

    assert len(tried) == 2
    assert "fails failed; trying again in 5.0 s" in caplog.text


@pytest.mark.requirement("agentic.reference_values")
async def test_the_values_in_use_are_those_of_the_last_reading_that_is_believed():
    house = await house_with(10)
    used = await house.crib.reference_data.values("crm", "stages")
    house.crm.stages = []
    (doubtful,) = await house.crib.reference_data.sync()
    still_used = await house.crib.reference_data.values("crm", "stages")

    assert [(each.value, each.label) for each in used.values][:2] == [("0", "stage 0"), ("1", "stage 1")]
    assert doubtful.error is not None
    assert still_used == used
    assert (used.id, used.fetched_at) == (doubtful.id, doubtful.fetched_at)


@pytest.mark.requirement("agentic.reference_values")
async def test_values_of_a_definition_need_no_reading_and_others_are_refused_until_they_are_read():
    fixed = await House(source=ReferenceSource(name="stages", values=("lead", "won"))).ready()
    unread = await House(source=STAGES).ready()

    written = await fixed.crib.reference_data.values("crm", "stages")
    with pytest.raises(NotFound, match="toolcrib reference sync crm stages"):
        await unread.crib.reference_data.values("crm", "stages")

    assert [each.value for each in written.values] == ["lead", "won"]
    assert (written.id, written.fetched_at) == (None, None)

"""The journal's promises, on every store."""

from collections.abc import AsyncGenerator
from decimal import Decimal
from typing import Any

import pytest

from tests.unit.store.samples import (
    FIRST,
    LEASE_S,
    NOON,
    REQUEST,
    claimed,
    entries,
    entry,
    later,
    new_run,
    opened_at,
    signal,
    started,
)
from toolcrib.contracts import (
    CANCEL,
    Conflict,
    ErrorCode,
    Fenced,
    InvalidInput,
    NotFound,
    RunResult,
    RunStatus,
    ToolError,
    Usage,
)
from toolcrib.infrastructure.store import Journal, Lease, RunChange


@pytest.fixture
async def journal(store_url: str) -> AsyncGenerator[Journal]:
    async with opened_at(store_url) as store:
        yield store.journal


async def numbers(journal: Journal, run_id: str = "r1") -> list[int]:
    return [event.number for event in await journal.events(run_id)]


@pytest.mark.requirement("store.create")
async def test_a_created_run_is_queued_with_its_first_event(journal: Journal):
    await journal.create(new_run(), FIRST)

    run = await journal.run("r1")
    assert (run.status, run.epoch, run.events, run.request) == ("queued", 0, 1, REQUEST)
    (event,) = await journal.events("r1")
    assert (event.number, event.at, event.realm, event.made_by, event.event) == (1, NOON, "default", "owner", FIRST)
    assert event.schema_version == 1


@pytest.mark.requirement("store.create")
async def test_an_id_is_used_once(journal: Journal):
    await journal.create(new_run(), FIRST)

    with pytest.raises(Conflict, match="r1"):
        await journal.create(new_run(realm="other"), FIRST)
    assert (await journal.run("r1")).realm == "default"
    assert await numbers(journal) == [1]


@pytest.mark.requirement("store.create")
@pytest.mark.parametrize("past", [{"status": "completed"}, {"epoch": 3}])
async def test_a_run_with_a_past_is_not_created(journal: Journal, past: dict[str, Any]):
    with pytest.raises(InvalidInput, match="created queued, at epoch 0"):
        await journal.create(new_run(**past), FIRST)


@pytest.mark.requirement("store.create", "store.claim")
async def test_a_run_that_is_created_with_a_lease_is_driven_at_once(journal: Journal):
    journal.create(new_run(status="running", epoch=1), FIRST, lease=Lease("p1", later(LEASE_S)))
    await journal.append("r1", 1, [entry(2)])

    run = await journal.run("r1")
    assert (run.status, run.epoch, run.events) == ("running", 1, 2)
    assert await journal.claim("r1", owner="p2", now=later(LEASE_S - 0.001), lease_s=LEASE_S) is None
    assert list(await journal.renew(["r1"], owner="p1", now=later(5), lease_s=LEASE_S)) == ["r1"]
    assert await journal.claimable(now=later(5 + LEASE_S - 0.001), limit=10) == []
    assert (await claimed(journal, owner="p2", at=later(5 + LEASE_S))).run.epoch == 2


@pytest.mark.requirement("store.create")
@pytest.mark.parametrize("wrong", [{}, {"status": "running"}, {"epoch": 1}, {"status": "running", "epoch": 2}])
async def test_a_run_with_a_lease_is_created_running_at_epoch_1(journal: Journal, wrong: dict[str, Any]):
    with pytest.raises(InvalidInput, match="created running, at epoch 1"):
        await journal.create(new_run(**wrong), FIRST, lease=Lease("p1", later(LEASE_S)))


@pytest.mark.requirement("store.claim")
async def test_a_claim_hands_over_the_run_its_log_and_its_signals(journal: Journal):
    await journal.create(new_run(), FIRST)
    await journal.signal("r1", signal(approved=True))

    claim = await journal.claim("r1", owner="p1", now=later(1), lease_s=LEASE_S)

    assert claim is not None
    assert (claim.run.status, claim.run.epoch, claim.run.updated_at) == ("running", 1, later(1))
    assert [event.event for event in claim.events] == [FIRST]
    assert claim.signals == {"approval:t1.c1": signal(approved=True)}
    assert await journal.run("r1") == claim.run


@pytest.mark.requirement("store.claim")
async def test_a_run_under_a_living_lease_cannot_be_claimed_by_another(journal: Journal):
    await started(journal)

    assert await journal.claim("r1", owner="p2", now=later(LEASE_S - 0.001), lease_s=LEASE_S) is None
    taken = await journal.claim("r1", owner="p2", now=later(LEASE_S), lease_s=LEASE_S)
    assert taken is not None
    assert taken.run.epoch == 2


@pytest.mark.requirement("store.claim")
async def test_an_owner_may_claim_its_own_run_again_and_the_epoch_rises(journal: Journal):
    await started(journal)

    assert (await claimed(journal)).run.epoch == 2


@pytest.mark.requirement("store.claim")
@pytest.mark.parametrize("status", ["completed", "failed", "timed_out", "cancelled"])
async def test_an_ended_run_cannot_be_claimed(journal: Journal, status: RunStatus):
    await started(journal)
    await journal.append("r1", 1, [entry(2)], RunChange(status))

    assert await journal.claim("r1", owner="p1", now=later(1000), lease_s=LEASE_S) is None
    assert await journal.claimable(now=later(1000), limit=10) == []


@pytest.mark.requirement("store.claim", "store.append", "store.signals")
async def test_an_unknown_run_is_not_found(journal: Journal):
    for operation in (
        journal.claim("none", owner="p1", now=NOON, lease_s=1),
        journal.signal("none", signal()),
        journal.run("none"),
        journal.runs("default", before="none"),
        journal.append("none", 1, [entry(2, "none")]),
    ):
        with pytest.raises(NotFound, match="none"):
            await operation
    assert list(await journal.events("none")) == []
    assert await journal.signals("none") == {}


@pytest.mark.requirement("store.claimable")
async def test_claimable_runs_are_listed_oldest_first(journal: Journal):
    for run_id, age in (("young", 3), ("old", 0), ("middle", 1), ("owned", 2)):
        await journal.create(new_run(run_id, created_at=later(age)), FIRST)
    await claimed(journal, "owned", at=later(5))

    assert list(await journal.claimable(now=later(6), limit=10)) == ["old", "middle", "young"]
    assert list(await journal.claimable(now=later(6), limit=2)) == ["old", "middle"]
    assert list(await journal.claimable(now=later(5 + LEASE_S), limit=10)) == ["old", "middle", "owned", "young"]


@pytest.mark.requirement("store.leases")
async def test_a_lease_is_prolonged_by_its_owner_only(journal: Journal):
    await started(journal)
    await started(journal, "r2")
    await started(journal, "r3")
    await claimed(journal, "r2", owner="p2", at=later(LEASE_S))
    await journal.append("r3", 1, [], RunChange("queued"))

    kept = await journal.renew(["r1", "r2", "r3", "none"], owner="p1", now=later(LEASE_S), lease_s=LEASE_S)

    assert list(kept) == ["r1"]
    assert list(await journal.claimable(now=later(2 * LEASE_S - 0.001), limit=10)) == ["r3"]
    assert list(await journal.claimable(now=later(2 * LEASE_S), limit=10)) == ["r1", "r2", "r3"]


@pytest.mark.requirement("store.append")
async def test_appends_that_nobody_awaits_are_read_back_in_order(journal: Journal):
    await started(journal)
    for number in range(2, 30):
        journal.append("r1", 1, [entry(number, seconds=number)])

    assert await numbers(journal) == list(range(1, 30))
    run = await journal.run("r1")
    assert (run.events, run.updated_at) == (29, later(29))
    assert [run.events for run in await journal.runs("default")] == [29]


@pytest.mark.requirement("store.append")
async def test_events_are_read_from_a_number_on(journal: Journal):
    await started(journal)
    await journal.append("r1", 1, entries(2, 9))

    assert [event.number for event in await journal.events("r1", after=6)] == [7, 8, 9]
    assert [event.number for event in await journal.events("r1", after=3, limit=2)] == [4, 5]
    assert list(await journal.events("r1", after=9)) == []


@pytest.mark.requirement("store.append")
async def test_an_event_comes_back_as_it_was(journal: Journal):
    await started(journal)
    sent = entry(2, data={"text": "Zoë \u0000 \U0001f527", "list": [1, 2.5, None, True], "large": 2**70})
    await journal.append("r1", 1, [sent])

    assert list(await journal.events("r1", after=1)) == [sent]


@pytest.mark.requirement("store.append")
async def test_the_end_of_a_run_is_written_with_its_result(journal: Journal):
    await started(journal)
    result = RunResult(
        run_id="r1",
        status="failed",
        stop_reason="error",
        output={"deals": [1, 2]},
        error=ToolError(code=ErrorCode.TIMEOUT, message="too slow"),
        warnings=("one",),
        usage=Usage(input_tokens=3, output_tokens=4),
        cost_usd=Decimal("0.25"),
        cost_unknown=True,
    )
    await journal.append("r1", 1, [entry(2, seconds=7)], RunChange("failed", result=result))

    run = await journal.run("r1")
    assert run.ended
    assert (run.stop_reason, run.output, run.error) == ("error", {"deals": [1, 2]}, result.error)
    assert (run.warnings, run.usage, run.cost_usd, run.cost_unknown) == (
        ("one",),
        result.usage,
        Decimal("0.25"),
        True,
    )
    assert (run.events, run.updated_at) == (2, later(7))


@pytest.mark.requirement("store.append")
async def test_an_append_of_nothing_waits_for_the_appends_before_it(journal: Journal):
    await started(journal)
    journal.append("r1", 1, [entry(2)])
    await journal.append("r1", 1, [])

    assert await numbers(journal) == [1, 2]


@pytest.mark.requirement("store.fencing")
async def test_an_append_of_an_old_epoch_writes_nothing(journal: Journal):
    await started(journal)
    await claimed(journal, owner="p2", at=later(LEASE_S))

    for events, change in (([entry(2)], None), ([entry(2)], RunChange("completed")), ([], None)):
        with pytest.raises(Fenced, match="epoch 2"):
            await journal.append("r1", 1, events, change)
    assert await numbers(journal) == [1]
    assert (await journal.run("r1")).status == "running"

    await journal.append("r1", 2, [entry(2)])
    assert await numbers(journal) == [1, 2]


@pytest.mark.requirement("store.no_gaps")
@pytest.mark.parametrize("wrong", [[1], [3], [3, 4], [2, 4], [2, 2]])
async def test_numbers_that_do_not_follow_are_a_conflict(journal: Journal, wrong: list[int]):
    await started(journal)

    for change in (None, RunChange("completed")):
        with pytest.raises(Conflict, match="r1"):
            await journal.append("r1", 1, [entry(number) for number in wrong], change)
    assert await numbers(journal) == [1]
    assert (await journal.run("r1")).status == "running"


@pytest.mark.requirement("store.no_gaps")
async def test_an_event_of_another_run_is_refused(journal: Journal):
    await started(journal)

    with pytest.raises(InvalidInput, match="r2"):
        await journal.append("r1", 1, [entry(2, "r2")])


@pytest.mark.requirement("store.no_gaps")
async def test_nothing_follows_the_end(journal: Journal):
    await started(journal)
    await journal.append("r1", 1, [entry(2)], RunChange("completed"))

    with pytest.raises(Conflict, match="completed"):
        await journal.append("r1", 1, [entry(3)])
    with pytest.raises(Conflict, match="completed"):
        await journal.append("r1", 1, [], RunChange("failed"))
    assert await numbers(journal) == [1, 2]


@pytest.mark.requirement("store.claim")
async def test_only_a_claim_makes_a_run_running(journal: Journal):
    await started(journal)

    with pytest.raises(InvalidInput, match="claims it"):
        await journal.append("r1", 1, [entry(2)], RunChange("running"))


@pytest.mark.requirement("store.waiting")
async def test_a_run_that_waits_is_claimable_only_after_its_signal(journal: Journal):
    await started(journal)
    await journal.append("r1", 1, [entry(2)], RunChange("awaiting_approval", waiting_for=("approval:t1.c1", "other")))

    assert await journal.claim("r1", owner="p1", now=later(1000), lease_s=LEASE_S) is None
    await journal.signal("r1", signal("unrelated"))
    assert await journal.claimable(now=later(1000), limit=10) == []
    assert (await journal.run("r1")).status == "awaiting_approval"

    await journal.signal("r1", signal())
    assert list(await journal.claimable(now=NOON, limit=10)) == ["r1"]
    run = await journal.run("r1")
    assert (run.status, run.updated_at) == ("queued", signal().at)
    claim = await claimed(journal)
    assert claim.run.epoch == 2
    assert set(claim.signals) == {"unrelated", "approval:t1.c1"}


@pytest.mark.requirement("store.waiting")
async def test_a_signal_that_came_before_the_wait_is_not_missed(journal: Journal):
    await started(journal)
    await journal.signal("r1", signal())
    wait = RunChange("awaiting_approval", waiting_for=("approval:t1.c1",), wake_at=later(50))
    await journal.append("r1", 1, [entry(2)], wait)

    run = await journal.run("r1")
    assert (run.status, run.wake_at) == ("queued", None)
    assert list(await journal.claimable(now=NOON, limit=10)) == ["r1"]


@pytest.mark.requirement("store.waiting")
async def test_a_run_that_waits_is_woken_by_the_clock(journal: Journal):
    await started(journal)
    await journal.append(
        "r1", 1, [entry(2)], RunChange("awaiting_client", waiting_for=("client:x",), wake_at=later(60))
    )

    assert (await journal.run("r1")).wake_at == later(60)
    assert await journal.claimable(now=later(59.999), limit=10) == []
    assert await journal.claim("r1", owner="p1", now=later(59.999), lease_s=LEASE_S) is None
    assert list(await journal.claimable(now=later(60), limit=10)) == ["r1"]
    claim = await claimed(journal, at=later(60))
    assert (claim.run.status, claim.run.wake_at) == ("running", None)


@pytest.mark.requirement("store.waiting")
async def test_a_sleeping_run_stays_queued_until_its_time(journal: Journal):
    await started(journal)
    await journal.append("r1", 1, [entry(2)], RunChange("queued", wake_at=later(60)))

    assert await journal.claimable(now=later(59), limit=10) == []
    assert list(await journal.claimable(now=later(60), limit=10)) == ["r1"]


@pytest.mark.requirement("store.waiting")
async def test_a_run_given_back_is_claimable_at_once(journal: Journal):
    await started(journal)
    await journal.append("r1", 1, [], RunChange("queued"))

    assert list(await journal.claimable(now=NOON, limit=10)) == ["r1"]
    assert (await claimed(journal, owner="p2")).run.epoch == 2


@pytest.mark.requirement("store.waiting")
async def test_a_signal_for_a_running_run_leaves_it_with_its_owner(journal: Journal):
    await started(journal)
    await journal.signal("r1", signal())

    assert (await journal.run("r1")).status == "running"
    assert await journal.claimable(now=NOON, limit=10) == []


@pytest.mark.requirement("store.told")
async def test_a_run_that_ends_can_tell_another_one_in_the_same_step(journal: Journal):
    await started(journal, "parent")
    await journal.append("parent", 1, [entry(2, "parent")], RunChange("queued", waiting_for=("child:r1",)))
    await started(journal)
    assert list(await journal.claimable(now=NOON, limit=10)) == []

    await journal.append("r1", 1, [entry(2)], RunChange("completed", tells=("parent", signal("child:r1"))))

    assert list(await journal.claimable(now=NOON, limit=10)) == ["parent"]
    assert (await claimed(journal, "parent")).signals == {"child:r1": signal("child:r1")}


@pytest.mark.requirement("store.told")
async def test_a_run_that_is_fenced_tells_nothing_and_one_that_tells_nobody_ends(journal: Journal):
    await started(journal, "parent")
    await started(journal)
    with pytest.raises(Fenced):
        await journal.append("r1", 0, [entry(2)], RunChange("completed", tells=("parent", signal())))
    assert await journal.signals("parent") == {}

    await journal.append("r1", 1, [entry(2)], RunChange("completed", tells=("gone", signal())))

    assert (await journal.run("r1")).status == "completed"


@pytest.mark.requirement("store.signals")
async def test_the_first_signal_of_a_name_wins(journal: Journal):
    await journal.create(new_run(), FIRST)

    assert await journal.signal("r1", signal(approved=True))
    assert not await journal.signal("r1", signal(approved=False))
    assert await journal.signals("r1") == {"approval:t1.c1": signal(approved=True)}


@pytest.mark.requirement("store.signals_together")
async def test_signals_for_several_runs_are_left_together(journal: Journal):
    for run_id in ("r1", "r2"):
        await journal.create(new_run(run_id), FIRST)
    await claimed(journal, "r2")
    await journal.append("r2", 1, (), RunChange("awaiting_client", waiting_for=("client:b", "client:c")))

    assert await journal.signal_all(
        [("r1", signal("client:a")), ("r2", signal("client:b")), ("r2", signal("client:c"))]
    )
    assert set(await journal.signals("r1")) == {"client:a"}
    assert set(await journal.signals("r2")) == {"client:b", "client:c"}
    assert (await journal.run("r2")).status == "queued"


@pytest.mark.requirement("store.signals_together")
async def test_of_signals_of_which_one_is_there_already_none_is_left(journal: Journal):
    for run_id in ("r1", "r2"):
        await journal.create(new_run(run_id), FIRST)
    await journal.signal("r2", signal("client:b"))

    assert not await journal.signal_all([("r1", signal("client:a")), ("r2", signal("client:b"))])
    with pytest.raises(NotFound):
        await journal.signal_all([("r1", signal("client:a")), ("none", signal("client:b"))])
    assert await journal.signals("r1") == {}


@pytest.mark.requirement("store.signals_together")
async def test_of_runs_that_are_none_the_first_is_named(journal: Journal):
    for first in range(8):
        missing = [(f"r{(first + step) % 8}", signal("client:a")) for step in range(8)]
        with pytest.raises(NotFound, match=f"r{first}"):
            await journal.signal_all(missing)


@pytest.mark.requirement("store.pages")
async def test_runs_are_listed_newest_first_and_filtered(journal: Journal):
    other_tool = REQUEST.model_copy(update={"tool": "search@2.0.0"})
    await journal.create(new_run("a", created_at=later(1)), FIRST)
    await journal.create(new_run("b", created_at=later(2), request=other_tool), FIRST)
    await journal.create(new_run("c", created_at=later(0)), FIRST)
    await claimed(journal, "a", at=later(3))

    async def listed(tool: str | None = None, status: RunStatus | None = None) -> list[str]:
        return [run.run_id for run in await journal.runs("default", tool=tool, status=status)]

    assert await listed() == ["b", "a", "c"]
    assert await listed(tool="search") == ["b"]
    assert await listed(status="queued") == ["b", "c"]
    assert await listed(tool="deal-manager", status="running") == ["a"]
    assert await journal.runs("default", made_by="nobody") == []
    assert len(await journal.runs("default", made_by="owner")) == 3


@pytest.mark.requirement("store.pages")
async def test_pages_follow_each_other_without_repeats_even_for_runs_of_one_moment(journal: Journal):
    for number in range(5):
        await journal.create(new_run(f"r{number}"), FIRST)

    first = await journal.runs("default", limit=2)
    second = await journal.runs("default", limit=2, before=first[-1].run_id)
    third = await journal.runs("default", limit=2, before=second[-1].run_id)

    assert [run.run_id for run in (*first, *second, *third)] == ["r4", "r3", "r2", "r1", "r0"]


@pytest.mark.requirement("store.realms")
async def test_a_realm_lists_only_its_own_runs(journal: Journal):
    await journal.create(new_run("a"), FIRST)
    await journal.create(new_run("b", realm="other"), FIRST)

    assert [run.run_id for run in await journal.runs("other")] == ["b"]
    with pytest.raises(NotFound):
        await journal.runs("other", before="a")


@pytest.mark.requirement("store.cancel")
@pytest.mark.parametrize("first", ["signal", "wait"])
async def test_the_signal_that_ends_a_run_ends_its_wait_whatever_it_waits_for(journal: Journal, first: str):
    await started(journal)
    wait = RunChange("awaiting_client", waiting_for=("go",), wake_at=later(3600))
    if first == "signal":
        assert await journal.signal("r1", signal(CANCEL))
        await journal.append("r1", 1, [entry(2)], wait)
    else:
        await journal.append("r1", 1, [entry(2)], wait)
        assert await journal.signal("r1", signal(CANCEL))

    assert (await journal.run("r1")).status == "queued"
    assert list(await journal.claimable(now=NOON, limit=10)) == ["r1"]
    assert not await journal.signal("r1", signal(CANCEL))


@pytest.mark.requirement("store.cancel")
async def test_the_signal_that_ends_a_run_leaves_it_to_who_drives_it_and_an_ended_one_ended(journal: Journal):
    await started(journal)
    await journal.signal("r1", signal(CANCEL))
    assert (await journal.run("r1")).status == "running"
    await journal.append("r1", 1, [entry(2)], RunChange("completed"))

    assert (await journal.run("r1")).status == "completed"
    assert list(await journal.claimable(now=later(3600), limit=10)) == []


@pytest.mark.requirement("store.cancel")
async def test_the_runs_that_were_left_a_signal_are_found_by_its_name(journal: Journal):
    for run_id in ("r1", "r2", "r3"):
        await journal.create(new_run(run_id), FIRST)
    await journal.signal("r1", signal(CANCEL))
    await journal.signal("r2", signal("other"))
    await journal.signal("r3", signal(CANCEL))

    assert list(await journal.runs_with_signal(CANCEL, ["r1", "r2", "none"])) == ["r1"]
    assert list(await journal.runs_with_signal(CANCEL, [])) == []

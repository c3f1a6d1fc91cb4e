"""Taking out what is old: the promises of `Retention`, on every store."""

from collections.abc import AsyncGenerator
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.unit.store.samples import NOON, REQUEST, claimed, definition, entry, later, new_run, opened_at, signal
from toolcrib.contracts import (
    ApprovalRequested,
    ChildStarted,
    Conversation,
    Event,
    NotFound,
    ProgressMade,
    RunEvent,
    RunResult,
    RunStarted,
    Signal,
    digest,
)
from toolcrib.contracts.pruning_and_rehearsal import PrunedCounts
from toolcrib.contracts.runs.runs import Rerun
from toolcrib.infrastructure.store import ApprovalFilter, Family, Pruning, RunChange, Store

DAY = later(86400)
NOBODY = frozenset[str]()


@pytest.fixture
async def store(store_url: str) -> AsyncGenerator[Store]:
    async with opened_at(store_url) as opened_store:
        yield opened_store


async def make(
    store: Store, run_id: str, *events: Event, end: bool = True, at: datetime = NOON, **request: Any
) -> None:
    asked = REQUEST.model_copy(update=request)
    run = new_run(run_id, request=asked, created_at=at, updated_at=at)
    await store.journal.create(run, RunStarted(request=asked))
    await claimed(store.journal, run_id, at=at)
    entries = [RunEvent(run_id, number, at, "default", "owner", event) for number, event in enumerate(events, 2)]
    change = RunChange("completed", RunResult(run_id=run_id, status="completed")) if end else None
    if entries or change:
        await store.journal.append(run_id, 1, entries, change)


def child(run_id: str) -> ChildStarted:
    return ChildStarted(position=f"t1.{run_id}", child_run_id=run_id, tool="search@1.0.0")


async def family(store: Store, root: str = "r1", *, end_nested: bool = True, at: datetime = NOON) -> None:
    """A root with a nested run that has a nested run."""
    nested, leaf = f"{root}.a", f"{root}.a.b"
    await make(store, root, child(nested), at=at)
    await make(store, nested, child(leaf), at=at, parent_run_id=root, root_run_id=root)
    await make(store, leaf, at=at, parent_run_id=nested, root_run_id=root, end=end_nested)


async def prune(store: Store, *run_ids: str, needed: frozenset[str] = NOBODY, dry_run: bool = False) -> list[Family]:
    return list(await store.retention.prune(run_ids, untouched_since=DAY, needed=needed, dry_run=dry_run))


async def left(store: Store) -> set[str]:
    return {run.run_id for run in await store.journal.runs("default")}


@pytest.mark.requirement("retention.families")
async def test_a_family_goes_as_a_whole(store: Store):
    asked = ApprovalRequested(
        position="t1.c1",
        call_id="call_1",
        name="search",
        version="1.0.0",
        input={},
        arguments_hash="a",
        content_hash="c",
    )
    await family(store)
    await make(store, "r2", asked)
    await make(store, "r3")
    await store.journal.signal("r1.a", signal())

    gone = await prune(store, "r1", "r2")

    assert [set(each.run_ids) for each in gone] == [{"r1", "r1.a", "r1.a.b"}, {"r2"}]
    assert [(each.fate, each.events, each.approvals) for each in gone] == [("gone", 5, 0), ("gone", 2, 1)]
    assert await left(store) == {"r3"}
    assert await store.journal.events("r1.a") == ()
    assert await store.journal.signals("r1.a") == {}
    assert list(await store.approvals.page("default", ApprovalFilter())) == []
    with pytest.raises(NotFound):
        await store.journal.run("r1.a.b")


@pytest.mark.requirement("retention.families")
async def test_a_family_of_which_a_run_goes_on_stays_whole(store: Store):
    await family(store, end_nested=False)

    (kept,) = await prune(store, "r1")

    assert kept.fate == "unfinished"
    assert await left(store) == {"r1", "r1.a", "r1.a.b"}


@pytest.mark.requirement("retention.families")
async def test_a_family_that_was_touched_since_stays(store: Store):
    await family(store)
    await family(store, "r2", at=DAY)
    told = Signal(name="rerun", payload={}, made_by="ann", at=DAY)
    await store.journal.signal("r1.a", told)

    assert [each.fate for each in await prune(store, "r1", "r2")] == ["unfinished", "unfinished"]
    assert len(await left(store)) == 6


@pytest.mark.requirement("retention.families")
async def test_a_run_that_was_announced_and_never_made_hinders_nobody(store: Store):
    await make(store, "r1", child("r1.a"))

    assert [each.run_ids for each in await prune(store, "r1", "unknown")] == [("r1",), ()]
    assert await left(store) == set()


@pytest.mark.requirement("retention.dry_run")
async def test_a_dry_run_of_a_family_counts_and_keeps_it(store: Store):
    await family(store)

    (found,) = await prune(store, "r1", dry_run=True)

    assert (found.fate, len(found.run_ids), found.events) == ("gone", 3, 5)
    assert len(await left(store)) == 3


@pytest.mark.requirement("retention.needed")
async def test_what_an_open_run_takes_up_is_needed_and_so_is_what_that_took_up(store: Store):
    await family(store)
    await make(store, "r2", rerun=Rerun(run_id="r1.a"))
    await make(store, "r3", rerun=Rerun(run_id="r2"), end=False)
    await make(store, "r4", rerun=Rerun(run_id="r5"))
    await make(store, "r5")

    needed = await store.retention.find_needed_runs("default")
    fates = [each.fate for each in await prune(store, "r1", "r2", "r4", "r5", needed=needed)]

    assert {"r1.a", "r2"} <= needed
    assert fates == ["needed", "needed", "gone", "gone"]
    assert await store.retention.find_needed_runs("other") == NOBODY


@pytest.mark.requirement("retention.roots")
async def test_roots_are_listed_oldest_first_page_after_page_while_they_go(store: Store):
    for number in range(7):
        await make(store, f"r{number}", at=later(number), conversation_id=f"c{number}")
    await make(store, "open", end=False)
    await make(store, "nested", parent_run_id="r1")
    await make(store, "late", at=DAY)

    first = await store.retention.roots("default", ended_before=DAY, limit=3)
    await prune(store, *(root.run_id for root in first))
    second = await store.retention.roots("default", ended_before=DAY, after=first[-1], limit=3)
    third = await store.retention.roots("default", ended_before=DAY, after=second[-1], limit=3)

    assert [root.run_id for root in (*first, *second, *third)] == [f"r{number}" for number in range(7)]
    assert first[0] == ("r0", NOON, "c0", 1)
    assert list(await store.retention.roots("other", ended_before=DAY)) == []
    assert list(await store.retention.realms()) == ["default"]


@pytest.mark.requirement("retention.blobs")
async def test_a_blob_is_unnamed_only_if_nothing_that_is_kept_has_its_digest(store: Store):
    async def put(text: str) -> str:
        return await store.blobs.put(text.encode(), realm="default", made_by="owner")

    soon = later(10**9)
    event, request, value, free = [await put(text) for text in ("event", "request", "value", "free")]
    told = ProgressMade(key="k", kind="note", data={"url": f"blob:sha256:{event}"})
    await make(store, "r1", told)
    await make(store, "r2", input={"text": request})
    await store.cache.put("k", {"at": value}, realm="default", made_by="owner", expires_at=None)

    unnamed = await store.retention.unnamed_blobs(put_before=soon)

    assert list(unnamed) == [("default", free, 4)]
    await prune(store, "r1", "r2")
    assert {found for _, found, _ in await store.retention.unnamed_blobs(put_before=soon)} == {event, request, free}
    assert list(await store.retention.unnamed_blobs(put_before=NOON)) == []


@pytest.mark.requirement("retention.blobs")
async def test_a_signal_a_definition_and_a_conversation_name_blobs_too(store: Store):
    names = [await store.blobs.put(text, realm="default", made_by="owner") for text in (b"a", b"b", b"c", b"d")]
    await make(store, "r1")
    await store.journal.signal("r1", signal(output=names[0]))
    await store.definitions.save(definition(body={"text": names[1]}))
    said = Conversation(
        conversation_id="c1", realm="default", agent="a", principal="owner", created_at=NOON, updated_at=NOON,
        shared_context={"deep": [names[2]]}, summary=f"see {names[3]}.",
    )  # fmt: skip
    await store.conversations.add(said)

    assert list(await store.retention.unnamed_blobs(put_before=later(10**9))) == []


@pytest.mark.requirement("retention.blobs")
async def test_a_blob_that_was_put_since_is_not_removed(store: Store):
    name = await store.blobs.put(b"text", realm="default", made_by="owner")
    other = await store.blobs.put(b"text", realm="other", made_by="owner")

    assert list(await store.blobs.remove("default", [name], untouched_since=NOON)) == []
    assert await store.blobs.get("default", name) == b"text"

    gone = await store.blobs.remove("default", [name, digest(b"unknown")], untouched_since=later(10**9))
    assert list(gone) == [name]
    with pytest.raises(NotFound):
        await store.blobs.get("default", name)
    assert await store.blobs.get("other", other) == b"text"

    assert await store.blobs.put(b"text", realm="default", made_by="owner") == name
    assert await store.blobs.get("default", name) == b"text"


@pytest.mark.requirement("retention.conversations")
async def test_a_conversation_that_has_changed_since_it_was_read_is_not_removed(store: Store):
    said = Conversation(
        conversation_id="c1", realm="default", agent="a", principal="owner", created_at=NOON, updated_at=NOON
    )
    await store.conversations.add(said)
    await store.conversations.replace(said.model_copy(update={"revision": 2}))

    assert not await store.conversations.remove("default", "c1", revision=1)
    assert await store.conversations.remove("default", "c1", revision=2)
    assert not await store.conversations.remove("default", "c1", revision=2)


@pytest.mark.requirement("retention.record")
async def test_prunings_are_recorded_newest_first(store: Store):
    notes = [
        Pruning("default", later(number), "owner", NOON - timedelta(days=30), PrunedCounts(runs=number))
        for number in range(3)
    ]
    for note in notes:
        await store.retention.note(note)

    assert list(await store.retention.prunings("default", limit=2)) == [notes[2], notes[1]]
    assert list(await store.retention.prunings("other")) == []


@pytest.mark.requirement("retention.record")
async def test_who_asks_for_a_run_is_told_until_when_runs_were_pruned(store: Store):
    with pytest.raises(NotFound, match=r"no run r1; list the realm's runs to see their ids$"):
        await store.journal.run("r1")
    await store.retention.note(Pruning("default", DAY, "owner", NOON, PrunedCounts(runs=1)))
    await store.retention.note(Pruning("other", later(9), "owner", NOON - timedelta(days=1), PrunedCounts(runs=1)))

    for asked in (store.journal.run("r1"), store.journal.signal("r1", signal())):
        with pytest.raises(NotFound, match=r"no run r1; .* that ended before 2026-01-31 may have been pruned"):
            await asked


@pytest.mark.requirement("retention.families")
async def test_a_run_whose_id_was_pruned_can_be_made_anew(store: Store):
    await make(store, "r1")
    await prune(store, "r1")
    await make(store, "r1", end=False)

    await store.journal.append("r1", 1, [entry(2)])
    assert (await store.journal.run("r1")).events == 2


@pytest.mark.requirement("retention.compact")
async def test_a_store_that_was_compacted_has_what_it_had(store: Store):
    await make(store, "r1")
    await make(store, "r2")
    await prune(store, "r1")
    await store.retention.compact()
    await make(store, "r3")

    assert await left(store) == {"r2", "r3"}


@pytest.mark.requirement("retention.families")
async def test_a_transaction_ends_with_the_family_that_makes_it_large(store: Store):
    for run_id in ("r1", "r2", "r3"):
        await make(store, run_id, *(ProgressMade(key=f"k{number}", kind="note") for number in range(1200)))

    assert [each.run_ids for each in await prune(store, "r1", "r2", "r3")] == [("r1",), ("r2",)]
    assert [each.run_ids for each in await prune(store, "r3", dry_run=True)] == [("r3",)]
    assert await left(store) == {"r3"}

"""Runs with those that are nested in them, as the journal has them."""

import pytest

from tests.unit.store.samples import FIRST, NOON, new_run
from toolcrib.contracts import ChildStarted, Event, NotFound, RunEvent
from toolcrib.core.runs import read_tree
from toolcrib.infrastructure.store import Lease, MemoryStore, RunChange

OWNED = Lease("p1", NOON)


def child(position: str, run_id: str) -> ChildStarted:
    return ChildStarted(position=position, child_run_id=run_id, tool="look_up@1.0.0")


async def written(store: MemoryStore, run_id: str, *events: Event, change: RunChange | None = None) -> None:
    """A run with these events."""
    await store.journal.create(new_run(run_id, status="running", epoch=1), FIRST, lease=OWNED)
    log = [RunEvent(run_id, number, NOON, "default", "owner", event) for number, event in enumerate(events, start=2)]
    await store.journal.append(run_id, 1, log, change)


async def tree_of(store: MemoryStore, *, ended: bool = False) -> list[str]:
    return [branch.run.run_id for branch in await read_tree(store.journal, "root", ended=ended)]


@pytest.mark.requirement("handoff.nested")
async def test_a_run_comes_before_those_that_it_calls():
    store = MemoryStore()
    await written(store, "root", child("c1", "first"), child("c2", "second"))
    await written(store, "first", child("c1", "inner"))
    await written(store, "inner")
    await written(store, "second")

    assert await tree_of(store) == ["root", "first", "inner", "second"]


@pytest.mark.requirement("handoff.nested", "handoff.restart")
async def test_a_nested_run_that_was_only_announced_before_a_crash_is_passed_over():
    store = MemoryStore()
    await written(store, "root", child("c1", "never-created"))

    assert await tree_of(store) == ["root"]


@pytest.mark.requirement("handoff.nested")
async def test_nobody_waits_for_what_a_run_that_has_ended_had_called():
    store = MemoryStore()
    await written(store, "root", child("c1", "first"), change=RunChange("completed"))
    await written(store, "first")

    assert await tree_of(store) == ["root"]
    assert await tree_of(store, ended=True) == ["root", "first"]


@pytest.mark.requirement("outputs.standing")
async def test_a_run_that_never_was_has_no_tree():
    with pytest.raises(NotFound):
        await tree_of(MemoryStore())

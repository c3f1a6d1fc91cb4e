"""What is the memory store's own: it forgets."""

import pytest

from tests.unit.store.samples import entry, started
from toolcrib.contracts import NotFound
from toolcrib.infrastructure.store import MemoryStore, RunChange


@pytest.mark.requirement("store.bounded_memory")
async def test_the_runs_that_ended_first_are_forgotten_and_living_ones_kept():
    journal = MemoryStore(keep_ended=2).journal
    for number in range(5):
        await started(journal, f"r{number}")
    for run_id in ("r3", "r0", "r2", "r4"):
        await journal.append(run_id, 1, [entry(2, run_id)], RunChange("completed"))

    assert [run.run_id for run in await journal.runs("default")] == ["r4", "r2", "r1"]
    with pytest.raises(NotFound):
        await journal.run("r3")

"""The file of a SQLite store after pruning."""

from pathlib import Path

import pytest

from tests.unit.store.samples import FIRST, claimed, entry, later, new_run, opened
from toolcrib.contracts import RunResult
from toolcrib.infrastructure.store import RunChange

pytestmark = pytest.mark.requirement("retention.compact")


def size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.glob("crib.db*"))


async def test_the_space_of_what_is_gone_is_given_back_to_the_file_system(tmp_path: Path):
    async with opened("sqlite", tmp_path) as store:
        await store.journal.create(new_run(), FIRST)
        await claimed(store.journal)
        change = RunChange("completed", RunResult(run_id="r1", status="completed"))
        await store.journal.append("r1", 1, [entry(2, data="x" * 1_000_000)], change)
        await store.retention.prune(["r1"], untouched_since=later(9), needed=())
        before = size(tmp_path)
        await store.retention.compact()

        assert size(tmp_path) < before - 1_000_000

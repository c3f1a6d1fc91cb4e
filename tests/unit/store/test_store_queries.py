"""What queries cost a database, pages while others write, and the runs of older releases."""

import sqlite3
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, Self

import pytest
from sqlalchemy import Engine, event

from tests.unit.store.samples import FIRST, NOON, claimed, entry, later, new_run, opened_at
from toolcrib.contracts import ErrorCode, Run, RunResult, ToolError
from toolcrib.crib.tools.resources import RESOURCES, ResourceQuery, stored_page
from toolcrib.infrastructure.queries.grammar import Condition, Either, equal
from toolcrib.infrastructure.store import RunChange, Store
from toolcrib.infrastructure.store.database.schema import migrate
from toolcrib.infrastructure.store.database.sqlite import Sqlite
from toolcrib.infrastructure.store.ports.queried_fields import EVERYTHING

FEW: Final = 1_000
MANY: Final = 100_000
_MULTIPLIED: Final = """
    WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?)
    INSERT INTO runs ({names})
    SELECT {values} FROM runs, numbers WHERE run_id = 'r1'
"""
_STATUS: Final = "CASE n % 500 WHEN 0 THEN 'failed' ELSE 'completed' END"


def multiply(file: Path, count: int) -> None:
    """Make many runs of the one that a store has: one of 500 has failed, and each of ten principals has a tenth."""
    with closing(sqlite3.connect(file)) as connection:
        names: list[str] = [column[1] for column in connection.execute("PRAGMA table_info(runs)")]
        different = {
            "run_id": "printf('run_%06d', n)",
            "created_at": "created_at + n * 1000",
            "status": _STATUS,
            "made_by": "printf('user%d', n % 10)",
        }
        values = ", ".join(different.get(name, name) for name in names)
        connection.execute(_MULTIPLIED.format(names=", ".join(names), values=values), [count])
        connection.execute("ANALYZE")
        connection.commit()


class Steps:
    """Counts thousands of steps that SQLite's machine takes, on every connection that is made meanwhile."""

    def __init__(self) -> None:
        self.count = 0

    def __enter__(self) -> Self:
        event.listen(Engine, "connect", self._watch)
        return self

    def __exit__(self, *_: object) -> None:
        event.remove(Engine, "connect", self._watch)

    def _watch(self, connection: Any, record: object) -> None:
        del record
        connection.set_progress_handler(self._step, 1000)

    def _step(self) -> int:
        self.count += 1
        return 0


async def steps_of(file: Path, filter_text: str, where: Condition) -> int:
    """Thousands of steps for the first page of runs."""
    query = ResourceQuery[Run](RESOURCES["runs"], filter_text, None, now=NOON)
    with Steps() as steps:
        async with opened_at(f"sqlite:///{file}") as store:
            await stored_page(store.journal, "default", query, where, after=None, limit=1)
            before = steps.count
            page = await stored_page(store.journal, "default", query, where, after=None, limit=50)
            assert page.items
            return steps.count - before


@pytest.mark.requirement("queries.bounded")
async def test_the_first_of_very_many_runs_cost_what_the_first_of_a_few_cost(tmp_path: Path):
    own: Condition = Either((equal("made_by", "user7"),))
    asked = (("", EVERYTHING), ("status eq 'failed'", EVERYTHING), ("created_at gt 2026-01-01", own))
    costs: list[list[int]] = []
    for count in (FEW, MANY):
        file = tmp_path / str(count) / "crib.db"
        file.parent.mkdir()
        async with opened_at(f"sqlite:///{file}") as store:
            await queued(store, "r1")
        multiply(file, count)
        costs.append([await steps_of(file, text, where) for text, where in asked])

    few, many = costs
    assert all(large <= small + 2 for small, large in zip(few, many, strict=True)), costs


@pytest.mark.requirement("queries.migration")
async def test_runs_of_an_older_release_are_found_by_what_it_knew_of_them(tmp_path: Path):
    file = tmp_path / "crib.db"
    with closing(Sqlite(f"sqlite:///{file}").create()) as connection:
        connection.exec_driver_sql("BEGIN")
        migrate(connection, "0012")
        connection.commit()
    async with opened_at(f"sqlite:///{tmp_path}/newer.db") as store:
        await queued(store, "open")
        await queued(store, "ended")
        await claimed(store.journal, "ended")
        error = ToolError(code=ErrorCode.PROVIDER_ERROR, message="gone")
        result = RunResult(
            run_id="ended", status="failed", stop_reason="error", error=error, cost_usd=Decimal("0.5"), tokens=7
        )
        await store.journal.append("ended", 1, [entry(2, run_id="ended")], RunChange("failed", result))
    with closing(sqlite3.connect(file)) as copy:
        copy.execute("ATTACH ? AS newer", [str(tmp_path / "newer.db")])
        for table in ("runs", "events"):
            names = ", ".join(column[1] for column in copy.execute(f"PRAGMA main.table_info({table})"))
            copy.execute(f"INSERT INTO main.{table} ({names}) SELECT {names} FROM newer.{table}")
        copy.commit()

    async def found(filter_text: str) -> list[str]:
        async with opened_at(f"sqlite:///{file}") as store:
            query = ResourceQuery[Run](RESOURCES["runs"], filter_text, "run_id", now=NOON)
            page = await stored_page(store.journal, "default", query, EVERYTHING, after=None, limit=9)
            return [run.run_id for run in page.items]

    assert await found("cost_usd eq 0.5 and tokens eq 7 and error_code eq 'PROVIDER_ERROR'") == ["ended"]
    assert await found("cost_usd eq null and stop_reason eq null and tokens eq null") == ["open"]
    assert await found("kind eq 'agent' and text eq 'null' and not cost_unknown") == ["ended", "open"]


async def queued(store: Store, run_id: str, **fields: Any) -> None:
    await store.journal.create(new_run(run_id, **fields), FIRST)


@pytest.mark.requirement("queries.pages")
async def test_a_walk_over_a_filter_gives_each_run_once_while_others_are_added(store_url: str):
    query = ResourceQuery[Run](RESOURCES["runs"], "made_by eq 'owner'", None, now=NOON)
    found: list[str] = []
    async with opened_at(store_url) as store:
        for number in range(10):
            await queued(store, f"r{number}", created_at=later(number // 2), made_by="owner" if number % 3 else "other")
        after: str | None = None
        while True:
            page = await stored_page(store.journal, "default", query, EVERYTHING, after=after, limit=2)
            found += [run.run_id for run in page.items]
            await queued(store, f"new{len(found)}", created_at=later(100 + len(found)), made_by="owner")
            after = page.next
            if after is None:
                break

    assert found == ["r8", "r7", "r5", "r4", "r2", "r1"]

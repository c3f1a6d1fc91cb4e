"""Tools that write in the store's own database: their work commits with its record, so it is done once."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa

from toolcrib import Crib, ToolContext, tool
from toolcrib.contracts import Fenced, JsonObject, NotFound
from toolcrib.infrastructure.store import Doer
from toolcrib.infrastructure.store.sql.sql_store import SqlStore

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.requirement("effects.transactional")

INSERT = sa.text("INSERT INTO orders (item) VALUES (:item)")


def make_table(file: Path) -> None:
    engine = sa.create_engine(f"sqlite:///{file}")
    with engine.begin() as connection:
        connection.execute(sa.text("CREATE TABLE orders (item TEXT NOT NULL)"))
    engine.dispose()


def rows(file: Path) -> list[str]:
    engine = sa.create_engine(f"sqlite:///{file}")
    with engine.connect() as connection:
        found = list(connection.execute(sa.text("SELECT item FROM orders")).scalars())
    engine.dispose()
    return found


def order(item: str, then: "Callable[[sa.Connection], object]" = lambda connection: None):
    def work(connection: sa.Connection) -> JsonObject:
        connection.execute(INSERT, {"item": item})
        then(connection)
        return {"ordered": item}

    return work


@tool(side_effects="writes", transactional=True)
async def buy(item: str, ctx: ToolContext) -> JsonObject:
    """Order something."""
    await ctx.transact(order(item))
    return await ctx.transact(order(item))  # the same work of the same call: done once


async def test_the_work_of_a_call_is_done_once_and_its_result_is_known_from_then_on(tmp_path: Path):
    file = tmp_path / "crib.db"
    make_table(file)
    async with Crib(f"sqlite:///{file}") as crib:
        crib.add(buy)
        result = await crib.call("buy", {"item": "x"})

    assert result.output == {"ordered": "x"}
    assert rows(file) == ["x"]


async def test_a_tool_that_does_not_say_so_may_not(tmp_path: Path):
    @tool(side_effects="writes")
    async def sneak(ctx: ToolContext) -> JsonObject:
        """Try."""
        return await ctx.transact(order("x"))

    async with Crib(f"sqlite:///{tmp_path}/crib.db") as crib:
        crib.add(sneak)
        result = await crib.call("sneak", {})

    assert result.error is not None
    assert "say transactional=True" in result.error.message


async def test_a_store_in_memory_refuses():
    async with Crib("memory://") as crib:
        crib.add(buy)
        result = await crib.call("buy", {"item": "x"})

    assert result.error is not None
    assert "is not a database that tools can write to" in result.error.message


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM events",
        "SELECT * FROM sealed_values",
        "UPDATE runs SET epoch = 9",
        "DROP TABLE runs",
        "COMMIT",
        "ROLLBACK",
        "PRAGMA foreign_keys=0",
        "ATTACH DATABASE ':memory:' AS other",
    ],
)
async def test_work_reaches_neither_the_house_s_tables_nor_its_transaction(tmp_path: Path, statement: str):
    file = tmp_path / "crib.db"
    make_table(file)

    @tool(side_effects="writes", transactional=True)
    async def break_in(ctx: ToolContext) -> JsonObject:
        """Try."""
        return await ctx.transact(order("x", lambda connection: connection.execute(sa.text(statement))))

    async with Crib(f"sqlite:///{file}") as crib:
        crib.add(break_in, buy)
        refused = await crib.call("break_in", {})
        fine = await crib.call("buy", {"item": "y"})

    assert refused.error is not None
    assert (fine.output, rows(file)) == ({"ordered": "y"}, ["y"])


@pytest.mark.parametrize("end", ["commit", "rollback"])
async def test_work_that_would_end_the_transaction_is_refused_and_undone(tmp_path: Path, end: str):
    file = tmp_path / "crib.db"
    make_table(file)

    @tool(side_effects="writes", transactional=True)
    async def hurry(ctx: ToolContext) -> JsonObject:
        """Try."""
        return await ctx.transact(order("x", lambda connection: getattr(connection, end)()))

    async with Crib(f"sqlite:///{file}") as crib:
        crib.add(hurry, buy)
        refused = await crib.call("hurry", {})
        fine = await crib.call("buy", {"item": "y"})

    assert refused.error is not None
    assert (fine.output, rows(file)) == ({"ordered": "y"}, ["y"])


async def test_a_process_that_has_lost_the_run_writes_nothing(tmp_path: Path):
    file = tmp_path / "crib.db"
    make_table(file)
    async with Crib(f"sqlite:///{file}") as crib:
        crib.add(buy)
        run_id = (await crib.call("buy", {"item": "x"})).run_id
        store = crib.store
        assert isinstance(store, SqlStore)
        assert run_id is not None
        with pytest.raises(Fenced):
            await store.transactions.transact(Doer(run_id, 7, f"{run_id}/b", "ann"), order("z"))
        with pytest.raises(NotFound):
            await store.transactions.transact(Doer("run_none", 1, "run_none/b", "ann"), order("z"))

    assert rows(file) == ["x"]

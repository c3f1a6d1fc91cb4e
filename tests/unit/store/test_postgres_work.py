"""Work of tools in the transactions of a store on PostgreSQL: once, whatever dies, and in nobody else's way."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from tests.servers.postgres import PostgresServer
from tests.unit.store.buyer import LEASE_S, buy, buys
from tests.unit.store.samples import signal, started
from toolcrib import Crib, SharingOptions
from toolcrib.contracts import Fenced, Json, PermissionDenied
from toolcrib.infrastructure.store import Doer, open_store
from toolcrib.infrastructure.store.sql.sql_store import SqlStore

pytestmark = [pytest.mark.requirement("effects.transactional"), pytest.mark.slow]

Rows = Callable[[], list[str]]


@pytest.fixture
def rows(postgres: PostgresServer, postgres_store: str) -> Rows:
    """What was ordered, in a table of its own in the store's database."""
    name = postgres_store.rpartition("/")[2]
    with postgres.connect(name) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS purchases (number serial, item text NOT NULL)")

    def read() -> list[str]:
        with postgres.connect(name) as connection:
            return [item for (item,) in connection.execute("SELECT item FROM purchases ORDER BY number").fetchall()]

    return read


@pytest.fixture
async def stores(postgres_store: str, rows: Rows) -> AsyncIterator[tuple[SqlStore, SqlStore]]:
    """One database, as two processes have it open."""
    one, other = open_store(postgres_store), open_store(postgres_store)
    assert isinstance(one, SqlStore)
    assert isinstance(other, SqlStore)
    await one.open()
    await other.open()
    yield one, other
    await other.close()
    await one.close()


def doer(run_id: str = "r1", *, epoch: int = 1, position: str = "buy") -> Doer:
    return Doer(run_id, epoch, f"{run_id}/{position}", "ann")


@pytest.mark.chaos
async def test_what_a_process_did_that_died_before_it_could_say_so_is_not_done_again(postgres_store: str, rows: Rows):
    command = [sys.executable, "-c", f"from tests.unit.store.buyer import order; order({postgres_store!r})"]
    died = await asyncio.to_thread(subprocess.run, command, env={**os.environ, "BUYER_DIES": "1"}, check=False)
    assert (died.returncode, rows()) == (-9, ["x"])

    async with Crib(postgres_store, sharing=SharingOptions(lease_s=LEASE_S)) as crib:
        crib.add(buy)
        [run] = await crib.store.journal.runs("default")
        done = await crib.resume(run.run_id)

    [envelope] = done.envelopes
    assert (envelope.ok, envelope.attempts, rows()) == (True, 1, ["x"])


async def test_a_process_that_has_lost_the_run_writes_nothing(stores: tuple[SqlStore, SqlStore], rows: Rows):
    one, _ = stores
    await started(one.journal, "r1")
    with pytest.raises(Fenced):
        await one.transactions.transact(doer(epoch=0), buys("zombie"))

    assert rows() == []


async def test_work_that_fails_undoes_itself_and_nothing_that_is_committed_with_it(
    stores: tuple[SqlStore, SqlStore], rows: Rows
):
    one, _ = stores
    await started(one.journal, "r1")

    def breaks(connection: sa.Connection) -> Json:
        buys("never")(connection)
        return connection.execute(sa.text("SELECT 1 / 0")).scalar_one()

    found = await asyncio.gather(
        one.transactions.transact(doer(position="a"), buys("first")),
        one.transactions.transact(doer(position="b"), breaks),
        one.journal.signal("r1", signal("told")),
        one.transactions.transact(doer(position="c"), buys("last")),
        return_exceptions=True,
    )
    again = await one.transactions.transact(doer(position="b"), buys("second try"))

    assert isinstance(found[1], DBAPIError)
    assert [isinstance(each, dict) for each in (found[0], found[3], again)] == [True] * 3
    assert set(await one.journal.signals("r1")) == {"told", "effect:a", "effect:b", "effect:c"}
    assert rows() == ["first", "last", "second try"]


@pytest.mark.parametrize("statement", ["DELETE FROM events", "UPDATE runs SET epoch = 9"])
async def test_work_that_has_changed_rows_of_the_house_is_undone(
    stores: tuple[SqlStore, SqlStore], rows: Rows, statement: str
):
    one, other = stores
    await started(one.journal, "r1")
    before = await other.journal.events("r1")

    def breaks_in(connection: sa.Connection) -> Json:
        buys("x")(connection)
        return connection.execute(sa.text(statement)).rowcount

    with pytest.raises(PermissionDenied, match="has changed rows of"):
        await one.transactions.transact(doer(), breaks_in)

    assert (rows(), await other.journal.events("r1")) == ([], before)
    assert (await other.journal.run("r1")).epoch == 1
    assert await one.transactions.transact(doer(), buys("y"))


async def test_work_and_commits_of_others_on_the_same_runs_never_wait_for_each_other_for_ever(
    stores: tuple[SqlStore, SqlStore], rows: Rows
):
    for run_id in ("r1", "r2"):
        await started(stores[0].journal, run_id)

    async def busy(store: SqlStore, first: str, second: str, number: int) -> None:
        await asyncio.gather(
            store.transactions.transact(doer(first, position=f"{id(store)}.{number}"), buys(first)),
            store.journal.signal(second, signal(f"{id(store)}.{number}")),
            store.transactions.transact(doer(second, position=f"{id(store)}.{number}"), buys(second)),
            store.journal.signal(first, signal(f"{id(store)}.{number}.again")),
        )

    one, other = stores
    for number in range(20):
        await asyncio.gather(busy(one, "r1", "r2", number), busy(other, "r2", "r1", number))

    assert len(rows()) == 80

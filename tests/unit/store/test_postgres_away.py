"""A server that is stopped, killed, cut off or read-only: what is said, what is kept, and that nobody has to help."""

import asyncio
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from typing import Any

import psycopg
import pytest

from tests.servers.postgres import PASSWORD, PostgresServer, running_postgres
from tests.servers.proxy import Proxy, proxy_to
from tests.unit.store.samples import FIRST, NOON, claimed, entries, entry, later, new_run, opened_at, signal, started
from toolcrib.contracts import Conflict, Fenced, InvalidInput, Unavailable
from toolcrib.infrastructure.store import Store
from toolcrib.infrastructure.store.database import postgres as _postgres
from toolcrib.infrastructure.store.database.postgres import Postgres

pytestmark = [pytest.mark.slow]


@pytest.fixture(scope="module")
def fragile() -> Generator[PostgresServer]:
    """A server that these tests may stop."""
    with running_postgres() as server:
        yield server


@asynccontextmanager
async def behind_proxy(server: PostgresServer) -> AsyncGenerator[tuple[Store, Proxy]]:
    async with proxy_to(server.port) as proxy:
        database = server.database().rpartition("/")[2]
        async with opened_at(server.url(database, port=proxy.port)) as store:
            yield store, proxy


async def numbers(store: Store, run_id: str = "r1") -> list[int]:
    return [event.number for event in await store.journal.events(run_id)]


def cut_off_all(server: PostgresServer) -> None:
    with server.connect() as connection:
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'toolcrib'")


@pytest.mark.chaos
@pytest.mark.requirement("postgres.away", "postgres.secrets")
@pytest.mark.parametrize("how", ["fast", "immediate"])
async def test_a_server_that_is_stopped_is_named_and_found_again(fragile: PostgresServer, how: Any):
    async with opened_at(fragile.database()) as store:
        await started(store.journal)
        await store.journal.append("r1", 1, entries(2, 5))
        fragile.stop(how)
        for operation in (
            store.journal.append("r1", 1, [entry(6)]),
            store.journal.create(new_run("r2"), FIRST),
            store.journal.signal("r1", signal()),
            store.journal.run("r1"),
            store.cache.get("k", now=NOON),
        ):
            with pytest.raises(Unavailable, match=rf"made_\d+ at 127\.0\.0\.1:{fragile.port} failed") as away:
                await operation
            assert "owner" not in str(away.value)
            assert PASSWORD not in str(away.value)
        fragile.start()

        await store.journal.append("r1", 1, [entry(6)])
        assert await numbers(store) == list(range(1, 7))
        assert [run.run_id for run in await store.journal.runs("default")] == ["r1"]
        assert await store.journal.signals("r1") == {}


@pytest.mark.requirement("postgres.away")
async def test_connections_that_were_cut_while_nobody_used_them_are_not_missed(fragile: PostgresServer):
    async with opened_at(fragile.database()) as store:
        await started(store.journal)
        await store.journal.events("r1")
        cut_off_all(fragile)
        assert (await store.journal.run("r1")).epoch == 1
        await store.journal.append("r1", 1, [entry(2)])
        cut_off_all(fragile)
        assert [run.events for run in await store.journal.runs("default")] == [2]
        assert await numbers(store) == [1, 2]


@pytest.mark.requirement("postgres.away")
async def test_a_connection_that_is_cut_again_and_again_is_given_up(fragile: PostgresServer):
    async with behind_proxy(fragile) as (store, proxy):
        await started(store.journal)
        proxy.always = "before commit"
        with pytest.raises(Unavailable, match="it is unknown whether the last write succeeded"):
            await store.journal.append("r1", 1, [entry(2)])
        assert proxy.broken == 2
        proxy.always = None

        await store.journal.append("r1", 1, [entry(2)])
        assert await numbers(store) == [1, 2]


@pytest.mark.chaos
@pytest.mark.requirement("postgres.lost_answer")
@pytest.mark.parametrize("breaks", ["before commit", "after commit"])
async def test_a_commit_whose_answer_was_lost_takes_place_once(fragile: PostgresServer, breaks: Any):
    async with behind_proxy(fragile) as (store, proxy):
        await started(store.journal)
        proxy.breaks = breaks
        appended, created, left = await asyncio.gather(
            store.journal.append("r1", 1, entries(2, 4)),
            store.journal.create(new_run("r2"), FIRST),
            store.journal.signal("r1", signal()),
            return_exceptions=True,
        )

        assert (appended, created, left) == (None, None, True)
        assert proxy.broken == 1
        assert await numbers(store) == [1, 2, 3, 4]
        assert await numbers(store, "r2") == [1]
        await store.journal.append("r1", 1, [entry(5)])


@pytest.mark.chaos
@pytest.mark.requirement("postgres.lost_answer")
async def test_a_commit_of_which_nobody_knows_is_said_to_be_so_and_the_journal_decides(fragile: PostgresServer):
    async with proxy_to(fragile.port) as proxy:
        database = fragile.database().rpartition("/")[2]
        async with opened_at(fragile.url(database, port=proxy.port)) as store:
            await started(store.journal)
            proxy.breaks = "after commit"
            proxy.refuses = True
            with pytest.raises(Unavailable, match="it is unknown whether the last write succeeded"):
                await store.journal.append("r1", 1, [entry(2)])
            proxy.refuses = False

            claim = await claimed(store.journal, owner="p2", at=later(1000))
            assert [event.number for event in claim.events] == [1, 2]
            await store.journal.append("r1", 2, [entry(3)])


@pytest.mark.requirement("postgres.lost_answer")
async def test_a_transaction_that_a_server_has_not_heard_of_has_not_taken_place(fragile: PostgresServer):
    dialect = Postgres(fragile.database())
    with dialect.connect() as connection:
        cursor = connection.connection.cursor()
        assert not dialect.is_committed(cursor, str(2**40 + 5))


@pytest.mark.requirement("postgres.lost_answer")
async def test_a_transaction_that_does_not_end_is_not_waited_for_without_end(
    fragile: PostgresServer, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(_postgres, "_SETTLE_S", 0)
    dialect = Postgres(fragile.database())
    with dialect.connect() as connection, pytest.raises(Unavailable, match="it is unknown whether that will succeed"):
        dialect.is_committed(connection.connection.cursor(), "1")


@pytest.mark.requirement("postgres.lost_answer", "store.unheard_failures")
async def test_appends_that_nobody_awaits_break_their_run_and_no_other_when_the_server_goes(fragile: PostgresServer):
    async with opened_at(fragile.database()) as store:
        await started(store.journal, "r1")
        await started(store.journal, "r2")
        fragile.stop()
        store.journal.append("r1", 1, [entry(2)])
        with pytest.raises(Unavailable):
            await store.journal.append("r2", 1, [entry(2, "r2")])
        fragile.start()

        with pytest.raises(Unavailable):
            await store.journal.append("r1", 1, [entry(3)])
        assert await numbers(store, "r1") == [1]
        await store.journal.append("r2", 1, [entry(2, "r2")])


@pytest.mark.requirement("postgres.read_only")
async def test_a_server_that_takes_no_writes_is_left_until_it_does(fragile: PostgresServer):
    url = fragile.database()
    name = url.rpartition("/")[2]
    async with opened_at(url) as store:
        await started(store.journal)
        with fragile.connect() as connection:
            connection.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on".encode())
            cut_off_all(fragile)
            with pytest.raises(Unavailable, match="it is read-only"):
                await store.journal.append("r1", 1, [entry(2)])
            assert await numbers(store) == [1]
            connection.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only".encode())

        await store.journal.append("r1", 1, [entry(2)])


@pytest.mark.requirement("postgres.away")
async def test_a_row_that_another_keeps_locked_is_said_to_be_so(
    fragile: PostgresServer, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(_postgres, "_LOCK_S", 0.05)
    url = fragile.database()
    async with opened_at(url) as store:
        await started(store.journal)
        with psycopg.connect(url) as other:
            other.execute("SELECT * FROM runs FOR UPDATE")
            with pytest.raises(Unavailable, match="another process has kept it locked"):
                await store.journal.append("r1", 1, [entry(2)])

        await store.journal.append("r1", 1, [entry(2)])


@pytest.mark.requirement("postgres.away", "store.group_commit")
async def test_what_the_database_refuses_spoils_no_other_operation(postgres_store: str):
    async with opened_at(postgres_store) as store:
        bad, good, fenced = await asyncio.gather(
            store.cache.put("\0", {}, realm="default", made_by="owner", expires_at=None),
            store.journal.create(new_run(), FIRST),
            store.journal.append("r1", 7, [entry(2)]),
            return_exceptions=True,
        )

        assert isinstance(bad, InvalidInput)
        assert good is None
        assert isinstance(fenced, Fenced)
        with pytest.raises(Conflict):
            await store.journal.create(new_run(), FIRST)


@pytest.mark.requirement("postgres.secrets")
@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("postgresql://owner:wrong-word@127.0.0.1:PORT/postgres", "authentication failed"),
        ("postgresql://nobody-here:wrong-word@127.0.0.1:PORT/postgres", "authentication failed"),
        (f"postgresql://owner:{PASSWORD}@127.0.0.1:PORT/none", 'database "none" does not exist'),
    ],
)
async def test_who_is_not_let_in_learns_why_and_no_log_learns_who(postgres: PostgresServer, place: str, said: str):
    url = place.replace("PORT", str(postgres.port))

    with pytest.raises(Unavailable, match=said) as refused:
        async with opened_at(url):
            pass
    for secret in ("owner", "nobody-here", "wrong-word", PASSWORD):
        assert secret not in str(refused.value)


@pytest.mark.requirement("store.disk_full")
def test_a_full_disk_of_the_server_is_named():
    dialect = Postgres("postgresql://owner@db.example.com/crib")

    error = dialect.explain(psycopg.errors.DiskFull("could not extend file"))

    assert isinstance(error, Unavailable)
    assert str(error) == (
        "the store crib at db.example.com:5432 failed: could not extend file; its disk is full and nothing of this was "
        "written; free space, and try again"
    )

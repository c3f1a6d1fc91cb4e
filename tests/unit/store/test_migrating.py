"""Databases as older releases wrote them, brought to this one: on SQLite and on PostgreSQL.

`tests/contract/databases` has, for each schema revision that was released, all rows of a store that a release of that
revision wrote: a run that has ended, one that waits for a person, a single call, and one that nobody has begun.
"""

import asyncio
import json
import signal
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any, Final

import pytest
import sqlalchemy as sa

from tests.servers.postgres import PostgresServer
from toolcrib import Crib, ScriptedModel, tool
from toolcrib.contracts import Unavailable
from toolcrib.infrastructure.store import ApprovalFilter, Store, open_store
from toolcrib.infrastructure.store.database.dialect import Dialect
from toolcrib.infrastructure.store.database.postgres import Postgres
from toolcrib.infrastructure.store.database.schema import migrate
from toolcrib.infrastructure.store.database.sqlite import Sqlite
from toolcrib.infrastructure.store.database.tables import HEAD, STAMP

DATABASES: Final = Path(__file__).parents[2] / "contract" / "databases"
REVISIONS: Final = sorted(file.stem.removeprefix("r") for file in DATABASES.glob("r*.json"))
MODEL: Final = "scripted:m"


async def look(item: str) -> str:
    """Looks something up."""
    return f"{item} is here"


async def pay(item: str) -> str:
    """Pays for something."""
    return f"{item} is paid"


look.__module__ = pay.__module__ = "__main__"  # of the program that has written the stores
LOOK: Final = tool(side_effects="reads")(look)
PAY: Final = tool(side_effects="writes", requires_confirmation=True)(pay)


def document(revision: str) -> dict[str, Any]:
    return json.loads((DATABASES / f"r{revision}.json").read_text(encoding="utf-8"))


def dialect_of(url: str) -> Dialect:
    return Sqlite(url) if url.startswith("sqlite") else Postgres(url)


def write(url: str, revision: str, blobs: Path) -> dict[str, Any]:
    """Make a database as a release of this revision left it."""
    written = document(revision)
    with dialect_of(url).create() as connection:
        cursor = connection.connection.cursor()
        dialect_of(url).begin(cursor)
        migrate(connection, revision)
        for name, rows in written["tables"].items():
            table = sa.Table(name, sa.MetaData(), autoload_with=connection)
            if rows:
                connection.execute(sa.insert(table), rows)
        connection.connection.commit()
    for path, text in written["blobs"].items():
        (blobs / path).parent.mkdir(parents=True, exist_ok=True)
        (blobs / path).write_text(text, encoding="utf-8")
    return written


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database."""
    if request.param == "postgres":
        server: PostgresServer = request.getfixturevalue("postgres")
        return server.database()
    return f"sqlite:///{tmp_path}/crib.db"


def store_of(url: str, folder: Path) -> Store:
    return open_store(url, blobs=f"file://{folder}/blobs")


def stamp(url: str) -> str:
    with dialect_of(url).create() as connection:
        return connection.execute(sa.select(STAMP.c.version_num)).scalar_one()


def tables(url: str) -> set[str]:
    with dialect_of(url).create() as connection:
        return set(sa.inspect(connection).get_table_names())


@pytest.mark.requirement("migrations.forward")
@pytest.mark.parametrize("revision", REVISIONS)
async def test_every_row_of_an_older_release_is_read_and_its_runs_go_on(revision: str, url: str, tmp_path: Path):
    written = write(url, revision, tmp_path / "blobs")
    ids = {run["status"]: run["run_id"] for run in written["tables"]["runs"]}
    model = ScriptedModel(["It is paid."])

    async with Crib(store_of(url, tmp_path), models={MODEL: model}) as crib:
        crib.add(LOOK, PAY)
        journal = crib.store.journal
        for row in written["tables"]["runs"]:
            run = await journal.run(row["run_id"])
            assert (run.status, run.events) == (row["status"], row["last_event"])
            assert len(await journal.events(row["run_id"])) == row["last_event"]
        for row in written["tables"]["runs"]:
            if row["status"] == "completed":
                replayed = await crib.replay(row["run_id"])
                assert replayed.same or revision != REVISIONS[-1]  # older ones lack facts that are written by now
        [asked] = await crib.store.approvals.page("default", ApprovalFilter(status="waiting"))
        assert (asked.run_id, asked.tool) == (ids["awaiting_approval"], "pay")
        await crib.decide(asked.run_id, asked.position, approve=True)
        waited = await crib.resume(asked.run_id)
        begun = await crib.resume(ids["queued"])

    assert stamp(url) == HEAD
    assert (waited.output, begun.output) == ({"summary": "It is paid."}, "coat is here")


@pytest.mark.requirement("migrations.downgrade")
async def test_a_store_of_a_newer_release_is_refused_with_both_revisions_and_what_to_do(url: str, tmp_path: Path):
    write(url, REVISIONS[0], tmp_path / "blobs")
    with dialect_of(url).create() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '0999'")
        connection.connection.commit()
    before = tables(url)

    with pytest.raises(Unavailable, match=f"revision 0999.*up to {HEAD}.*install that release"):
        await store_of(url, tmp_path).open()
    assert tables(url) == before


_MIGRATES = """
import sys, time
from toolcrib.infrastructure.store.database.schema import migrate
from toolcrib.infrastructure.store.database.sqlite import Sqlite
from toolcrib.infrastructure.store.database.postgres import Postgres

url = sys.argv[1]
dialect = Sqlite(url) if url.startswith("sqlite") else Postgres(url)
connection = dialect.create()
dialect.begin(connection.connection.cursor())
migrate(connection)
print("migrated", flush=True)
sys.stdin.read()
"""


@pytest.mark.requirement("migrations.interrupted")
def test_a_migration_that_is_killed_leaves_the_old_schema_whole(url: str, tmp_path: Path):
    write(url, "0004", tmp_path / "blobs")
    before = tables(url)

    command = [sys.executable, "-c", _MIGRATES, url]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as migrating:
        assert migrating.stdout is not None
        assert migrating.stdout.readline() == b"migrated\n"
        migrating.send_signal(signal.SIGKILL)

    assert (stamp(url), tables(url)) == ("0004", before)
    asyncio.run(_open_and_close(store_of(url, tmp_path)))
    assert stamp(url) == HEAD


async def _open_and_close(*stores: Store) -> None:
    await asyncio.gather(*(store.open() for store in stores))
    await asyncio.gather(*(store.close() for store in stores))


_OPENS = """
import asyncio, sys
from toolcrib.infrastructure.store import open_store

async def main():
    store = open_store(sys.argv[1])
    await store.open()
    print(len(await store.journal.runs("default")))
    await store.close()

asyncio.run(main())
"""


@pytest.mark.requirement("migrations.together")
def test_several_processes_open_an_old_store_at_once(url: str, tmp_path: Path):
    write(url, "0001", tmp_path / "blobs")

    command = [sys.executable, "-W", "error", "-c", _OPENS, url]
    opening = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    done = [each.communicate() for each in opening]

    assert [out.strip() for out, _ in done] == ["4"] * 3, done
    assert stamp(url) == HEAD


@pytest.mark.requirement("migrations.bounded")
def test_a_large_store_is_migrated_without_having_it_in_memory(url: str, tmp_path: Path):
    write(url, "0001", tmp_path / "blobs")
    with dialect_of(url).create() as connection:
        dialect_of(url).begin(connection.connection.cursor())
        table = sa.Table("events", sa.MetaData(), autoload_with=connection)
        first = dict(connection.execute(sa.select(table).limit(1)).mappings().one())
        rows = [{**first, "number": number, "body": first["body"] + " " * 2000} for number in range(100, 20_100)]
        connection.execute(sa.insert(table), rows)
        connection.connection.commit()
    del rows

    asyncio.run(_open_and_close(store_of(url, tmp_path)))  # what is loaded once is loaded
    with dialect_of(url).create() as connection:
        connection.exec_driver_sql("DROP TABLE approvals")
        connection.connection.commit()
    tracemalloc.start()
    try:
        with dialect_of(url).create() as connection:
            dialect_of(url).begin(connection.connection.cursor())
            migrate(connection, HEAD)
            connection.connection.rollback()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak < 10 * 2**20

"""The tables on PostgreSQL: made at once or migrated, by one of many processes, in the schema that the URL names."""

import asyncio
import sys
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any
from urllib.parse import quote

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from tests.servers.postgres import PostgresServer
from tests.unit.store.samples import NOON, definition, opened_at
from toolcrib.contracts import InvalidSettings, Unavailable
from toolcrib.infrastructure.store import open_store
from toolcrib.infrastructure.store.database import schema
from toolcrib.infrastructure.store.database.postgres import Postgres
from toolcrib.infrastructure.store.database.schema import bring_up_to_date, migrate
from toolcrib.infrastructure.store.database.session import Session
from toolcrib.infrastructure.store.database.tables import HEAD, METADATA

pytestmark = [pytest.mark.requirement("postgres.migrations"), pytest.mark.slow]

OLDER = [f"{number:04}" for number in range(1, int(HEAD))]
COLUMNS = """
    SELECT table_name, column_name, data_type, is_nullable, column_default, collation_name
    FROM information_schema.columns WHERE table_schema = current_schema() ORDER BY 1, 2
"""
INDEXES = "SELECT tablename, indexdef FROM pg_indexes WHERE schemaname = current_schema() ORDER BY 1, 2"
KEYS = """
    SELECT conrelid::regclass::text, pg_get_constraintdef(oid) FROM pg_constraint
    WHERE connamespace = current_schema()::regnamespace ORDER BY 1, 2
"""
OpenSession = Callable[[str], Session]


@pytest.fixture
def session_at() -> Generator[OpenSession]:
    sessions: list[Session] = []

    def new(url: str) -> Session:
        dialect = Postgres(url)
        sessions.append(Session(dialect.create(), dialect, {}))
        return sessions[-1]

    yield new
    for session in sessions:
        session.close()


def described(session: Session) -> set[Any]:
    rows = (row for question in (COLUMNS, INDEXES, KEYS) for row in session.connection.exec_driver_sql(question))
    return {row for row in rows if row[0] != "alembic_version"}  # Alembic gives the key of its table a name of its own


def migrated(session: Session, revision: str) -> Session:
    session.begin()
    migrate(session.connection, revision)
    session.commit()
    return session


@pytest.mark.parametrize("revision", OLDER)
def test_every_released_revision_is_migrated_to_the_tables_of_the_code(
    postgres: PostgresServer, session_at: OpenSession, revision: str
):
    older, new = migrated(session_at(postgres.database()), revision), session_at(postgres.database())
    bring_up_to_date(older, "older")
    bring_up_to_date(new, "new")

    assert described(older) ^ described(new) == set()
    context = MigrationContext.configure(older.connection, opts={"compare_type": True})
    assert compare_metadata(context, METADATA) == []


def test_what_an_older_release_wrote_is_kept(postgres: PostgresServer, session_at: OpenSession):
    session = migrated(session_at(postgres.database()), "0001")
    key = "'k1', 'default', 'owner', 'hmac', 'wxyz', 'owner', 0, NULL"
    session.connection.exec_driver_sql(f"INSERT INTO api_keys VALUES ({key})")
    bring_up_to_date(session, "crib")

    assert session.connection.exec_driver_sql("SELECT key_id, scopes FROM api_keys").all() == [("k1", '["ai://*"]')]


@pytest.mark.parametrize("revision", ["", "0003"])
def test_processes_that_start_at_once_make_one_schema(postgres: PostgresServer, session_at: OpenSession, revision: str):
    url = postgres.database()
    if revision:
        migrated(session_at(url), revision)

    def start(_: int) -> str:
        with closing(session_at(url)) as session:
            bring_up_to_date(session, "crib")
            return session.connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar_one()

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(start, range(4))) == [HEAD] * 4


async def test_a_database_of_a_newer_release_is_left_alone(postgres: PostgresServer):
    url = postgres.database()
    async with opened_at(url):
        pass
    with postgres.connect(url.rpartition("/")[2]) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '0999'")

    with pytest.raises(Unavailable, match=rf"store made_\d+ at 127.* revision 0999.*up to {HEAD}.*newer release"):
        async with opened_at(url):
            pass


async def test_tables_of_somebody_else_are_left_alone(postgres: PostgresServer):
    url = postgres.database()
    with postgres.connect(url.rpartition("/")[2]) as connection:
        connection.execute("CREATE TABLE runs (marathon TEXT)")

    with pytest.raises(Unavailable, match="table 'runs' but no schema revision"):
        async with opened_at(url):
            pass


@pytest.mark.requirement("postgres.url")
async def test_the_url_names_the_schema_in_which_the_tables_are(postgres: PostgresServer):
    url = postgres.database()
    with postgres.connect(url.rpartition("/")[2]) as connection:
        connection.execute("CREATE SCHEMA one")
        connection.execute("CREATE SCHEMA two")
    one, two = (f"{url}?options={quote(f'-c search_path={name}')}" for name in ("one", "two"))

    async with opened_at(one) as first, opened_at(two) as second:
        await first.definitions.save(definition())
        assert await first.definitions.changes("default") == 1
        assert await second.definitions.changes("default") == 0
        assert await first.api_keys.count() == 0


@pytest.mark.requirement("postgres.url")
@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ("sslmode=require", "server does not support SSL"),
        ("options=-c%20search_path%3Dnone", "no schema has been selected"),
    ],
)
async def test_parameters_of_the_url_reach_the_server(postgres: PostgresServer, parameters: str, said: str):
    with pytest.raises(Unavailable, match=said):
        async with opened_at(f"{postgres.database()}?{parameters}"):
            pass


@pytest.mark.requirement("postgres.url")
async def test_of_several_hosts_the_one_is_found_that_takes_writes(postgres: PostgresServer):
    url = postgres.database()
    nobody = "127.0.0.1:1"
    several = url.replace("@", f"@{nobody},") + "?target_session_attrs=read-write"

    async with opened_at(several) as store:
        assert await store.api_keys.count() == 0


@pytest.mark.requirement("postgres.url", "postgres.secrets")
@pytest.mark.parametrize(
    "url",
    [
        "postgresql://",
        "postgresql://owner:sword@fish@host/crib",
        "postgresql://owner:swordfish@host",
        "postgres://owner:swordfish@host/crib?colour=green",
    ],
)
def test_a_url_that_cannot_be_read_is_not_repeated(url: str):
    with pytest.raises(InvalidSettings, match="PostgreSQL URL cannot be read; use postgresql://") as refused:
        open_store(url)
    assert "fish" not in str(refused.value)


@pytest.mark.requirement("postgres.url")
def test_without_the_driver_the_extra_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    monkeypatch.delitem(sys.modules, "toolcrib.infrastructure.store.database.postgres")

    with pytest.raises(Unavailable, match=r"needs 'psycopg', .*: pip install 'toolcrib\[postgres\]'"):
        open_store("postgresql://owner@host/crib")


@pytest.mark.requirement("postgres.url")
async def test_a_process_takes_one_connection_to_write_and_two_to_read(postgres: PostgresServer, postgres_store: str):
    async with opened_at(postgres_store) as store:
        await asyncio.gather(*(store.cache.get(f"k{number}", now=NOON) for number in range(50)))
        with postgres.connect() as connection:
            database = postgres_store.rpartition("/")[2]
            (count,) = connection.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = %s AND application_name = 'toolcrib'", [database]
            ).fetchone() or (0,)
        assert 2 <= count <= 3


async def test_a_connection_that_is_lost_while_the_tables_are_made_is_said_to_be_so(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
):
    def lose(connection: sa.Connection, store: str) -> None:
        del store
        connection.exec_driver_sql("SELECT pg_terminate_backend(pg_backend_pid())")

    url = postgres.database()
    with monkeypatch.context() as patch:
        patch.setattr(schema, "_upgrade", lose)
        with pytest.raises(Unavailable, match="check that the server runs"):
            await open_store(url).open()
    async with opened_at(url) as store:
        assert (await store.definitions.save(definition())).revision == 1

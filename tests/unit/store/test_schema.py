"""Schema revisions: the migrations lead to the tables of the code, and nothing newer is touched."""

import sqlite3
from collections.abc import Generator, Iterator
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from tests.unit.store.samples import opened
from toolcrib.contracts import Unavailable
from toolcrib.infrastructure.store.database.schema import MIGRATIONS, bring_up_to_date, migrate
from toolcrib.infrastructure.store.database.session import Session
from toolcrib.infrastructure.store.database.sqlite import Sqlite
from toolcrib.infrastructure.store.database.tables import HEAD, METADATA, STAMP

pytestmark = pytest.mark.requirement("store.schema")


def new_file(file: Path) -> Session:
    dialect = Sqlite(f"sqlite:///{file}")
    return Session(dialect.create(), dialect, {})


@pytest.fixture
def migrated(tmp_path: Path) -> Generator[sa.Connection]:
    with closing(new_file(tmp_path / "migrated.db")) as session:
        connection = session.connection
        connection.exec_driver_sql("BEGIN")
        migrate(connection)
        connection.commit()
        yield connection


@pytest.fixture
def created(tmp_path: Path) -> Generator[sa.Connection]:
    with closing(new_file(tmp_path / "created.db")) as session:
        connection = session.connection
        bring_up_to_date(session, "crib")
        yield connection


def keys(connection: sa.Connection, table: str) -> Iterator[tuple[object, ...]]:
    """Uniqueness, origin, partiality and columns of each index, without the names that SQLite gives some of them."""
    for _, name, *kind in connection.exec_driver_sql(f"PRAGMA index_list({table})").fetchall():
        columns = connection.exec_driver_sql(f"PRAGMA index_info({name})").fetchall()
        yield (*kind, *(column for _, _, column in columns))


def described(connection: sa.Connection) -> dict[str, object]:
    rows = connection.exec_driver_sql("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    indexes = {name: " ".join(sql.split()).replace('"', "") for name, sql in rows if sql.startswith("CREATE INDEX")}
    tables = {
        table: (
            connection.exec_driver_sql(f"PRAGMA table_xinfo({table})").fetchall(),
            connection.exec_driver_sql(f"PRAGMA foreign_key_list({table})").fetchall(),
            sorted(keys(connection, table)),
        )
        for table in METADATA.tables
        if table != STAMP.name
    }
    return {"tables": tables, "indexes": indexes}


def test_the_code_knows_the_newest_revision():
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.set_main_option("path_separator", "os")
    config.set_main_option("recursive_version_locations", "true")

    assert ScriptDirectory.from_config(config).get_current_head() == HEAD


def test_the_migrations_make_the_tables_of_the_code(migrated: sa.Connection, created: sa.Connection):
    assert described(migrated) == described(created)
    context = MigrationContext.configure(migrated, opts={"compare_type": True})
    assert compare_metadata(context, METADATA) == []


def test_a_database_of_an_older_revision_is_migrated(tmp_path: Path):
    with closing(new_file(tmp_path / "crib.db")) as session:
        connection = session.connection
        STAMP.create(connection)
        connection.commit()
        bring_up_to_date(session, "crib")

        assert connection.execute(sa.select(STAMP)).scalar_one() == HEAD


def test_what_an_older_release_wrote_is_kept(tmp_path: Path):
    with closing(new_file(tmp_path / "crib.db")) as session:
        connection = session.connection
        connection.exec_driver_sql("BEGIN")
        migrate(connection, "0001")
        connection.exec_driver_sql(
            "INSERT INTO api_keys VALUES ('k1', 'default', 'owner', 'hmac', 'wxyz', 'owner', 0, NULL)"
        )
        row = "'tool', 'search', 1, '1.0.0', 'sha256:1', '{}', 'owner', 0, 'active', NULL, NULL, NULL, 0, 1"
        connection.exec_driver_sql(f"INSERT INTO definitions VALUES ('default', {row})")
        connection.commit()
        bring_up_to_date(session, "crib")

        assert connection.exec_driver_sql("SELECT key_id, scopes FROM api_keys").all() == [("k1", '["ai://*"]')]
        assert connection.exec_driver_sql("SELECT name, revision, change FROM definitions").all() == [("search", 1, 0)]


def test_the_runs_of_one_tool_are_read_in_order_from_an_index(created: sa.Connection):
    page = "SELECT * FROM runs WHERE realm = 'acme' AND tool = 'deals' ORDER BY created_at DESC, run_id DESC LIMIT 50"
    steps = [row[3] for row in created.exec_driver_sql(f"EXPLAIN QUERY PLAN {page}")]

    assert steps == ["SEARCH runs USING INDEX runs_by_tool (realm=? AND tool=?)"]


async def test_a_database_of_a_newer_release_is_left_alone(tmp_path: Path):
    async with opened("sqlite", tmp_path):
        pass
    with closing(sqlite3.connect(tmp_path / "crib.db")) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '0999'")
        connection.commit()

    with pytest.raises(Unavailable, match=f"revision 0999.*up to {HEAD}.*newer release"):
        async with opened("sqlite", tmp_path):
            pass


async def test_tables_of_somebody_else_are_left_alone(tmp_path: Path):
    with closing(sqlite3.connect(tmp_path / "crib.db")) as connection:
        connection.execute("CREATE TABLE runs (marathon TEXT)")
        connection.commit()

    with pytest.raises(Unavailable, match="table 'runs' but no schema revision"):
        async with opened("sqlite", tmp_path):
            pass
    with closing(sqlite3.connect(tmp_path / "crib.db")) as connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("runs",)]


async def test_a_stamp_of_somebody_else_is_reported(tmp_path: Path):
    with closing(sqlite3.connect(tmp_path / "crib.db")) as connection:
        connection.execute("CREATE TABLE alembic_version (colour TEXT)")
        connection.commit()

    with pytest.raises(Unavailable, match=r"crib\.db failed: no such column"):
        async with opened("sqlite", tmp_path):
            pass


async def test_every_row_has_a_realm_and_who_made_it():
    owned = [table for table in METADATA.tables.values() if table is not STAMP]

    assert [table.name for table in owned if not {"realm", "made_by"} <= set(table.c.keys())] == []

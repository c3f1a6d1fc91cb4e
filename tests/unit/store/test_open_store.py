"""From URLs to stores, and what cannot be opened."""

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.unit.store.samples import NOON, opened
from toolcrib.contracts import InvalidSettings, Unavailable
from toolcrib.infrastructure.store import MemoryStore, open_store
from toolcrib.infrastructure.store.sql.sql_store import SqlStore


@pytest.mark.requirement("store.opening")
def test_a_url_names_the_store():
    assert isinstance(open_store("memory://"), MemoryStore)
    assert isinstance(open_store("sqlite:///crib.db"), SqlStore)


@pytest.mark.requirement("store.opening")
async def test_a_path_is_relative_to_the_working_directory_and_blobs_lie_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    store = open_store("sqlite:///crib.db")
    await store.open()
    await store.blobs.put(b"{}", realm="default", made_by="owner")
    monkeypatch.chdir("/")
    assert await store.api_keys.count() == 0
    await store.close()

    assert [name for name in ("crib.db", "crib-blobs") if not (tmp_path / name).exists()] == []


@pytest.mark.requirement("store.opening")
@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///", "sqlite:///:memory:", "sqlite://crib.db"])
def test_a_sqlite_url_without_a_file_is_refused_in_favour_of_memory(url: str):
    with pytest.raises(InvalidSettings, match="memory://"):
        open_store(url)


@pytest.mark.requirement("store.opening")
@pytest.mark.parametrize(
    "url",
    [
        "mysql://user:secret@host/db",
        "postgresql:/user:secret@host/db",
        "user:secret@host/db?endpoint=https://host",
        "crib.db",
        "",
        "memory://x",
    ],
)
def test_an_unknown_url_is_refused_without_repeating_its_password(url: str):
    with pytest.raises(InvalidSettings, match="use memory:// or sqlite:///") as refused:
        open_store(url)
    assert "secret" not in str(refused.value)


@pytest.mark.requirement("store.opening")
async def test_a_store_that_is_not_open_is_unavailable(tmp_path: Path):
    store = open_store(f"sqlite:///{tmp_path}/crib.db")

    with pytest.raises(Unavailable, match="call open"):
        await store.cache.get("k", now=NOON)


@pytest.mark.requirement("store.opening_errors")
async def test_a_missing_folder_is_named(tmp_path: Path):
    with pytest.raises(Unavailable, match=f"the folder {tmp_path}/none does not exist"):
        await open_store(f"sqlite:///{tmp_path}/none/crib.db").open()


@pytest.mark.requirement("store.opening_errors")
async def test_a_file_that_is_no_database_is_named_and_left_alone(tmp_path: Path):
    file = tmp_path / "crib.db"
    file.write_text("a letter to my aunt, long enough to be read as a header of a database file" * 20)
    before = file.read_bytes()

    with pytest.raises(Unavailable, match=r"crib\.db failed: file is not a database"):
        await open_store(f"sqlite:///{file}").open()
    assert file.read_bytes() == before


@pytest.mark.requirement("store.opening_errors")
async def test_a_file_that_cannot_be_made_is_named():
    with pytest.raises(Unavailable, match=r"/proc/crib\.db failed: unable to open database file"):
        await open_store("sqlite:////proc/crib.db").open()


@pytest.mark.requirement("store.opening_errors")
async def test_a_folder_in_the_place_of_the_file_is_named(tmp_path: Path):
    (tmp_path / "crib.db").mkdir()

    with pytest.raises(Unavailable, match=r"crib\.db failed: unable to open database file"):
        await open_store(f"sqlite:///{tmp_path}/crib.db").open()


@pytest.mark.requirement("store.opening_errors")
async def test_a_failed_open_can_be_tried_again(tmp_path: Path):
    store = open_store(f"sqlite:///{tmp_path}/later/crib.db")
    with pytest.raises(Unavailable):
        await store.open()
    (tmp_path / "later").mkdir()

    await store.open()
    assert await store.api_keys.count() == 0
    await store.close()


@pytest.mark.requirement("store.opening_errors")
async def test_a_store_that_breaks_while_it_is_open_is_unavailable(tmp_path: Path):
    async with opened("sqlite", tmp_path) as store:
        with closing(sqlite3.connect(tmp_path / "crib.db")) as connection:
            connection.execute("DROP TABLE cache")
            connection.commit()

        with pytest.raises(Unavailable, match="no such table"):
            await store.cache.get("k", now=NOON)
        with pytest.raises(Unavailable, match="no such table"):
            await store.cache.put("k", {}, realm="default", made_by="owner", expires_at=None)
        assert await store.api_keys.count() == 0


PROGRAM = """
import asyncio, json, sys
from toolcrib.infrastructure.store import open_store

def loaded():
    return sorted({name.partition(".")[0] for name in sys.modules} & {"alembic", "obstore", "psycopg", "sqlalchemy"})

async def main():
    seen = [loaded()]
    for _ in range(2):
        store = open_store(sys.argv[1])
        await store.open()
        await store.close()
        seen.append(loaded())
    print(json.dumps(seen))

asyncio.run(main())
"""


@pytest.mark.requirement("store.light_import")
@pytest.mark.parametrize(("url", "needed"), [("memory://", []), ("sqlite:///crib.db", ["sqlalchemy"])])
def test_a_store_loads_only_what_it_needs(tmp_path: Path, url: str, needed: list[str]):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, url], capture_output=True, text=True, check=True, cwd=tmp_path
    )

    assert json.loads(done.stdout) == [[], needed, needed]


@pytest.mark.requirement("store.light_import", "postgres.url")
def test_a_store_on_postgresql_loads_its_driver_and_no_migrations(postgres_store: str):
    done = subprocess.run([sys.executable, "-c", PROGRAM, postgres_store], capture_output=True, text=True, check=True)

    assert json.loads(done.stdout) == [[], ["psycopg", "sqlalchemy"], ["psycopg", "sqlalchemy"]]


@pytest.mark.requirement("store.private_files")
async def test_only_the_owner_reads_what_a_store_keeps(tmp_path: Path):
    store = open_store(f"sqlite:///{tmp_path / 'crib.db'}")
    await store.open()
    await store.blobs.put(b"{}", realm="default", made_by="owner")
    modes = _modes(tmp_path)
    await store.close()

    assert modes.pop("crib-blobs") == 0o700
    assert set(modes.values()) == {0o600}


@pytest.mark.requirement("store.private_files")
async def test_a_store_that_is_there_keeps_the_mode_that_it_has(tmp_path: Path):
    file = tmp_path / "crib.db"
    store = open_store(f"sqlite:///{file}")
    await store.open()
    await store.close()
    file.chmod(0o640)
    await store.open()
    await store.close()
    assert file.stat().st_mode & 0o777 == 0o640


def _modes(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()}

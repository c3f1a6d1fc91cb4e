"""A file that is full, cannot be written, was removed or replaced: what is said, and that work goes on afterwards."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.store.samples import NOON, entries, entry, opened_at, started
from toolcrib.contracts import Unavailable
from toolcrib.infrastructure.store.blobs.files import FolderObjects
from toolcrib.infrastructure.store.database.database import Database
from toolcrib.infrastructure.store.database.session import Session
from toolcrib.infrastructure.store.database.sqlite import Sqlite
from toolcrib.infrastructure.store.sql.sql_store import SqlStore


class Limited(SqlStore):
    """A store whose file may be bounded."""

    def __init__(self, folder: Path) -> None:
        dialect = Sqlite(f"sqlite:///{folder}/crib.db")
        super().__init__(dialect, blobs=FolderObjects(folder))

    async def bound(self, pages: int) -> None:
        def work(session: Session) -> None:
            session.connection.exec_driver_sql(f"PRAGMA max_page_count={pages}").scalar()

        await self._database.write(work)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncGenerator[Limited]:
    limited = Limited(tmp_path)
    await limited.open()
    yield limited
    await limited.close()


@pytest.mark.requirement("store.disk_full")
async def test_a_full_disk_is_named_nothing_is_written_half_and_work_goes_on_when_there_is_room(store: Limited):
    await started(store.journal)
    await store.bound(1)  # the file may not grow
    large = [entry(number, data="x" * 9000) for number in range(2, 40)]

    with pytest.raises(Unavailable, match="disk is full; nothing of this was written; free space") as full:
        await store.journal.append("r1", 1, large)
    assert "crib.db" in str(full.value)
    assert [event.number for event in await store.journal.events("r1")] == [1]
    assert (await store.journal.run("r1")).events == 1

    await store.bound(2**30)
    await store.journal.append("r1", 1, large)
    assert [event.number for event in await store.journal.events("r1")] == list(range(1, 40))


@pytest.mark.requirement("store.disk_full", "store.group_commit")
async def test_who_finds_room_on_a_full_disk_is_served(store: Limited):
    await started(store.journal)
    await store.bound(1)
    large = store.cache.put("k", {"text": "x" * 300_000}, realm="default", made_by="owner", expires_at=None)
    small = store.journal.append("r1", 1, [entry(2)])

    with pytest.raises(Unavailable):
        await large
    await small


@pytest.mark.requirement("store.removed_file")
@pytest.mark.parametrize("again", ["put back", "another"])
async def test_a_file_that_is_gone_is_not_written_to_and_found_when_it_is_back(
    store: Limited, tmp_path: Path, again: str
):
    file, aside = tmp_path / "crib.db", tmp_path / "aside.db"
    await started(store.journal)
    assert await store.api_keys.count() == 0
    await store.close()
    copy = file.read_bytes()
    await store.open()
    file.rename(aside)
    for operation in (store.journal.append("r1", 1, [entry(2)]), store.journal.events("r1")):
        with pytest.raises(Unavailable, match=r"crib\.db was removed while in use"):
            await operation
    assert not file.exists()

    if again == "put back":
        aside.rename(file)
    else:
        for name in ("crib.db-wal", "crib.db-shm"):
            (tmp_path / name).unlink(missing_ok=True)
        file.write_bytes(copy)
    await store.journal.append("r1", 1, entries(2, 3))
    async with opened_at(f"sqlite:///{file}") as other:
        assert [event.number for event in await other.journal.events("r1")] == [1, 2, 3]


@pytest.mark.requirement("store.opening_errors")
async def test_a_file_that_may_not_be_written_is_named(store: Limited):
    def forbid(session: Session) -> None:
        session.connection.exec_driver_sql("PRAGMA query_only=ON")

    writing: Any = store
    database: Database = writing._database
    await database.write(forbid)

    with pytest.raises(Unavailable, match="readonly database; nothing of this was written; make file and folder"):
        await store.cache.put("k", {}, realm="default", made_by="owner", expires_at=None)
    assert await store.cache.get("k", now=NOON) is None


@pytest.mark.requirement("store.empty_file")
async def test_an_empty_file_is_not_a_store(tmp_path: Path):
    (tmp_path / "crib.db").touch()
    with pytest.raises(Unavailable, match=r"crib\.db: the file is empty; remove it"):
        await Limited(tmp_path).open()
    assert (tmp_path / "crib.db").stat().st_size == 0

    (tmp_path / "crib.db").unlink()
    async with opened_at(f"sqlite:///{tmp_path}/crib.db") as store:
        await started(store.journal)


@pytest.mark.requirement("store.empty_file")
async def test_a_file_that_another_process_is_just_creating_is_waited_for(tmp_path: Path):
    file = tmp_path / "crib.db"
    async with opened_at(f"sqlite:///{tmp_path}/other.db"):
        pass
    file.touch()
    opening = asyncio.create_task(asyncio.to_thread(Sqlite(f"sqlite:///{file}").create))
    await asyncio.sleep(0.05)
    file.write_bytes((tmp_path / "other.db").read_bytes())
    (await opening).close()

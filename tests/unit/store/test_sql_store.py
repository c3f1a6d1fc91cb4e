"""What is the SQL store's own: shared commits, blobs as files, and failures inside a commit."""

import asyncio
import gc
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa

from tests.unit.store.samples import FIRST, NOON, REQUEST, definition, entries, entry, later, new_run, opened, started
from toolcrib.contracts import (
    ApprovalRequested,
    Conflict,
    Fenced,
    InvalidInput,
    NotFound,
    RunEvent,
    RunStarted,
    Unavailable,
    digest,
)
from toolcrib.infrastructure.store import Store
from toolcrib.infrastructure.store.database import sqlite
from toolcrib.infrastructure.store.database.database import Database
from toolcrib.infrastructure.store.database.session import Session
from toolcrib.infrastructure.store.database.sqlite import Sqlite
from toolcrib.infrastructure.store.database.tables import STAMP
from toolcrib.infrastructure.store.sql import blobs


@pytest.fixture
async def store(tmp_path: Path) -> AsyncGenerator[Store]:
    async with opened("sqlite", tmp_path) as opened_store:
        yield opened_store


def transactions(folder: Path) -> int:
    """How many frames of the write-ahead log end a commit (bytes 4..8 of a frame's header are not 0)."""
    log = (folder / "crib.db-wal").read_bytes()
    page = int.from_bytes(log[8:12], "big")
    salt = log[16:24]
    heads = (log[at : at + 24] for at in range(32, len(log), 24 + page))
    return sum(1 for head in heads if head[8:16] == salt and head[4:8] != bytes(4))


@pytest.mark.requirement("store.group_commit")
async def test_many_runs_share_their_commits(store: Store, tmp_path: Path):
    async def run(run_id: str) -> None:
        await started(store.journal, run_id)
        store.journal.append(run_id, 1, entries(2, 3, run_id))
        await store.journal.append(run_id, 1, entries(4, 5, run_id))

    before = transactions(tmp_path)
    await asyncio.gather(*(run(f"r{number}") for number in range(20)))

    assert transactions(tmp_path) - before == 3
    for number in range(20):
        assert len(await store.journal.events(f"r{number}")) == 5


@pytest.mark.requirement("store.encoded_once")
async def test_each_table_that_keeps_an_event_has_the_same_json(store: Store, tmp_path: Path):
    asks = ApprovalRequested(
        position="t1.c1",
        call_id="c1",
        name="send",
        version="1.0.0",
        input={"to": "Zoë", "amount": 1.50},
        arguments_hash="sha256:1",
        content_hash="sha256:2",
        side_effects="writes",
        message="Send it?",
    )
    other = RunStarted(request=REQUEST.model_copy(update={"input": "another"}))
    await started(store.journal)
    await store.journal.append("r1", 1, [RunEvent("r1", 2, NOON, "default", "owner", asks)])
    await store.journal.create(new_run("r2"), other)

    with closing(sqlite3.connect(tmp_path / "crib.db")) as connection:
        found = connection.execute("SELECT body FROM events ORDER BY run_id, number").fetchall()
        ((requested,),) = connection.execute("SELECT request FROM approvals")
    assert [body for (body,) in found] == [event.model_dump_json() for event in (FIRST, asks, other)]
    assert requested == found[1][0]


@pytest.mark.requirement("store.group_commit", "store.not_json")
async def test_a_value_that_the_database_refuses_spoils_no_other_operation(store: Store):
    bad, good, created, large = await asyncio.gather(
        store.cache.put("\ud800", {}, realm="default", made_by="owner", expires_at=None),
        store.cache.put("k", {"n": 1}, realm="default", made_by="owner", expires_at=None),
        store.journal.create(new_run(), FIRST),
        store.journal.renew(["\udfff"], owner="p1", now=NOON, lease_s=1),
        return_exceptions=True,
    )

    assert isinstance(bad, InvalidInput)
    assert isinstance(large, InvalidInput)
    assert (good, created) == (None, None)
    assert await store.cache.get("k", now=NOON) == {"n": 1}
    assert [event.number for event in await store.journal.events("r1")] == [1]


@pytest.mark.requirement("store.group_commit", "store.fencing")
async def test_a_fenced_append_spoils_no_other_of_its_commit(store: Store):
    await started(store.journal, "r1")
    await started(store.journal, "r2")
    results = await asyncio.gather(
        store.journal.append("r1", 1, entries(2, 4)),
        store.journal.append("r2", 7, entries(2, 4, "r2")),
        store.journal.append("r2", 1, entries(2, 2, "r2")),
        return_exceptions=True,
    )

    assert [type(result) for result in results] == [type(None), Fenced, type(None)]
    assert len(await store.journal.events("r1")) == 4
    assert len(await store.journal.events("r2")) == 2


@pytest.mark.requirement("store.group_commit")
async def test_a_claim_sees_the_appends_of_its_own_commit(store: Store):
    await started(store.journal)
    store.journal.append("r1", 1, entries(2, 4))
    claim = await store.journal.claim("r1", owner="p2", now=later(1000), lease_s=1)

    assert claim is not None
    assert [event.number for event in claim.events] == [1, 2, 3, 4]


@pytest.mark.requirement("store.not_json")
async def test_an_event_that_is_not_json_is_refused_and_named(store: Store):
    await started(store.journal)

    with pytest.raises(InvalidInput, match="run r1: an event from number 2 on"):
        await store.journal.append("r1", 1, [entry(2, data=object())])
    await store.journal.append("r1", 1, [entry(2)])


@pytest.mark.requirement("store.not_json")
async def test_a_result_that_is_not_json_is_refused_and_named(store: Store):
    with pytest.raises(InvalidInput, match="a result to cache cannot be written"):
        await store.cache.put("k", {"x": object()}, realm="default", made_by="owner", expires_at=None)


@pytest.mark.requirement("store.append")
async def test_what_was_appended_is_what_it_was_at_that_moment(store: Store):
    await started(store.journal)
    data = {"n": 1}
    pending = store.journal.append("r1", 1, [entry(2, data=data)])
    data["n"] = 2
    await pending

    assert (await store.journal.events("r1", after=1))[0].event == entry(2, data={"n": 1}).event


@pytest.mark.requirement("store.unheard_failures")
async def test_an_unheard_failure_is_raised_by_the_next_append_of_that_run(
    store: Store, caplog: pytest.LogCaptureFixture
):
    await started(store.journal, "r1")
    await started(store.journal, "r2")
    store.journal.append("r1", 1, [entry(9)])
    store.journal.append("r1", 1, [entry(10)])
    await store.journal.append("r2", 1, [entry(2, "r2")])
    gc.collect()

    with pytest.raises(Conflict, match="event 9 cannot follow event 1"):
        await store.journal.append("r1", 1, [])
    assert caplog.records == []


@pytest.mark.requirement("store.append")
async def test_closing_writes_what_is_pending(store: Store, tmp_path: Path):
    await started(store.journal)
    store.journal.append("r1", 1, entries(2, 50))
    await store.close()

    with closing(sqlite3.connect(tmp_path / "crib.db")) as connection:
        assert connection.execute("SELECT count(*), max(number) FROM events").fetchone() == (50, 50)


@pytest.mark.requirement("store.opening_errors", "store.unheard_failures")
async def test_a_database_that_stays_locked_is_unavailable_and_usable_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sqlite, "_BUSY_S", 0.01)
    async with opened("sqlite", tmp_path) as store:
        await started(store.journal)
        with closing(sqlite3.connect(tmp_path / "crib.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(Unavailable, match="database is locked; another process has kept it locked"):
                await store.journal.append("r1", 1, [entry(2)])
            other.execute("ROLLBACK")

        await store.journal.append("r1", 1, [entry(2)])
        assert len(await store.journal.events("r1")) == 2


@pytest.mark.requirement("store.opening_errors")
async def test_a_new_file_that_stays_locked_is_unavailable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sqlite, "_BUSY_S", 0.01)
    with closing(sqlite3.connect(tmp_path / "crib.db", isolation_level=None)) as other:
        other.execute("CREATE TABLE notes (text TEXT)")
        for lock in ("IMMEDIATE", "EXCLUSIVE"):
            other.execute(f"BEGIN {lock}")
            with pytest.raises(Unavailable, match="database is locked"):
                async with opened("sqlite", tmp_path):
                    pass
            other.execute("COMMIT")

        async with opened("sqlite", tmp_path) as store:
            assert await store.api_keys.count() == 0


@pytest.mark.requirement("store.group_commit")
async def test_an_operation_with_a_fault_of_its_own_leaves_the_store_usable(tmp_path: Path):
    database = Database(Sqlite(f"sqlite:///{tmp_path}/crib.db"))
    await database.open()

    def faulty(session: Session) -> None:
        session.connection.exec_driver_sql("DELETE FROM alembic_version")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await database.write(faulty)
    revisions = await database.write(lambda session: session.rows(sa.select(STAMP), {}))
    assert len(revisions) == 1
    await database.close()


@pytest.mark.requirement("store.blob_files")
async def test_a_blob_is_one_file_under_its_digest_with_a_row(store: Store, tmp_path: Path):
    data = b"a prompt"
    name = await store.blobs.put(data, realm="../other", made_by="owner", content_type="text/plain")
    (file,) = (path for path in (tmp_path / "crib-blobs").rglob("*") if path.is_file())
    written = file.stat().st_mtime_ns

    assert file.relative_to(tmp_path / "crib-blobs").parts == (digest(b"../other")[:32], name[:2], name[2:4], name)
    assert file.read_bytes() == data
    await store.close()
    await store.open()
    async with opened("sqlite", tmp_path) as other:
        await other.blobs.put(data, realm="../other", made_by="someone")
    assert file.stat().st_mtime_ns == written
    with closing(sqlite3.connect(tmp_path / "crib.db")) as connection:
        rows = connection.execute("SELECT realm, digest, made_by, content_type, size FROM blobs").fetchall()
    assert rows == [("../other", name, "owner", "text/plain", len(data))]


@pytest.mark.requirement("store.blob_files")
async def test_a_damaged_blob_is_not_served(store: Store, tmp_path: Path):
    name = await store.blobs.put(b"a prompt", realm="default", made_by="owner")
    (file,) = (path for path in (tmp_path / "crib-blobs").rglob("*") if path.is_file())
    file.write_bytes(b"a prompT")

    with pytest.raises(Unavailable, match="damaged"):
        await store.blobs.get("default", name)
    file.unlink()
    with pytest.raises(Unavailable, match=f"is missing: nothing is at {file}"):
        await store.blobs.get("default", name)
    with pytest.raises(NotFound):
        await store.blobs.get("default", digest(b"never stored"))


@pytest.mark.requirement("store.blob_files")
async def test_a_folder_that_cannot_hold_blobs_is_unavailable(store: Store, tmp_path: Path):
    (tmp_path / "crib-blobs").write_text("not a folder")

    with pytest.raises(Unavailable, match="crib-blobs"):
        await store.blobs.put(b"x", realm="default", made_by="owner")
    with pytest.raises(Unavailable, match="crib-blobs"):
        await store.blobs.get("default", digest(b"x"))


@pytest.mark.requirement("store.blob_files")
async def test_a_bounded_number_of_blobs_is_remembered(store: Store, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(blobs, "_REMEMBERED", 2)
    names = [await store.blobs.put(bytes([number]), realm="default", made_by="owner") for number in range(4)]
    assert [await store.blobs.put(bytes([number]), realm="default", made_by="owner") for number in range(4)] == names


@pytest.mark.requirement("store.together")
async def test_a_database_that_fails_in_the_middle_keeps_nothing_of_what_is_saved_together(
    store: Store, tmp_path: Path
):
    with closing(sqlite3.connect(tmp_path / "crib.db", isolation_level=None)) as other:
        other.execute(
            "CREATE TRIGGER full BEFORE INSERT ON definitions WHEN NEW.name = 'third' "
            "BEGIN SELECT RAISE(ABORT, 'disk full'); END"
        )
    wanted = [definition("first"), definition("second"), definition("third"), definition("fourth")]

    with pytest.raises(Unavailable, match="disk full"):
        await store.definitions.save_all("default", wanted, seen=0)

    assert list(await store.definitions.revisions("tool", "default")) == []
    assert await store.definitions.changes("default") == 0

"""Runs, events and definitions to store, and the stores to put them in."""

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from toolcrib.contracts import OWNER, ProgressMade, Run, RunEvent, RunRequest, RunStarted, Signal
from toolcrib.infrastructure.store import Claim, Definition, Journal, Store, open_store
from toolcrib.infrastructure.store.database.postgres import Postgres
from toolcrib.infrastructure.store.sql.sql_store import SqlStore

StoreKind = Literal["memory", "sqlite"]

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
LEASE_S = 10.0
REQUEST = RunRequest(kind="agent", tool="deal-manager@1.0.0", content_hash="sha256:1", principal=OWNER)
FIRST = RunStarted(request=REQUEST)


def url_of(kind: StoreKind, folder: Path) -> str:
    return "memory://" if kind == "memory" else f"sqlite:///{folder}/crib.db"


def store_at(url: str) -> Store:
    """The store of a URL, with leases that go by the time that the test names."""
    if url.startswith("postgresql:"):
        return SqlStore(Postgres(url, keeps_time=False), blobs=None)
    return open_store(url)


def opened(kind: StoreKind, folder: Path) -> AbstractAsyncContextManager[Store]:
    return opened_at(url_of(kind, folder))


@asynccontextmanager
async def opened_at(url: str) -> AsyncGenerator[Store]:
    store = store_at(url)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


def later(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def new_run(run_id: str = "r1", **fields: Any) -> Run:
    values: dict[str, Any] = {
        "run_id": run_id,
        "realm": "default",
        "made_by": "owner",
        "status": "queued",
        "request": REQUEST,
        "created_at": NOON,
        "updated_at": NOON,
    }
    return Run(**(values | fields))


def entry(number: int, run_id: str = "r1", *, seconds: float = 0, data: Any = None) -> RunEvent:
    event = ProgressMade(key=f"k{number}", kind="note", data=data)
    return RunEvent(run_id, number, later(seconds), "default", "owner", event)


def entries(first: int, last: int, run_id: str = "r1") -> list[RunEvent]:
    return [entry(number, run_id) for number in range(first, last + 1)]


def signal(name: str = "approval:t1.c1", **payload: Any) -> Signal:
    return Signal(name=name, payload=payload, made_by="ann", at=later(5))


def definition(name: str = "search", content: str = "a", **fields: Any) -> Definition:
    values: dict[str, Any] = {
        "kind": "tool",
        "realm": "default",
        "name": name,
        "version": "1.0.0",
        "revision": 0,
        "content_hash": f"sha256:{name}-{content}",
        "body": {"name": name, "content": content},
        "made_by": "owner",
        "created_at": NOON,
    }
    return Definition(**(values | fields))


async def claimed(journal: Journal, run_id: str = "r1", *, owner: str = "p1", at: datetime = NOON) -> Claim:
    claim = await journal.claim(run_id, owner=owner, now=at, lease_s=LEASE_S)
    assert claim is not None
    return claim


async def started(journal: Journal, run_id: str = "r1") -> Claim:
    await journal.create(new_run(run_id), FIRST)
    return await claimed(journal, run_id)

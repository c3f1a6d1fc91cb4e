"""Ids by prefix, on every store."""

import sqlite3
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import sqlite

from tests.unit.store.samples import FIRST, NOON, new_run, opened_at
from toolcrib.infrastructure.store import ApiKey, Store
from toolcrib.infrastructure.store.database.tables import API_KEYS, APPROVALS, CONVERSATIONS, RUNS
from toolcrib.infrastructure.store.sql.rows import ids_with_prefix

pytestmark = pytest.mark.requirement("store.ids_by_prefix")


@pytest.fixture
async def store(store_url: str) -> AsyncGenerator[Store]:
    async with opened_at(store_url) as opened:
        yield opened


async def test_the_first_ids_of_a_realm_that_begin_with_a_prefix_are_found(store: Store):
    for run_id in ("run_a2", "run_a1", "run_A1", "run_a", "run_b1", "run_aé", "run_%"):
        await store.journal.create(new_run(run_id), FIRST)

    assert await store.journal.find_ids("default", "run_a", limit=9) == ["run_a", "run_a1", "run_a2", "run_aé"]
    assert await store.journal.find_ids("default", "run_a", limit=2) == ["run_a", "run_a1"]
    assert await store.journal.find_ids("default", "run_%", limit=9) == ["run_%"]
    assert await store.journal.find_ids("other", "run_a", limit=9) == []


async def test_keys_are_found_in_their_own_realm_only(store: Store):
    for key_id, realm in (("k1", "default"), ("k2", "default"), ("k3", "other")):
        await store.api_keys.add(ApiKey(key_id, realm, "owner", "hmac", "owner", NOON))

    assert await store.api_keys.find_ids("default", "k", limit=9) == ["k1", "k2"]


@pytest.mark.parametrize("column", [RUNS.c.run_id, APPROVALS.c.approval_id, CONVERSATIONS.c.conversation_id])
async def test_no_table_is_read_as_a_whole(column: sa.Column[str], tmp_path: Path):
    url = f"sqlite:///{tmp_path / 'crib.db'}"
    async with opened_at(url):
        pass
    statement = ids_with_prefix(column, "default", "x_01", 3).compile(
        dialect=sqlite.dialect(), compile_kwargs={"literal_binds": True}
    )
    database = sqlite3.connect(tmp_path / "crib.db")
    plan = " ".join(row[3] for row in database.execute(f"EXPLAIN QUERY PLAN {statement}"))
    database.close()

    assert "SEARCH" in plan
    assert "SCAN" not in plan
    assert API_KEYS.c.key_id.primary_key

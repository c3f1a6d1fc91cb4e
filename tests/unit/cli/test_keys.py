"""Keys from the command line, for a store in a file."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.unit.cli.command import toolcrib
from toolcrib import Crib, Principal
from toolcrib.infrastructure.store import ApiKey
from toolcrib.interfaces.server import KeyRing, read_pepper

pytestmark = pytest.mark.requirement("cli.keys")


async def holder_of(store: str, text: str) -> tuple[Principal, ApiKey]:
    async with Crib(store) as crib:
        ring = KeyRing(crib.store.api_keys, read_pepper(store, {}, keys=1), crib.clock)
        key = await crib.store.api_keys.get(text.split("_")[1])
        assert key is not None
        return await ring.authenticate(text), key


def test_a_key_with_scopes_and_an_end_is_made(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'crib.db'}"
    scopes = ("--scope", "ai://tools/crm/*/execute", "--scope", "ai://runs/*/read")
    made = toolcrib("key", "add", *scopes, "--principal", "bot", "--days", "30", "--store", store)
    holder, key = asyncio.run(holder_of(store, made.stdout.strip()))

    assert (holder.id, holder.grants) == ("bot", ("ai://tools/crm/*/execute", "ai://runs/*/read"))
    assert key.expires_at is not None
    assert timedelta(days=29) < key.expires_at - datetime.now(UTC) <= timedelta(days=30)


def test_a_key_without_more_may_do_everything(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'crib.db'}"
    holder, key = asyncio.run(holder_of(store, toolcrib("key", "add", "--store", store).stdout.strip()))

    assert (holder.id, holder.grants, key.expires_at) == ("owner", ("ai://*",), None)


def test_a_scope_that_is_none_is_refused(tmp_path: Path) -> None:
    refused = toolcrib("key", "add", "--scope", "everything", "--store", f"sqlite:///{tmp_path / 'crib.db'}")

    assert refused.exit_code == 2
    assert "is not a security URI pattern" in refused.stderr

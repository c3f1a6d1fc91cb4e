"""`toolcrib reference`: what providers declare, and how a sync that fails is told."""

import asyncio
import json
from pathlib import Path

import pytest

from tests.unit.cli.command import toolcrib
from toolcrib import Crib, ReferenceSource
from toolcrib.contracts import ProviderDefinition

pytestmark = pytest.mark.requirement("agentic.reference_sync")

STAGES = ReferenceSource(name="stages", values=("won", "open"), max_age_s=3600)
USERS = ReferenceSource(name="users", tool="list_users")


@pytest.fixture
def store(tmp_path: Path) -> str:
    """A store with a provider of two lists, of which one cannot be read."""
    url = f"sqlite:///{tmp_path / 'crib.db'}"

    async def save() -> None:
        async with Crib(url) as crib:
            await crib.save_provider(
                ProviderDefinition(name="crm", base_url="https://crm.example", reference_data=(STAGES, USERS))
            )

    asyncio.run(save())
    return url


def test_lists_are_shown_before_and_after_they_were_read(store: str):
    before = toolcrib("reference", "list", "--json", store=store)
    synced = toolcrib("reference", "sync", "crm", "stages", store=store)
    after = toolcrib("reference", "list", "crm", store=store)

    assert [found["id"] for found in json.loads(before.stdout)] == [None, None]
    assert synced.exit_code == 0
    assert "stages" in synced.stdout
    assert "3600 s" in after.stdout
    assert "never" in after.stdout


def test_a_list_that_cannot_be_read_is_told_and_the_status_is_one(store: str):
    synced = toolcrib("reference", "sync", "--json", store=store)

    assert synced.exit_code == 1
    assert [found["size"] for found in json.loads(synced.stdout)] == [2, 0]
    assert "crm: no tool 'list_users'" in synced.stderr


@pytest.mark.requirement("agentic.reference_history")
def test_the_history_of_a_list_is_shown_as_a_table_and_as_data(store: str):
    toolcrib("reference", "sync", "crm", "stages", store=store)
    shown = toolcrib("reference", "show", "crm", "stages", store=store)
    data = json.loads(toolcrib("reference", "show", "crm", "stages", "--json", store=store).stdout)

    assert [(reading["size"], reading["refused"]) for reading in data["readings"]] == [(2, None)]
    assert data["readings"][0]["id"][:12] in shown.stdout
    assert "yes" in shown.stdout

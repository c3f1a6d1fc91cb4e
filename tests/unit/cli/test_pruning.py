"""`toolcrib prune`."""

import asyncio
import json
from pathlib import Path

import pytest

from tests.unit.agents.crm import Crm
from tests.unit.cli.command import toolcrib
from toolcrib import Crib

pytestmark = pytest.mark.requirement("retention.cli")


@pytest.fixture
def store(tmp_path: Path) -> str:
    url = f"sqlite:///{tmp_path / 'crib.db'}"

    async def fill() -> None:
        async with Crib(url) as crib:
            crib.add(*Crm(1).tools)
            await crib.invoke("search_deals", {"company": "Acme"})

    asyncio.run(fill())
    return url


def test_a_dry_run_says_what_would_go_and_the_command_then_takes_it_out(store: str) -> None:
    would = toolcrib("prune", "--older-than", "0m", "--dry-run", "--json", store=store)
    table = toolcrib("prune", "--older-than", "0m", "--realm", "default", "--compact", store=store)
    again = toolcrib("prune", "--older-than", "0m", "--json", store=store)

    told = json.loads(would.stdout)
    assert (told["dry_run"], told["realms"]["default"]["gone"]["runs"]) == (True, 1)
    assert "1 in 1 families" in table.stdout
    assert json.loads(again.stdout)["realms"] == {}


def test_the_age_is_that_of_the_settings_if_none_is_given(store: str) -> None:
    kept = toolcrib("prune", "--json", store=store, TOOLCRIB_RETENTION_RUNS_DAYS="30")

    assert json.loads(kept.stdout)["realms"]["default"]["gone"]["runs"] == 0


@pytest.mark.parametrize("given", [(), ("--older-than", "soon"), ("--older-than", "30")])
def test_an_age_that_is_none_is_a_mistake_that_says_how_to_write_one(store: str, given: tuple[str, ...]) -> None:
    refused = toolcrib("prune", *given, store=store)

    assert refused.exit_code == 2
    assert "--older-than 30d" in refused.stderr

"""Runs that an older release has written, on SQLite and PostgreSQL: they are read, replayed, carried on and forked.

`tests/contract/old_runs` has the stores and what must become of their runs; its README says how they were made.
"""

from collections import Counter
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.contract.old_runs import rows
from tests.contract.old_runs.case import KEPT, Process, can_be_forked, carried_on, expected, forked, opened, replays
from tests.servers.postgres import PostgresServer

EXPECTED: Final = expected()
WAITING: Final = {name: each for name, each in EXPECTED.items() if "then" in each}


class Old:
    """A process of today on an old store."""

    def __init__(self, process: Process, document: dict[str, Any]) -> None:
        self.process = process
        self.runs: dict[str, str] = document["runs"]
        """The runs by the names of their cases."""
        self.keys: list[str] = document["keys"]
        """Of the effects that they had before."""


@pytest.fixture(params=["sqlite", "postgres"])
async def old(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Old]:
    """The store as the release wrote it on this engine."""
    url = f"sqlite:///{tmp_path}/crib.db"
    if request.param == "postgres":
        server: PostgresServer = request.getfixturevalue("postgres")
        url = server.database()
    document = rows.read(KEPT / f"{request.param}.json.xz")
    rows.load(url, document)
    async with opened(url, tmp_path, EXPECTED) as process:
        yield Old(process, document)


@pytest.mark.requirement("migrations.old_runs")
def test_the_kept_runs_are_many_and_of_every_kind():
    counts = Counter(each["now"]["kind"] for each in EXPECTED.values())
    plans = [name for name in EXPECTED if name.startswith("plan_")]
    in_the_middle = [name for name in plans if EXPECTED[name]["now"]["status"].startswith("awaiting_")]

    assert counts.keys() == {"tool", "agentic", "agent", "workflow"}
    assert counts.total() >= 200
    assert len(plans) >= 30
    assert len(in_the_middle) >= 6


@pytest.mark.requirement("migrations.old_runs")
async def test_every_run_of_an_older_release_is_read_as_it_was_written(old: Old):
    assert old.runs.keys() == EXPECTED.keys()
    assert {name: await old.process.told(run_id) for name, run_id in old.runs.items()} == {
        name: each["now"] for name, each in EXPECTED.items()
    }


@pytest.mark.requirement("migrations.old_runs", "bundles.old", "ends.old_journals")
async def test_every_run_of_an_older_release_replays_to_the_same_events(old: Old):
    found = {name: await replays(old.process, run_id) for name, run_id in old.runs.items()}

    assert {name: how for name, how in found.items() if how is not True} == {}


@pytest.mark.requirement("migrations.old_runs")
async def test_every_run_of_an_older_release_that_waits_comes_to_its_end_and_does_nothing_twice(old: Old):
    found = {name: await carried_on(old.process, old.runs[name], each["then"]) for name, each in WAITING.items()}

    assert found == {name: each["after"] for name, each in WAITING.items()}
    again = {key: times for key, times in Counter([*old.keys, *old.process.hands.keys]).items() if times > 1}
    assert again == {}


@pytest.mark.requirement("migrations.old_runs")
async def test_a_process_that_serves_an_older_store_carries_on_whatever_needs_nobody(old: Old):
    alone = {name: each["after"] for name, each in WAITING.items() if each["then"] == [[]]}

    await old.process.crib.recover()

    told = {name: await old.process.told(old.runs[name]) for name in alone}
    ends = {name: (one["status"], one["output"], one["error"]) for name, one in told.items()}
    assert ends == {name: (one["status"], one["output"], one["error"]) for name, one in alone.items()}


@pytest.mark.requirement("migrations.old_runs")
async def test_every_run_of_an_older_release_is_forked_to_the_end_that_is_expected(old: Old):
    wanted = {name: each["fork"] for name, each in EXPECTED.items() if can_be_forked(each["now"])}

    assert {name: await forked(old.process, old.runs[name]) for name in wanted} == wanted

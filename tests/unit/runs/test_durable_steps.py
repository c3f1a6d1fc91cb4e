"""What a step costs the disk: its outcome goes with the next intent, in one commit, and never after the next effect."""

from pathlib import Path
from typing import Any

import pytest

from tests.twins import make_definition
from tests.unit.runs.house import House, ask
from tests.unit.store.samples import opened
from tests.unit.store.test_sql_store import transactions
from toolcrib.contracts import Json
from toolcrib.core.executor import Dispatch, Outcome
from toolcrib.core.runs import RunContext
from toolcrib.infrastructure.store import open_store

pytestmark = pytest.mark.requirement("leaving.one_commit")

STEPS = 10


async def in_a_row(context: RunContext) -> Json:
    for number in range(STEPS):
        await context.call(ask(f"s{number}", "act"))
    return None


async def test_a_row_of_effects_costs_one_commit_each(tmp_path: Path):
    async with opened("sqlite", tmp_path) as store:
        house = House(in_a_row, store=store)
        await house.save(make_definition("act", side_effects="writes"))
        await house.request()
        before = transactions(tmp_path)

        await house.start()

        assert transactions(tmp_path) - before == STEPS + 1  # the last outcome goes with the end of the run


async def test_the_intent_and_all_earlier_outcomes_are_durable_before_an_effect(tmp_path: Path):
    seen: list[list[str]] = []

    async def behaviour(dispatch: Dispatch) -> Outcome:
        other = open_store(f"sqlite:///{tmp_path}/crib.db")  # another process: it sees what is committed
        await other.open()
        (run,) = await other.journal.runs("default")
        events: list[Any] = [entry.event for entry in await other.journal.events(run.run_id)]
        seen.append([f"{event.type} {event.position}" for event in events if hasattr(event, "position")])
        await other.close()
        return Outcome(None)

    async with opened("sqlite", tmp_path) as store:
        house = House(in_a_row, behaviour, store=store)
        await house.save(make_definition("act", side_effects="writes"))

        await house.start()

    steps = [f"{what} s{number}" for number in range(STEPS) for what in ("call_started", "call_finished")]
    assert seen == [steps[: 2 * number + 1] for number in range(STEPS)]

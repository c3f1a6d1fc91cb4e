"""Dry runs: what would write is not called, nobody is asked, nothing is waited for, and all else runs."""

from typing import Any

import pytest

from tests.unit.workflows.flows import run, save, steps_of
from toolcrib import Crib, tool
from toolcrib.contracts import JsonObject
from toolcrib.contracts.workflows import WorkflowInstance

pytestmark = pytest.mark.requirement("workflow_steps.dry_run")

done: list[str] = []


@tool(side_effects="writes")
async def ship(order: str) -> JsonObject:
    """Ship."""
    done.append(order)
    return {"tracking": order}


@tool(side_effects="reads")
async def look(order: str = "") -> JsonObject:
    """Look."""
    return {"left": 3}


SHIP: JsonObject = {"name": "ship", "tool": "ship", "input": {"order": "${input.order}"}}


async def dry(*steps: JsonObject, **fields: Any) -> WorkflowInstance:
    done.clear()
    async with Crib("memory://") as crib:
        crib.add(ship, look)
        await save(crib, SHIP, name="inner")
        instance = await run(crib, *steps, given={"order": "A1", "orders": ["A1", "A2"]}, dry_run=True, **fields)
    assert done == []
    assert instance.dry_run
    return instance


def told(instance: WorkflowInstance) -> dict[str, tuple[str, str | None]]:
    return {name: (step.status, step.reason) for name, step in steps_of(instance).items()}


async def test_a_call_that_would_write_is_skipped_and_what_only_follows_it_runs():
    instance = await dry(
        SHIP,
        {"name": "after", "tool": "look", "depends_on": ["ship"]},
        {"name": "state", "output": "${steps.ship.status}"},
    )

    assert instance.status == "completed"
    assert told(instance) == {
        "ship": ("skipped", 'dry run: would call ship with {"order":"A1"}'),
        "after": ("succeeded", None),
        "state": ("succeeded", None),
    }
    assert steps_of(instance)["state"].output == "skipped"


async def test_what_needs_an_output_that_is_not_there_is_skipped_and_says_whose():
    instance = await dry(
        SHIP,
        {"name": "mail", "tool": "look", "input": {"order": "${ship.tracking}"}},
        {"name": "chosen", "tool": "look", "condition": "${steps.ship.output.tracking == 'A1'}"},
        {"name": "further", "output": "${mail.left}"},
    )

    assert {name: reason for name, (_, reason) in told(instance).items() if name != "ship"} == {
        "mail": "dry run: needs the output of ship",
        "chosen": "dry run: needs the output of ship",
        "further": "dry run: needs the output of mail",
    }
    assert instance.status == "completed"


async def test_where_the_output_of_the_workflow_needs_it_there_is_what_became_of_the_steps():
    instance = await dry(SHIP, output={"tracking": "${ship.tracking}"})

    assert instance.status == "completed"
    assert instance.warnings == ("dry run: needs the output of ship",)
    assert instance.output is None
    assert instance.partial["steps"]["ship"]["status"] == "skipped"


async def test_an_alternative_that_has_put_out_something_is_enough():
    one = {"name": "one", "tool": "look", "save_as": "found"}
    other = {**SHIP, "save_as": "found"}
    instance = await dry(one, other, {"name": "use", "output": "${found.left}"})

    assert told(instance)["use"] == ("succeeded", None)


async def test_of_a_list_it_is_said_how_often():
    instance = await dry({**SHIP, "for_each": "${input.orders}", "input": {"order": "${item}"}})

    assert told(instance)["ship"] == (
        "skipped",
        'dry run: would call ship with {"order":"A1"} (2 of 2 elements)',
    )


async def test_a_nested_workflow_that_writes_is_skipped_as_a_whole():
    instance = await dry({"name": "inner", "workflow": "inner", "input": {"order": "B"}})

    assert told(instance)["inner"] == ("skipped", 'dry run: would call inner with {"order":"B"}')


async def test_long_arguments_are_shortened():
    instance = await dry({**SHIP, "input": {"order": "x" * 500}})

    reason = told(instance)["ship"][1]
    assert reason is not None
    assert reason.endswith("x…")
    assert len(reason) < 300


async def test_nobody_is_asked_and_it_goes_on_as_if_they_had_agreed():
    ask = {"name": "ask", "approval": {"message": "Ship ${input.order}?", "show": {"order": "${input.order}"}}}
    instance = await dry(ask, {"name": "use", "tool": "look", "input": {"order": "${ask.order}"}})

    assert told(instance) == {
        "ask": ("skipped", "dry run: would ask a person, and goes on with what is shown: Ship A1?"),
        "use": ("succeeded", None),
    }


async def test_nothing_is_waited_for():
    instance = await dry(
        {"name": "rest", "wait": {"seconds": "${60 * 60}"}},
        {"name": "day", "wait": {"until": "2036-01-31T12:00:00Z"}},
        {"name": "news", "wait": {"signal": "paid"}},
        {"name": "use", "output": "${news.by}"},
        {"name": "after", "tool": "look", "depends_on": ["rest", "day", "news"]},
    )

    assert told(instance) == {
        "rest": ("skipped", "dry run: would wait for 3600 s"),
        "day": ("skipped", "dry run: would wait until 2036-01-31T12:00:00+00:00"),
        "news": ("skipped", "dry run: would wait for the signal 'paid'"),
        "use": ("skipped", "dry run: needs the output of news"),
        "after": ("succeeded", None),
    }


async def test_what_is_wrong_shows_all_the_same():
    instance = await dry({**SHIP, "input": {"order": "${input.gone}"}})

    assert (instance.status, told(instance)["ship"][0]) == ("failed", "failed")

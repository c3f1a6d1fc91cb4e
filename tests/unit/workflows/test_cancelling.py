"""A workflow that is cancelled, or fails, while it works and waits: it ends with what it has."""

import asyncio
from typing import Any

import pytest

from tests.unit.runs.house import settled
from toolcrib import Crib, tool
from toolcrib.contracts import ENDED
from toolcrib.contracts.workflows import WorkflowDefinition

INNER = WorkflowDefinition.model_validate(
    {
        "name": "inner",
        "steps": [
            {"name": "asked", "approval": {"message": "go on?"}},
            {"name": "late", "tool": "note", "input": {"what": "inner"}, "depends_on": ["asked"]},
        ],
    }
)
OUTER = WorkflowDefinition.model_validate(
    {
        "name": "outer",
        "steps": [
            {"name": "first", "tool": "note", "input": {"what": "first"}},
            {"name": "long", "tool": "work", "depends_on": ["first"]},
            {"name": "nested", "workflow": "inner", "depends_on": ["first"]},
            {"name": "signal", "wait": {"signal": "go"}, "depends_on": ["first"]},
            {"name": "asked", "approval": {"message": "sure?"}, "depends_on": ["first"]},
            {"name": "after", "tool": "note", "input": {"what": "after"}, "join": "always", "depends_on": ["asked"]},
            {
                "name": "last",
                "tool": "note",
                "input": {"what": "last"},
                "join": "any",
                "depends_on": ["long", "signal"],
            },
        ],
    }
)


@pytest.mark.requirement("workflow_running.cancelled")
async def test_a_cancelled_workflow_ends_with_its_partial_result_and_its_nested_runs_and_nothing_begins_after():
    noted: list[str] = []
    begun = asyncio.Event()

    @tool(side_effects="writes")
    async def note(what: str) -> str:
        """Note something."""
        noted.append(what)
        return what

    @tool(side_effects="reads")
    async def work() -> str:
        """Work without end."""
        begun.set()
        await asyncio.get_running_loop().create_future()
        return ""

    async with Crib("memory://") as crib:
        crib.add(note, work)
        for definition in (INNER, OUTER):
            await crib.save(definition.tool())
        running = asyncio.create_task(crib.invoke("outer", {}))
        await begun.wait()
        await settled()
        (run,) = [run for run in await crib.store.journal.runs(crib.principal.realm) if run.request.depth == 0]
        await crib.cancel(run.run_id, reason="enough")
        result = await running

        assert result.summary.status == "cancelled"
        partial: Any = result.partial
        assert partial["steps"]["first"] == {"status": "succeeded", "output": "first"}
        assert noted == ["first"]
        runs = await crib.store.journal.runs(crib.principal.realm)
        assert {run.status for run in runs if run.status not in ENDED} == set()
        assert [run.status for run in runs if run.request.depth] == ["cancelled"]
        assert await crib.resume(run.run_id) is not None
        assert noted == ["first"]


@pytest.mark.requirement("workflow_running.failed")
async def test_a_workflow_that_has_failed_waits_for_nobody_any_more_and_what_works_comes_to_its_end():
    failed, worked = asyncio.Event(), asyncio.Event()

    @tool(side_effects="reads")
    async def fail() -> str:
        """Fail."""
        failed.set()
        raise RuntimeError("no")

    @tool(side_effects="reads")
    async def work() -> str:
        """Work a while."""
        await worked.wait()
        return "worked"

    definition = WorkflowDefinition.model_validate(
        {
            "name": "failing",
            "steps": [
                {"name": "asked", "approval": {"message": "sure?"}},
                {"name": "waits", "wait": {"signal": "go"}},
                {"name": "works", "tool": "work"},
                {"name": "fails", "tool": "fail"},
            ],
        }
    )
    async with Crib("memory://") as crib:
        crib.add(fail, work)
        await crib.save(definition.tool())
        running = asyncio.create_task(crib.invoke("failing", {}))
        await failed.wait()
        await settled()
        worked.set()
        result = await running

    assert result.summary.status == "failed"
    partial: Any = result.partial
    assert {name: step["status"] for name, step in partial["steps"].items()} == {
        "works": "succeeded",
        "fails": "failed",
    }

"""Time-outs of steps: each try is bounded, the inner end is the one that is told, and nothing goes on behind it."""

import asyncio
from typing import Any

import pytest

from tests.unit.runs.house import StandingClock
from tests.unit.workflows.flows import HOUR, error_of, run, run_through, save, steps_of
from toolcrib import Crib, tool
from toolcrib.contracts import AgentDefinition, JsonObject, LLMConfig, Reason
from toolcrib.llm import ScriptedModel

pytestmark = pytest.mark.requirement("workflow_steps.timeout")

SOON = 0.05
"""Seconds after which a test's call is cut off."""


class Well:
    """A tool that does not come to an end."""

    def __init__(self) -> None:
        self.begun = 0
        self.cut_off = 0

    def tool(self, timeout_s: float = 60.0) -> Any:
        @tool(side_effects="reads", timeout_s=timeout_s)
        async def draw() -> JsonObject:
            """Draw water for ever."""
            self.begun += 1
            try:
                await asyncio.get_running_loop().create_future()
            except asyncio.CancelledError:
                self.cut_off += 1
                raise
            return {}

        return draw


DRAW: JsonObject = {"name": "draw", "tool": "draw", "timeout_s": SOON}


async def test_a_step_that_takes_too_long_fails_and_its_error_says_whose_limit_it_was():
    well = Well()
    async with Crib("memory://") as crib:
        crib.add(well.tool())
        instance = await run(crib, DRAW)

    error = error_of(instance, "draw")
    assert (error.code, error.reason) == ("TIMEOUT", Reason.TOOL_TIMEOUT)
    assert "within timeout_s=0.05, which its caller gives it" in error.message
    assert well.cut_off == 1


async def test_the_tool_s_own_limit_holds_if_it_is_less():
    async with Crib("memory://") as crib:
        crib.add(Well().tool(timeout_s=SOON))
        instance = await run(crib, {**DRAW, "timeout_s": 60})

    assert "did not end within timeout_s=0.05" in error_of(instance, "draw").message


async def test_each_try_has_the_whole_time():
    well = Well()
    async with Crib("memory://", clock=(clock := StandingClock())) as crib:
        crib.add(well.tool())
        instance = await run_through(crib, clock, {**DRAW, "retry": {"count": 2, "base_s": 0}})

    assert (steps_of(instance)["draw"].tries, well.begun, well.cut_off) == (3, 3, 3)


@pytest.mark.requirement("workflow_steps.no_zombies")
async def test_a_nested_workflow_ends_itself_in_time_and_tells_why():
    well = Well()
    async with Crib("memory://") as crib:
        crib.add(well.tool())
        await save(crib, {"name": "draw", "tool": "draw"}, name="inner")
        instance = await run(crib, {"name": "inner", "workflow": "inner", "timeout_s": SOON})
        [child] = steps_of(instance)["inner"].child_run_ids
        nested = await crib.instances.get(child)

    assert (error_of(instance, "inner").code, error_of(instance, "inner").reason) == ("TIMEOUT", Reason.RUN_TIMEOUT)
    assert "timeout_s=0.05" in error_of(instance, "inner").message
    assert (nested.status, well.cut_off) == ("timed_out", 1)


@pytest.mark.requirement("workflow_steps.no_zombies")
async def test_an_agent_ends_itself_in_time():
    async def ponder(request: Any) -> str:
        del request
        return await asyncio.get_running_loop().create_future()

    agent = AgentDefinition(name="sage", llm=LLMConfig(model="scripted:m"), system_prompt="Answer.")
    async with Crib("memory://", models={"scripted:m": ScriptedModel(ponder)}) as crib:
        await crib.save(agent.tool())
        step = {"name": "ask", "agent": "sage", "input": {"message": "?"}, "timeout_s": SOON, "on_error": "continue"}
        instance = await run(crib, step)
        [child] = steps_of(instance)["ask"].child_run_ids
        trace = await crib.trace(child)

    assert instance.status == "completed"
    assert error_of(instance, "ask").reason is Reason.RUN_TIMEOUT
    assert trace.status == "timed_out"


@pytest.mark.requirement("workflow_steps.no_zombies")
async def test_a_nested_run_that_is_cut_off_from_outside_is_ended_while_its_caller_goes_on(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr("toolcrib.core.executor.retries.CLOSING_S", -0.5)  # the executor is the first to lose patience
    well = Well()
    async with Crib("memory://") as crib:
        crib.add(well.tool())
        await save(crib, {"name": "draw", "tool": "draw"}, name="inner")
        step = {"name": "inner", "workflow": "inner", "timeout_s": 0.5 + SOON, "on_error": "continue"}
        instance = await run(crib, step, {"name": "after", "output": "done", "depends_on": ["inner"]})
        [child] = steps_of(instance)["inner"].child_run_ids
        nested = await crib.instances.get(child)

    assert (instance.status, instance.output) == ("completed", {"after": "done"})
    assert (nested.status, well.cut_off) == ("cancelled", 1)
    assert nested.error is not None
    assert "has ended without it" in nested.error.message


async def test_the_time_in_which_a_step_waits_for_a_person_does_not_count():
    @tool(requires_confirmation=True)
    async def pay() -> str:
        """Pay."""
        return "paid"

    clock = StandingClock()
    async with Crib("memory://", clock=clock) as crib:
        crib.add(pay)
        await save(crib, {"name": "pay", "tool": "pay"}, name="inner")
        waiting = await run(crib, {"name": "inner", "workflow": "inner", "timeout_s": 60})
        clock.advance(HOUR)
        [asked] = (await crib.approvals.page()).items
        await crib.approvals.decide(asked.approval_id, approve=True)
        result = await crib.resume(waiting.run_id)

    assert waiting.status == "awaiting_approval"
    assert result.output == {"inner": {"pay": "paid"}}

"""Workflows of one test each, saved as they are: what is wrong with them shows when they run."""

import asyncio
from collections.abc import Mapping
from typing import Any

from tests.unit.runs.house import StandingClock, settled
from toolcrib import Crib
from toolcrib.contracts import OWNER, CallFinished, JsonObject, ProgressMade, ToolEnvelope, ToolError, ToolRevision
from toolcrib.contracts.workflows import StepInstance, WorkflowDefinition, WorkflowInstance

HOUR = 3600.0


async def save(crib: Crib, *steps: JsonObject, name: str = "flow", **fields: Any) -> ToolRevision:
    """Save a workflow without its being checked.

    `handlers` and `conditions`, by name, are what publishing would have found of them.
    """
    bound = {key: fields.pop(key) for key in ("handlers", "conditions") if key in fields}
    tool = WorkflowDefinition.model_validate({"name": name, "steps": steps, **fields}).tool()
    inside = tool.implementation.model_copy(update=bound)
    definition = tool.model_copy(update={"implementation": inside})
    return await crib.registry.save(definition, realm=OWNER.realm, made_by=OWNER.id, at=crib.clock.now())


async def run(
    crib: Crib, *steps: JsonObject, given: JsonObject | None = None, dry_run: bool = False, **fields: Any
) -> WorkflowInstance:
    """Save a workflow and run it until it ends or waits."""
    await save(crib, *steps, **fields)
    return await crib.instances.start("flow", given or {}, dry_run=dry_run)


async def run_through(crib: Crib, clock: StandingClock, *steps: JsonObject, **given: Any) -> WorkflowInstance:
    """The same, letting every second pass that somebody sleeps."""
    running = asyncio.create_task(run(crib, *steps, **given))
    while not running.done():
        await settled()
        await clock.pass_time(0 if running.done() else 0.25)
    return await running


async def run_open(crib: Crib, gate: asyncio.Event, *steps: JsonObject, **given: Any) -> WorkflowInstance:
    """The same as `run`, with a gate that is opened once a step of the run has ended."""
    running = asyncio.create_task(run(crib, *steps, **given))
    while not gate.is_set():
        await settled()
        runs = await crib.store.journal.runs(OWNER.realm)
        events = [entry.event for each in runs for entry in await crib.store.journal.events(each.run_id)]
        if any(isinstance(event, ProgressMade) for event in events):
            gate.set()
    return await running


def steps_of(instance: WorkflowInstance) -> Mapping[str, StepInstance]:
    """The steps by name."""
    return {step.step: step for step in instance.steps}


def error_of(instance: WorkflowInstance, name: str) -> ToolError:
    """Why a step has failed."""
    error = steps_of(instance)[name].error
    assert error is not None
    return error


async def calls_of(crib: Crib, instance: WorkflowInstance) -> Mapping[str, ToolEnvelope]:
    """The envelopes of a run's calls, by position."""
    events = [entry.event for entry in await crib.store.journal.events(instance.run_id)]
    return {event.position: event.envelope for event in events if isinstance(event, CallFinished)}

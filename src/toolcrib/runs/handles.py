"""The handles of an agent's run: what they hold, and that a run fails which leaves one empty that must not be."""

from collections.abc import Sequence

import msgspec

from toolcrib.contracts import (
    AgentImplementation,
    ErrorCode,
    Json,
    PinnedHandle,
    Reason,
    Run,
    RunRequest,
    ToolEnvelope,
    ToolRevision,
)
from toolcrib.executor import error
from toolcrib.runs.context import Program, RunContext
from toolcrib.runs.history import Logged
from toolcrib.runs.outputs import calls_of
from toolcrib.runs.pins import resolve, selected, unfilled
from toolcrib.runs.program import Ended
from toolcrib.store import Journal

_LOOKED_AT = 20
"""Successful runs that are asked for what a handle held; older ones are forgotten."""


def holding_pins(program: Program) -> Program:
    """A program that fails at its end if a handle that must not be empty is."""

    async def run(context: RunContext, tool: ToolRevision) -> Ended:
        ended = await program(context, tool)
        if ended.status != "completed":
            return ended
        missing = [pin for pin in unfilled(pinned_by(tool), calls_of(context.log.events)) if pin.on_missing == "error"]
        return _failed(ended, missing) if missing else ended

    return run


async def handles_of(journal: Journal, run: Run, tool: ToolRevision, events: Sequence[Logged]) -> dict[str, Json]:
    """What the handles of a run hold, as it stands.

    Args:
        journal: Has the runs before.
        run: The run.
        tool: The revision that it executes, which has the pins.
        events: The run's own.
    """
    pins, calls = pinned_by(tool) if run.request.kind == "agent" else (), calls_of(events)
    stale = [pin for pin in unfilled(pins, calls) if pin.on_missing == "stale_last_success"]
    return resolve(pins, calls, await _held_before(journal, run, stale) if stale and run.ended else {})


def pinned_by(tool: ToolRevision) -> tuple[PinnedHandle, ...]:
    """The pins of an agent; nothing else has any."""
    implementation = tool.definition.implementation
    return implementation.pins if isinstance(implementation, AgentImplementation) else ()


async def _held_before(journal: Journal, run: Run, pins: Sequence[PinnedHandle]) -> dict[str, Json]:
    """What the last successful run of the same agent in the same place, realm and name had in its handles."""
    before = await journal.runs(
        run.realm,
        tool=run.request.tool_name,
        made_by=run.made_by,
        status="completed",
        before=run.run_id,
        limit=_LOOKED_AT,
    )
    held: dict[str, Json] = {}
    for earlier in before:
        wanted = [pin for pin in pins if pin.name not in held]
        if not wanted:
            break
        if _place(earlier.request) == _place(run.request):
            calls = [call for call in calls_of(await journal.events(earlier.run_id)) if call.ok]
            held |= {pin.name: call.output for pin, call in _filled(wanted, calls)}
    return held


def _filled(pins: Sequence[PinnedHandle], calls: Sequence[ToolEnvelope]) -> list[tuple[PinnedHandle, ToolEnvelope]]:
    found = [(pin, selected(pin.selector, calls)) for pin in pins]
    return [(pin, call) for pin, call in found if call is not None]


def _place(request: RunRequest) -> str:
    """The name of what has called the agent; empty for one that was called from outside."""
    return list(request.callers.values())[-1].partition("@")[0] if request.callers else ""


def _failed(ended: Ended, missing: Sequence[PinnedHandle]) -> Ended:
    names, tools = [pin.name for pin in missing], sorted({pin.selector.tool for pin in missing})
    message = (
        f"pinned handle {', '.join(map(repr, names))} has no call of {', '.join(map(repr, tools))} that fills it, and "
        "is on_missing=error; let the agent call the tool, or set on_missing to null"
    )
    failure = error(ErrorCode.VALIDATION_ERROR, Reason.HANDLE_MISSING, message, handles=names)
    return msgspec.structs.replace(ended, status="failed", stop_reason="error", error=failure)

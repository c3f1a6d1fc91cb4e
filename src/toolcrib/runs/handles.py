"""The handles of an agent's run: what they hold, and that a run fails which leaves one empty that must not be."""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Final

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
from toolcrib.runs.past import Past
from toolcrib.runs.pins import resolve, selected, unfilled
from toolcrib.runs.program import Ended

_LOOKED_AT: Final = 20
"""Successful runs of one place that are asked for what a handle held; older ones are forgotten."""
_PAGE: Final = 100
_PAGES: Final = 10
"""Of successful runs of an agent, wherever it was called, among which those of one place are looked for."""


def holding_pins(program: Program) -> Program:
    """A program that fails at its end if a handle that must not be empty is."""

    async def run(context: RunContext, tool: ToolRevision) -> Ended:
        ended = await program(context, tool)
        if ended.status != "completed":
            return ended
        missing = [pin for pin in unfilled(pinned_by(tool), calls_of(context.log.events)) if pin.on_missing == "error"]
        return _failed(ended, missing) if missing else ended

    return run


async def handles_of(past: Past, run: Run, tool: ToolRevision, events: Sequence[Logged]) -> dict[str, Json]:
    """What the handles of a run hold, as it stands.

    Args:
        past: Has the runs before.
        run: The run.
        tool: The revision that it executes, which has the pins.
        events: The run's own.
    """
    pins, calls = pinned_by(tool) if run.request.kind == "agent" else (), calls_of(events)
    stale = [pin for pin in unfilled(pins, calls) if pin.on_missing == "stale_last_success"]
    held = await held_in(past, run, stale) if stale and run.ended else {}
    return resolve(pins, calls, await values_in(past, stale, held))


def pinned_by(tool: ToolRevision) -> tuple[PinnedHandle, ...]:
    """The pins of an agent; nothing else has any."""
    implementation = tool.definition.implementation
    return implementation.pins if isinstance(implementation, AgentImplementation) else ()


async def held_in(past: Past, run: Run, pins: Sequence[PinnedHandle]) -> dict[str, str]:
    """Where handles were filled last: ids of runs by the names of handles, of those that any run has filled.

    The runs are successful ones of the same agent in the same place, realm and name, from before this one. A place is
    the tool that has called the agent; of a workflow it is the step, whichever element or try of it, and earlier runs
    of the workflow count only.

    Args:
        past: Has the runs.
        run: The run whose handles are empty.
        pins: Those handles.
    """
    held: dict[str, str] = {}
    looked_at = 0
    async for earlier in _same_place(past, run):
        wanted = [pin for pin in pins if pin.name not in held]
        if not wanted or looked_at == _LOOKED_AT:
            break
        looked_at += 1
        calls = _successes(await past.events(earlier.run_id))
        held |= {pin.name: earlier.run_id for pin in wanted if selected(pin.selector, calls) is not None}
    return held


async def values_in(past: Past, pins: Iterable[PinnedHandle], held: Mapping[str, str]) -> dict[str, Json]:
    """What handles held in the runs that `held_in` has found, by name."""
    values: dict[str, Json] = {}
    for pin in pins:
        if pin.name in held:
            call = selected(pin.selector, _successes(await past.events(held[pin.name])))
            values[pin.name] = None if call is None else call.output
    return values


def step_at(position: str) -> str:
    """The step of a workflow that has made a call: positions are `NAME`, `NAME[i]`, and of further tries `….try2`."""
    return position.partition(".")[0].partition("[")[0]


async def _same_place(past: Past, run: Run) -> AsyncIterator[Run]:
    """Successful runs from before this one that the same place has begun, newest first."""
    request, before = run.request, run.run_id
    parent = None if request.parent_run_id is None else await past.run(request.parent_run_id)
    workflow = parent is not None and parent.request.kind == "workflow"
    for _ in range(_PAGES):
        page = await past.runs(
            run.realm, tool=request.tool_name, made_by=run.made_by, status="completed", before=before, limit=_PAGE
        )
        for earlier in page:
            same = _caller(earlier.request) == _caller(request)
            if workflow:
                same = same and _step(earlier.request) == _step(request)
                same = same and earlier.request.parent_run_id != request.parent_run_id
            if same:
                yield earlier
        if len(page) < _PAGE:
            return
        before = page[-1].run_id


def _successes(events: Iterable[Logged]) -> Sequence[ToolEnvelope]:
    return [call for call in calls_of(events) if call.ok]


def _caller(request: RunRequest) -> str:
    """The name of what has called the agent; empty for one that was called from outside."""
    return list(request.callers.values())[-1].partition("@")[0] if request.callers else ""


def _step(request: RunRequest) -> str:
    return step_at(request.parent_position or "")


def _failed(ended: Ended, missing: Sequence[PinnedHandle]) -> Ended:
    names, tools = [pin.name for pin in missing], sorted({pin.selector.tool for pin in missing})
    message = (
        f"pinned handle {', '.join(map(repr, names))} has no call of {', '.join(map(repr, tools))} that fills it, and "
        "is on_missing=error; let the agent call the tool, or set on_missing to null"
    )
    failure = error(ErrorCode.VALIDATION_ERROR, Reason.HANDLE_MISSING, message, handles=names)
    return msgspec.structs.replace(ended, status="failed", stop_reason="error", error=failure)

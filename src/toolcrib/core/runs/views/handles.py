"""The outputs and pinned handles of an agent, read from its run's journal.

A pin names a tool, which can be disabled, unallocated or removed. Every run has these outputs at any time, whatever
its kind and end. A run fails if a required handle is empty. Pure: events in, outputs out.
"""

import re
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, assert_never, cast

import msgspec
import orjson

from toolcrib.contracts import (
    AgentImplementation,
    AgentOutputs,
    CallFinished,
    CallStarted,
    ErrorCode,
    InvalidDefinition,
    Json,
    JsonObject,
    PinnedHandle,
    PinSelector,
    Reason,
    Run,
    RunEvent,
    RunFinished,
    RunKind,
    RunRequest,
    RunStarted,
    ToolEnvelope,
    ToolError,
    ToolRevision,
)
from toolcrib.core.executor import error
from toolcrib.core.runs.context.context import Program, RunContext
from toolcrib.core.runs.interrupts.suspension import EndedRuns, RunEnd, in_format


def check_pins(agent: str, pins: Sequence[PinnedHandle]) -> None:
    """Refuse pins that cannot be told apart or select nothing. The tools that they name need not exist.

    Raises:
        InvalidDefinition: Names the handle and what to change.
    """
    names = [pin.name for pin in pins]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        msg = f"agent {agent!r} has two pinned handles of the name {twice[0]!r}; give each a name of its own"
        raise InvalidDefinition(msg)
    for pin in pins:
        named = pin.selector.call_id is not None
        if named != (pin.selector.strategy == "by_call_id"):
            msg = (
                f"pinned handle {pin.name!r} of agent {agent!r} has strategy {pin.selector.strategy!r} and "
                f"{'a' if named else 'no'} call_id; give a call_id with by_call_id, and with nothing else"
            )
            raise InvalidDefinition(msg)


def resolve_pins(
    pins: Iterable[PinnedHandle], calls: Sequence[ToolEnvelope], earlier: Mapping[str, Json]
) -> dict[str, Json]:
    """What every handle holds: the output of the call that fills it, always all of them.

    Args:
        pins: The handles.
        calls: The calls of the run, in the order of `calls_of`.
        earlier: What handles held before, by name; null for those that are not among them.
    """
    found = {pin.name: select_call(pin.selector, calls) for pin in pins}
    return {name: call.output if call is not None else earlier.get(name) for name, call in found.items()}


def find_unfilled(pins: Iterable[PinnedHandle], calls: Sequence[ToolEnvelope]) -> Sequence[PinnedHandle]:
    """The handles that no call fills."""
    return [pin for pin in pins if select_call(pin.selector, calls) is None]


def select_call(selector: PinSelector, calls: Sequence[ToolEnvelope]) -> ToolEnvelope | None:
    """The call that a selector means; one that was denied or skipped was never executed, and fills nothing."""
    executed = [call for call in calls if call.name == selector.tool and call.status in {"success", "error"}]
    match selector.strategy:
        case "latest":
            return executed[-1] if executed else None
        case "first_success":
            return next((call for call in executed if call.ok), None)
        case "by_call_id":
            return next((call for call in executed if call.call_id == selector.call_id), None)
        case _:
            assert_never(selector.strategy)


def outputs_of(events: Sequence[RunEvent]) -> AgentOutputs:
    """The stable outputs of a run; a server adds the address of its trace.

    Args:
        events: From the first on, in order.
    """
    calls = calls_of(events)
    first, last = events[0].event, events[-1].event
    kind = first.request.kind if isinstance(first, RunStarted) else "tool"
    return AgentOutputs(
        response=answer_of(kind, last.output_or_partial)[0] if isinstance(last, RunFinished) else "",
        tools_by_id={envelope.call_id: envelope for envelope in calls},
        tool_order=tuple(envelope.call_id for envelope in calls),
        last_tool=next((envelope for envelope in reversed(calls) if envelope.ok), None),
    )


def calls_of(events: Iterable[RunEvent]) -> Sequence[ToolEnvelope]:
    """The calls that have ended, in the order in which they were asked for.

    The calls of one answer of a model are in the order of the answer, the calls of code in the order of the code, and
    the elements of a `for_each` in the order of their list, whatever the store, a cache or a person took to let each
    begin. Everything else is in the order of its intents; what was never dispatched has none, and stands where it ends.
    """
    places: dict[str, ToolEnvelope | None] = {}
    for entry in events:
        match entry.event:
            case CallStarted(position=position):
                places.setdefault(position, None)
            case CallFinished(position=position, envelope=envelope):
                places[position] = envelope
            case _:
                pass
    return _as_asked([envelope for envelope in places.values() if envelope is not None])


_NUMBERED: Final = re.compile(r"(t\d+\.c|.+\[)(\d+)\]?")
"""Positions of calls that were asked for together: `t3.c1` by a model, `fetch[17]` by a step."""


def _as_asked(calls: Sequence[ToolEnvelope]) -> Sequence[ToolEnvelope]:
    """The calls with those that were asked for together in the order of their numbers, in the places that they have."""
    together: dict[str, list[tuple[int, int]]] = {}
    for place, call in enumerate(calls):
        found = _NUMBERED.fullmatch(call.position)
        if found is not None:
            together.setdefault(found[1], []).append((int(found[2]), place))
    ordered = list(calls)
    for numbered in together.values():
        for place, (_, source) in zip(sorted(place for _, place in numbered), sorted(numbered), strict=True):
            ordered[place] = calls[source]
    return ordered


def response_of(output: Json) -> str | None:
    """The words that an agent has put out; null if there are none."""
    response = _members(output).get("response")
    return response if isinstance(response, str) else None


def answer_of(kind: RunKind, output: Json) -> tuple[str, Json]:
    """The text of a run's output, and its structured part.

    An agent puts out `{"response": text, "output"?: value}`. The output of everything else is its structured part, and
    the text is its `summary`, or the whole as text.
    """
    members = _members(output)
    if kind == "agent" and "response" in members:
        return str(members["response"] or ""), members.get("output")
    if "summary" in members:
        return str(members["summary"] or ""), output
    if output is None:
        return "", None
    return str(output) if isinstance(output, str) else orjson.dumps(output).decode(), output


def _members(output: Json) -> JsonObject:
    return cast("JsonObject", output) if isinstance(output, dict) else {}


_LOOKED_AT: Final = 20
"""Successful runs of one place that are asked for what a handle held; older ones are forgotten."""
_PAGE: Final = 100
_PAGES: Final = 10
"""Of successful runs of an agent, wherever it was called, among which those of one place are looked for."""


def holding_pins(program: Program) -> Program:
    """A program that fails at its end if a handle that must not be empty is."""

    async def run(context: RunContext, tool: ToolRevision) -> RunEnd:
        ended = in_format(await program(context, tool), context.request)
        if ended.status != "completed":
            return ended
        missing = [
            pin for pin in find_unfilled(agent_pins(tool), calls_of(context.log.events)) if pin.on_missing == "error"
        ]
        return _with_failure(ended, missing) if missing else ended

    return run


async def handles_of(past: EndedRuns, run: Run, tool: ToolRevision, events: Sequence[RunEvent]) -> dict[str, Json]:
    """What the handles of a run hold, as it stands.

    Args:
        past: Has the runs before.
        run: The run.
        tool: The revision that it executes, which has the pins.
        events: The run's own.
    """
    pins, calls = agent_pins(tool) if run.request.kind == "agent" else (), calls_of(events)
    stale = [pin for pin in find_unfilled(pins, calls) if pin.on_missing == "stale_last_success"]
    held = await find_last_runs(past, await place_of(past, run), stale) if stale and run.ended else {}
    earlier = await calls_held(past, stale, held)
    return resolve_pins(pins, calls, {name: call.output for name, call in earlier.items()})


def agent_pins(tool: ToolRevision) -> tuple[PinnedHandle, ...]:
    """The pins of an agent; nothing else has any."""
    implementation = tool.definition.implementation
    return implementation.pins if isinstance(implementation, AgentImplementation) else ()


class HandleOwner(NamedTuple):
    """Who has an agent run, and where: what its handles held before counts for nobody else."""

    realm: str
    made_by: str
    """Whose the runs are."""
    agent: str
    """Its name."""
    caller: str
    """The name of the tool that calls it; empty if it is called from outside."""
    step: str | None
    """Of a caller that is a workflow: the step, whichever element or try of it."""
    before: str
    """Id of the run that looks back; of a step that of its workflow, so that its elements do not see each other."""


async def place_of(past: EndedRuns, run: Run) -> HandleOwner:
    """Where a run of an agent has its place."""
    request = run.request
    parent = None if request.parent_run_id is None else await past.run(request.parent_run_id)
    in_workflow = parent is not None and parent.request.kind == "workflow"
    return HandleOwner(
        realm=run.realm,
        made_by=run.made_by,
        agent=request.tool_name,
        caller=_caller(request),
        step=_step(request) if in_workflow else None,
        before=parent.run_id if parent is not None and in_workflow else run.run_id,
    )


async def find_last_runs(past: EndedRuns, place: HandleOwner, pins: Sequence[PinnedHandle]) -> dict[str, str]:
    """Where handles were filled last: ids of successful runs by the names of handles, of those that any has filled.

    Args:
        past: Has the runs.
        place: Of the agent.
        pins: The handles.
    """
    held: dict[str, str] = {}
    looked_at = 0
    async for earlier in _earlier(past, place):
        wanted = [pin for pin in pins if pin.name not in held]
        if not wanted or looked_at == _LOOKED_AT:
            break
        looked_at += 1
        calls = _successes(await past.events(earlier.run_id))
        held |= {pin.name: earlier.run_id for pin in wanted if select_call(pin.selector, calls) is not None}
    return held


async def calls_held(past: EndedRuns, pins: Iterable[PinnedHandle], held: Mapping[str, str]) -> dict[str, ToolEnvelope]:
    """The calls that have filled handles in the runs that `find_last_runs` has found, by the names of the handles."""
    found = {
        pin.name: select_call(pin.selector, _successes(await past.events(held[pin.name])))
        for pin in pins
        if pin.name in held
    }
    return {name: call for name, call in found.items() if call is not None}


def step_at(position: str) -> str:
    """The step of a workflow that has made a call: positions are `NAME`, `NAME[i]`, and of further tries `….try2`."""
    return position.partition(".")[0].partition("[")[0]


def handle_missing(pins: Sequence[PinnedHandle]) -> ToolError:
    """Why handles that must not be empty, and are, fail what has them."""
    names, tools = [pin.name for pin in pins], sorted({pin.selector.tool for pin in pins})
    message = (
        f"pinned handle {', '.join(map(repr, names))} has no call of {', '.join(map(repr, tools))} that fills it, and "
        "is on_missing=error; let the agent call the tool, or set on_missing to null"
    )
    return error(ErrorCode.VALIDATION_ERROR, Reason.HANDLE_MISSING, message, handles=names)


async def _earlier(past: EndedRuns, place: HandleOwner) -> AsyncIterator[Run]:
    """Successful runs of a place, newest first."""
    before = place.before
    for _ in range(_PAGES):
        page = await past.runs(
            place.realm, tool=place.agent, made_by=place.made_by, status="completed", before=before, limit=_PAGE
        )
        for run in page:
            request = run.request
            if _caller(request) == place.caller and place.step in {None, _step(request)}:
                yield run
        if len(page) < _PAGE:
            return
        before = page[-1].run_id


def _successes(events: Iterable[RunEvent]) -> Sequence[ToolEnvelope]:
    return [call for call in calls_of(events) if call.ok]


def _caller(request: RunRequest) -> str:
    return list(request.callers.values())[-1].partition("@")[0] if request.callers else ""


def _step(request: RunRequest) -> str:
    return step_at(request.parent_position or "")


def _with_failure(ended: RunEnd, missing: Sequence[PinnedHandle]) -> RunEnd:
    failure = handle_missing(missing)
    return msgspec.structs.replace(
        ended, output=None, partial=ended.output, status="failed", stop_reason="error", error=failure
    )

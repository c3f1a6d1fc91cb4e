"""Turns a call of an agent into a step, and lets the readers of its handle read the step.

Pure: a definition and a recorded call in, another document out. The step has the dependencies, condition and failure
handling of the agent's node, the literal arguments of the call, its tool version, and the agent's account. The node
keeps its pins: a handle is never removed.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from toolcrib.contracts import (
    Conflict,
    InvalidInput,
    Json,
    JsonObject,
    NotFound,
    PinnedHandle,
    ToolEnvelope,
    ToolRevision,
)
from toolcrib.contracts.workflows import SCOPE, PastCall, WorkflowDefinition, WorkflowImplementation, WorkflowStep
from toolcrib.core.expressions import literal, rename_references
from toolcrib.core.expressions.values import is_list, is_object
from toolcrib.core.runs import select_call
from toolcrib.infrastructure.secrets import PLACEHOLDER
from toolcrib.workflows.values.graph import WorkflowPlan, edges_of, plan_of, shared_names

_EXPRESSIONS: Final = ("output", "for_each", "condition", "wait", "approval")
"""Fields of a step with `${}` in them, besides `input`."""


class AgentRequestMade(NamedTuple):
    """One time that a step has asked an agent."""

    node: str
    """The step."""
    run_id: str
    """The agent's run."""
    calls: Sequence[ToolEnvelope]
    """That it has made, in the order in which they began."""
    pins: Sequence[PinnedHandle]
    """The handles of the step and of the agent."""
    account: str | None
    """The service account that the agent acted as."""
    tainted: bool
    """Whether who has asked had read what outsiders can write."""


class Chosen(NamedTuple):
    """The call that becomes a step."""

    request: AgentRequestMade
    call: ToolEnvelope
    pins: tuple[str, ...]
    """Names of the handles that will not be read any more."""


class Rewired(NamedTuple):
    """A definition with the step in it."""

    document: JsonObject
    rewired: tuple[str, ...]
    """JSON pointers of what reads the step now."""
    left: tuple[str, ...]
    """JSON pointers of what still reads the handles, as a whole."""


def choose(past: PastCall, requests: Sequence[AgentRequestMade]) -> Chosen:
    """The call that is meant.

    Args:
        past: How it was named.
        requests: The times that agents were asked in the run that was named.

    Raises:
        NotFound: There is no such call, or no such handle.
        InvalidInput: Several calls are meant, or the handle is of another tool's calls.
    """
    if past.call_id is None and past.position is None and past.pin is None:
        raise InvalidInput(
            "no call is named; give its call_id, its position in the agent's run, or a pin that it filled"
        )
    found = [(one, call) for one in requests for call in _meant(past, one)]
    if not found:
        made = ", ".join(f"{call.call_id} ({call.name})" for one in requests for call in one.calls[:10])
        named = past.call_id or past.position or f"that fills {past.pin!r}"
        raise NotFound(f"run {past.run_id} has no call {named}; it has: {made or 'none'}")
    if len(found) > 1:
        where = ", ".join(f"{call.position} of run {one.run_id} (step {one.node!r})" for one, call in found)
        raise InvalidInput(f"several calls match: {where}; name one by its agent's run_id and its call_id")
    one, call = found[0]
    return Chosen(one, call, _handles_of_call(past, one, call))


def check_call(call: ToolEnvelope) -> None:
    """Refuse a call that cannot be repeated exactly.

    Raises:
        Conflict: It did not succeed, or its arguments are not known as they were.
    """
    if not call.ok:
        why = call.error.message if call.error is not None else "it was never executed"
        raise Conflict(f"call {call.call_id} of {call.name!r} is {call.status}: {why}; choose one that succeeded")
    hidden = list(_hidden(arguments_of(call), ""))
    if hidden:
        msg = f"call {call.call_id} of {call.name!r} has a secret in {', '.join(hidden)}, which is not stored"
        raise Conflict(f"{msg}; give the tool a secret of its own, and let the agent call it without")


def check_tool(call: ToolEnvelope, tool: ToolRevision | None) -> None:
    """Refuse a call whose tool could not be called in the same way now.

    Args:
        call: The call.
        tool: Its version, as it is now; null if it is gone.

    Raises:
        NotFound: The version is gone.
        Conflict: It is blocked, disabled, or another one under the same number.
    """
    ref = f"{call.name}@{call.version}"
    if tool is None:
        raise NotFound(
            f"call {call.call_id} was of {ref}, which no longer exists; save it again, or choose another call"
        )
    if tool.status == "blocked" or not tool.definition.enabled:
        state = "blocked" if tool.status == "blocked" else "disabled"
        raise Conflict(f"call {call.call_id} was of {ref}, which is {state}; bring it back, or choose another call")
    if tool.content_hash != call.content_hash:
        msg = f"call {call.call_id} was of {ref} as {call.content_hash}, and {ref} is {tool.content_hash} now"
        raise Conflict(f"{msg}; save what ran under a version of its own, or let the agent call the tool once more")


def check_place(definition: WorkflowDefinition, node: str, step: str) -> WorkflowStep:
    """The step that has asked the agent, if another one can stand beside it.

    Raises:
        NotFound: The workflow has no such step any more.
        InvalidInput: The step is run for each element of a list; or the new name is none.
        Conflict: The new name is taken.
    """
    found = next((one for one in definition.steps if one.name == node), None)
    if found is None:
        raise NotFound(
            f"workflow {definition.name!r} has no step {node!r} any more; bring it back, or choose another call"
        )
    if found.for_each is not None:
        msg = f"step {node!r} asks its agent for each element of a list, and the call has the arguments of one element"
        raise InvalidInput(f"{msg}; write a step with for_each {found.for_each.items} and ${{item}} in its input")
    if not (step.isascii() and step.isidentifier()):
        raise InvalidInput(
            f"{step!r} cannot be the name of a step; use letters, digits and _, not beginning with a digit"
        )
    if step in {*SCOPE, *(name for one in definition.steps for name in (one.name, one.known_as))}:
        raise Conflict(
            f"workflow {definition.name!r} has something named {step!r}; choose another name for the new step"
        )
    return found


def with_step(
    definition: WorkflowDefinition, implementation: WorkflowImplementation, chosen: Chosen, step: str
) -> Rewired:
    """The definition with a last step that makes the call.

    Args:
        definition: The workflow.
        implementation: The same, with the handlers that its steps name.
        chosen: The call; its node is one that `check_place` has let pass.
        step: Name of the new step.

    Raises:
        InvalidInput: The node shares the name under which expressions read it.
    """
    node = next(one for one in definition.steps if one.name == chosen.request.node)
    if chosen.pins and sum(one.known_as == node.known_as for one in definition.steps) > 1:
        msg = f"step {node.name!r} is read as {node.known_as!r}, and so is another one; give it a name of its own"
        raise InvalidInput(f"{msg}, so that it is known which of them an expression reads")
    document: JsonObject = definition.model_dump(mode="json", exclude_defaults=True)
    rewired = [pointer for pin in chosen.pins for pointer in _rewire(document, definition, node, pin, step)]
    plan = plan_of(implementation)
    document["steps"].append(_new_step(node, plan, chosen, step))
    if definition.output is None:  # which steps nothing depends on may be others now
        document["output"] = {name: f"${{steps.{name}.output}}" for name in plan.ends}
    whole = {node.known_as, f"{node.known_as}.handles"}
    left = [
        edge.path
        for edge in edges_of(implementation, lenient=True)
        if edge.kind == "data" and edge.source == node.name and edge.reference in whole
    ]
    return Rewired(document, tuple(rewired), tuple(left) if chosen.pins else ())


def arguments_of(call: ToolEnvelope) -> Json:
    """What a tool was called with: as a person has edited it, if one has."""
    return call.input if call.approved_input is None else call.approved_input


# Inside ---------------------------------------------------------------------------------------------------------------


def _meant(past: PastCall, request: AgentRequestMade) -> Iterator[ToolEnvelope]:
    """The calls of one asking that fit all that was named."""
    if past.node not in {None, request.node}:
        return
    calls = request.calls
    if past.pin is not None and past.call_id is None and past.position is None:
        filling = select_call(_pin(past.pin, request).selector, calls)
        calls = [] if filling is None else [filling]
    for call in calls:
        if past.call_id in {None, call.call_id} and past.position in {None, call.position}:
            yield call


def _handles_of_call(past: PastCall, request: AgentRequestMade, call: ToolEnvelope) -> tuple[str, ...]:
    """Names of the handles that shall be read no more."""
    if past.pin is None:
        filled = (pin.name for pin in request.pins if select_call(pin.selector, request.calls) is call)
        return tuple(dict.fromkeys(filled))
    pin = _pin(past.pin, request)
    if pin.selector.tool != call.name:
        msg = (
            f"handle {pin.name!r} has the output of {pin.selector.tool!r}, and call {call.call_id} is of {call.name!r}"
        )
        raise InvalidInput(f"{msg}; choose a call of {pin.selector.tool!r}")
    return (pin.name,)


def _pin(name: str, request: AgentRequestMade) -> PinnedHandle:
    found = next((pin for pin in request.pins if pin.name == name), None)
    if found is None:
        known = ", ".join(sorted({pin.name for pin in request.pins})) or "none"
        raise NotFound(f"step {request.node!r} has no handle {name!r}; it has: {known}")
    return found


def _hidden(value: Json, pointer: str) -> Iterator[str]:
    """JSON pointers to what was taken out of arguments before they were stored."""
    if isinstance(value, str):
        if PLACEHOLDER in value:
            yield pointer or "the arguments"
    elif is_object(value):
        for name, member in value.items():
            yield from _hidden(member, f"{pointer}/{name}")
    elif is_list(value):
        for place, element in enumerate(value):
            yield from _hidden(element, f"{pointer}/{place}")


def _new_step(node: WorkflowStep, plan: WorkflowPlan, chosen: Chosen, step: str) -> JsonObject:
    request, call, place = chosen.request, chosen.call, plan.nodes[node.name]
    new = WorkflowStep(
        name=step,
        description=f"The call {call.call_id} of run {request.run_id}.",
        tool=f"{call.name}@{call.version}",
        principal_ref=request.account or node.principal_ref,
        on_error=node.on_error,
    )
    document: JsonObject = new.model_dump(mode="json", exclude_defaults=True)
    arguments = literal(arguments_of(call))
    document |= {"input": arguments} if arguments else {}
    if place.comes_from:  # nobody can go to two steps: this one follows the one that is gone to
        return {**document, "depends_on": [node.name]}
    before = [name for name in plan.nodes if name in place.waits_for]
    stands = node.model_dump(mode="json", exclude_defaults=True, include={"join", "condition"})
    return {**document, **stands, **({"depends_on": before} if before else {})}


def _rewire(
    document: JsonObject, definition: WorkflowDefinition, node: WorkflowStep, pin: str, step: str
) -> Iterator[str]:
    """Have the step read instead of a handle; gives JSON pointers of what was changed."""
    path = (node.known_as, "handles", pin)
    for index, reader in enumerate(definition.steps):
        reading, pointer = document["steps"][index], f"/steps/{index}"
        if reader is node:
            if not any(other.goes_to == node.name for other in definition.steps):
                yield from _rewire_field(reading, "output", ("output", *path[1:]), step, pointer)
            continue
        for name in _EXPRESSIONS:
            yield from _rewire_field(reading, name, path, step, pointer)
        for name in reading.get("input", ()):
            if name != "prompt" or node.known_as not in shared_names(reader):
                yield from _rewire_field(reading["input"], name, path, step, f"{pointer}/input")
    yield from _rewire_field(document, "output", path, step, "")


def _rewire_field(reading: JsonObject, field: str, path: Sequence[str], step: str, pointer: str) -> Iterator[str]:
    if field in reading:
        reading[field], changed = rename_references(reading[field], path, step)
        yield from (f"{pointer}/{field}{inner}" for inner in changed)

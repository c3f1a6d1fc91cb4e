"""What expressions read of a step that asks an agent: its stable outputs.

All of them always exist, whatever happened to the step: `response`, `output`, `tools_by_id`, `tool_order`,
`last_tool`, `traces_url`, and `handles` with every pin of the agent and of the step. `traces_url` is null, because
only a server knows its own address. The agent's calls are read from the journal of its run, and only if an expression
needs them; the workflow's journal has only the id of that run and, for a handle with `stale_last_success`, of the run
that filled it.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple, cast

from toolcrib.contracts import AgentOutputs, Json, JsonObject, PinnedHandle, ToolEnvelope, ToolError, ToolRevision
from toolcrib.contracts.workflows import AGENT_HANDLERS, AGENTIC_HANDLERS, SettledStep, WorkflowStep
from toolcrib.core.expressions import references_of
from toolcrib.core.expressions.values import is_list, is_object
from toolcrib.core.runs import (
    HandleOwner,
    agent_pins,
    answer_of,
    calls_held,
    find_last_runs,
    find_unfilled,
    handle_missing,
    outputs_of,
    resolve_pins,
)
from toolcrib.workflows.values.graph import StepNode, WorkflowPlan
from toolcrib.workflows.values.scope import output_mapping
from toolcrib.workflows.values.step_environment import StepEnvironment

HANDLES_HELD: Final = "handles_held"
"""Kind of the `progress_made` event that tells which earlier runs have filled handles that no call has filled now."""

_OF_CALLS: Final = frozenset({"tools_by_id", "tool_order", "last_tool", "handles"})
"""Outputs that only the journal of the agent's run has."""


def asks_agent(step: WorkflowStep, tool: ToolRevision | None) -> bool:
    """Whether a step is an agent's node: it calls an agent or an agentic tool.

    Args:
        step: The step.
        tool: What it calls; null if that is not there.
    """
    if step.handler_ref in AGENTIC_HANDLERS:
        return False
    if tool is not None:
        return tool.definition.has_model
    return step.agent is not None or step.handler_ref in AGENT_HANDLERS


def handles_of(step: WorkflowStep, tool: ToolRevision | None) -> tuple[str, ...]:
    """Names of what expressions read of an agent's node, always the same and its pins; empty for any other step.

    Args:
        step: The step.
        tool: As for `asks_agent`.
    """
    if not asks_agent(step, tool):
        return ()
    pins = (*(() if tool is None else agent_pins(tool)), *step.pins)
    return (*AgentOutputs.model_fields, "output", *dict.fromkeys(f"handles.{pin.name}" for pin in pins))


class _Asking(NamedTuple):
    """One time that an agent was asked, or was to be."""

    position: str
    run_id: str | None
    """The agent's run; null if it came to none, or nobody reads its calls."""
    looks_back: str
    """Id of the run of the workflow that has asked it."""
    is_read: bool
    """Whether an expression reads what only the agent's run has."""


class AgentNodes:
    """The steps of one run that ask agents.

    Args:
        setting: The run.
        plan: Its graph.
    """

    def __init__(self, setting: StepEnvironment, plan: WorkflowPlan) -> None:
        self._setting = setting
        self._read: dict[str, set[str]] = {}
        """What expressions read of steps, by their names."""
        for edge in plan.edges:
            if edge.kind == "data" and edge.reference is not None:
                self._read.setdefault(edge.source, set()).add(edge.reference)

    def runs_of(self, node: StepNode, envelope: ToolEnvelope) -> tuple[str, ...]:
        """The id of the agent's run that a call has begun; none of a call that has begun none."""
        run_id = envelope.metadata.get("run_id")
        return (run_id,) if self._asks_agent(node) and isinstance(run_id, str) else ()

    async def lacking(self, node: StepNode, envelope: ToolEnvelope) -> ToolError | None:
        """Why a step fails whose call has succeeded: a handle of it that must not be empty is; null if none is."""
        pins = [pin for pin in node.step.pins if pin.on_missing == "error"]
        if not pins or not self._asks_agent(node):
            return None
        missing = find_unfilled(pins, _calls(await self._outputs(*self.runs_of(node, envelope))))
        return handle_missing(missing) if missing else None

    async def raw_output(self, node: StepNode, envelope: ToolEnvelope, position: str) -> Json:
        """What the `output` of a step reads as `output`, of a call that has succeeded.

        Args:
            node: The step.
            envelope: Of its call.
            position: Where it stands in the journal, without its tries: `NAME`, or `NAME[i]`.
        """
        if not self._asks_agent(node):
            return envelope.output
        read = {found for found in references_of(self._mapping(node)) if found.partition(".")[0] == "output"}
        run_id = self._setting.context.run_id
        asking = _Asking(position, _at(self.runs_of(node, envelope), 0), run_id, any(map(_is_of_calls, read)))
        return await self._view(node, envelope.output, asking)

    async def visible_output(self, node: StepNode, settled: SettledStep) -> Json:
        """What expressions read under the name of a step that has ended: its output, and what stands beside it."""
        if not self._asks_agent(node) or self._mapping(node) is not None:
            return settled.output
        name, run_ids = node.step.name, settled.agent_runs
        looks_back = settled.reused or self._setting.context.run_id
        is_read = any(map(_is_of_calls, self._read.get(name, ())))
        if node.step.for_each is None:
            asking = _Asking(name, _at(run_ids, 0), looks_back, is_read)
            return await self._view(node, settled.output, asking)
        if settled.items is None:
            return settled.output
        outputs = settled.output if is_list(settled.output) else [None] * settled.items
        askings = [
            _Asking(f"{name}[{place}]", _at(run_ids, place), looks_back, is_read) for place in range(settled.items)
        ]
        return [await self._view(node, *each) for each in zip(outputs, askings, strict=True)]

    # Inside -----------------------------------------------------------------------------------------------------------

    def _asks_agent(self, node: StepNode) -> bool:
        return node.callee is not None and asks_agent(node.step, self._tool(node))

    def _tool(self, node: StepNode) -> ToolRevision | None:
        found = self._setting.callees.get(node.callee or "")
        return found if isinstance(found, ToolRevision) else None

    def _mapping(self, node: StepNode) -> Json:
        return output_mapping(node.step, self._setting.implementation.handlers)

    async def _view(self, node: StepNode, output: Json, asking: _Asking) -> Json:
        """The stable outputs of one asking; of an agentic tool that has put out no object, what it has put out."""
        if output is not None and not is_object(output):
            return output
        tool = self._tool(node)
        kind = "agent" if tool is None else tool.definition.run_kind
        text, structured = answer_of(kind, output)
        outputs = await self._outputs(asking.run_id if asking.is_read else None)
        fields = {**outputs.model_dump(mode="json"), "response": text or outputs.response}
        handles = await self._handles(node, outputs, asking)
        return {**(output or {}), **fields, "output": structured, "handles": handles}

    async def _outputs(self, run_id: str | None = None) -> AgentOutputs:
        """What the journal of an agent's run says; nothing of no run, or of one that is not there any more."""
        context = self._setting.context
        events = () if run_id is None else await context.past.events(run_id)
        return outputs_of(events) if events and events[0].realm == context.run.realm else AgentOutputs()

    async def _handles(self, node: StepNode, outputs: AgentOutputs, asking: _Asking) -> JsonObject:
        """What the pins hold, those of the step before those of the agent; null where an expression reads no pin."""
        tool, empty = self._tool(node), dict.fromkeys(self._handles_read(node))
        pins = {pin.name: pin for pin in (*(() if tool is None else agent_pins(tool)), *node.step.pins)}
        if not asking.is_read:
            return {**empty, **dict.fromkeys(pins)}
        calls = _calls(outputs)
        stale = [pin for pin in find_unfilled(pins.values(), calls) if pin.on_missing == "stale_last_success"]
        return {**empty, **resolve_pins(pins.values(), calls, await self._earlier_handles(node, stale, asking))}

    def _handles_read(self, node: StepNode) -> list[str]:
        paths = (reference.split(".") for reference in self._read.get(node.step.name, ()))
        return [path[2] for path in paths if len(path) > 2 and path[1] == "handles"]

    async def _earlier_handles(self, node: StepNode, pins: Sequence[PinnedHandle], asking: _Asking) -> dict[str, Json]:
        """What handles held in the last successful run that has filled them, which is looked for once."""
        context = self._setting.context
        if not pins:
            return {}
        place = HandleOwner(
            realm=context.run.realm,
            made_by=context.run.made_by,
            agent=(node.callee or "").partition("@")[0],
            caller=context.request.tool_name,
            step=node.step.name,
            before=asking.looks_back,
        )

        async def find() -> Json:
            return dict(await find_last_runs(context.past, place, pins))

        held = cast("dict[str, str]", await context.once(f"handles:{asking.position}", HANDLES_HELD, find))
        calls = await calls_held(context.past, pins, held)
        for name, call in calls.items():
            if call.tainted and context.tainted_by is None:
                context.tainted_by = f"{call.name} at {call.position} of run {held[name]}"
        return {name: call.output for name, call in calls.items()}


def _at(run_ids: Sequence[str | None], place: int) -> str | None:
    return run_ids[place] if place < len(run_ids) else None


def _calls(outputs: AgentOutputs) -> list[ToolEnvelope]:
    return [outputs.tools_by_id[call_id] for call_id in outputs.tool_order]


def _is_of_calls(reference: str) -> bool:
    """Whether what an expression reads of a step may be something that only the agent's run has."""
    root, _, path = reference.partition(".")
    return root != "steps" and (not path or path.partition(".")[0] in _OF_CALLS)

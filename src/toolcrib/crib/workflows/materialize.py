"""Finds calls that agents made inside a workflow, so that one of them can become a step of its own.

This module reads the runs; `toolcrib.workflows` makes the step.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import unified_diff

from toolcrib.contracts import AgentImplementation, InvalidInput, JsonObject, Principal, Run, RunEvent
from toolcrib.contracts.workflows import (
    Materialized,
    MaterializePreview,
    PastCall,
    WorkflowDefinition,
    WorkflowDraft,
    WorkflowGraph,
    WorkflowImplementation,
)
from toolcrib.core.runs import calls_of, step_at
from toolcrib.crib.agents.executions import Executions
from toolcrib.crib.container.container import CribServices
from toolcrib.workflows import (
    AgentRequestMade,
    Chosen,
    Rewired,
    check_call,
    check_place,
    check_tool,
    choose,
    read_settled_steps,
    with_step,
)


@dataclass(frozen=True, slots=True)
class Material:
    """A call that was found, and the definition with a step that makes it."""

    chosen: Chosen
    step: str
    rewired: Rewired
    note: str
    warnings: tuple[str, ...]
    tainted_by: str | None
    """What the agent had read that outsiders can write before it made the call."""

    def to_preview(
        self, now: WorkflowDefinition, before: WorkflowDraft | None, graph: WorkflowGraph
    ) -> MaterializePreview:
        """What would change.

        Args:
            now: The definition without the step.
            before: The draft; null if there is none.
            graph: Of the definition with the step.
        """
        request, call = self.chosen.request, self.chosen.call
        old, new = _as_yaml(now.document()).splitlines(), _as_yaml(self.rewired.document).splitlines()
        return MaterializePreview(
            definition=self.rewired.document,
            step=self.step,
            node=request.node,
            tool=f"{call.name}@{call.version}",
            call_id=call.call_id,
            run_id=request.run_id,
            rewired=self.rewired.rewired,
            left=self.rewired.left,
            warnings=self.warnings,
            note=self.note,
            diff="\n".join(unified_diff(old, new, "now", "then", lineterm="")),
            problems=graph.problems,
            before_revision=None if before is None else before.revision,
        )

    def to_result(self, saved: WorkflowDraft, before: WorkflowDraft | None) -> Materialized:
        """What has changed, once the draft is saved.

        Args:
            saved: The draft.
            before: What it was; null if there was none.
        """
        request, call = self.chosen.request, self.chosen.call
        return Materialized(
            definition=saved.definition,
            step=self.step,
            node=request.node,
            tool=f"{call.name}@{call.version}",
            call_id=call.call_id,
            run_id=request.run_id,
            rewired=self.rewired.rewired,
            left=self.rewired.left,
            warnings=self.warnings,
            note=self.note,
            draft_revision=saved.revision,
            before_revision=None if before is None else before.revision,
        )


def _as_yaml(document: JsonObject) -> str:
    import yaml  # noqa: PLC0415 - heavy

    return yaml.safe_dump(document, sort_keys=True, allow_unicode=True)


class Materials:
    """The calls of agents in a crib's workflows.

    Args:
        parts: The parts of the crib.
        executions: The crib's executions, which know which runs a principal may read.
    """

    def __init__(self, parts: CribServices, executions: Executions) -> None:
        self._registry = parts.registry
        self._journal = parts.outside.store.journal
        self._executions = executions

    async def material(
        self,
        definition: WorkflowDefinition,
        implementation: WorkflowImplementation,
        past: PastCall,
        step: str,
        who: Principal,
    ) -> Material:
        """The definition with a step that makes a past call.

        Args:
            definition: The workflow as it is now.
            implementation: The same, with the handlers that its steps name.
            past: The call.
            step: Name of the step.
            who: The principal that asks.

        Raises:
            NotFound: There is no such run, call, step or handle, or the tool is gone.
            PermissionDenied: The run is another's.
            InvalidInput: Several calls match, or the step cannot be placed there.
            Conflict: The call cannot be repeated exactly, or the name is taken.
        """
        chosen = choose(past, await self._agent_requests(definition, past, who))
        node, call = check_place(definition, chosen.request.node, step), chosen.call
        check_call(call)
        tool = self._registry.find_by_ref(who.realm, f"{call.name}@{call.version}")
        check_tool(call, tool)
        rewired = with_step(definition, implementation, chosen, step)
        note = (
            f"Step {step!r} makes the call {call.call_id} of {call.name}@{call.version} in run {chosen.request.run_id}"
        )
        note += f"; read in place of {', '.join(chosen.pins)}" if rewired.rewired else ""
        warnings: list[str] = []
        if call.side_effects == "writes":
            warnings.append(
                f"{call.name!r} writes, and the agent of step {node.name!r} may still call it itself: take it out of "
                "the agent's tools if it shall take effect once"
            )
        return Material(chosen, step, rewired, f"{note}.", tuple(warnings), _taint_source(chosen))

    async def _agent_requests(
        self, definition: WorkflowDefinition, past: PastCall, who: Principal
    ) -> Sequence[AgentRequestMade]:
        """The times that steps have asked agents in the run that is named, which may be an agent's own."""
        run = await self._executions.run_for(past.run_id, who, "read")
        if run.request.kind != "workflow":
            return [await self._of_agent(definition, run)]
        if run.request.tool_name != definition.name:
            msg = f"run {run.run_id} is of workflow {run.request.tool_name!r}, and not of {definition.name!r}"
            raise InvalidInput(f"{msg}; name a run of {definition.name!r}")
        requests: list[AgentRequestMade] = []
        for run_id, node in _agent_runs(await self._journal.events(run.run_id)).items():
            nested = await self._journal.run(run_id)
            if past.node in {None, node} and nested.request.kind in {"agent", "agentic"}:
                requests.append(await self._asking(definition, nested, node))
        return requests

    async def _of_agent(self, definition: WorkflowDefinition, run: Run) -> AgentRequestMade:
        request = run.request
        parent = None if request.parent_run_id is None else await self._journal.run(request.parent_run_id)
        if parent is None or parent.request.kind != "workflow" or parent.request.tool_name != definition.name:
            msg = f"run {run.run_id} was not begun by a step of workflow {definition.name!r}"
            raise InvalidInput(f"{msg}; name the run of an agent that one of its steps has asked")
        return await self._asking(definition, run, step_at(request.parent_position or ""))

    async def _asking(self, definition: WorkflowDefinition, run: Run, node: str) -> AgentRequestMade:
        agent = (await self._registry.get_revision(run.realm, run.request.content_hash)).definition.implementation
        own = next((step.pins for step in definition.steps if step.name == node), ())
        is_agent = isinstance(agent, AgentImplementation)
        return AgentRequestMade(
            node=node,
            run_id=run.run_id,
            calls=calls_of(await self._journal.events(run.run_id)),
            pins=(*own, *(agent.pins if is_agent else ())),
            account=agent.principal_ref if is_agent else None,
            tainted=run.request.tainted,
        )


def _taint_source(chosen: Chosen) -> str | None:
    request = chosen.request
    if request.tainted:
        return f"what the caller of run {request.run_id} had read"
    before = request.calls[: request.calls.index(chosen.call)]
    return next((f"{call.name} at {call.position} of run {request.run_id}" for call in before if call.tainted), None)


def _agent_runs(events: Iterable[RunEvent]) -> dict[str, str]:
    """Steps by the ids of the runs that their calls have started, without elements of lists."""
    log = list(events)
    found = {
        run_id: call.position.partition(".")[0]
        for call in calls_of(log)
        if isinstance(run_id := call.metadata.get("run_id"), str) and "[" not in call.position
    }
    for name, settled in read_settled_steps(log).items():
        if settled.items is None:
            found |= dict.fromkeys(filter(None, settled.agent_runs), name)
    return found

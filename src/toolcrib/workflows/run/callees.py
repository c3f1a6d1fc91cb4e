"""Resolves the references of a workflow in one run.

The result depends only on what the run has pinned and on those revisions, so a resumed run finds the same tools and
calls. The guard handles blocked and disabled tools at each call.
"""

from collections.abc import Mapping

from toolcrib.contracts import ErrorCode, NotFound, Reason, ToolError, ToolRevision
from toolcrib.contracts.workflows import WorkflowImplementation
from toolcrib.core.executor import error
from toolcrib.core.policy import is_in_service
from toolcrib.core.registry import Lock, Registry, Transition, callees_without_model
from toolcrib.core.runs import RunContext
from toolcrib.workflows.values.step_environment import Callee


async def callees_of(context: RunContext, workflow: WorkflowImplementation, registry: Registry) -> Mapping[str, Callee]:
    """The tools of a run by reference. What is wrong with one matters when a step comes to it.

    Args:
        context: Of the run.
        workflow: What it runs.
        registry: Finds revisions, and compares them.
    """
    callees = _Callees(context, workflow, registry)
    return {ref: await callees.of(ref) for ref in workflow.callees}


class _Callees:
    def __init__(self, context: RunContext, workflow: WorkflowImplementation, registry: Registry) -> None:
        self._realm, self._pins = context.run.realm, context.request.pins
        self._workflow = workflow
        self._registry = registry
        self._lock = Lock(workflow, registry, self._realm)

    async def of(self, ref: str) -> Callee:
        """The tool that is called, unless it, or what it calls in its turn, is something else than was published."""
        found = await self._resolve(ref)
        waiting = [found]
        seen = {ref}
        while waiting:
            tool = waiting.pop()
            if isinstance(tool, ToolError):
                return tool
            for inner in callees_without_model(tool.definition) if self._workflow.bound else ():
                if inner not in seen:
                    seen.add(inner)
                    waiting.append(await self._resolve(inner))
        return found

    async def _resolve(self, ref: str) -> Callee:
        if ref not in self._pins:  # it was not there when the run was made
            locked = self._lock.of(ref)
            if locked.tool is None or locked.cause is not None:
                return _refusal(ref, locked.cause or Reason.TOOL_NOT_FOUND, str(locked.reason))
            return locked.tool
        tool = await self._registry.get_revision(self._realm, self._pins[ref])
        bound = self._workflow.bound.get(ref)
        if bound is not None and "workflow_step" not in tool.definition.available_as:
            reason = f"tool {tool.ref!r} is not available as workflow_step any more; publish the workflow without it"
            return _refusal(ref, Reason.TOOL_NOT_ALLOWED, reason)
        if bound in (None, tool.content_hash) or not is_in_service(tool):
            return tool
        return await self._check_drift(ref, bound, tool)

    async def _check_drift(self, ref: str, bound: str, tool: ToolRevision) -> Callee:
        """A newer revision than the bound one, if the lock lets it pass."""
        try:
            before = await self._registry.get_revision(self._realm, bound)
        except NotFound:
            reason = f"what tool {tool.name!r} was when the workflow was published is not known any more"
        else:
            way = Transition(self._registry, before, tool)
            if not way.obstacles:
                return tool
            reason = f"tool {tool.name!r} has changed ({way.words}), and what it was can not be used any more"
        return _refusal(ref, Reason.TOOL_DRIFTED, f"{reason}; publish the workflow again")


def _refusal(ref: str, cause: Reason, reason: str) -> ToolError:
    return error(ErrorCode.POLICY_DENIED, cause, reason, tool=ref)

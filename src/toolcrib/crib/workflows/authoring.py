"""The operations behind the tools that write workflows: find what a step can call, and save a draft.

Both act as the caller: tools that this principal may not execute are not found and cannot be used in a draft. Only a
person publishes.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import TYPE_CHECKING, Final, cast

from toolcrib.contracts import (
    Conflict,
    ErrorCode,
    InvalidInput,
    JsonObject,
    NotFound,
    Principal,
    Reason,
    ToolError,
    ToolRevision,
)
from toolcrib.contracts.specs.agents import FIND_WORKFLOW_TOOLS, SAVE_WORKFLOW_DRAFT
from toolcrib.contracts.workflows import WorkflowDraft, WorkflowGraph, WorkflowProblem
from toolcrib.core.executor import CallFailed, Dispatch, Outcome, error
from toolcrib.core.policy import is_in_service, permit, permits
from toolcrib.core.registry import Registry
from toolcrib.kinds.python.runtime import PythonRuntime
from toolcrib.workflows import checks, function_of

if TYPE_CHECKING:
    from toolcrib.crib.workflows.workflows import Workflows

_MOST_FOUND: Final = 8
_MOST_TOLD: Final = 30
"""Problems in one message."""
_NEXT: Final = "A person looks at it and publishes it; it cannot run before that. Tell whoever asked for it its name."


class Authoring:
    """Does what the tools for writing workflows say.

    Args:
        workflows_of: The workflows of the crib, as a principal works on them.
        registry: Finds tools.
    """

    def __init__(self, workflows_of: Callable[[Principal], Workflows], registry: Registry) -> None:
        self._workflows_of = workflows_of
        self._registry = registry

    def bind(self, functions: PythonRuntime) -> None:
        """Become what runs them."""
        functions.bind_own(function_of(FIND_WORKFLOW_TOOLS), self.find)
        functions.bind_own(function_of(SAVE_WORKFLOW_DRAFT), self.save)

    async def find(self, dispatch: Dispatch) -> Outcome:
        """Tools by name or by what they do, as far as the principal may execute them in a workflow."""
        who = dispatch.context.principal
        wanted = cast("list[str]", dispatch.input.get("names", []))
        named = [self._registry.find_by_ref(who.realm, name) for name in wanted]
        found = [tool for tool in named if tool is not None and _is_usable(tool, who)]
        query = dispatch.input.get("query")
        if isinstance(query, str):
            found += await self._search(query, who, known=frozenset(tool.name for tool in found))
        hint = "A step calls one of these by its name." if found else "Nothing fits. Use other words."
        return Outcome({"tools": [_describe_tool(tool) for tool in found], "hint": hint})

    async def save(self, dispatch: Dispatch) -> Outcome:
        """Save a draft as the calling agent, or raise with all its problems."""
        context, given = dispatch.context, cast("JsonObject", dispatch.input["definition"])
        who, author = context.principal, _author(dispatch)
        name = str(given.get("name", ""))
        if not permits(who.grants, uri := f"ai://workflows/{name}/write"):
            message = (
                f"principal {who.id!r} has no grant for {uri!r}; take a name that it may write, or ask for the grant"
            )
            raise CallFailed(error(ErrorCode.POLICY_DENIED, Reason.PERMISSION_MISSING, message))
        written: JsonObject = {**given, "source": "authored_by_agent" if author else "manual"}
        try:
            await self._check(written, who)
            draft = await self._workflows_of(who).draft(
                written,
                note=str(dispatch.input.get("note", "")),
                authored_by=author,
                run_id=context.run_id,
                tainted_by=context.tainted_by,
                after=await self._revision(name, author, who),
            )
        except (InvalidInput, Conflict) as problem:
            raise CallFailed(_invalid(problem)) from problem
        return Outcome(_draft_summary(draft, await self._workflows_of(who).check(draft.definition)))

    async def _search(self, query: str, who: Principal, *, known: frozenset[str]) -> list[ToolRevision]:
        index = await self._registry.index(who.realm).ensure_search()
        hits = (self._registry.find_by_ref(who.realm, hit.name) for hit in index.find(query, limit=_MOST_FOUND * 4))
        fitting = (tool for tool in hits if tool is not None and tool.name not in known and _is_usable(tool, who))
        return list(islice(fitting, _MOST_FOUND))

    async def _check(self, written: JsonObject, who: Principal) -> None:
        """Refuse a definition with all its problems, including tools that the principal may not execute."""
        graph = await self._workflows_of(who).check(written)
        problems = [problem for problem in graph.problems if problem.is_error]
        for place, node in enumerate(graph.nodes):
            tool = None if node.reference is None else self._registry.find_by_ref(who.realm, node.reference)
            denied = None if tool is None else permit(tool, who)
            if denied is not None:
                message = f"step {node.name!r} calls {node.reference!r}: {denied.message}"
                problems.append(WorkflowProblem(path=f"/steps/{place}", message=message, step=node.name))
        if problems:
            raise checks.refusal(graph.workflow, problems)

    async def _revision(self, name: str, author: str | None, who: Principal) -> int:
        """Number of the draft that is written over: an agent writes over drafts of its own only.

        Raises:
            Conflict: Another principal has written the draft of this name.
        """
        try:
            present = await self._workflows_of(who).get_draft(name)
        except NotFound:
            return 0
        if present.authored_by != author:
            whose = f"agent {present.authored_by!r}" if present.authored_by else "a person"
            raise Conflict(f"{whose} has written the draft {name!r}; choose another name")
        return present.revision


def _author(dispatch: Dispatch) -> str | None:
    """Name of the agent whose run makes the call; null for a person who calls the tool."""
    callers = list(dispatch.context.callers.values())
    return callers[-1].partition("@")[0] if callers else None


def _is_usable(tool: ToolRevision, who: Principal) -> bool:
    """Whether a step of this principal can call a tool."""
    return "workflow_step" in tool.definition.available_as and is_in_service(tool) and permit(tool, who) is None


def _describe_tool(tool: ToolRevision) -> JsonObject:
    definition = tool.definition
    return {
        "name": tool.name,
        "description": definition.description,
        "side_effects": definition.side_effects,
        "input_schema": definition.input_schema,
        "output_schema": definition.output_schema,
    }


def _invalid(problem: InvalidInput | Conflict) -> ToolError:
    """One error with all problems and their places, so that all can be corrected together."""
    problems = list(problem.problems) if isinstance(problem, InvalidInput) else []
    lines = [f"{one['path'] or '/'}: {one['problem']}" for one in problems[:_MOST_TOLD]]
    message = "\n".join(["the draft was not saved:", *lines]) if lines else f"the draft was not saved: {problem}"
    return error(ErrorCode.VALIDATION_ERROR, Reason.INPUT_SCHEMA_MISMATCH, message, problems=problems)


def _draft_summary(draft: WorkflowDraft, graph: WorkflowGraph) -> JsonObject:
    return {
        "name": draft.definition.name,
        "revision": draft.revision,
        "status": "draft",
        "steps": [{"name": node.name, "kind": node.kind, "calls": node.reference} for node in graph.nodes],
        "warnings": [str(problem) for problem in draft.problems],
        "next": _NEXT,
    }

"""The revision that a run executes: the one that it names, and in a fork that one with the fork's changes.

Nothing is stored: the changes stand in the run's request, so every process, and every replay, makes the same of them.
Another model is no change of this kind: it stands in the request itself.
"""

from typing import TypeAlias, TypeVar

from pydantic import ValidationError

from toolcrib.contracts import (
    AgenticImplementation,
    AgentImplementation,
    AllocatedTool,
    InvalidInput,
    Json,
    JsonObject,
    RunRequest,
    ToolRevision,
)
from toolcrib.contracts.runs.forks import ForkChanges, PolicyChange
from toolcrib.contracts.workflows import WorkflowImplementation

_Program: TypeAlias = AgenticImplementation | AgentImplementation | WorkflowImplementation
"""What has limits and rules of its own."""
_ProgramT = TypeVar("_ProgramT", bound=_Program)


def as_asked(tool: ToolRevision, request: RunRequest) -> ToolRevision:
    """The revision as a run executes it.

    Args:
        tool: The revision that the request names.
        request: What the run was asked.

    Raises:
        InvalidInput: The changes do not fit the tool.
    """
    return tool if request.fork is None else _changed(tool, request.fork.changes)


def _changed(tool: ToolRevision, changes: ForkChanges) -> ToolRevision:
    """The revision with changes, under the content hash that its definition has then.

    Raises:
        InvalidInput: It has nothing that could be changed so, or would not be well formed.
    """
    if changes.are_none:
        return tool
    implementation = tool.definition.implementation
    if not isinstance(implementation, AgenticImplementation | AgentImplementation | WorkflowImplementation):
        msg = f"{tool.ref!r} is of kind {implementation.kind!r}, which has no prompt, model or policy that could change"
        raise InvalidInput(msg)
    inside: _Program = implementation
    if changes.policy is not None:
        inside = _with_policy(inside, changes.policy)
    if changes.prompt is not None or changes.llm:
        inside = _with_model(inside, changes, tool.ref)
    definition = tool.definition.model_copy(update={"implementation": inside})
    return tool.model_copy(update={"definition": definition, "content_hash": definition.content_hash()})


def _with_model(implementation: _Program, changes: ForkChanges, ref: str) -> _Program:
    if isinstance(implementation, WorkflowImplementation):
        msg = f"workflow {ref!r} has no prompt and no model of its own; fork the run of the agent that it asks"
        raise InvalidInput(msg)
    update: JsonObject = {} if changes.prompt is None else {"system_prompt": changes.prompt}
    if changes.llm:
        update["llm"] = {**implementation.llm.model_dump(mode="json"), **changes.llm}
    return _checked(implementation, update)


def _with_policy(implementation: _Program, policy: PolicyChange) -> _Program:
    update: JsonObject = {}
    if policy.limits:
        update["limits"] = {**implementation.limits.model_dump(mode="json"), **policy.limits}
    if policy.tools is not None:
        _require(implementation, "tools")
        update["tools"] = [AllocatedTool(tool=ref) for ref in policy.tools]
    rules: dict[str, Json] = {
        "guardrails": policy.guardrails,
        "side_effects": policy.side_effects,
        "requires_approval": policy.requires_approval,
    }
    for name, value in rules.items():
        if value is not None:
            _require(implementation, name)
            update[name] = value
    return _checked(implementation, update)


def _require(implementation: _Program, field: str) -> None:
    if field not in type(implementation).model_fields:
        msg = f"a tool of kind {implementation.kind!r} has no {field!r} that a fork could change; leave it out"
        raise InvalidInput(msg)


def _checked(implementation: _ProgramT, update: JsonObject) -> _ProgramT:
    """The implementation with other fields, as if it had been read so."""
    content = {name: getattr(implementation, name) for name in type(implementation).model_fields}
    try:
        return type(implementation).model_validate({**content, **update})
    except ValidationError as problem:
        raise InvalidInput(f"the changed definition is not valid: {_first(problem)}") from problem


def _first(problem: ValidationError) -> str:
    found = problem.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(map(str, found['loc']))}: {found['msg'].removeprefix('Value error, ')}"

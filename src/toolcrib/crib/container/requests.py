"""Makes the request of a run from a caller's input, and checks in advance whether the run would be refused.

What follows from the tool alone, such as the revisions that its runs pin, is worked out once for each state of the
catalogue.
"""

from typing import NamedTuple

from toolcrib.contracts import (
    PLAN_FORMAT,
    InvalidDefinition,
    InvalidInput,
    JsonObject,
    Principal,
    RunKind,
    RunRequest,
    ToolError,
    ToolRevision,
)
from toolcrib.contracts.base.base import infinite_number
from toolcrib.contracts.workflows import Rerun
from toolcrib.core.executor import CallFailed, CallRequest, Executor
from toolcrib.core.registry import Registry, SchemaValidator, compile_schema, pins_of
from toolcrib.core.runs import outside_call


def request_of(
    tool: ToolRevision,
    arguments: JsonObject,
    who: Principal,
    registry: Registry,
    *,
    conversation_id: str | None = None,
    session_id: str | None = None,
    dry_run: bool = False,
    as_call: bool = False,
    rerun: Rerun | None = None,
) -> RunRequest:
    """The request of a run; `as_call` makes one call of the tool, whatever its kind.

    A run that is no call reads its input with the defaults of the tool's schema, as a call does.

    Raises:
        InvalidInput: A number of the arguments is not finite.
    """
    pointer = infinite_number(arguments)
    if pointer is not None:
        msg = f"the argument {pointer} of {tool.name!r} is not a finite number; pass one that JSON can write"
        raise InvalidInput(msg)
    plan = _plan_of(tool, registry)
    kind: RunKind = "tool" if as_call else plan.kind
    return RunRequest(
        kind=kind,
        plan_format=PLAN_FORMAT,
        tool=plan.ref,
        content_hash=tool.content_hash,
        pins=pins_of(tool, registry) if plan.pins is None else plan.pins,
        input=arguments if kind == "tool" or plan.schema is None else plan.schema.with_defaults(arguments),
        principal=who,
        conversation_id=conversation_id,
        session_id=session_id,
        dry_run=dry_run,
        rerun=rerun,
    )


def refusal_of(
    executor: Executor, tool: ToolRevision, arguments: JsonObject, who: Principal, *, test: bool = False
) -> ToolError | None:
    """Why a call, or its caller's test, would be refused: arguments, policy, permission. Null if it would run."""
    try:
        executor.admit(CallRequest("call", tool.name, arguments, tool.content_hash), outside_call(who, test=test))
    except CallFailed as refusal:
        return refusal.error
    return None


def refusal_of_run(
    executor: Executor, tool: ToolRevision, request: RunRequest, *, test: bool = False
) -> ToolError | None:
    """Why a run would be refused before it begins. One that is a single call begins, and judges that inside."""
    if request.kind == "tool":
        return None
    return refusal_of(executor, tool, request.input, request.principal, test=test)


class _RequestPlan(NamedTuple):
    """What the requests of one revision have in common."""

    tool: ToolRevision
    kind: RunKind
    """Of its runs that are no calls."""
    ref: str
    pins: dict[str, str] | None
    """Null for a workflow: what its lock allows also depends on the functions of this process."""
    schema: SchemaValidator | None
    """Of the input; null if it cannot be compiled: admission tells what is wrong with it."""


def _plan_of(tool: ToolRevision, registry: Registry) -> _RequestPlan:
    """The plan of a revision; what was worked out for this very one, if nothing has changed since."""
    realm_index, key = registry.index(tool.realm), ("request", tool.content_hash)
    known: _RequestPlan | None = realm_index.derived.get(key)
    if known is not None and known.tool is tool:
        return known
    definition = tool.definition
    run_kind = definition.run_kind
    is_workflow = run_kind == "workflow"
    try:
        schema = compile_schema(definition.input_schema)
    except InvalidDefinition:
        schema = None
    plan = _RequestPlan(
        tool=tool,
        kind=run_kind if definition.has_model or is_workflow else "tool",
        ref=tool.ref,
        pins=None if is_workflow else pins_of(tool, registry),
        schema=schema,
    )
    realm_index.derive(key, plan)
    return plan

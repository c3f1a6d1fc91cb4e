"""Makes the request of a run from a caller's input, and checks in advance whether the run would be refused.

What follows from the tool alone, such as the revisions that its runs pin, is worked out once for each state of the
catalogue.
"""

from math import isfinite
from typing import Final, cast

from msgspec import Struct, field

from toolcrib.contracts import (
    PLAN_FORMAT,
    InvalidDefinition,
    InvalidInput,
    Json,
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
from toolcrib.core.executor.envelope import plain
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
    pointer = None if _is_finite(arguments) else infinite_number(arguments)
    if pointer is not None:
        msg = f"the argument {pointer} of {tool.name!r} is not a finite number; pass one that JSON can write"
        raise InvalidInput(msg)
    plan = _plan_of(tool, registry)
    kind: RunKind = "tool" if as_call else plan.kind
    run_input = arguments if kind == "tool" or plan.schema is None else plan.schema.with_defaults(arguments)
    return RunRequest(
        kind=kind,
        plan_format=PLAN_FORMAT,
        tool=plan.ref,
        content_hash=tool.content_hash,
        pins=pins_of(tool, registry) if plan.pins is None else plan.pins,
        input=run_input,
        principal=who,
        conversation_id=conversation_id,
        session_id=session_id,
        dry_run=dry_run,
        rerun=rerun,
    )


_FINITE: Final = frozenset({str, int, bool, type(None)})
"""Types of values that are no infinite number and have none in them."""


def _is_finite(arguments: JsonObject) -> bool:
    """Whether a look at the values is enough to know that none of them is an infinite number, or has one in it."""
    if type(arguments) is not dict:
        return False
    for value in arguments.values():
        if type(value) not in _FINITE and not (type(value) is float and isfinite(value)):
            return False
    return True


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
    executor: Executor, tool: ToolRevision, request: RunRequest, *, test: bool = False, registry: Registry | None = None
) -> ToolError | None:
    """Why a run would be refused before it begins. One that is a single call begins, and judges that inside.

    Args:
        executor: Admits calls.
        tool: What the run executes.
        request: Of the run.
        test: The run is its caller's test of the tool.
        registry: Knows whom the tool was open to before, so that only the arguments are judged again.
    """
    if request.kind == "tool":
        return None
    who = request.principal
    plan = None if test or registry is None or who.kind == "service" else _plan_of(tool, registry)
    if plan is not None and (who.realm, who.grants) in plan.open_to and plan.accepts(request.input):
        return None
    refusal = refusal_of(executor, tool, request.input, who, test=test)
    if plan is not None and refusal is None:
        if len(plan.open_to) >= _MOST_GRANTS:
            plan.open_to.clear()
        plan.open_to.add((who.realm, who.grants))
    return refusal


_MOST_GRANTS: Final = 100
"""Sets of grants that are remembered with a tool; when there are more, all are judged anew."""


class _RequestPlan(Struct):
    """What the requests of one revision have in common, for as long as nothing changes in its realm."""

    tool: ToolRevision
    kind: RunKind
    """Of its runs that are no calls."""
    ref: str
    pins: dict[str, str] | None
    """Null for a workflow: what its lock allows also depends on the functions of this process."""
    schema: SchemaValidator | None
    """Of the input; null if it cannot be compiled: admission tells what is wrong with it."""
    open_to: set[tuple[str, tuple[str, ...]]] = field(default_factory=set[tuple[str, tuple[str, ...]]])
    """Realms and grants with which a run was admitted: nothing but its arguments can be refused now. Accounts, whose
    grants can change at any moment, are not among them."""

    def accepts(self, arguments: Json) -> bool:
        """Whether the arguments are JSON that the schema allows, as admission finds out too."""
        if self.schema is None:
            return False
        try:
            given = plain(arguments)
            if type(given) is not dict:
                return False
            if self.schema.has_defaults:
                given = plain(self.schema.with_defaults(cast("JsonObject", given)))
        except InvalidInput:
            return False
        return self.schema.is_valid(given)


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

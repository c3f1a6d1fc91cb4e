"""Makes the request of a run from a caller's input, and checks in advance whether the run would be refused."""

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
from toolcrib.core.registry import Registry, compile_schema, pins_of
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
    run_kind = tool.definition.run_kind
    is_run = tool.definition.has_model or run_kind == "workflow"
    kind: RunKind = run_kind if is_run and not as_call else "tool"
    return RunRequest(
        kind=kind,
        plan_format=PLAN_FORMAT,
        tool=tool.ref,
        content_hash=tool.content_hash,
        pins=pins_of(tool, registry),
        input=arguments if kind == "tool" else _with_defaults(tool, arguments),
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


def _with_defaults(tool: ToolRevision, arguments: JsonObject) -> JsonObject:
    try:
        return compile_schema(tool.definition.input_schema).with_defaults(arguments)
    except InvalidDefinition:  # admission tells what is wrong with the schema
        return arguments

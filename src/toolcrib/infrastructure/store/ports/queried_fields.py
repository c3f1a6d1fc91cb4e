"""What stored runs, approvals and conversations are filtered and ordered by. Every store means the same by a field.

A field that a caller has not seen yet is null: a cost of which nothing is known is never compared as 0.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, get_args

from pydantic_core import to_json

from toolcrib.contracts import (
    Approval,
    ApprovalStatus,
    Conversation,
    ConversationStatus,
    ErrorCode,
    Run,
    RunRequest,
    RunResult,
    RunStatus,
    SideEffects,
    StopReason,
)
from toolcrib.contracts.runs.runs import ApprovalQuestion, RunKind
from toolcrib.infrastructure.queries.grammar import Condition, Every, OrderKey
from toolcrib.infrastructure.queries.rows import Field

_SHOWN: Final = 500

EVERYTHING: Final = Every(())


class StoreQuery(NamedTuple):
    """A page of what meets a condition."""

    condition: Condition
    order: tuple[OrderKey, ...]
    """The last key differs for each row."""
    after: tuple[Any, ...] | None = None
    """The values of the row in front of the page, one for each key; null for the first page."""
    limit: int = 50


def input_text(request: RunRequest) -> str:
    """The beginning of a run's input, as text to search in: what was asked, or the arguments as JSON."""
    given = request.input
    text = given if isinstance(given, str) else to_json(given, inf_nan_mode="constants").decode(errors="replace")
    return text[:_SHOWN].replace("\x00", "")


def known_cost(result: Run | RunResult) -> float | None:
    """The cost as far as it is known; null if nothing of it is."""
    return None if result.cost_usd is None else float(result.cost_usd)


RUN_FIELDS: Final[Mapping[str, Field[Run]]] = {
    "run_id": Field("string", "Its id.", lambda run: run.run_id, nullable=False),
    "tool": Field("string", "Name of what it executes, without the version.", lambda run: run.request.tool_name),
    "kind": Field("string", "What it executes.", lambda run: run.request.kind, get_args(RunKind)),
    "status": Field("string", "Its status.", lambda run: run.status, get_args(RunStatus)),
    "stop_reason": Field("string", "Why it ended; null before.", lambda run: run.stop_reason, get_args(StopReason)),
    "error_code": Field(
        "string",
        "Code of its error; null without one.",
        lambda run: None if run.error is None else run.error.code,
        tuple(ErrorCode),
    ),
    "text": Field(
        "string", "The first 500 characters of its input: text, or JSON.", lambda run: input_text(run.request)
    ),
    "made_by": Field("string", "Id of whose it is.", lambda run: run.made_by, nullable=False),
    "conversation_id": Field("string", "Its conversation; null without one.", lambda run: run.request.conversation_id),
    "session_id": Field("string", "Its session; null without one.", lambda run: run.request.session_id),
    "parent_run_id": Field("string", "The run that called it; null for none.", lambda run: run.request.parent_run_id),
    "cost_usd": Field(
        "number",
        "US dollars, with nested runs, as far as they are known; null if nothing is known, and before the end.",
        known_cost,
    ),
    "cost_unknown": Field("boolean", "Whether `cost_usd` is a lower bound, or null.", lambda run: run.cost_unknown),
    "tokens": Field(
        "integer", "Tokens with nested runs; null before the end.", lambda run: run.all_tokens if run.ended else None
    ),
    "created_at": Field("datetime", "When it was requested.", lambda run: run.created_at, nullable=False),
    "updated_at": Field("datetime", "When it last changed.", lambda run: run.updated_at, nullable=False),
    "ended_at": Field("datetime", "When it ended; null before.", lambda run: run.updated_at if run.ended else None),
}
"""Fields of runs. Lists begin with the newest."""

APPROVAL_FIELDS: Final[Mapping[str, Field[Approval]]] = {
    "approval_id": Field("string", "Its id.", lambda each: each.approval_id, nullable=False),
    "tool": Field("string", "Name of the tool that waits.", lambda each: each.tool),
    "status": Field("string", "Its status.", lambda each: each.status, get_args(ApprovalStatus)),
    "question": Field(
        "string", "Whether the call may run, or took effect.", lambda each: each.question, get_args(ApprovalQuestion)
    ),
    "side_effects": Field("string", "What the call may do.", lambda each: each.side_effects, get_args(SideEffects)),
    "text": Field("string", "What the person is told.", lambda each: each.message),
    "run_id": Field("string", "The run that makes the call.", lambda each: each.run_id),
    "root_run_id": Field("string", "The outermost run.", lambda each: each.root_run_id),
    "requested_by": Field("string", "Id of who started the outermost run.", lambda each: each.requested_by),
    "acting": Field("string", "Id of who makes the call.", lambda each: each.acting),
    "decided_by": Field("string", "Id of who decided; null before.", lambda each: each.decided_by),
    "reason": Field("string", "Why it was decided so, or ended.", lambda each: each.reason),
    "created_at": Field("datetime", "When it was requested.", lambda each: each.requested_at, nullable=False),
    "decided_at": Field("datetime", "When it was decided; null before.", lambda each: each.decided_at),
    "expires_at": Field("datetime", "Until when it can be approved; null for ever.", lambda each: each.expires_at),
}
"""Fields of approvals. Lists begin with the oldest."""

CONVERSATION_FIELDS: Final[Mapping[str, Field[Conversation]]] = {
    "conversation_id": Field("string", "Its id.", lambda each: each.conversation_id, nullable=False),
    "agent": Field("string", "Name of the agent.", lambda each: each.agent),
    "principal": Field("string", "Id of whose it is.", lambda each: each.principal),
    "status": Field("string", "Its status.", lambda each: each.status, get_args(ConversationStatus)),
    "text": Field("string", "Its title.", lambda each: each.title),
    "turns": Field("integer", "How many turns it has.", lambda each: each.turn_count),
    "tokens": Field("integer", "Tokens of the turns that have ended.", lambda each: each.tokens),
    "created_at": Field("datetime", "When it began.", lambda each: each.created_at, nullable=False),
    "updated_at": Field("datetime", "When it last changed.", lambda each: each.updated_at, nullable=False),
}
"""Fields of conversations. Lists begin with the newest."""

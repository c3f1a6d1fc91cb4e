"""How a program halts, and what it can read of other, ended runs and of conversations.

Journals of ended runs do not change. A program records what it read of a run that may not have ended
(`RunContext.once`). The run ids of turns follow from the conversation and the turn's number, so creating the run
claims the turn, and no other list of turns is needed.
"""

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final, Protocol, cast

from msgspec import Struct, structs

from toolcrib.contracts import (
    Attachment,
    ErrorCode,
    Json,
    JsonObject,
    Reason,
    Run,
    RunEvent,
    RunRequest,
    RunStatus,
    Signal,
    StopReason,
    ToolEnvelope,
    ToolError,
)
from toolcrib.core.policy import CALL_LIMITS


class RunEnd(Struct, frozen=True):
    """How a program came to its end."""

    output: Json = None
    """Only of a run that completed."""
    partial: Json = None
    """What a run has done that did not complete, if anything."""
    attachments: tuple[Attachment, ...] = ()
    stop_reason: StopReason = "final_answer"
    status: RunStatus = "completed"
    error: ToolError | None = None
    warnings: tuple[str, ...] = ()
    metadata: JsonObject = {}
    """What else there is to say of it, by name; it stands in the metadata of the call that the run is."""


_NOT_DONE: Final[Mapping[Reason | None, StopReason]] = {
    Reason.QUESTION: "question",
    Reason.NOTHING_DONE: "nothing_done",
}


def end_after(failure: ToolError, request: RunRequest) -> RunEnd:
    """The end of a run that cannot go on after one of its parts, by the error that says why.

    It is `incomplete` if a limit or a rule has refused the part, or a question was not answered, and `failed` if
    something broke. A limit that the run, or a run that it began, has reached is its `stop_reason`.

    Args:
        failure: The error.
        request: Of the run; an older release ended all such runs as `failed`.
    """
    denied = failure.code is ErrorCode.POLICY_DENIED
    otherwise: StopReason = "policy" if denied else "error"
    stop_reason = CALL_LIMITS.get(failure.reason, otherwise)
    if request.has_old_rules or not (denied or failure.reason in _NOT_DONE):
        return RunEnd(status="failed", stop_reason=stop_reason, error=failure)
    return RunEnd(status="incomplete", stop_reason=_NOT_DONE.get(failure.reason) or stop_reason, error=failure)


def end_of_failed_call(envelope: ToolEnvelope) -> RunEnd:
    """The end of a run that is one call, which has failed or was denied; as the nested run's, if it was one."""
    facts = envelope.metadata
    if "run_id" in facts and facts.get("status") == "incomplete":
        stopped = cast("StopReason", facts["stop_reason"])
        return RunEnd(partial=envelope.partial, status="incomplete", stop_reason=stopped, error=envelope.error)
    stop_reason = "policy" if envelope.status == "denied" else "error"
    return RunEnd(partial=envelope.partial, status="failed", stop_reason=stop_reason, error=envelope.error)


_LIMITS: Final = frozenset({"max_iterations", "max_tool_calls", "max_cost", "max_tokens", "policy"})
"""Stop reasons of runs that older releases ended as completed; `policy` is a cap on what many runs spend."""


def in_format(ended: RunEnd, request: RunRequest) -> RunEnd:
    """An end as the release wrote it that began the run, so that a replay ends as the run did.

    Args:
        ended: The end as it is told today.
        request: Of the run: its `plan_format` says which release began it.
    """
    if not request.has_old_rules:
        return ended
    output = ended.output if ended.partial is None else ended.partial
    if ended.status == "incomplete" and ended.stop_reason in _LIMITS:
        return structs.replace(ended, output=output, partial=None, status="completed", error=None)
    return structs.replace(ended, output=output, partial=None)


class Suspended(BaseException):
    """The run cannot go on until one of these signals is there, or until its time.

    Not an `Exception`: no tool and no program may catch it by accident.

    Args:
        status: How the run stands meanwhile.
        signals: Their names.
        wake_at: The moment; null if it does not matter how long it takes.
        nested: It is a nested run that waits, which goes on only when its callers wait too.
    """

    def __init__(self, status: RunStatus, *signals: str, wake_at: datetime | None = None, nested: bool = False) -> None:
        super().__init__(status, *signals)
        self.status: RunStatus = status
        self.signals = signals
        self.wake_at = wake_at
        self.nested = nested


class EndedRuns(Protocol):
    """The reading side of a journal."""

    async def run(self, run_id: str) -> Run:
        """The run's row.

        Raises:
            NotFound: No such run.
        """
        ...

    async def runs(
        self,
        realm: str,
        *,
        tool: str | None = None,
        made_by: str | None = None,
        status: RunStatus | None = None,
        before: str | None = None,
        limit: int = 50,
    ) -> Sequence[Run]:
        """A page of runs, newest first; see `Journal.runs`."""
        ...

    async def events(self, run_id: str, *, after: int = 0, limit: int | None = None) -> Sequence[RunEvent]:
        """The events with numbers above `after`, in order; none of a run that is not there."""
        ...

    async def signals(self, run_id: str) -> Mapping[str, Signal]:
        """What was left for the run, by name: for one that has ended, also after its end."""
        ...


def turn_run_id(conversation_id: str, turn: int) -> str:
    """The id of the run that is a turn of a conversation.

    Args:
        conversation_id: The conversation.
        turn: Its place, from 1.
    """
    return "run_" + hashlib.sha256(f"{conversation_id}/turns/{turn}".encode()).hexdigest()[:32]

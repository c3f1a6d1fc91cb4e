"""Calls of a run that wait for somebody outside: readings of its journal, and the signals that answer them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, TypeVar

from toolcrib.contracts import (
    Approval,
    ApprovalDecision,
    ApprovalRequested,
    Conflict,
    Json,
    JsonObject,
    RunEvent,
    RunFinished,
    Signal,
    ToolEnvelope,
    approval_signal,
)
from toolcrib.contracts.runs.questions import OpenQuestion, answer_signal
from toolcrib.contracts.workflows import event_signal
from toolcrib.core.runs.journal.history import History

T = TypeVar("T")


_CLIENT: Final = "client:"
_TOLD: Final = (_CLIENT, event_signal(""), answer_signal(""))
_ASKED: Final = "question:"
QUESTION_ASKED: Final = "question_asked"
"""Kind of the entry by which a run tells what it asks."""


def client_signal(position: str) -> str:
    """Name of the signal that brings back what a client did with the call at a position."""
    return f"{_CLIENT}{position}"


def tellers_of(signals: Iterable[Signal]) -> AbstractSet[str]:
    """Ids of those who brought back what clients did, or told a workflow what one of its steps waited for."""
    return {signal.made_by for signal in signals if signal.name.startswith(_TOLD)}


def waiting_approvals(events: Iterable[RunEvent], signals: Collection[str]) -> Sequence[ApprovalRequested]:
    """Calls that wait for a person.

    Args:
        events: The run's journal.
        signals: Names of the signals that were left for the run, taken up by it or not.
    """
    history = _open(events)
    settled = history.decisions.keys() | history.envelopes.keys() | history.withdrawn
    return [
        request
        for position, request in history.approvals.items()
        if position not in settled and approval_signal(position, request.number) not in signals
    ]


def waiting_handoffs(events: Iterable[RunEvent], signals: Collection[str]) -> Sequence[ToolEnvelope]:
    """Prepared calls that wait for a client."""
    history = _open(events)
    settled = history.returns.keys() | history.envelopes.keys()
    return [
        handoff.envelope
        for position, handoff in history.handoffs.items()
        if position not in settled and client_signal(position) not in signals
    ]


def question_key(position: str) -> str:
    """The key under which a run tells what it asks at a position."""
    return f"{_ASKED}{position}"


def waiting_question(events: Iterable[RunEvent], signals: Collection[str]) -> OpenQuestion | None:
    """What a run asks that nobody has answered; null if it asks nothing."""
    history = _open(events)
    received = {signal.name for signal in history.received.values()}
    awaited = {wait.name for wait in history.awaited.values()} - received - set(signals)
    positions = (key.removeprefix(_ASKED) for key in history.progress if key.startswith(_ASKED))
    position = next((position for position in positions if answer_signal(position) in awaited), None)
    return None if position is None else OpenQuestion.model_validate(history.progress[question_key(position)])


def _open(events: Iterable[RunEvent]) -> History:
    """What the journal of a run knows; of one that has ended nothing, because nothing of it waits."""
    log = list(events)
    return History(() if log and isinstance(log[-1].event, RunFinished) else log)


def waiting_at(run_id: str, position: str, waiting: Mapping[str, T], whom: str) -> T:
    """The call that waits at a position.

    Raises:
        Conflict: None does; the message names those that do.
    """
    if position not in waiting:
        positions = ", ".join(sorted(waiting)) or "none"
        msg = f"run {run_id} has no call at {position!r} that waits for {whom}; waiting: {positions}"
        raise Conflict(msg)
    return waiting[position]


def decision_on(
    request: ApprovalRequested | Approval,
    *,
    approve: bool,
    edited_input: JsonObject | None = None,
    reason: str | None = None,
    happened: bool | None = None,
    output: Json = None,
) -> ApprovalDecision:
    """A decision bound to the very arguments, tool and policy that were shown."""
    return ApprovalDecision(
        approved=approve,
        arguments_hash=request.arguments_hash,
        content_hash=request.content_hash,
        policy_hash=request.policy_hash,
        edited_input=edited_input,
        reason=reason,
        happened=happened,
        output=output,
    )

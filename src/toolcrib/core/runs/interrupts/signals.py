"""Waiting calls of a run and of its nested runs, read from journals, and the signals that answer them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple, TypeVar

from toolcrib.contracts import (
    Approval,
    ApprovalDecision,
    ApprovalRequested,
    Conflict,
    Json,
    JsonObject,
    OpenQuestion,
    Run,
    RunEvent,
    RunFinished,
    RunRequest,
    Signal,
    ToolEnvelope,
    approval_signal,
)
from toolcrib.contracts.runs.executions import answer_signal
from toolcrib.contracts.workflows import event_signal
from toolcrib.core.executor import CallerQuestion
from toolcrib.core.runs.journal.history import History
from toolcrib.infrastructure.store import Journal

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


def may_ask(request: RunRequest) -> bool:
    """Whether a run may wait for an answer: somebody has started it, or is at the other end of its conversation."""
    return request.parent_run_id is None or request.conversation_id is not None


def question_key(position: str) -> str:
    """The key under which a run tells what it asks at a position."""
    return f"{_ASKED}{position}"


def question_place(position: str, question: CallerQuestion) -> str:
    """The position of a question of a call."""
    return f"{position}.ask{question.number}"


def asked_question(run_id: str, position: str, question: CallerQuestion) -> OpenQuestion:
    """A question of a call as it is journaled and shown."""
    return OpenQuestion(
        run_id=run_id,
        position=question_place(position, question),
        question=question.text,
        reason="tool",
        answer_schema=question.schema,
        name=question.name,
        asked_of=question.asked_of,
        max_tokens=question.max_tokens,
        together_with=tuple(asked_question(run_id, position, each) for each in question.together_with),
    )


def waiting_question(events: Iterable[RunEvent], signals: Collection[str]) -> OpenQuestion | None:
    """What a run asks that nobody has answered; null if it asks nothing."""
    history = _open(events)
    received = {signal.name for signal in history.received.values()}
    awaited = {wait.name for wait in history.awaited.values()} - received
    for key in history.progress:
        if not key.startswith(_ASKED) or answer_signal(key.removeprefix(_ASKED)) not in awaited:
            continue
        asked = OpenQuestion.model_validate(history.progress[key])
        still = [each for each in (asked, *asked.together_with) if answer_signal(each.position) not in signals]
        if still:
            return still[0].model_copy(update={"together_with": tuple(still[1:])})
    return None


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


class Branch(NamedTuple):
    """One run of a tree."""

    run: Run
    events: Sequence[RunEvent]
    signals: Mapping[str, Signal]


async def read_tree(journal: Journal, run_id: str, *, ended: bool = False) -> Sequence[Branch]:
    """The run first, and each run before those that it calls.

    Args:
        journal: Has the runs.
        run_id: The run at the root.
        ended: Read also nested runs whose call has ended, for which nobody waits any more.

    Raises:
        NotFound: No such run.
    """
    run = await journal.run(run_id)
    events = await journal.events(run_id)
    tree = [Branch(run, events, await journal.signals(run_id))]
    if run.ended and not ended:
        return tree
    history = History(events)
    for child in history.children.values():
        # A child that was only announced before a crash is created when the call is made again.
        if (ended or child.position not in history.envelopes) and await journal.events(child.child_run_id, limit=1):
            tree += await read_tree(journal, child.child_run_id, ended=ended)
    return tree


def open_client_calls(tree: Iterable[Branch]) -> Sequence[ToolEnvelope]:
    """Prepared calls that wait for a client."""
    open_runs = (branch for branch in tree if not branch.run.ended)
    return [envelope for branch in open_runs for envelope in waiting_handoffs(branch.events, branch.signals)]


def open_question(tree: Iterable[Branch]) -> OpenQuestion | None:
    """What is asked of whoever started the outermost run; null if nothing."""
    open_runs = (branch for branch in tree if not branch.run.ended)
    questions = (waiting_question(branch.events, branch.signals) for branch in open_runs)
    return next((question for question in questions if question is not None), None)


def to_approve(tree: Iterable[Branch]) -> Sequence[tuple[str, ApprovalRequested]]:
    """Calls that wait for a person, each with the id of its run."""
    open_runs = (branch for branch in tree if not branch.run.ended)
    return [
        (branch.run.run_id, request)
        for branch in open_runs
        for request in waiting_approvals(branch.events, branch.signals)
    ]

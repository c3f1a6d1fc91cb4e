"""What clients bring back, held against the calls that they were handed (002, section 6).

Pure: a tree of runs and results in, signals out. All results fit or none is delivered; the same results may be brought
again by the same client, if the answer was lost.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from toolcrib.contracts import Conflict, ReturnedCall, Run, Signal, ToolEnvelope
from toolcrib.core.runs.interrupts.signals import client_signal
from toolcrib.core.runs.interrupts.tree import Branch, handed_over
from toolcrib.core.runs.journal.history import History

_MOST_SHOWN = 20
"""Problems, and waiting calls, that an error names."""


class _Handed(NamedTuple):
    """A call that was handed to a client at some time."""

    run: Run
    envelope: ToolEnvelope
    answer: Signal | None
    waits: bool

    @property
    def place(self) -> str:
        return f"{self.run.run_id}/{self.envelope.position}"


def signals_for(
    tree: Sequence[Branch], results: Sequence[ReturnedCall], *, made_by: str, at: datetime
) -> Sequence[tuple[str, Signal]]:
    """The signals that deliver the results, with the ids of their runs; those that were delivered before are left out.

    Args:
        tree: The run and all that are nested in it, ended ones too.
        results: What the client brings.
        made_by: Id of the client's principal.
        at: The moment.

    Raises:
        Conflict: At least one result fits no call that waits; the message names each, and what waits.
    """
    handed = _handed(tree)
    meant = [(result, [call for call in handed.get(result.call_id, ()) if _is_of(call, result)]) for result in results]
    often = Counter(calls[0].place for _, calls in meant if len(calls) == 1)
    problems = [
        f"{result.call_id!r} {problem}"
        for result, calls in meant
        if (problem := _problem(result, calls, often, made_by))
    ]
    if problems:
        waiting = _listed([f"{call.name} at {call.run_id}/{call.position}" for call in handed_over(tree)], ", ")
        told = f"{_listed(problems, '; ')}. Calls that wait: {waiting or 'none'}"
        msg = f"no result was delivered to run {tree[0].run.run_id}: {told}"
        raise Conflict(msg)
    return [(calls[0].run.run_id, _signal(result, calls[0], made_by, at)) for result, calls in meant if calls[0].waits]


def _handed(tree: Sequence[Branch]) -> Mapping[str, Sequence[_Handed]]:
    """By `call_id` and by position."""
    waiting = {(envelope.run_id, envelope.position) for envelope in handed_over(tree)}
    found: defaultdict[str, list[_Handed]] = defaultdict(list)
    for run, events, signals in tree:
        for position, handoff in History(events).handoffs.items():
            answer, waits = signals.get(client_signal(position)), (run.run_id, position) in waiting
            call = _Handed(run, handoff.envelope, answer, waits)
            found[position].append(call)
            found[call.envelope.call_id].append(call)
    return found


def _is_of(call: _Handed, result: ReturnedCall) -> bool:
    return result.run_id in {None, call.run.run_id}


def _problem(result: ReturnedCall, calls: Sequence[_Handed], often: Counter[str], made_by: str) -> str | None:
    """Why a result cannot be delivered; null if it can, or was before."""
    if not calls:
        return "is no call that a client was handed"
    if len(calls) > 1:
        return f"is a call of each of the runs {', '.join(call.run.run_id for call in calls)}: say which by run_id"
    (call,) = calls
    if often[call.place] > 1:
        return "is answered more than once"
    if call.waits:
        return None
    if call.answer is None:
        return f"waits no more: run {call.run.run_id} is {call.run.status}"
    same = call.answer.payload == result.result.model_dump(mode="json") and call.answer.made_by == made_by
    return None if same else "has another result already"


def _listed(items: Sequence[str], between: str) -> str:
    more = [f"and {len(items) - _MOST_SHOWN} more"] if len(items) > _MOST_SHOWN else []
    return between.join([*items[:_MOST_SHOWN], *more])


def _signal(result: ReturnedCall, call: _Handed, made_by: str, at: datetime) -> Signal:
    payload = result.result.model_dump(mode="json")
    return Signal(name=client_signal(call.envelope.position), payload=payload, made_by=made_by, at=at)

"""Client calls of a run: prepared once, and answered by the client's results.

Results are checked against the calls that the client was given. Either all results of a request are accepted or none.
The same client may send the same results again. Pure.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

from toolcrib.contracts import (
    ClientHandoff,
    ClientResult,
    ClientReturned,
    Conflict,
    ReturnedCall,
    Run,
    Signal,
    ToolEnvelope,
)
from toolcrib.core.policy import Budget
from toolcrib.core.runs.interrupts.approvals import Signals
from toolcrib.core.runs.interrupts.signals import Branch, client_signal, open_client_calls
from toolcrib.core.runs.interrupts.suspension import Suspended
from toolcrib.core.runs.journal.history import ONE_CALL, History
from toolcrib.core.runs.journal.log import RunLog

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
    handed = _index_calls(tree)
    matches = [
        (result, [call for call in handed.get(result.call_id, ()) if _is_of(call, result)]) for result in results
    ]
    often = Counter(calls[0].place for _, calls in matches if len(calls) == 1)
    problems = [
        f"{result.call_id!r} {problem}"
        for result, calls in matches
        if (problem := _problem(result, calls, often, made_by))
    ]
    if problems:
        waiting = _join_items(
            [f"{call.name} at {call.run_id}/{call.position}" for call in open_client_calls(tree)], ", "
        )
        details = f"{_join_items(problems, '; ')}. Calls that wait: {waiting or 'none'}"
        msg = f"no result was delivered to run {tree[0].run.run_id}: {details}"
        raise Conflict(msg)
    return [
        (calls[0].run.run_id, _signal(result, calls[0], made_by, at)) for result, calls in matches if calls[0].waits
    ]


def _index_calls(tree: Sequence[Branch]) -> Mapping[str, Sequence[_Handed]]:
    """By `call_id` and by position."""
    waiting = {(envelope.run_id, envelope.position) for envelope in open_client_calls(tree)}
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
        return "is not a call that a client was given"
    if len(calls) > 1:
        return f"is a call of each of the runs {', '.join(call.run.run_id for call in calls)}: name one by run_id"
    (call,) = calls
    if often[call.place] > 1:
        return "is answered more than once"
    if call.waits:
        return None
    if call.answer is None:
        return f"no longer waits: run {call.run.run_id} is {call.run.status}"
    same = call.answer.payload == result.result.model_dump(mode="json") and call.answer.made_by == made_by
    return None if same else "has another result already"


def _join_items(items: Sequence[str], between: str) -> str:
    more = [f"and {len(items) - _MOST_SHOWN} more"] if len(items) > _MOST_SHOWN else []
    return between.join([*items[:_MOST_SHOWN], *more])


def _signal(result: ReturnedCall, call: _Handed, made_by: str, at: datetime) -> Signal:
    payload = result.result.model_dump(mode="json")
    return Signal(name=client_signal(call.envelope.position), payload=payload, made_by=made_by, at=at)


class ClientCalls:
    """The handed over calls of one run.

    Args:
        log: The writing end of its journal.
        history: What the journal knew when the run was claimed.
        budget: What the run may still spend.
        signals: Looks up what clients have brought.
    """

    def __init__(self, log: RunLog, history: History, budget: Budget, signals: Signals) -> None:
        self._log = log
        self._history = history
        self._budget = budget
        self._signals = signals
        self._counted: dict[str, Decimal | None] = {}
        """Positions of calls that were handed over here, with what was counted for them."""

    async def hand_off(self, prepared: ToolEnvelope) -> ClientResult:
        """What the client has brought for a prepared call.

        Raises:
            Suspended: Nothing yet.
        """
        position = prepared.position
        returned = self._history.returns.get(position)
        if returned is not None:
            return returned.result
        name = client_signal(position)
        signal = await self._signals(name)
        if signal is None:
            if position not in self._history.handoffs:
                self._note(ClientHandoff(position=position, envelope=prepared))
            self._counted[position] = prepared.cost_usd
            raise Suspended("awaiting_client", name)
        result = ClientResult.model_validate(signal.payload)
        self._log.add(ClientReturned(position=position, result=result, made_by=signal.made_by))
        return result

    def find_client_call(self, position: str) -> ToolEnvelope | None:
        """What was handed over at a position before this process took the run."""
        handed = self._history.handoffs.get(position)
        return handed.envelope if handed is not None else None

    def as_handed_over(self, envelope: ToolEnvelope) -> ToolEnvelope:
        """The envelope of a call that was cut off, with its hand-off if it waited for a client."""
        prepared = self.find_client_call(envelope.position)
        if prepared is None:
            return envelope
        waited_s = max(0.0, (envelope.t_end - prepared.t_end).total_seconds())
        timings = prepared.timings.model_copy(update={"wait": prepared.timings.wait + waited_s})
        return envelope.model_copy(
            update={"requires_client_execution": True, "t_start": prepared.t_start, "timings": timings}
        )

    def count_anew(self, position: str) -> None:
        """Count a call that goes on after it was handed over here as one of a run that was taken up."""
        if position in self._counted:
            self._budget.return_tool_call()
            self._budget.add_cost(-(self._counted.pop(position) or Decimal(0)))
            self._budget.hold(position, ONE_CALL)

    def _note(self, handoff: ClientHandoff) -> None:
        position = handoff.position
        self._history.intend(self._log.open_calls[position], handoff.envelope.t_start)
        self._history.handoffs[position] = handoff
        self._log.add(handoff)

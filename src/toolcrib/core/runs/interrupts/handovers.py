"""Calls of a run that a client performs: handed over once, counted once, taken back with what the client brings."""

from decimal import Decimal

from toolcrib.contracts import ClientHandoff, ClientResult, ClientReturned, ToolEnvelope
from toolcrib.core.policy import Budget
from toolcrib.core.runs.interrupts.approvals import Signals
from toolcrib.core.runs.interrupts.program import Suspended
from toolcrib.core.runs.interrupts.signals import client_signal
from toolcrib.core.runs.journal.history import History
from toolcrib.core.runs.journal.log_part import RunLog
from toolcrib.core.runs.journal.spent import ONE_CALL


class Handovers:
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

    def prepared_before(self, position: str) -> ToolEnvelope | None:
        """What was handed over at a position before this process took the run."""
        handed = self._history.handoffs.get(position)
        return handed.envelope if handed is not None else None

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

"""Caps of a replay: they say what they said then, for nothing is spent."""

from collections.abc import Mapping, Sequence
from typing import Final

from toolcrib.contracts import CallStarted, GuardDecision, LimitReached, ModelStarted, Reason, RunEvent, StopReason
from toolcrib.core.engines.replay.stage import Stage
from toolcrib.core.policy import BUDGET, Shortage, Spend, Spender, Taken

_REFUSALS: Final = (Reason.BUDGET_EXCEEDED, Reason.BUDGET_UNKNOWN)
_LIMITS: Final[Mapping[str, tuple[Reason, StopReason]]] = {
    "max_total_tokens": (Reason.MAX_TOKENS_EXCEEDED, "max_tokens"),
    "max_cost_usd": (Reason.MAX_COST_EXCEEDED, "max_cost"),
}
_UNTOLD: Final = Shortage(BUDGET, 0, 0, Reason.BUDGET_EXCEEDED, "policy")
"""Why a last answer was not asked for: the journal has the limit that was reached before, and not this one."""


class ReplayCaps:
    """The caps on what many runs spend together.

    Args:
        stage: Of the replay.
    """

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    async def reserve(self, spender: Spender, ticket: str, most: Spend, *, tool: str | None = None) -> Taken | Shortage:
        """What was said when it was asked then."""
        del spender, most
        run_id, position = ticket.split("/", 1)
        return self._model(run_id, position.removeprefix("model/")) if tool is None else self._call(run_id, position)

    async def settle(self, taken: Taken, spent: Spend) -> None:
        """Nothing is counted."""

    def _call(self, run_id: str, position: str) -> Taken | Shortage:
        started, outcome = (
            self._stage.life(run_id).find("call_started", position),
            self._stage.outcome(run_id, position),
        )
        if started is not None and isinstance(started.event, CallStarted):
            return Taken(position, facts=_facts(started.event.decision))
        refused = None if outcome is None else outcome[1].envelope.error
        reason = None if refused is None else refused.reason
        if refused is None or reason is None or reason not in _REFUSALS:
            return Taken(position)
        numbers = (refused.details or {}).get("inputs", {})
        return Shortage(
            BUDGET,
            numbers.get("value", 0),
            numbers.get("maximum", 0),
            reason,
            "policy",
            said=refused.message,
            free_in_s=refused.retry_after_s,
        )

    def _model(self, run_id: str, position: str) -> Taken | Shortage:
        life, part = self._stage.life(run_id), self._stage.parts[run_id]
        for key, entries in part.open.items():
            if key[:2] == ("model_started", position) and entries:
                return Taken(position, facts=_asked(entries))
        for entry in part.open.get(("limit_reached", BUDGET), ()):
            if isinstance(entry.event, LimitReached):
                reached = entry.event
                reason = Reason.BUDGET_EXCEEDED
                return Shortage(BUDGET, reached.value, reached.maximum, reason, "policy", said=reached.message)
        if part.planned is not None:  # what an older release would have asked for a plan may have been longer
            for limit, (reason, stop) in _LIMITS.items():
                for reached in (entry.event for entry in part.open.get(("limit_reached", limit), ())):
                    if isinstance(reached, LimitReached):
                        return Shortage(limit, reached.value, reached.maximum, reason, stop, said=reached.message)
        return Taken(position) if life.end is None else _UNTOLD


def _asked(entries: Sequence[RunEvent]) -> dict[str, object]:
    event = entries[0].event
    return _facts(event.decision) if isinstance(event, ModelStarted) else {}


def _facts(decision: GuardDecision | None) -> dict[str, object]:
    return {name: value for name, value in (decision.inputs if decision else {}).items() if name == "budgets"}

"""What a run has spent, by its journal: recorded calls, answers, and attempts that brought nothing."""

from decimal import Decimal
from typing import Final

from msgspec import Struct

from toolcrib.contracts import Allowance, ToolEnvelope
from toolcrib.core.runs.journal.history import History

ONE_CALL: Final = Allowance(tool_calls=1, requests=0, tokens=0, cost_usd=Decimal(0), seconds=0)
"""What a call takes that was started: it counts, whether it is repeated or not."""


class Spent(Struct, frozen=True):
    """What was spent."""

    tool_calls: int = 0
    tokens: int = 0
    cost_usd: Decimal = Decimal(0)

    def __add__(self, other: "Spent") -> "Spent":
        return Spent(self.tool_calls + other.tool_calls, self.tokens + other.tokens, self.cost_usd + other.cost_usd)


def spent_on_calls(history: History) -> Spent:
    """What calls have taken, with their nested runs; not what recovery has asked, and what another run has paid.

    A call over which a process has died may have cost its price, whether it was repeated or not.
    """
    total = Spent()
    lost = [*history.lost, *history.open_calls]
    for envelope in history.envelopes.values():
        if ".reconcile" in envelope.position or envelope.reused is not None:
            continue
        begun, nested = history.intents.get(envelope.position), _nested(envelope)
        calls = 1 if envelope.attempts or begun else 0
        total += Spent(calls + nested.tool_calls, nested.tokens, envelope.cost_usd or Decimal(0))
        if begun is not None and not envelope.attempts:
            lost.append(begun)
    for call in lost:
        total += Spent(cost_usd=Decimal(str(call.decision.inputs.get("price_usd", 0))))
    return total


def _nested(envelope: ToolEnvelope) -> Spent:
    """What the nested run of a call has used, besides money."""
    facts = envelope.metadata if "run_id" in envelope.metadata else {}
    return Spent(facts.get("tool_calls", 0), facts.get("tokens", 0))


def spent_in(history: History) -> Spent:
    """What a run has spent, without its nested runs that are still open."""
    total = spent_on_calls(history)
    for answer in history.answers.values():
        total += Spent(tokens=answer.usage.total_tokens, cost_usd=answer.cost_usd or Decimal(0))
    for lost in history.wasted:
        total += Spent(tokens=lost.usage.input + lost.usage.output, cost_usd=lost.cost_usd or Decimal(0))
    return total

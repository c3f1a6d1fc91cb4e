"""The budget of a run: amounts are reserved before and settled after each call.

Parallel calls and nested runs cannot overspend, because a nested run's budget also draws on its parent's. A budget is
data; it is restored from the journal.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import reduce
from typing import Final

from msgspec import Struct

from toolcrib.contracts import Allowance, JsonObject, Limits, Reason, StopReason

CALL_LIMITS: Final[Mapping[Reason | None, StopReason]] = {
    Reason.MAX_TOOL_CALLS_EXCEEDED: "max_tool_calls",
    Reason.MAX_COST_EXCEEDED: "max_cost",
}
"""Why a limit of its run refuses a call, and how a run is said to have stopped that cannot go on without it."""

_PLENTY: Final = 4
_NO_USD: Final = Decimal()


@dataclass(frozen=True, slots=True)
class Shortage:
    """A reservation that was refused."""

    limit: str
    """Field of `Limits`, or `budget`."""
    value: float
    """What would have been used."""
    maximum: float
    reason: Reason
    stop_reason: StopReason
    text: str | None = None
    """What there is to say that the numbers do not."""
    free_in_s: float | None = None
    """When it may be tried again, where time helps."""

    @property
    def message(self) -> str:
        """One sentence with the numbers and what to do."""
        if self.text is not None:
            return self.text
        allowed, wanted = f"{self.maximum:.12g}", f"{self.value:.12g}"
        return f"limit {self.limit} is {allowed} and this would make {wanted}; raise {self.limit} to go on"


class ModelReservation(Struct, frozen=True):
    """What one model call may use at most."""

    tokens: int
    cost_usd: Decimal | None
    """Null where the price is unknown."""
    iterations: int = 0
    """1 for a turn of a loop."""


@dataclass(slots=True)
class Budget:
    """Counters of one run against its limits. Not thread-safe: one event loop."""

    limits: Limits
    parent: "Budget | None" = None
    iterations: int = 0
    tool_calls: int = 0
    requests: int = 0
    tokens: int = 0
    cost_usd: Decimal = _NO_USD
    """What was paid, and `cut_off_usd`."""
    cut_off: int = field(default=0, init=False)
    """Attempts that were cut off: what they cost is not known."""
    cut_off_usd: Decimal = field(default=_NO_USD, init=False)
    """What they may have cost at most, as far as prices are known."""
    reserved_tokens: int = field(default=0, init=False)
    """Set aside for model calls that are under way."""
    reserved_usd: Decimal = field(default=_NO_USD, init=False)
    reserved_iterations: int = field(default=0, init=False)
    reserved_tool_calls: int = field(default=0, init=False)
    """Held back for nested runs that are driven elsewhere, as the next."""
    reserved_requests: int = field(default=0, init=False)
    _held: dict[str, Allowance] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._held: dict[str, Allowance] = {}

    @property
    def chain(self) -> "Sequence[Budget]":
        """This budget and all that it draws on."""
        found: list[Budget] = [self]
        above = self.parent
        while above is not None:
            found.append(above)
            above = above.parent
        return found

    def facts(self, price: Decimal | None = None) -> JsonObject:
        """The numbers that a decision is made on, for its record; what does not count is left out."""
        found: JsonObject = {"tool_calls": self.tool_calls, "max_tool_calls": self.limits.max_tool_calls}
        if price is not None:
            found["price_usd"] = float(price)
        if price is not None or self.cost_usd or self.reserved_usd:
            found |= {"spent_usd": float(self.cost_usd), "reserved_usd": float(self.reserved_usd)}
        return found

    def model_facts(self) -> JsonObject:
        """The numbers that a decision on a model call is made on, for its record."""
        found: JsonObject = {
            "iterations": self.iterations + self.reserved_iterations,
            "max_iterations": self.limits.max_iterations,
            "tokens": self.tokens + self.reserved_tokens,
            "spent_usd": float(self.cost_usd),
            "reserved_usd": float(self.reserved_usd),
        }
        limits = {"max_total_tokens": self.limits.max_total_tokens, "max_cost_usd": self.limits.max_cost_usd}
        return found | {name: float(most) for name, most in limits.items() if most is not None}

    def take_tool_call(self, held: str = "") -> Shortage | None:
        """Count one dispatch, here and in all parents, or say which limit forbids it.

        Args:
            held: Under which name it was held back, if it was.
        """
        was_held = self.holds(held)
        self.release(held)
        budget = None if was_held else self
        while budget is not None:
            wanted = budget.tool_calls + budget.reserved_tool_calls + 1
            if wanted > budget.limits.max_tool_calls:
                return Shortage(
                    "max_tool_calls",
                    wanted,
                    budget.limits.max_tool_calls,
                    Reason.MAX_TOOL_CALLS_EXCEEDED,
                    "max_tool_calls",
                )
            budget = budget.parent
        self.count_tool_call()
        return None

    def has_tool_call(self, held: str = "") -> bool:
        """Whether one dispatch more is allowed, here and in all parents, and none is held back for it."""
        if held in self._held:
            return False
        budget = self
        while budget is not None:
            if budget.tool_calls + budget.reserved_tool_calls >= budget.limits.max_tool_calls:
                return False
            budget = budget.parent
        return True

    def count_tool_call(self, held: str = "") -> None:
        """Count one dispatch that was allowed before, here and in all parents; see `take_tool_call`."""
        self.release(held)
        budget = self
        while budget is not None:
            budget.tool_calls += 1
            budget = budget.parent

    def return_tool_call(self) -> None:
        """Give back a dispatch that was taken and did not happen."""
        budget = self
        while budget is not None:
            budget.tool_calls -= 1
            budget = budget.parent

    def take_request(self) -> Shortage | None:
        """Count one HTTP request inside a call (a page, a retry), or say that no more are allowed."""
        budget = self
        while budget is not None:
            wanted = budget.requests + budget.reserved_requests + 1
            if wanted > budget.limits.max_requests:
                return Shortage(
                    "max_requests",
                    wanted,
                    budget.limits.max_requests,
                    Reason.MAX_REQUESTS_EXCEEDED,
                    "policy",
                )
            budget = budget.parent
        budget = self
        while budget is not None:
            budget.requests += 1
            budget = budget.parent
        return None

    @property
    def usd_left(self) -> Decimal | None:
        """What is left of the cost limits, here and in all parents, reservations taken off; null for no limit."""
        return self._usd_left()

    def reserve_model(self, reservation: ModelReservation, *, settled: bool = False) -> Shortage | None:
        """Set aside what a model call may use at most, here and in all parents; iterations are a run's own.

        Args:
            reservation: The most.
            settled: It was allowed before, so that what it costs is not asked again.
        """
        wanted, maximum = (
            self.iterations + self.reserved_iterations + reservation.iterations,
            self.limits.max_iterations,
        )
        if reservation.iterations and wanted > maximum:
            return Shortage("max_iterations", wanted, maximum, Reason.MAX_ITERATIONS_EXCEEDED, "max_iterations")
        budget = self
        while budget is not None:
            shortage = _model_shortage(budget, reservation)
            if shortage is not None and not (settled and shortage.limit == "max_cost_usd"):
                return shortage
            budget = budget.parent
        budget = self
        while budget is not None:
            budget.reserved_tokens += reservation.tokens
            budget.reserved_usd += reservation.cost_usd or 0
            budget = budget.parent
        self.reserved_iterations += reservation.iterations
        return None

    def settle_model(
        self,
        reservation: ModelReservation | None,
        *,
        tokens: int,
        cost_usd: Decimal | None,
        iterations: int = 0,
        cut_off: bool = False,
    ) -> None:
        """Give back a reservation and count what was really used, or may have been by an attempt that was `cut_off`.

        The reservation is null when a budget is rebuilt from a journal.
        """
        self.iterations += iterations
        self.reserved_iterations -= reservation.iterations if reservation is not None else 0
        budget = self
        while budget is not None:
            if reservation is not None:
                budget.reserved_tokens -= reservation.tokens
                budget.reserved_usd -= reservation.cost_usd or 0
            budget.tokens += tokens
            budget.cost_usd += cost_usd or 0
            if cut_off:
                budget.cut_off += 1
                budget.cut_off_usd += cost_usd or 0
            budget = budget.parent

    def find_cost(self, cost_usd: Decimal | None) -> None:
        """A call that was counted as cut off has a cost by now; null if it has none."""
        for budget in self.chain if cost_usd is not None else ():
            budget.cut_off -= 1
            budget.cut_off_usd -= cost_usd or 0

    def add_cost(self, cost_usd: Decimal) -> None:
        """Count what a tool call cost."""
        budget = self
        while budget is not None:
            budget.cost_usd += cost_usd
            budget = budget.parent

    def hold(self, name: str, most: Allowance) -> None:
        """Hold back what is spent but not counted here yet, or may be spent elsewhere, here and in all parents."""
        self._held[name] = most
        self._reserve(most, 1)

    def holds(self, name: str) -> bool:
        """Whether something is held back under a name."""
        return name in self._held

    def release(self, name: str) -> None:
        """Give back what was held under a name, because it is counted here from now on."""
        held = self._held.pop(name, None)
        if held is not None:
            self._reserve(held, -1)

    def park(self, name: str) -> None:
        """Leave what is still held to the parent, because the run of this budget waits or has ended."""
        held = list(self._held.values())
        for open_child in list(self._held):
            self.release(open_child)
        if self.parent is not None and held:
            self.parent.hold(name, reduce(Allowance.plus, held))

    def has_plenty(self, reservation: ModelReservation) -> bool:
        """Whether a model call would use no more than a quarter of what is left, here and in all parents."""
        tokens, cost_usd = self._tokens_left(), self._usd_left()
        return (tokens is None or _PLENTY * reservation.tokens <= tokens) and (
            cost_usd is None or reservation.cost_usd is None or _PLENTY * reservation.cost_usd <= cost_usd
        )

    def _reserve(self, most: Allowance, sign: int) -> None:
        budget = self
        while budget is not None:
            budget.reserved_tool_calls += sign * most.tool_calls
            budget.reserved_requests += sign * most.requests
            budget.reserved_tokens += sign * (most.tokens or 0)
            budget.reserved_usd += sign * (most.cost_usd or Decimal(0))
            budget = budget.parent

    def take_nested(
        self, *, tool_calls: int, tokens: int, cost_usd: Decimal, cut_off_usd: Decimal | None = None
    ) -> None:
        """Count what a nested run had used that was not driven under this budget; see `cut_off_usd` for the last."""
        budget = self
        while budget is not None:
            budget.tool_calls += tool_calls
            budget.tokens += tokens
            budget.cost_usd += cost_usd
            if cut_off_usd is not None:
                budget.cut_off += 1
                budget.cut_off_usd += cut_off_usd
            budget = budget.parent

    def allowance(self, seconds: float) -> Allowance:
        """What is left here and in all parents, reservations taken off, for a nested run that these do not see."""
        return Allowance(
            tool_calls=max(min(map(_tool_calls_left, self.chain)), 0),
            requests=max(min(map(_requests_left, self.chain)), 0),
            tokens=self._tokens_left(),
            cost_usd=self._usd_left(),
            seconds=max(seconds, 0.0),
        )

    def usage(self, seconds_left: float) -> Allowance:
        """What was spent here, in the terms of what may be."""
        return Allowance(
            tool_calls=self.tool_calls,
            requests=self.requests,
            tokens=self.tokens,
            cost_usd=self.cost_usd,
            seconds=max(self.limits.timeout_s - seconds_left, 0.0),
        )

    def cost_shortage(self, cost_usd: Decimal) -> Shortage | None:
        """Whether so much more could be spent without crossing a cost limit."""
        return next(
            (found for budget in self.chain if (found := _usd_shortage(budget, cost_usd)) is not None),
            None,
        )

    def _tokens_left(self) -> int | None:
        left = [
            budget.limits.max_total_tokens - budget.tokens - budget.reserved_tokens
            for budget in self.chain
            if budget.limits.max_total_tokens is not None
        ]
        return max(min(left), 0) if left else None

    def _usd_left(self) -> Decimal | None:
        left = [
            budget.limits.max_cost_usd - budget.cost_usd - budget.reserved_usd
            for budget in self.chain
            if budget.limits.max_cost_usd is not None
        ]
        return max(min(left), Decimal(0)) if left else None


def _tool_calls_left(budget: Budget) -> int:
    return budget.limits.max_tool_calls - budget.tool_calls - budget.reserved_tool_calls


def _requests_left(budget: Budget) -> int:
    return budget.limits.max_requests - budget.requests - budget.reserved_requests


def _model_shortage(budget: Budget, reservation: ModelReservation) -> Shortage | None:
    maximum = budget.limits.max_total_tokens
    tokens = budget.tokens + budget.reserved_tokens + reservation.tokens
    if maximum is not None and tokens > maximum:
        return Shortage("max_total_tokens", tokens, maximum, Reason.MAX_TOKENS_EXCEEDED, "max_tokens")
    return None if reservation.cost_usd is None else _usd_shortage(budget, reservation.cost_usd)


def _usd_shortage(budget: Budget, cost_usd: Decimal) -> Shortage | None:
    maximum = budget.limits.max_cost_usd
    total = budget.cost_usd + budget.reserved_usd + cost_usd
    if maximum is None or total <= maximum:
        return None
    return Shortage("max_cost_usd", float(total), float(maximum), Reason.MAX_COST_EXCEEDED, "max_cost")

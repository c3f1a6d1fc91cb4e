"""Budgets under any order of parallel calls: three generations of runs, one state machine."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    MultipleResults,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
)

from toolcrib.contracts import Limits
from toolcrib.core.policy import Budget, ModelReservation

NOTHING: MultipleResults[Any] = multiple()

cents = st.integers(0, 60).map(lambda count: Decimal(count) / 100)


class Budgets(RuleBasedStateMachine):
    """Runs take, reserve, settle and give back; what the model expects is counted beside, per run that acted."""

    held: Bundle[tuple[Budget, ModelReservation]] = Bundle("held")
    taken: Bundle[Budget] = Bundle("taken")

    @initialize(
        limits=st.lists(
            st.builds(
                Limits,
                max_tool_calls=st.integers(0, 6),
                max_requests=st.integers(1, 6),
                max_total_tokens=st.none() | st.integers(1, 500),
                max_cost_usd=st.none() | cents,
            ),
            min_size=4,
            max_size=4,
        )
    )
    def runs(self, limits: list[Limits]):
        root = Budget(limits[0])
        child = Budget(limits[1], root)
        self.family = [root, child, Budget(limits[2], child), Budget(limits[3], root)]
        self.calls = 0
        self.reserved: list[ModelReservation] = []
        self.tokens = 0
        self.cost = Decimal(0)

    @rule(target=taken, index=st.integers(0, 3))
    def call(self, index: int):
        budget = self.family[index]
        before = [each.tool_calls for each in self.family]
        if budget.take_tool_call() is None:
            self.calls += 1
            return budget
        assert [each.tool_calls for each in self.family] == before
        return NOTHING

    @rule(budget=consumes(taken))
    def give_back(self, budget: Budget):
        budget.return_tool_call()
        self.calls -= 1

    @rule(index=st.integers(0, 3))
    def request(self, index: int):
        self.family[index].take_request()

    @rule(target=held, index=st.integers(0, 3), tokens=st.integers(0, 200), cost=st.none() | cents)
    def reserve(self, index: int, tokens: int, cost: Decimal | None):
        budget, reservation = self.family[index], ModelReservation(tokens, cost)
        before = [(each.reserved_tokens, each.reserved_usd) for each in self.family]
        if budget.reserve_model(reservation) is None:
            self.reserved.append(reservation)
            return budget, reservation
        assert [(each.reserved_tokens, each.reserved_usd) for each in self.family] == before
        return NOTHING

    @rule(holding=consumes(held), share=st.fractions(0, 1))
    def settle(self, holding: tuple[Budget, ModelReservation], share: float):
        budget, reservation = holding
        used = int(reservation.tokens * share)
        cost = None if reservation.cost_usd is None else reservation.cost_usd * used / max(reservation.tokens, 1)
        budget.settle_model(reservation, tokens=used, cost_usd=cost)
        self.reserved.remove(reservation)
        self.tokens += used
        self.cost += cost or 0

    @rule(index=st.integers(0, 3), cost=cents)
    def pay(self, index: int, cost: Decimal):
        budget = self.family[index]
        if budget.cost_shortage(cost) is None:
            budget.add_cost(cost)
            self.cost += cost

    @invariant()
    def no_run_exceeds_its_limits(self):
        for budget in self.family:
            limits = budget.limits
            assert 0 <= budget.tool_calls <= limits.max_tool_calls
            assert 0 <= budget.requests <= limits.max_requests
            if limits.max_total_tokens is not None:
                assert budget.tokens + budget.reserved_tokens <= limits.max_total_tokens
            if limits.max_cost_usd is not None:
                assert budget.cost_usd + budget.reserved_usd <= limits.max_cost_usd

    @invariant()
    def the_root_counts_everything_and_holds_what_is_reserved(self):
        root = self.family[0]
        assert root.tool_calls == self.calls
        assert root.reserved_tokens == sum(each.tokens for each in self.reserved)
        assert root.reserved_usd == sum((each.cost_usd or Decimal(0) for each in self.reserved), Decimal(0))
        assert (root.tokens, root.cost_usd) == (self.tokens, self.cost)


@pytest.mark.requirement("policy.never_overspends", "policy.reservations")
class TestBudgets(Budgets.TestCase):
    settings = settings(max_examples=60, stateful_step_count=30, deadline=None)

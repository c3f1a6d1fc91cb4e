"""Budgets: what is taken, reserved, settled and refused, in one run and through its parents."""

from decimal import Decimal
from typing import Any

import pytest

from toolcrib.contracts import Limits, Reason
from toolcrib.contracts.specs.models_and_limits import Allowance
from toolcrib.core.policy import Budget, ModelReservation, Shortage


def budget(parent: Budget | None = None, **limits: Any) -> Budget:
    return Budget(Limits.model_validate(limits), parent)


def reservation(tokens: int = 100, cost_usd: str | None = "0.10") -> ModelReservation:
    return ModelReservation(tokens, None if cost_usd is None else Decimal(cost_usd))


@pytest.mark.requirement("policy.never_overspends", "policy.shortage")
def test_a_child_s_call_counts_in_its_parents_and_stops_at_the_nearest_limit():
    root = budget(max_tool_calls=2)
    child = budget(root, max_tool_calls=10)

    assert [child.take_tool_call(), root.take_tool_call()] == [None, None]
    shortage = child.take_tool_call()

    assert shortage == Shortage("max_tool_calls", 3, 2, Reason.MAX_TOOL_CALLS_EXCEEDED, "max_tool_calls")
    assert (root.tool_calls, child.tool_calls) == (2, 1)


@pytest.mark.requirement("policy.never_overspends")
def test_a_call_that_is_held_back_or_over_the_limit_of_a_parent_has_none_left():
    root = budget(max_tool_calls=2)
    child = budget(root, max_tool_calls=10)
    child.hold("c1", Allowance(requests=0, seconds=0, tool_calls=1))

    assert (child.has_tool_call("c1"), child.has_tool_call("c2")) == (False, True)
    child.take_tool_call()
    assert child.has_tool_call("c2") is False


@pytest.mark.requirement("policy.reservations")
def test_what_a_run_holds_back_when_it_waits_is_held_back_by_its_parent():
    root = budget(max_tool_calls=5)
    child = budget(root, max_tool_calls=5)
    child.hold("c1", Allowance(requests=0, seconds=0, tool_calls=1))
    child.hold("c2", Allowance(requests=0, seconds=0, tool_calls=2))

    child.park("child")

    assert (child.holds("c1"), child.holds("c2"), root.holds("child")) == (False, False, True)
    assert (child.reserved_tool_calls, root.reserved_tool_calls) == (0, 3)


@pytest.mark.requirement("policy.reservations")
def test_a_call_that_did_not_happen_is_given_back_everywhere():
    root = budget(max_tool_calls=1)
    child = budget(root)
    child.take_tool_call()

    child.return_tool_call()

    assert (root.tool_calls, child.tool_calls) == (0, 0)
    assert child.take_tool_call() is None


@pytest.mark.requirement("policy.never_overspends", "policy.shortage")
def test_requests_count_in_all_parents_up_to_their_limits():
    root = budget(max_requests=1)
    child = budget(root)

    assert child.take_request() is None
    assert child.take_request() == Shortage("max_requests", 2, 1, Reason.MAX_REQUESTS_EXCEEDED, "policy")
    assert (root.requests, child.requests) == (1, 1)


@pytest.mark.requirement("policy.never_overspends")
def test_iterations_are_a_run_s_own():
    child = budget(budget(max_iterations=1), max_iterations=2)
    turn = ModelReservation(10, None, iterations=1)
    child.reserve_model(turn)
    child.settle_model(turn, tokens=5, cost_usd=None, iterations=1)

    assert child.reserve_model(turn) is None
    shortage = Shortage("max_iterations", 3, 2, Reason.MAX_ITERATIONS_EXCEEDED, "max_iterations")
    assert child.reserve_model(turn) == shortage
    assert child.reserve_model(reservation()) is None, "what is no turn needs no iteration"


@pytest.mark.requirement("policy.never_overspends", "policy.shortage")
def test_a_model_call_is_refused_while_others_hold_the_rest_of_the_tokens():
    root = budget(max_total_tokens=250)
    children = [budget(root), budget(root)]
    assert [child.reserve_model(reservation()) for child in children] == [None, None]

    shortage = children[0].reserve_model(reservation())

    assert shortage == Shortage("max_total_tokens", 300, 250, Reason.MAX_TOKENS_EXCEEDED, "max_tokens")
    assert (root.reserved_tokens, children[0].reserved_tokens) == (200, 100)


@pytest.mark.requirement("policy.never_overspends", "policy.shortage")
def test_a_model_call_is_refused_when_it_could_cross_the_cost_limit_of_a_parent():
    root = budget(max_cost_usd="0.25")
    child = budget(root, max_cost_usd="5")
    child.add_cost(Decimal("0.16"))

    shortage = child.reserve_model(reservation())

    assert shortage == Shortage("max_cost_usd", 0.26, 0.25, Reason.MAX_COST_EXCEEDED, "max_cost")
    assert child.reserve_model(reservation(cost_usd="0.09")) is None
    assert child.cost_shortage(Decimal("0.01")) is not None
    assert child.cost_shortage(Decimal(0)) is None


@pytest.mark.requirement("policy.reservations")
def test_a_settled_reservation_leaves_only_what_was_used():
    root = budget(max_total_tokens=100)
    child = budget(root)
    held = reservation()
    child.reserve_model(held)

    child.settle_model(held, tokens=30, cost_usd=Decimal("0.02"))

    for spent in (root, child):
        assert (spent.reserved_tokens, spent.reserved_usd) == (0, 0)
        assert (spent.tokens, spent.cost_usd) == (30, Decimal("0.02"))
    assert child.reserve_model(reservation(tokens=70)) is None


@pytest.mark.requirement("policy.unknown_price")
def test_with_an_unknown_price_tokens_are_limited_and_costs_are_not():
    left = budget(max_cost_usd="0", max_total_tokens=150)
    held = reservation(cost_usd=None)

    assert left.reserve_model(held) is None
    assert left.reserve_model(held) is not None
    left.settle_model(held, tokens=150, cost_usd=None)
    assert (left.tokens, left.cost_usd, left.reserved_usd) == (150, 0, 0)


@pytest.mark.requirement("policy.unknown_price")
def test_null_limits_do_not_limit():
    left = budget(max_cost_usd=None, max_total_tokens=None)

    assert left.reserve_model(reservation(tokens=10**9, cost_usd="1000000")) is None
    assert left.cost_shortage(Decimal(10**9)) is None


@pytest.mark.requirement("policy.reservations")
def test_a_run_rebuilt_from_its_journal_settles_without_a_reservation():
    rebuilt = budget()

    rebuilt.settle_model(None, tokens=70, cost_usd=Decimal("0.5"))

    assert (rebuilt.tokens, rebuilt.cost_usd, rebuilt.reserved_tokens) == (70, Decimal("0.5"), 0)


@pytest.mark.requirement("policy.shortage", "policy.actionable")
def test_a_shortage_says_both_numbers_in_full_and_what_to_do():
    left = budget(max_total_tokens=1_000_000)

    shortage = left.reserve_model(reservation(tokens=1_000_123))

    assert shortage is not None
    assert shortage.message == (
        "limit max_total_tokens is 1000000 and this would make 1000123; raise max_total_tokens to go on"
    )


@pytest.mark.requirement("costs.lines")
def test_what_was_cut_off_counts_against_limits_and_is_kept_apart():
    root = budget(max_cost_usd="0.50")
    child = budget(root)

    child.settle_model(None, tokens=10, cost_usd=Decimal("0.30"), cut_off=True)
    child.settle_model(None, tokens=10, cost_usd=None, cut_off=True)
    child.take_nested(tool_calls=1, tokens=5, cost_usd=Decimal("0.15"), cut_off_usd=Decimal("0.05"))

    assert (root.cost_usd, root.cut_off, root.cut_off_usd) == (Decimal("0.45"), 3, Decimal("0.35"))
    assert root.usd_left == child.usd_left == Decimal("0.05")
    child.find_cost(None)
    child.find_cost(Decimal("0.05"))
    assert (root.cost_usd, root.cut_off, root.cut_off_usd) == (Decimal("0.45"), 2, Decimal("0.30"))


@pytest.mark.requirement("costs.narrowed")
def test_a_request_that_was_narrowed_before_is_not_asked_for_its_cost_again():
    small = budget(max_cost_usd="0.05", max_total_tokens=150)

    assert small.reserve_model(reservation(), settled=True) is None
    refused = small.reserve_model(reservation(), settled=True)
    assert refused is not None
    assert refused.limit == "max_total_tokens"

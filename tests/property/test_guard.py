"""Properties of the guard: deny by default, one decision per call, and never a count without permission to run."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.contracts import Limits, Principal, SideEffects, ToolDefinition, ToolRevision
from toolcrib.core.policy import Budget, CallPolicy, decide, permit, permits
from toolcrib.kinds.python.shape import PythonImplementation

NAMES = ["search", "update", "delete"]
ORDER: list[SideEffects] = ["none", "reads", "writes"]

names = st.sampled_from(NAMES)
effects = st.sampled_from(ORDER)
prices = st.none() | st.integers(0, 300).map(lambda cents: Decimal(cents) / 100)
definitions = st.builds(
    ToolDefinition,
    name=names,
    side_effects=effects,
    enabled=st.booleans(),
    requires_confirmation=st.booleans(),
    cost_usd_per_call=prices,
    implementation=st.just(PythonImplementation(function="crm:search")),
)
tools = st.builds(
    ToolRevision,
    definition=definitions,
    revision=st.just(1),
    content_hash=st.just("sha256:0"),
    status=st.sampled_from(["active", "deprecated", "blocked"]),
    status_message=st.none(),
    sunset=st.none(),
    replacement=st.none(),
    realm=st.just("acme"),
    made_by=st.just("ann"),
    created_at=st.just(datetime(2026, 1, 31, tzinfo=UTC)),
)
policies = st.builds(
    CallPolicy, allowed=st.none() | st.frozensets(names), side_effects=effects, confirm=st.frozensets(names)
)
budgets = st.builds(
    Budget,
    st.builds(Limits, max_tool_calls=st.integers(0, 3), max_cost_usd=prices),
    tool_calls=st.integers(0, 3),
    cost_usd=st.integers(0, 300).map(lambda cents: Decimal(cents) / 100),
)


@pytest.mark.requirement("policy.rules", "policy.confirmation", "policy.counted", "policy.actionable")
@given(tools, policies, budgets)
def test_a_call_runs_only_if_no_rule_forbids_it_and_is_counted_only_then(
    tool: ToolRevision, policy: CallPolicy, budget: Budget
):
    definition, limits, before = tool.definition, budget.limits, budget.tool_calls
    price, most = definition.cost_usd_per_call, limits.max_cost_usd
    may_run = (
        (policy.allowed is None or tool.name in policy.allowed)
        and tool.status != "blocked"
        and definition.enabled
        and ORDER.index(definition.side_effects) <= ORDER.index(policy.side_effects)
        and before < limits.max_tool_calls
        and (price is None or most is None or budget.cost_usd + price <= most)
    )
    asks = definition.requires_confirmation or tool.name in policy.confirm

    decision = decide(tool, policy, budget)

    assert decision.outcome == ("deny" if not may_run else "ask" if asks else "allow")
    assert budget.tool_calls == before + may_run
    if not may_run:
        assert decision.reason is not None
        assert decision.message


segments = st.sampled_from(["tools", "crm", "search", "execute", "*"])
uris = st.lists(segments.filter("*".__ne__), min_size=1, max_size=5).map(lambda parts: "ai://" + "/".join(parts))
grants = st.lists(segments, min_size=1, max_size=5).map(lambda parts: "ai://" + "/".join(parts))


@pytest.mark.requirement("policy.grant_patterns")
@given(grants, uris)
def test_a_grant_covers_exactly_what_its_segments_say(grant: str, uri: str):
    pattern, target = grant[5:].split("/"), uri[5:].split("/")
    covered = all(wanted in ("*", found) for wanted, found in zip(pattern, target, strict=False)) and (
        len(pattern) == len(target) or (pattern[-1] == "*" and len(target) > len(pattern))
    )

    assert permits((grant,), uri) is covered


@pytest.mark.requirement("policy.permission")
@given(tools, st.lists(grants, max_size=3).map(tuple), st.sampled_from(["acme", "other"]))
def test_permission_needs_a_grant_in_the_tool_s_own_realm(tool: ToolRevision, held: tuple[str, ...], realm: str):
    allowed = permit(tool, Principal(id="ann", realm=realm, grants=held)) is None

    assert allowed is (realm == "acme" and permits(held, f"ai://tools/utility/{tool.name}/execute"))

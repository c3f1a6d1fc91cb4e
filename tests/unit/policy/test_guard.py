"""The guard: each rule, their order, what is counted, and that a refusal says what to do."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from toolcrib.contracts import GuardDecision, Limits, Principal, Reason, SideEffects, ToolDefinition, ToolRevision
from toolcrib.core.policy import Budget, CallPolicy, decide, permit
from toolcrib.kinds.python.shape import PythonImplementation

NAMES = frozenset({"search_deals", "update_deal", "delete_deal"})


def tool(name: str = "search_deals", *, status: str = "active", **fields: Any) -> ToolRevision:
    life = {key: fields.pop(key) for key in ("status_message", "replacement") if key in fields}
    definition = ToolDefinition.model_validate(
        {"name": name, "category": "crm", "side_effects": "reads", "implementation": PythonImplementation(function="x")}
        | fields
    )
    return ToolRevision.model_validate(
        {
            "definition": definition,
            "revision": 1,
            "content_hash": "sha256:0",
            "status": status,
            "realm": "acme",
            "made_by": "ann",
            "created_at": datetime(2026, 1, 31, tzinfo=UTC),
        }
        | life
    )


def budget(**limits: Any) -> Budget:
    return Budget(Limits.model_validate(limits))


def denied(decision: GuardDecision, rule: str, reason: Reason) -> str:
    assert (decision.outcome, decision.rule, decision.reason) == ("deny", rule, reason)
    assert decision.message is not None
    return decision.message


@pytest.mark.requirement("policy.rules", "policy.counted")
def test_a_tool_that_no_rule_forbids_is_allowed_and_counted_with_the_facts():
    left = budget()

    decision = decide(tool(), CallPolicy(), left)

    facts = {"side_effects": "reads", "tool_calls": 0, "max_tool_calls": 25}
    assert decision == GuardDecision(outcome="allow", rule="allowed", inputs=facts)
    assert left.tool_calls == 1


@pytest.mark.requirement("policy.rules", "policy.actionable")
@pytest.mark.parametrize(
    ("allowed", "hint"),
    [
        (NAMES - {"search_deals"}, "is not among the 2 allowed tools; use one of: delete_deal, update_deal"),
        (frozenset({"search_deal", "zip"}), "use one of: search_deal"),
        (frozenset[str](), "no tool may be called here"),
    ],
)
def test_a_tool_outside_of_the_allow_list_is_denied_with_those_inside(allowed: frozenset[str], hint: str):
    message = denied(decide(tool(), CallPolicy(allowed=allowed), budget()), "allow_list", Reason.TOOL_NOT_ALLOWED)

    assert "tool 'search_deals'" in message
    assert message.endswith(hint)


@pytest.mark.requirement("policy.rules")
def test_a_tool_inside_of_the_allow_list_is_allowed():
    assert decide(tool(), CallPolicy(allowed=NAMES), budget()).outcome == "allow"


@pytest.mark.requirement("policy.rules", "policy.actionable")
@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "tool 'search_deals@1.0.0' is blocked"),
        (
            {"status_message": "it lost data", "replacement": "find_deals"},
            "tool 'search_deals@1.0.0' is blocked: it lost data; use 'find_deals' instead",
        ),
    ],
)
def test_a_blocked_tool_is_denied_with_the_reason_and_its_replacement(fields: dict[str, str], message: str):
    blocked = tool(status="blocked", **fields)

    assert denied(decide(blocked, CallPolicy(), budget()), "life_cycle", Reason.TOOL_BLOCKED) == message


@pytest.mark.requirement("policy.rules")
def test_a_deprecated_tool_still_runs():
    assert decide(tool(status="deprecated"), CallPolicy(), budget()).outcome == "allow"


@pytest.mark.requirement("policy.rules", "policy.actionable")
def test_a_disabled_tool_is_denied():
    decision = decide(tool(enabled=False), CallPolicy(), budget())

    assert denied(decision, "life_cycle", Reason.TOOL_DISABLED).endswith("is disabled; enable it to call it")


@pytest.mark.requirement("policy.rules")
@pytest.mark.parametrize("most", ["none", "reads", "writes"])
@pytest.mark.parametrize("effects", ["none", "reads", "writes"])
def test_a_tool_does_no_more_than_its_run_allows(effects: SideEffects, most: SideEffects):
    order = ["none", "reads", "writes"]

    decision = decide(tool(side_effects=effects), CallPolicy(side_effects=most), budget())

    assert (decision.outcome == "allow") is (order.index(effects) <= order.index(most))


@pytest.mark.requirement("policy.rules", "policy.actionable")
def test_forbidden_side_effects_are_named_with_the_way_out():
    decision = decide(tool(side_effects="writes"), CallPolicy(side_effects="reads"), budget())

    assert denied(decision, "side_effects", Reason.SIDE_EFFECTS_FORBIDDEN) == (
        "tool 'search_deals' writes and this run allows at most 'reads'; "
        "use a tool that does no more, or start the run with side_effects 'writes'"
    )


@pytest.mark.requirement("policy.rules", "policy.actionable", "policy.counted")
def test_the_call_after_the_last_allowed_one_is_denied_and_not_counted():
    left = budget(max_tool_calls=2)
    assert [decide(tool(), CallPolicy(), left).outcome for _ in range(2)] == ["allow", "allow"]

    decision = decide(tool(), CallPolicy(), left)

    message = denied(decision, "max_tool_calls", Reason.MAX_TOOL_CALLS_EXCEEDED)
    assert message == "limit max_tool_calls is 2 and this would make 3; raise max_tool_calls to go on"
    assert decision.inputs == {"side_effects": "reads", "tool_calls": 2, "max_tool_calls": 2, "maximum": 2}
    assert left.tool_calls == 2


@pytest.mark.requirement("policy.rules", "policy.counted")
def test_a_priced_tool_that_would_cross_the_cost_limit_is_denied_and_its_call_given_back():
    left = budget(max_cost_usd="1.00")
    left.add_cost(Decimal("0.75"))

    affordable = decide(tool(cost_usd_per_call="0.25"), CallPolicy(), left)
    decision = decide(tool(cost_usd_per_call="0.26"), CallPolicy(), left)

    assert affordable.outcome == "allow"
    assert "would make 1.01" in denied(decision, "max_cost_usd", Reason.MAX_COST_EXCEEDED)
    assert left.tool_calls == 1


@pytest.mark.requirement("policy.confirmation", "policy.counted")
@pytest.mark.parametrize(
    ("asking", "policy"),
    [
        (tool(requires_confirmation=True), CallPolicy()),
        (tool(), CallPolicy(confirm=frozenset({"search_deals"}))),
    ],
)
def test_a_tool_that_needs_a_person_is_asked_for_and_counted(asking: ToolRevision, policy: CallPolicy):
    left = budget()

    decision = decide(asking, policy, left)

    assert (decision.outcome, decision.rule, decision.message) == ("ask", "confirmation", "a person must confirm")
    assert left.tool_calls == 1


@pytest.mark.requirement("policy.rules")
def test_the_rules_decide_in_their_order():
    wrong_everywhere: dict[str, Any] = {
        "status": "blocked",
        "enabled": False,
        "side_effects": "writes",
        "requires_confirmation": True,
    }
    policy = CallPolicy(allowed=frozenset(), side_effects="none")
    steps: list[tuple[dict[str, Any], CallPolicy, int]] = [
        (wrong_everywhere, policy, 0),
        (wrong_everywhere, CallPolicy(side_effects="none"), 0),
        (wrong_everywhere | {"status": "active"}, CallPolicy(side_effects="none"), 0),
        (wrong_everywhere | {"status": "active", "enabled": True}, CallPolicy(side_effects="none"), 0),
        (wrong_everywhere | {"status": "active", "enabled": True}, CallPolicy(), 0),
        (wrong_everywhere | {"status": "active", "enabled": True}, CallPolicy(), 1),
    ]

    decisions = [decide(tool(**fields), policy, budget(max_tool_calls=most)) for fields, policy, most in steps]

    assert [(decision.rule, decision.reason) for decision in decisions] == [
        ("allow_list", Reason.TOOL_NOT_ALLOWED),
        ("life_cycle", Reason.TOOL_BLOCKED),
        ("life_cycle", Reason.TOOL_DISABLED),
        ("side_effects", Reason.SIDE_EFFECTS_FORBIDDEN),
        ("max_tool_calls", Reason.MAX_TOOL_CALLS_EXCEEDED),
        ("confirmation", None),
    ]


@pytest.mark.requirement("policy.counted")
def test_a_denied_call_costs_nothing():
    left = budget()

    decide(tool(), CallPolicy(allowed=frozenset()), left)

    assert left == budget()


@pytest.mark.requirement("policy.permission")
@pytest.mark.parametrize(
    ("grants", "fields"),
    [
        (("ai://*",), {}),
        (("ai://tools/crm/*/execute",), {}),
        (("ai://agents/*", "ai://tools/crm/search_deals/execute"), {}),
        (("ai://tools/crm/secret/execute",), {"security_uri": "ai://tools/crm/secret/execute"}),
    ],
)
def test_a_principal_with_a_grant_may_execute(grants: tuple[str, ...], fields: dict[str, str]):
    assert permit(tool(**fields), Principal(id="ann", realm="acme", grants=grants)) is None


@pytest.mark.requirement("policy.permission", "policy.actionable")
@pytest.mark.parametrize(
    ("principal", "fields"),
    [
        (Principal(id="ann", realm="acme", grants=()), {}),
        (Principal(id="ann", realm="acme", grants=("ai://tools/crm/*/read",)), {}),
        (Principal(id="ann", realm="acme", grants=("ai://tools/crm/search_deals/execute",)), {"category": "erp"}),
        (Principal(id="ann", realm="other"), {}),
    ],
)
def test_a_principal_without_a_grant_or_of_another_realm_is_told_which_grant_is_missing(
    principal: Principal, fields: dict[str, str]
):
    decision = permit(tool(**fields), principal)

    assert decision is not None
    message = denied(decision, "permission", Reason.PERMISSION_MISSING)
    category = fields.get("category", "crm")
    assert message == (
        f"principal 'ann' has no grant for 'ai://tools/{category}/search_deals/execute'; ask the realm's owner for it"
    )

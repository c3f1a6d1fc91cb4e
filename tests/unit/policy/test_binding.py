"""What an approval is bound to: equal policies have equal hashes, and every rule of a call counts."""

from dataclasses import replace
from typing import Any

import pytest

from toolcrib.contracts import NoDelete
from toolcrib.core.policy import CallPolicy, policy_hash

pytestmark = pytest.mark.requirement("approvals.binding")
POLICY = CallPolicy(allowed=frozenset({"pay", "ship"}))


def test_the_order_of_names_does_not_matter_nor_what_other_tools_must_meet():
    same = replace(POLICY, allowed=frozenset({"ship", "pay"}), narrowed={"ship": {}}, versions={"ship": "2"})
    assert policy_hash(POLICY, "pay") == policy_hash(same, "pay")


@pytest.mark.parametrize(
    "change",
    [
        {"allowed": frozenset({"pay"})},
        {"allowed": None},
        {"side_effects": "reads"},
        {"guardrails": (NoDelete(),)},
        {"confirm": frozenset({"pay"})},
        {"narrowed": {"pay": {"required": ["usd"]}}},
        {"versions": {"pay": "1.0.0"}},
    ],
)
def test_any_other_rule_is_another_policy(change: dict[str, Any]):
    assert policy_hash(replace(POLICY, **change), "pay") != policy_hash(POLICY, "pay")

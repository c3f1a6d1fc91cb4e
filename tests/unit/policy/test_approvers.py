"""Who may decide on a waiting call, and who may see it."""

from datetime import UTC, datetime
from typing import Any

import pytest

from toolcrib.contracts import Approval, PermissionDenied, Principal
from toolcrib.core.policy import check_approver, may_see_approval

APPROVAL = Approval(
    approval_id="apr_1",
    realm="default",
    run_id="r2",
    position="t1.c1",
    root_run_id="r1",
    call_id="c1",
    tool="pay",
    version="1.0.0",
    content_hash="sha256:t",
    arguments_hash="sha256:a",
    side_effects="writes",
    input={},
    requested_by="owner",
    acting="robot",
    requested_at=datetime(2026, 1, 31, tzinfo=UTC),
)
WRITE = ("ai://approvals/pay/write",)


def who(name: str, **fields: Any) -> Principal:
    values: dict[str, Any] = {"id": name, "grants": WRITE}
    return Principal(**(values | fields))


@pytest.mark.requirement("approvals.grant", "approvals.self")
@pytest.mark.parametrize(
    "principal", [who("ann"), who("pager", kind="service"), who("bo", grants=("ai://approvals/*",))]
)
def test_somebody_else_with_the_grant_decides(principal: Principal):
    check_approver(principal, APPROVAL, {"owner", "robot"})


@pytest.mark.requirement("approvals.grant", "approvals.self")
@pytest.mark.parametrize(
    ("principal", "said"),
    [
        (who("ann", grants=("ai://approvals/pay/read",)), "no grant for 'ai://approvals/pay/write'"),
        (who("ann", grants=("ai://approvals/ship/write",)), "no grant"),
        (who("ann", realm="elsewhere"), "belongs to realm 'elsewhere'"),
        (who("ann", kind="agent"), "is an agent"),
        (who("owner"), "takes part in the run"),
        (who("robot", kind="service"), "takes part in the run"),
        (who("pager", kind="service", acts_for="owner"), "takes part in the run"),
    ],
)
def test_nobody_else_decides_and_the_message_says_why(principal: Principal, said: str):
    with pytest.raises(PermissionDenied, match=said):
        check_approver(principal, APPROVAL, {"owner", "robot"})


@pytest.mark.requirement("approvals.self")
def test_an_operator_may_let_people_decide_on_their_own_calls_but_no_agent():
    check_approver(who("owner"), APPROVAL, {"owner"}, allow_self=True)
    with pytest.raises(PermissionDenied, match="is an agent"):
        check_approver(who("owner", kind="agent"), APPROVAL, {"owner"}, allow_self=True)


@pytest.mark.requirement("approvals.grant")
@pytest.mark.parametrize(
    ("principal", "sees"),
    [
        (who("owner", grants=()), True),
        (who("robot", grants=()), True),
        (who("ann"), True),
        (who("ann", grants=("ai://approvals/pay/read",)), True),
        (who("ann", grants=("ai://tools/*",)), False),
    ],
)
def test_who_has_started_it_or_has_a_grant_sees_it(principal: Principal, sees: bool):
    assert may_see_approval(principal, APPROVAL) is sees

"""Policy: the guard before every call, guardrails, budgets, caps, permissions and approvals.

It imports registry, expressions and contracts. The executor, runs, engines and the packages above core import it.
Decisions: docs/decisions/0016, 0022.
"""

from typing import TYPE_CHECKING

from toolcrib.contracts.base import names_on_use

if TYPE_CHECKING:
    from toolcrib.core.policy.approvals import (
        check_approver,
        check_grant,
        may_see_approval,
        policy_hash,
        visible_approvals,
    )
    from toolcrib.core.policy.budget import CALL_LIMITS, Budget, ModelReservation, Shortage
    from toolcrib.core.policy.caps import (
        BUDGET,
        CapReservation,
        Caps,
        CountedCaps,
        RunCaps,
        Spend,
        Spender,
        SpendingCap,
        names_of,
        read_caps,
    )
    from toolcrib.core.policy.content_filters import Screening, filters_of, screen, withholds_text
    from toolcrib.core.policy.guard import (
        CallPolicy,
        TakeCall,
        confirms,
        decide,
        guardrails_of,
        is_in_service,
        least,
        permit,
        policy_of,
        take_call,
    )
    from toolcrib.core.policy.guardrails import (
        NO_MAKERS,
        Check,
        Guarded,
        GuardedCall,
        GuardedModel,
        GuardrailMaker,
        Guardrails,
        Objection,
        deletes,
        is_untrusted,
        strictest,
    )
    from toolcrib.core.policy.permissions import (
        Accounts,
        NoAccounts,
        VisibleTools,
        as_of_now,
        names_covered,
        permits,
        require_grant,
        require_publish,
    )
else:
    __getattr__ = names_on_use(
        __name__,
        {
            "toolcrib.core.policy.approvals": (
                "check_approver check_grant may_see_approval policy_hash visible_approvals"
            ),
            "toolcrib.core.policy.budget": "Budget CALL_LIMITS ModelReservation Shortage",
            "toolcrib.core.policy.caps": (
                "BUDGET CapReservation Caps CountedCaps RunCaps Spend Spender SpendingCap names_of read_caps"
            ),
            "toolcrib.core.policy.content_filters": "Screening filters_of screen withholds_text",
            "toolcrib.core.policy.guard": (
                "CallPolicy TakeCall confirms decide guardrails_of is_in_service least permit policy_of take_call"
            ),
            "toolcrib.core.policy.guardrails": (
                "Check Guarded GuardedCall GuardedModel GuardrailMaker Guardrails NO_MAKERS Objection deletes "
                "is_untrusted strictest"
            ),
            "toolcrib.core.policy.permissions": (
                "Accounts NoAccounts VisibleTools as_of_now names_covered permits require_grant require_publish"
            ),
        },
    )

__all__ = [
    "BUDGET",
    "CALL_LIMITS",
    "NO_MAKERS",
    "Accounts",
    "Budget",
    "CallPolicy",
    "CapReservation",
    "Caps",
    "Check",
    "CountedCaps",
    "Guarded",
    "GuardedCall",
    "GuardedModel",
    "GuardrailMaker",
    "Guardrails",
    "ModelReservation",
    "NoAccounts",
    "Objection",
    "RunCaps",
    "Screening",
    "Shortage",
    "Spend",
    "Spender",
    "SpendingCap",
    "TakeCall",
    "VisibleTools",
    "as_of_now",
    "check_approver",
    "check_grant",
    "confirms",
    "decide",
    "deletes",
    "filters_of",
    "guardrails_of",
    "is_in_service",
    "is_untrusted",
    "least",
    "may_see_approval",
    "names_covered",
    "names_of",
    "permit",
    "permits",
    "policy_hash",
    "policy_of",
    "read_caps",
    "require_grant",
    "require_publish",
    "screen",
    "strictest",
    "take_call",
    "visible_approvals",
    "withholds_text",
]

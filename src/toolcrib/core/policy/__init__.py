"""What may happen: the guard before every call, guardrails, the budget of a run, the grants of a principal."""

from toolcrib.core.policy.accounts import Accounts, NoAccounts, as_of_now
from toolcrib.core.policy.approvals import check_approver, check_grant, may_see_approval
from toolcrib.core.policy.binding import policy_hash
from toolcrib.core.policy.budget import CALL_LIMITS, Budget, ModelReservation, Shortage
from toolcrib.core.policy.caps import (
    BUDGET,
    Caps,
    CountedCaps,
    Purse,
    Spend,
    Spender,
    SpendingCap,
    Taken,
    names_of,
    read_caps,
)
from toolcrib.core.policy.content_filters import Screening, filters_of, screen, withholds_text
from toolcrib.core.policy.guard import (
    CallPolicy,
    confirms,
    decide,
    guardrails_of,
    is_in_service,
    least,
    permit,
    policy_of,
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
    strictest,
)
from toolcrib.core.policy.nature import deletes, is_untrusted
from toolcrib.core.policy.permissions import Reach
from toolcrib.core.policy.permissions_part import permits
from toolcrib.core.policy.publishing import require_publish

__all__ = [
    "BUDGET",
    "CALL_LIMITS",
    "NO_MAKERS",
    "Accounts",
    "Budget",
    "CallPolicy",
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
    "Purse",
    "Reach",
    "Screening",
    "Shortage",
    "Spend",
    "Spender",
    "SpendingCap",
    "Taken",
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
    "names_of",
    "permit",
    "permits",
    "policy_hash",
    "policy_of",
    "read_caps",
    "require_publish",
    "screen",
    "strictest",
    "withholds_text",
]

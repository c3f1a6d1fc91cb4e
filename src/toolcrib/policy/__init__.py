"""What may happen: the guard before every call, the budget of a run, the grants of a principal."""

from toolcrib.policy.binding import policy_hash
from toolcrib.policy.budget import Budget, ModelReservation, Shortage
from toolcrib.policy.guard import CallPolicy, decide, is_in_service, least, permit
from toolcrib.policy.permissions import permits
from toolcrib.policy.reach import Reach

__all__ = [
    "Budget",
    "CallPolicy",
    "ModelReservation",
    "Reach",
    "Shortage",
    "decide",
    "is_in_service",
    "least",
    "permit",
    "permits",
    "policy_hash",
]

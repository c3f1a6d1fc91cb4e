"""Who may decide on a waiting call, and the hash of the policy that a decision covers.

A decision must come from a principal outside the run. Equal hashes mean that the guard applies the same rules; the
remaining budget is not part of it, because it is checked again before each call.
"""

from collections.abc import Set as AbstractSet
from typing import Protocol

from toolcrib.contracts import Approval, PermissionDenied, Principal, canonical, digest
from toolcrib.core.policy.guard import CallPolicy
from toolcrib.core.policy.permissions import names_covered, permits
from toolcrib.infrastructure.queries.grammar import Condition, Either, Every, equal


class Decidable(Protocol):
    """Something about a call that a person decides."""

    @property
    def realm(self) -> str:
        """Of the run that makes the call."""
        ...

    @property
    def tool(self) -> str:
        """Name of the tool that is called."""
        ...


def approval_uri(tool: str, verb: str) -> str:
    """The security URI of the approvals of a tool: `ai://approvals/{tool}/{verb}`."""
    return f"ai://approvals/{tool}/{verb}"


def may_see_approval(principal: Principal, approval: Approval) -> bool:
    """Whether a principal has started what waits, or has a grant for the approvals of its tool."""
    mine = principal.id in {approval.requested_by, approval.acting}
    return mine or any(permits(principal.grants, approval_uri(approval.tool, verb)) for verb in ("read", "write"))


def visible_approvals(principal: Principal) -> Condition:
    """What is true of the approvals that a principal may see, and of no others."""
    names = names_covered(principal.grants, "approvals", "read", "write")
    if names is None:
        return Every(())
    return Either(
        (equal("requested_by", principal.id), equal("acting", principal.id), *(equal("tool", name) for name in names))
    )


def check_grant(principal: Principal, tool: str) -> None:
    """Let a principal pass who has the grant to decide on the calls of a tool.

    Raises:
        PermissionDenied: It has none; the message names it.
    """
    uri = approval_uri(tool, "write")
    if not permits(principal.grants, uri):
        msg = f"principal {principal.id!r} has no grant for {uri!r}; ask the realm's owner for it"
        raise PermissionDenied(msg)


def check_approver(
    principal: Principal, approval: Decidable, involved: AbstractSet[str], *, allow_self: bool = False
) -> None:
    """Let a principal pass who may decide.

    Args:
        principal: Who wants to decide.
        approval: On what.
        involved: Ids of all who have a part in the runs above the call: who started them, acts in them, is acted for.
        allow_self: Whether those may decide too, as the operator says.

    Raises:
        PermissionDenied: It is an agent, of another realm, has no grant for the approvals of the tool, or is one of
            those.
    """
    if principal.realm != approval.realm:
        msg = f"principal {principal.id!r} belongs to realm {principal.realm!r} and cannot decide in another realm"
        raise PermissionDenied(msg)
    check_grant(principal, approval.tool)
    if principal.kind == "agent":
        msg = f"only a person can decide on {approval.tool!r}, and principal {principal.id!r} is an agent"
        raise PermissionDenied(msg)
    if not allow_self and not involved.isdisjoint({principal.id, principal.user}):
        msg = (
            f"principal {principal.id!r} takes part in the run that calls {approval.tool!r}, so another "
            "person must decide; "
            "ask one with the grant, or the operator to set TOOLCRIB_SERVER_SELF_APPROVAL"
        )
        raise PermissionDenied(msg)


def policy_hash(policy: CallPolicy, name: str) -> str:
    """The hash of what the guard applies to the calls of a tool: `sha256:…` of its canonical JSON.

    Args:
        policy: The run's policy.
        name: The tool's.
    """
    rules = {
        "allowed": None if policy.allowed is None else sorted(policy.allowed),
        "side_effects": policy.side_effects,
        "guardrails": [rule.model_dump(mode="json") for rule in policy.guardrails],
        "confirm": name in policy.confirm,
        "narrowed": policy.narrowed.get(name),
        "version": policy.versions.get(name),
    }
    return f"sha256:{digest(canonical(rules))}"

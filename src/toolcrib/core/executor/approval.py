"""Calls that need a person: what the person is shown, and whether the answer still applies.

An answer for other arguments, another revision or another policy is not used. Waiting is up to the run.
"""

from datetime import timedelta
from typing import Final

from toolcrib.contracts import (
    ApprovalDecision,
    ApprovalRequested,
    ErrorCode,
    GuardDecision,
    JsonObject,
    Reason,
    SideEffects,
    ToolRevision,
    digest,
)
from toolcrib.core.executor.envelope import Denied, EnvelopeBuilder, error
from toolcrib.core.executor.ports import Clock
from toolcrib.core.policy import policy_hash

_DOES: Final[dict[SideEffects, str]] = {"none": "changes nothing", "reads": "reads", "writes": "writes"}


def request_of(builder: EnvelopeBuilder, tool: ToolRevision, asks: GuardDecision, clock: Clock) -> ApprovalRequested:
    """What a person is asked: the very call, and until when.

    Args:
        builder: Of the call, whose arguments are valid.
        tool: The revision that would run.
        asks: The guard's decision.
        clock: Time.
    """
    definition, policy = tool.definition, builder.context.policy
    limits = [limit for limit in (asks.expires_s, definition.confirmation_expires_s) if limit is not None]
    return ApprovalRequested(
        position=builder.call.position,
        call_id=builder.call_id,
        name=tool.name,
        version=tool.version,
        input=builder.input,
        arguments_hash=f"sha256:{digest(builder.arguments)}",
        content_hash=tool.content_hash,
        policy_hash=policy_hash(policy, tool.name),
        narrowed=policy.narrowed.get(tool.name),
        side_effects=definition.side_effects,
        message=f"{definition.title or tool.name} {_DOES[definition.side_effects]}; {asks.message or asks.rule}",
        expires_at=clock.now() + timedelta(seconds=min(limits)) if limits else None,
    )


def differences(request: ApprovalRequested, shown: ApprovalRequested | ApprovalDecision) -> tuple[str, ...]:
    """What of a call is not as it was shown: nothing if a decision on the one is good for the other.

    A policy that was not recorded, by an older release, is not compared.
    """
    before = shown.policy_hash
    changed = {
        "the arguments": request.arguments_hash != shown.arguments_hash,
        "the tool's revision": request.content_hash != shown.content_hash,
        "the policy": before is not None and request.policy_hash != before,
    }
    return tuple(what for what, differs in changed.items() if differs)


async def confirm(builder: EnvelopeBuilder, request: ApprovalRequested) -> JsonObject | None:
    """Ask the person; returns the arguments as they were edited, null if they were not.

    Raises:
        Denied: The call does not run.
    """
    answer = await builder.context.journal.confirm(request)
    builder.lap("wait")
    if answer is None:
        raise Denied(error(ErrorCode.POLICY_DENIED, Reason.APPROVAL_EXPIRED, "nobody approved the call in time"))
    if not answer.approved:
        why = f": {answer.reason}" if answer.reason else ""
        raise Denied(error(ErrorCode.POLICY_DENIED, Reason.APPROVAL_REJECTED, f"a person rejected the call{why}"))
    changed = differences(request, answer)
    if changed:
        message = f"the approval is not for this call: {' and '.join(changed)} changed since; ask again"
        raise Denied(error(ErrorCode.POLICY_DENIED, Reason.APPROVAL_REJECTED, message))
    return answer.edited_input

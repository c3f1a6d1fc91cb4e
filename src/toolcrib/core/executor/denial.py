"""A call that was refused before anything ran: its envelope says `denied`, with the rule of the guard that refused."""

from toolcrib.contracts import ErrorCode, GuardDecision, Reason
from toolcrib.core.executor.envelope import error
from toolcrib.core.executor.ports import CallFailed


class Denied(CallFailed):
    """The call was refused before anything ran."""


def denial(decision: GuardDecision) -> Denied:
    """What a denial of the guard raises."""
    reason = decision.reason or Reason.TOOL_NOT_ALLOWED
    message = decision.message or decision.rule
    return Denied(error(ErrorCode.POLICY_DENIED, reason, message, rule=decision.rule, inputs=decision.inputs))

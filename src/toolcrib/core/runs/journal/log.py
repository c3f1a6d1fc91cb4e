"""The journal of a call outside any run: there is none, so nothing may wait, hand over or nest."""

from toolcrib.contracts import (
    ApprovalDecision,
    ApprovalRequested,
    CallStarted,
    ClientResult,
    Conflict,
    FailedCall,
    JsonObject,
    Limits,
    Principal,
    RunResult,
    ToolEnvelope,
    ToolRevision,
)
from toolcrib.core.executor import CallContext, Lanes
from toolcrib.core.policy import Budget, CallPolicy


class Unrecorded:
    """Lets a call be judged, and refuses all that needs a run."""

    async def fence(self) -> None:
        """Nobody else has a call that is not made."""

    async def intend(self, intent: CallStarted) -> None:
        """Refuse: a call without a run leaves no record."""
        raise _no_run(intent.name)

    async def confirm(self, request: ApprovalRequested) -> ApprovalDecision | None:
        """Refuse: nothing could be resumed."""
        raise _no_run(request.name)

    async def hand_off(self, prepared: ToolEnvelope) -> ClientResult:
        """Refuse: nothing could be resumed."""
        raise _no_run(prepared.name)

    def prepared_before(self, position: str) -> ToolEnvelope | None:
        """Nothing was before."""
        return None

    async def spawn(
        self,
        position: str,
        tool: ToolRevision,
        arguments: JsonObject,
        *,
        attempt: int = 1,
        instead_of: FailedCall | None = None,
        timeout_s: float | None = None,
    ) -> RunResult:
        """Refuse: there is no parent."""
        raise _no_run(tool.name)

    def failed_before(self, position: str) -> FailedCall | None:
        """Nothing was before."""
        return None


def outside_call(principal: Principal, *, test: bool = False) -> CallContext:
    """The context of a call from outside any run, which can be judged but not made.

    Args:
        principal: Who calls.
        test: The call is its test of a tool, which may then be a draft of its own.
    """
    limits = Limits()
    return CallContext(
        principal=principal,
        policy=CallPolicy(tester=principal.id if test else None),
        budget=Budget(limits),
        journal=Unrecorded(),
        lanes=Lanes(limits.max_parallel_calls),
        run_id="",
    )


def _no_run(name: str) -> Conflict:
    return Conflict(f"tool {name!r} was called outside a run; start a run for it")

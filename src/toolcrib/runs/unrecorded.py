"""The journal of a call outside any run: there is none, so nothing may wait, hand over or nest."""

from toolcrib.contracts import (
    ApprovalDecision,
    ApprovalRequested,
    CallStarted,
    ClientResult,
    Conflict,
    JsonObject,
    RunResult,
    ToolEnvelope,
    ToolRevision,
)


class Unrecorded:
    """Lets a call be judged, and refuses all that needs a run."""

    async def intend(self, intent: CallStarted) -> None:
        """Refuse: a call without a run leaves no record."""
        raise _no_run(intent.name)

    async def confirm(self, request: ApprovalRequested) -> ApprovalDecision | None:
        """Refuse: nothing could be resumed."""
        raise _no_run(request.name)

    async def hand_off(self, prepared: ToolEnvelope) -> ClientResult:
        """Refuse: nothing could be resumed."""
        raise _no_run(prepared.name)

    async def spawn(self, position: str, tool: ToolRevision, arguments: JsonObject) -> RunResult:
        """Refuse: there is no parent."""
        raise _no_run(tool.name)


def _no_run(name: str) -> Conflict:
    return Conflict(f"tool {name!r} was called outside a run; start a run for it")

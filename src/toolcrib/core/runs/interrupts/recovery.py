"""Calls that were started and have no outcome: which may be repeated, and the envelopes of those that are not.

None is repeated if that could do twice. Source of the rule: contracts, section 2. `none` and `reads` are repeated;
`writes` only if idempotent or keyed. What becomes of the others is found out elsewhere: see `runs.doubts`.
"""

from decimal import Decimal
from typing import Protocol

from toolcrib.contracts import (
    CallStarted,
    ErrorCode,
    JournalDivergence,
    Json,
    Reason,
    Run,
    ToolEnvelope,
    ToolError,
    ToolRevision,
)
from toolcrib.core.executor import Clock, ToolCall, error


class Pinned(Protocol):
    """Finds the exact revision that a call was started with."""

    async def pinned(self, realm: str, content_hash: str) -> ToolRevision:
        """The revision with this content hash."""
        ...


class InDoubt:
    """What the journal says of calls that were cut off.

    Args:
        tools: Finds the revision that was started.
        clock: Time of the envelopes made here.
    """

    def __init__(self, tools: Pinned, clock: Clock) -> None:
        self._tools = tools
        self._clock = clock

    def check_same(self, call: ToolCall, recorded: str) -> None:
        """Refuse a program that asks for another tool than the journal has at this position.

        Raises:
            JournalDivergence: It does.
        """
        if call.name != recorded:
            msg = (
                f"at {call.position!r} the journal has a call of {recorded!r} and the program asks for {call.name!r}; "
                "the code changed while the run was open: finish it with the old code or start it anew"
            )
            raise JournalDivergence(msg)

    async def tool_of(self, content_hash: str, realm: str) -> ToolRevision:
        """The revision that a call was started with."""
        return await self._tools.pinned(realm, content_hash)

    def found(
        self, intent: CallStarted, run: Run, output: Json, *, tainted: bool, cost_usd: Decimal | None
    ) -> ToolEnvelope:
        """The envelope of a call that is found to have taken effect."""
        return self._envelope(intent, run, output=output, tainted=tainted, cost_usd=cost_usd)

    def unknown(self, intent: CallStarted, run: Run, tried: str, *, cost_usd: Decimal | None) -> ToolEnvelope:
        """The envelope of a call of which nobody can tell.

        Args:
            intent: The call as it was started.
            run: The run that it belongs to.
            tried: Who was asked and could not tell, for the message; empty if nobody was.
            cost_usd: What it may have cost.
        """
        message = (
            f"{intent.name!r} was started and the process stopped before its outcome was known; it writes and is not "
            f"idempotent, so it was not repeated. {tried}Check whether it took effect"
        )
        unknown = error(ErrorCode.UNKNOWN, Reason.OUTCOME_UNKNOWN, message)
        return self._envelope(intent, run, error=unknown, cost_usd=cost_usd)

    def cut_off(self, intent: CallStarted, run: Run, reason: Reason) -> ToolEnvelope:
        """The envelope of a call that was stopped from outside while it ran."""
        if intent.side_effects == "writes":
            message = f"{intent.name!r} was stopped ({reason}) while it ran; whether it took effect is unknown"
            return self._envelope(intent, run, error=error(ErrorCode.UNKNOWN, Reason.OUTCOME_UNKNOWN, message))
        message = f"{intent.name!r} was stopped ({reason}) before it ended"
        return self._envelope(intent, run, error=error(ErrorCode.TIMEOUT, reason, message))

    def _envelope(
        self,
        intent: CallStarted,
        run: Run,
        *,
        output: Json = None,
        error: ToolError | None = None,
        tainted: bool = False,
        cost_usd: Decimal | None = None,
    ) -> ToolEnvelope:
        now = self._clock.now()
        return ToolEnvelope(
            call_id=intent.call_id,
            name=intent.name,
            version=intent.version,
            position=intent.position,
            status="success" if error is None else "error",
            input=intent.input,
            output=output,
            error=error,
            t_start=now,
            t_end=now,
            run_id=run.run_id,
            conversation_id=run.request.conversation_id,
            session_id=run.request.session_id,
            attempts=intent.attempt,
            side_effects=intent.side_effects,
            content_hash=intent.content_hash,
            tainted=tainted,
            cost_usd=cost_usd,
        )

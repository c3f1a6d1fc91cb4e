"""Calls that were started and have no outcome: repeated, looked up, or labelled unknown.

None is repeated if that could do twice. Source of the rule: contracts, section 2. `none` and `reads` are repeated;
`writes` only if idempotent or keyed; else the tool's `reconcile` is asked whether the key took effect, and if it
cannot tell, the outcome is unknown.
"""

from collections.abc import Awaitable, Callable
from decimal import Decimal
from typing import Protocol, TypeAlias, cast

from toolcrib.contracts import (
    CallStarted,
    ErrorCode,
    JournalDivergence,
    Json,
    JsonObject,
    Reason,
    Run,
    ToolEnvelope,
    ToolError,
    ToolRevision,
)
from toolcrib.executor import Clock, ToolCall, error, is_repeatable
from toolcrib.policy import is_untrusted

Ask: TypeAlias = Callable[[ToolCall], Awaitable[ToolEnvelope]]
"""Calls a tool that reconciles, under the name and the rights of the run."""


class Pinned(Protocol):
    """Finds the exact revision that a call was started with."""

    async def pinned(self, realm: str, content_hash: str) -> ToolRevision:
        """The revision with this content hash."""
        ...


class InDoubt:
    """Decides what becomes of a call whose outcome the journal does not know.

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

    async def judge(self, intent: CallStarted, run: Run, ask: Ask) -> ToolEnvelope | None:
        """The envelope of a call that must not be repeated, or null if it may be.

        Args:
            intent: The call as it was started.
            run: The run that it belongs to.
            ask: Calls the tool's `reconcile`, if it has one.
        """
        tool = await self._tools.pinned(run.realm, intent.content_hash)
        if is_repeatable(tool.definition):
            return None
        price = tool.definition.cost_usd_per_call
        if tool.definition.reconcile is not None:
            answer = await _reconcile(tool.definition.reconcile, intent, ask)
            told: Json = answer.output
            said = cast("JsonObject", told) if isinstance(told, dict) else {}
            if said.get("found") is True:
                output: Json = said.get("output")
                tainted = answer.tainted or is_untrusted(tool.definition)
                return self._envelope(intent, run, output=output, tainted=tainted, cost_usd=price)
            if said.get("found") is False:
                return None
        message = (
            f"{intent.name!r} was started and the process stopped before its outcome was known; it writes and is not "
            "idempotent, so it was not repeated. Check whether it took effect"
        )
        unknown = error(ErrorCode.UNKNOWN, Reason.OUTCOME_UNKNOWN, message)
        return self._envelope(intent, run, error=unknown, cost_usd=price)

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


async def _reconcile(name: str, intent: CallStarted, ask: Ask) -> ToolEnvelope:
    """What the tool answers. The position tells the attempt, because the answer is good for that one only."""
    position = f"{intent.position}.reconcile{intent.attempt}"
    return await ask(ToolCall(position, name, {"idempotency_key": intent.idempotency_key}))

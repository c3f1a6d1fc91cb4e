"""Recovery of calls that were started and have no outcome: which may be repeated, and the envelopes of the others.

`none` and `reads` are repeated; `writes` only if idempotent or keyed. The outcome of the others stays unknown until a
lookup, a person or a client settles it.

Also the calls with an unknown outcome in runs that have ended, and how they were settled. Pure: reads envelopes and
signals; whether a principal may settle a call is decided by the caller.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Final, Protocol

from toolcrib.contracts import (
    CallFinished,
    CallStarted,
    ErrorCode,
    Event,
    JournalDivergence,
    Json,
    JsonObject,
    Reason,
    Run,
    Signal,
    ToolEnvelope,
    ToolError,
    ToolRevision,
)
from toolcrib.contracts.base.envelope import SideEffects
from toolcrib.contracts.runs.trace import OutcomeTold, Settlement, settlement_signal
from toolcrib.core.executor import CallRequest, Clock, error


class Pinned(Protocol):
    """Finds the exact revision that a call was started with."""

    async def get_revision(self, realm: str, content_hash: str) -> ToolRevision:
        """The revision with this content hash."""
        ...


class InterruptedCalls:
    """What the journal says of calls that were cut off.

    Args:
        tools: Finds the revision that was started.
        clock: Time of the envelopes made here.
        foretell: What a replay comes to next in a run; null elsewhere.
    """

    def __init__(self, tools: Pinned, clock: Clock, foretell: Callable[[str], Sequence[Event] | None]) -> None:
        self._tools = tools
        self._clock = clock
        self._foretell = foretell

    def check_same(self, call: CallRequest, recorded: str) -> None:
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
        return await self._tools.get_revision(realm, content_hash)

    def success_envelope(
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
        unknown = self._outcome_unknown(run, intent.position, message)
        return self._envelope(intent, run, error=unknown, cost_usd=cost_usd)

    def cut_off(self, intent: CallStarted, run: Run, reason: Reason) -> ToolEnvelope:
        """The envelope of a call that was stopped from outside while it ran."""
        if intent.side_effects == "writes":
            message = f"{intent.name!r} was stopped ({reason}) while it ran; whether it took effect is unknown"
            return self._envelope(intent, run, error=self._outcome_unknown(run, intent.position, message))
        message = f"{intent.name!r} was stopped ({reason}) before it ended"
        return self._envelope(intent, run, error=error(ErrorCode.TIMEOUT, reason, message))

    def _outcome_unknown(self, run: Run, position: str, message: str) -> ToolError:
        """The error of a call whose effect nobody knows, labelled with it, as releases before 0.2 did not."""
        recorded = (event for event in self._foretell(run.run_id) or () if isinstance(event, CallFinished))
        failures = (event.envelope.error for event in recorded if event.position == position)
        is_old = any(failure is not None and "effect" not in (failure.details or {}) for failure in failures)
        label: JsonObject = {} if is_old else {"effect": "unknown"}
        return error(ErrorCode.UNKNOWN, Reason.OUTCOME_UNKNOWN, message, **label)

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


_TRY: Final = re.compile(r"\.try[0-9]+$")


def first_try(position: str) -> str:
    """Position of the first try of a call, of which this may be a further one."""
    return _TRY.sub("", position)


def in_doubt(side_effects: SideEffects, failure: ToolError | None) -> bool:
    """Whether a call that failed has taken effect or may have."""
    if failure is None or side_effects != "writes":
        return False
    return failure.effect != "none" or failure.reason is Reason.TOOL_TIMEOUT  # as older releases tell it


def settlement_of(position: str, signals: Mapping[str, Signal]) -> Settlement | None:
    """What was said of the call at a position, or of all its tries; null if nothing was.

    Args:
        position: Of the call in its run.
        signals: Those that were left for the run, by name.
    """
    signal = signals.get(settlement_signal(position)) or signals.get(settlement_signal(first_try(position)))
    if signal is None:
        return None
    outcome = OutcomeTold.model_validate(signal.payload)
    return Settlement(**outcome.model_dump(), made_by=signal.made_by, at=signal.at)


def as_settled(envelope: ToolEnvelope, signals: Mapping[str, Signal]) -> ToolEnvelope:
    """The envelope of a call of a run that has ended, as it would be if what was said since had been known.

    One that took effect is a success with the output that was told. The error of one that did not says no more that it
    may have, so whoever takes up the run makes it once more.
    """
    settlement = settlement_of(envelope.position, signals)
    if settlement is None or envelope.error is None:
        return envelope
    if settlement.happened:
        return envelope.model_copy(update={"status": "success", "output": settlement.output, "error": None})
    message = f"{envelope.error.message}; {settlement.made_by!r} has said since that it did not take effect"
    known = {"message": message, "details": {"reason": Reason.TOOL_FAILED.value}}
    return envelope.model_copy(update={"error": envelope.error.model_copy(update=known)})

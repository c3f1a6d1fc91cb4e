"""The approvals of a run and of workflow steps: requests, decisions, and requests that must be repeated.

A decision covers what the person was shown. If the call's arguments, its tool's revision or its policy have changed
when the run resumes, the request is withdrawn, and there is a new one with the next number. Expiry is a signal too, so
the first of decision and expiry counts in every process.
"""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import Final, TypeAlias

from msgspec import Struct

from toolcrib.contracts import (
    CLOCK,
    ApprovalDecided,
    ApprovalDecision,
    ApprovalRequested,
    ApprovalWithdrawn,
    Json,
    JsonObject,
    JsonSchema,
    Run,
    Signal,
    ToolRevision,
    approval_signal,
    canonical,
    digest,
    hash_call,
)
from toolcrib.core.executor import Clock, differences
from toolcrib.core.runs.interrupts.suspension import Suspended
from toolcrib.core.runs.journal.history import History
from toolcrib.core.runs.journal.log import RunLog

Signals: TypeAlias = Callable[[str], Awaitable[Signal | None]]
"""Looks up a signal that was left for the run."""
Leave: TypeAlias = Callable[[Signal], Awaitable[bool]]
"""Leaves a signal for the run; false if there is one of its name."""


class RunApprovals:
    """Asks for the calls of a run.

    Args:
        run: The run.
        log: Where it is written.
        history: What was asked and answered before this process took the run.
        signals: Answers.
        leave: Leaves the answer of the clock.
        clock: Time.
    """

    def __init__(
        self, run: Run, *, log: RunLog, history: History, signals: Signals, leave: Leave, clock: Clock
    ) -> None:
        self._run = run
        self._log = log
        self._history = history
        self._signals = signals
        self._leave = leave
        self._clock = clock

    async def confirm(self, request: ApprovalRequested, *, acting: str) -> ApprovalDecision | None:
        """The answer to a request, null if the time was over before there was one.

        Args:
            request: What would happen now.
            acting: Id of the principal who makes the call.

        Raises:
            Suspended: There is no answer yet, or nobody waits for one any more.
        """
        if request.position in self._history.given_up:
            raise Suspended("awaiting_approval", approval_signal(request.position))
        shown = self._ensure_request(request, acting)
        decision = await self._decision(shown)
        while decision is not None and (changed := differences(shown, decision)):
            shown = self._ask_again(shown, request, changed, acting)
            decision = await self._decision(shown)
        return decision

    def close(self, position: str) -> None:
        """Withdraw the request for a call that has ended without an answer: nobody needs to decide any more."""
        request = self._history.approvals.get(position)
        if request is not None and position not in self._history.decisions.keys() | self._history.withdrawn:
            self._withdraw(request, "the call has ended without it")

    def give_up(self, position: str) -> None:
        """Withdraw for good what is asked at a position, or at one of the further tries there."""
        for place, request in self._history.approvals.items():
            is_here = place == position or place.startswith(f"{position}.")
            if is_here and place not in self._history.decisions.keys() | self._history.withdrawn:
                self._history.given_up.add(place)
                self._withdraw(request, "the step that has asked has ended without it", for_good=True)

    # Inside -----------------------------------------------------------------------------------------------------------

    def _ensure_request(self, request: ApprovalRequested, acting: str) -> ApprovalRequested:
        """The request as it is in the inbox."""
        known = self._history.approvals.get(request.position)
        if known is None:
            return self._ask(request, acting)
        if request.position in self._history.withdrawn:  # and a crash came before the next one
            return self._ask(_next(request, known), acting)
        changed = differences(request, known)
        return self._ask_again(known, request, changed, acting) if changed else known

    def _ask(self, request: ApprovalRequested, acting: str) -> ApprovalRequested:
        run_request = self._run.request
        request = request.model_copy(
            update={
                "root_run_id": run_request.root_run_id
                or (self._run.run_id if run_request.parent_run_id is None else None),
                "callers": tuple(ref for known, ref in run_request.open_tools.items() if known != request.content_hash),
                "requested_by": run_request.starter,
                "acting": acting,
            }
        )
        self._history.ask(request)
        self._log.add(request)
        return request

    def _ask_again(
        self, known: ApprovalRequested, request: ApprovalRequested, changed: Sequence[str], acting: str
    ) -> ApprovalRequested:
        self._withdraw(known, f"{' and '.join(changed)} changed after it was shown")
        return self._ask(_next(request, known), acting)

    def _withdraw(self, request: ApprovalRequested, reason: str, *, for_good: bool = False) -> None:
        withdrawn = ApprovalWithdrawn(
            position=request.position, number=request.number, reason=reason, for_good=for_good
        )
        self._history.withdrawn.add(request.position)
        self._log.add(withdrawn)

    async def _decision(self, request: ApprovalRequested) -> ApprovalDecision | None:
        known = self._history.decisions.get(request.position)
        if known is not None:
            return known.decision
        name = approval_signal(request.position, request.number)
        signal = await self._signals(name) or await self._over(request, name)
        if signal is None:
            raise Suspended("awaiting_approval", name, wake_at=request.expires_at)
        decision = ApprovalDecision.model_validate(signal.payload) if signal.payload else None
        decided = ApprovalDecided(
            position=request.position, number=request.number, decision=decision, made_by=signal.made_by
        )
        self._history.decisions[request.position] = decided
        self._log.add(decided)
        return decision

    async def _over(self, request: ApprovalRequested, name: str) -> Signal | None:
        """The answer of the clock, if the time is over; a person's that came at the same moment counts."""
        now = self._clock.now()
        if request.expires_at is None or now < request.expires_at:
            return None
        over = Signal(name=name, payload={}, made_by=CLOCK, at=now)
        return over if await self._leave(over) else await self._signals(name)


def _next(request: ApprovalRequested, before: ApprovalRequested) -> ApprovalRequested:
    return request.model_copy(update={"number": before.number + 1})


_KINDS: Final[dict[type, str]] = {
    bool: "boolean",
    int: "number",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}


class Question(Struct, frozen=True):
    """What a person is asked."""

    step: str
    """Name of the step."""
    message: str
    show: JsonObject
    """What the person sees and may change."""
    expires_s: float | None = None
    """Seconds after which it counts as rejected; null for never."""


def request_for(question: Question, position: str, workflow: ToolRevision, now: datetime) -> ApprovalRequested:
    """The request that stands in the inbox.

    Args:
        question: What is asked.
        position: Of the step in its run.
        workflow: The revision that runs; who may decide on its calls may decide on this.
        now: The moment in which it is asked.
    """
    shown, expires_s = canonical(question.show), question.expires_s
    return ApprovalRequested(
        position=position,
        call_id=hash_call(workflow.name, workflow.version, shown, position),
        name=workflow.name,
        version=workflow.version,
        input=question.show,
        arguments_hash=f"sha256:{digest(shown)}",
        content_hash=workflow.content_hash,
        narrowed=_like(question.show),
        side_effects=workflow.definition.side_effects,
        message=question.message,
        expires_at=None if expires_s is None else now + timedelta(seconds=expires_s),
        step=question.step,
    )


def _like(shown: JsonObject) -> JsonSchema:
    """What it may become: the same members with values of the same kinds, so that later steps can read it."""
    return {
        "type": "object",
        "properties": {name: _kind_of(value) for name, value in shown.items()},
        "required": list(shown),
        "additionalProperties": False,
    }


def _kind_of(value: Json) -> JsonSchema:
    return {} if value is None else {"type": _KINDS[type(value)]}

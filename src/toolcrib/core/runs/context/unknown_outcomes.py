"""Finds out whether a call with an unknown outcome took effect: by the tool's lookup, or by a person.

The lookup is the tool that `reconcile` names. It gets the idempotency key and returns `{"found": true, "output": …}`,
`{"found": false}`, or anything else if it cannot tell. "Not found" is trusted only after the tool's `timeout_s` since
the start of the call, because a request sent before a crash may still arrive. A failed lookup is repeated some times.
These waits are in the journal and hold no memory.

A person is asked if the tool says so (`on_unknown: ask`) and the lookup could not tell. After a crash nobody is asked
before the tool's `timeout_s` since the start of the call has passed: a process that was only frozen ends the call then,
so what the person finds does not change any more. It happened: the given output is the call's. It did not: the call is
made once more, with its key. Unknown, or no answer in time: the call's error says that the outcome is unknown.
"""

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Final, Literal, TypeAlias, cast

from msgspec import Struct, structs

from toolcrib.contracts import (
    DELEGATES,
    ApprovalDecision,
    ApprovalRequested,
    CallStarted,
    ErrorCode,
    Event,
    Json,
    JsonObject,
    Run,
    SignalAwaited,
    SignalReceived,
    ToolDefinition,
    ToolEnvelope,
    ToolError,
    canonical,
    digest,
)
from toolcrib.contracts.runs.events import CallDoubted
from toolcrib.core.executor import CallContext, CallRequest, is_repeatable
from toolcrib.core.policy import Budget, CallPolicy, is_untrusted
from toolcrib.core.runs.context.ports import RunPorts
from toolcrib.core.runs.context.waits import rest_name
from toolcrib.core.runs.journal.history import History
from toolcrib.core.runs.journal.log import RunLog

Confirm: TypeAlias = Callable[[ApprovalRequested], Awaitable[ApprovalDecision | None]]
"""Asks a person; null if nobody decided in time. May suspend the run instead of returning."""
Until: TypeAlias = Callable[[str, datetime, float], Awaitable[None]]
"""Lets time pass until a moment, once per name; may suspend the run if that is more seconds away than the last."""

Finding: TypeAlias = ToolEnvelope | Literal["undone"] | None
"""The call's envelope if it took effect; that it did not; null if that cannot be told."""

HELD_S: Final = 5.0
"""Seconds of a wait through which the run is not suspended."""
_WAITS_S: Final = (1.0, 10.0, 60.0)
"""Before a lookup that failed is asked again."""
_PASSING: Final = frozenset(
    {ErrorCode.TIMEOUT, ErrorCode.RATE_LIMIT, ErrorCode.NETWORK_ERROR, ErrorCode.PROVIDER_ERROR}
)
"""Failures of a lookup after which it is asked again."""


class InquiryScope(Struct, frozen=True):
    """The part of a run's program whose call is in doubt: in its name, and with its rights, others are asked."""

    context: CallContext
    confirm: Confirm
    conclude: Callable[[ToolEnvelope], Awaitable[None]]
    """Writes down how a call has ended."""


class OutcomeResolver:
    """Finds out for one run.

    Args:
        run: The run.
        log: The writing end of its journal.
        history: What its journal knows.
        run_ports: What it needs of the engine.
        until: Waits.
    """

    def __init__(self, run: Run, log: RunLog, history: History, run_ports: RunPorts, until: Until) -> None:
        self._run = run
        self._log = log
        self._history = history
        self._around = run_ports.engine
        self._in_doubt = run_ports.engine.in_doubt
        self._until = until

    async def judge(
        self, part: InquiryScope, intent: CallStarted, since: datetime | None = None
    ) -> ToolEnvelope | None:
        """The envelope of a call that must not be repeated, or null if it may be.

        Args:
            part: Whose call it is.
            intent: The call as it was started, and cut off.
            since: When another run has started it, whose nested runs are not gone on with; null for this one's.
        """
        if since is None and (intent.position in self._history.handoffs or intent.position in self._history.failed):
            return None  # it was only prepared here and the client performs it; or it is known to have failed
        tool = await self._tool(intent.content_hash)
        if is_repeatable(tool) and not (since is not None and _is_begun_anew(tool)):
            return None
        inquiry = Inquiry(tool, intent, since or self._history.begun_at[intent.position])
        finding = await self._look_up(part, inquiry) or await self._ask_person(part, inquiry, crashed=True)
        if finding is None:
            return self._in_doubt.unknown(intent, self._run, _describe_sources(tool), cost_usd=tool.cost_usd_per_call)
        return None if finding == "undone" else finding

    def holds(self, position: str) -> bool:
        """Whether a call has failed and somebody is being asked whether it took effect."""
        return position in self._history.doubted

    async def take(self, envelope: ToolEnvelope) -> bool:
        """Keep a call that has just failed, if its effect is unknown and there is somebody to be asked about it."""
        failure, content_hash = envelope.error, envelope.content_hash
        if failure is None or failure.effect != "unknown" or content_hash is None:
            return False
        tool = await self._tool(content_hash)
        is_own = tool.side_effects == "writes" and tool.implementation.kind not in DELEGATES
        if not is_own or (tool.reconcile is None and tool.on_unknown == "fail"):
            return False
        self._history.intend(self._log.open_calls[envelope.position], envelope.t_start)
        self._history.doubted[envelope.position] = envelope
        self._log.add(CallDoubted(position=envelope.position, envelope=envelope))
        return True

    async def settle(self, position: str, part: InquiryScope) -> ToolEnvelope | None:
        """What becomes of a call that was taken; null if a person says that it is to be made once more.

        If the lookup finds nothing, the failure stands and its effect is known: none.
        """
        failed, intent = self._history.doubted[position], self._history.intents[position]
        inquiry = Inquiry(await self._tool(intent.content_hash), intent, failed.t_start)
        finding = await self._look_up(part, inquiry)
        if finding == "undone":
            failed = _without_effect(failed, inquiry.tool.reconcile or "")
        finding = failed if finding == "undone" else finding or await self._ask_person(part, inquiry)
        del self._history.doubted[position]
        return None if finding == "undone" else finding or failed

    # Inside -----------------------------------------------------------------------------------------------------------

    async def _tool(self, content_hash: str) -> ToolDefinition:
        return (await self._in_doubt.tool_of(content_hash, self._run.realm)).definition

    async def _look_up(self, part: InquiryScope, inquiry: "Inquiry") -> Finding:
        """What the tool's lookup says, asked until it can be believed or has failed too often."""
        tool = inquiry.tool
        if tool.reconcile is None:
            return None
        settled = inquiry.settled
        waits = list(_WAITS_S)
        number = 0
        while True:
            number += 1
            question = inquiry.question(tool.reconcile, number)
            answer = await self._ask(part, question)
            output = cast("JsonObject", answer.output) if isinstance(answer.output, dict) else {}
            is_missing = output.get("found") is False
            if output.get("found") is True:
                tainted = answer.tainted or is_untrusted(tool)
                return self._success_envelope(inquiry, output.get("output"), tainted=tainted)
            if is_missing and answer.t_start >= settled:
                return "undone"
            if not waits or not (is_missing or _may_pass(answer)):
                return None
            wait_s = waits.pop(0)
            moment = settled if is_missing else answer.t_end + timedelta(seconds=wait_s)
            await self._until(question.position, moment, HELD_S)

    async def _ask(self, part: InquiryScope, question: CallRequest) -> ToolEnvelope:
        """The answer of a lookup; recovery asks, so the run's allow-list and budget do not matter."""
        known = self._history.envelopes.get(question.position)
        if known is not None:
            return known
        context = structs.replace(
            part.context,
            policy=CallPolicy(side_effects="reads", guardrails=part.context.policy.guardrails),
            budget=Budget(part.context.budget.limits),
            starter=None,
        )
        envelope = await self._around.executor.execute(question, context)
        self._history.envelopes[question.position] = envelope
        await part.conclude(envelope)
        return envelope

    async def _ask_person(self, part: InquiryScope, inquiry: "Inquiry", *, crashed: bool = False) -> Finding:
        """What a person says, if the tool wants one to be asked."""
        if inquiry.tool.on_unknown != "ask":
            return None
        request = inquiry.request()
        if crashed and self._may_be_under_way(inquiry, request.position):
            await self._until(request.position, inquiry.settled, HELD_S)
        decision = await part.confirm(request)
        if decision is None or not decision.approved or decision.happened is None:
            return None
        return self._success_envelope(inquiry, decision.output, tainted=False) if decision.happened else "undone"

    def _may_be_under_way(self, inquiry: "Inquiry", position: str) -> bool:
        """Whether a process that was only frozen may still act; in a replay, whether that was waited for."""
        if position in self._history.approvals:
            return False
        rest, recorded = rest_name(position), self._around.foretell(self._run.run_id)
        if recorded is None:
            return rest in self._history.awaited or self._around.clock.now() < inquiry.settled
        first = next((event for event in recorded if _name_of(event) in {position, rest}), None)
        return not isinstance(first, ApprovalRequested)

    def _success_envelope(self, inquiry: "Inquiry", output: Json, *, tainted: bool) -> ToolEnvelope:
        price = inquiry.tool.cost_usd_per_call
        return self._in_doubt.success_envelope(inquiry.intent, self._run, output, tainted=tainted, cost_usd=price)


class Inquiry(Struct, frozen=True):
    """What is asked about one call."""

    tool: ToolDefinition
    intent: CallStarted
    since: datetime
    """When it was started."""

    @property
    def settled(self) -> datetime:
        """From when on it is not under way any more, in whatever process."""
        return self.since + timedelta(seconds=self.tool.timeout_s)

    def question(self, lookup: str, number: int) -> CallRequest:
        """The call of the lookup. The attempt is in its position, because an answer is good for that one only."""
        place = f"{self.intent.position}.reconcile{self.intent.attempt}"
        position = place if number == 1 else f"{place}.again{number}"
        return CallRequest(position, lookup, {"idempotency_key": self.intent.idempotency_key})

    def request(self) -> ApprovalRequested:
        """What a person is asked."""
        tool, intent = self.tool, self.intent
        expires_s = tool.confirmation_expires_s
        expires = None if expires_s is None else self.since + timedelta(seconds=tool.timeout_s + expires_s)
        message = (
            f"{tool.title or tool.name} was started at {self.since:%Y-%m-%d %H:%M:%S} UTC with these arguments, and "
            "nobody knows whether it took effect: did it happen?"
        )
        return ApprovalRequested(
            position=f"{intent.position}.outcome{intent.attempt}",
            call_id=intent.call_id,
            name=intent.name,
            version=intent.version,
            input=intent.input,
            arguments_hash=f"sha256:{digest(canonical(intent.input))}",
            content_hash=intent.content_hash,
            side_effects=intent.side_effects,
            message=message,
            expires_at=expires,
            question="outcome",
        )


def _is_begun_anew(tool: ToolDefinition) -> bool:
    """Whether a run that takes up another one begins the nested run of a call anew, and does not go on with it."""
    kind = tool.implementation.kind
    return tool.side_effects == "writes" and not tool.idempotent and kind in DELEGATES and kind != "workflow"


def _name_of(event: Event) -> str | None:
    """The position of a request to a person, or the name of a wait; null for other events."""
    if isinstance(event, ApprovalRequested):
        return event.position
    return event.name if isinstance(event, SignalAwaited | SignalReceived) else None


def _may_pass(answer: ToolEnvelope) -> bool:
    return answer.error is not None and answer.error.code in _PASSING


def _describe_sources(tool: ToolDefinition) -> str:
    """Who could not tell."""
    sources = [f"{tool.reconcile!r}"] if tool.reconcile is not None else []
    sources += ["the person who was asked"] if tool.on_unknown == "ask" else []
    return f"{' and '.join(sources)} could not tell. " if sources else ""


def _without_effect(failed: ToolEnvelope, lookup: str) -> ToolEnvelope:
    failure = cast("ToolError", failed.error)
    details = {name: value for name, value in (failure.details or {}).items() if name != "effect"}
    message = f"{failure.message}; {lookup!r} has found since that it did not"
    return failed.model_copy(update={"error": failure.model_copy(update={"message": message, "details": details})})

"""What a run's journal contains, by position: recorded calls, model answers and usage.

A program resumes from it. Recorded arguments include the tool's defaults. Comparisons, bundles and replays read the
same data.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Final, cast

from msgspec import Struct

from toolcrib.contracts import (
    Allowance,
    ApprovalDecided,
    ApprovalRequested,
    ApprovalWithdrawn,
    CallFinished,
    CallStarted,
    ChildStarted,
    ClientHandoff,
    ClientReturned,
    FailedCall,
    GuardDecision,
    Json,
    JsonObject,
    ModelDenied,
    ModelFailed,
    ModelFinished,
    ModelStarted,
    ProgressMade,
    Run,
    RunEvent,
    RunResumed,
    RunSuspended,
    Signal,
    SignalAwaited,
    SignalReceived,
    ToolEnvelope,
    Usage,
)
from toolcrib.contracts.runs.events import CallDoubted
from toolcrib.llm import TokenUsage as ModelUsage


def as_contract(usage: ModelUsage) -> Usage:
    """The model layer's token counts as the contract shows them."""
    return Usage(
        input_tokens=usage.input,
        output_tokens=usage.output,
        cache_read_tokens=usage.cache_read,
        cache_write_tokens=usage.cache_write,
        reasoning_tokens=usage.reasoning,
        estimated=usage.estimated,
    )


def model_usage(usage: Usage) -> ModelUsage:
    """The contract's token counts as the model layer has them."""
    return ModelUsage(
        input=usage.input_tokens,
        output=usage.output_tokens,
        cache_read=usage.cache_read_tokens,
        cache_write=usage.cache_write_tokens,
        reasoning=usage.reasoning_tokens,
        estimated=usage.estimated,
    )


def at_most(decision: GuardDecision | None) -> tuple[ModelUsage, Decimal | None]:
    """What a call was allowed to use at most, by the record of the decision: nothing, where older releases had none."""
    facts = decision.inputs if decision is not None else {}
    cost = facts.get("cost_usd")
    usage = ModelUsage(input=facts.get("input_tokens", 0), output=facts.get("output_tokens", 0), estimated=True)
    return usage, None if cost is None else Decimal(str(cost))


class Wasted(Struct, frozen=True):
    """What an attempt of a model call may have used at most that brought nothing."""

    usage: ModelUsage
    cost_usd: Decimal | None
    position: str = ""
    model: str = ""


def wait_key(name: str, position: str | None) -> str:
    """Names one wait of a run: several parts of its program may wait for one signal, each as long as it will."""
    return name if position is None else f"{name}@{position}"


class History:
    """An index over the events of a run as they were when this process took it."""

    def __init__(self, events: Iterable[RunEvent]) -> None:
        self.envelopes: dict[str, ToolEnvelope] = {}
        self.intents: dict[str, CallStarted] = {}
        self.begun_at: dict[str, datetime] = {}
        """When they were written down."""
        self.doubted: dict[str, ToolEnvelope] = {}
        """How calls failed that may have taken effect all the same, of which somebody is asked."""
        self.lost: list[CallStarted] = []
        """Attempts of calls over which a process has died; what became of them is not known."""
        self.answers: dict[str, ModelFinished] = {}
        self.attempts: dict[str, int] = {}
        """Attempts of model calls that were sent, by position."""
        self.failures: dict[str, ModelFailed] = {}
        """Last failures of model calls after which no other attempt was planned."""
        self.fallback: str | None = None
        """The model that was last asked in place of another."""
        self.denials: dict[str, ModelDenied] = {}
        self.wasted: list[Wasted] = []
        """What attempts of model calls may have used that brought nothing."""
        self._sent: dict[str, ModelStarted] = {}
        self.approvals: dict[str, ApprovalRequested] = {}
        """The last request of each call."""
        self.decisions: dict[str, ApprovalDecided] = {}
        """On the last requests."""
        self.withdrawn: set[str] = set()
        """Positions whose last request holds no longer."""
        self.given_up: set[str] = set()
        """Positions at which nobody is asked again."""
        self.handoffs: dict[str, ClientHandoff] = {}
        self.returns: dict[str, ClientReturned] = {}
        self.awaited: dict[str, SignalAwaited] = {}
        """By `wait_key`, as the next."""
        self.received: dict[str, SignalReceived] = {}
        self.children: dict[str, ChildStarted] = {}
        self.failed: dict[str, FailedCall] = {}
        """How calls failed for which a fallback was started, by position."""
        self.suspensions: list[RunSuspended] = []
        self.left_alone: dict[str, list[RunSuspended]] = {}
        """The suspensions over which nested runs were open, by their ids."""
        self.progress: dict[str, Json] = {}
        """What was told, by key."""
        self.signals: dict[str, Signal] = {}
        """Those that were received, by name."""
        self.used_events: set[int] = set()
        """Of a fork: the events of the other run from which it has taken something."""
        self.begun = False
        """Whether the run was worked on before."""
        self.active_s = 0.0
        """Seconds in which the run was worked on, waiting excluded."""
        self._read(list(events))

    def intend(self, intent: CallStarted, at: datetime) -> None:
        """A call was started whose outcome is not known yet."""
        self.doubted.pop(intent.position, None)
        self.intents[intent.position] = intent
        self.begun_at[intent.position] = at

    def ask(self, request: ApprovalRequested) -> None:
        """A person is asked; what was answered before was to another request."""
        self.approvals[request.position] = request
        self.decisions.pop(request.position, None)
        self.withdrawn.discard(request.position)

    def _withdraw(self, event: ApprovalWithdrawn) -> None:
        self.withdrawn.add(event.position)
        if event.for_good:
            self.given_up.add(event.position)

    @property
    def open_calls(self) -> list[CallStarted]:
        """Calls that were started and have no envelope yet, and do not wait for a client or a run of their own."""
        known = self.envelopes.keys() | self.handoffs.keys() | {event.position for event in self.children.values()}
        return [intent for position, intent in self.intents.items() if position not in known]

    @property
    def open_children(self) -> dict[str, str]:
        """Positions of calls that have no envelope yet, by the ids of their nested runs."""
        return {
            event.child_run_id: event.position
            for event in self.children.values()
            if event.position not in self.envelopes
        }

    @property
    def tainted(self) -> bool:
        """Whether the run has read what outsiders can write, also if its program has not come to that again."""
        is_known = bool(self.suspensions) and self.suspensions[-1].tainted
        return is_known or any(envelope.tainted for envelope in self.envelopes.values())

    def _read(self, events: list[RunEvent]) -> None:
        self.begun = len(events) > 1
        if not self.begun and events and events[0].event.type == "run_started":
            return  # as is usual: a new run
        since: datetime | None = None
        for entry in events:
            self.take(entry)
            # What passed before a process took the run up again was nobody's work.
            if since is not None and not isinstance(entry.event, RunResumed):
                self.active_s += max((entry.at - since).total_seconds(), 0.0)
            since = None if isinstance(entry.event, RunSuspended) else entry.at
        for position in list(self._sent):
            self._lose(position)

    def take(self, entry: RunEvent) -> None:
        """Know what one more event tells."""
        match entry.event:
            case CallStarted() as event:
                if event.position in self.intents:
                    self.lost.append(self.intents[event.position])
                self.intend(event, entry.at)
            case CallFinished() as event:
                self.envelopes[event.position] = event.envelope
                self._take_from(event.taken_from)
            case ChildStarted() as event:
                self.children[event.child_run_id] = event
                if event.instead_of is not None:
                    self.failed[event.position] = event.instead_of
            case CallDoubted() as event:
                self.doubted[event.position] = event.envelope
            case ProgressMade() as event:
                self.progress[event.key] = event.data
            case ModelStarted() | ModelFinished() | ModelFailed() | ModelDenied() as event:
                self._take_model(event)
            case _:
                self._take_wait(entry)

    def _take_model(self, event: ModelStarted | ModelFinished | ModelFailed | ModelDenied) -> None:
        position = event.position
        match event:
            case ModelStarted():
                self._lose(position)
                self.attempts[position] = event.attempt
                self._sent[position] = event
            case ModelFinished():
                self._sent.pop(position, None)
                self.answers[position] = event
                self._take_from(event.taken_from)
            case ModelFailed():
                sent = self._sent.pop(position, None)
                if event.usage.total_tokens:
                    self._waste(model_usage(event.usage), event.cost_usd, sent)
                self.fallback = event.fallback or self.fallback
                if event.retry_in_s is None:
                    self.failures[position] = event
            case _:
                self.denials[position] = event

    def _take_from(self, number: int | None) -> None:
        if number is not None:
            self.used_events.add(number)

    def _lose(self, position: str) -> None:
        """What was sent from there brought neither an answer nor a failure: a process has died over it."""
        lost = self._sent.pop(position, None)
        if lost is not None and lost.decision is not None:
            self._waste(*at_most(lost.decision), lost)

    def _waste(self, usage: ModelUsage, cost_usd: Decimal | None, sent: ModelStarted | None) -> None:
        place = ("", "") if sent is None else (sent.position, sent.model)
        self.wasted.append(Wasted(usage, cost_usd, *place))

    def _receive(self, event: SignalReceived, at: datetime) -> None:
        self.received[wait_key(event.name, event.position)] = event
        if event.payload is not None:
            self.signals[event.name] = Signal(name=event.name, payload=event.payload, made_by=event.made_by, at=at)

    def _take_wait(self, entry: RunEvent) -> None:
        match entry.event:
            case ApprovalRequested() as event:
                self.ask(event)
            case ApprovalDecided() as event:
                self.decisions[event.position] = event
            case ApprovalWithdrawn() as event:
                self._withdraw(event)
            case ClientHandoff() as event:
                self.handoffs[event.position] = event
            case ClientReturned() as event:
                self.returns[event.position] = event
            case RunSuspended() as event:
                self.suspensions.append(event)
                for child_id in self.open_children:
                    self.left_alone.setdefault(child_id, []).append(event)
            case SignalAwaited() as event:
                self.awaited[wait_key(event.name, event.position)] = event
            case SignalReceived() as event:
                self._receive(event, entry.at)
            case _:
                pass


ONE_CALL: Final = Allowance.model_construct(tool_calls=1, requests=0, tokens=0, cost_usd=Decimal(0), seconds=0)
"""What a call takes that was started: it counts, whether it is repeated or not."""


class Spent(Struct, frozen=True):
    """What was spent."""

    tool_calls: int = 0
    tokens: int = 0
    cost_usd: Decimal = Decimal(0)
    """What was paid, and `cut_off_usd`."""
    cut_off_usd: Decimal | None = None
    """What calls may have cost at most that were cut off; null if none was."""

    def __add__(self, other: "Spent") -> "Spent":
        cut_off = [each for each in (self.cut_off_usd, other.cut_off_usd) if each is not None]
        return Spent(
            self.tool_calls + other.tool_calls,
            self.tokens + other.tokens,
            self.cost_usd + other.cost_usd,
            sum(cut_off, Decimal(0)) if cut_off else None,
        )

    @property
    def billed_usd(self) -> Decimal:
        """What was paid."""
        return self.cost_usd - (self.cut_off_usd or 0)


def spending_on_calls(history: History) -> Spent:
    """What calls have taken, with their nested runs; not what recovery has asked, and what another run has paid.

    A call that failed before anything was sent takes nothing. A call over which a process has died may have cost its
    price, whether it was repeated or not.
    """
    total = Spent()
    for envelope in history.envelopes.values():
        if ".reconcile" in envelope.position or envelope.reused is not None:
            continue
        begun, nested = history.intents.get(envelope.position), _nested_spending(envelope)
        is_unsent = envelope.metadata.get("sent") is False
        calls = 1 if (envelope.attempts or begun) and not is_unsent else 0
        total += nested + Spent(tool_calls=calls, cost_usd=envelope.cost_usd or Decimal(0))
    for call in lost_calls(history):
        if (price := call.decision.inputs.get("price_usd")) is not None:
            total += Spent(cost_usd=Decimal(str(price)), cut_off_usd=Decimal(str(price)))
    return total


def lost_calls(history: History) -> Sequence[CallStarted]:
    """The calls, one for each attempt, of which nobody knows whether they have cost their price."""
    lost = [*history.lost, *history.open_calls]
    for envelope in history.envelopes.values():
        begun = history.intents.get(envelope.position)
        if begun is None or envelope.attempts or envelope.reused is not None or ".reconcile" in envelope.position:
            continue
        lost.append(begun)
    return lost


def nested_facts(envelope: ToolEnvelope) -> JsonObject:
    """What is said of the nested run of a call; nothing if it has none."""
    return envelope.metadata if "run_id" in envelope.metadata else {}


def _nested_spending(envelope: ToolEnvelope) -> Spent:
    """What the nested run of a call has used, besides what it has paid."""
    facts = nested_facts(envelope)
    lost = facts.get("cut_off_usd")
    cut_off = None if lost is None else Decimal(str(lost))
    return Spent(facts.get("tool_calls", 0), facts.get("tokens", 0), cut_off or Decimal(0), cut_off)


def spending_of(history: History) -> Spent:
    """What a run has spent, without its nested runs that are still open."""
    total = spending_on_calls(history)
    for answer in history.answers.values():
        total += Spent(tokens=answer.usage.total_tokens, cost_usd=answer.cost_usd or Decimal(0))
    for lost in history.wasted:
        at_most = lost.cost_usd or Decimal(0)
        total += Spent(tokens=lost.usage.input + lost.usage.output, cost_usd=at_most, cut_off_usd=at_most)
    return total


def holds(recorded: Json, arguments: Json) -> bool:
    """Whether the recorded arguments are those that are asked, up to the defaults that were filled in."""
    if isinstance(recorded, dict) and isinstance(arguments, dict):
        known = cast("JsonObject", recorded)
        return all(name in known and holds(known[name], value) for name, value in cast("JsonObject", arguments).items())
    if isinstance(recorded, list) and isinstance(arguments, list):
        theirs, ours = cast("list[Json]", recorded), cast("list[Json]", arguments)
        return len(theirs) == len(ours) and all(map(holds, theirs, ours))
    return recorded == arguments


class StoredRun(Struct, frozen=True):
    """A run with its log, as a store or a bundle has it."""

    run: Run
    events: Sequence[RunEvent]
    signals: Mapping[str, Signal] = {}
    """What was left for it, taken up by it or not."""

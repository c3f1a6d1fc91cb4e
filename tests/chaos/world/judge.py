"""The judge: what must be true of a world in the end, whatever was done to its processes. A pure function.

It compares the book, which tools have written outside of the system, with the journal, with what subscribers have
received, and with what those were told who have decided. Each rule has a name, and a violation names rule and thing.

One thing is allowed to a process that was frozen for longer than its lease, and thought dead: within a lease after it
wakes, what it was about to do may still take effect, because nobody can reach into it. Never may it do so twice.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

from tests.chaos.journals import happens_once
from tests.chaos.world import crew
from tests.chaos.world.book import Line
from toolcrib.contracts import (
    ApprovalDecided,
    CallFinished,
    CallStarted,
    ClientReturned,
    Json,
    Reason,
    Run,
    RunEvent,
    RunFinished,
    RunResumed,
    RunStarted,
    ToolEnvelope,
)

Rule: TypeAlias = Literal[
    "run lost",
    "effect after its outcome",
    "unsafe effect twice",
    "effect without an intent",
    "outcome that is not true",
    "not as undisturbed",
    "log broken",
    "stream broken",
    "two owners",
    "decision not as told",
    "engine disagrees",
]


class Violation(NamedTuple):
    """What is wrong, and where."""

    rule: Rule
    what: str


class Told(NamedTuple):
    """What somebody said who was asked, and what they heard."""

    run_id: str
    position: str
    said: Json
    """Whether it is approved, or a client's output."""
    accepted: bool | None
    """Null if there was no answer: the process or the store was gone."""


@dataclass(frozen=True)
class Evidence:
    """A world after the end."""

    lease_s: float
    submitted: Collection[str]
    """Ids of the runs that somebody was told of."""
    rows: Mapping[str, Run]
    logs: Mapping[str, Sequence[RunEvent]]
    lines: Sequence[Line]
    streams: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    """What a subscriber has received of a run, in order."""
    telling: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    """What one receives who is never cut off."""
    told: Sequence[Told] = ()
    stepped: bool = False
    """Whether the clock was set: then times tell nothing, and a process may have been thought dead that was not."""
    open_in_engine: Collection[str] = ()
    """Runs that the engine still means to drive."""


class Freeze(NamedTuple):
    """When a process stood still."""

    pid: int
    begun: int
    ended: int


class Call(NamedTuple):
    """A call as the journal has it."""

    envelope: ToolEnvelope
    at: int
    intents: int

    @property
    def key(self) -> str:
        """Its idempotency key."""
        return f"{self.envelope.run_id}/{self.envelope.position}"

    @property
    def unknown(self) -> bool:
        """Whether nobody knows if it took effect."""
        return self.envelope.error is not None and self.envelope.error.reason is Reason.OUTCOME_UNKNOWN


def violations(found: Evidence) -> Sequence[Violation]:
    """Everything that is wrong."""
    calls = {call.key: call for events in found.logs.values() for call in _calls(events)}
    return [
        *_lost(found),
        *(one for events in found.logs.values() for one in _broken(events)),
        *(() if found.stepped else _late(found, calls)),
        *_twice(found),
        *_unintended(found),
        *_untrue(found, calls),
        *(one for run_id in found.logs for one in _unusual(found, run_id)),
        *_unlike_streams(found),
        *_misheard(found),
        *(Violation("engine disagrees", run_id) for run_id in found.open_in_engine),
    ]


# Rules ----------------------------------------------------------------------------------------------------------------


def _lost(found: Evidence) -> Iterator[Violation]:
    """Every run that was accepted has come to its end, in its row and in its log."""
    for run_id in {*found.submitted, *found.rows}:
        row, events = found.rows.get(run_id), found.logs.get(run_id, ())
        if row is None or not events:
            yield Violation("run lost", f"{run_id} is not in the store")
        elif not row.ended or not isinstance(events[-1].event, RunFinished):
            yield Violation("run lost", f"{run_id} is {row.status} after {len(events)} events")
        elif (row.status, row.events) != (events[-1].event.status, len(events)):
            yield Violation("log broken", f"{run_id}: its row tells {row.events} events, its log has {len(events)}")


def _broken(events: Sequence[RunEvent]) -> Iterator[Violation]:
    """Numbers without a gap, one beginning, nothing twice that happens once, and one owner after the other."""
    run_id = events[0].run_id
    if [entry.number for entry in events] != list(range(1, len(events) + 1)):
        yield Violation("log broken", f"{run_id}: numbers {[entry.number for entry in events]}")
    if not isinstance(events[0].event, RunStarted):
        yield Violation("log broken", f"{run_id} does not begin with its beginning")
    for thing, count in Counter(happens_once(entry.event) for entry in events).items():
        if thing is not None and count > 1:
            yield Violation("log broken", f"{run_id} has {thing} {count} times")
    epochs = [entry.event.epoch for entry in events if isinstance(entry.event, RunResumed)]
    if epochs != sorted(set(epochs)):
        yield Violation("two owners", f"{run_id}: epochs {epochs}")


def _late(found: Evidence, calls: Mapping[str, Call]) -> Iterator[Violation]:
    """Nothing is done for a call that has its outcome; that something is read once more does no harm."""
    freezes = _freezes(found.lines)
    for line in found.lines:
        call = calls.get(line.key)
        if call is None or line.tool not in crew.WRITES or line.mark == "ended" or line.at <= call.at:
            continue
        sure = line.tool in crew.UNSAFE and not call.unknown
        if sure or not _slept_through(line, call.at, freezes, found.lease_s):
            yield Violation("effect after its outcome", f"{line} after {call.at}")


def _twice(found: Evidence) -> Iterator[Violation]:
    """An unsafe call takes effect once at most; one that can be looked up too, unless a frozen process did it again."""
    freezes = {freeze.pid for freeze in _freezes(found.lines)}
    effects: dict[tuple[str, str], list[Line]] = defaultdict(list)
    for line in found.lines:
        if line.mark == "effect":
            effects[line.tool, line.key].append(line)
    for (tool, key), lines in effects.items():
        counted = [line for line in lines if line.pid not in freezes] if tool == "pay" else lines
        once = {*crew.UNSAFE, "charge"} | (set[str]() if found.stepped else {"pay"})
        if tool in once and len(counted) > 1:
            yield Violation("unsafe effect twice", f"{tool} {key}: {lines}")


def _unintended(found: Evidence) -> Iterator[Violation]:
    """Each time that a tool that writes began, an intent for this very time was durable before, under the same key."""
    intents: Counter[str] = Counter()
    for events in found.logs.values():
        for entry in events:
            if isinstance(entry.event, CallStarted):
                intents[entry.event.idempotency_key] += 1
                if entry.event.idempotency_key != f"{entry.run_id}/{entry.event.position}":
                    yield Violation("effect without an intent", f"key {entry.event.idempotency_key} of another call")
    begun = Counter(line.key for line in found.lines if line.mark == "begun" and line.tool in crew.WRITES)
    for key, count in begun.items():
        if count > intents[key]:
            yield Violation("effect without an intent", f"{key} began {count} times with {intents[key]} intents")


def _untrue(found: Evidence, calls: Mapping[str, Call]) -> Iterator[Violation]:
    """What an envelope says is what the book says: done, not done, or nobody knows."""
    done = Counter(line.key for line in found.lines if line.mark == "effect")
    for key, call in calls.items():
        tool, times = call.envelope.name, done[key]
        if tool not in {*crew.WRITES, "look"}:
            continue
        if call.envelope.ok and times < 1:
            yield Violation("outcome that is not true", f"{tool} {key} says success and was never done")
        if call.envelope.status == "denied" and times:
            yield Violation("outcome that is not true", f"{tool} {key} says denied and was done")
        if call.envelope.error is not None and not call.unknown and call.envelope.status != "denied":
            yield Violation("outcome that is not true", f"{tool} {key}: {call.envelope.error}")
        if call.unknown and tool not in crew.UNSAFE:
            yield Violation("outcome that is not true", f"{tool} {key} could have been repeated")
    for key in done.keys() - calls.keys():
        yield Violation("outcome that is not true", f"{key} was done and has no envelope")


def _unusual(found: Evidence, run_id: str) -> Iterator[Violation]:
    """A run has made the calls of its plan, each once, and says what an undisturbed one with these outcomes says."""
    events = found.logs[run_id]
    first, last = events[0].event, events[-1].event
    if not isinstance(first, RunStarted) or not isinstance(last, RunFinished):
        return
    calls = [call for call in _calls(events) if call.envelope.name != "was_paid"]
    wanted = crew.wanted(first.request.tool_name, first.request.input)
    made = Counter(call.envelope.name for call in calls)
    failed = first.request.kind == "tool" and not all(call.envelope.ok for call in calls)
    if made != wanted or last.status != ("failed" if failed else "completed"):
        yield Violation("not as undisturbed", f"{run_id} ended {last.status} with {made}, not {wanted}: {last.error}")
    elif first.request.kind == "agentic":
        answer = {"summary": crew.told(sum(not call.envelope.ok for call in calls))}
        if last.output != answer:
            yield Violation("not as undisturbed", f"{run_id} says {last.output}, not {answer}")
    elif first.request.kind == "workflow" and last.output != {"puts": crew.ITEMS}:
        yield Violation("not as undisturbed", f"{run_id} says {last.output}")


def _unlike_streams(found: Evidence) -> Iterator[Violation]:
    """Who has listened, and was cut off, has received every message once, in order, in the same bytes."""
    for run_id, received in found.streams.items():
        whole = found.telling.get(run_id, ())
        if list(received) != list(whole):
            place = next((n for n, (got, had) in enumerate(zip(received, whole, strict=False)) if got != had), None)
            what = f"{run_id}: received {len(received)} messages of {len(whole)}, the first other one at {place}"
            yield Violation("stream broken", what)


def _misheard(found: Evidence) -> Iterator[Violation]:
    """Of all that was said about a call, what was accepted is what the run has heard; one thing, once."""
    heard = {
        (entry.run_id, entry.event.position): _said(entry.event)
        for events in found.logs.values()
        for entry in events
        if isinstance(entry.event, ApprovalDecided | ClientReturned)
    }
    said: dict[tuple[str, str], list[Told]] = defaultdict(list)
    for told in found.told:
        said[told.run_id, told.position].append(told)
    for place, voices in said.items():
        accepted = [told.said for told in voices if told.accepted]
        possible = accepted or [told.said for told in voices if told.accepted is None]
        if len(accepted) > 1 or (place in heard) != bool(possible) or (possible and heard[place] not in possible):
            yield Violation("decision not as told", f"{place}: {voices}, and the run has heard {heard.get(place)}")
    for place in heard.keys() - said.keys():
        yield Violation("decision not as told", f"{place}: nobody has said {heard[place]}")


# Readings -------------------------------------------------------------------------------------------------------------


def _calls(events: Sequence[RunEvent]) -> Iterator[Call]:
    intents = Counter(entry.event.position for entry in events if isinstance(entry.event, CallStarted))
    for entry in events:
        if isinstance(entry.event, CallFinished):
            at = int(entry.at.timestamp() * 1_000_000) * 1000
            yield Call(entry.event.envelope, at, intents[entry.event.position])


def _said(event: ApprovalDecided | ClientReturned) -> Json:
    if isinstance(event, ClientReturned):
        return event.result.output
    return None if event.decision is None else event.decision.approved


def _freezes(lines: Sequence[Line]) -> Sequence[Freeze]:
    found: list[Freeze] = []
    asleep: dict[int, int] = {}
    for line in lines:
        if line.mark == "frozen":
            asleep[line.pid] = line.at
        elif line.mark == "thawed":
            found.append(Freeze(line.pid, asleep.pop(line.pid), line.at))
    return found


def _slept_through(line: Line, outcome: int, freezes: Sequence[Freeze], lease_s: float) -> bool:
    """Whether a line is of a process that stood still, while another one found that outcome, and has just woken."""
    grace = int(lease_s * 1e9)
    return any(
        freeze.pid == line.pid and freeze.begun < outcome and freeze.ended <= line.at < freeze.ended + grace
        for freeze in freezes
    )

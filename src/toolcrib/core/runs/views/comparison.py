"""Compares two runs, position by position, by their journals.

It works for any two runs of one tool, best for a run and its fork. Reused results count as equal. Nested runs are
compared by the results of their calls.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar, cast

import orjson

from toolcrib.contracts import (
    ApprovalDecided,
    ApprovalRequested,
    CallFinished,
    CallStarted,
    GuardDecision,
    Json,
    JsonObject,
    ModelDenied,
    ModelFailed,
    ModelFinished,
    ModelStarted,
    RunEvent,
    RunFinished,
    ToolEnvelope,
)
from toolcrib.contracts.runs.comparisons import (
    AnswerDiff,
    CallChange,
    CallDiff,
    DecisionDiff,
    DecisionKind,
    Parting,
    RunDiff,
    RunFacts,
    ValueDiff,
)
from toolcrib.core.runs.journal.history import History, StoredRun, spending_of
from toolcrib.llm import decode_response

T = TypeVar("T")


def compare(before: StoredRun, after: StoredRun) -> RunDiff:
    """How two runs differ; one that goes on is read as far as it has come."""
    one, other = _Side(before), _Side(after)
    calls, answers = list(_calls(one, other)), list(_answers(one, other))
    output = tuple(value_diffs(before.run.output_or_partial, after.run.output_or_partial))
    return RunDiff(
        before=one.facts(),
        after=other.facts(),
        parting=_parting(one, other, [diff.position for diff in (*calls, *answers)]),
        input=tuple(value_diffs(before.run.request.input, after.run.request.input)),
        output=output,
        calls=tuple(calls),
        answers=tuple(answers),
        decisions=tuple(_decisions(one, other)),
    )


def value_diffs(before: Json, after: Json, path: str = "") -> Iterator[ValueDiff]:
    """The places at which two JSON values differ, the outermost that differ as a whole."""
    if isinstance(before, dict) and isinstance(after, dict):
        ours, theirs = cast("JsonObject", before), cast("JsonObject", after)
        for name in dict.fromkeys((*ours, *theirs)):
            yield from _at(f"{path}/{_escape(name)}", ours, theirs, name)
    elif isinstance(before, list) and isinstance(after, list):
        left, right = dict(enumerate(cast("list[Json]", before))), dict(enumerate(cast("list[Json]", after)))
        for place in range(max(len(left), len(right))):
            yield from _at(f"{path}/{place}", left, right, place)
    elif before != after or isinstance(before, bool) is not isinstance(after, bool):
        yield ValueDiff(path=path, before=before, after=after)


def _at(path: str, before: Mapping[T, Json], after: Mapping[T, Json], key: T) -> Iterator[ValueDiff]:
    if key in before and key in after:
        yield from value_diffs(before[key], after[key], path)
    else:
        yield ValueDiff(path=path, before=before.get(key), after=after.get(key))


def _escape(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


class _Side:
    """One of the runs, by position."""

    def __init__(self, past: StoredRun) -> None:
        self._run, self._events = past.run, past.events
        self.calls: dict[str, tuple[int, ToolEnvelope]] = {}
        self.inputs: dict[str, Json] = {}
        """Arguments before a person may have edited them."""
        self.answers: dict[str, tuple[int, str]] = {}
        self.decisions: dict[tuple[str, DecisionKind], str] = {}
        self.reused: set[str] = set()
        """Positions of what was taken from another run."""
        self.last = self._events[-1].number
        self._models: dict[str, None] = {}
        for entry in self._events:
            self._read(entry)

    def facts(self) -> RunFacts:
        """The run in numbers."""
        run, history = self._run, History(self._events)
        spent, last = spending_of(history), self._events[-1].event
        ended = last if isinstance(last, RunFinished) else None
        cost, unknown = (spent.billed_usd, run.cost_unknown) if ended is None else (ended.cost_usd, ended.cost_unknown)
        return RunFacts(
            run_id=run.run_id,
            tool=run.request.tool,
            content_hash=run.request.content_hash,
            status=run.status,
            stop_reason=run.stop_reason,
            models=tuple(self._models),
            model_calls=len(self.answers),
            tool_calls=len(self.calls),
            taken=len(self.reused),
            tokens=spent.tokens if ended is None or ended.tokens is None else ended.tokens,
            cost_usd=None if unknown and not cost else cost,
            cost_unknown=unknown,
            seconds=round(history.active_s, 6),
            fork=run.request.fork,
        )

    def place(self, position: str) -> int | None:
        """Number of the event with what came of a call or a request."""
        found = self.calls.get(position) or self.answers.get(position)
        return None if found is None else found[0]

    def _read(self, entry: RunEvent) -> None:
        match entry.event:
            case CallStarted(position=position, decision=decision):
                self.decisions[position, "guard"] = _words(decision)
            case CallFinished() as event:
                self._finish(entry.number, event)
            case ApprovalRequested() as event:
                self.inputs.setdefault(event.position, event.input)
            case ApprovalDecided(position=position, decision=decision):
                answer = "expired" if decision is None else "approved" if decision.approved else "rejected"
                self.decisions[position, "approval"] = answer
            case ModelStarted(model=model):
                self._models[model] = None
            case ModelFinished() | ModelFailed() | ModelDenied() as event:
                self._answer(entry.number, event)
            case _:
                pass

    def _finish(self, number: int, event: CallFinished) -> None:
        self.calls[event.position] = number, event.envelope
        self.inputs.setdefault(event.position, event.envelope.input)
        if event.decision is not None:
            self.decisions[event.position, "guard"] = _words(event.decision)
        if event.taken_from is not None:
            self.reused.add(event.position)

    def _answer(self, number: int, event: ModelFinished | ModelFailed | ModelDenied) -> None:
        match event:
            case ModelFinished():
                self.answers[event.position] = number, _answer_text(event)
                if event.taken_from is not None:
                    self.reused.add(event.position)
            case ModelFailed():
                self.answers[event.position] = number, f"{event.kind}: {event.message}"
            case _:
                self.decisions[event.position, "model_guard"] = _words(event.decision)


def _calls(one: _Side, other: _Side) -> Iterator[CallDiff]:
    for position in dict.fromkeys((*one.calls, *other.calls)):
        before, after = (side.calls[position][1] if position in side.calls else None for side in (one, other))
        refused = {each.status for each in (before, after) if each is not None} > {"denied"}
        inputs = one.inputs.get(position), other.inputs.get(position)
        arguments = () if refused else tuple(value_diffs(inputs[0], inputs[1]))  # a refused call's have no defaults
        output = tuple(value_diffs(_outcome(before), _outcome(after)))
        change = _change(before, after, arguments, output)
        if change is not None:
            yield CallDiff(
                position=position,
                change=change,
                before=_ref(before),
                after=_ref(after),
                arguments=arguments,
                output=output,
                statuses=(before and before.status, after and after.status),
            )


def _change(
    before: ToolEnvelope | None, after: ToolEnvelope | None, arguments: Sequence[ValueDiff], output: Sequence[ValueDiff]
) -> CallChange | None:
    if before is None or after is None:
        return "only_after" if before is None else "only_before"
    if (before.name, before.content_hash) != (after.name, after.content_hash):
        return "tool"
    if arguments:
        return "arguments"
    return "outcome" if output or before.status != after.status else None


def _answers(one: _Side, other: _Side) -> Iterator[AnswerDiff]:
    for position in dict.fromkeys((*one.answers, *other.answers)):
        before, after = (side.answers[position][1] if position in side.answers else None for side in (one, other))
        if before != after:
            yield AnswerDiff(position=position, before=before, after=after)


def _decisions(one: _Side, other: _Side) -> Iterator[DecisionDiff]:
    reused = one.reused | other.reused
    for position, kind in dict.fromkeys((*one.decisions, *other.decisions)):
        before, after = (side.decisions.get((position, kind)) for side in (one, other))
        if before != after and position not in reused:
            yield DecisionDiff(position=position, kind=kind, before=before, after=after)


def _parting(one: _Side, other: _Side, positions: Iterable[str]) -> Parting | None:
    """The first of the positions, as the runs came to them; else their ends, if those differ."""
    places = [Parting(position=each, before=one.place(each), after=other.place(each)) for each in positions]
    if places:
        far = max(one.last, other.last) + 1
        return min(places, key=lambda each: (each.before or far, each.after or far))
    ends = [(side.facts().status, side.facts().stop_reason) for side in (one, other)]
    return None if ends[0] == ends[1] else Parting(before=one.last, after=other.last)


def _outcome(envelope: ToolEnvelope | None) -> Json:
    if envelope is None:
        return None
    return envelope.output if envelope.error is None else {"error": envelope.error.model_dump(mode="json")}


def _ref(envelope: ToolEnvelope | None) -> str | None:
    return None if envelope is None else f"{envelope.name}@{envelope.version}"


def _answer_text(event: ModelFinished) -> str:
    message = decode_response(orjson.dumps(event.response)).message
    return "\n".join(filter(None, (message.text, *(f"{call.name}({call.args})" for call in message.calls))))


def _words(decision: GuardDecision) -> str:
    return decision.outcome if decision.outcome == "allow" else f"{decision.outcome} ({decision.rule})"

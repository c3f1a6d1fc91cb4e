"""Plans recorded by older releases: used as recorded, not checked again.

Those releases requested a plan at `POSITION`, and corrections at `POSITION.fix1` and `POSITION.fix2`. What they
removed from a plan is not in the model's answers, so the arguments of started calls count. If no call of a plan was
started, the run is planned again at `POSITION.anew`. In a replay, the recording decides which.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, cast

import orjson

from toolcrib.agents.evidence.plan_schema import plan_schema
from toolcrib.agents.model.json_answers import UnusableAnswer, problem_of, read_object
from toolcrib.agents.planner.planning import PlanFormat, make_plan, translator_of
from toolcrib.agents.prepare.agentic_tool import Setup
from toolcrib.contracts import (
    PLANNED_ANEW,
    ApprovalRequested,
    CallFinished,
    CallStarted,
    ChildStarted,
    ClientHandoff,
    Event,
    Json,
    JsonObject,
    JsonSchema,
    ModelFinished,
    ModelStarted,
    ProgressMade,
    RunFinished,
)
from toolcrib.contracts.workflows import STEP_KEY
from toolcrib.core.expressions import references_of
from toolcrib.core.policy import filters_of
from toolcrib.llm import Message, decode_messages

_REPORT: Final = re.compile(
    r"\nSteps not needed: (?P<skipped>.*)\nProblems: "
    r"(?P<warning>(?:(?:left out of the plan|the plan may not fit the task): .*?)?)"
    r"(?:(?:; )?step '[^']*': \d+ of \d+ calls failed: .*|none)?\n\nReport what was done\.",
    re.DOTALL,
)
"""What was said of a plan where the model was asked for the answer."""


@dataclass(frozen=True, slots=True)
class RecordedPlan(PlanFormat):
    """What an older release wanted of each step."""

    question: str | None = None
    """With which the run has ended."""
    left_out: frozenset[str] = frozenset()
    """Steps that were passed over, though the model's answer does not skip them."""
    settled: JsonObject | None = None
    """What a step of a workflow has put out of it."""

    def output(self) -> JsonObject:
        """What a step of a workflow puts out of it; it says nothing of assumptions, which tells it from others."""
        if self.settled is not None:
            return self.settled
        steps: JsonObject = {}
        for name, entry in self.answer.items():
            if isinstance(entry, dict):
                skip = self.question or name in self.left_out or cast("JsonObject", entry).get("skip")
                steps[name] = {**entry, "skip": bool(skip)}
        return {"question": self.question, "steps": steps, "warnings": list(self.warnings)}


async def plan_of(setup: Setup, position: str = "plan") -> PlanFormat:
    """The plan of a run: made by evidence, or as an older release has had it made.

    Args:
        setup: The run.
        position: As for `make_plan`, which tells what else is raised.
    """
    context = setup.context
    if context.request.plan_format > 1:
        return await make_plan(setup, position)
    past, ahead = [entry.event for entry in context.log.events], context.ahead
    events = past if ahead is None else [*past, *ahead]
    anew = f"{position}.anew"
    is_told = any(isinstance(event, ProgressMade) and event.key == anew for event in events)
    if is_told or (ahead is None and not _has_begun_since(past, position)):
        await context.emit(anew, PLANNED_ANEW)
        return await make_plan(setup, anew)
    if _first_attempt(events, position) is None:  # a limit was reached, or the process died before
        return await make_plan(setup, position)
    return await _Recorded(setup, position, events).plan()


class _Recorded:
    """The recorded plan of one run.

    Args:
        setup: The run.
        position: Of the first model call.
        events: Of the run.
    """

    def __init__(self, setup: Setup, position: str, events: Sequence[Event]) -> None:
        self._setup = setup
        self._position = position
        self._events = events
        self._went_on = _has_begun_since(events, position)

    async def plan(self) -> RecordedPlan:
        """The plan, after the model calls that it was made with.

        Raises:
            UnusableAnswer: No answer met the plan's schema.
            ModelError: The provider failed.
        """
        answer = await self._answer()
        ends = (_object(event.output) for event in self._events if isinstance(event, RunFinished))
        end = next(ends, None)
        if end is not None and end.keys() == {"question"} and not self._went_on:
            return RecordedPlan(answer, question=str(end["question"]))
        steps = [step.id for step in self._setup.implementation.steps]
        skipped, warnings = self._read_report()
        for step in steps:
            made = _arguments(self._events, step)
            if step in (skipped or ()) and _first_attempt(self._events, f"{step}.review") is None:
                answer[step] = {**answer[step], "skip": True}
            elif made is not None:
                answer[step] = self._with_call_input(answer[step], made)
        return RecordedPlan(
            {**answer, "question": None},
            warnings,
            left_out=frozenset() if skipped is not None else frozenset(self._steps_without_calls(steps)),
            settled=self._output_in_journal(),
        )

    async def _answer(self) -> JsonObject:
        """The last answer; if it only asks something and the run went on, one before."""
        setup, translate = self._setup, translator_of(self._setup)
        steps = setup.implementation.steps
        schema = plan_schema(steps, {step.id: item.schema for step, item in zip(steps, setup.allotted, strict=True)})
        found: list[JsonObject] = []
        problem, system = "", ""
        messages: tuple[Message, ...] = ()
        for position in _positions(self._position):
            recorded_request = _first_attempt(self._events, position)
            if recorded_request is None:
                break
            system = recorded_request.system or system
            new = () if recorded_request.messages is None else decode_messages(orjson.dumps(recorded_request.messages))
            request = setup.request((*messages, *new), system=system, output_schema=schema, output_name="plan")
            call = setup.call(position, recorded_request.purpose, request, new=new, system=recorded_request.system)
            response = await setup.context.model(call)
            messages = (*request.messages, response.message)
            answer = translate(_without_uses(read_object(response.message.text), schema))
            problem = problem_of(answer, schema, stopped=response.stop == "length")
            found += [] if problem else [cast("JsonObject", answer)]
        if problem:
            msg = f"the model {setup.model.name!r} gave no usable plan after {len(_positions(''))} answers: {problem}"
            raise UnusableAnswer(msg)
        wanted = (answer for answer in reversed(found) if not (self._went_on and answer.get("question")))
        return next(wanted, found[-1])

    def _with_call_input(self, entry: JsonObject, made: JsonObject) -> JsonObject:
        if filters_of(self._setup.context.policy.guardrails, "tool_input"):  # they have changed what is recorded
            return entry
        return {**entry, "input": _merge_values(entry.get("input") or {}, made)}

    def _steps_without_calls(self, steps: Sequence[str]) -> Iterable[str]:
        """The steps without calls that have others behind them."""
        begun = [place for place, step in enumerate(steps) if _arguments(self._events, step) is not None]
        for place, step in enumerate(steps[: begun[-1]] if begun else ()):
            if place not in begun and _first_attempt(self._events, f"{step}.review") is None:
                yield step

    def _read_report(self) -> tuple[frozenset[str] | None, tuple[str, ...]]:
        """The steps that were skipped, and what the plan had to say; null if the model was not asked for the answer."""
        for event in self._events:
            if isinstance(event, ModelStarted) and event.purpose == "formatting" and event.messages is not None:
                for message in decode_messages(orjson.dumps(event.messages)):
                    found = _REPORT.search(message.text)
                    if found is not None:
                        return frozenset(found["skipped"].split(", ")), tuple(filter(None, (found["warning"],)))
        return None, ()

    def _output_in_journal(self) -> JsonObject | None:
        key = f"{STEP_KEY}{self._position}"
        for event in self._events:
            if isinstance(event, ProgressMade) and event.key == key:
                output = _object((_object(event.data) or {}).get("output"))
                return output if output is not None and "steps" in output else None
        return None


def _positions(position: str) -> Sequence[str]:
    """Where an older release asked for a plan."""
    return (position, f"{position}.fix1", f"{position}.fix2")


def _has_begun_since(events: Sequence[Event], position: str) -> bool:
    """Whether anything was begun after a plan was answered: a call, a question to a person, or the answer."""
    answers = [
        place
        for place, event in enumerate(events)
        if isinstance(event, ModelFinished) and event.position in _positions(position)
    ]
    begun = (CallStarted, CallFinished, ApprovalRequested, ClientHandoff, ChildStarted)
    return bool(answers) and any(
        isinstance(event, begun)
        or (isinstance(event, ModelStarted) and event.purpose == "formatting")
        or (isinstance(event, ProgressMade) and event.key == f"{STEP_KEY}{position}")
        for event in events[answers[-1] :]
    )


def _first_attempt(events: Iterable[Event], position: str) -> ModelStarted | None:
    requests = (event for event in events if isinstance(event, ModelStarted) and event.position == position)
    return next((event for event in requests if event.attempt == 1), None)


def _arguments(events: Iterable[Event], step: str) -> JsonObject | None:
    """With what the first call of a step was asked for; null if there was none."""
    first = re.compile(rf"{re.escape(step)}(\[\d+\])?")
    for event in events:
        match event:
            case ApprovalRequested(position=position, input=given) | CallStarted(position=position, input=given):
                pass
            case CallFinished(position=position, envelope=envelope):
                given = envelope.input
            case _:
                continue
        if first.fullmatch(position) and isinstance(given, dict):
            return cast("JsonObject", given)
    return None


def _object(value: Json) -> JsonObject | None:
    return cast("JsonObject", value) if isinstance(value, dict) else None


def _without_uses(answer: Json, schema: JsonSchema) -> Json:
    """An answer without what older releases have asked for besides."""
    given, known = _object(answer), schema["properties"]
    return {name: given[name] for name in given if name != "uses" or name in known} if given else answer


def _merge_values(planned: Json, made: Json) -> Json:
    """What was planned, as far as it was done: references stay, all else is as the call had it."""
    if isinstance(planned, dict) and isinstance(made, dict):
        given = cast("JsonObject", made)
        return {
            name: _merge_values(item, given[name])
            for name, item in cast("JsonObject", planned).items()
            if name in given
        }
    if not _refers(planned):
        return made
    if isinstance(planned, list) and isinstance(made, list):
        return _align_elements(cast("list[Json]", planned), cast("list[Json]", made))
    return cast("Json", planned)


def _align_elements(planned: list[Json], made: list[Json]) -> list[Json]:
    """The elements that were not left out; all of them if the list was filled with items."""
    kept: list[Json] = []
    for element in planned:
        if len(kept) < len(made) and _fits(element, made[len(kept)]):
            kept.append(_merge_values(element, made[len(kept)]))
    return kept if len(kept) == len(made) else planned


def _fits(planned: Json, made: Json) -> bool:
    if isinstance(planned, dict) and isinstance(made, dict):
        given = cast("JsonObject", made)
        return all(name in given and _fits(item, given[name]) for name, item in cast("JsonObject", planned).items())
    return _refers(planned) or planned == made


def _refers(value: Json) -> bool:
    return bool(references_of(value))

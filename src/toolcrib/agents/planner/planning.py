"""Makes a plan that is supported by the task: requested, checked, read a second time, and asked about.

A plan that only reads continues with a warning. A plan that writes continues if every value is evident or confirmed by
a second reading. The model corrects other values once; after that a person is asked, and the plan continues with the
answer. The final plan is recorded, so that a resumed run executes it in any release. For small models, see `outline`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Final, cast

import orjson

from toolcrib.agents.evidence import (
    SECOND_SYSTEM,
    EvidenceSources,
    Finding,
    Judgement,
    Known,
    Passage,
    Step,
    advice,
    as_day,
    as_number,
    describe_finding,
    doubts_of_call,
    judge,
    learn,
    points_of,
    read_claims,
    reading_schema,
    second_question,
    second_schema,
    unclear_in,
    value_key,
    words_of,
)
from toolcrib.agents.evidence.field_values import Kinds, kinds_of, property_names, value_names, with_numbers
from toolcrib.agents.evidence.plan_schema import READING, Shapes, StepPlan, lists_before, plan_schema, prompt_schema
from toolcrib.agents.evidence.quantities import numbers_in
from toolcrib.agents.evidence.word_matching import replace_labels, spoken
from toolcrib.agents.model.json_answers import AnswerFormat, UnusableAnswer, ask_json
from toolcrib.agents.planner.caller_questions import QuestionDraft, ask_person
from toolcrib.agents.planner.outline import outline_of
from toolcrib.agents.planner.outline_questions import OutlineQuestions
from toolcrib.agents.planner.plan_prompts import correction, plan_question, plan_system, question_after_answer, shapes
from toolcrib.agents.prepare.agentic_tool import Setup
from toolcrib.agents.toolset.allocation import ToolAllocation
from toolcrib.contracts import Json, JsonObject, JsonSchema, ModelError
from toolcrib.contracts.runs.executions import Choice
from toolcrib.core.providers import ReferenceList
from toolcrib.llm import Message, Text, user
from toolcrib.llm.base.quirks import profile_of


def use_of(text: str, step: str, kinds: Kinds, lists: Mapping[str, ReferenceList]) -> str:
    """What a model is told of a thing that its plan does not use.

    Args:
        text: The thing.
        step: The step that selects the items.
        kinds: What fields hold.
        lists: Valid values of fields.
    """
    fields = " or ".join(_fields_used(text, kinds, lists))
    place = f"{step} as {fields}" if fields else step
    return f'no step uses "{text}"; add it to {place} and keep the other conditions, unless it is what the items get'


def _fields_used(text: str, kinds: Kinds, lists: Mapping[str, ReferenceList]) -> Iterator[str]:
    """The fields that a thing may be a value of: those with a valid value of its name, else those of its kind."""
    listed = [
        name for name, values in lists.items() if any(words_of(item.label) == words_of(text) for item in values.items)
    ]
    if listed:
        yield from listed
        return
    is_number = as_number(text) is not None or bool(numbers_in(text))
    kind = "day" if as_day(text) is not None else "number" if is_number else "text"
    for name, known in kinds.items():
        if known == kind and name not in lists and name != "id" and not name.endswith("_id"):
            yield name


_MOST_QUESTIONS: Final = 3
"""Of one plan to a person."""


@dataclass(frozen=True, slots=True)
class PlanFormat:
    """What is wanted of each step."""

    answer: JsonObject
    """As the model wrote it, with ids in place of labels."""
    warnings: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    """What was taken for granted though nobody has confirmed it: a change waits for a person who is told so."""
    evidence: tuple[JsonObject, ...] = ()
    """Where each value that decides comes from."""

    def step(self, name: str) -> StepPlan:
        """What it wants of one step."""
        return StepPlan.read(self.answer[name])

    def as_json(self) -> JsonObject:
        """As the journal keeps it."""
        return {
            "answer": self.answer,
            "warnings": list(self.warnings),
            "assumptions": list(self.assumptions),
            "evidence": list(self.evidence),
        }

    @classmethod
    def read(cls, kept: JsonObject) -> "PlanFormat":
        """From the journal."""
        lists = {name: tuple(kept.get(name, ())) for name in ("warnings", "assumptions", "evidence")}
        return cls(kept["answer"], **lists)


async def make_plan(setup: Setup, position: str = "plan") -> PlanFormat:
    """Ask for a plan, and settle what is in doubt of it.

    Args:
        setup: The run.
        position: Of the model call in the journal; others follow as `POSITION.check`, `POSITION.again`, and questions
            as `POSITION.q1`, `POSITION.q2`…

    Raises:
        UnusableAnswer: No answer met the plan's schema.
        ModelError: The provider failed.
        BudgetExhausted: The run may not spend another call.
        Unanswered: A person must be asked, and the run has a caller instead.
        Suspended: A person was asked.
    """
    key = f"{position}.settled"
    known = cast("JsonObject | None", setup.context.find_progress(key))
    if known is not None:
        return PlanFormat.read(known)
    plan = await _Planning(setup, position).settle()
    await setup.context.emit(key, "plan_settled", plan.as_json())
    return plan


async def first_plan(setup: Setup, position: str = "plan") -> tuple[JsonObject, list[str]]:
    """The plan as the model first writes it, and what is in doubt of it; raises as `make_plan`, but asks nobody."""
    planning = _Planning(setup, position)
    answer = await planning.ask()
    return answer, advice(planning.judge_plan(answer), Known())


def translator_of(setup: Setup) -> Callable[[Json], Json]:
    """Puts values in place of the labels in a run's plan."""
    return _Planning(setup, "").translate


@dataclass(frozen=True, slots=True)
class StepDoubt:
    """A value of a corrected step that comes from nowhere."""

    text: str
    invented: bool


def doubts_of_step(setup: Setup, place: int, plan: StepPlan, known_values: frozenset[str]) -> list[StepDoubt]:
    """What is in doubt of a step that the model has written anew, since its plan could not be carried out.

    Args:
        setup: The run.
        place: Of the step in the sequence.
        plan: What the model wants of it now.
        known_values: Values that stood in the plan, or that earlier steps have brought.
    """
    step, item = setup.implementation.steps[place], setup.allotted[place]
    if setup.implementation.grounding == "off" or not _writes(item):
        return []
    planned_step = Step(step.id, plan.input, item.schema, writes=True, for_each=plan.for_each)
    found = doubts_of_call(planned_step, _Planning(setup, "").sources, known_values)
    return [StepDoubt(_assumption(one), one.state == "invented") for one in found]


class _Planning:
    """The planning of one run."""

    def __init__(self, setup: Setup, position: str) -> None:
        steps = setup.implementation.steps
        self._setup = setup
        self._position = position
        self._mode = setup.implementation.grounding
        self._today: date = setup.context.run.created_at.date()
        self._lists = setup.place.lists
        known = shapes(setup)
        self._kinds = kinds_of(schema for _, *both in known for schema in both if schema is not None)
        self._reads = self._mode != "off" and profile_of(setup.model.name).reads_tasks
        inputs = {step.id: item.schema for step, item in zip(steps, setup.allotted, strict=True)}
        self._schema: JsonSchema = plan_schema(steps, inputs, reading_schema() if self._reads else None)
        lists = {step: lists_before(known[:place]) or () for place, (step, _, _) in enumerate(known) if place}
        self._answers: tuple[str, ...] = ()
        """What a person has answered so far."""
        self._restricting: frozenset[str] = frozenset()
        """Words of which it has said that they restrict which items are meant."""
        self._outlining = self._outline_questions(known)
        """How the plan is written by a model that does not read its task part by part, if its steps can be so."""
        self._named = judge((), (), self.sources).left if self._mode != "off" and not self._reads else ()
        """What the task names by its form, for a model that does not read it part by part."""
        self._shown: JsonSchema = spoken(prompt_schema(self._schema, lists))
        self._system = plan_system(setup, reads=self._reads)
        self._known = Known()
        self._messages: tuple[Message, ...] = ()
        self._extra_calls: list[str] = []
        """Calls beyond the first that were made so far, by name."""

    async def settle(self) -> PlanFormat:
        """Ask for the plan, and for as long as something is in doubt a second reader, the model again, a person."""
        plan = await self.ask()
        for number in range(1, _MOST_QUESTIONS + 1):
            doubt = await self._check_plan(plan)
            if isinstance(doubt, PlanFormat):
                return doubt
            position = f"{self._position}.q{number}"
            answer = await ask_person(self._setup, position, doubt)
            plan = await self._plan_after_answer(position, doubt, answer)
        settled = await self._check_plan(plan)
        if isinstance(settled, PlanFormat):
            return settled
        position = f"{self._position}.q{_MOST_QUESTIONS + 1}"
        msg = (
            f"the model {self._setup.model.name!r} gave no usable plan after {_MOST_QUESTIONS} answers: {settled.text}"
        )
        raise UnusableAnswer(f"{msg} (at {position})")

    async def ask(self) -> JsonObject:
        """The plan as the model first writes it."""
        if self._outlining is not None:
            return await self._outlining.first(self._position)
        return await self._plan(self._position, plan_question(self._setup, self._today, self._named))

    def judge_plan(self, plan: JsonObject) -> Judgement:
        """What is known of a plan, besides what readers and people have said."""
        if self._mode == "off" or plan.get("question"):
            return Judgement((), (), (), ())
        return self._known.apply_to(judge(self._active(plan), read_claims(plan), self.sources))

    # Checking ---------------------------------------------------------------------------------------------------------

    async def _check_plan(self, plan: JsonObject) -> "PlanFormat | QuestionDraft":
        """The settled plan, or what a person must be asked."""
        if plan.get("question"):
            return _own_question(plan["question"])
        judged = self.judge_plan(plan)
        if judged.settled and not judged.unread:
            return self._accept_plan(plan, judged)
        if not self._writes(plan) and self._mode != "strict":
            doubts = "; ".join(advice(judged, self._known))
            warnings = () if judged.settled else (f"the plan may not fit the task: {doubts}",)
            return self._accept_plan(plan, judged, warnings=warnings)
        if self._outlining is not None:
            return await self._check_outline(self._outlining, plan)
        for corrected in (False, True):
            if corrected:
                plan = await self._correct_plan(judged)
                if plan.get("question"):
                    return _own_question(plan["question"])
                judged = self.judge_plan(plan)
            judged = await self._read_again(plan, judged)
            if judged.settled or self._only_unsure(judged) or _only_ambiguous(judged):
                break
        return self._conclude(plan, judged)

    async def _check_outline(self, outlining: OutlineQuestions, plan: JsonObject) -> "PlanFormat | QuestionDraft":
        """What becomes of an outlined plan: thin conditions are dropped, and words that were not read are looked at."""
        try:
            plan = await self._look_and_retry(outlining, plan)
        except (ModelError, UnusableAnswer) as problem:
            self._setup.context.warn(f"there was no second reading of the task: {problem}")
            self._restricting |= {part for word in self.judge_plan(plan).unread for part in words_of(word)}
        return _own_question(plan["question"]) if plan.get("question") else self._conclude(plan, self.judge_plan(plan))

    async def _look_and_retry(self, outlining: OutlineQuestions, plan: JsonObject) -> JsonObject:
        """The plan after its values and the words beside them were looked at; made afresh once if it missed some."""
        plan = await self._second_look(outlining, plan)
        left = self.judge_plan(plan).left
        if plan.get("question") or not left:
            return plan
        self._extra_calls.append("again")
        position = f"{self._position}.again{self._extra_calls.count('again')}"
        return await self._second_look(outlining, await outlining.again(position, left))

    async def _second_look(self, outlining: OutlineQuestions, plan: JsonObject) -> JsonObject:
        """The plan without conditions that a second look did not find in the task; what was not read is known then."""
        if self._mode != "strict":
            await outlining.look_at_values(self._position, self.judge_plan(plan), self._known, self.sources)
        denied = [
            one
            for one in self.judge_plan(plan).open
            if one.role == "condition" and value_key(one) in self._known.denied
        ]
        if denied:
            plan = outlining.without(denied)
            self._restricting |= {word for one in denied for word in words_of(one.words)} - self.sources.known
        self._restricting |= await outlining.restricting(self._position, self.judge_plan(plan), self.sources)
        return plan

    def _conclude(self, plan: JsonObject, judged: Judgement) -> "PlanFormat | QuestionDraft":
        """What becomes of a plan about which no model is asked any more."""
        if judged.settled:
            return self._accept_plan(plan, judged)
        if self._only_unsure(judged) and self._mode != "strict":
            assumed = tuple(_assumption(found) for found in judged.open)
            return self._accept_plan(plan, judged, assumptions=assumed)
        return self._doubtful(judged)

    async def _read_again(self, plan: JsonObject, judged: Judgement) -> Judgement:
        """The judgement after a second reading of what it leaves open; the same if there is none to be had.

        A model that cannot read a task part by part cannot tell either what it has left out; it mends that first.
        """
        points = points_of(judged, self._known)
        if not points or self._mode == "strict" or (judged.left and not self._reads):
            return judged
        number = sum(key.startswith("check") for key in self._extra_calls) + 1
        name = "check" if number == 1 else f"check{number}"
        self._extra_calls.append(name)
        try:
            answer = await ask_json(
                self._setup,
                f"{self._position}.{name}",
                "verification",
                second_question(judged, points, self.sources),
                second_schema(points),
                name="check",
                system=SECOND_SYSTEM,
                repairs=1,
            )
        except (ModelError, UnusableAnswer) as problem:
            self._setup.context.warn(f"there was no second reading of the task: {problem}")
            return judged
        learn(self._known, points, answer, self.sources)
        return self.judge_plan(plan)

    def _only_unsure(self, judged: Judgement) -> bool:
        """Whether all that is open are values with words of their own that nobody has denied."""
        denied = self._known.denied
        return not (judged.left or judged.unused) and all(
            found.state == "unsure" and value_key(found) not in denied for found in judged.open
        )

    def _accept_plan(
        self,
        plan: JsonObject,
        judged: Judgement,
        *,
        warnings: tuple[str, ...] = (),
        assumptions: tuple[str, ...] = (),
    ) -> PlanFormat:
        answer = {**plan, "question": None}
        return PlanFormat(answer, warnings, assumptions, tuple(_evidence_entry(found) for found in judged.findings))

    def _doubtful(self, judged: Judgement) -> QuestionDraft:
        """What a person must be asked about a plan."""
        doubts = unclear_in(judged)
        ambiguous = next((found for found in judged.open if found.state == "ambiguous"), None)
        names = ambiguous.others if ambiguous is not None else ()
        field = ambiguous.field if ambiguous is not None else ""
        return QuestionDraft(
            text=f"The task cannot be carried out safely as it is worded. {'. '.join(doubts)}",
            reason="unclear",
            choices=tuple(Choice(value=name, label=name, outcome=f"{field}: {name}") for name in names),
        )

    # Asking the model -------------------------------------------------------------------------------------------------

    async def _correct_plan(self, judged: Judgement) -> JsonObject:
        name = "again" if "again" not in self._extra_calls else f"again{self._extra_calls.count('again') + 1}"
        self._extra_calls.append("again")
        return await self._plan(f"{self._position}.{name}", correction(self._advice(judged)))

    def _advice(self, judged: Judgement) -> list[str]:
        """What is wrong with a plan, for the model that has made it; one that does not read is told where things go."""
        if self._reads:
            return advice(judged, self._known)
        first = self._setup.implementation.steps[0].id
        missed = [use_of(words, first, self._kinds, self._lists) for words in judged.left]
        return [*advice(replace(judged, left=()), self._known), *missed]

    async def _plan_after_answer(self, position: str, draft: QuestionDraft, answer: str) -> JsonObject:
        """The plan after a person has answered: what was asked before counts as said, and doubts are raised anew."""
        chosen = next((choice for choice in draft.choices if choice.value == answer), None)
        words = chosen.outcome or chosen.label if chosen is not None else answer
        self._answers = (*self._answers, words)
        self._restricting = frozenset()
        self._known.denied.clear()
        self._known.missing.clear()
        self._known.unclear.clear()
        self._known.answers = Passage("\n".join(self._answers))
        question = question_after_answer(draft.text, words)
        if self._outlining is not None:
            return await self._outlining.after_answer(f"{position}.plan", question)
        return await self._plan(f"{position}.plan", question)

    async def _plan(self, position: str, question: str) -> JsonObject:
        answer = await ask_json(
            self._setup,
            position,
            "error_recovery" if self._messages else "planning",
            question,
            self._schema,
            name="plan",
            system=self._system,
            reading=AnswerFormat(self._shown, self.translate),
            before=self._messages,
        )
        reply = Message("assistant", (Text(orjson.dumps(answer).decode()),))
        self._messages = (*self._messages, user(question), reply)
        return answer

    def translate(self, found: Json) -> Json:
        """The plan with values in place of labels, and numbers where texts say one."""
        if not isinstance(found, dict):
            return found
        given = cast("JsonObject", found)
        rest = {name: item for name, item in given.items() if name != READING}
        plan = cast("JsonObject", replace_labels(rest, self._lists))
        for step, item in zip(self._setup.implementation.steps, self._setup.allotted, strict=True):
            if (entry := _object(plan.get(step.id))) and (inputs := _object(entry.get("input"))):
                planned_step = Step(step.id, inputs, item.schema, _writes(item))
                plan[step.id] = {**entry, "input": with_numbers(planned_step, self._lists, self._kinds)}
        return {READING: given[READING], **plan} if READING in given and self._reads else plan

    def _outline_questions(self, known: Shapes) -> OutlineQuestions | None:
        if self._reads or self._mode == "off":
            return None
        outline = outline_of(known, [_writes(item) for item in self._setup.allotted], self._lists)
        return None if outline is None else OutlineQuestions(self._setup, outline, self._today, self.sources.known)

    # What is known ----------------------------------------------------------------------------------------------------

    @property
    def sources(self) -> EvidenceSources:
        """The task with what a person has answered, and what else counts."""
        setup = self._setup
        names = [f"{item.tool.name} {' '.join(property_names(item.schema))}" for item in setup.allotted]
        fields = frozenset(name for _, *both in shapes(setup) for schema in both for name in _fields(schema))
        return EvidenceSources(
            task=Passage("\n".join((setup.task, *self._answers))),
            own=len(words_of(setup.task)),
            documentation=Passage(
                "\n".join((setup.implementation.context.documentation, setup.tool.definition.description))
            ),
            today=self._today,
            lists=self._lists,
            by_form=not self._reads,
            restricting=self._restricting,
            fields=fields,
            names=frozenset(name for item in setup.allotted for name in value_names(item.schema))
            - {name.replace("_", " ") for name in fields},
            known=frozenset(word for name in names for word in words_of(name.replace("_", " ")) if len(word) > 2),
        )

    def _writes(self, plan: JsonObject) -> bool:
        return any(step.writes for step in self._active(plan))

    def _active(self, plan: JsonObject) -> list[Step]:
        """The steps that would run."""
        return [
            Step(step.id, wanted.input, item.schema, _writes(item), wanted.for_each)
            for step, item in zip(self._setup.implementation.steps, self._setup.allotted, strict=True)
            if not (wanted := StepPlan.read(plan[step.id])).skip
        ]


def _own_question(question: Json) -> QuestionDraft:
    """What the model asks itself."""
    if isinstance(question, str):
        return QuestionDraft(text=question, reason="unclear", worded=True)
    fields = cast("JsonObject", question)
    offered: Sequence[JsonObject] = cast("list[JsonObject]", fields.get("choices") or [])
    choices = [Choice(value=one["label"][:500], label=one["label"], outcome=one["outcome"]) for one in offered]
    return QuestionDraft(text=fields["text"], reason="unclear", choices=tuple(choices), worded=True)


def _only_ambiguous(judged: Judgement) -> bool:
    """Whether all that is open is which of several is meant, which no model can know."""
    return not judged.settled and not (
        judged.left or judged.unused or any(found.state != "ambiguous" for found in judged.open)
    )


def _assumption(found: Finding) -> str:
    """What is taken for granted of a value, in a sentence."""
    quoted = f'"{found.words}" was read as ' if found.words else ""
    return f"{quoted}{describe_finding(found)}."


def _evidence_entry(found: Finding) -> JsonObject:
    """Where a value comes from, for the journal."""
    return {
        "step": found.step,
        "role": found.role,
        "field": found.field,
        "value": found.shown,
        "state": found.state,
        "source": found.source,
        "words": found.words,
        **({"why": found.why} if found.why else {}),
    }


def _fields(schema: JsonSchema | None) -> list[str]:
    return [] if schema is None else property_names(schema)


def _object(value: Json) -> JsonObject | None:
    return cast("JsonObject", value) if isinstance(value, dict) else None


def _writes(item: ToolAllocation) -> bool:
    return item.tool.definition.side_effects == "writes"

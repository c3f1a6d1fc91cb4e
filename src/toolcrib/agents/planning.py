"""Getting a plan that follows from the task: asked for, held against the task's words, and asked about in doubt.

A doubt that remains never reaches the data: what may be left out is left out where all that the task mentions is
still in the plan, and a plan that would change data ends as a question instead. A plan that only reads goes on with a
warning.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from toolcrib.agents.allotment import Allotted
from toolcrib.agents.answers import Reading, ask_json
from toolcrib.agents.fields import Kinds, closed_words, kinds_of, numbered, property_names
from toolcrib.agents.grounding import Doubt, Task, doubts, is_idle, leftover, mentioned, without
from toolcrib.agents.labels import spoken, translated
from toolcrib.agents.leaves import Step
from toolcrib.agents.linking import lists_before
from toolcrib.agents.mentions import folded, read_mentions, stem
from toolcrib.agents.placeholders import describe
from toolcrib.agents.plan import StepPlan, guided, plan_schema
from toolcrib.agents.questions import doubt_question, plan_question, plan_system, shapes
from toolcrib.agents.setup import Setup
from toolcrib.agents.uses import USES, unnamed, uses_schema
from toolcrib.contracts import Json, JsonObject, JsonSchema


@dataclass(frozen=True, slots=True)
class Plan:
    """What the model wants of each step, or what it has to ask."""

    answer: JsonObject
    """As the model wrote it, but for what was left out."""
    question: str | None = None
    warnings: tuple[str, ...] = ()

    def step(self, name: str) -> StepPlan:
        """What it wants of one step."""
        return StepPlan.read(self.answer[name])


async def make_plan(setup: Setup, position: str = "plan") -> Plan:
    """Ask for a plan.

    Args:
        setup: The run.
        position: Of the model call in the journal.

    Raises:
        UnusableAnswer: No answer met the plan's schema.
        ModelError: The provider failed.
        BudgetExhausted: The run may not spend another call.
    """
    planner = _Planner(setup)
    plan = await ask_json(
        setup,
        position,
        "planning",
        plan_question(setup, planner.mentioned),
        planner.schema,
        name="plan",
        system=plan_system(setup),
        reading=Reading(planner.shown, planner.translate, planner.doubt),
    )
    return planner.settled(plan)


class _Planner:
    """What is known of one run's plan before it is made, and what is made of it."""

    def __init__(self, setup: Setup) -> None:
        steps = setup.implementation.steps
        inputs = {step.id: item.schema for step, item in zip(steps, setup.allotted, strict=True)}
        known = shapes(setup)
        lists = {step: lists_before(known[:place]) or () for place, (step, _, _) in enumerate(known) if place}
        self._setup = setup
        self._lists = setup.place.lists
        told = read_mentions(f"{setup.task}\n{setup.implementation.context.documentation}")
        self._kinds = kinds_of(schema for _, *both in known for schema in both if schema is not None)
        selectable, writable = _spoken_of(setup, writing=False), _spoken_of(setup, writing=True)
        usable: Kinds = {name: kind for name, kind in self._kinds.items() if name in selectable | writable}
        self._task = Task(read_mentions(setup.task), told, self._lists, _vocabulary(setup), usable)
        self._asked: list[str] = []
        self._only_reads: JsonObject | None = None
        """A plan that changes nothing, when it was asked about."""
        self.mentioned = mentioned(self._task)
        first = {USES: uses_schema(self.mentioned, selectable, writable)} if self.mentioned else {}
        self.schema: JsonSchema = plan_schema(steps, inputs)
        self.shown: JsonSchema = spoken(guided(self.schema, lists, first))

    def translate(self, found: Json) -> Json:
        """The plan with values in place of labels, numbers where texts say one, and without steps that set nothing."""
        plan = translated(unnamed(found, self.mentioned), self._lists)
        if not isinstance(plan, dict):
            return plan
        known = self.schema["properties"]
        written = {name: item for name, item in cast("JsonObject", plan).items() if name != USES or name in known}
        for step, item in zip(self._setup.implementation.steps, self._setup.allotted, strict=True):
            if (entry := _object(written.get(step.id))) and (inputs := _object(entry.get("input"))):
                meant = Step(step.id, inputs, item.schema, _writes(item))
                idle = {"skip": True} if is_idle(meant, self._task) else {}
                written[step.id] = {**entry, "input": numbered(meant, self._lists, self._kinds), **idle}
        return written

    def doubt(self, plan: JsonObject) -> str:
        """What to ask about a plan; empty if it follows from the task, does once something is left out, or stays so."""
        found = self._doubts(plan)
        if not found and (plan.get("question") or not self._writes(plan) or not self._overlooked(plan)):
            return ""
        if found and self._prune(plan, found) is not None:
            return ""
        if not self._writes(plan):
            self._only_reads = plan
        selecting = self._setup.implementation.steps[0].id
        said = [doubt.advice(self._task, selecting) for doubt in found] or [
            f"no step uses {word!r}; if it says which items are meant, select by it" for word in self._overlooked(plan)
        ]
        asked, self._asked = self._asked, said
        return "" if said == asked else doubt_question(said)

    def settled(self, plan: JsonObject) -> Plan:
        """The plan without what is in doubt, or the question that it becomes; a doubt stops no plan that only reads."""
        if plan.get("question") and self._only_reads is not None:
            plan = self._only_reads
        question = plan.get("question")
        found = [] if question else self._doubts(plan)
        if question or not found:
            return Plan(plan, question or None)
        pruned = self._prune(plan, found)
        said = "; ".join(str(doubt) for doubt in found)
        if pruned is not None:
            return Plan(pruned, warnings=(f"left out of the plan: {said}",))
        if self._writes(plan):
            return Plan(plan, f"I could not plan this safely: {said}. Please say it in other words.")
        return Plan(plan, warnings=(f"the plan may not fit the task: {said}",))

    def _doubts(self, plan: JsonObject) -> list[Doubt]:
        return [] if plan.get("question") else doubts(self._active(plan), self._task)

    def _prune(self, plan: JsonObject, found: Sequence[Doubt]) -> JsonObject | None:
        """The plan without what the task does not mention, or null if that does not settle every doubt."""
        if not all(doubt.step and doubt.place for doubt in found):
            return None
        pruned = dict(plan)
        for step in {doubt.step for doubt in found if doubt.step}:
            places = [doubt.place for doubt in found if doubt.step == step]
            pruned[step] = {**plan[step], "input": without(plan[step]["input"], places)}
        settled = not self._doubts(pruned) and not (self._writes(pruned) and self._overlooked(pruned))
        return pruned if settled else None

    def _overlooked(self, plan: JsonObject) -> list[str]:
        return leftover(self._active(plan), self._task)

    def _writes(self, plan: JsonObject) -> bool:
        return any(step.writes for step in self._active(plan))

    def _active(self, plan: JsonObject) -> list[Step]:
        """The steps that would run."""
        return [
            Step(step.id, wanted.input, item.schema, _writes(item), wanted.for_each)
            for step, item in zip(self._setup.implementation.steps, self._setup.allotted, strict=True)
            if not (wanted := StepPlan.read(plan[step.id])).skip
        ]


def _object(value: Json) -> JsonObject | None:
    return cast("JsonObject", value) if isinstance(value, dict) else None


def _writes(item: Allotted) -> bool:
    return item.tool.definition.side_effects == "writes"


def _spoken_of(setup: Setup, *, writing: bool) -> set[str]:
    """Names of the fields that steps which write, or only read, can speak of."""
    schemas = [item.schema for item in setup.allotted if _writes(item) == writing]
    return {name for schema in schemas for name in (*property_names(schema), *closed_words(schema))}


def _vocabulary(setup: Setup) -> frozenset[str]:
    """Stems of the words by which the tools call themselves and their fields."""
    texts = [f"{item.tool.name} {describe(item.tool)} {item.purpose}" for item in setup.allotted]
    names = [name for item in setup.allotted for name in property_names(item.schema)]
    return frozenset(stem(word) for text in (*texts, *names) for word in folded(text.replace("_", " ")))

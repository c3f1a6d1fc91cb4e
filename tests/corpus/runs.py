"""Runs of the corpus' tasks through a crib, judged by what the system's records are afterwards.

A person stands by who knows what the task means. Of what a run shows before it changes something the person agrees to
what is right only; to a question about the task the person does not reply, so that the run stays there.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Literal, TypeAlias, cast, get_args

from tests.corpus.corpus import Action, SystemName, Task
from tests.corpus.effects import right_effect
from tests.corpus.players import Player
from tests.corpus.records import matching
from tests.corpus.systems import SYSTEMS, System
from tests.twins import ManualClock
from toolcrib import AgenticContext, Crib, Result, ScriptedModel
from toolcrib.contracts import CallFinished, Grounding, Json, JsonObject, ModelError, ModelFinished, Purpose
from toolcrib.contracts.runs.executions import OpenQuestion
from toolcrib.llm import Request

MODEL: Final = "scripted:planner"
NOW: Final = datetime(2026, 3, 11, 9, tzinfo=UTC)

Outcome: TypeAlias = Literal[
    "right", "right, warned", "agreed", "previewed", "asked", "nothing", "wrong, warned", "wrong", "misled"
]
"""right: only and all that was meant has happened, and nobody was asked but whether to delete. agreed: the same after a
person has agreed to what was taken for granted. previewed: a person has seen what would happen, and did not want it.
asked: the run waits for an answer. nothing: it has ended, and has changed nothing. wrong: other records were changed or
found, and nobody was asked. misled: so they were, though a person was shown the first of them. A task that only reads
is carried out with a warning where its plan may not fit."""

OUTCOMES: Final[tuple[Outcome, ...]] = get_args(Outcome)
_DOUBT: Final = "the plan may not fit the task"
Script: TypeAlias = Callable[[Request], str]
"""Answers a request."""

_ACTIONS: Final[tuple[Action, ...]] = ("update", "delete", "cancel", "create")


class FrozenClock(ManualClock):
    """A clock that always says the same; who sleeps does so in real time."""

    def __init__(self) -> None:
        super().__init__(NOW)

    async def sleep(self, seconds: float) -> None:
        """Sleep, while no time passes."""
        await asyncio.sleep(seconds)


@dataclass(frozen=True, slots=True)
class Ran:
    """What became of one run."""

    task: Task
    outcome: Outcome
    before: tuple[Purpose, ...]
    """What the model was asked for before anything was changed, in order."""
    result: Result
    questions: tuple[OpenQuestion, ...]
    """What a person was asked."""

    @property
    def further(self) -> tuple[Purpose, ...]:
        """What the model was asked for beyond the plan, before anything was changed."""
        return self.before[1:]


class Voice:
    """What the model of a crib says: another one for each run."""

    def __init__(self) -> None:
        self.script: Script = _silent

    def __call__(self, request: Request) -> str:
        """The next answer."""
        return self.script(request)


def _silent(request: Request) -> str:
    raise ModelError("not_found", f"nobody says anything to {request.output_name!r}")


class Stand:
    """One system with the agentic tools for its tasks, in a crib.

    Args:
        name: The system.
        crib: Where the tools are.
        voice: What the crib's model says.
    """

    def __init__(self, name: SystemName, crib: Crib, voice: Voice, *, grounding: Grounding = "evidence") -> None:
        self.voice = voice
        self.system: System = SYSTEMS[name]()
        self.crib = crib
        self._first = {key: dict(record) for key, record in self.system.records.items()}
        self._right: dict[str, Json] = {}
        crib.add(*self.system.tools)
        for action in _ACTIONS:
            steps = self.system.steps(action)
            if steps[1] in {tool.definition.name for tool in self.system.tools}:
                crib.agentic_tool(
                    f"do_{action}",
                    mode="deterministic",
                    model=MODEL,
                    steps=steps,
                    context=AgenticContext(reference_data=self.system.references),
                    grounding=grounding,
                )

    async def play(self, player: Player) -> Ran:
        """Run the task with a model, from the records as they were at first, until it ends or needs an answer."""
        self.voice.script, task = player.answer, player.task
        self.system.reset()
        result = await self.crib.invoke(tool_of(task), {"task": task.text})
        return await self.finish(task, result)

    async def finish(self, task: Task, result: Result) -> Ran:
        """Go on with a run for as long as it shows what it would do, and judge it."""
        questions: list[OpenQuestion] = []
        declined = False
        while result.question is not None:
            questions.append(result.question)
            if result.question.preview is None:
                break
            agrees = self._agrees(task, result.question)
            declined = declined or not agrees
            result = await self.crib.questions.answer(result.run_id, "yes" if agrees else "no")
        outcome = await self._outcome(task, result, questions, declined=declined)
        return Ran(task, outcome, self._before(task, result), result, tuple(questions))

    def _agrees(self, task: Task, question: OpenQuestion) -> bool:
        """Whether what a preview shows is what the task means, as far as it shows it."""
        preview = question.preview
        meant = matching(task.where, list(self.system.records.values())) if task.writes else []
        if preview is None or task.unclear or preview.items != max(1, len(meant)):
            return False
        names = {record["id"] for record in meant}
        values = self.system.writing(task.action, task.changes, ("",), spoken=False)
        return all(
            _without_ids(item.after) == _without_ids(values)
            and (not task.writes or _ids(item.before if item.before is not None else item.after) <= names)
            for item in preview.sample
        )

    async def _outcome(
        self, task: Task, result: Result, questions: Sequence[OpenQuestion], *, declined: bool
    ) -> Outcome:
        if self.system.records != self._first:
            if await self._effect(task, result) == await self._meant(task):
                return "agreed" if any(one.assumptions for one in questions) else "right"
            return "misled" if questions else "wrong"
        if declined:
            return "previewed"
        if result.question is not None:
            return "asked"
        if task.action == "read" and result.ok:
            warned = any(warning.startswith(_DOUBT) for warning in result.summary.warnings)
            if await self._effect(task, result) == await self._meant(task):
                return "right, warned" if warned else "right"
            return "wrong, warned" if warned else "wrong"
        return "nothing"

    async def _effect(self, task: Task, result: Result) -> Json:
        """The records that there are, or those that a task which only reads has found."""
        if task.action != "read":
            return [record for _, record in sorted(self.system.records.items(), key=lambda item: str(item[0]))]
        search = self.system.steps(task.action)[0]
        return [{one.name: one.output for one in result.envelopes if one.name == search and one.ok}]

    async def _meant(self, task: Task) -> Json:
        if task.id not in self._right:
            self._right[task.id] = None if task.unclear else await right_effect(task)
        return self._right[task.id]

    def _before(self, task: Task, result: Result) -> tuple[Purpose, ...]:
        write = self.system.steps(task.action)[1]
        purposes: list[Purpose] = []
        for event in (entry.event for entry in result.events):
            if isinstance(event, CallFinished) and event.envelope.name == write:
                break
            if isinstance(event, ModelFinished) and event.purpose != "formatting":
                purposes.append(event.purpose)
        return tuple(purposes)


def tool_of(task: Task) -> str:
    """The agentic tool for a task; one that only reads, or cannot be done, is given to the one for changes."""
    return f"do_{task.action if task.action in _ACTIONS else 'update'}"


@asynccontextmanager
async def open_stand(
    name: SystemName, store: str = "memory://", *, grounding: Grounding = "evidence"
) -> AsyncGenerator[Stand]:
    """A system in a crib of its own, on a day that does not pass."""
    voice = Voice()
    async with Crib(store, models={MODEL: ScriptedModel(voice, name="planner")}, clock=FrozenClock()) as crib:
        yield Stand(name, crib, voice, grounding=grounding)


def _without_ids(given: Json) -> Json:
    """What an input of a write sets, without which records get it."""
    values = cast("JsonObject", given) if isinstance(given, dict) else {}
    if isinstance(values.get("inputs"), list):
        return _without_ids(values["inputs"][0])
    return {name: value for name, value in values.items() if name not in {"id", "ids", "ticket_ids"}}


def _ids(shown: Json) -> set[Any]:
    """The ids in a record, or in an input of a write."""
    values = cast("JsonObject", shown) if isinstance(shown, dict) else {}
    for name in ("id", "ids", "ticket_ids"):
        if name in values:
            found = cast("list[Any]", values[name]) if isinstance(values[name], list) else [values[name]]
            return set(found)
    return {name for element in cast("list[Json]", values.get("inputs", [])) for name in _ids(element)}

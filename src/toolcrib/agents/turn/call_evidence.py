"""Checks calls that write in agentic mode against the task, the author's documentation and earlier results.

An id must occur in the task, the documentation, reference data or an earlier result; otherwise the call is refused
before it runs, and the model is told to look up the record. Other enum values, numbers and dates that occur in none of
these are read a second time: a call that the task contradicts is refused. Free text is not checked. Values that occur
nowhere are recorded, and refused if the tool is `strict`.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import cast

from toolcrib.agents.evidence import (
    SECOND_SYSTEM,
    EvidenceSources,
    Finding,
    Judgement,
    Known,
    Passage,
    Step,
    as_day,
    doubts_of_call,
    learn,
    points_of,
    second_question,
    second_schema,
    value_key,
    value_texts,
)
from toolcrib.agents.model.json_answers import UnusableAnswer, ask_json
from toolcrib.agents.prepare.agentic_tool import Setup
from toolcrib.contracts import ErrorCode, Json, JsonObject, ModelError, Reason, ToolEnvelope, ToolError, ToolRevision
from toolcrib.core.executor import error
from toolcrib.core.policy import confirms
from toolcrib.llm.base.quirks import profile_of


class CallEvidence:
    """Judges the calls of one run.

    Args:
        setup: The run.
    """

    def __init__(self, setup: Setup) -> None:
        implementation = setup.implementation
        self._setup = setup
        self._strict = implementation.grounding == "strict"
        self._tools = setup.place.writing
        self._reads = not self._strict and profile_of(setup.model.name).reads_tasks
        self._known = Known()

    @cached_property
    def _sources(self) -> EvidenceSources:
        """What the calls are held against."""
        implementation = self._setup.implementation
        return EvidenceSources(
            task=Passage(self._setup.task),
            documentation=Passage("\n".join((implementation.context.documentation, implementation.system_prompt))),
            today=self._setup.context.run.created_at.date(),
            lists=self._setup.place.lists,
        )

    async def refusal(
        self, position: str, tool: str, arguments: Json, done: Sequence[ToolEnvelope]
    ) -> ToolError | None:
        """Why a call is not made; null if nothing speaks against it.

        Args:
            position: Of the call.
            tool: Its name.
            arguments: As the model wrote them.
            done: The calls that were made before.
        """
        item = self._tools.get(tool)
        if item is None or not isinstance(arguments, dict):
            return None
        step = Step(position, cast("JsonObject", arguments), item.schema, writes=True)
        doubts = doubts_of_call(step, self._sources, value_texts(found.output for found in done if found.ok))
        if not doubts:
            return None
        refused = [doubt for doubt in doubts if self._strict or doubt.state == "invented"]
        if not refused and self._reads and not self._is_shown(item.tool):
            await self._read_again(position, doubts)
        details: JsonObject = {"doubts": [self._finding_entry(doubt) for doubt in doubts]}
        await self._setup.context.emit(f"{position}.evidence", "call_judged", details)
        if refused:
            named = "; ".join(f"{doubt.field} {doubt.shown!r}" for doubt in refused)
            message = (
                f"{named} comes from no result, not from the task and from no list; look it up first, or ask for it"
            )
        elif denied := [doubt for doubt in doubts if value_key(doubt) in self._known.denied]:
            message = "; ".join(self._denial(doubt) for doubt in denied)
        else:
            return None
        message = f"{tool!r} was not called: {message}"
        return error(ErrorCode.VALIDATION_ERROR, Reason.NOT_GROUNDED, message, **details)

    def _is_shown(self, tool: ToolRevision) -> bool:
        """Whether a call waits for a person anyway, or takes no effect."""
        return self._setup.context.request.skips_writes or confirms(self._setup.context.policy, tool)

    async def _read_again(self, position: str, doubts: Sequence[Finding]) -> None:
        """Have values read a second time that were chosen, not written; once each in a run."""
        judged = Judgement(tuple(doubt for doubt in doubts if _is_chosen(doubt)), (), (), ())
        points = [point for point in points_of(judged, self._known) if not self._is_read(point.subject)]
        if not points:
            return
        try:
            answer = await ask_json(
                self._setup,
                f"{position}.check",
                "verification",
                second_question(judged, points, self._sources),
                second_schema(points),
                name="check",
                system=SECOND_SYSTEM,
                repairs=1,
            )
        except (ModelError, UnusableAnswer) as problem:
            self._setup.context.warn(f"there was no second reading of the task: {problem}")
        else:
            learn(self._known, points, answer, self._sources)

    def _is_read(self, subject: Finding | str) -> bool:
        return isinstance(subject, Finding) and value_key(subject) in self._known.confirmed

    def _denial(self, doubt: Finding) -> str:
        instead = self._known.denied[value_key(doubt)]
        return f"{doubt.field} {doubt.shown!r} is not what the task says" + (f", but {instead!r}" if instead else "")

    def _finding_entry(self, doubt: Finding) -> JsonObject:
        key = value_key(doubt)
        read = "confirmed" if key in self._known.confirmed else "denied" if key in self._known.denied else ""
        entry: JsonObject = {"field": doubt.field, "value": doubt.shown, "state": doubt.state}
        return {**entry, "second_reading": read} if read else entry


def _is_chosen(doubt: Finding) -> bool:
    """Whether a value is one of several, a number or a day: texts are written for a task, not taken from it."""
    value = doubt.leaf.value
    return bool(doubt.choices) or not isinstance(value, str) or as_day(value) is not None


def grounds_of(setup: Setup) -> CallEvidence | None:
    """What judges the calls of a run; null where there is nothing to judge, or nothing does.

    That is so if no tool writes, if it is off, and if the run began in an older release.
    """
    is_off = (
        not setup.place.writing or setup.implementation.grounding == "off" or setup.context.request.plan_format == 1
    )
    return None if is_off else CallEvidence(setup)

"""The parts of a deterministic run: the result of one step, and the answer from all results.

The tool's own program uses them in order; a compiled workflow uses one per step. Their inputs are data, such as a plan
as JSON. The caller decides their positions in the journal.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias, cast

import msgspec

from toolcrib.agents.evidence import value_texts
from toolcrib.agents.evidence.plan_schema import StepPlan, expand, items_of, step_schema
from toolcrib.agents.model.json_answers import AnswerFormat, UnusableAnswer, ask_json, end_without_output
from toolcrib.agents.model.tool_calls import preview
from toolcrib.agents.planner.caller_questions import NO, YES, QuestionDraft, consents
from toolcrib.agents.planner.plan_prompts import format_question, format_system, review_question
from toolcrib.agents.planner.planning import doubts_of_step
from toolcrib.agents.prepare.agentic_tool import Setup
from toolcrib.agents.toolset.allocation import ToolAllocation
from toolcrib.contracts import (
    ErrorCode,
    InvalidExpression,
    Json,
    JsonObject,
    JsonSchema,
    ModelError,
    Purpose,
    Reason,
    StopReason,
    ToolEnvelope,
    ToolError,
)
from toolcrib.contracts.runs.executions import ChangePreview, Choice, PreviewedItem, QuestionReason
from toolcrib.contracts.workflows import SettledStep, StepStatus
from toolcrib.core.executor import CallRequest, error
from toolcrib.core.policy import CALL_LIMITS, confirms, deletes
from toolcrib.core.runs import BudgetExhausted, RunEnd, end_after, shorten_json
from toolcrib.llm.base.quirks import profile_of

_SHOWN: Final = 3
"""Items of a preview."""
_LENGTH: Final = 600
"""Characters of an item."""


async def has_consent(
    setup: Setup,
    position: str,
    item: ToolAllocation,
    plan: StepPlan,
    inputs: Sequence[JsonObject],
    *,
    found: Sequence[Json],
    assumptions: Sequence[str],
) -> bool:
    """Whether a step may make its calls: nothing speaks against it, or a person has seen what they would do.

    Args:
        setup: The run.
        position: Of the step's calls.
        item: The step's tool.
        plan: What is wanted of the step.
        inputs: Of its calls.
        found: The items that it is done for; empty if it is done once.
        assumptions: What its plan takes for granted.

    Raises:
        Unanswered: The run has a caller, which gets the question instead.
        Suspended: A person was asked.
    """
    definition, implementation = item.tool.definition, setup.implementation
    if implementation.grounding == "off" or definition.side_effects != "writes" or not inputs:
        return True
    if setup.context.request.skips_writes or confirms(setup.context.policy, item.tool):
        return True
    count = len(found) if plan.for_each is not None else max(map(_longest, inputs))
    reason = _reason(item, inputs, wide=count > implementation.preview_above, assumed=bool(assumptions))
    if reason is None:
        return True
    preview = ChangePreview(
        step=position,
        tool=item.tool.ref,
        calls=len(inputs),
        items=count,
        sample=tuple(_sample(found, inputs)),
    )
    draft = QuestionDraft(
        text=_text(item, reason, count, assumptions),
        reason=reason,
        choices=(
            Choice(value=YES, label="Yes", outcome=f"{item.tool.name} is called for {count} items."),
            Choice(value=NO, label="No", outcome="Nothing is changed."),
        ),
        assumptions=tuple(assumptions),
        preview=preview,
    )
    return await consents(setup, f"{position}.preview", draft)


def _reason(item: ToolAllocation, inputs: Sequence[JsonObject], *, wide: bool, assumed: bool) -> QuestionReason | None:
    if any(deletes(item.tool.definition, given) for given in inputs):
        return "irreversible"
    if assumed:
        return "unsure"
    return "wide" if wide else None


def _text(item: ToolAllocation, reason: QuestionReason, count: int, assumptions: Sequence[str]) -> str:
    what = item.purpose or item.tool.definition.title or item.tool.name
    why = {
        "irreversible": "This cannot be undone.",
        "wide": "These are many items.",
        "unsure": f"I assume: {' '.join(assumptions)}",
    }.get(reason, "")
    return f"{what}: {count} {'item' if count == 1 else 'items'} would be changed. {why} Go on?"


def _longest(value: Json) -> int:
    """The length of the longest list in a value; 1 if it has none."""
    if isinstance(value, list):
        items = cast("list[Json]", value)
        return max(len(items), *map(_longest, items), 1)
    if isinstance(value, dict):
        return max([1, *map(_longest, cast("JsonObject", value).values())])
    return 1


def _sample(found: Sequence[Json], inputs: Sequence[JsonObject]) -> Iterator[PreviewedItem]:
    """The first items, with what they would get: a call of their own, or their element of a batch."""
    batches = [element for given in inputs for element in _elements(given)]
    after: Sequence[Json] = batches if len(batches) == len(found) and found else inputs
    for place, given in enumerate(after[:_SHOWN]):
        before = found[place] if place < len(found) else None
        yield PreviewedItem(before=shorten_json(before, _LENGTH), after=shorten_json(given, _LENGTH))


def _elements(given: JsonObject) -> Sequence[Json]:
    """The elements of the longest list of objects at the top of an input."""
    lists: list[Sequence[Json]] = [cast("list[Json]", item) for item in given.values() if isinstance(item, list)]
    return max(lists, key=len) if lists else ()


_SUMMARY: JsonSchema = {"type": "string", "description": "What was done, in one or two sentences."}
DEFAULT_RESULT: JsonSchema = {
    "type": "object",
    "properties": {"summary": _SUMMARY},
    "required": ["summary"],
    "additionalProperties": False,
}
_ENDING: JsonSchema = {**DEFAULT_RESULT, "properties": {"summary": {**_SUMMARY, "maxLength": 300}}}
"""As it is shown to models that repeat themselves where nothing ends a text."""
DECLINED = "declined"
"""Why a step was left out that somebody did not want."""
OUTCOME = "outcome"
"""Where the metadata of a run's end says what became of each step."""
_REVIEWED, _REPORTED = 2000, 3000
"""Characters of results that a review and a report get to see."""

Done: TypeAlias = Mapping[str, SettledStep]
"""How the steps have ended, by id, in their order; those that were not come to are not there."""


@dataclass(frozen=True, slots=True)
class StepRun:
    """One step of one run, ready to be carried out."""

    setup: Setup
    place: int
    """Of the step in the sequence."""
    position: str
    """Of its calls in the journal: `NAME`, `NAME[i]`, `NAME.again`; its review is `NAME.review`."""
    done: Done
    assumptions: tuple[str, ...] = ()
    """What the plan takes for granted, which a person must see before anything is changed."""
    recorded: bool = False
    """The plan is one of an older release, which is carried out as it is recorded."""
    left_out: bool = False
    """That release has passed the step over, if there was anything to do it for."""

    @property
    def id(self) -> str:
        """Of the step."""
        return self.setup.implementation.steps[self.place].id

    async def carry_out(self, plan: StepPlan) -> SettledStep:
        """Make the step's calls; ask the model once more if its input cannot be used.

        Raises:
            UnusableAnswer: The model was asked about the step, and no answer met its schema.
            ModelError: The provider failed.
            BudgetExhausted: The run may not spend another call of the model.
            Unanswered: A person must be asked before the step, and the run has a caller instead.
        """
        if plan.skip:
            return self._skip()
        found = await self._attempt(plan, self.assumptions, suffix="")
        if isinstance(found, SettledStep):
            return found
        corrected = await self._review(found)
        if corrected.skip:
            return self._skip()
        known_values = value_texts([plan.input, *self._outputs_by_step().values()])
        doubts = [] if self.recorded else doubts_of_step(self.setup, self.place, corrected, known_values)
        invented = next((doubt for doubt in doubts if doubt.invented), None)
        if invented is not None:
            message = f"step {self.id!r} was not carried out: {invented.text}; look it up in a step before, or name it"
            failure = error(ErrorCode.VALIDATION_ERROR, Reason.NOT_GROUNDED, message)
            return SettledStep(step=self.id, status="failed", error=failure)
        assumed = (*self.assumptions, *(doubt.text for doubt in doubts))
        found = await self._attempt(corrected, assumed, suffix=".again")
        if isinstance(found, SettledStep):
            return found
        message = f"step {self.id!r} could not be carried out: {found.message}"
        failure = error(ErrorCode.VALIDATION_ERROR, Reason.REFERENCE_UNRESOLVED, message)
        return SettledStep(step=self.id, status="failed", error=failure)

    def _skip(self) -> SettledStep:
        return SettledStep(step=self.id, status="skipped", reason="the task does not need it")

    def _outputs_by_step(self) -> JsonObject:
        """What the steps before have brought, by id."""
        return {step: ended.output for step, ended in self.done.items() if _was_called(ended)}

    async def _attempt(self, plan: StepPlan, assumptions: Sequence[str], *, suffix: str) -> "SettledStep | _Problem":
        """Run the step's calls; returns how it has ended, or what the model has to correct."""
        context, item = self.setup.context, self.setup.allotted[self.place]
        scope = {**self._outputs_by_step(), "input": context.request.input}
        try:
            inputs = expand(plan, item.tool.definition.input_schema, scope)
            items = items_of(plan, scope)
        except InvalidExpression as problem:
            return _Problem(str(problem), "result_review")
        many, position, tool = plan.for_each is not None, f"{self.position}{suffix}", item.tool
        if self.left_out and inputs:
            return self._skip()
        if not self.recorded and not await has_consent(
            self.setup, position, item, plan, inputs, found=items, assumptions=assumptions
        ):
            return SettledStep(step=self.id, status="skipped", reason=DECLINED)
        calls = [
            context.call(
                CallRequest(f"{position}[{index}]" if many else position, tool.name, arguments, tool.content_hash)
            )
            for index, arguments in enumerate(inputs)
        ]
        envelopes = await context.wait_all(calls)
        refused = [found.error for found in envelopes if found.error and found.error.code is ErrorCode.VALIDATION_ERROR]
        may_correct = profile_of(self.setup.model.name).reads_tasks or tool.definition.side_effects != "writes"
        if refused and len(refused) == len(envelopes) and not suffix and may_correct:
            return _Problem(refused[0].message, "error_recovery")
        return _settle_step(self.id, envelopes, many=many)

    async def _review(self, problem: "_Problem") -> StepPlan:
        setup, step = self.setup, self.setup.implementation.steps[self.place]
        facts = report(setup, self.done)
        answer = await ask_json(
            setup,
            f"{self.position}.review",
            problem.purpose,
            review_question(setup, step.id, problem.message, preview(facts, _REVIEWED)),
            step_schema(step, setup.allotted[self.place].schema, first=self.place == 0),
            name="step",
            system=setup.system_prompt(preview(facts, 1000)),
        )
        return StepPlan.read(answer)


class _Problem(NamedTuple):
    """What the model has to correct of a step."""

    message: str
    purpose: Purpose
    """Of the call that corrects it: a reference is reviewed with the results, a refusal is an error."""


def report(setup: Setup, done: Done) -> JsonObject:
    """Facts about every step whose tool was called, for the model that writes the answer and for partial results."""
    tools = {step.id: item.tool.name for step, item in zip(setup.implementation.steps, setup.allotted, strict=True)}
    return {step: _facts(tools[step], ended) for step, ended in done.items() if _was_called(ended)}


def warnings_of(done: Done) -> Iterator[str]:
    """What is to be said of calls that failed."""
    for step, ended in done.items():
        if ended.failed and ended.error is not None:
            yield f"step {step!r}: {ended.failed} of {_calls(ended)} calls failed: {ended.error.message}"


def stop_reason_of(ended: SettledStep) -> StopReason | None:
    """Why no step follows one that has ended so; null if the next one does."""
    if ended.status != "failed":
        return None
    return CALL_LIMITS.get(None if ended.error is None else ended.error.reason, "error")


async def conclude(
    setup: Setup, done: Done, warnings: Sequence[str], position: str, *, recorded: bool = False
) -> RunEnd:
    """The answer, made of what the steps have brought.

    Args:
        setup: The run.
        done: How the steps have ended.
        warnings: What the plan had to say.
        position: Of the model call.
        recorded: Whether the plan is one of an older release, which had the model word the answer of every run.
    """
    if not recorded and (end := _without_answer(setup, done)) is not None:
        return msgspec.structs.replace(end, warnings=(*warnings, *end.warnings))
    all_warnings = [*warnings, *warnings_of(done)]
    skipped = [step for step, ended in done.items() if ended.status == "skipped"]
    schema = setup.implementation.result_schema or DEFAULT_RESULT
    facts = report(setup, done)
    unformatted: ModelError | UnusableAnswer | BudgetExhausted | None = None
    question = format_question(setup, preview(facts, _REPORTED), skipped, all_warnings)
    try:
        output: Json = await ask_json(
            setup,
            position,
            "formatting",
            question,
            schema,
            name="answer",
            system=format_system(setup),
            reading=None
            if schema is not DEFAULT_RESULT or profile_of(setup.model.name).ends_texts
            else AnswerFormat(_ENDING),
        )
    except (ModelError, UnusableAnswer, BudgetExhausted) as problem:
        # What was done is done: the answer is then the facts, without the model's words.
        all_warnings.append(f"the answer could not be formatted: {problem}")
        output = {"summary": "The model gave no summary; see the steps.", "steps": facts}
        unformatted = problem
    if setup.context.request.has_old_rules:
        return _end_as_before(output, done, tuple(all_warnings))
    all_warnings += [f"step {step!r} was left out: the task does not need it" for step in skipped]
    end = _end_of_steps(setup, done) or RunEnd(output=output)
    if end.error is not None:
        end = msgspec.structs.replace(end, partial=output)
    elif unformatted is not None and setup.implementation.result_schema is not None:
        end = end_without_output(output, unformatted, ())
    return msgspec.structs.replace(end, warnings=tuple(all_warnings), metadata={OUTCOME: outcome_counts(done)})


def _end_of_steps(setup: Setup, done: Done) -> RunEnd | None:
    """How a run ends of which a planned step was denied, failed, or has calls that did; null if there is none."""
    ended = next((ended for ended in done.values() if ended.error is not None), None)
    if ended is None or ended.error is None:
        return None
    failure, calls = ended.error, _calls(ended)
    if ended.status != "failed":
        message = f"step {ended.step!r}: {ended.failed} of {calls} calls failed; the first: {failure.message}"
        facts: JsonObject = {**(failure.details or {}), "step": ended.step, "calls": calls, "failed": ended.failed}
        failure = failure.model_copy(update={"message": message, "details": facts})
    return end_after(failure, setup.context.request)


def _end_as_before(output: Json, done: Done, warnings: tuple[str, ...]) -> RunEnd:
    """The end as older releases told it: of a run that a limit has stopped, or of which a part failed, as completed."""
    stopped = next((ended for ended in done.values() if stop_reason_of(ended)), None)
    stop_reason = (stopped and stop_reason_of(stopped)) or "final_answer"
    failed = stop_reason == "error"
    return RunEnd(
        output=output,
        status="failed" if failed else "completed",
        stop_reason=stop_reason,
        error=stopped.error if stopped and failed else None,
        warnings=warnings,
        metadata={OUTCOME: outcome_counts(done)},
    )


def outcome_counts(done: Done) -> JsonObject:
    """What became of each step, in numbers that nobody has worded: how it ended, its calls, those that failed."""
    return {
        step: {
            "status": ended.status,
            "calls": 0 if ended.status == "skipped" else _calls(ended),
            "failed": ended.failed,
        }
        for step, ended in done.items()
    }


def _without_answer(setup: Setup, done: Done) -> RunEnd | None:
    """The end of a run that has changed nothing though it might have, told by facts; null if a model words the answer.

    No model is asked what to say of nothing.
    """
    declined = next((step for step, ended in done.items() if ended.reason == DECLINED), None)
    if declined is not None:
        message = f"step {declined!r} was declined; nothing was changed by it"
        failure = error(ErrorCode.POLICY_DENIED, Reason.APPROVAL_REJECTED, message)
        return _incomplete("declined", failure, report(setup, done), done)
    if all(ended.status == "skipped" for ended in done.values()):
        message = "the plan left out every step, so nothing was done; say the task in other words"
        failure = error(ErrorCode.VALIDATION_ERROR, Reason.NOTHING_DONE, message)
        return _incomplete("nothing_done", failure, report(setup, done), done)
    empty = _step_without_items(setup, done)
    if empty is None or setup.implementation.result_schema is not None:
        return None
    message = f"Nothing was changed: there were no items to do {empty} for."
    output = {"summary": message, "steps": report(setup, done)}
    return RunEnd(output=output, warnings=(message,), metadata={OUTCOME: outcome_counts(done)})


def _step_without_items(setup: Setup, done: Done) -> str | None:
    """The step that would have changed something and had no items to do it for, if no other has changed anything."""
    writing = [
        done[step.id]
        for step, item in zip(setup.implementation.steps, setup.allotted, strict=True)
        if item.tool.definition.side_effects == "writes" and step.id in done and done[step.id].status != "skipped"
    ]
    empty = [ended.step for ended in writing if ended.status == "succeeded" and ended.items == 0]
    return empty[0] if empty and len(empty) == len(writing) else None


def _incomplete(stop_reason: StopReason, failure: ToolError, facts: JsonObject, done: Done) -> RunEnd:
    return RunEnd(
        partial={"summary": failure.message, "steps": facts},
        status="incomplete",
        stop_reason=stop_reason,
        error=failure,
        metadata={OUTCOME: outcome_counts(done)},
    )


def _settle_step(step: str, envelopes: Sequence[ToolEnvelope], *, many: bool) -> SettledStep:
    """How a step has ended: it fails if all of its calls have, or if a limit has refused one."""
    failed = [found.error for found in envelopes if found.error is not None]
    denied = (found.error for found in envelopes if found.status == "denied")
    limit = next((failure for failure in denied if failure and failure.reason in CALL_LIMITS), None)
    output: Json = [found.output for found in envelopes] if many else envelopes[0].output
    status: StepStatus = (
        "succeeded" if not failed else "failed" if limit or len(failed) == len(envelopes) else "partial"
    )
    return SettledStep(
        step=step,
        status=status,
        positions=() if many else (envelopes[0].position,),
        items=len(envelopes) if many else None,
        failed=len(failed),
        output=output,
        error=limit or next(iter(failed), None),
    )


def _was_called(ended: SettledStep) -> bool:
    """Whether a step has come to its calls, if only to none for an empty list."""
    return ended.ok or (ended.status == "failed" and ended.failed > 0)


def _calls(ended: SettledStep) -> int:
    return 1 if ended.items is None else ended.items


def _facts(tool: str, ended: SettledStep) -> JsonObject:
    calls = _calls(ended)
    facts: JsonObject = {"tool": tool if calls else None, "calls": calls}
    if ended.failed and ended.error is not None:
        facts["failed"] = ended.failed
        facts["first_error"] = ended.error.message
    facts["output"] = ended.output
    return facts

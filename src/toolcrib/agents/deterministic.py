"""The deterministic mode: plan, a fixed sequence of steps, a review only where one is needed, a formatted answer.

One model call fills in every step. The steps run through the run's calls, fanned out where the plan says so. Only if a
reference cannot be resolved or a call is refused as invalid is the model asked again, about that step alone. One last
call makes the answer. Nothing is written by a plan that does not meet its schema.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from toolcrib.agents.allotment import Allotted
from toolcrib.agents.answers import UnusableAnswer, ask_json
from toolcrib.agents.failures import model_failure
from toolcrib.agents.plan import StepPlan, expand, step_schema
from toolcrib.agents.planning import make_plan
from toolcrib.agents.previews import preview
from toolcrib.agents.questions import FORMAT_SYSTEM, format_question, review_question
from toolcrib.agents.setup import Furnisher, Setup
from toolcrib.contracts import (
    AgenticStep,
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
    ToolRevision,
)
from toolcrib.executor import ToolCall, error
from toolcrib.runs import BudgetExhausted, Ended, RunContext

DEFAULT_RESULT: JsonSchema = {
    "type": "object",
    "properties": {"summary": {"type": "string", "description": "What was done, in one or two sentences."}},
    "required": ["summary"],
    "additionalProperties": False,
}
_REVIEWED, _REPORTED = 2000, 3000
"""Characters of results that a review and a report get to see."""
_LIMIT_REASONS: dict[Reason, StopReason] = {
    Reason.MAX_TOOL_CALLS_EXCEEDED: "max_tool_calls",
    Reason.MAX_COST_EXCEEDED: "max_cost",
}


@dataclass(slots=True)
class Progress:
    """What the steps have brought so far."""

    outputs: dict[str, Json] = field(default_factory=dict[str, Json])
    """Output by step id; the outputs of a fanned-out step as a list."""
    envelopes: dict[str, Sequence[ToolEnvelope]] = field(default_factory=dict[str, Sequence[ToolEnvelope]])
    skipped: list[str] = field(default_factory=list[str])
    warnings: list[str] = field(default_factory=list[str])
    failure: ToolError | None = None
    stop_reason: StopReason = "final_answer"

    def report(self) -> JsonObject:
        """Facts about every step that ran, for the model that writes the answer and for partial results."""
        return {step: _facts(envelopes, self.outputs.get(step)) for step, envelopes in self.envelopes.items()}


class _Problem(NamedTuple):
    """What the model has to correct of a step."""

    message: str
    purpose: Purpose
    """Of the call that corrects it: a reference is reviewed with the results, a refusal is an error."""


class Deterministic:
    """The program of a deterministic agentic tool.

    Args:
        furnisher: Furnishes runs.
    """

    def __init__(self, furnisher: Furnisher) -> None:
        self._furnisher = furnisher

    async def __call__(self, context: RunContext, tool: ToolRevision) -> Ended:
        """Run to the end; whatever goes wrong is an end too, with what was reached until then."""
        progress = Progress()
        try:
            setup = await self._furnisher.prepare(context, tool)
            return await self._run(setup, progress)
        except BudgetExhausted as limit:
            return Ended(
                output={"steps": progress.report()},
                stop_reason=limit.shortage.stop_reason,
                warnings=(*progress.warnings, str(limit)),
            )
        except (ModelError, UnusableAnswer) as failure:
            return Ended(
                output={"steps": progress.report()} if progress.envelopes else None,
                status="failed",
                stop_reason="error",
                error=model_failure(failure),
                warnings=tuple(progress.warnings),
            )

    async def _run(self, setup: Setup, progress: Progress) -> Ended:
        steps = setup.implementation.steps
        if not steps:
            return _no_steps(setup.tool)
        plan = await make_plan(setup)
        progress.warnings += plan.warnings
        if plan.question:
            asked = "the task was not carried out: it needs an answer"
            return Ended(output={"question": plan.question}, warnings=(*progress.warnings, asked))
        setup.context.partial = lambda: {"steps": progress.report()} if progress.envelopes else None
        for number, (step, item) in enumerate(zip(steps, setup.allotted, strict=True)):
            await self._step(setup, progress, step, item, plan.step(step.id), first=number == 0)
            if progress.failure is not None or progress.stop_reason != "final_answer":
                break
        return await self._conclude(setup, progress)

    async def plan(self, setup: Setup) -> JsonObject:
        """Ask the model to fill in every step; raises what `make_plan` raises."""
        return (await make_plan(setup)).answer

    async def _step(
        self, setup: Setup, progress: Progress, step: AgenticStep, item: Allotted, plan: StepPlan, *, first: bool
    ) -> None:
        """Run one step; ask the model once more if its input cannot be used."""
        if plan.skip:
            progress.skipped.append(step.id)
            return
        problem = await self._attempt(setup, progress, step, item, plan, suffix="")
        if problem is None:
            return
        corrected = await self._review(setup, progress, step, item, problem, first=first)
        if corrected.skip:
            progress.skipped.append(step.id)
            return
        problem = await self._attempt(setup, progress, step, item, corrected, suffix=".again")
        if problem is not None:
            message = f"step {step.id!r} could not be carried out: {problem.message}"
            progress.failure = error(ErrorCode.VALIDATION_ERROR, Reason.REFERENCE_UNRESOLVED, message)

    async def _attempt(
        self, setup: Setup, progress: Progress, step: AgenticStep, item: Allotted, plan: StepPlan, *, suffix: str
    ) -> _Problem | None:
        """Run the step's calls; returns what the model has to correct, or null."""
        scope = {**progress.outputs, "input": setup.context.request.input}
        try:
            inputs = expand(plan, item.tool.definition.input_schema, scope)
        except InvalidExpression as problem:
            return _Problem(str(problem), "result_review")
        many, position, tool = plan.for_each is not None, f"{step.id}{suffix}", item.tool
        calls = [
            setup.context.call(
                ToolCall(f"{position}[{index}]" if many else position, tool.name, arguments, tool.content_hash)
            )
            for index, arguments in enumerate(inputs)
        ]
        envelopes = await setup.context.wait_all(calls)
        refused = [found.error for found in envelopes if found.error and found.error.code is ErrorCode.VALIDATION_ERROR]
        if refused and len(refused) == len(envelopes) and not suffix:
            return _Problem(refused[0].message, "error_recovery")
        progress.envelopes[step.id] = envelopes
        progress.outputs[step.id] = [found.output for found in envelopes] if many else envelopes[0].output
        _take_failures(progress, step, envelopes)
        return None

    async def _review(
        self, setup: Setup, progress: Progress, step: AgenticStep, item: Allotted, problem: _Problem, *, first: bool
    ) -> StepPlan:
        question = review_question(setup, step.id, problem.message, preview(progress.report(), _REVIEWED))
        schema = step_schema(step, item.schema, first=first)
        answer = await ask_json(
            setup,
            f"{step.id}.review",
            problem.purpose,
            question,
            schema,
            name="step",
            system=setup.system_prompt(preview(progress.report(), 1000)),
        )
        return StepPlan.read(answer)

    async def _conclude(self, setup: Setup, progress: Progress) -> Ended:
        schema = setup.implementation.result_schema or DEFAULT_RESULT
        question = format_question(setup, preview(progress.report(), _REPORTED), progress.skipped, progress.warnings)
        status = "failed" if progress.failure is not None else "completed"
        try:
            output: Json = await ask_json(
                setup, "format", "formatting", question, schema, name="answer", system=FORMAT_SYSTEM
            )
        except (ModelError, UnusableAnswer, BudgetExhausted) as failure:
            # What was done is done: the answer is then the facts, without the model's words.
            progress.warnings.append(f"the answer could not be formatted: {failure}")
            output = {"summary": "The model gave no summary; see the steps.", "steps": progress.report()}
        return Ended(
            output=output,
            status=status,
            stop_reason="error" if progress.failure is not None else progress.stop_reason,
            error=progress.failure,
            warnings=tuple(progress.warnings),
        )


def _facts(envelopes: Sequence[ToolEnvelope], output: Json) -> JsonObject:
    failed = [found.error.message for found in envelopes if found.error is not None]
    facts: JsonObject = {"tool": envelopes[0].name if envelopes else None, "calls": len(envelopes)}
    if failed:
        facts["failed"] = len(failed)
        facts["first_error"] = failed[0]
    facts["output"] = output
    return facts


def _take_failures(progress: Progress, step: AgenticStep, envelopes: Sequence[ToolEnvelope]) -> None:
    """Calls that failed are a warning; if all did, the step ends the run; a limit ends it with what there is."""
    failed = [found.error for found in envelopes if found.error is not None]
    if not failed:
        return
    first = failed[0]
    progress.warnings.append(f"step {step.id!r}: {len(failed)} of {len(envelopes)} calls failed: {first.message}")
    reasons = {found.reason for found in failed}
    for reason in _LIMIT_REASONS.keys() & reasons:
        progress.stop_reason = _LIMIT_REASONS[reason]
        return
    if len(failed) == len(envelopes):
        progress.failure = first


def _no_steps(tool: ToolRevision) -> Ended:
    message = f"agentic tool {tool.ref!r} has no steps; allot at least one tool"
    none = error(ErrorCode.POLICY_DENIED, Reason.TOOL_NOT_ALLOWED, message)
    return Ended(status="failed", stop_reason="no_tools", error=none)

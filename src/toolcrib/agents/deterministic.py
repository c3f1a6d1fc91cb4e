"""The deterministic mode: plan, a fixed sequence of steps, a review only where one is needed, a formatted answer.

One model call fills in every step. The steps run through the run's calls, fanned out where the plan says so. Only if a
reference cannot be resolved or a call is refused as invalid is the model asked again, about that step alone. One last
call makes the answer. Nothing is written by a plan that does not meet its schema.
"""

from toolcrib.agents.model.failures import model_failure
from toolcrib.agents.model.json_answers import UnusableAnswer
from toolcrib.agents.planner.caller_questions import UNANSWERED, Unanswered, unanswered
from toolcrib.agents.planner.recorded_plans import RecordedPlan, plan_of
from toolcrib.agents.planner.step_results import Stage, conclude, report, stopped_by, warnings_of
from toolcrib.agents.prepare.agentic_tool import Furnisher, Setup
from toolcrib.contracts import ErrorCode, JsonObject, ModelError, Reason, ToolRevision
from toolcrib.contracts.workflows import SettledStep
from toolcrib.core.executor import error
from toolcrib.core.runs import BudgetExhausted, Ended, RunContext


class Deterministic:
    """The program of a deterministic agentic tool.

    Args:
        furnisher: Furnishes runs.
    """

    def __init__(self, furnisher: Furnisher) -> None:
        self._furnisher = furnisher

    async def __call__(self, context: RunContext, tool: ToolRevision) -> Ended:
        """Run to the end; whatever goes wrong is an end too, with what was reached until then."""
        setup = await self._furnisher.prepare(context, tool)
        return await _Sequence(setup).run() if setup.implementation.steps else _no_steps(tool)


class _Sequence:
    """One run."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._done: dict[str, SettledStep] = {}
        self._warnings: tuple[str, ...] = ()

    async def run(self) -> Ended:
        try:
            return await self._run()
        except Unanswered as question:
            return unanswered(question.question, self._said, self._partial())
        except BudgetExhausted as limit:
            return Ended(
                output={"steps": report(self._setup, self._done)},
                stop_reason=limit.shortage.stop_reason,
                warnings=(*self._said, str(limit)),
            )
        except (ModelError, UnusableAnswer) as failure:
            return Ended(
                output=self._partial(),
                status="failed",
                stop_reason="error",
                error=model_failure(failure),
                warnings=self._said,
            )

    async def _run(self) -> Ended:
        plan = await plan_of(self._setup)
        self._warnings = plan.warnings
        recorded = plan if isinstance(plan, RecordedPlan) else None
        if recorded is not None and recorded.question is not None:
            return Ended(output={"question": recorded.question}, warnings=(UNANSWERED,))
        self._setup.context.partial = self._partial
        for place, step in enumerate(self._setup.implementation.steps):
            left_out = recorded is not None and step.id in recorded.left_out
            stage = Stage(
                self._setup, place, step.id, self._done, plan.assumptions, recorded is not None, left_out=left_out
            )
            ended = await stage.carry_out(plan.step(step.id))
            self._done[step.id] = ended
            if stopped_by(ended):
                break
        return await conclude(self._setup, self._done, self._warnings, "format", recorded=recorded is not None)

    @property
    def _said(self) -> tuple[str, ...]:
        return (*self._warnings, *warnings_of(self._done))

    def _partial(self) -> JsonObject | None:
        """What the steps have brought, if there is any."""
        facts = report(self._setup, self._done)
        return {"steps": facts} if facts else None


def _no_steps(tool: ToolRevision) -> Ended:
    message = f"agentic tool {tool.ref!r} has no steps; allot at least one tool"
    none = error(ErrorCode.POLICY_DENIED, Reason.TOOL_NOT_ALLOWED, message)
    return Ended(status="failed", stop_reason="no_tools", error=none)

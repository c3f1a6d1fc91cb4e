"""The stages of deterministic agentic tools as handlers of workflow steps.

| `handler_ref` | reads from `input` | output |
|---|---|---|
| `agentic.plan` | `tool`, `input` | `steps`, by id; `question`, `warnings` |
| `agentic.step` | `tool`, `input`, `step`, `plan`, `done` | the output of the step's tool, a list for several items |
| `agentic.format` | `tool`, `input`, `plan`, `done` | the answer |

`tool` is the agentic tool, `input` its arguments, `plan` the output of the first handler, and `done` the results of
earlier steps by id: `{"search": "${steps.search}"}`.

They make the calls of the tool's own program, with the same code and under the same rules. Outputs of tools are data:
only references of the plan itself are resolved.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Final, TypeAlias, cast

import orjson

from toolcrib.agents.evidence.plan_schema import StepPlan, step_schema
from toolcrib.agents.model.json_answers import UnusableAnswer, model_failure
from toolcrib.agents.planner.caller_questions import UNANSWERED, Unanswered, end_with_question
from toolcrib.agents.planner.recorded_plans import RecordedPlan, plan_of
from toolcrib.agents.planner.step_results import StepRun, conclude
from toolcrib.agents.prepare.agentic_tool import RunPreparer, Setup
from toolcrib.agents.reference.snapshots import ReferenceUnavailable
from toolcrib.agents.toolset.default_prompt import reference_names
from toolcrib.contracts import (
    AgenticImplementation,
    ErrorCode,
    Json,
    JsonObject,
    JsonSchema,
    ModelError,
    NotFound,
    Reason,
    ToolError,
    ToolRevision,
)
from toolcrib.contracts.workflows import SettledStep
from toolcrib.core.executor import CallFailed, error
from toolcrib.core.policy import is_in_service, permit
from toolcrib.core.registry import Registry, compile_schema, pins_of
from toolcrib.core.runs import BudgetExhausted, RunContext, RunEnd

PLAN: Final = "agentic.plan"
STEP: Final = "agentic.step"
FORMAT: Final = "agentic.format"

_Handler: TypeAlias = Callable[[RunContext, ToolRevision, JsonObject, str], Awaitable[SettledStep]]
_OBJECT: Final[JsonSchema] = {"type": "object"}
_DONE: Final[JsonSchema] = {
    "type": "object",
    "additionalProperties": {
        "type": "object",
        "required": ["status"],
        "properties": {
            "status": {"enum": ["succeeded", "partial", "failed", "skipped", "cut_off"]},
            "error": {"type": ["object", "null"], "required": ["code", "message"]},
            "items": {"type": ["integer", "null"]},
            "failed": {"type": "integer"},
        },
    },
}
_INPUTS: Final[Mapping[str, JsonSchema]] = {
    PLAN: {"type": "object", "required": ["input"], "properties": {"input": _OBJECT}},
    STEP: {
        "type": "object",
        "required": ["input", "plan", "step", "done"],
        "properties": {"input": _OBJECT, "step": {"type": "string"}, "plan": _OBJECT, "done": _DONE},
    },
    FORMAT: {
        "type": "object",
        "required": ["input", "plan", "done"],
        "properties": {"input": _OBJECT, "plan": _OBJECT, "done": _DONE},
    },
}
"""What each handler needs besides `tool`."""


class AgenticHandlers:
    """The handlers of one run.

    Args:
        preparer: Prepares runs of agentic tools.
        registry: Finds what an agentic tool names.
        context: The run.
    """

    def __init__(self, preparer: RunPreparer, registry: Registry, context: RunContext) -> None:
        self._preparer = preparer
        self._registry = registry
        self._context = context
        self._setups: dict[tuple[str, str, bytes], Setup] = {}
        self._lists: dict[str, str] = {}
        """Content hash of the tool whose list of reference data a name stands for in this run."""
        self._furnishing = asyncio.Lock()

    @classmethod
    def of(cls, preparer: RunPreparer, registry: Registry) -> Callable[[RunContext], Mapping[str, _Handler]]:
        """Makes the handlers of each run, by the name that steps have for them."""

        def handlers(context: RunContext) -> Mapping[str, _Handler]:
            made = cls(preparer, registry, context)
            return {name: partial(made.carry_out, name) for name in _STAGES}

        return handlers

    async def carry_out(
        self, name: str, context: RunContext, tool: ToolRevision, arguments: JsonObject, position: str
    ) -> SettledStep:
        """One stage; whatever goes wrong is an end of the step.

        Args:
            name: Of the handler.
            context: The run, as the one sees it who makes the step's calls.
            tool: The agentic tool.
            arguments: What the stage needs.
            position: Of the step in the journal.
        """
        try:
            _check_input(name, arguments)
            setup = await self._setup(context, tool, arguments["input"])
            return await _STAGES[name](setup, arguments, position)
        except CallFailed as failed:
            failure = failed.error
        except Unanswered as question:
            failure = end_with_question(question.question).error
        except BudgetExhausted as limit:
            failure = error(ErrorCode.POLICY_DENIED, limit.shortage.reason, str(limit))
        except (ModelError, UnusableAnswer) as problem:
            failure = model_failure(problem)
        except (NotFound, ReferenceUnavailable) as problem:
            failure = error(ErrorCode.PROVIDER_ERROR, Reason.TOOL_FAILED, str(problem))
        return SettledStep(step=position, status="failed", error=failure)

    async def _setup(self, context: RunContext, tool: ToolRevision, arguments: JsonObject) -> Setup:
        """The workplace of an agentic tool in this run; one at a time, since they share what the run writes down."""
        key = (context.principal.id, tool.content_hash, orjson.dumps(arguments, option=orjson.OPT_SORT_KEYS))
        async with self._furnishing:
            if key not in self._setups:
                await self._check(context, tool)
                self._setups[key] = await self._preparer.prepare(await self._aside(context, tool, arguments), tool)
        return self._setups[key]

    async def _check(self, context: RunContext, tool: ToolRevision) -> None:
        """Whether the run may do what the tool does; its calls are judged one by one besides."""
        implementation = tool.definition.implementation
        if not isinstance(implementation, AgenticImplementation) or implementation.mode != "deterministic":
            raise CallFailed(_invalid(f"{tool.ref!r} is no deterministic agentic tool; call it as a tool instead"))
        refusal = permit(tool, context.principal)
        if refusal is not None:
            raise _denial(Reason.PERMISSION_MISSING, refusal.message or f"{tool.ref!r} is not permitted")
        if not is_in_service(tool):
            message = f"agentic tool {tool.ref!r} is out of service; enable it, or publish the workflow without it"
            raise _denial(Reason.TOOL_BLOCKED if tool.status == "blocked" else Reason.TOOL_DISABLED, message)
        if tool.definition.requires_confirmation and not await self._is_confirmed():
            message = f"agentic tool {tool.ref!r} requires confirmation; have the workflow require it too"
            raise _denial(Reason.TOOL_NOT_ALLOWED, message)
        for name in reference_names(implementation):
            if self._lists.setdefault(name, tool.content_hash) != tool.content_hash:
                message = f"two agentic tools of one workflow name reference data {name!r}; rename that of {tool.ref!r}"
                raise CallFailed(_invalid(message))

    async def _is_confirmed(self) -> bool:
        """Whether a person has agreed to the run as a whole."""
        workflow = await self._registry.get_revision(self._context.run.realm, self._context.request.content_hash)
        return workflow.definition.requires_confirmation

    async def _aside(self, context: RunContext, tool: ToolRevision, arguments: JsonObject) -> RunContext:
        """The run as the tool's own program would see it: with its arguments, and the tools that it names pinned."""

        async def look() -> Json:
            return dict(pins_of(tool, self._registry))

        pins = await context.once(f"pins.{tool.name}", "tools_pinned", look)
        aside, request = context.beside(), context.request
        changed = request.model_copy(update={"input": arguments, "pins": {**request.pins, **pins}})
        aside.run = context.run.model_copy(update={"request": changed})
        return aside


async def _plan(setup: Setup, arguments: JsonObject, position: str) -> SettledStep:
    """Ask the model to fill in every step; puts out `steps`, `question` and `warnings`."""
    del arguments
    plan = await plan_of(setup, position)
    if isinstance(plan, RecordedPlan):
        return SettledStep(step=position, status="succeeded", output=plan.output())
    steps: JsonObject = {}
    for step in setup.implementation.steps:
        entry = cast("JsonObject", plan.answer[step.id])
        steps[step.id] = {**entry, "skip": bool(entry.get("skip"))}
    output: JsonObject = {
        "question": None,
        "steps": steps,
        "warnings": list(plan.warnings),
        "assumptions": list(plan.assumptions),
    }
    return SettledStep(step=position, status="succeeded", output=output)


async def _step(setup: Setup, arguments: JsonObject, position: str) -> SettledStep:
    """Carry out one step of the plan; puts out what its tool does, as a list if it was called for many items."""
    ids, wanted = _ids(setup), arguments["step"]
    if wanted not in ids:
        raise CallFailed(_invalid(f"{setup.tool.ref!r} has no step {wanted!r}; it has: {', '.join(ids)}"))
    place = ids.index(wanted)
    done = _read_done(ids[:place], arguments["done"])
    failed = next((name for name, ended in done.items() if ended.status == "failed"), None)
    if failed is not None:
        return SettledStep(step=position, status="cut_off", reason=f"step {failed!r} is failed")
    plan = cast("JsonObject", arguments["plan"])
    assumptions = tuple(map(str, plan.get("assumptions") or ()))
    stage = StepRun(setup, place, position, done, assumptions, _is_recorded(setup, plan))
    return await stage.carry_out(_read_plan(setup, place, plan))


async def _format(setup: Setup, arguments: JsonObject, position: str) -> SettledStep:
    """Ask for the answer; it fails with a step that has failed, and has an answer then too."""
    plan = cast("JsonObject", arguments["plan"])
    warnings = [str(warning) for warning in plan.get("warnings", ())]
    if plan.get("question"):
        ended = RunEnd(output={"question": plan["question"]}, warnings=(*warnings, UNANSWERED))
    else:
        done = _read_done(_ids(setup), arguments["done"])
        ended = await conclude(setup, done, warnings, position, recorded=_is_recorded(setup, plan))
    for warning in ended.warnings:
        setup.context.warn(warning)
    status = "succeeded" if ended.error is None else "failed"
    output = ended.output if ended.partial is None else ended.partial
    return SettledStep(step=position, status=status, output=output, error=ended.error)


_STAGES: Final[Mapping[str, Callable[[Setup, JsonObject, str], Awaitable[SettledStep]]]] = {
    PLAN: _plan,
    STEP: _step,
    FORMAT: _format,
}


def _is_recorded(setup: Setup, plan: JsonObject) -> bool:
    """Whether a plan is one of an older release."""
    return setup.context.request.plan_format == 1 and "assumptions" not in plan


def _ids(setup: Setup) -> list[str]:
    return [step.id for step in setup.implementation.steps]


def _check_input(handler: str, arguments: JsonObject) -> None:
    problems = compile_schema(_INPUTS[handler]).problems(arguments)
    if problems:
        raise CallFailed(_invalid(f"the input of {handler!r} is not valid: {'; '.join(map(str, problems[:5]))}"))


def _read_plan(setup: Setup, place: int, plan: JsonObject) -> StepPlan:
    """One step's entry of a plan, which a person may have changed since: held against its schema again."""
    step, item = setup.implementation.steps[place], setup.allotted[place]
    steps = plan.get("steps")
    entry = cast("JsonObject", steps).get(step.id) if isinstance(steps, dict) else None
    if not isinstance(entry, dict):
        raise CallFailed(_invalid(f"the plan has nothing for step {step.id!r}"))
    written = cast("JsonObject", entry)
    problems = compile_schema(step_schema(step, item.schema, first=place == 0)).problems(written)
    if problems:
        raise CallFailed(_invalid(f"the plan of step {step.id!r} is not valid: {'; '.join(map(str, problems[:5]))}"))
    return StepPlan.read(written)


def _read_done(ids: list[str], given: JsonObject) -> dict[str, SettledStep]:
    """How the steps before have ended, as `${steps.NAME}` tells it, up to the first that has failed."""
    done: dict[str, SettledStep] = {}
    for step in ids:
        entry = given.get(step)
        if not isinstance(entry, dict):
            continue
        ended = _read_ended(step, cast("JsonObject", entry))
        done[step] = ended
        if ended.status == "failed":
            break
    return done


def _read_ended(step: str, entry: JsonObject) -> SettledStep:
    failure, items = entry.get("error"), entry.get("items")
    output = entry.get("output")
    return SettledStep(
        step=step,
        status=entry.get("status", "succeeded"),
        output=[None] * items if output is None and items is not None else output,
        items=items,
        failed=entry.get("failed", 0),
        reason=entry.get("reason"),
        error=None
        if failure is None
        else ToolError.model_validate({name: failure.get(name) for name in ("code", "message", "details")}),
    )


def _denial(reason: Reason, message: str) -> CallFailed:
    return CallFailed(error(ErrorCode.POLICY_DENIED, reason, message))


def _invalid(message: str) -> ToolError:
    return error(ErrorCode.VALIDATION_ERROR, Reason.INPUT_SCHEMA_MISMATCH, message)

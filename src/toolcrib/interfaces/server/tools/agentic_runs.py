"""Routes over the executions of agentic tools: readings of the same runs and journals as under `/executions`."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated

import orjson
from fastapi import APIRouter, Query

from toolcrib.agents.model.json_answers import read_object
from toolcrib.contracts import (
    Json,
    LLMStep,
    ModelFinished,
    ModelStarted,
    NotFound,
    Run,
    RunEvent,
    RunStatus,
    ToolStep,
    Trace,
)
from toolcrib.crib import Crib
from toolcrib.interfaces.server.http.context import demand_run, may_see_run
from toolcrib.interfaces.server.http.context_part import Caller, House, run_of
from toolcrib.interfaces.server.http.parsing import JsonRoute
from toolcrib.interfaces.server.views.agents import (
    ExecutionDetail,
    ExecutionPage,
    ExecutionView,
    LLMCallView,
    ToolCallView,
)
from toolcrib.llm import decode_messages, decode_response

router = APIRouter(prefix="/agentic-tools/{name}/executions", route_class=JsonRoute, tags=["agentic tools"])

_PLAN = "plan"
"""Position of the call in which a fixed sequence is planned."""


@router.get("")
async def list_tool_executions(
    name: str,
    *,
    crib: House,
    caller: Caller,
    status: RunStatus | None = None,
    before: str | None = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> ExecutionPage:
    """Executions of one tool, newest first; also of a tool that was removed."""
    found = await crib.store.journal.runs(caller.realm, tool=name, status=status, before=before, limit=limit + 1)
    if not found and not await crib.store.journal.runs(caller.realm, tool=name, limit=1):
        await crib.enter(caller, newest=True)
        crib.registry.require(caller.realm, name)
    items = [ExecutionView(**ExecutionView.fields_of(run)) for run in found[:limit] if may_see_run(caller, run)]
    return ExecutionPage(items=tuple(items), next=found[limit - 1].run_id if len(found) > limit else None)


@router.get("/{execution_id}")
async def get_tool_execution(name: str, execution_id: str, crib: House, caller: Caller) -> ExecutionDetail:
    """One execution: the plan, each call of the model with its prompt and answer, each call of a tool, the costs."""
    run = await run_of(crib, caller, execution_id)
    if run.request.tool_name != name:
        msg = f"run {execution_id!r} is of tool {run.request.tool_name!r}, not of {name!r}"
        raise NotFound(msg)
    demand_run(caller, run)
    return await _detail(crib, run)


async def _detail(crib: Crib, run: Run) -> ExecutionDetail:
    events = await crib.store.journal.events(run.run_id)
    trace = await crib.trace(run.run_id)
    answers = {entry.event.position: entry.event for entry in events if isinstance(entry.event, ModelFinished)}
    fields = ExecutionView.fields_of(run)
    if not run.ended:
        fields |= {"total_cost": trace.cost, "total_tokens": trace.tokens}
    plan = answers.get(_PLAN)
    return ExecutionDetail(
        **fields,
        mode=trace.mode,
        execution_plan=read_object(_words(plan) or "") if plan is not None else None,
        warnings=trace.warnings,
        llm_calls=tuple(_model_calls(trace, events, answers)),
        tool_calls=tuple(_tool_calls(trace)),
        cost_breakdown=trace.cost_breakdown,
        trace=trace,
    )


def _model_calls(
    trace: Trace, events: Sequence[RunEvent], answers: Mapping[str, ModelFinished]
) -> Iterator[LLMCallView]:
    started: dict[str, ModelStarted] = {}
    for entry in events:
        if isinstance(entry.event, ModelStarted):
            started.setdefault(entry.event.position, entry.event)
    steps = [step for step in trace.steps if isinstance(step, LLMStep)]
    system = ""
    for sequence, step in enumerate(steps, start=1):
        system = started[step.position].system or system
        yield LLMCallView(
            call_sequence=sequence,
            position=step.position,
            purpose=step.purpose,
            model=step.model,
            status=step.status,
            prompt=f"{system}\n\n{_asked(started[step.position].messages) or step.input}",
            response=_words(answers[step.position]) if step.position in answers else None,
            reasoning=step.reasoning,
            decision=step.decision,
            input_tokens=step.input_tokens,
            output_tokens=step.output_tokens,
            cost=step.cost,
            latency_ms=step.latency_ms,
            created_at=step.started_at,
        )


def _tool_calls(trace: Trace) -> Iterator[ToolCallView]:
    steps = [step for step in trace.steps if isinstance(step, ToolStep)]
    for sequence, step in enumerate(steps, start=1):
        yield ToolCallView(
            call_sequence=sequence,
            position=step.position,
            action=step.action,
            parameters=step.parameters,
            response=step.result,
            error=step.error,
            status=step.status,
            cost=step.cost,
            latency_ms=step.latency_ms,
            created_at=step.started_at,
        )


def _asked(messages: Json) -> str:
    return "\n\n".join(message.text for message in decode_messages(orjson.dumps(messages))) if messages else ""


def _words(answer: ModelFinished) -> str | None:
    return decode_response(orjson.dumps(answer.response)).message.text or None

"""Budgets of nested runs that are driven without their callers, and the limits of a tool's run.

A suspended run records its remaining budget, and each nested run that it waits for may use an equal part of it, at
every level. A resumed run reserves these parts for nested runs that other processes drive. A family of runs therefore
never overspends, although no process knows what the others spend.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Final

from toolcrib.contracts import (
    CLOSING_S,
    ENDED,
    WAITING,
    AgenticImplementation,
    AgentImplementation,
    Allowance,
    Conflict,
    Guardrail,
    JsonObject,
    Limits,
    MaxCost,
    NotFound,
    Run,
    RunFinished,
    RunKind,
    RunRequest,
    RunSuspended,
    ToolRevision,
)
from toolcrib.contracts.workflows import WorkflowImplementation
from toolcrib.core.runs import EndedRuns, History, result_of, spending_of


def limits_of(tool: ToolRevision, kind: RunKind, given_s: float | None = None) -> Limits:
    """The limits of a run of this tool; a larger configured `max_tokens` raises the tokens per call.

    Args:
        tool: The revision that runs.
        kind: Of the run.
        given_s: Seconds that its caller gives it, if that is less.
    """
    limits = _own_limits(tool, kind)
    if given_s is None or given_s >= limits.timeout_s:
        return limits
    return limits.model_copy(update={"timeout_s": given_s})


def _own_limits(tool: ToolRevision, kind: RunKind) -> Limits:
    """What the definition allows.

    A single call of a tool that calls others leaves room for the nested run, which has these limits itself, and for the
    call. Code has its quota of calls; a composite tool has the defaults, inside those of whoever calls it.
    """
    definition, implementation = tool.definition, tool.definition.implementation
    if isinstance(implementation, WorkflowImplementation):
        return _with_room(implementation.limits, definition.call_timeout_s) if kind == "tool" else implementation.limits
    if not isinstance(implementation, AgentImplementation | AgenticImplementation):
        seconds = definition.call_timeout_s + CLOSING_S if kind == "tool" else definition.timeout_s
        if implementation.call_quota is None:
            return Limits(timeout_s=seconds)
        return Limits(timeout_s=seconds, max_tool_calls=implementation.call_quota + (kind == "tool"))
    limits, wanted = implementation.limits, implementation.llm.max_tokens or 0
    changes: JsonObject = {"max_tokens_per_call": wanted} if wanted > limits.max_tokens_per_call else {}
    if kind == "tool":
        changes |= {"timeout_s": definition.timeout_s + CLOSING_S, "max_tool_calls": limits.max_tool_calls + 1}
    return limits.model_copy(update=changes) if changes else limits


def _with_room(limits: Limits, call_timeout_s: float) -> Limits:
    """The limits of a run that makes one call, which is a run with these limits."""
    return limits.model_copy(
        update={"timeout_s": call_timeout_s + CLOSING_S, "max_tool_calls": limits.max_tool_calls + 1}
    )


def with_max_cost(limits: Limits, guardrails: Sequence[Guardrail]) -> Limits:
    """The limits with what guardrails say about costs; those of a caller hold for all of its nested runs together."""
    costs = [rule.usd for rule in guardrails if isinstance(rule, MaxCost)]
    if not costs:
        return limits
    if limits.max_cost_usd is not None:
        costs.append(limits.max_cost_usd)
    return limits.model_copy(update={"max_cost_usd": min(costs)})


NOTHING: Final = Allowance.model_construct(tool_calls=0, requests=0, tokens=0, cost_usd=Decimal(0), seconds=0)


async def check_alone(journal: EndedRuns, run: Run) -> None:
    """Refuse to drive a nested run while a caller of it is being worked on, which takes it under its own budget.

    Raises:
        Conflict: One is.
    """
    caller_id = run.request.parent_run_id
    while caller_id is not None:
        caller = await journal.run(caller_id)
        if caller.status in ENDED:
            return
        if caller.status not in WAITING:
            msg = (
                f"run {run.run_id!r} continues with its caller {caller_id!r}, which is {caller.status}; resume that run"
            )
            raise Conflict(msg)
        caller_id = caller.request.parent_run_id


async def limits_alone(journal: EndedRuns, request: RunRequest, history: History, limits: Limits) -> Limits:
    """The limits of a run that is driven without its caller; its own, if nobody has called it.

    Args:
        journal: Has its callers.
        request: What it was asked.
        history: Of the run.
        limits: Its own.
    """
    if request.allowance is not None:
        limits = request.allowance.bounding(limits)
    part = await _part(journal, request.parent_run_id)
    if part is None:
        return limits
    last = history.suspensions[-1] if history.suspensions else None
    if last is not None and last.left is not None and last.spent is not None:
        part = last.left.within(part).plus(last.spent)
    return part.bounding(limits)


async def _part(journal: EndedRuns, caller_id: str | None) -> Allowance | None:
    """What a caller has left to each of the things that it waits for; null if that was not recorded."""
    if caller_id is None:
        return None
    above = await _part(journal, (await journal.run(caller_id)).request.parent_run_id)
    suspensions = History(await journal.events(caller_id)).suspensions
    left = suspensions[-1].left if suspensions else None
    if left is None:
        return above
    return _part_of(suspensions[-1], left if above is None else left.within(above))


def _part_of(suspension: RunSuspended, left: Allowance) -> Allowance:
    return left.divide(max(len(suspension.waiting_for), 1))


async def open_parts(journal: EndedRuns, history: History) -> Mapping[str, Allowance]:
    """What a run that goes on must hold back for each open nested run: what it has used, and what it may still use.

    Only one that is being driven may use more: any other waits until its caller waits again, and gets a new part then.

    Args:
        journal: Has the nested runs.
        history: Of the run that goes on.
    """
    parts: dict[str, Allowance] = {}
    for child_id in history.open_children:
        more = _largest(history.left_alone.get(child_id, ())) if await _is_driven(journal, child_id) else NOTHING
        parts[child_id] = await _usage_of(journal, child_id, more=more)
    return parts


async def _is_driven(journal: EndedRuns, run_id: str) -> bool:
    try:
        return (await journal.run(run_id)).status == "running"
    except NotFound:
        return False  # it was announced, and a crash came before it was made


def _largest(suspensions: Sequence[RunSuspended]) -> Allowance:
    """The largest part that a nested run had while its caller waited."""
    parts = [_part_of(suspension, suspension.left) for suspension in suspensions if suspension.left is not None]
    return Allowance(
        tool_calls=max((part.tool_calls for part in parts), default=0),
        requests=max((part.requests for part in parts), default=0),
        tokens=max((part.tokens or 0 for part in parts), default=0),
        cost_usd=max((part.cost_usd or Decimal(0) for part in parts), default=Decimal(0)),
        seconds=0,
    )


async def _usage_of(journal: EndedRuns, run_id: str, *, more: Allowance = NOTHING) -> Allowance:
    """What a nested run has used, with those that it has started, and how much more it may use if it has not ended."""
    events = await journal.events(run_id)
    if not events:
        return NOTHING  # it was announced, and a crash came before it was made
    last = events[-1].event
    if isinstance(last, RunFinished):
        ended = result_of(run_id, last)
        return to_allowance(ended.tool_calls, ended.all_tokens, ended.counted_usd)
    history = History(events)
    spent = spending_of(history)
    begun = len(history.intents.keys() - history.envelopes.keys())
    total = to_allowance(spent.tool_calls + begun, spent.tokens, spent.cost_usd).plus(more)
    for child_id in history.open_children:
        total = total.plus(await _usage_of(journal, child_id))
    return total


def to_allowance(tool_calls: int, tokens: int, cost_usd: Decimal | None) -> Allowance:
    """What was used, in the terms of what may be."""
    return Allowance(tool_calls=tool_calls, requests=0, tokens=tokens, cost_usd=cost_usd or Decimal(0), seconds=0)

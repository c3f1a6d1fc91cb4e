"""Nested runs: their ids, what they inherit, and the signal that resumes their parent."""

import hashlib
from collections.abc import Sequence

from toolcrib.contracts import PLAN_FORMAT, RunEvent, RunRequest, RunSuspended
from toolcrib.core.executor import Clock
from toolcrib.core.policy import least
from toolcrib.core.registry import Registry, pins_of
from toolcrib.core.runs import Nested, RunContext

_CHILD = "child:"


def child_run_id(parent_run_id: str, position: str) -> str:
    """The id of a nested run: a function of its parent and position, so that recovery finds it again."""
    return "run_" + hashlib.sha256(f"{parent_run_id}/{position}".encode()).hexdigest()[:32]


def nested_run_id(parent_run_id: str, nested: Nested) -> str:
    """The id of a nested run: each attempt of a call has one, and its fallback."""
    place = nested.position if nested.attempt == 1 else f"{nested.position}#{nested.attempt}"
    return child_run_id(parent_run_id, place if nested.instead_of is None else f"{place}.fallback")


def nested_request(context: RunContext, nested: Nested, registry: Registry, clock: Clock) -> RunRequest:
    """What a nested run is asked: identity, policy and what is left of the budget are handed down."""
    mine, tool, failed = context.request, nested.tool, nested.instead_of
    fork = context.prior_runs.fork_of(nested)
    pins = pins_of(tool, registry, mine.pins)
    return RunRequest(
        kind=tool.definition.run_kind if failed is None else "tool",
        plan_format=PLAN_FORMAT,
        tool=tool.ref,
        content_hash=tool.content_hash,
        pins={ref: mine.replaced.get(pinned, pinned) for ref, pinned in pins.items()},
        input=nested.arguments,
        principal=context.principal,
        root_run_id=mine.root_run_id or context.run_id,
        started_by=mine.starter,
        parent_run_id=context.run_id,
        parent_position=nested.position,
        depth=mine.depth + 1,
        conversation_id=mine.conversation_id,
        session_id=mine.session_id,
        dry_run=mine.dry_run if fork is not None else mine.skips_writes,
        rerun=context.prior_runs.rerun_of(nested),
        fork=fork,
        replaced=mine.replaced,
        callers=mine.open_tools if failed is None else {**mine.open_tools, failed.content_hash: failed.tool},
        side_effects=least(context.policy.side_effects, tool.definition.side_effects),
        guardrails=context.policy.guardrails,
        tainted=context.tainted,
        allowance=context.budget.allowance(context.deadline - clock.monotonic()),
        timeout_s=nested.timeout_s,
    )


def child_signal(run_id: str) -> str:
    """Name of the signal by which a nested run tells its parent that it has ended."""
    return f"{_CHILD}{run_id}"


def awaited_children(log: Sequence[RunEvent]) -> Sequence[str]:
    """Ids of the nested runs that a suspended run waits for."""
    last = log[-1].event
    names = last.waiting_for if isinstance(last, RunSuspended) else ()
    return [name.removeprefix(_CHILD) for name in names if name.startswith(_CHILD)]

"""Is every step one thing, and does everything that it says do something?"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from toolcrib.contracts import InvalidDefinition
from toolcrib.contracts.workflows import (
    AGENT_HANDLERS,
    AGENTIC_HANDLERS,
    MAX_WAIT_S,
    StepRetry,
    Wait,
    WorkflowProblem,
    WorkflowStep,
)
from toolcrib.core.runs import check_pins
from toolcrib.workflows.checks.structure.layout import Layout

_WHATS: Final = ("tool", "agent", "workflow", "handler_ref", "wait", "approval")
_ENDS: Final = ("seconds", "until", "signal")
_OF_CALLS: Final = ("input", "retry", "timeout_s", "principal_ref")
"""Fields that only a step has a use for that calls something."""
_EXAMPLE: Final = "write it like 2026-01-31T12:00:00Z"


def kind_problems(layout: Layout) -> Iterator[WorkflowProblem]:
    """What is wrong with the steps as such, wherever they stand."""
    for step in layout.steps:
        given = [field for field in _WHATS if getattr(step, field) is not None]
        if len(given) > 1:
            message = f"step {step.name!r} has {' and '.join(given)}, and does one thing only"
            yield layout.error(step, (), message, "make a step of each")
        elif not given and step.output is None:
            message = f"step {step.name!r} does nothing"
            yield layout.error(step, (), message, f"give it one of {', '.join(_WHATS)}, or an output")
        else:
            yield from _useless(layout, step)
        if step.wait is not None:
            yield from _wait_problems(layout, step, step.wait)
        yield from _pin_problems(layout, step)


def _useless(layout: Layout, step: WorkflowStep) -> Iterator[WorkflowProblem]:
    """Fields that do nothing in a step of this kind."""
    if step.kind in {"wait", "approval", "value"}:
        for field in _OF_CALLS:
            value = getattr(step, field)
            if value not in (None, {}, StepRetry()):
                message = f"{field} does nothing in a step that calls nothing"
                yield layout.error(step, (field,), message, "take it out")
    if step.for_each is not None and step.wait is not None and step.wait.signal is not None:
        message = f"every element would wait for the same signal {step.wait.signal!r}"
        yield layout.error(step, ("for_each",), message, "take it out")
    if step.join != "all" and step.name not in layout.before:
        message = f"join is {step.join!r}, and the step waits for no other one"
        yield layout.warning(step, ("join",), message, "take it out")
    if step.join == "always" and step.handler_ref not in AGENTIC_HANDLERS:  # these need a plan, or there is no run
        yield from _never(layout, step)


def _never(layout: Layout, step: WorkflowStep) -> Iterator[WorkflowProblem]:
    """A step that is to run in any case does not if one before it ends the run."""
    for name in layout.before.get(step.name, ()):
        earlier = layout.by_name[name]
        if earlier.kind not in {"value", "wait"} and earlier.on_error == "fail":
            message = f"join is 'always', and if step {name!r} fails the run ends, and this step does not run"
            yield layout.warning(step, ("join",), message, f"let {name!r} continue on_error, or go to a step")
            return


def _wait_problems(layout: Layout, step: WorkflowStep, wait: Wait) -> Iterator[WorkflowProblem]:
    given = [field for field in _ENDS if getattr(wait, field) is not None]
    if len(given) != 1:
        message = f"a wait that says {' and '.join(given) or 'nothing'} has no one end"
        yield layout.error(step, ("wait",), message, f"give it one of {', '.join(_ENDS)}")
    if wait.timeout_s is not None and wait.signal is None:
        yield layout.error(step, ("wait", "timeout_s"), "timeout_s is of a signal, and there is none", "take it out")
    if isinstance(wait.seconds, str) and "${" not in wait.seconds:
        message = f"seconds is the text {wait.seconds!r}"
        yield layout.error(step, ("wait", "seconds"), message, "write a number, or ${…} that gives one")
    elif isinstance(wait.seconds, float) and not 0 <= wait.seconds <= MAX_WAIT_S:
        message = f"seconds is {wait.seconds:g}, and must be from 0 to {MAX_WAIT_S:,.0f}"
        yield layout.error(step, ("wait", "seconds"), message)
    if wait.until is not None and "${" not in wait.until and not _is_moment(wait.until):
        message = f"until is {wait.until!r}, which is no moment with a time zone"
        yield layout.error(step, ("wait", "until"), message, _EXAMPLE)


def _is_moment(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


def _pin_problems(layout: Layout, step: WorkflowStep) -> Iterator[WorkflowProblem]:
    if not step.pins:
        return
    callee = layout.callee(step)
    asks_agent = step.agent is not None or step.handler_ref in AGENT_HANDLERS
    if not asks_agent and not (callee is not None and callee.definition.has_model):
        yield layout.error(step, ("pins",), "pins are of a model's calls, and the step asks none", "take them out")
        return
    try:
        check_pins(step.name, step.pins)
    except InvalidDefinition as problem:
        yield layout.error(step, ("pins",), str(problem))

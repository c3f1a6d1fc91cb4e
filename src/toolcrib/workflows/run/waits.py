"""Steps that wait for a span, a time or a signal, and steps that ask a person.

The end of a wait is recorded when it begins. Signals of steps have their own kind of name, so a signal can never
answer for a person or a client; a signal that arrived before the step began counts. An approval step is a request in
the same inbox as waiting calls, and its output is what it showed, with the person's edits.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import cast

from toolcrib.contracts import ErrorCode, InvalidExpression, Json, JsonObject, Reason
from toolcrib.contracts.workflows import MAX_WAIT_S, SettledStep, StepApproval, Wait, WorkflowStep, event_signal
from toolcrib.core.expressions import Template, resolve
from toolcrib.core.expressions.values import is_number, kind
from toolcrib.core.runs import Question, RunContext
from toolcrib.workflows.values.scope import DRY_RUN, output_of
from toolcrib.workflows.values.step_environment import HELD_S, StepEnvironment
from toolcrib.workflows.values.step_errors import check_size, denial, fault, no_value, unusable


async def ask(
    setting: StepEnvironment, step: WorkflowStep, approval: StepApproval, names: Mapping[str, Json], position: str
) -> JsonObject:
    """Ask, and wait for the answer for days if need be.

    Args:
        setting: The run.
        step: The step.
        approval: What it asks.
        names: What its expressions can read.
        position: Where it stands in the journal.

    Raises:
        StepFailed: The person said no, nobody said anything in time, or an expression has no value.
    """
    question = _question(step, approval, names)
    decision = await setting.context.ask(position, setting.tool, question)
    if decision is None:
        message = f"was not decided within expires_s={approval.expires_s:g}; ask again, or raise expires_s"
        raise denial(step.name, Reason.APPROVAL_EXPIRED, message)
    if not decision.approved:
        why = f": {decision.reason}" if decision.reason else ""
        raise denial(step.name, Reason.APPROVAL_REJECTED, f"was rejected by a person{why}", said=decision.reason)
    return question.show if decision.edited_input is None else decision.edited_input


def approval_in_dry_run(step: WorkflowStep, approval: StepApproval, names: Mapping[str, Json]) -> SettledStep:
    """How a step ends in a dry run, which asks nobody and goes on as if the person had agreed.

    Raises:
        StepFailed: An expression has no value.
    """
    question = _question(step, approval, names)
    reason = f"{DRY_RUN}would ask a person, and goes on with what is shown: {question.message}"
    output = output_of(step, step.output, names, question.show)
    return SettledStep(step=step.name, status="skipped", reason=reason, output=output)


def _question(step: WorkflowStep, approval: StepApproval, names: Mapping[str, Json]) -> Question:
    try:
        message = Template.parse(approval.message, "${}").render_text(names)
    except InvalidExpression as problem:
        raise no_value(step.name, "approval/message", problem) from problem
    try:
        show = cast("JsonObject", check_size(resolve(approval.show, names)))
    except InvalidExpression as problem:
        raise no_value(step.name, "approval/show", problem) from problem
    return Question(step=step.name, message=message, show=show, expires_s=approval.expires_s)


async def wait(context: RunContext, step: WorkflowStep, wait: Wait, names: Mapping[str, Json], position: str) -> Json:
    """Wait; what a signal brought is what comes of it.

    Args:
        context: Of the run.
        step: The step.
        wait: What it waits for.
        names: What its expressions can read.
        position: Where it stands in the journal.

    Raises:
        StepFailed: The wait is not well formed, or its time is over before the signal came.
    """
    given = [field for field in ("seconds", "until", "signal") if getattr(wait, field) is not None]
    if len(given) != 1:
        fields = " and ".join(given) or "nothing"
        raise unusable(step.name, "wait", f"it says {fields}; give one of seconds, until and signal")
    if wait.signal is not None:
        return await _for_signal(context, step, wait.signal, wait.timeout_s, position)
    if wait.until is not None:
        await context.sleep_until(position, _moment(step, wait.until, names), hold_s=HELD_S)
    else:
        await context.sleep(position, _seconds(step, wait.seconds, names), hold_s=HELD_S)
    return None


def in_dry_run(step: WorkflowStep, wait: Wait, names: Mapping[str, Json]) -> SettledStep:
    """How a step ends in a dry run, which waits for nothing.

    Raises:
        StepFailed: The wait has no end that could be said.
    """
    if wait.signal is not None:
        goal = f"for the signal {wait.signal!r}"
    elif wait.until is not None:
        goal = f"until {_moment(step, wait.until, names).isoformat()}"
    else:
        goal = f"for {_seconds(step, wait.seconds, names):g} s"
    return SettledStep(step=step.name, status="skipped", reason=f"{DRY_RUN}would wait {goal}")


async def _for_signal(
    context: RunContext, step: WorkflowStep, name: str, timeout_s: float | None, position: str
) -> Json:
    signal = await context.wait_signal(event_signal(name), position=position, timeout_s=timeout_s)
    if signal is None:
        message = f"got no signal {name!r} within timeout_s={timeout_s:g}; send it earlier, or raise timeout_s"
        raise fault(ErrorCode.TIMEOUT, Reason.WAIT_TIMEOUT, step.name, message, signal=name)
    return signal.payload


def _seconds(step: WorkflowStep, given: float | str | None, names: Mapping[str, Json]) -> float:
    seconds = _value(step, "wait/seconds", given, names)
    if not is_number(seconds):
        raise unusable(step.name, "wait/seconds", f"it must be a number of seconds, and is {kind(seconds)}")
    if not 0 <= seconds <= MAX_WAIT_S:
        raise unusable(step.name, "wait/seconds", f"it must be from 0 to {MAX_WAIT_S:,.0f}, and is {seconds:g}")
    return seconds


def _moment(step: WorkflowStep, given: str, names: Mapping[str, Json]) -> datetime:
    until = _value(step, "wait/until", given, names)
    field, example = "wait/until", "write it like 2026-01-31T12:00:00Z"
    if not isinstance(until, str):
        raise unusable(step.name, field, f"it must be a moment of RFC 3339, and is {kind(until)}; {example}")
    try:
        moment = datetime.fromisoformat(until)
    except ValueError:
        raise unusable(
            step.name, field, f"it must be a moment of RFC 3339, and is {until[:100]!r}; {example}"
        ) from None
    if moment.tzinfo is None:
        raise unusable(step.name, field, f"{until!r} has no time zone; {example}")
    return moment


def _value(step: WorkflowStep, field: str, given: Json, names: Mapping[str, Json]) -> Json:
    try:
        return resolve(given, names)
    except InvalidExpression as problem:
        raise no_value(step.name, field, problem) from problem

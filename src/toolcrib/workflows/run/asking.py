"""A step that asks a person: approved, what it showed is what it puts out, as the person edited it.

The request stands in the same inbox as those of calls that wait, and the same people may decide on it.
"""

from collections.abc import Mapping
from typing import cast

from toolcrib.contracts import InvalidExpression, Json, JsonObject, Reason
from toolcrib.contracts.workflows import SettledStep, StepApproval, WorkflowStep
from toolcrib.core.expressions import Template, resolve
from toolcrib.core.runs import Question
from toolcrib.workflows.values.dryrun import DRY_RUN
from toolcrib.workflows.values.scope import output_of
from toolcrib.workflows.values.sizes import held
from toolcrib.workflows.values.step_environment import Setting
from toolcrib.workflows.values.step_errors import denied, unresolved


async def ask(
    setting: Setting, step: WorkflowStep, asked: StepApproval, names: Mapping[str, Json], position: str
) -> JsonObject:
    """Ask, and wait for the answer for days if need be.

    Args:
        setting: The run.
        step: The step.
        asked: What it asks.
        names: What its expressions can read.
        position: Where it stands in the journal.

    Raises:
        StepFailed: The person said no, nobody said anything in time, or an expression has no value.
    """
    question = _question(step, asked, names)
    decision = await setting.context.ask(position, setting.tool, question)
    if decision is None:
        message = f"was not decided within expires_s={asked.expires_s:g}; ask again, or raise expires_s"
        raise denied(step.name, Reason.APPROVAL_EXPIRED, message)
    if not decision.approved:
        why = f": {decision.reason}" if decision.reason else ""
        raise denied(step.name, Reason.APPROVAL_REJECTED, f"was rejected by a person{why}", said=decision.reason)
    return question.show if decision.edited_input is None else decision.edited_input


def in_dry_run(step: WorkflowStep, asked: StepApproval, names: Mapping[str, Json]) -> SettledStep:
    """How a step ends in a dry run, which asks nobody and goes on as if the person had agreed.

    Raises:
        StepFailed: An expression has no value.
    """
    question = _question(step, asked, names)
    reason = f"{DRY_RUN}would ask a person, and goes on with what is shown: {question.message}"
    output = output_of(step, step.output, names, question.show)
    return SettledStep(step=step.name, status="skipped", reason=reason, output=output)


def _question(step: WorkflowStep, asked: StepApproval, names: Mapping[str, Json]) -> Question:
    try:
        message = Template.parse(asked.message, "${}").render_text(names)
    except InvalidExpression as problem:
        raise unresolved(step.name, "approval/message", problem) from problem
    try:
        show = cast("JsonObject", held(resolve(asked.show, names)))
    except InvalidExpression as problem:
        raise unresolved(step.name, "approval/show", problem) from problem
    return Question(step=step.name, message=message, show=show, expires_s=asked.expires_s)

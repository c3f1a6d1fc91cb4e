"""`toolcrib instance`: show, resume, rerun, signal and cancel instances of workflows."""

import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from toolcrib.interfaces.cli.render.console import duration
from toolcrib.interfaces.cli.support.commands import Table, is_unsuccessful, print_json, says, shows
from toolcrib.interfaces.cli.support.groups import CommandApp, command
from toolcrib.interfaces.cli.support.inputs import json_object
from toolcrib.interfaces.cli.support.session import Filter, InstanceId, Sort, names_of

if TYPE_CHECKING:
    from toolcrib.contracts import Json
    from toolcrib.contracts.workflows import InstanceSummary, StepInstance, StepWait, WorkflowInstance
    from toolcrib.crib import Crib
    from toolcrib.interfaces.cli.render.documents import SentSignal

app = CommandApp("Inspect and resume workflow runs.")

OfWorkflow = Annotated[
    str | None,
    typer.Option("--workflow", metavar="NAME", help="Of this workflow only.", autocompletion=names_of("workflow")),
]
Limit = Annotated[int, typer.Option("--limit", min=1, max=1000, help="At most so many.")]
From = Annotated[str, typer.Option("--from", metavar="STEP", help="The first step to rerun.")]
Unknown = Annotated[bool, typer.Option("--repeat-unknown", help="Also repeat calls whose outcome is unknown.")]
SignalName = Annotated[str, typer.Argument(metavar="NAME", help="The signal that a step waits for.")]
Payload = Annotated[str, typer.Option("--payload", metavar="JSON", help="The output of the step, as a JSON object.")]
Why = Annotated[str | None, typer.Option("--reason", metavar="TEXT", help="Why, for the record.", show_default=False)]

_LONGEST = 500
"""Characters of an input or output beside the steps; with `--json` it is whole."""


_INSTANCES: "Table[InstanceSummary]" = Table(
    {
        "Instance": lambda each: each.run_id,
        "Workflow": lambda each: each.workflow,
        "Status": lambda each: each.status,
        "Started (UTC)": lambda each: each.created_at,
        "Error": lambda each: None if each.error is None else each.error.message,
    }
)


@command(app, "list", example="toolcrib instance list --workflow follow-up")
@shows(_INSTANCES)
async def list_instances(
    crib: "Crib", *, workflow: OfWorkflow = None, filter: Filter = None, sort: Sort = None, limit: Limit = 20
) -> "Sequence[InstanceSummary]":
    """List instances, the newest first."""
    return (await crib.instances.page(workflow=workflow, filter=filter, sort=sort, limit=limit)).items


def _print_instance(found: "WorkflowInstance") -> None:
    print(f"{found.workflow}: {found.status.replace('_', ' ')}{', a dry run' if found.dry_run else ''}")
    print(f"input: {_short(found.input)}")
    _STEPS(found.steps)
    if found.status == "completed":
        print(f"output: {_short(found.output)}")
    if found.partial is not None:
        print(f"done before it ended: {_short(found.partial)}")
    tell(found)


@command(app, "show", example="toolcrib instance show latest")
@shows(_print_instance)
async def show(crib: "Crib", run_id: InstanceId) -> "WorkflowInstance":
    """Show an instance, step by step.

    Long inputs and outputs are abridged; with --json they are whole.
    """
    return await crib.instances.get(run_id)


def print_result(instance: "WorkflowInstance") -> None:
    """Print the result of an instance: its output, and notes about it."""
    if instance.status == "completed":
        print_json(instance.output)
    if instance.partial is not None:
        print(f"toolcrib: done before it ended: {_short(instance.partial)}", file=sys.stderr)
    print(f"instance {instance.run_id} is {instance.status.replace('_', ' ')}", file=sys.stderr)
    for step in instance.steps if instance.dry_run else ():
        if step.reason is not None:
            print(f"toolcrib: step {step.step}: {step.reason}", file=sys.stderr)
    tell(instance)


@command(app, "resume", example="toolcrib instance resume latest")
@shows(print_result, fails=is_unsuccessful)
async def resume(crib: "Crib", run_id: InstanceId, repeat_unknown: Unknown = False) -> "WorkflowInstance":
    """Resume an instance in this process.

    A new instance continues a failed one without repeating its calls.
    """
    return await crib.instances.resume(run_id, repeat_unknown=repeat_unknown)


@command(app, "rerun", example="toolcrib instance rerun latest --from report")
@shows(print_result, fails=is_unsuccessful)
async def rerun(crib: "Crib", run_id: InstanceId, step: From) -> "WorkflowInstance":
    """Rerun a workflow from a step.

    The outputs of earlier steps are reused.
    """
    return await crib.instances.rerun(run_id, step)


@command(app, "signal", example="toolcrib instance signal latest paid --payload '{\"usd\": 20}'")
@says("{found.run_id} has signal {name}; resume it with: toolcrib instance resume {found.run_id}")
async def signal(crib: "Crib", run_id: InstanceId, name: SignalName, payload: Payload = "{}") -> "SentSignal":
    """Send the signal that a step waits for.

    The first signal of a name counts.
    """
    from toolcrib.contracts import Conflict
    from toolcrib.interfaces.cli.render.documents import SentSignal

    if not await crib.instances.signal(run_id, name, json_object(payload, "--payload")):
        raise Conflict(f"{run_id} had signal {name} before; see toolcrib instance show {run_id}")
    return SentSignal(run_id=run_id, name=name)


def _print_status(found: "WorkflowInstance") -> None:
    print(f"{found.run_id} is {found.status.replace('_', ' ')}")


@command(app, "cancel", example="toolcrib instance cancel latest")
@shows(_print_status)
async def cancel(crib: "Crib", run_id: InstanceId, reason: Why = None) -> "WorkflowInstance":
    """Cancel an instance and its nested runs.

    It can be resumed.
    """
    return await crib.instances.cancel(run_id, reason=reason)


def tell(instance: "WorkflowInstance") -> None:
    """Print the problems of an instance, what it waits for, and what to do, on stderr."""
    for warning in instance.warnings:
        print(f"toolcrib: {warning}", file=sys.stderr)
    if instance.error is not None:
        print(f"toolcrib: {instance.error.code}: {instance.error.message}", file=sys.stderr)
        print(f"toolcrib: {_next(instance)}", file=sys.stderr)
    for step in instance.steps:
        for wait in step.waits_for:
            print(f"toolcrib: step {step.step} waits {_answer(instance.run_id, wait)}", file=sys.stderr)


def _next(instance: "WorkflowInstance") -> str:
    """What can be done with an instance that has not ended well: one whose input is wrong would fail again."""
    has_begun = any(step.started_at is not None for step in instance.steps)
    reason = None if instance.error is None else instance.error.reason
    if reason == "input_schema_mismatch" and not has_begun:
        name = instance.workflow.partition("@")[0]
        return f"no step has begun; start another one with: toolcrib workflow run {name} --input JSON"
    return f"when the cause is fixed: toolcrib instance resume {instance.run_id}"


def _took(step: "StepInstance") -> str:
    if step.started_at is None:
        return ""
    if step.ended_at is None:
        return duration(None)
    return duration(round((step.ended_at - step.started_at).total_seconds() * 1000))


def _what(step: "StepInstance") -> str | None:
    """The most telling of what there is to say of a step."""
    error = None if step.error is None else f"{step.error.code}: {step.error.message}"
    waits = "; ".join(f"waits for {wait.whom} {wait.name}" for wait in step.waits_for)
    return error or step.reason or waits or (step.reused and f"taken over from {step.reused}")


_STEPS: "Table[StepInstance]" = Table(
    {
        "Step": lambda step: step.step,
        "Status": lambda step: step.status,
        "Elements": lambda step: None if step.items is None else f"{step.items - step.failed} of {step.items}",
        "Tries": lambda step: None if step.started_at is None else step.tries,
        "Took": _took,
        "What": _what,
    }
)


def _short(value: "Json") -> str:
    from toolcrib.core.runs import shorten_json

    return json.dumps(shorten_json(value, _LONGEST), ensure_ascii=False)


def _answer(run_id: str, wait: "StepWait") -> str:
    """The command that ends the wait."""
    match wait.whom:
        case "approval":
            return f"for a person: toolcrib approval approve {wait.name}"
        case "signal":
            return f"for a signal: toolcrib instance signal {run_id} {wait.name}"
        case "client":
            return f"for a client, at {wait.name} of run {wait.run_id}"
        case "time":
            return "for its time" if wait.until is None else f"until {wait.until:%Y-%m-%d %H:%M:%S} UTC"

"""`toolcrib instance`: runs of workflows, step by step; carried on, run anew from a step, told, cancelled."""

import json
import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated

import typer

from toolcrib.interfaces.cli.support.inputs import json_object
from toolcrib.interfaces.cli.support.session import DEFAULT_STORE, AsJson, RunId, Store, with_crib

if TYPE_CHECKING:
    from toolcrib.contracts import Json
    from toolcrib.contracts.workflows import StepInstance, StepWait, WorkflowInstance
    from toolcrib.crib import Crib

app = typer.Typer(help="Inspect and resume workflow runs.", no_args_is_help=True)

OfWorkflow = Annotated[str | None, typer.Option("--workflow", metavar="NAME", help="Of this workflow only.")]
Limit = Annotated[int, typer.Option("--limit", min=1, max=1000, help="At most so many.")]
From = Annotated[str, typer.Option("--from", metavar="STEP", help="The first step to rerun.")]
Unknown = Annotated[bool, typer.Option("--repeat-unknown", help="Also repeat calls whose outcome is unknown.")]
SignalName = Annotated[str, typer.Argument(metavar="NAME", help="The signal that a step waits for.")]
Payload = Annotated[str, typer.Option("--payload", metavar="JSON", help="What the step puts out, as a JSON object.")]
Why = Annotated[str | None, typer.Option("--reason", metavar="TEXT", help="Why, for the record.", show_default=False)]

_LONGEST = 500
"""Characters of an input or output beside the steps; with `--json` it is whole."""


@app.command("list")
def list_instances(
    workflow: OfWorkflow = None, limit: Limit = 20, store: Store = DEFAULT_STORE, as_json: AsJson = False
) -> None:
    """List instances, the newest first."""
    found = with_crib(store, lambda crib: crib.instances.page(workflow=workflow, limit=limit)).items
    if as_json:
        print(json.dumps([each.model_dump(mode="json") for each in found], indent=2, ensure_ascii=False))
        return
    from toolcrib.interfaces.cli.render.tables import print_rows

    rows = [
        (
            each.run_id,
            each.workflow,
            each.status,
            f"{each.created_at:%Y-%m-%d %H:%M:%S}",
            "" if each.error is None else each.error.message,
        )
        for each in found
    ]
    print_rows(("Instance", "Workflow", "Status", "Started (UTC)", "Error"), rows)


@app.command("show")
def show(run_id: RunId, store: Store = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """Show an instance step by step, with the beginnings of its input and output."""
    found = with_crib(store, lambda crib: crib.instances.get(run_id))
    if as_json:
        print(found.model_dump_json(indent=2))
        return
    from toolcrib.interfaces.cli.render.tables import print_rows

    print(f"{found.workflow}: {found.status.replace('_', ' ')}{', a dry run' if found.dry_run else ''}")
    print(f"input: {_short(found.input)}")
    print_rows(("Step", "Status", "Elements", "Tries", "Took", "What"), [_row(step) for step in found.steps])
    if found.status == "completed":
        print(f"output: {_short(found.output)}")
    tell(found)


@app.command("resume")
def resume(
    run_id: RunId, repeat_unknown: Unknown = False, store: Store = DEFAULT_STORE, as_json: AsJson = False
) -> None:
    """Resume an instance in this process. A new instance continues a failed one without repeating calls."""
    _go_on(store, lambda crib: crib.instances.resume(run_id, repeat_unknown=repeat_unknown), as_json=as_json)


@app.command("rerun")
def rerun(run_id: RunId, step: From, store: Store = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """Rerun a workflow from a step; earlier outputs are reused."""
    _go_on(store, lambda crib: crib.instances.rerun(run_id, step), as_json=as_json)


@app.command("signal")
def signal(run_id: RunId, name: SignalName, payload: Payload = "{}", store: Store = DEFAULT_STORE) -> None:
    """Send the signal that a step waits for. The first signal of a name counts."""
    said = json_object(payload, "--payload")
    if not with_crib(store, lambda crib: crib.instances.signal(run_id, name, said)):
        print(f"toolcrib: {run_id} was told {name} before", file=sys.stderr)
        raise typer.Exit(1)
    print(f"{run_id} is told {name}; carry it on with: toolcrib instance resume {run_id}")


@app.command("cancel")
def cancel(run_id: RunId, reason: Why = None, store: Store = DEFAULT_STORE) -> None:
    """Cancel an instance and its nested runs; it can be resumed."""
    found = with_crib(store, lambda crib: crib.instances.cancel(run_id, reason=reason))
    print(f"{run_id} is {found.status.replace('_', ' ')}")


def report(instance: "WorkflowInstance", *, as_json: bool) -> None:
    """Print what came of an instance: its output, and what there is to know besides; failed, it ends with status 1."""
    if as_json:
        print(instance.model_dump_json(indent=2))
    else:
        if instance.status == "completed":
            print(json.dumps(instance.output, indent=2, ensure_ascii=False))
        print(f"toolcrib: instance {instance.run_id} is {instance.status.replace('_', ' ')}", file=sys.stderr)
        for step in instance.steps if instance.dry_run else ():
            if step.reason is not None:
                print(f"toolcrib: step {step.step}: {step.reason}", file=sys.stderr)
        tell(instance)
    if instance.status in {"failed", "incomplete", "timed_out", "cancelled"}:
        raise typer.Exit(1)


def tell(instance: "WorkflowInstance") -> None:
    """What is wrong with an instance, what it waits for, and what to do, on stderr."""
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
        return f"no step has begun; begin another one with: toolcrib workflow run {name} --input JSON"
    return f"when it is put right: toolcrib instance resume {instance.run_id}"


def _go_on(store: str | None, go: "Callable[[Crib], Awaitable[WorkflowInstance]]", *, as_json: bool) -> None:
    report(with_crib(store, go), as_json=as_json)


def _row(step: "StepInstance") -> tuple[str, ...]:
    from toolcrib.interfaces.cli.render.console import duration

    took = "" if step.started_at is None else duration(None)
    if step.started_at is not None and step.ended_at is not None:
        took = duration(round((step.ended_at - step.started_at).total_seconds() * 1000))
    elements = "" if step.items is None else f"{step.items - step.failed} of {step.items}"
    error = None if step.error is None else f"{step.error.code}: {step.error.message}"
    reused = None if step.reused is None else f"taken over from {step.reused}"
    waits = "; ".join(f"waits for {wait.whom} {wait.name}" for wait in step.waits_for)
    what = error or step.reason or waits or reused or ""
    tries = "" if step.started_at is None else str(step.tries)
    return step.step, step.status, elements, tries, took, what


def _short(value: "Json") -> str:
    from toolcrib.core.runs import shorten_json

    return json.dumps(shorten_json(value, _LONGEST), ensure_ascii=False)


def _answer(run_id: str, wait: "StepWait") -> str:
    """How what is waited for is brought about."""
    match wait.whom:
        case "approval":
            return f"for a person: toolcrib approval approve {wait.name}"
        case "signal":
            return f"for a signal: toolcrib instance signal {run_id} {wait.name}"
        case "client":
            return f"for a client, at {wait.name} of run {wait.run_id}"
        case "time":
            return "for its time" if wait.until is None else f"until {wait.until:%Y-%m-%d %H:%M:%S} UTC"

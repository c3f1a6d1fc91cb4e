"""`toolcrib run`: list and show runs, decide what they wait for, resume and cancel them."""

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolcrib.interfaces.cli.render.console import console
from toolcrib.interfaces.cli.render.rows import print_rows
from toolcrib.interfaces.cli.render.tables import print_runs
from toolcrib.interfaces.cli.support.commands import is_unsuccessful, print_json, shows
from toolcrib.interfaces.cli.support.inputs import json_object
from toolcrib.interfaces.cli.support.session import DEFAULT_STORE, AsJson, Position, RunId, Store, tool_names, with_crib

if TYPE_CHECKING:
    from toolcrib.contracts import Attachment, OpenQuestion, Run, Trace
    from toolcrib.crib import Crib

app = typer.Typer(help="Inspect, approve, resume, cancel, fork, replay and export runs.", no_args_is_help=True)

Follow = Annotated[bool, typer.Option("--follow", help="Continue until the run ends.")]
Tracebacks = Annotated[bool, typer.Option("--traceback", help="Add the tracebacks of exceptions that tools raised.")]
Full = Annotated[bool, typer.Option("--full", help="Print long outputs whole.")]
Tool = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Runs of this tool only.", show_default=False, autocompletion=tool_names),
]
Limit = Annotated[int, typer.Option(min=1, max=1000, help="The most runs.")]
Why = Annotated[str | None, typer.Option("--reason", metavar="TEXT", help="Why, for the record.", show_default=False)]
Text = Annotated[
    str | None,
    typer.Argument(metavar="[TEXT]", help="One of the choices, or words in any language.", show_default=False),
]
At = Annotated[
    str | None, typer.Option("--position", metavar="NAME", help="Of the question that is meant.", show_default=False)
]
Edit = Annotated[
    str | None,
    typer.Option("--edit", metavar="JSON", help="Other arguments to call with, as a JSON object.", show_default=False),
]


Digest = Annotated[
    str, typer.Argument(metavar="DIGEST", help="Of the attachment, as `run attachments` lists it.", show_default=False)
]
Into = Annotated[
    Path | None,
    typer.Option("-o", "--output", metavar="FILE", dir_okay=False, help="Where to; standard output if not given."),
]


@app.command("list")
@shows(print_runs)
async def list_runs(crib: "Crib", tool: Tool = None, limit: Limit = 20) -> "Sequence[Run]":
    """List runs, the newest first."""
    return await crib.store.journal.runs(crib.principal.realm, tool=tool, limit=limit)


@app.command("trace")
def trace(
    run_id: RunId,
    *,
    follow: Follow = False,
    traceback: Tracebacks = False,
    full: Full = False,
    store: Store = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Print a run as a tree of its steps; --follow updates it until the run ends, in whichever process."""
    from toolcrib.interfaces.cli.render.streams import last_trace, show_tracebacks, show_until_ended

    async def show(crib: "Crib") -> None:
        meant = await crib.ids.find("run", run_id)
        if not as_json:
            await show_until_ended(crib, meant, follow=follow, full=full)
            if traceback:
                await show_tracebacks(crib, meant)
            return
        shown = await last_trace(crib, meant, follow=follow)
        if not traceback:
            print_json(shown)
            return
        found = await crib.executions.tracebacks(meant)
        tracebacks = [asdict(each) for each in found]
        print_json(shown.model_dump(mode="json", by_alias=True) | {"tracebacks": tracebacks})

    with_crib(store, show)


def _print_attachments(found: "Sequence[Attachment]") -> None:
    cells = [(kept.kind, kept.content_type or "", str(kept.bytes or ""), kept.digest or kept.url) for kept in found]
    print_rows(("Kind", "Type", "Bytes", "Digest"), cells)


@app.command("attachments")
@shows(_print_attachments)
async def attachments(crib: "Crib", run_id: RunId) -> "Sequence[Attachment]":
    """List what accompanies the outputs of a run's calls: whole outputs that were cut, tables, images."""
    return await crib.executions.attachments(run_id)


@app.command("attachment")
def attachment(run_id: RunId, digest: Digest, output: Into = None, store: Store = DEFAULT_STORE) -> None:
    """Write an attachment of a run to a file, or to standard output."""
    from toolcrib.contracts import InvalidInput

    async def read(crib: "Crib") -> "tuple[Attachment, bytes]":
        return await crib.executions.read_attachment(await crib.ids.find("run", run_id), digest)

    kept, payload = with_crib(store, read)
    if output is None:
        typer.get_binary_stream("stdout").write(payload)
        return
    try:
        output.write_bytes(payload)
    except OSError as problem:
        raise InvalidInput(f"{output} cannot be written: {problem.strerror}; name another file with -o") from problem
    print(f"wrote {output}: {len(payload)} bytes, {kept.content_type or 'of no known type'}")


def _draw(found: "Trace") -> None:
    from toolcrib.interfaces.cli.render.tree import draw

    console().print(draw(found))


@app.command("resume")
@shows(_draw, fails=is_unsuccessful)
async def resume(crib: "Crib", run_id: RunId) -> "Trace":
    """Resume a run in this process: after a decision, or after the process that drove it died."""
    await crib.resume(run_id)
    return await crib.trace(run_id)


@app.command("answer")
@shows(_draw, fails=is_unsuccessful)
async def answer(crib: "Crib", run_id: RunId, text: Text = None, position: At = None) -> "Trace":
    """Answer the question of a run and resume it in this process; without an answer, show the question."""
    if text is None:
        print_question(await crib.questions.of_run(run_id), run_id)
        raise typer.Exit
    await crib.questions.answer(run_id, text, position=position)
    return await crib.trace(run_id)


def print_question(question: "OpenQuestion | None", run_id: str) -> None:
    """Print what a run asks, with its choices and what would follow from each."""
    if question is None:
        print(f"run {run_id} asks nothing")
        return
    print(question.question)
    for choice in question.choices:
        named = f" ({choice.label})" if choice.label != choice.value else ""
        print(f"  {choice.value}{named}{f': {choice.outcome}' if choice.outcome else ''}")
    print(f"answer with: toolcrib run answer {run_id} TEXT")


@app.command("cancel")
def cancel(run_id: RunId, reason: Why = None, store: Store = DEFAULT_STORE) -> None:
    """Cancel a run and its nested runs."""

    async def end(crib: "Crib") -> "Run":
        meant = await crib.ids.find("run", run_id)
        first = await crib.cancel(meant, reason=reason)
        if not first:
            print(f"toolcrib: {meant} was cancelled before", file=sys.stderr)
            raise typer.Exit(1)
        return await crib.store.journal.run(meant)

    run = with_crib(store, end)
    if run.ended:
        print(f"cancelled {run.run_id}")
    else:
        follow = f"toolcrib run trace {run.run_id}"
        print(f"{run.run_id} ends as soon as the process that drives it has heard; follow: {follow}")


@app.command("approve")
def approve(
    run_id: RunId, position: Position, reason: Why = None, edit: Edit = None, store: Store = DEFAULT_STORE
) -> None:
    """Approve a call that waits for consent, as it is or with other arguments."""
    _decide(
        store,
        run_id,
        position,
        approve=True,
        reason=reason,
        edited_input=None if edit is None else json_object(edit, "--edit"),
    )


@app.command("reject")
def reject(run_id: RunId, position: Position, reason: Why = None, store: Store = DEFAULT_STORE) -> None:
    """Reject a call that waits for consent."""
    _decide(store, run_id, position, approve=False, reason=reason)


def _decide(store: str | None, run_id: str, position: str, *, approve: bool, **more: Any) -> None:
    async def decide(crib: "Crib") -> tuple[str, bool]:
        meant = await crib.ids.find("run", run_id)
        return meant, await crib.decide(meant, position, approve=approve, **more)

    meant, first = with_crib(store, decide)
    if not first:
        print(f"toolcrib: {position} of {meant} was decided before", file=sys.stderr)
        raise typer.Exit(1)
    print(f"{'approved' if approve else 'rejected'} {position}; carry the run on with: toolcrib run resume {meant}")

"""`toolcrib run`: list and show runs, resume, answer and cancel them. `toolcrib attachment`: what they put out."""

import json
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolcrib.interfaces.cli.render.console import JSON_ONLY, console, cost, plain
from toolcrib.interfaces.cli.render.rows import print_rows
from toolcrib.interfaces.cli.render.tables import print_runs
from toolcrib.interfaces.cli.support.commands import is_unsuccessful, print_json, prints, shows
from toolcrib.interfaces.cli.support.groups import CommandApp, command
from toolcrib.interfaces.cli.support.session import (
    DEFAULT_STORE,
    AsJson,
    Filter,
    RunId,
    Sort,
    Store,
    tool_names,
    with_crib,
)

if TYPE_CHECKING:
    from toolcrib.contracts import Attachment, OpenQuestion, Run, Trace
    from toolcrib.contracts.tools.rendered_prompts import SentPrompt
    from toolcrib.crib import Crib
    from toolcrib.interfaces.cli.render.documents import AttachmentContent, RunSummary

app = CommandApp("Inspect, resume, answer, fork and replay runs.")
attachments_app = CommandApp("List and read the attachments of runs.")

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
Digest = Annotated[
    str, typer.Argument(metavar="DIGEST", help="Of the attachment, as `attachment list` prints it.", show_default=False)
]
Into = Annotated[
    Path | None,
    typer.Option("-o", "--output", metavar="FILE", dir_okay=False, help="Where to; standard output if not given."),
]


@command(app, "list", example="toolcrib run list --limit 5")
@shows(print_runs)
async def list_runs(
    crib: "Crib", *, tool: Tool = None, filter: Filter = None, sort: Sort = None, limit: Limit = 20
) -> "Sequence[Run]":
    """List runs, the newest first."""
    from toolcrib.infrastructure.queries.grammar import Every, equal

    where = Every(() if tool is None else (equal("tool", tool),))
    return (await crib.queries.page("runs", filter=filter, sort=sort, limit=limit, where=where)).items


def _print_summary(found: "RunSummary") -> None:
    run = found.run
    facts = {
        "Run": run.run_id,
        "Tool": run.request.tool,
        "Status": run.status.replace("_", " "),
        "Stop reason": (run.stop_reason or "").replace("_", " "),
        "Started (UTC)": f"{run.created_at:%Y-%m-%d %H:%M:%S}",
        "Cost": cost(run.cost_usd, unknown=run.cost_unknown) if run.ended else "",
        "Tokens": f"{run.all_tokens:,}" if run.all_tokens else "",
        "Error": "" if run.error is None else f"{run.error.code}: {run.error.message}",
        "Warnings": "; ".join(run.warnings),
    }
    width = max(map(len, facts))
    for name, value in facts.items():
        if value:
            console().print(plain(f"{name:{width}}  {value}"), soft_wrap=True)
    for step in found.next_steps:
        console().print(plain(f"{'Next':{width}}  {step}"), soft_wrap=True)


@command(app, "show", example="toolcrib run show latest")
@shows(_print_summary)
async def show(crib: "Crib", run_id: RunId) -> "RunSummary":
    """Show the status, cost and error of a run, and what to do."""
    from toolcrib.interfaces.cli.render.documents import RunSummary

    question = await crib.questions.of_run(run_id)
    run = await crib.store.journal.run(run_id)
    waiting = (await crib.approvals.page(status="waiting", run_id=run_id)).items
    steps = [f"toolcrib approval approve {each.approval_id}" for each in waiting]
    if question is not None:
        steps.append(f"toolcrib run answer {run_id} TEXT")
    if not run.ended:
        steps.append(f"toolcrib run resume {run_id}")
    if is_unsuccessful(run):
        steps.append(f"toolcrib run trace {run_id} --traceback")
        steps.append(f"toolcrib run fork {run_id} --set NAME=VALUE")
    return RunSummary(run=run, next_steps=tuple(steps))


def _print_prompts(found: "Sequence[SentPrompt]") -> None:
    for sent in found:
        print(f"## {sent.position}, {sent.purpose}: {sent.model}, {sent.tokens.total} tokens ({sent.tokens.method})")
        print(sent.system)
        for message in sent.messages:
            print(f"{message['role']}: {json.dumps(message['parts'], ensure_ascii=False)}")


@command(app, "prompts", example="toolcrib run prompts latest")
@shows(_print_prompts)
async def show_prompts(crib: "Crib", run_id: RunId) -> "Sequence[SentPrompt]":
    """Print the whole requests of a run's own model calls.

    They are put together by a replay; nothing is sent.
    """
    return await crib.sent_prompts(await crib.ids.find("run", run_id))


@command(app, "trace", example="toolcrib run trace latest --full")
def trace(
    run_id: RunId,
    *,
    follow: Follow = False,
    traceback: Tracebacks = False,
    full: Full = False,
    store: Store = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Print a run as a tree of its steps.

    With --follow, it is updated until the run ends, in whichever process.
    """
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


@command(attachments_app, "list", example="toolcrib attachment list latest")
@shows(_print_attachments)
async def attachments(crib: "Crib", run_id: RunId) -> "Sequence[Attachment]":
    """List the attachments of a run.

    They are what accompanies the outputs of its calls: whole outputs that were cut, tables, images.
    """
    return await crib.executions.attachments(run_id)


def _print_attachment(found: "AttachmentContent") -> None:
    if found.file is not None:
        kind = found.attachment.content_type or "of unknown type"
        print(f"wrote {found.file}: {found.attachment.bytes} bytes, {kind}")


@command(attachments_app, "show", example="toolcrib attachment show latest DIGEST -o table.csv")
@prints(_print_attachment)
def attachment(run_id: RunId, digest: Digest, output: Into = None, store: Store = DEFAULT_STORE) -> "AttachmentContent":
    """Print an attachment, or write it to a file.

    With --json and without a file, its bytes are in base64.
    """
    from toolcrib.contracts import InvalidInput
    from toolcrib.interfaces.cli.render.documents import AttachmentContent

    async def read(crib: "Crib") -> "tuple[Attachment, bytes]":
        return await crib.executions.read_attachment(await crib.ids.find("run", run_id), digest)

    kept, payload = with_crib(store, read)
    if output is None:
        if JSON_ONLY.get():
            return AttachmentContent(attachment=kept, base64=b64encode(payload).decode())
        typer.get_binary_stream("stdout").write(payload)
        return AttachmentContent(attachment=kept)
    try:
        output.write_bytes(payload)
    except OSError as problem:
        raise InvalidInput(f"{output} cannot be written: {problem.strerror}; name another file with -o") from problem
    return AttachmentContent(attachment=kept, file=str(output))


def _draw(found: "Trace") -> None:
    from toolcrib.interfaces.cli.render.tree import draw

    console().print(draw(found))


@command(app, "resume", example="toolcrib run resume latest")
@shows(_draw, fails=is_unsuccessful)
async def resume(crib: "Crib", run_id: RunId) -> "Trace":
    """Resume a run in this process.

    A run is resumed after a decision, or after the process that drove it died.
    """
    from toolcrib.contracts import Unavailable

    result = await crib.resume(run_id)
    if result.status == "queued":
        raise Unavailable("; ".join(result.warnings))
    return await crib.trace(run_id)


@command(app, "answer", example='toolcrib run answer latest "The second one"')
def answer(
    run_id: RunId, text: Text = None, position: At = None, store: Store = DEFAULT_STORE, as_json: AsJson = False
) -> None:
    """Answer the question of a run, and resume it.

    Without an answer, the question is printed.
    """

    async def work(crib: "Crib") -> bool:
        meant = await crib.ids.find("run", run_id)
        if text is None:
            question = await crib.questions.of_run(meant)
            if as_json:
                print_json(question)
            else:
                print_question(question, meant)
            return False
        await crib.questions.answer(meant, text, position=position)
        found = await crib.trace(meant)
        (print_json if as_json else _draw)(found)
        return is_unsuccessful(found)

    if with_crib(store, work):
        raise typer.Exit(1)


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


def _print_cancelled(run: "Run") -> None:
    if run.ended:
        print(f"cancelled {run.run_id}")
    else:
        follow = f"toolcrib run trace {run.run_id} --follow"
        print(f"{run.run_id} ends as soon as the process that drives it is notified; follow it: {follow}")


@command(app, "cancel", example='toolcrib run cancel latest --reason "Wrong customer"')
@shows(_print_cancelled)
async def cancel(crib: "Crib", run_id: RunId, reason: Why = None) -> "Run":
    """Cancel a run and its nested runs."""
    from toolcrib.contracts import Conflict

    if not await crib.cancel(run_id, reason=reason):
        raise Conflict(f"{run_id} was cancelled before; see toolcrib run show {run_id}")
    return await crib.store.journal.run(run_id)

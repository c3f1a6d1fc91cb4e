"""`toolcrib run fork`, `diff`, `export` and `replay`; `toolcrib replay` of a bundle; `toolcrib upgrade rehearse`."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolcrib.interfaces.cli.render.comparisons import print_diff
from toolcrib.interfaces.cli.render.progress import progress
from toolcrib.interfaces.cli.render.rows import print_rows
from toolcrib.interfaces.cli.support.commands import is_unsuccessful, prints, shows
from toolcrib.interfaces.cli.support.groups import Group, command
from toolcrib.interfaces.cli.support.inputs import text_of
from toolcrib.interfaces.cli.support.session import DEFAULT_STORE, IdOf, RunId, Store, run_ids, with_crib

if TYPE_CHECKING:
    from toolcrib.contracts import Json, Replay
    from toolcrib.contracts.pruning_and_rehearsal import RehearsalReport
    from toolcrib.contracts.runs.comparisons import RunDiff
    from toolcrib.core.runs.journal.bundles import Manifest
    from toolcrib.crib import Crib
    from toolcrib.interfaces.cli.render.documents import ExportedRun, ForkedRun

At = Annotated[
    str | None,
    typer.Option(
        "--at", metavar="N", help="Last event that is known, or step:NAME, turn:N; else the first.", show_default=False
    ),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="What to change: model, prompt (a text or @FILE), tool:NAME, policy (JSON), input.FIELD, temperature…",
        show_default=False,
    ),
]
AllowWrites = Annotated[bool, typer.Option("--allow-writes", help="Make calls that write and were not made before.")]
Anew = Annotated[bool, typer.Option("--anew", help="Do not reuse the recording after the event.")]
Other = Annotated[
    str,
    typer.Argument(metavar="OTHER", help="The run to compare with.", show_default=False, autocompletion=run_ids),
    IdOf("run"),
]

_TEXTS = frozenset({"model", "prompt", "reasoning_effort", "tool_calling"})


def _print_fork(found: "ForkedRun") -> None:
    print_diff(found.diff)
    if found.run.error is not None:
        print(f"toolcrib: {found.run.error.code}: {found.run.error.message}", file=sys.stderr)


@shows(_print_fork, fails=lambda found: is_unsuccessful(found.run))
async def fork(
    crib: "Crib",
    run_id: RunId,
    *,
    at: At = None,
    changes: Set = None,
    allow_writes: AllowWrites = False,
    anew: Anew = False,
) -> "ForkedRun":
    """Fork a run at an event with changes, and compare."""
    from toolcrib.interfaces.cli.render.documents import ForkedRun

    wanted = dict(map(_change, changes or ()))
    made = await crib.fork(run_id, at=at, changes=wanted, allow_writes=allow_writes, anew=anew)
    return ForkedRun(run=made, diff=await crib.compare(run_id, made.run_id))


@shows(print_diff)
async def diff(crib: "Crib", run_id: RunId, other: Other) -> "RunDiff":
    """Compare two runs: outcome, cost, calls and decisions."""
    return await crib.compare(run_id, other)


def _change(text: str) -> "tuple[str, Json]":
    """A change as it is typed: JSON where a value is JSON, else a text; `@FILE` for the text of a file."""
    name, given, value = text.partition("=")
    if not given:
        raise typer.BadParameter(f"--set {text}: write NAME=VALUE")
    if value.startswith("@"):
        value = text_of(Path(value[1:]))
    if name in _TEXTS or name.startswith("tool:"):
        return name, value
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value


Output = Annotated[
    Path | None,
    typer.Option("-o", "--output", metavar="FILE", dir_okay=False, help="Where to; ID.bundle if not given."),
]
BundleFile = Annotated[
    Path, typer.Argument(metavar="FILE", exists=True, dir_okay=False, help="A bundle, as `toolcrib run export` writes.")
]
Parked = Annotated[bool, typer.Option("--parked", help="Also replay a run that has not ended.")]


def _print_exported(found: "ExportedRun") -> None:
    print(f"wrote {found.file}: {len(found.entries)} entries, {found.bytes} bytes")
    for left in found.left_out:
        print(f"  without {left.what}: {left.why}", file=sys.stderr)


@prints(_print_exported)
def export(run_id: RunId, output: Output = None, store: Store = DEFAULT_STORE) -> "ExportedRun":
    """Write a run into one file, with all that a replay needs."""
    from toolcrib.contracts import InvalidInput
    from toolcrib.interfaces.cli.render.documents import ExportedRun

    run_id = with_crib(store, lambda crib: crib.ids.find("run", run_id))
    path = output or Path(f"{run_id}.bundle")
    part = path.with_name(f"{path.name}.part")  # what is there already stays until the new one is whole

    async def write(crib: "Crib") -> "Manifest":
        with part.open("wb") as file:
            return await crib.export_run(run_id, file)

    try:
        manifest = with_crib(store, write)
        part.replace(path)
    except OSError as problem:
        raise InvalidInput(f"{path} cannot be written: {problem.strerror}; name another file with -o") from problem
    finally:
        part.unlink(missing_ok=True)
    fields = {name: getattr(manifest, name) for name in type(manifest).model_fields}
    return ExportedRun(**fields, file=str(path), bytes=path.stat().st_size)


def _print_replay(found: "Replay") -> None:
    if found.divergence is None:
        calls = f"{len(found.envelopes)} tool calls, {found.model_calls} model calls, {len(found.nested)} nested runs"
        print(f"run {found.run_id} goes the same way: {found.events} events, {calls}, {found.status}")
        print(f"  {found.digest}")
    else:
        there = found.divergence
        print(f"run {there.run_id} goes another way at event {there.event}: {there.field}")
        print(f"  expected {json.dumps(there.expected, ensure_ascii=False)}")
        print(f"  got      {json.dumps(there.got, ensure_ascii=False)}")


@shows(_print_replay, fails=lambda found: not found.same)
async def replay_run(crib: "Crib", run_id: RunId, parked: Parked = False) -> "Replay":
    """Replay a run from its journal; exit status 1 if it diverges."""
    with progress(f"Replaying {run_id}"):
        return await crib.replay(run_id, parked=parked)


@prints(_print_replay, fails=lambda found: not found.same)
def replay(path: BundleFile) -> "Replay":
    """Replay a run from a bundle; exit status 1 if it diverges.

    No store is needed.
    """
    from toolcrib.crib.runs.bundles import replay_file

    with path.open("rb") as file, progress(f"Replaying {path}"):
        return asyncio.run(replay_file(file, str(path)))


app = Group("Check a change or a new release before you apply it.")

Application = Annotated[
    str | None,
    typer.Argument(
        metavar="APP",
        help="The application's Crib, as module:name. Without it, Python functions are not checked.",
        show_default=False,
    ),
]
Apply = Annotated[
    Path | None,
    typer.Option(
        "--apply",
        metavar="FOLDER",
        help="A project, as toolcrib apply reads it, that would be applied.",
        show_default=False,
    ),
]
Block = Annotated[list[str] | None, typer.Option("--block", metavar="TOOL", help="A tool that would be blocked.")]


def _print_rehearsal(report: "RehearsalReport") -> None:
    rows = [
        (run.run_id, run.tool, run.status, run.verdict, "; ".join(reason.message for reason in run.reasons))
        for run in report.runs
        if run.verdict != "safe"
    ]
    if rows:
        print_rows(("Run", "Tool", "Status", "Verdict", "Why"), rows)
    counts = {verdict: len(report.of(verdict)) for verdict in ("safe", "needs_attention", "will_strand")}
    print(", ".join(f"{count} {verdict.replace('_', ' ')}" for verdict, count in counts.items()))


@command(app, "rehearse", example="toolcrib upgrade rehearse shop.tools:crib")
@prints(_print_rehearsal, fails=lambda report: bool(report.strands))
def rehearse(
    application: Application = None,
    *,
    apply: Apply = None,
    block: Block = None,
    store: Store = DEFAULT_STORE,
) -> "RehearsalReport":
    """Check whether open runs could continue after a change.

    The exit status is 1 if one could not.
    """
    from toolcrib.crib.project import Project, save_project

    project = None if apply is None else Project.read(apply)

    async def changes(crib: "Crib") -> None:
        if project is not None:
            await save_project(crib, project)
        for tool in block or ():
            await crib.lifecycle.block(tool)

    async def work(crib: "Crib") -> "RehearsalReport":
        with progress("Rehearsing"):
            return await crib.rehearse(changes, functions_here=application is not None)

    return with_crib(store, work) if application is None else asyncio.run(_in(application, store, work))


async def _in(
    application: str, store: str | None, work: "Callable[[Crib], Awaitable[RehearsalReport]]"
) -> "RehearsalReport":
    """Ask the application's own crib, which is not opened, so that nothing of it is saved."""
    from toolcrib.interfaces.cli.support.applications import load_crib

    crib = load_crib(application, store=store)
    try:
        return await work(crib)
    finally:
        await crib.close()

"""`toolcrib upgrade rehearse`: what would become of the parked runs."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from toolcrib.interfaces.cli.support.inputs import object_in, validated
from toolcrib.interfaces.cli.support.options import DEFAULT_STORE, AsJson, Store
from toolcrib.interfaces.cli.support.session_part import with_crib

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from toolcrib.contracts import JsonObject
    from toolcrib.contracts.rehearsals import RehearsalReport
    from toolcrib.crib import Crib

app = typer.Typer(help="Prepare a change of definitions, or a new release.", no_args_is_help=True)

_SUFFIXES: Final = {".yaml", ".yml", ".json"}
_KINDS: Final = ("tool", "agent", "workflow")

Application = Annotated[
    str | None,
    typer.Argument(
        metavar="APP",
        help="Where the application makes its crib, as module:name. Without it nothing is said of Python functions.",
        show_default=False,
    ),
]
Apply = Annotated[
    Path | None,
    typer.Option(
        "--apply",
        metavar="FOLDER",
        help="Definitions of agents, workflows and tools, in YAML or JSON, as they would be saved.",
        show_default=False,
    ),
]
Block = Annotated[list[str] | None, typer.Option("--block", metavar="TOOL", help="A tool that would be blocked.")]


@app.command("rehearse")
def rehearse(
    application: Application = None,
    *,
    apply: Apply = None,
    block: Block = None,
    store: Store = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Tell of every run that has not ended whether it would go on; the exit status is 1 if one would strand."""
    documents = _documents(apply)

    async def changes(crib: "Crib") -> None:
        for document in documents:
            await _save(crib, document)
        for tool in block or ():
            await crib.lifecycle.block(tool)

    async def work(crib: "Crib") -> "RehearsalReport":
        return await crib.rehearse(changes, functions_here=application is not None)

    report = with_crib(store, work) if application is None else asyncio.run(_in(application, store, work))
    if as_json:
        print(report.model_dump_json(indent=2))
    else:
        _print(report)
    raise typer.Exit(1 if report.strands else 0)


async def _in(
    application: str, store: str | None, work: "Callable[[Crib], Awaitable[RehearsalReport]]"
) -> "RehearsalReport":
    """Ask the application's own crib, which is not opened, so that nothing of it is saved."""
    from toolcrib.interfaces.cli.support.session import load_crib

    crib = load_crib(application, store=store)
    try:
        return await work(crib)
    finally:
        await crib.close()


def _documents(folder: Path | None) -> "list[JsonObject]":
    """The definitions of a folder: tools, agents and workflows, in this order, each by name of its file."""
    from toolcrib.contracts import NotFound

    if folder is None:
        return []
    files = sorted(file for file in folder.rglob("*") if file.suffix in _SUFFIXES)
    if not files:
        msg = f"there are no definitions in {folder}: files with {', '.join(sorted(_SUFFIXES))}"
        raise NotFound(msg)
    return sorted((object_in(file) for file in files), key=lambda document: _KINDS.index(_kind_of(document)))


def _kind_of(document: "JsonObject") -> str:
    if "implementation" in document:
        return "tool"
    return "workflow" if "steps" in document else "agent"


async def _save(crib: "Crib", document: "JsonObject") -> None:
    from toolcrib.contracts import AgentDefinition, ToolDefinition

    match _kind_of(document):
        case "tool":
            await crib.save(validated(ToolDefinition, document, f"tool {document.get('name')!r}"))
        case "workflow":
            await crib.workflows.publish(document)
        case _:
            await crib.agents.save(validated(AgentDefinition, document, f"agent {document.get('name')!r}"))


def _print(report: "RehearsalReport") -> None:
    from toolcrib.interfaces.cli.render.tables import print_rows

    rows = [
        (run.run_id, run.tool, run.status, run.verdict, "; ".join(reason.message for reason in run.reasons))
        for run in report.runs
        if run.verdict != "safe"
    ]
    if rows:
        print_rows(("Run", "Tool", "Status", "Verdict", "Why"), rows)
    counts = {verdict: len(report.of(verdict)) for verdict in ("safe", "needs_attention", "will_strand")}
    print(", ".join(f"{count} {verdict.replace('_', ' ')}" for verdict, count in counts.items()))

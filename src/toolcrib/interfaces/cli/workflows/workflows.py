"""`toolcrib workflow list`, `show`, `graph`, `export`, `check`, `impact`, `run`, `dry-run`: read and run workflows."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from toolcrib.interfaces.cli.render.console import console
from toolcrib.interfaces.cli.render.tables import print_impact, print_tools
from toolcrib.interfaces.cli.support.commands import Resource, is_unsuccessful, print_json, prints, shows
from toolcrib.interfaces.cli.support.inputs import json_object, object_in, text_of
from toolcrib.interfaces.cli.support.session import DEFAULT_STORE, AsJson, Store, with_crib
from toolcrib.interfaces.cli.workflows.instances import print_result

if TYPE_CHECKING:
    from toolcrib.contracts import ImpactReport, ToolRevision
    from toolcrib.contracts.workflows import WorkflowDefinition, WorkflowGraph, WorkflowInstance
    from toolcrib.crib import Crib

app = typer.Typer(help="Check, publish, draw and run workflows.", no_args_is_help=True)

Ref = Annotated[str, typer.Argument(metavar="NAME[@RANGE]", help="The workflow, as calls name it.", show_default=False)]
Name = Annotated[str, typer.Argument(metavar="NAME", help="The workflow's name.", show_default=False)]
File = Annotated[Path, typer.Argument(metavar="FILE", help="The definition, as YAML or JSON.", show_default=False)]
Input = Annotated[str, typer.Option("--input", metavar="JSON", help="The input, as a JSON object.")]
Format = Annotated[Literal["yaml", "json"], typer.Option("--format", help="Of the document.")]
_ANY = 1_000_000


def draw(graph: "WorkflowGraph") -> None:
    """Draw a graph on the terminal."""
    from toolcrib.interfaces.cli.render.graphs import draw_graph

    console().print(draw_graph(graph))


def _print_definition(found: "tuple[WorkflowDefinition, WorkflowGraph]") -> None:
    definition, graph = found
    for line in filter(None, (definition.title, definition.description)):
        print(line)
    draw(graph)


@app.command("show")
@shows(_print_definition, data=lambda found: found[0].document())
async def show(crib: "Crib", ref: Ref) -> "tuple[WorkflowDefinition, WorkflowGraph]":
    """Draw a workflow, or a deterministic agentic tool as a workflow, with its description."""
    return await _definition(crib, ref), await _graph(crib, ref)


@app.command("graph")
@shows(draw)
async def graph(crib: "Crib", ref: Ref) -> "WorkflowGraph":
    """Draw the steps of a workflow with the current state of each: ok, held or broken, and why."""
    return await _graph(crib, ref)


@app.command("export")
def export(ref: Ref, form: Format = "yaml", store: Store = DEFAULT_STORE) -> None:
    """Print the definition of a workflow, or of a deterministic agentic tool as one."""

    async def read(crib: "Crib") -> "WorkflowDefinition":
        return await _definition(crib, ref)

    document = with_crib(store, read).document()
    if form == "json":
        print_json(document)
        return
    import yaml

    print(yaml.safe_dump(document, sort_keys=False, allow_unicode=True), end="")


@app.command("check")
def check(file: File, store: Store = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """Report every problem of a definition by line; exit status 1 if it cannot be published."""
    document = object_in(file)
    found = with_crib(store, lambda crib: crib.workflows.check(document))
    if as_json:
        print_json(found)
    elif found.problems:
        print_problems(found, file)
    else:
        print(f"{file}: nothing is wrong with {found.workflow}")
    refuse_errors(found)


@app.command("impact")
@shows(print_impact)
async def impact(crib: "Crib", ref: Ref) -> "ImpactReport":
    """List what depends on a workflow, directly or indirectly, and its active runs."""
    return await crib.lifecycle.impact((await crib.workflows.get(ref)).ref)


@app.command("run")
@prints(print_result, fails=is_unsuccessful)
def run(ref: Ref, given: Input = "{}", store: Store = DEFAULT_STORE) -> "WorkflowInstance":
    """Run a workflow until it ends or waits, and print its output; one that fails ends with status 1."""
    arguments = json_object(given, "--input")
    return with_crib(store, lambda crib: crib.instances.start(ref, arguments))


@app.command("dry-run")
@prints(print_result, fails=is_unsuccessful)
def dry_run(ref: Ref, given: Input = "{}", store: Store = DEFAULT_STORE) -> "WorkflowInstance":
    """Run a workflow, skipping every call that would write."""
    arguments = json_object(given, "--input")
    return with_crib(store, lambda crib: crib.instances.start(ref, arguments, dry_run=True))


def print_problems(graph: "WorkflowGraph", file: Path | None) -> None:
    """Each problem with its place, in the file if it is known."""
    from toolcrib.crib.project.yaml_text import line_of

    text = None if file is None else text_of(file)
    for problem in graph.problems:
        place = graph.workflow if text is None else f"{file}:{line_of(text, problem.path)}"
        print(f"{place}: {'error' if problem.is_error else 'warning'}: {problem}")


def refuse_errors(graph: "WorkflowGraph") -> None:
    """End with status 1 if the definition could not be published."""
    if any(problem.is_error for problem in graph.problems):
        raise typer.Exit(1)


async def _definition(crib: "Crib", ref: str) -> "WorkflowDefinition":
    from toolcrib.contracts.workflows import WorkflowDefinition

    if await _is_agentic(crib, ref):
        return await crib.workflows.of(ref)
    return WorkflowDefinition.of((await crib.workflows.get(ref)).definition)


async def _graph(crib: "Crib", ref: str) -> "WorkflowGraph":
    if await _is_agentic(crib, ref):
        return await crib.workflows.check(await crib.workflows.of(ref))
    return await crib.workflows.graph(ref)


async def _is_agentic(crib: "Crib", ref: str) -> bool:
    who = await crib.authorize(newest=True)
    tool = crib.registry.find_by_ref(who.realm, ref)
    from toolcrib.contracts import AgenticImplementation

    return tool is not None and isinstance(tool.definition.implementation, AgenticImplementation)


async def _all(crib: "Crib") -> "Sequence[ToolRevision]":
    return (await crib.workflows.page(limit=_ANY)).items


WORKFLOWS: "Resource[ToolRevision]" = Resource(
    noun="workflow",
    name=Name,
    list=_all,
    table=print_tools,
    remove=lambda crib, name: crib.workflows.remove(name),
    help={"remove": "Remove a workflow from the catalogue; active runs continue."},
)
WORKFLOWS.add_to(app)

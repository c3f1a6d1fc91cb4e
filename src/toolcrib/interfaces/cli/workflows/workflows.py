"""`toolcrib workflow list`, `show`, `graph`, `export`, `check`, `impact`, `run`, `remove`: read and run workflows."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolcrib.interfaces.cli.render.console import JSON_ONLY, console
from toolcrib.interfaces.cli.render.tables import print_impact, print_tools
from toolcrib.interfaces.cli.support.commands import (
    HelpTexts,
    ItemFormat,
    Resource,
    is_unsuccessful,
    print_json,
    prints,
    shows,
)
from toolcrib.interfaces.cli.support.groups import CommandApp, command
from toolcrib.interfaces.cli.support.inputs import json_object, object_in, text_of
from toolcrib.interfaces.cli.support.session import DEFAULT_STORE, AsJson, DefinitionFile, Store, names_of, with_crib
from toolcrib.interfaces.cli.workflows.instances import print_result

if TYPE_CHECKING:
    from toolcrib.contracts import ImpactReport, JsonObject, ToolRevision
    from toolcrib.contracts.workflows import WorkflowDefinition, WorkflowGraph, WorkflowInstance
    from toolcrib.crib import Crib

app = CommandApp("Check, publish, draw and run workflows.")

Ref = Annotated[
    str,
    typer.Argument(
        metavar="NAME[@RANGE]",
        help="The workflow, as calls name it.",
        show_default=False,
        autocompletion=names_of("workflow"),
    ),
]
Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME", help="The workflow's name.", show_default=False, autocompletion=names_of("workflow")
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Skip every call that would write.")]
Input = Annotated[str, typer.Option("--input", metavar="JSON", help="The input, as a JSON object.")]
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


@command(app, "show", example="toolcrib workflow show follow-up")
@shows(_print_definition, data=lambda found: _document(found[0]))
async def show(crib: "Crib", ref: Ref) -> "tuple[WorkflowDefinition, WorkflowGraph]":
    """Draw a workflow, with its description.

    A deterministic agentic tool is drawn as a workflow.
    """
    return await _definition(crib, ref), await _graph(crib, ref)


@command(app, "graph", example="toolcrib workflow graph follow-up")
@shows(draw)
async def graph(crib: "Crib", ref: Ref) -> "WorkflowGraph":
    """Draw the steps of a workflow with their state.

    Each is ok, held or broken, with the reason.
    """
    return await _graph(crib, ref)


def _print_yaml(document: "JsonObject") -> None:
    import yaml

    print(yaml.safe_dump(document, sort_keys=False, allow_unicode=True), end="")


@command(app, "export", example="toolcrib workflow export follow-up > follow-up.yaml")
@shows(_print_yaml)
async def export(crib: "Crib", ref: Ref) -> "JsonObject":
    """Print the definition of a workflow as YAML.

    A deterministic agentic tool is printed as a workflow.
    """
    return _document(await _definition(crib, ref))


@command(app, "check", example="toolcrib workflow check follow-up.yaml")
def check(file: DefinitionFile, store: Store = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """Report every problem of a definition, by line.

    The exit status is 1 if it cannot be published.
    """
    document = object_in(file)
    found = with_crib(store, lambda crib: crib.workflows.check(document))
    if as_json:
        print_json(found)
    elif found.problems:
        print_problems(found, file)
    else:
        print(f"{file}: nothing is wrong with {found.workflow}")
    refuse_errors(found)


@command(app, "impact", example="toolcrib workflow impact follow-up")
@shows(print_impact)
async def impact(crib: "Crib", ref: Ref) -> "ImpactReport":
    """List what depends on a workflow, and its active runs."""
    return await crib.lifecycle.impact((await crib.workflows.get(ref)).ref)


@command(app, "run", example='toolcrib workflow run follow-up --input \'{"company": "Acme", "days": 30}\'')
@prints(print_result, fails=is_unsuccessful)
def run(ref: Ref, given: Input = "{}", dry_run: DryRun = False, store: Store = DEFAULT_STORE) -> "WorkflowInstance":
    """Run a workflow until it ends or waits.

    Its output is printed. The exit status is 1 if it fails.
    """
    arguments = json_object(given, "--input")
    return with_crib(store, lambda crib: crib.instances.start(ref, arguments, dry_run=dry_run))


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


def check_publishable(graph: "WorkflowGraph", file: Path | None) -> None:
    """Print the problems of a definition, and refuse it if it could not be published.

    Raises:
        InvalidDefinition: It could not, and `--json` was given; it has the problems.
        typer.Exit: It could not; the status is 1.
    """
    from toolcrib.contracts import InvalidDefinition

    errors = [each for each in graph.problems if each.is_error]
    if not JSON_ONLY.get():
        print_problems(graph, file)
        refuse_errors(graph)
    elif errors:
        told = [{"path": each.path, "problem": each.message} for each in errors]
        raise InvalidDefinition(f"workflow {graph.workflow} cannot be published; correct its problems", told)


def _document(definition: "WorkflowDefinition") -> "JsonObject":
    """A definition as people write it: without defaults, except those that tell one kind of part from another."""
    from toolcrib.crib.project.writing import tagged

    return tagged(definition, definition.document())


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
    remove=lambda crib, name: crib.workflows.remove(name),
    shown=ItemFormat(queried="workflows", table=print_tools),
    help=HelpTexts({"remove": "Remove a workflow.\n\nIts active runs continue."}, {"remove": " follow-up"}),
)
WORKFLOWS.add_to(app)

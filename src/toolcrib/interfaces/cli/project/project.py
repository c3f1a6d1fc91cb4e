"""`toolcrib apply`: makes a store equal to a folder of definitions, after a plan. `export`: its inverse. `init`."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from toolcrib.interfaces.cli.support.commands import print_json, shows
from toolcrib.interfaces.cli.support.session import DEFAULT_STORE, AsJson, Store, with_crib

if TYPE_CHECKING:
    from toolcrib.contracts import Json
    from toolcrib.contracts.projects import PlannedChange, ProjectPlan
    from toolcrib.crib import Crib
    from toolcrib.crib.project import Functions, PreparedPlan, Project

TO_DO, DECLINED = 2, 1
"""Exit statuses: there is something to do, and the plan was declined."""
_MARKS: Final = {"create": "+", "change": "~", "remove": "-"}
_LONGEST: Final = 60

Folder = Annotated[
    Path, typer.Argument(metavar="FOLDER", help="Documents in YAML or JSON, in any depth.", show_default=False)
]
Target = Annotated[
    Path,
    typer.Argument(metavar="FOLDER", file_okay=False, help="Where to; made if it is not there.", show_default=False),
]
PlanOnly = Annotated[
    bool, typer.Option("--plan", help="Print the plan and write nothing; exit status 2 if there is something to do.")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Apply without asking.")]
Adopt = Annotated[bool, typer.Option("--adopt", help="Own what others have made and the folder has documents for.")]
Application = Annotated[
    str | None,
    typer.Option(
        "--app",
        metavar="APP",
        help="The application with the project's Python functions, as module:name.",
        show_default=False,
    ),
]


def apply(
    folder: Folder,
    *,
    plan_only: PlanOnly = False,
    yes: Yes = False,
    adopt: Adopt = False,
    app: Application = None,
    store: Store = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Make the store equal to a folder of definitions; shows a plan and asks first.

    Only what an earlier apply of the same project made is removed.
    """
    project, functions = _read(folder), _functions(app, store)

    async def work(crib: "Crib") -> "ProjectPlan":
        prepared = await _prepare(crib, project, functions, adopt=adopt)
        if not as_json:
            _print_plan(prepared.plan)
        if plan_only or not prepared.is_needed:
            return prepared.plan
        if not yes:
            _ask(prepared.plan, as_json=as_json)
        return await prepared.apply(crib)

    done = with_crib(store, work, new=True)
    if as_json:
        print_json(done)
    elif done.applied:
        print("applied")
    if plan_only and done.to_do:
        raise typer.Exit(TO_DO)


def _print_written(found: "dict[str, list[str]]") -> None:
    print(f"wrote {len(found['written'])} files")
    for path in found["removed"]:
        print(f"removed {path}")


@shows(_print_written)
async def export(crib: "Crib", folder: Target) -> "dict[str, list[str]]":
    """Write the store's definitions into a folder, as toolcrib apply reads them; secrets stay references."""
    from toolcrib.crib.project import project_files, write_files

    files = await project_files(crib)
    return {"written": list(files), "removed": write_files(folder, files)}


NewFolder = Annotated[
    Path, typer.Argument(metavar="FOLDER", file_okay=False, help="Where to; the working directory by default.")
]
NEXT_COMMANDS: Final = (
    ("toolcrib apply definitions --app shop:crib --yes", "makes the store equal to the definitions"),
    ("toolcrib up shop:crib", "serves the tools; leave it running"),
    ('toolcrib tool call quote --input \'{"item": "hat"}\'', "calls a tool, in another terminal"),
    ("python -m pytest tests", "tests the project, without a key"),
)
"""What a new project can do at once, in this order, with what it is for."""


def init(folder: NewFolder = Path(), as_json: AsJson = False) -> None:
    """Make a project that runs: tools in YAML and Python, an agent, a workflow and a test."""
    from toolcrib.crib.project import start_project

    written = start_project(folder)
    if as_json:
        print_json({"written": written, "next": [command for command, _ in NEXT_COMMANDS]})
        return
    for path in written:
        print(f"wrote {folder / path}")
    print("\nNext:")
    if folder != Path():
        print(f"  cd {folder}")
    for command, purpose in NEXT_COMMANDS:
        print(f"  {command}\n      {purpose}")


def _read(folder: Path) -> "Project":
    from toolcrib.crib.project import InvalidProject, Project

    try:
        return Project.read(folder)
    except InvalidProject as problem:
        raise _told(problem) from None


async def _prepare(crib: "Crib", project: "Project", functions: "Functions | None", *, adopt: bool) -> "PreparedPlan":
    from toolcrib.crib.project import InvalidProject, prepare

    try:
        return await prepare(crib, project, adopt=adopt, functions=functions)
    except InvalidProject as problem:
        raise _told(problem) from None


def _told(problem: Exception) -> typer.Exit:
    """Print all problems of a project, one on a line; the exit status is that of invalid input."""
    from toolcrib.crib.project import InvalidProject

    for fault in problem.faults if isinstance(problem, InvalidProject) else ():
        print(f"{fault.file}:{fault.line}: error: {fault.message}", file=sys.stderr)
    return typer.Exit(2)


def _functions(application: str | None, store: str | None) -> "Functions | None":
    if application is None:
        return None
    from toolcrib.crib.project import functions_of
    from toolcrib.interfaces.cli.support.applications import load_crib

    return functions_of(application, load_crib(application, store=store))


def _ask(plan: "ProjectPlan", *, as_json: bool) -> None:
    from toolcrib.contracts import InvalidInput

    if as_json or not sys.stdin.isatty():
        raise InvalidInput("applying needs an answer, and no terminal is there to ask; add --yes, or --plan to look")
    question = "Apply this plan, with the dangerous changes above?" if plan.is_dangerous else "Apply this plan?"
    if not typer.confirm(question):
        raise typer.Exit(DECLINED)


def _print_plan(plan: "ProjectPlan") -> None:
    for change in plan.to_do:
        _print_change(change)
    for warning in plan.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    for need in plan.needs:
        if not need.present:
            print(f"{need.source}: {need.kind} {need.name!r}: {need.message}", file=sys.stderr)
    if not plan.to_do:
        print(f"no changes: project {plan.project!r} is as the store has it")
        return
    counts = plan.counts()
    print(", ".join(f"{counts[action]} to {action}" for action in _MARKS) + f", {counts['unchanged']} unchanged")


def _print_change(change: "PlannedChange") -> None:
    name = change.name if change.version is None else f"{change.name}@{change.version}"
    source = "" if change.source is None else f" ({change.source})"
    print(f"{_MARKS[change.action]} {change.kind} {name}{source}")
    for field in change.fields:
        print(f"    {field.place}: {_short(field.before)} -> {_short(field.after)}")
    for danger in change.dangers:
        print(f"    dangerous: {danger}")


def _short(value: "Json") -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"

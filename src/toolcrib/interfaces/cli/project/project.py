"""`toolcrib apply`: makes a store equal to a folder of definitions, after a plan. `export`: its inverse. `init`."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from toolcrib.interfaces.cli.render.progress import progress
from toolcrib.interfaces.cli.support.commands import print_json, prints, shows
from toolcrib.interfaces.cli.support.inputs import confirm
from toolcrib.interfaces.cli.support.session import DEFAULT_STORE, AsJson, Store, Yes, with_crib

if TYPE_CHECKING:
    from toolcrib.contracts import InvalidDefinition, Json
    from toolcrib.contracts.projects import PlannedChange, ProjectPlan
    from toolcrib.crib import Crib
    from toolcrib.crib.project import Functions, InvalidProject, PreparedPlan, Project
    from toolcrib.interfaces.cli.render.documents import NewProject, WrittenFiles

TO_DO = 2
"""Exit status of `--plan` if there is something to do."""
_MARKS: Final = {"create": "+", "change": "~", "remove": "-", "unchanged": "="}
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
Adopt = Annotated[bool, typer.Option("--adopt", help="Own what others have made and the folder has documents for.")]
Sync = Annotated[
    bool, typer.Option("--sync", help="Ask the addresses of imports again, also if their documents are the same.")
]
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
    sync: Sync = False,
    app: Application = None,
    store: Store = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Make the store equal to a folder of definitions.

    A plan is shown first, and a question is asked. Only what an earlier apply of the same project made is removed.
    """
    project, functions = _read(folder), _functions(app, store)

    async def work(crib: "Crib") -> "ProjectPlan":
        with progress(f"Planning {len(project.documents)} documents"):
            prepared = await _prepare(crib, project, functions, adopt=adopt, sync=sync)
        if not as_json:
            _print_plan(prepared.plan)
        if plan_only or not prepared.is_needed:
            return prepared.plan
        dangers = ", with the dangerous changes above" if prepared.plan.is_dangerous else ""
        confirm(f"Apply this plan{dangers}?", yes=yes)
        with progress(f"Applying {project.name}"):
            return await prepared.apply(crib)

    done = with_crib(store, work, new=True)
    if as_json:
        print_json(done)
    elif done.applied:
        print("applied")
    if plan_only and done.to_do:
        raise typer.Exit(TO_DO)


def _print_written(found: "WrittenFiles") -> None:
    print(f"wrote {len(found.written)} {'file' if len(found.written) == 1 else 'files'}")
    for path in found.removed:
        print(f"removed {path}")


@shows(_print_written)
async def export(crib: "Crib", folder: Target) -> "WrittenFiles":
    """Write the store's definitions into a folder.

    `toolcrib apply` reads them. Secrets stay references.
    """
    from toolcrib.crib.project import project_files, write_files
    from toolcrib.interfaces.cli.render.documents import WrittenFiles

    files = await project_files(crib)
    return WrittenFiles(written=tuple(files), removed=tuple(write_files(folder, files)))


NewFolder = Annotated[
    Path, typer.Argument(metavar="FOLDER", file_okay=False, help="Where to; the working directory by default.")
]
NEXT_COMMANDS: Final = (
    ("toolcrib apply definitions --app shop:crib --yes", "makes the store equal to the definitions"),
    ("toolcrib worker shop:crib", "runs the Python tools; leave it running"),
    ('toolcrib tool call quote --input \'{"item": "hat"}\'', "calls a tool, in another terminal in the same folder"),
    ("python -m pytest tests", "tests the project without a key, after `pip install pytest`"),
)
"""What a new project can do at once, in this order, with what it is for."""


def _print_project(found: "tuple[Path, NewProject]") -> None:
    folder, project = found
    for path in project.written:
        print(f"wrote {folder / path}")
    print("\nNext:")
    if folder != Path():
        print(f"  cd {folder}")
    for command, purpose in NEXT_COMMANDS:
        print(f"  {command}\n      {purpose}")


@prints(_print_project, data=lambda found: found[1])
def init(folder: NewFolder = Path()) -> "tuple[Path, NewProject]":
    """Make a project that runs.

    It has tools in YAML and Python, an agent, a workflow and a test.
    """
    from toolcrib.crib.project import start_project
    from toolcrib.interfaces.cli.render.documents import NewProject

    written = tuple(start_project(folder))
    return folder, NewProject(written=written, next=tuple(command for command, _ in NEXT_COMMANDS))


def _read(folder: Path) -> "Project":
    from toolcrib.crib.project import InvalidProject, Project

    try:
        return Project.read(folder)
    except InvalidProject as problem:
        raise _by_file(problem) from None


async def _prepare(
    crib: "Crib", project: "Project", functions: "Functions | None", *, adopt: bool, sync: bool
) -> "PreparedPlan":
    from toolcrib.crib.project import InvalidProject, prepare

    try:
        return await prepare(crib, project, adopt=adopt, functions=functions, sync=sync)
    except InvalidProject as problem:
        raise _by_file(problem) from None


def _by_file(problem: "InvalidProject") -> "InvalidDefinition":
    """The error of a project with `file` and `line` of each problem."""
    from toolcrib.contracts import InvalidDefinition

    told = [{"file": each.file, "line": each.line, "problem": each.message} for each in problem.faults]
    return InvalidDefinition(str(problem), told)


def _functions(application: str | None, store: str | None) -> "Functions | None":
    if application is None:
        return None
    from toolcrib.crib.project import functions_of
    from toolcrib.interfaces.cli.support.applications import load_crib

    return functions_of(application, load_crib(application, store=store))


def _print_plan(plan: "ProjectPlan") -> None:
    for change in plan.changes:
        if change.action != "unchanged" or change.drift is not None:
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
    told = [f"{number} {'' if action == 'unchanged' else 'to '}{action}" for action, number in counts.items()]
    print(", ".join(told))


def _print_change(change: "PlannedChange") -> None:
    name = change.name if change.version is None else f"{change.name}@{change.version}"
    source = "" if change.source is None else f" ({change.source})"
    print(f"{_MARKS[change.action]} {change.kind} {name}{source}")
    for field in change.fields:
        print(f"    {field.place}: {_short(field.before)} -> {_short(field.after)}")
    if change.drift is not None:
        print(f"    {change.drift}")
    for danger in change.dangers:
        print(f"    dangerous: {danger}")


def _short(value: "Json") -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"

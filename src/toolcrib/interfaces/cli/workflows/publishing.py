"""`toolcrib workflow publish`, `revert` and `materialize`: changes of workflows."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolcrib.interfaces.cli.render.console import JSON_ONLY
from toolcrib.interfaces.cli.render.tables import print_differences, print_impact
from toolcrib.interfaces.cli.support.commands import prints, says
from toolcrib.interfaces.cli.support.inputs import confirm, object_in
from toolcrib.interfaces.cli.support.session import DEFAULT_STORE, Store, Yes, run_ids, with_crib
from toolcrib.interfaces.cli.workflows.workflows import Name, check_publishable, draw

if TYPE_CHECKING:
    from toolcrib.contracts import JsonObject
    from toolcrib.contracts.workflows import (
        Materialized,
        MaterializePreview,
        Publication,
        WorkflowDefinition,
        WorkflowDraft,
    )
    from toolcrib.crib import Crib

Source = Annotated[
    str, typer.Argument(metavar="FILE|NAME", help="A definition, or the name of a draft.", show_default=False)
]
Number = Annotated[int, typer.Argument(metavar="REVISION", help="Number of the older revision.", show_default=False)]
PastRun = Annotated[
    str,
    typer.Option(
        "--run",
        metavar="ID",
        help="The instance, or the agent's run in it: its id, its first characters, or latest.",
        autocompletion=run_ids,
    ),
]
Preview = Annotated[bool, typer.Option("--preview", help="Only show what would change, and what is wrong with it.")]
NewStep = Annotated[str, typer.Option("--step", metavar="NAME", help="Name of the new step.")]
Node = Annotated[str | None, typer.Option("--node", metavar="STEP", help="The step that has asked the agent.")]
Pin = Annotated[str | None, typer.Option("--pin", metavar="HANDLE", help="The call that has filled this handle.")]
CallId = Annotated[str | None, typer.Option("--call", metavar="ID", help="Or this call.")]
At = Annotated[str | None, typer.Option("--position", metavar="POSITION", help="Or the call at this place of the run.")]

_SUFFIXES = {".yaml", ".yml", ".json"}


@prints("workflow {found.tool.ref} is published as revision {found.tool.revision}")
def publish(source: Source, yes: Yes = False, store: Store = DEFAULT_STORE) -> "Publication":
    """Publish a definition or a draft.

    What depends on it is shown first, and a question is asked.
    """
    file = Path(source) if Path(source).suffix in _SUFFIXES else None
    given = source if file is None else object_in(file)
    if isinstance(given, dict):
        given.pop("kind", None)

    async def ask_and_publish(crib: "Crib") -> "Publication":
        revision = await _show(crib, given, file)
        confirm("Publish it?", yes=yes)
        return await crib.workflows.publish(given, draft=revision)

    return with_crib(store, ask_and_publish, new=True)


@says("revision {revision} of workflow {name} is published again, as revision {found.tool.revision}")
async def revert(crib: "Crib", name: Name, revision: Number) -> "Publication":
    """Publish an older revision of a workflow again."""
    return await crib.workflows.revert(name, revision)


def _print_materialized(made: "Materialized | MaterializePreview") -> None:
    from toolcrib.contracts.workflows import MaterializePreview

    if isinstance(made, MaterializePreview):
        print(made.diff)
        for problem in made.problems:
            print(problem)
        for warning in made.warnings:
            print(warning)
        print("nothing was written")
        return
    print(made.note)
    for path in made.rewired:
        print(f"{path} reads {made.step} now")
    for path in made.left:
        print(f"{path} reads handles as before")
    name = made.definition.name
    print(f"publish it: toolcrib workflow publish {name}; undo it: toolcrib draft undo {name}")


@prints(_print_materialized)
def materialize(
    name: Name,
    *,
    run_id: PastRun,
    step: NewStep,
    node: Node = None,
    pin: Pin = None,
    call_id: CallId = None,
    position: At = None,
    preview: Preview = False,
    store: Store = DEFAULT_STORE,
) -> "Materialized | MaterializePreview":
    """Turn a call of an agent into a step of a draft.

    The draft is that of the workflow; it is made if there is none.
    """

    async def make(crib: "Crib") -> "Materialized | MaterializePreview":
        meant = await crib.ids.find("run", run_id)
        do = crib.workflows.preview_materialize if preview else crib.workflows.materialize
        return await do(name, run_id=meant, step=step, node=node, pin=pin, call_id=call_id, position=position)

    return with_crib(store, make)


async def _show(crib: "Crib", given: "JsonObject | str", file: Path | None) -> int | None:
    """What would be published, what is wrong with it, what it changes and whom; refuse it if it cannot be.

    Returns:
        The number of the draft's revision that was shown, if it is a draft.
    """
    drafted: WorkflowDefinition | JsonObject
    revision = None
    if isinstance(given, str):
        draft = await crib.workflows.get_draft(given)
        drafted, revision = draft.definition, draft.revision
        if not JSON_ONLY.get():
            _print_draft(draft)
    else:
        drafted = given
    found = await crib.workflows.check(drafted)
    check_publishable(found, file)
    if JSON_ONLY.get():
        return revision
    draw(found.model_copy(update={"problems": ()}))
    concerned = await crib.workflows.impact(drafted)
    if concerned is not None:
        if concerned.proposed is not None and concerned.proposed.differences:
            print_differences(concerned.proposed)
        print_impact(concerned)
    return revision


def _print_draft(draft: "WorkflowDraft") -> None:
    """Who has written a draft, and what there is to know of it."""
    author = f"draft {draft.definition.name} is by {draft.made_by}"
    if draft.authored_by is not None:
        author = f"draft {draft.definition.name} was written by agent {draft.authored_by}, in run {draft.run_id}"
    print(author)
    if draft.tainted_by is not None:
        print(f"before that the run had read untrusted content: {draft.tainted_by}")
    if draft.note:
        print(draft.note)

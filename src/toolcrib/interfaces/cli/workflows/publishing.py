"""`toolcrib workflow draft`, `drafts`, `discard`, `undo`, `publish`, `revert`, `remove`, `materialize`: drafts."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolcrib.interfaces.cli.support.inputs import object_in
from toolcrib.interfaces.cli.support.session import DEFAULT_STORE, AsJson, Store, with_crib
from toolcrib.interfaces.cli.workflows.workflows import File, draw, print_problems, refuse_errors

if TYPE_CHECKING:
    from toolcrib.contracts import JsonObject
    from toolcrib.contracts.workflows import Materialized, Publication, WorkflowDefinition, WorkflowDraft
    from toolcrib.crib import Crib

Name = Annotated[str, typer.Argument(metavar="NAME", help="The workflow's name.", show_default=False)]
Source = Annotated[
    str, typer.Argument(metavar="FILE|NAME", help="A definition, or the name of a draft.", show_default=False)
]
Note = Annotated[str, typer.Option("--note", metavar="TEXT", help="A note for the person who publishes it.")]
Yes = Annotated[bool, typer.Option("--yes", help="Publish without asking.")]
Number = Annotated[int, typer.Argument(metavar="REVISION", help="Number of the older revision.", show_default=False)]
PastRun = Annotated[str, typer.Option("--run", metavar="ID", help="The instance, or the agent's run in it.")]
NewStep = Annotated[str, typer.Option("--step", metavar="NAME", help="Name of the new step.")]
Node = Annotated[str | None, typer.Option("--node", metavar="STEP", help="The step that has asked the agent.")]
Pin = Annotated[str | None, typer.Option("--pin", metavar="HANDLE", help="The call that has filled this handle.")]
CallId = Annotated[str | None, typer.Option("--call", metavar="ID", help="Or this call.")]
At = Annotated[str | None, typer.Option("--position", metavar="POSITION", help="Or the call at this place of the run.")]

_SUFFIXES = {".yaml", ".yml", ".json"}


def draft(file: File, note: Note = "", store: Store = DEFAULT_STORE) -> None:
    """Save a definition as a draft. It must be publishable; it cannot run yet."""
    document = object_in(file)

    async def keep(crib: "Crib") -> int | None:
        found = await crib.workflows.check(document)
        print_problems(found, file)
        refuse_errors(found)
        return (await crib.workflows.draft(document, note=note)).revision

    revision = with_crib(store, keep, new=True)
    print(f"draft {document['name']} is kept as revision {revision}")


def drafts(store: Store = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """List the drafts."""
    found = with_crib(store, lambda crib: crib.workflows.drafts())
    if as_json:
        print(json.dumps([each.model_dump(mode="json") for each in found], indent=2, ensure_ascii=False))
        return
    from toolcrib.interfaces.cli.render.tables import print_rows

    rows = [
        (
            each.definition.name,
            str(each.revision),
            each.authored_by or each.made_by,
            f"{each.created_at:%Y-%m-%d %H:%M:%S}",
            each.note,
        )
        for each in found
    ]
    print_rows(("Draft", "Revision", "By", "At (UTC)", "Note"), rows)


def discard(name: Name, store: Store = DEFAULT_STORE) -> None:
    """Delete a draft; published revisions stay."""
    with_crib(store, lambda crib: crib.workflows.discard(name))
    print(f"draft {name} is discarded")


def undo(name: Name, store: Store = DEFAULT_STORE) -> None:
    """Undo the last change of a draft."""
    before = with_crib(store, lambda crib: crib.workflows.undo(name))
    what = "there was none before" if before is None else f"it is as it was, in revision {before.revision}"
    print(f"the last change of draft {name} is taken back; {what}")


def publish(source: Source, yes: Yes = False, store: Store = DEFAULT_STORE) -> None:
    """Publish a definition or a draft, after showing what depends on it."""
    file = Path(source) if Path(source).suffix in _SUFFIXES else None
    given = source if file is None else object_in(file)

    async def ask_and_publish(crib: "Crib") -> "Publication":
        seen = await _tell(crib, given, file)
        if not yes:
            typer.confirm("publish it?", abort=True)
        return await crib.workflows.publish(given, draft=seen)

    done = with_crib(store, ask_and_publish, new=True)
    print(f"workflow {done.tool.ref} is published as revision {done.tool.revision}")


def revert(name: Name, revision: Number, store: Store = DEFAULT_STORE) -> None:
    """Publish an older revision of a workflow again."""

    async def go_back(crib: "Crib") -> "Publication":
        return await crib.workflows.revert(name, revision)

    done = with_crib(store, go_back)
    print(f"revision {revision} of workflow {name} is published again, as revision {done.tool.revision}")


def remove(name: Name, store: Store = DEFAULT_STORE) -> None:
    """Remove a workflow from the catalogue; active runs continue."""
    with_crib(store, lambda crib: crib.workflows.remove(name))
    print(f"workflow {name} is removed")


def materialize(
    name: Name,
    *,
    run_id: PastRun,
    step: NewStep,
    node: Node = None,
    pin: Pin = None,
    call_id: CallId = None,
    position: At = None,
    store: Store = DEFAULT_STORE,
) -> None:
    """Turn a call that an agent made into a step of the workflow's draft."""

    async def make(crib: "Crib") -> "Materialized":
        return await crib.workflows.materialize(
            name, run_id=run_id, step=step, node=node, pin=pin, call_id=call_id, position=position
        )

    made = with_crib(store, make)
    print(made.note)
    for path in made.rewired:
        print(f"{path} reads {made.step} now")
    for path in made.left:
        print(f"{path} reads handles as it did")
    print(f"publish it: toolcrib workflow publish {name}; take it back: toolcrib workflow undo {name}")


async def _tell(crib: "Crib", given: "JsonObject | str", file: Path | None) -> int | None:
    """What would be published, what is wrong with it, what it changes and whom; refuse it if it cannot be.

    Returns:
        The number of the draft's revision that was told of, if it is one.
    """
    from toolcrib.interfaces.cli.render.tables import print_differences, print_impact

    drafted: WorkflowDefinition | JsonObject
    revision = None
    if isinstance(given, str):
        draft = await crib.workflows.get_draft(given)
        drafted, revision = draft.definition, draft.revision
        _print_draft(draft)
    else:
        drafted = given
    found = await crib.workflows.check(drafted)
    print_problems(found, file)
    refuse_errors(found)
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

"""`toolcrib workflow draft`, `drafts`, `discard`, `undo`, `publish`, `revert`, `remove`, `materialize`: drafts."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolcrib.interfaces.cli.render.tables import print_differences, print_impact
from toolcrib.interfaces.cli.support.commands import Table, says, shows
from toolcrib.interfaces.cli.support.inputs import object_in
from toolcrib.interfaces.cli.support.session import DEFAULT_STORE, Store, with_crib
from toolcrib.interfaces.cli.workflows.workflows import File, Name, draw, print_problems, refuse_errors

if TYPE_CHECKING:
    from toolcrib.contracts import JsonObject
    from toolcrib.contracts.workflows import Materialized, Publication, WorkflowDefinition, WorkflowDraft
    from toolcrib.crib import Crib

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


_DRAFTS: "Table[WorkflowDraft]" = Table(
    {
        "Draft": lambda each: each.definition.name,
        "Revision": lambda each: each.revision,
        "By": lambda each: each.authored_by or each.made_by,
        "At (UTC)": lambda each: each.created_at,
        "Note": lambda each: each.note,
    }
)


@shows(_DRAFTS)
async def drafts(crib: "Crib") -> "Sequence[WorkflowDraft]":
    """List the drafts."""
    return await crib.workflows.drafts()


@says("draft {name} is discarded")
async def discard(crib: "Crib", name: Name) -> None:
    """Delete a draft; published revisions stay."""
    await crib.workflows.discard(name)


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
        revision = await _tell(crib, given, file)
        if not yes:
            typer.confirm("publish it?", abort=True)
        return await crib.workflows.publish(given, draft=revision)

    done = with_crib(store, ask_and_publish, new=True)
    print(f"workflow {done.tool.ref} is published as revision {done.tool.revision}")


@says("revision {revision} of workflow {name} is published again, as revision {found.tool.revision}")
async def revert(crib: "Crib", name: Name, revision: Number) -> "Publication":
    """Publish an older revision of a workflow again."""
    return await crib.workflows.revert(name, revision)


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
        The number of the draft's revision that was shown, if it is a draft.
    """
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

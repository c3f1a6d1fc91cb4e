"""`toolcrib draft`: drafts of workflows, which cannot run until they are published."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from toolcrib.interfaces.cli.support.commands import Table, print_json, prints, says, shows
from toolcrib.interfaces.cli.support.groups import CommandApp, command
from toolcrib.interfaces.cli.support.inputs import object_in
from toolcrib.interfaces.cli.support.session import (
    DEFAULT_STORE,
    DefinitionFile,
    Filter,
    Sort,
    Store,
    names_of,
    with_crib,
)
from toolcrib.interfaces.cli.workflows.workflows import check_publishable

if TYPE_CHECKING:
    from toolcrib.contracts.workflows import WorkflowDraft
    from toolcrib.crib import Crib
    from toolcrib.interfaces.cli.render.documents import Removed, UndoneChange

app = CommandApp("Write drafts of workflows, before they are published.")

Name = Annotated[
    str,
    typer.Argument(metavar="NAME", help="The draft's name.", show_default=False, autocompletion=names_of("draft")),
]
Note = Annotated[str, typer.Option("--note", metavar="TEXT", help="A note for the person who publishes it.")]


@command(app, "add", example="toolcrib draft add follow-up.yaml")
@prints("draft {found.definition.name} is saved as revision {found.revision}")
def add(file: DefinitionFile, note: Note = "", store: Store = DEFAULT_STORE) -> "WorkflowDraft":
    """Save a workflow from a file as a draft.

    It must be publishable; it cannot run yet.
    """
    document = object_in(file)
    document.pop("kind", None)

    async def save(crib: "Crib") -> "WorkflowDraft":
        check_publishable(await crib.workflows.check(document), file)
        return await crib.workflows.draft(document, note=note)

    return with_crib(store, save, new=True)


_DRAFTS: "Table[WorkflowDraft]" = Table(
    {
        "Draft": lambda each: each.definition.name,
        "Revision": lambda each: each.revision,
        "By": lambda each: each.authored_by or each.made_by,
        "At (UTC)": lambda each: each.created_at,
        "Note": lambda each: each.note,
    }
)


@command(app, "list", example="toolcrib draft list")
@shows(_DRAFTS)
async def list_drafts(crib: "Crib", filter: Filter = None, sort: Sort = None) -> "Sequence[WorkflowDraft]":
    """List the drafts."""
    return crib.queries.select("drafts", await crib.workflows.drafts(), filter=filter, sort=sort)


def _print_draft(found: "WorkflowDraft") -> None:
    _DRAFTS([found])
    print_json(found.definition.document())


@command(app, "show", example="toolcrib draft show follow-up")
@shows(_print_draft)
async def show(crib: "Crib", name: Name) -> "WorkflowDraft":
    """Print a draft, with its author and note."""
    return await crib.workflows.get_draft(name)


@command(app, "remove", example="toolcrib draft remove follow-up")
@says("draft {name} is removed")
async def remove(crib: "Crib", name: Name) -> "Removed":
    """Remove a draft.

    Published revisions of the workflow stay.
    """
    from toolcrib.interfaces.cli.render.documents import Removed

    await crib.workflows.discard(name)
    return Removed(kind="draft", name=name)


def _print_undone(found: "UndoneChange") -> None:
    now = "there was none before" if found.draft is None else f"it is as it was, in revision {found.draft.revision}"
    print(f"the last change of draft {found.name} is undone; {now}")


@command(app, "undo", example="toolcrib draft undo follow-up")
@shows(_print_undone)
async def undo(crib: "Crib", name: Name) -> "UndoneChange":
    """Undo the last change of a draft."""
    from toolcrib.interfaces.cli.render.documents import UndoneChange

    return UndoneChange(name=name, draft=await crib.workflows.undo(name))

"""Routes over drafts of workflows: kept beside what is published, and run by nobody."""

from typing import Final

from fastapi import APIRouter, Response

from toolcrib.contracts import Principal
from toolcrib.contracts.workflows import WorkflowDraft
from toolcrib.core.policy import permits
from toolcrib.interfaces.server.http.context_part import Caller, House, demand
from toolcrib.interfaces.server.http.desk import Author
from toolcrib.interfaces.server.http.parsing import JsonRoute
from toolcrib.interfaces.server.http.requests import IfMatch, expected_revision
from toolcrib.interfaces.server.views.workflows import DraftBody, DraftPage, Undone, refuse_other_name

router = APIRouter(prefix="/ai/drafts", route_class=JsonRoute, tags=["workflows"])

_LOOKS: Final = ("read", "write", "publish")
"""Who may do one of these with a workflow may see its draft."""


@router.get("")
async def list_drafts(crib: House, caller: Caller) -> DraftPage:
    """The drafts of workflows that the caller may see, by name."""
    found = await crib.workflows.drafts(principal=caller)
    return DraftPage(items=tuple(draft for draft in found if _may_see(caller, draft.definition.name)))


@router.get("/{name}")
async def get_draft(name: str, crib: House, caller: Caller, response: Response) -> WorkflowDraft:
    """A draft, with what is wrong with it by now; the header `ETag` names its revision."""
    if not _may_see(caller, name):
        demand(caller, _uri(name, "read"))
    return _named(await crib.workflows.get_draft(name, principal=caller), response)


@router.put("/{name}")
async def save_draft(
    name: str, body: DraftBody, *, author: Author, caller: Caller, response: Response, if_match: IfMatch = None
) -> WorkflowDraft:
    """Keep a definition beside the published one. It must be one that could be published."""
    demand(caller, _uri(name, "write"))
    refuse_other_name(name, body.definition)
    saved = await author.draft(body.definition, note=body.note, after=expected_revision(if_match))
    return _named(saved, response)


@router.post("/{name}/undo")
async def undo_draft(name: str, crib: House, caller: Caller) -> Undone:
    """Take the last change of a draft back, whoever made it: a person, an agent, or a call that was materialized."""
    demand(caller, _uri(name, "write"))
    return Undone(draft=await crib.workflows.undo(name, principal=caller))


@router.delete("/{name}", status_code=204)
async def discard_draft(name: str, crib: House, caller: Caller) -> None:
    """Take a draft out; the published workflow of its name stays."""
    demand(caller, _uri(name, "write"))
    await crib.workflows.discard(name, principal=caller)


def _named(draft: WorkflowDraft, response: Response) -> WorkflowDraft:
    response.headers["ETag"] = f'"{draft.revision}"'
    return draft


def _may_see(caller: Principal, name: str) -> bool:
    return any(permits(caller.grants, _uri(name, verb)) for verb in _LOOKS)


def _uri(name: str, verb: str) -> str:
    return f"ai://workflows/{name}/{verb}"

"""Routes of workflows and their drafts: check, publish, read as documents and graphs, revert and remove them."""

from typing import Annotated, Final

from fastapi import Body, Query, Response

from toolcrib.contracts import ImpactReport, Principal, ToolRevision
from toolcrib.contracts.workflows import (
    Materialized,
    MaterializePreview,
    WorkflowDefinition,
    WorkflowDraft,
    WorkflowGraph,
    WorkflowImplementation,
)
from toolcrib.core.policy import permits
from toolcrib.core.registry import Facet
from toolcrib.crib import ActingCrib
from toolcrib.interfaces.server.http.caller_rights import Author, Caller, CribDep, demand, demand_sight, demand_write
from toolcrib.interfaces.server.http.document import REVISION
from toolcrib.interfaces.server.http.requests import IfMatch, Routes, expected_revision, name_revision
from toolcrib.interfaces.server.queries import ALL, After, Filter, Limit, ListLimit, Sort, add_queries, to_page
from toolcrib.interfaces.server.views.agent_views import RemovalView, remove_tool
from toolcrib.interfaces.server.views.workflow_views import (
    DOCUMENT,
    Document,
    DocumentFormat,
    DraftBody,
    DraftPage,
    MaterializeBody,
    PublicationView,
    PublishBody,
    RevertBody,
    Undone,
    WorkflowPage,
    WorkflowRevisions,
    WorkflowValidity,
    WorkflowView,
    document_of,
    name_in,
    refuse_other_name,
)

router = Routes(prefix="/ai/workflows", tags=("workflows",))

_Version = Annotated[str | None, Query(description="A version of it; the one that a call gets if not given.")]


add_queries(router, "workflows", WorkflowPage, WorkflowView.of_revision)


@router.get("")
async def list_workflows(
    *,
    crib: CribDep,
    q: str | None = None,
    category: str | None = None,
    tag: str | None = None,
    filter: Filter = None,
    sort: Sort = None,
    after: str = "",
    limit: Limit = 50,
) -> WorkflowPage:
    """Workflows by name, page by page; `q` is looked for in names, titles, descriptions and tags."""
    facets: dict[Facet, str | None] = {"category": category, "tag": tag}
    page = await crib.listing.query(
        "workflows", filter=filter, sort=sort, after=after, limit=limit, text=q, facets=facets
    )
    return to_page(WorkflowPage, page, WorkflowView.of_revision)


@router.post("/validate")
async def validate_workflow(definition: Annotated[Document, Body()], author: Author) -> WorkflowValidity:
    """All that is wrong with a definition, with the place of each, and its graph; nothing is stored.

    For those who may write drafts of it, and see the tools that it calls.
    """
    demand(author.caller, f"ai://workflows/{name_in(definition)}/write")
    await author.demand_parts(definition)
    return WorkflowValidity.of(await author.crib.workflows.check(definition))


@router.get("/{name}", responses=REVISION)
async def get_workflow(
    name: str, crib: CribDep, caller: Caller, response: Response, version: _Version = None
) -> WorkflowView:
    """A workflow as it is published; the header `ETag` names the revision."""
    return _to_view(await find_workflow(crib, caller, name, version), response)


@router.get("/{name}/revisions")
async def list_workflow_revisions(name: str, crib: CribDep, caller: Caller) -> WorkflowRevisions:
    """All that was ever published under this name."""
    workflow = await find_workflow(crib, caller, name)
    found = await crib.registry.revisions(caller.realm, workflow.name)
    return WorkflowRevisions(
        items=tuple(
            WorkflowView.of_revision(tool)
            for tool in found
            if isinstance(tool.definition.implementation, WorkflowImplementation)
        )
    )


@router.get("/{name}/graph")
async def get_workflow_graph(name: str, crib: CribDep, caller: Caller, version: _Version = None) -> WorkflowGraph:
    """All steps and edges with their current states: ok, held or broken, and why."""
    workflow = await find_workflow(crib, caller, name, version)
    return await crib.workflows.graph(_ref(workflow.name, version))


@router.get("/{name}/impact")
async def get_workflow_impact(name: str, crib: CribDep, caller: Caller, version: _Version = None) -> ImpactReport:
    """The impact of the workflow: what is bound to it, directly or through others, and its active runs.

    For those who may publish it.
    """
    workflow = await find_workflow(crib, caller, name, version)
    demand_write(caller, workflow.definition)
    return await crib.lifecycle.impact(_ref(workflow.name, version))


@router.get("/{name}/export", responses=DOCUMENT)
async def export_workflow(
    name: str,
    crib: CribDep,
    caller: Caller,
    *,
    version: _Version = None,
    form: Annotated[DocumentFormat, Query(alias="format")] = "json",
) -> Response:
    """The document that makes the same workflow when it is published in another crib."""
    workflow = await find_workflow(crib, caller, name, version)
    return document_of(WorkflowDefinition.of(workflow.definition), form)


@router.post("/{name}/publish")
async def publish_workflow(
    name: str,
    *,
    body: Annotated[PublishBody, Body(default_factory=PublishBody)],
    author: Author,
    response: Response,
    if_match: IfMatch = None,
) -> PublicationView:
    """Publish the draft of this name, or a definition, as the newest revision; the response has its impact."""
    if body.definition is not None:
        refuse_other_name(name, body.definition)
    published = await author.publish(
        name, body.definition, after=expected_revision(if_match), draft=body.draft_revision
    )
    name_revision(response, published.tool)
    return PublicationView.of(published)


@router.post("/{name}/revert")
async def revert_workflow(
    name: str, body: RevertBody, *, crib: CribDep, caller: Caller, response: Response, if_match: IfMatch = None
) -> PublicationView:
    """Make an older revision the newest one again."""
    await find_workflow(crib, caller, name)
    published = await crib.workflows.revert(name, body.revision, after=expected_revision(if_match))
    name_revision(response, published.tool)
    return PublicationView.of(published)


@router.post("/{name}/materialize")
async def materialize_call(name: str, body: MaterializeBody, crib: CribDep, caller: Caller) -> Materialized:
    """Turn a call that an agent has made in a run into a step of its own: one change of the workflow's draft."""
    workflow = await find_workflow(crib, caller, name)
    demand(caller, workflow.definition.security("write"))
    return await crib.workflows.materialize(name, **dict(body))


@router.post("/{name}/materialize/preview")
async def preview_materialized_call(
    name: str, body: MaterializeBody, crib: CribDep, caller: Caller
) -> MaterializePreview:
    """What turning a call into a step would change, with the difference and all problems. Nothing is written."""
    workflow = await find_workflow(crib, caller, name)
    demand(caller, workflow.definition.security("write"))
    return await crib.workflows.preview_materialize(name, **dict(body))


@router.delete("/{name}")
async def remove_workflow(name: str, crib: CribDep, caller: Caller) -> RemovalView:
    """Remove a workflow from the catalogue. Active runs keep their revision; publishing restores it."""
    workflow = await find_workflow(crib, caller, name)
    demand_write(caller, workflow.definition)
    return await remove_tool(crib, caller, workflow)


async def find_workflow(crib: ActingCrib, caller: Principal, name: str, version: str | None = None) -> ToolRevision:
    """A workflow that the caller may see.

    Raises:
        NotFound: There is no such workflow; it may be a tool of another kind.
        PermissionDenied: No grant of the caller's names it.
    """
    workflow = await crib.workflows.get(_ref(name, version))
    demand_sight(caller, workflow.definition)
    return workflow


def _ref(name: str, version: str | None) -> str:
    return f"{name}@={version}" if version else name


def _to_view(workflow: ToolRevision, response: Response) -> WorkflowView:
    name_revision(response, workflow)
    return WorkflowView.of_revision(workflow)


drafts_router = Routes(prefix="/ai/drafts", tags=("workflows",))

_LOOKS: Final = ("read", "write", "publish")
"""Who may do one of these with a workflow may see its draft."""


add_queries(drafts_router, "drafts", DraftPage)


@drafts_router.get("")
async def list_drafts(
    crib: CribDep,
    filter: Filter = None,
    sort: Sort = None,
    after: After = None,
    limit: ListLimit = None,
) -> DraftPage:
    """The drafts of workflows that the caller may see, by name."""
    return to_page(
        DraftPage, await crib.queries.page("drafts", filter=filter, sort=sort, after=after, limit=limit or ALL)
    )


@drafts_router.get("/{name}", responses=REVISION)
async def get_draft(name: str, crib: CribDep, caller: Caller, response: Response) -> WorkflowDraft:
    """A draft, with what is wrong with it by now; the header `ETag` names its revision."""
    if not _may_see(caller, name):
        demand(caller, _uri(name, "read"))
    return _with_etag(await crib.workflows.get_draft(name), response)


@drafts_router.put("/{name}")
async def save_draft(
    name: str, body: DraftBody, *, author: Author, caller: Caller, response: Response, if_match: IfMatch = None
) -> WorkflowDraft:
    """Keep a definition beside the published one. It must be one that could be published."""
    demand(caller, _uri(name, "write"))
    refuse_other_name(name, body.definition)
    saved = await author.draft(body.definition, note=body.note, after=expected_revision(if_match))
    return _with_etag(saved, response)


@drafts_router.post("/{name}/undo")
async def undo_draft(name: str, crib: CribDep, caller: Caller) -> Undone:
    """Undo the last change of a draft, by a person, an agent, or a materialized call."""
    demand(caller, _uri(name, "write"))
    return Undone(draft=await crib.workflows.undo(name))


@drafts_router.delete("/{name}", status_code=204)
async def discard_draft(name: str, crib: CribDep, caller: Caller) -> None:
    """Take a draft out; the published workflow of its name stays."""
    demand(caller, _uri(name, "write"))
    await crib.workflows.discard(name)


def _with_etag(draft: WorkflowDraft, response: Response) -> WorkflowDraft:
    name_revision(response, draft)
    return draft


def _may_see(caller: Principal, name: str) -> bool:
    return any(permits(caller.grants, _uri(name, verb)) for verb in _LOOKS)


def _uri(name: str, verb: str) -> str:
    return f"ai://workflows/{name}/{verb}"

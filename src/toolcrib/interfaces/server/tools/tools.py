"""Routes of the catalogue: list, create, change and remove tools, and import an OpenAPI document."""

from typing import Annotated, Final, TypeAlias, cast

from fastapi import Query, Response

from toolcrib.contracts import (
    InvalidInput,
    JsonObject,
    NotFound,
    PermissionDenied,
    Principal,
    ToolDefinition,
    ToolRevision,
)
from toolcrib.contracts.providers.tool_access import ToolAccess
from toolcrib.core.registry import Facet, references_of
from toolcrib.crib import ActingCrib
from toolcrib.interfaces.server.http.caller_rights import (
    Author,
    Caller,
    CribDep,
    DefinitionWriter,
    demand_import,
    demand_sight,
    demand_write,
)
from toolcrib.interfaces.server.http.document import REVISION
from toolcrib.interfaces.server.http.errors import apply_patch
from toolcrib.interfaces.server.http.requests import (
    IfMatch,
    Routes,
    expected_revision,
    name_revision,
    refuse_new_name,
)
from toolcrib.interfaces.server.queries import Filter, Limit, Sort, add_queries
from toolcrib.interfaces.server.views.agent_views import AnyDefinition
from toolcrib.interfaces.server.views.run_views import (
    DefinitionBody,
    ImportBody,
    ImportView,
    ListedStatus,
    Problem,
    ToolKind,
    ToolPage,
    ToolRevisions,
    ToolView,
    Validity,
    listed_state,
)

_GRPC: Final = ("grpc://", "grpcs://")

Access: TypeAlias = Annotated[
    bool, Query(description="Also say what stands between the caller and the system behind each tool.")
]

router = Routes(prefix="/ai/tools", tags=("tools",))


add_queries(router, "tools", ToolPage, ToolView.of)


@router.get("")
async def list_tools(
    *,
    crib: CribDep,
    kind: ToolKind | None = None,
    category: str | None = None,
    tag: str | None = None,
    status: ListedStatus | None = None,
    q: str | None = None,
    search: str | None = None,
    access: Access = False,
    filter: Filter = None,
    sort: Sort = None,
    after: str = "",
    limit: Limit = 50,
) -> ToolPage:
    """Tools by name, page by page; `q` is looked for in names, titles, descriptions and tags.

    With `search`, the tools that do what it says instead, best first and on one page. Deprecated and blocked tools are
    listed only if `status` asks for them: `deprecated`, `blocked`, or `all`, or if there is a `filter`.
    """
    state = listed_state(status, filter)
    if search is not None:
        hits = await crib.listing.search(search, limit=limit, status=state)
        return await ToolPage.of(crib, [tool for tool, _ in hits], access=access)
    facets: dict[Facet, str | None] = {
        "kind": kind,
        "category": category,
        "tag": tag,
        "status": state,
    }
    page = await crib.listing.query("tools", filter=filter, sort=sort, after=after, limit=limit, text=q, facets=facets)
    return await ToolPage.of(crib, page.items, next=page.next, access=access)


@router.post("", status_code=201)
async def create_tool(definition: DefinitionBody, author: Author, response: Response) -> ToolView:
    """Store the first revision of a new tool."""
    return _to_view(await author.create(definition, response, path=router.prefix), response)


@router.post("/validate")
async def validate_definition(body: AnyDefinition, author: Author, crib: CribDep) -> Validity:
    """Whether a definition, or the flat form of an agentic tool, would be stored; nothing is."""
    definition = body if isinstance(body, ToolDefinition) else body.definition()
    try:
        author.check(definition)
        checked = await crib.check(definition)
    except (InvalidInput, NotFound, PermissionDenied) as problem:
        return Validity(valid=False, problems=(Problem(path="", problem=str(problem)),))
    return Validity(valid=True, warnings=tuple(await crib.lifecycle.warnings(checked)))


@router.post("/import", status_code=201)
async def import_document(body: ImportBody, crib: CribDep, caller: Caller) -> ImportView:
    """Make a provider and one tool per operation of an OpenAPI document or gRPC server."""
    named = () if body.auth is None else references_of(body.auth)
    await demand_import(crib, caller, body.name, named=named, accept=body.accept)
    if body.document is None and (body.url or "").startswith(_GRPC):
        served = await crib.imports.grpc(
            str(body.url),
            name=body.name,
            descriptors=body.descriptors,
            auth=body.auth,
            accept=body.accept,
        )
        return ImportView.of(served)
    document = _document(body)
    imported = await crib.imports.openapi(
        document,
        name=body.name,
        base_url=body.base_url,
        auth=body.auth,
        overrides=body.overrides,
        bounds=body.bounds,
        accept=body.accept,
    )
    return ImportView.of(imported)


@router.get("/{name}", responses=REVISION)
async def get_tool(name: str, crib: CribDep, caller: Caller, response: Response, *, access: Access = False) -> ToolView:
    """A tool as a call without a version gets it; the header `ETag` names the revision."""
    tool = await _find(crib, caller, name)
    found = await crib.connections.access(tool) if access else [None]
    name_revision(response, tool)
    return ToolView.of(tool, found[0])


@router.get("/{name}/revisions")
async def list_tool_revisions(name: str, crib: CribDep, caller: Caller) -> ToolRevisions:
    """All revisions of a tool, oldest first."""
    tool = await _find(crib, caller, name)
    return ToolRevisions(items=tuple(await crib.registry.revisions(caller.realm, tool.name)))


@router.get("/{name}/access")
async def get_tool_access(name: str, crib: CribDep, caller: Caller) -> ToolAccess:
    """What stands between the caller and the system behind a tool: its sign-in, and where its secrets come from."""
    [found] = await crib.connections.access(await _find(crib, caller, name))
    return found


@router.put("/{name}")
async def replace_tool(
    name: str,
    definition: DefinitionBody,
    *,
    author: Author,
    crib: CribDep,
    caller: Caller,
    response: Response,
    if_match: IfMatch = None,
) -> ToolView:
    """Store a new revision; the content of the current one is that revision."""
    await crib.authorize(newest=True)
    current = crib.registry.require(caller.realm, name)
    return await _revise(author, current, definition, response, after=expected_revision(if_match))


@router.patch("/{name}")
async def change_tool(
    name: str,
    patch: JsonObject,
    *,
    author: Author,
    crib: CribDep,
    caller: Caller,
    response: Response,
    if_match: IfMatch = None,
) -> ToolView:
    """Store a new revision that differs by a JSON Merge Patch (RFC 7396): what is null goes, what is given replaces.

    With `If-Match`, the change is refused if there is a newer revision; without it, if one was made
    while the patch was applied.
    """
    await crib.authorize(newest=True)
    current = crib.registry.require(caller.realm, name)
    demand_write(caller, current.definition)
    definition = apply_patch(ToolDefinition, current.definition.model_dump(mode="json"), patch)
    return await _revise(author, current, definition, response, after=expected_revision(if_match, current.revision))


@router.delete("/{name}", status_code=204)
async def remove_tool(name: str, crib: CribDep, caller: Caller) -> None:
    """Remove a tool from the catalogue; active runs keep their revision."""
    await crib.authorize(newest=True)
    tool = crib.registry.require(caller.realm, name)
    demand_write(caller, tool.definition)
    await crib.registry.remove(caller.realm, tool.name)


async def _revise(
    author: DefinitionWriter,
    current: ToolRevision,
    definition: ToolDefinition,
    response: Response,
    *,
    after: int | None,
) -> ToolView:
    refuse_new_name(current, definition.name)
    demand_write(author.caller, current.definition)
    return _to_view(await author.save(definition, after=after), response)


async def _find(crib: ActingCrib, caller: Principal, name: str) -> ToolRevision:
    await crib.authorize(newest=True)
    tool = crib.registry.require(caller.realm, name)
    demand_sight(caller, tool.definition)
    return tool


def _to_view(tool: ToolRevision, response: Response) -> ToolView:
    name_revision(response, tool)
    return ToolView.of(tool)


def _document(body: ImportBody) -> JsonObject | str:
    if (body.document is None) == (body.url is None):
        msg = "an import takes either `document` or `url`; give one of them"
        raise InvalidInput(msg)
    if body.url is None:
        inline = cast("JsonObject | str", body.document)
        return inline if isinstance(inline, dict) else "\n" + inline  # a text is never taken for an address
    if not body.url.startswith(("http://", "https://")):
        msg = f"url {body.url[:200]!r} is not an http, https, grpc or grpcs address; give an absolute one"
        raise InvalidInput(msg)
    return body.url

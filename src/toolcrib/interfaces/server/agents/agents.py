"""Routes of agents: their definitions, and the tools that an agent would have."""

from collections.abc import Mapping
from typing import Annotated

from fastapi import Query, Response

from toolcrib.contracts import AgentDefinition, JsonObject, Principal, ResolvedTool, ToolRevision
from toolcrib.core.registry import Facet, means_many
from toolcrib.crib import ActingCrib
from toolcrib.interfaces.server.http.caller_rights import Author, Caller, CribDep, demand_sight, demand_write, may_see
from toolcrib.interfaces.server.http.document import REVISION
from toolcrib.interfaces.server.http.errors import merge_patch
from toolcrib.interfaces.server.http.requests import (
    IfMatch,
    Routes,
    expected_revision,
    name_revision,
    refuse_new_name,
)
from toolcrib.interfaces.server.queries import ALL, Count, Filter, Limit, Sort, to_page
from toolcrib.interfaces.server.views.agent_views import (
    AgentDocument,
    AgentFilter,
    AgentPage,
    AgentQuery,
    AgentTools,
    AgentView,
    RemovalView,
    remove_tool,
)

router = Routes(prefix="/ai/agents", tags=("agents",))


@router.get("")
async def list_agents(
    *,
    crib: CribDep,
    q: str | None = None,
    filter: Filter = None,
    sort: Sort = None,
    after: str = "",
    limit: Limit = 50,
) -> AgentPage:
    """Agents by name, page by page; `q` is looked for in names, titles, descriptions and tags."""
    return await _page(crib, AgentQuery(text=q, filter=filter, sort=sort, after=after, limit=limit))


@router.post("/query")
async def query_agents(body: AgentQuery, crib: CribDep) -> AgentPage:
    """Agents that fit, by name, page by page."""
    return await _page(crib, body)


@router.get("/count")
async def count_agents(crib: CribDep, wanted: Annotated[AgentFilter, Query()]) -> Count:
    """How many agents fit, of those that the caller may see."""
    facets, fits = _facets(wanted), wanted.fits
    found = await crib.listing.query(
        "agents", filter=wanted.filter, limit=ALL, text=wanted.text, facets=facets, fits=fits
    )
    return Count(count=len(found.items))


@router.post("", status_code=201)
async def create_agent(body: AgentDocument, author: Author, response: Response) -> AgentView:
    """Store the first revision of a new agent."""
    agent = await author.agent_of(body)
    return _to_view(await author.create(agent.tool(), response, path=router.prefix), response)


@router.get("/{name}", responses=REVISION)
async def get_agent(name: str, crib: CribDep, caller: Caller, response: Response) -> AgentView:
    """An agent as a request without a version gets it; the header `ETag` names the revision."""
    return _to_view(await find_agent(crib, caller, name), response)


@router.put("/{name}")
async def replace_agent(
    name: str,
    body: AgentDocument,
    *,
    author: Author,
    crib: CribDep,
    caller: Caller,
    response: Response,
    if_match: IfMatch = None,
) -> AgentView:
    """Store a new revision; with `If-Match`, only if there is no newer one."""
    current = await find_agent(crib, caller, name)
    agent = await author.agent_of(body)
    return _to_view(await _save(author, current, agent, expected_revision(if_match)), response)


@router.patch("/{name}")
async def change_agent(
    name: str,
    patch: JsonObject,
    *,
    author: Author,
    crib: CribDep,
    caller: Caller,
    response: Response,
    if_match: IfMatch = None,
) -> AgentView:
    """Store a new revision that differs by a JSON Merge Patch (RFC 7396).

    With `If-Match`, the change is refused if there is a newer revision; without it, if one was made
    while the patch was applied.
    """
    current = await find_agent(crib, caller, name)
    demand_write(caller, current.definition)
    before = AgentDefinition.of(current.definition).model_dump(mode="json")
    agent = await author.agent_of(merge_patch(before, patch))
    return _to_view(await _save(author, current, agent, expected_revision(if_match, current.revision)), response)


@router.delete("/{name}")
async def remove_agent(name: str, crib: CribDep, caller: Caller) -> RemovalView:
    """Remove an agent from the catalogue. Active runs keep their revision; conversations remain readable."""
    agent = await find_agent(crib, caller, name)
    demand_write(caller, agent.definition)
    return await remove_tool(crib, caller, agent)


@router.get("/{name}/tools")
async def list_agent_tools(
    name: str,
    crib: CribDep,
    caller: Caller,
    message: Annotated[str | None, Query(description="What it would be asked; decides if there are too many.")] = None,
) -> AgentTools:
    """The tools that the agent would have now: those it sees, those it can find, and what is left out and why.

    An agent that acts as an account may have tools by a pattern that the caller may not see; those are left out.
    """
    await find_agent(crib, caller, name)
    found = await crib.agents.tools(name, message=message)
    return AgentTools(items=tuple(item for item in found if _is_told(crib, caller, item)))


async def find_agent(crib: ActingCrib, caller: Principal, name: str) -> ToolRevision:
    """An agent that the caller may see.

    Raises:
        NotFound: There is no such agent.
        PermissionDenied: No grant of the caller's names it.
    """
    agent = await crib.agents.get(name)
    demand_sight(caller, agent.definition)
    return agent


def _is_told(crib: ActingCrib, caller: Principal, item: ResolvedTool) -> bool:
    """Whether the agent's definition names a tool anyway, or the caller may see it."""
    if item.content_hash is None or not means_many(item.reference):
        return True
    tool = crib.registry.find_by_ref(caller.realm, item.tool)
    return tool is not None and may_see(caller, tool.definition)


def _facets(wanted: AgentFilter) -> Mapping[Facet, str | None]:
    return {"category": wanted.category, "tag": wanted.tag}


async def _page(crib: ActingCrib, wanted: AgentQuery) -> AgentPage:
    page = await crib.listing.query(
        "agents",
        filter=wanted.filter,
        sort=wanted.sort,
        after=wanted.after,
        limit=wanted.limit,
        text=wanted.text,
        facets=_facets(wanted),
        fits=wanted.fits,
    )
    return to_page(AgentPage, page, AgentView.of_revision)


async def _save(author: Author, current: ToolRevision, body: AgentDefinition, after: int | None) -> ToolRevision:
    refuse_new_name(current, body.name)
    return await author.save(body.tool(), after=after)


def _to_view(agent: ToolRevision, response: Response) -> AgentView:
    name_revision(response, agent)
    return AgentView.of_revision(agent)

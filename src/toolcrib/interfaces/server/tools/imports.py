"""Routes of imports: import tools, sync a provider, and decide on changes that a provider made."""

from typing import Annotated, Any

from fastapi import Body, Query, Response

from toolcrib.contracts import (
    AutoDiscover,
    Baseline,
    Contract,
    ImpactReport,
    Principal,
    ProviderSync,
    ToolReview,
)
from toolcrib.core.kinds import Importer, ImportSource
from toolcrib.crib import ActingCrib
from toolcrib.interfaces.server.http.caller_rights import (
    Caller,
    CribDep,
    demand_import,
    demand_write,
    may_see,
    may_write,
)
from toolcrib.interfaces.server.http.requests import Routes, name_revision
from toolcrib.interfaces.server.views.base import ListView
from toolcrib.interfaces.server.views.run_views import ImportView, StatusBody, ToolPage, ToolView
from toolcrib.kinds.table import importers

imports_router = Routes()


class ResyncBody(Contract):
    """How changes are accepted."""

    accept: bool = False
    """As in an import."""


def _add_import(importer: Importer[Any], command: str) -> None:
    """The route of one importer; its body is the importer's source."""

    async def import_tools(body: ImportSource, crib: CribDep, caller: Caller) -> ImportView:
        await demand_import(crib, caller, body.name, named=body.references, accept=body.accept)
        return ImportView.of(await crib.imports.read(body))

    import_tools.__annotations__["body"] = importer.source
    import_tools.__doc__ = importer.summary
    path = f"/ai/tools/{importer.path or command}"
    name = command.replace("-", "_")
    imports_router.add_api_route(path, import_tools, methods=["POST"], status_code=201, tags=["tools"], name=name)


for _importer in importers():
    if _importer.command is not None:
        _add_import(_importer, _importer.command)


@imports_router.post("/providers/{name}/sync", tags=["providers"])
async def sync_provider(
    name: str, crib: CribDep, caller: Caller, body: Annotated[ResyncBody, Body(default_factory=ResyncBody)]
) -> ImportView:
    """Import a provider again from where it was imported: its server, its database, or the address of its document."""
    await demand_import(crib, caller, name, named=(), accept=False)  # it stays where it is
    return ImportView.of(await crib.imports.sync(name, accept=body.accept))


@imports_router.put("/providers/{name}/schedule", tags=["providers"])
async def schedule_provider(name: str, body: AutoDiscover, crib: CribDep, caller: Caller) -> ProviderSync:
    """Have serving processes sync a provider by themselves, at an interval or at times."""
    await demand_import(crib, caller, name, named=(), accept=False)
    return await crib.imports.schedule(name, body)


@imports_router.delete("/providers/{name}/schedule", tags=["providers"])
async def unschedule_provider(name: str, crib: CribDep, caller: Caller) -> ProviderSync:
    """End the schedule of a provider: it is then synced only on request."""
    await demand_import(crib, caller, name, named=(), accept=False)
    return await crib.imports.schedule(name, None)


databases_router = Routes(prefix="/ai/tools", tags=("tools",))


@databases_router.get("/generated")
async def list_generated(
    crib: CribDep, caller: Caller, after: str = "", limit: Annotated[int, Query(ge=1, le=200)] = 50
) -> ToolPage:
    """Tools that were made of entities, by name, page by page."""
    await crib.authorize(newest=True)
    found = [
        tool
        for tool in crib.registry.current(caller.realm)
        if tool.name > after and tool.definition.source == "auto_generated" and may_see(caller, tool.definition)
    ]
    page = found[:limit]
    return await ToolPage.of(crib, page, next=page[-1].name if len(found) > limit else None)


router = Routes(prefix="/ai", tags=("tools",))


@router.post("/tools/{name}/status")
async def set_status(name: str, body: StatusBody, crib: CribDep, caller: Caller) -> ToolView:
    """Deprecate, block or reactivate a version."""
    ref = await _writable(crib, caller, name, body.version)
    life, message, replacement = crib.lifecycle, body.message, body.replacement
    match body.status:
        case "deprecated":
            changed = await life.deprecate(ref, message=message, sunset=body.sunset, replacement=replacement)
        case "blocked":
            changed = await life.block(ref, message=message, replacement=replacement)
        case "active":
            changed = await life.activate(ref)
    return ToolView.of(changed)


@router.get("/tools/{name}/impact")
async def get_impact(name: str, crib: CribDep, caller: Caller, version: str | None = None) -> ImpactReport:
    """Everything that is bound to a tool, directly or through others, and the active runs that have pinned it.

    If its provider proposes a change, the verdicts show its effect. For callers who may change the tool.
    """
    return await crib.lifecycle.impact(await _writable(crib, caller, name, version))


@router.get("/tools/{name}/review")
async def review_tool(name: str, crib: CribDep, caller: Caller) -> ToolReview:
    """An imported tool as it is and as its provider proposes it, with the difference."""
    return await crib.lifecycle.review(await _writable(crib, caller, name))


@router.post("/tools/{name}/accept")
async def accept_change(name: str, crib: CribDep, caller: Caller, response: Response) -> ToolView:
    """Adopt the change that the provider proposes as a new revision; a tool that was blocked for it is active again."""
    tool = await crib.lifecycle.accept(await _writable(crib, caller, name))
    name_revision(response, tool)
    return ToolView.of(tool)


@router.post("/tools/{name}/reject")
async def reject_change(name: str, crib: CribDep, caller: Caller) -> ToolView:
    """Reject the change that the provider proposes. A tool that was blocked for it stays blocked."""
    return ToolView.of(await crib.lifecycle.reject(await _writable(crib, caller, name)))


@router.get("/proposals")
async def list_proposals(crib: CribDep, caller: Caller) -> ListView[Baseline]:
    """The tools with proposed changes that wait for a person, by name."""
    await crib.authorize(newest=True)
    found = await crib.lifecycle.proposals()
    known = ((baseline, crib.registry.find(caller.realm, baseline.tool, None)) for baseline in found)
    return ListView[Baseline](
        items=tuple(baseline for baseline, tool in known if tool is not None and may_write(caller, tool.definition))
    )


async def _writable(crib: ActingCrib, caller: Principal, name: str, version: str | None = None) -> str:
    """The reference to a tool that the caller may change."""
    await crib.authorize(newest=True)
    ref = f"{name}@={version}" if version else name
    demand_write(caller, crib.registry.require(caller.realm, ref).definition)
    return ref

"""Routes over the life of tools: their state, whom they concern, and what their providers want to change."""

from fastapi import APIRouter, Response

from toolcrib.contracts import Baseline, Contract, ImpactReport, Principal, ToolReview, ToolRevision
from toolcrib.crib import Crib
from toolcrib.interfaces.server.http.context import demand_write, may_write
from toolcrib.interfaces.server.http.context_part import Caller, House
from toolcrib.interfaces.server.http.parsing import JsonRoute
from toolcrib.interfaces.server.http.requests import name_revision
from toolcrib.interfaces.server.views.common import StatusBody

router = APIRouter(prefix="/ai", route_class=JsonRoute, tags=["tools"])


class ProposalPage(Contract):
    """Tools of which a provider wants a change."""

    items: tuple[Baseline, ...]


@router.post("/tools/{name}/status")
async def set_status(name: str, body: StatusBody, crib: House, caller: Caller) -> ToolRevision:
    """Deprecate, block or bring back a version."""
    ref = await _writable(crib, caller, name, body.version)
    life = crib.lifecycle
    match body.status:
        case "deprecated":
            return await life.deprecate(
                ref, message=body.message, sunset=body.sunset, replacement=body.replacement, principal=caller
            )
        case "blocked":
            return await life.block(ref, message=body.message, replacement=body.replacement, principal=caller)
        case "active":
            return await life.activate(ref, principal=caller)


@router.get("/tools/{name}/impact")
async def get_impact(name: str, crib: House, caller: Caller, version: str | None = None) -> ImpactReport:
    """Everything that is bound to a tool, directly or through others, and the runs under way that have pinned it.

    If its provider wants a change, the verdicts tell what that would do. For those who may change the tool.
    """
    return await crib.lifecycle.impact(await _writable(crib, caller, name, version), principal=caller)


@router.get("/tools/{name}/review")
async def review_tool(name: str, crib: House, caller: Caller) -> ToolReview:
    """An imported tool as it is and as its provider wants it, with the difference."""
    return await crib.lifecycle.review(await _writable(crib, caller, name), principal=caller)


@router.post("/tools/{name}/accept")
async def accept_change(name: str, crib: House, caller: Caller, response: Response) -> ToolRevision:
    """Take over what the provider wants to change, as a new revision; what was blocked for it is active again."""
    tool = await crib.lifecycle.accept(await _writable(crib, caller, name), principal=caller)
    name_revision(response, tool)
    return tool


@router.post("/tools/{name}/reject")
async def reject_change(name: str, crib: House, caller: Caller) -> ToolRevision:
    """Drop what the provider wants to change. A tool that was blocked for it stays blocked."""
    return await crib.lifecycle.reject(await _writable(crib, caller, name), principal=caller)


@router.get("/proposals")
async def list_proposals(crib: House, caller: Caller) -> ProposalPage:
    """The tools of which a provider wants a change that waits for a person, by name."""
    await crib.enter(caller, newest=True)
    found = await crib.lifecycle.proposals(principal=caller)
    known = ((baseline, crib.registry.find(caller.realm, baseline.tool, None)) for baseline in found)
    return ProposalPage(
        items=tuple(baseline for baseline, tool in known if tool is not None and may_write(caller, tool.definition))
    )


async def _writable(crib: Crib, caller: Principal, name: str, version: str | None = None) -> str:
    """The reference to a tool that the caller may change."""
    await crib.enter(caller, newest=True)
    ref = f"{name}@={version}" if version else name
    demand_write(caller, crib.registry.require(caller.realm, ref).definition)
    return ref

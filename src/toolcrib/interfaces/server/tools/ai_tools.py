"""The list of all tools in short, whatever they are made of (000, section 4.9), and their descriptions for others."""

from typing import Annotated

from fastapi import APIRouter, Query

from toolcrib.contracts import JsonObject
from toolcrib.core.export_part import ExportFormat
from toolcrib.interfaces.server.http.context import demand_sight
from toolcrib.interfaces.server.http.context_part import Caller, House
from toolcrib.interfaces.server.http.parsing import JsonRoute
from toolcrib.interfaces.server.views.agents import AiToolPage, AiToolView, ToolType, type_of

router = APIRouter(prefix="/ai-tools", route_class=JsonRoute, tags=["tools"])


@router.get("")
async def list_ai_tools(
    *,
    crib: House,
    caller: Caller,
    level: Annotated[ToolType | None, Query(alias="type")] = None,
    after: str = "",
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> AiToolPage:
    """Tools of every type by name, page by page."""
    page = await crib.listing.page(
        after=after, limit=limit, fits=lambda tool: level in (None, type_of(tool.definition)), principal=caller
    )
    items = tuple(AiToolView.of(tool) for tool in page.items)
    return AiToolPage(items=items, next=page.items[-1].name if page.more else None)


@router.get("/{name}/tools/{form}")
async def export_ai_tool(name: str, form: ExportFormat, crib: House, caller: Caller) -> JsonObject:
    """A tool of any type in the shape of another system."""
    await crib.enter(caller, newest=True)
    demand_sight(caller, crib.registry.require(caller.realm, name).definition)
    return (await crib.export(name, form=form, principal=caller))[0]

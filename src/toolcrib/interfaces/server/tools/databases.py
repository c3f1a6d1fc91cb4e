"""Routes over databases: their tables become tools, and what was generated is listed (004, Tool APIs)."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import ConfigDict, Field

from toolcrib.contracts import Contract, EntityOperation
from toolcrib.interfaces.server.http.context import demand_import, may_see
from toolcrib.interfaces.server.http.context_part import Caller, House
from toolcrib.interfaces.server.http.parsing import JsonRoute
from toolcrib.interfaces.server.views.common import ImportView, ToolPage
from toolcrib.kinds.entity.importer import EntityOptions

router = APIRouter(prefix="/ai/tools", route_class=JsonRoute, tags=["tools"])


class TableBody(Contract):
    """Choices for one table; what is left out follows from it."""

    singular: str | None = None
    plural: str | None = None
    description: str | None = None
    category: str | None = None
    exclude: frozenset[EntityOperation] = frozenset()
    searchable: tuple[str, ...] | None = None
    read_only: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    version: str | None = None
    """Column that changes with each update."""


class GenerateBody(Contract):
    """A database whose tables become tools."""

    model_config = ConfigDict(defer_build=False)

    name: str
    """Name of the provider that it becomes."""
    url: str
    """Reference to its URL, such as `${env:TOOLCRIB_SECRET_SHOP_URL}`; never the URL."""
    table_schema: str | None = None
    """The database's schema; its default one if null."""
    tables: tuple[str, ...] | None = None
    """All if null."""
    options: dict[str, TableBody] = Field(default_factory=dict)
    """Choices by table."""


@router.post("/generate", status_code=201)
async def generate_tools(body: GenerateBody, crib: House, caller: Caller) -> ImportView:
    """Make a provider of a database, and tools of its tables, by what it tells of itself."""
    await demand_import(crib, caller, body.name, named=(body.url,), accept=False)
    imported = await crib.imports.database(
        name=body.name,
        url=body.url,
        schema=body.table_schema,
        tables=body.tables,
        options={table: EntityOptions(**dict(choices)) for table, choices in body.options.items()},
        principal=caller,
    )
    return ImportView.of(imported)


@router.get("/generated")
async def list_generated(
    crib: House, caller: Caller, after: str = "", limit: Annotated[int, Query(ge=1, le=200)] = 50
) -> ToolPage:
    """Tools that were made of entities, by name, page by page."""
    await crib.enter(caller, newest=True)
    found = [
        tool
        for tool in crib.registry.current(caller.realm)
        if tool.name > after and tool.definition.source == "auto_generated" and may_see(caller, tool.definition)
    ]
    return ToolPage(items=tuple(found[:limit]), next=found[limit - 1].name if len(found) > limit else None)

"""Routes over MCP servers: one becomes a provider with its tools, and a provider is asked again what it offers."""

from typing import Annotated

from fastapi import APIRouter, Body
from pydantic import ConfigDict, Field

from toolcrib.contracts import Contract, McpTransport, ProviderAuth
from toolcrib.core.registry import references_of
from toolcrib.interfaces.server.http.context import demand_import
from toolcrib.interfaces.server.http.context_part import Caller, House
from toolcrib.interfaces.server.http.parsing import JsonRoute
from toolcrib.interfaces.server.views.common import ImportView

router = APIRouter(route_class=JsonRoute)


class McpImportBody(Contract):
    """An MCP server: at a URL, or a program that the operator has allowed."""

    model_config = ConfigDict(defer_build=False)

    name: str
    """Name of the provider that it becomes."""
    url: str = ""
    transport: McpTransport = "streamable_http"
    command: tuple[str, ...] = ()
    """Program and arguments, instead of a URL."""
    environment: dict[str, str] = Field(default_factory=dict)
    """Variables of the program: text, or references such as `${env:NAME}`."""
    auth: ProviderAuth | None = None
    accept: bool = False
    """Take over also changes that could harm callers, which otherwise wait for a person."""


class ResyncBody(Contract):
    """How what has changed is taken in."""

    model_config = ConfigDict(defer_build=False)

    accept: bool = False
    """As in an import."""


@router.post("/ai/tools/import-mcp", status_code=201, tags=["tools"])
async def import_mcp_server(body: McpImportBody, crib: House, caller: Caller) -> ImportView:
    """Make a provider of an MCP server, and a tool of everything that it offers."""
    named = (*body.environment.values(), *(() if body.auth is None else references_of(body.auth)))
    await demand_import(crib, caller, body.name, named=named, accept=body.accept)
    imported = await crib.imports.mcp(
        body.url,
        name=body.name,
        transport=body.transport,
        command=body.command,
        environment=body.environment,
        auth=body.auth,
        accept=body.accept,
        principal=caller,
    )
    return ImportView.of(imported)


@router.post("/providers/{name}/sync", tags=["providers"])
async def sync_provider(
    name: str, crib: House, caller: Caller, body: Annotated[ResyncBody, Body(default_factory=ResyncBody)]
) -> ImportView:
    """Ask a provider's server (MCP, or gRPC with reflection) again what it offers, and take in what is new."""
    await demand_import(crib, caller, name, named=(), accept=False)  # it stays where it is
    return ImportView.of(await crib.imports.sync(name, accept=body.accept, principal=caller))

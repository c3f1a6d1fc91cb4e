"""The ASGI application: routes, middleware, and a lifespan during which the crib is open and drives its runs."""

import asyncio
import contextlib
import logging
import re
from collections.abc import AsyncGenerator
from typing import Any, Final

from fastapi import FastAPI, Security
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from toolcrib.contracts import JsonSchema, ToolcribError
from toolcrib.contracts.base.base import release
from toolcrib.contracts.schemas import contract_schemas
from toolcrib.crib import Crib
from toolcrib.crib.maintenance import maintenance_loop
from toolcrib.interfaces.mcp.http import PATHS, SSE_PATHS, McpEndpoint, mcp_routes
from toolcrib.interfaces.server.a2a.agent_address import PATTERNS, A2aEndpoint
from toolcrib.interfaces.server.agents import agents, executions, named, triggers
from toolcrib.interfaces.server.agui import endpoint as agui
from toolcrib.interfaces.server.http.access_tokens import WELL_KNOWN, AccessTokens
from toolcrib.interfaces.server.http.caller_rights import BEARER
from toolcrib.interfaces.server.http.document import API, complete
from toolcrib.interfaces.server.http.errors import on_http_error, on_invalid_request, on_toolcrib_error
from toolcrib.interfaces.server.http.keys import Authenticator
from toolcrib.interfaces.server.http.middleware import Authentication, BodyCap, Failures
from toolcrib.interfaces.server.http.requests import OtherPath
from toolcrib.interfaces.server.openai import routes as openai
from toolcrib.interfaces.server.openai.error_bodies import openai_error
from toolcrib.interfaces.server.runs import calls, runs
from toolcrib.interfaces.server.tools import agentic, imports, models, providers, tools
from toolcrib.interfaces.server.views.run_views import Health
from toolcrib.interfaces.server.workflows import instances, workflows

MAX_BODY_BYTES: Final = 5 * 1024 * 1024
MAX_FILES_BODY_BYTES: Final = 29 * 1024 * 1024
"""Of a message to an agent, whose files may have 20 MB: as base64 they are 28 MB."""
_WITH_FILES: Final = re.compile(
    r"/api/v1/ai/agents/[^/]+/execute(/\w+)?|/api/v1/ai/conversations/[^/]+/continue"
    r"|/v1/(chat/completions|responses)|/(ag-ui|a2a)/.*"
)
"""The paths that take such messages."""
OPEN_PATHS: Final = frozenset({"/health", "/openapi.json", "/docs", providers.CALLBACK})
"""The paths that need no key."""

_PARTS: Final = (
    calls.router,  # before those whose paths have a name where it says `invoke`
    executions.agent_runs_router,
    agents.router,
    agentic.router,
    agentic.agentic_runs_router,
    agentic.ai_tools_router,
    imports.databases_router,  # before those whose paths have a name where it says `generated`
    imports.router,
    imports.imports_router,
    tools.router,
    models.router,
    runs.router,
    runs.forks_router,
    calls.approvals_router,
    providers.router,
    providers.providers,
    providers.usage_router,
    providers.connections,
    providers.secrets_router,
    executions.router,
    triggers.router,
    *named.routers,
    workflows.drafts_router,
    workflows.router,
    instances.runs,
    instances.router,
)
_OTHER_PATHS: Final = {
    "/ai/tool-providers{rest:path}": "/providers",
    "/ai/tools/import/mcp": "/ai/tools/import-mcp",
}
"""Paths of the specifications, and the paths that they have here."""
_RESTART_S: Final = 1.0
_logger = logging.getLogger(__name__)


class _Application(FastAPI):
    """FastAPI with the whole OpenAPI document."""

    def openapi(self) -> dict[str, Any]:
        """The document, which is made when it is first asked for."""
        if self.openapi_schema is None:
            self.openapi_schema = complete(super().openapi())
        return self.openapi_schema


def create_app(
    crib: Crib,
    authenticate: Authenticator,
    *,
    allow_local_models: bool = False,
    self_approval: bool = False,
    drain_s: float = 5.0,
    tokens: AccessTokens | None = None,
) -> FastAPI:
    """The REST surface of a crib as an ASGI application.

    The application's lifespan opens the crib, drives its queued, woken and recovered runs, and closes it.

    Args:
        crib: What the routes act on; it must not be open in another event loop.
        authenticate: Tells who holds a bearer token: `KeyRing.authenticate`, or the application's own.
        allow_local_models: Definitions over HTTP may name models on local addresses, such as `ollama:…`.
        self_approval: Who has started a run, or acts in it, may decide on its calls.
        drain_s: Seconds for active calls to end when the application stops.
        tokens: Recognises the access tokens of an authorization server, which MCP clients may use besides keys.
    """
    app = _Application(
        title="Toolcrib",
        version=release(),
        summary="Governed, observable, durable tools for AI agents.",
        lifespan=_life,
        redoc_url=None,
        swagger_ui_oauth2_redirect_url=None,
        generate_unique_id_function=_operation_id,
        middleware=_middleware(authenticate, tokens),
        exception_handlers={
            ToolcribError: on_toolcrib_error,
            HTTPException: on_http_error,
            RequestValidationError: on_invalid_request,
        },
    )
    app.state.crib = crib
    app.state.allow_local_models = allow_local_models
    app.state.self_approval = self_approval
    app.state.drain_s = drain_s
    app.state.mcp = McpEndpoint(crib, self_approval=self_approval)
    needs_key = Security(BEARER)
    for part in _PARTS:
        part.add_to(app.router, API, needs_key)
    openai.router.add_to(app.router, openai.PREFIX, needs_key, openai.ERRORS)
    app.state.error_dialects = {f"{openai.PREFIX}/": openai_error}
    app.add_api_route(f"{API}/schemas", _schemas, tags=["schemas"], dependencies=[needs_key])
    agui.router.add_to(app.router, "", needs_key)
    triggers.hooks.add_to(app.router, "", None)
    app.router.routes += mcp_routes(app.state.mcp)
    if tokens is not None:
        app.router.routes += _resource_routes(tokens)
    by_a2a = A2aEndpoint(crib)
    for path in PATTERNS:
        app.router.routes.append(Route(path, by_a2a))
    for other, path in _OTHER_PATHS.items():
        app.router.routes.append(Route(f"{API}{other}", OtherPath(app.router, f"{API}{path}")))
    app.add_api_route("/health", _health, tags=["health"])
    return app


def _middleware(authenticate: Authenticator, tokens: AccessTokens | None) -> list[Middleware]:
    return [
        Middleware(Failures),
        Middleware(BodyCap, limit=MAX_BODY_BYTES, wider=(_WITH_FILES, MAX_FILES_BODY_BYTES)),
        Middleware(
            Authentication,
            authenticate=authenticate,
            open_paths=OPEN_PATHS,
            open_prefixes=(triggers.HOOKS, WELL_KNOWN) if tokens is not None else (triggers.HOOKS,),
            tokens=tokens,
            token_prefix=PATHS[0],
        ),
    ]


def _resource_routes(tokens: AccessTokens) -> list[Route]:
    """Where MCP clients read who issues tokens for this server, for each address that they may have (RFC 9728)."""

    async def describe(_: Request) -> JSONResponse:
        return JSONResponse(tokens.metadata(), headers={"Cache-Control": "max-age=3600"})

    return [Route(f"{WELL_KNOWN}{path}", describe) for path in ("", *PATHS, *SSE_PATHS)]


def _operation_id(route: APIRoute) -> str:
    return route.name.removeprefix("_")


async def _health() -> Health:
    """Shows that the server is running."""
    return Health(version=release())


async def _schemas() -> dict[str, JsonSchema]:
    """The JSON Schema of every contract, by name."""
    return contract_schemas()


@contextlib.asynccontextmanager
async def _life(app: FastAPI) -> AsyncGenerator[None]:
    crib: Crib = app.state.crib
    async with crib, maintenance_loop(crib):
        driving = asyncio.create_task(_drive(crib))
        try:
            yield
        finally:
            await app.state.mcp.close()
            await crib.engine.drain(app.state.drain_s)
            driving.cancel()
            await asyncio.gather(driving, return_exceptions=True)


async def _drive(crib: Crib) -> None:
    """Keep the engine serving, also through times in which the store is not there."""
    while True:
        try:
            await crib.engine.serve()
        except Exception:  # the edge of the process: a server that answers and drives nothing would be worse
            _logger.exception("runs are not driven at the moment; trying again in %s s", _RESTART_S)
        await crib.clock.sleep(_RESTART_S)

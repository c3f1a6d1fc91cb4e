"""The A2A address of each agent, `/a2a/{agent}`: JSON-RPC, the HTTP+JSON binding below it, and the agent card.

The card at the address of the host is that of the only agent that the key may execute. The SDK is imported by the first
request.
"""

import asyncio
from typing import Any, Final, cast

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from toolcrib.contracts import NotFound, Principal, ToolRevision, Unavailable
from toolcrib.contracts.base.errors import missing_extra
from toolcrib.crib import ActingCrib, Crib
from toolcrib.interfaces.server.openai.agent_tasks import agent_of, may_execute
from toolcrib.interfaces.server.openai.error_bodies import UnknownModel

PATH: Final = "/a2a/{agent}"
CARD: Final = "/.well-known/agent-card.json"
PATTERNS: Final = (f"{PATH}{{rest:path}}", CARD)
"""Of all addresses."""


class A2aEndpoint:
    """An ASGI application for requests that `Authentication` has let pass.

    Args:
        crib: Has the agents.
    """

    def __init__(self, crib: Crib) -> None:
        self._crib = crib
        self._starting = asyncio.Lock()
        self._application: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request.

        Raises:
            NotFound: There is no such agent for the principal.
            Unavailable: The extra `a2a` is not installed.
        """
        application = await self._started()
        request = Request(scope)
        crib = self._crib.acting_as(cast("Principal", request.state.principal))
        name = request.path_params.get("agent")
        agent = await _only_agent(crib) if name is None else await _agent(crib, name)
        state: dict[str, Any] = {**scope["state"], "a2a": (crib, agent)}
        await application({**scope, "state": state}, receive, send)

    async def _started(self) -> ASGIApp:
        async with self._starting:
            if self._application is None:
                try:
                    from toolcrib.interfaces.server.a2a.protocol_routes import application  # noqa: PLC0415 - see the module
                except ImportError as missing:
                    raise Unavailable(missing_extra("A2A", missing.name, "a2a")) from missing
                self._application = application(PATH, CARD)
            return self._application


async def _agent(crib: ActingCrib, name: str) -> ToolRevision:
    try:
        return await agent_of(crib, name)
    except UnknownModel:
        msg = f"there is no agent {name[:100]!r}, or the key may not execute it; GET /api/v1/agents lists the agents"
        raise NotFound(msg) from None


async def _only_agent(crib: ActingCrib) -> ToolRevision:
    await crib.authorize(newest=True)
    page = await crib.listing.page(limit=2, facets={"kind": "agent"}, fits=lambda agent: may_execute(crib, agent))
    if len(page.items) != 1:
        count = "more than one agent" if page.items else "no agent"
        msg = f"the key may execute {count}; each agent has its card at {PATH}{CARD}, and GET /api/v1/agents lists them"
        raise NotFound(msg)
    return page.items[0]

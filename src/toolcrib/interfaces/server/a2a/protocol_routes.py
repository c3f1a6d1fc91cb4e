"""The routes of the A2A SDK over our runs, with what they need of a request."""

from datetime import UTC
from email.utils import format_datetime
from functools import partial
from hashlib import sha256
from typing import Final

from a2a.server.context import ServerCallContext
from a2a.server.request_handlers.response_helpers import agent_card_to_dict
from a2a.server.routes import create_jsonrpc_routes, create_rest_routes
from a2a.server.routes.common import DefaultServerCallContextBuilder
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, Router

from toolcrib.contracts import ToolRevision
from toolcrib.crib import ActingCrib
from toolcrib.interfaces.server.a2a.agent_card import card_of
from toolcrib.interfaces.server.a2a.task_requests import ASKED, AskedAgent, TaskRequests

_CARD_AGE_S: Final = 60
"""Seconds for which a client may use a card without asking again."""


class _Contexts(DefaultServerCallContextBuilder):
    """Tells the handler for whom a request is, and whose it is."""

    def build(self, request: Request) -> ServerCallContext:
        context = super().build(request)
        context.state[ASKED] = AskedAgent(*_asked(request), self_approval=request.app.state.self_approval)
        return context


def application(path: str, card: str) -> Router:
    """The application that answers at the addresses of agents, in protocol versions 1.0 and 0.3.

    Args:
        path: Of an agent, with the parameter `agent`.
        card: Where a card is below it, and at the host.
    """
    show = partial(_card, path=path)
    handler, contexts = TaskRequests(), _Contexts()
    return Router(
        [
            Route(card, show, methods=["GET"]),
            Route(f"{path}{card}", show, methods=["GET"]),
            *create_jsonrpc_routes(handler, path, context_builder=contexts, enable_v0_3_compat=True),
            *create_jsonrpc_routes(
                handler, f"{path}/", context_builder=contexts, enable_v0_3_compat=True
            ),  # as clients join it with an empty path
            *create_rest_routes(handler, contexts, enable_v0_3_compat=True, path_prefix=path),
        ]
    )


async def _card(request: Request, *, path: str) -> Response:
    """The agent card."""
    _, agent = _asked(request)
    address = f"{str(request.base_url).rstrip('/')}{path.format(agent=agent.name)}"
    tag = f'"{sha256(f"{agent.content_hash} {address}".encode()).hexdigest()[:32]}"'
    headers = {
        "ETag": tag,
        "Last-Modified": format_datetime(agent.created_at.astimezone(UTC), usegmt=True),
        "Cache-Control": f"private, max-age={_CARD_AGE_S}",
    }
    if tag in {each.strip().removeprefix("W/") for each in request.headers.get("if-none-match", "").split(",")}:
        return Response(status_code=304, headers=headers)
    return JSONResponse(agent_card_to_dict(card_of(agent, address)), headers=headers)


def _asked(request: Request) -> tuple[ActingCrib, ToolRevision]:
    found: tuple[ActingCrib, ToolRevision] = request.state.a2a
    return found

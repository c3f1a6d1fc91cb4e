"""Operations of an HTTP API with a bearer token."""

from contextlib import AsyncExitStack
from typing import Any, cast

import orjson
from aiohttp import web

from tests.contract.conformance.kind import INPUT, NAME, Kind
from tests.contract.conformance.world import Behaviour, Flaky, Mischief, Refused, Unreachable, World
from tests.unit.net.servers import serving
from toolcrib import Crib
from toolcrib.contracts import BearerAuth, ProviderDefinition, ToolDefinition
from toolcrib.kinds.http.shape import HttpBody, HttpImplementation

BODY = HttpBody(fields={"text": "text"})
NOBODY = 1
"""A port at which nobody listens."""


class HttpKind(Kind):
    """One operation of a server on this machine."""

    name = "http"

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.port = 0

    async def open(self, stack: AsyncExitStack) -> None:
        self.port = await stack.enter_async_context(serving(self._answer))

    def addresses(self) -> tuple[str, ...]:
        return (f"127.0.0.1:{self.port}", f"127.0.0.1:{NOBODY}")

    async def furnish(self, crib: Crib) -> None:
        await self._provide(crib, self.port)

    def definition(self) -> ToolDefinition:
        return ToolDefinition(
            name=NAME,
            input_schema=INPUT,
            side_effects="reads",
            implementation=HttpImplementation(method="POST", url="/act", provider="world", body=BODY),
        )

    async def prepare(self, crib: Crib, behaviour: Behaviour) -> None:
        await self._provide(crib, NOBODY if behaviour is Behaviour.BE_UNREACHABLE else self.port)

    async def _provide(self, crib: Crib, port: int) -> None:
        auth = BearerAuth(token="${env:KEY}")
        await crib.save_provider(ProviderDefinition(name="world", base_url=f"http://127.0.0.1:{port}", auth=auth))

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        body: Any = orjson.loads(await request.read())
        try:
            return web.json_response(await self.world.act(body["text"]))
        except (Flaky, Unreachable):
            return web.json_response({"message": "not now"}, status=503)
        except Mischief as mischief:
            return answer_of(request, mischief)
        except Refused:
            return web.json_response({"message": f"wrong: {request.headers['Authorization']}"}, status=401)


def answer_of(request: web.BaseRequest, mischief: Mischief) -> web.StreamResponse:
    """A status with a type and a body; without them the connection is cut."""
    if mischief.what is None:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()
    status, kind, body = cast("tuple[int, str, bytes]", mischief.what)
    return web.Response(status=status, body=body, headers={"content-type": kind, "retry-after": "soon"})

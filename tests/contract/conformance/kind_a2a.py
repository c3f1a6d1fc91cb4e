"""An agent of another system that is asked by A2A, with a bearer token."""

from contextlib import AsyncExitStack
from typing import Any

import orjson
from aiohttp import web

from tests.contract.conformance.kind import INPUT, NAME, Kind
from tests.contract.conformance.kind_http import NOBODY, answer_of
from tests.contract.conformance.world import Behaviour, Flaky, Mischief, Refused, Unreachable, World
from tests.unit.net.servers import serving
from toolcrib import Crib
from toolcrib.contracts import BearerAuth, ProviderDefinition, ToolDefinition
from toolcrib.kinds.a2a.shape import A2aImplementation

_MESSAGE = {**INPUT, "properties": {"message": {"type": "string"}}, "required": ["message"]}


class A2aKind(Kind):
    """One agent of a server on this machine."""

    name = "a2a"

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.port = 0

    async def open(self, stack: AsyncExitStack) -> None:
        self.port = await stack.enter_async_context(serving(self._answer))

    def addresses(self) -> tuple[str, ...]:
        return (f"127.0.0.1:{self.port}", f"127.0.0.1:{NOBODY}")

    async def furnish(self, crib: Crib) -> None:
        await crib.save_provider(self._provider(self.port))

    def definition(self) -> ToolDefinition:
        return ToolDefinition(
            name=NAME,
            description="Acts.",
            side_effects="reads",
            input_schema=_MESSAGE,
            implementation=A2aImplementation(provider="world", agent="world"),
        )

    def arguments(self, behaviour: Behaviour) -> dict[str, Any]:
        return {"message": behaviour.value}

    def said(self, output: Any) -> str:
        return output["text"]

    async def prepare(self, crib: Crib, behaviour: Behaviour) -> None:
        port = NOBODY if behaviour is Behaviour.BE_UNREACHABLE else self.port
        await crib.save_provider(self._provider(port))

    def _provider(self, port: int) -> ProviderDefinition:
        auth = BearerAuth(token="${env:KEY}")
        return ProviderDefinition(name="world", base_url=f"http://127.0.0.1:{port}", auth=auth)

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        body: Any = orjson.loads(await request.read())
        words = body["params"]["message"]["parts"][0]["text"]
        try:
            said = await self.world.act(words)
        except (Flaky, Unreachable):
            return web.Response(status=503)
        except Mischief as mischief:
            return answer_of(request, mischief)
        except Refused:
            return web.Response(status=401, text=f"wrong: {request.headers['Authorization']}")
        message = {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": said["said"]}]}
        return web.json_response({"jsonrpc": "2.0", "id": body["id"], "result": {"message": message}})

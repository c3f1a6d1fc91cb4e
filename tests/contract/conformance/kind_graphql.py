"""Mutations of a GraphQL server with a bearer token."""

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
from toolcrib.kinds.graphql.importer.importer import import_graphql
from toolcrib.kinds.graphql.importer.schema import read_schema

_SDL = "type Query { ready: Boolean } type Mutation { act(text: String!): Done! } type Done { said: String! }"


class GraphqlKind(Kind):
    """One mutation of a server on this machine."""

    name = "graphql"

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
        imported = import_graphql(read_schema(_SDL).schema, name="world", base_url="http://127.0.0.1")
        [act] = [tool for tool in imported.tools if tool.name == NAME]
        ours = {"source": "manual", "side_effects": "reads", "input_schema": INPUT, "output_schema": None}
        return act.model_copy(update=ours)

    async def prepare(self, crib: Crib, behaviour: Behaviour) -> None:
        port = NOBODY if behaviour is Behaviour.BE_UNREACHABLE else self.port
        await crib.save_provider(self._provider(port))

    def _provider(self, port: int) -> ProviderDefinition:
        auth = BearerAuth(token="${env:KEY}")
        return ProviderDefinition(name="world", base_url=f"http://127.0.0.1:{port}", auth=auth)

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        body: Any = orjson.loads(await request.read())
        try:
            return web.json_response({"data": {"act": await self.world.act(body["variables"]["text"])}})
        except (Flaky, Unreachable):
            return _failure("not now", "SERVICE_UNAVAILABLE")
        except Mischief as mischief:
            return answer_of(request, mischief)
        except Refused:
            return _failure(f"wrong: {request.headers['Authorization']}", "UNAUTHENTICATED")


def _failure(message: str, code: str) -> web.StreamResponse:
    failed = {"message": message, "path": ["act"], "extensions": {"code": code}}
    return web.json_response({"data": None, "errors": [failed]})

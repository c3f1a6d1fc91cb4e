"""What the tools reach that are no functions: an HTTP server, an MCP server, a gRPC server and a database."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final

import grpc
import orjson
import sqlalchemy as sa
from aiohttp import web
from google.protobuf import descriptor_pb2, text_format
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from tests.contract.old_runs.hands import KEY, Hands
from tests.unit.grpc.server import serving as serving_grpc
from tests.unit.net.servers import serving
from toolcrib import Crib
from toolcrib.contracts import BearerAuth, JsonSchema, ProviderDefinition, ToolDefinition
from toolcrib.contracts.base.envelope import SideEffects
from toolcrib.infrastructure.net import EgressPolicy
from toolcrib.kinds.entity.importer.engines import open_engine
from toolcrib.kinds.http.shape import HttpBody, HttpImplementation

NOBODY: Final = 1
"""A port at which nobody listens."""
TEXT: Final[JsonSchema] = {
    "type": "object",
    "properties": {"text": {"type": "string"}},
    "required": ["text"],
    "additionalProperties": False,
}
PARTS: Final = sa.Table(
    "parts", sa.MetaData(), sa.Column("sku", sa.String(20), primary_key=True), sa.Column("count", sa.Integer)
)
_FILE: Final = text_format.Parse(
    """
    name: "world.proto" package: "world" syntax: "proto3"
    message_type { name: "Asked" field { name: "text" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL } }
    message_type { name: "Done" field { name: "said" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL } }
    service { name: "World" method { name: "Act" input_type: ".world.Asked" output_type: ".world.Done" } }
    """,
    descriptor_pb2.FileDescriptorProto(),
)
_POOL = DescriptorPool()
_POOL.Add(_FILE)  # pyright: ignore[reportUnknownMemberType] - the stubs leave its argument open
_ASKED: Any = GetMessageClass(_POOL.FindMessageTypeByName("world.Asked"))
_DONE: Any = GetMessageClass(_POOL.FindMessageTypeByName("world.Done"))


class Outside:
    """The servers and the database, as long as the stack is open.

    Args:
        hands: Where effects are written down.
        http: Port of the HTTP and the MCP server.
        grpc: Port of the gRPC server.
        engine: Of the database.
    """

    def __init__(self, hands: Hands, *, http: int, grpc: int, engine: sa.Engine) -> None:
        self.hands = hands
        self._http, self._grpc, self._engine = http, grpc, engine

    @property
    def egress(self) -> EgressPolicy:
        """What a crib must be allowed to reach."""
        return EgressPolicy(allow=tuple(f"127.0.0.1:{port}" for port in (self._http, self._grpc, NOBODY)))

    async def define(self, crib: Crib) -> None:
        """Save the tools of all kinds that reach something."""
        auth = BearerAuth(token=f"${{env:{KEY}}}")
        await self.reach(crib)
        named: tuple[tuple[str, str, SideEffects], ...] = (
            ("web_look", "web", "reads"),
            ("web_send", "web", "writes"),
            ("web_gone", "gone", "reads"),
        )
        for name, provider, effects in named:
            how = HttpImplementation(
                method="POST", url=f"/{name}", provider=provider, body=HttpBody(fields={"text": "text"})
            )
            crib.add(ToolDefinition(name=name, input_schema=TEXT, side_effects=effects, implementation=how))
        await crib.imports.mcp(f"http://127.0.0.1:{self._http}/mcp", name="files", auth=auth)
        described = descriptor_pb2.FileDescriptorSet(file=[_FILE]).SerializeToString()
        await crib.imports.grpc(f"grpc://127.0.0.1:{self._grpc}", name="rpc", descriptors=described, auth=auth)

    async def reach(self, crib: Crib) -> None:
        """Tell a process where the servers listen today, and bind the database."""
        auth = BearerAuth(token=f"${{env:{KEY}}}")
        for name, port in (("web", self._http), ("gone", NOBODY)):
            await crib.save_provider(ProviderDefinition(name=name, base_url=f"http://127.0.0.1:{port}", auth=auth))
        for name, address in (
            ("files", f"http://127.0.0.1:{self._http}/mcp"),
            ("rpc", f"grpc://127.0.0.1:{self._grpc}"),
        ):
            provider = crib.providers.find(crib.principal.realm, name)
            if provider is not None:
                await crib.save_provider(provider.model_copy(update={"base_url": address}))
        await crib.add_entities("stock", self._engine, PARTS)


@asynccontextmanager
async def outside(hands: Hands, folder: Path) -> AsyncGenerator[Outside]:
    """Start the servers, and make the database in the folder."""
    async with AsyncExitStack() as stack:
        http = await stack.enter_async_context(serving(_answering(hands)))

        async def act(request: Any, _context: Any) -> Any:
            return _DONE(said=hands.act("rpc", request.text))

        unary: Any = grpc.unary_unary_rpc_method_handler
        handler = grpc.method_handlers_generic_handler(
            "world.World", {"Act": unary(act, _ASKED.FromString, _DONE.SerializeToString)}
        )
        port = await stack.enter_async_context(serving_grpc(handler))
        (folder / "parts.db").touch()
        engine = open_engine(f"sqlite:///{folder}/parts.db")
        stack.callback(engine.dispose)
        PARTS.metadata.create_all(engine)
        with engine.begin() as connection:
            connection.execute(PARTS.insert(), [{"sku": "bolt", "count": 3}, {"sku": "nut", "count": 5}])
        yield Outside(hands, http=http, grpc=port, engine=engine)


def _answering(hands: Hands) -> Callable[[web.BaseRequest], Any]:
    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        if request.path == "/mcp":
            return await _mcp(hands, request)
        text = orjson.loads(await request.read())["text"]
        if text == "broken":
            return web.json_response({"message": "not now"}, status=500)
        return web.json_response({"said": hands.act(request.path.strip("/"), text)})

    return answer


async def _mcp(hands: Hands, request: web.BaseRequest) -> web.StreamResponse:
    if request.method != "POST":
        return web.Response(status=405)
    message: Any = orjson.loads(await request.read())
    if "id" not in message:
        return web.Response(status=202)
    match message["method"]:
        case "initialize":
            server = {"name": "world", "version": "1"}
            result: Any = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": server}
        case "tools/list":
            hints = {"readOnlyHint": False, "destructiveHint": False}
            result = {"tools": [{"name": "file_away", "inputSchema": TEXT, "annotations": hints}]}
        case "tools/call":
            said = hands.act("file_away", message["params"]["arguments"]["text"])
            result = {"content": [{"type": "text", "text": said}]}
        case _:
            result = {}
    reply = {"jsonrpc": "2.0", "id": message["id"], "result": result}
    return web.json_response(reply, headers={"mcp-session-id": "a-session"})

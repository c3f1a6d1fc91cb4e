"""Methods of a gRPC server with a bearer token."""

from contextlib import AsyncExitStack
from typing import Any

import grpc
from google.protobuf import descriptor_pb2, text_format
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from tests.contract.conformance.kind import INPUT, NAME, Kind
from tests.contract.conformance.kind_http import NOBODY
from tests.contract.conformance.world import Behaviour, Flaky, Mischief, Refused, World
from tests.unit.grpc.server import serving
from toolcrib import Crib
from toolcrib.contracts import BearerAuth, ToolDefinition

_WORLD = text_format.Parse(
    """
    name: "world.proto" package: "world" syntax: "proto3"
    message_type { name: "Asked" field { name: "text" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL } }
    message_type { name: "Done" field { name: "said" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL } }
    service { name: "World" method { name: "Act" input_type: ".world.Asked" output_type: ".world.Done" } }
    """,
    descriptor_pb2.FileDescriptorProto(),
)
_POOL = DescriptorPool()
_POOL.Add(_WORLD)  # pyright: ignore[reportUnknownMemberType] - the stubs leave its argument open
_ASKED = GetMessageClass(_POOL.FindMessageTypeByName("world.Asked"))
_DONE: Any = GetMessageClass(_POOL.FindMessageTypeByName("world.Done"))


class GrpcKind(Kind):
    """One method of a server in this process."""

    name = "grpc"

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.port = 0
        self._imported: ToolDefinition

    async def open(self, stack: AsyncExitStack) -> None:
        unary: Any = grpc.unary_unary_rpc_method_handler
        act = unary(self._act, _ASKED.FromString, _DONE.SerializeToString)
        self.port = await stack.enter_async_context(
            serving(grpc.method_handlers_generic_handler("world.World", {"Act": act}))
        )

    def addresses(self) -> tuple[str, ...]:
        return (f"127.0.0.1:{self.port}", f"127.0.0.1:{NOBODY}")

    async def furnish(self, crib: Crib) -> None:
        described = descriptor_pb2.FileDescriptorSet(file=[_WORLD]).SerializeToString()
        imported = await crib.imports.grpc(
            f"grpc://127.0.0.1:{self.port}",
            name="world",
            descriptors=described,
            auth=BearerAuth(token="${env:KEY}"),
        )
        [self._imported] = imported.tools

    def definition(self) -> ToolDefinition:
        ours = {"name": NAME, "source": "manual", "side_effects": "reads", "input_schema": INPUT, "output_schema": None}
        return self._imported.model_copy(update=ours)

    async def prepare(self, crib: Crib, behaviour: Behaviour) -> None:
        port = NOBODY if behaviour is Behaviour.BE_UNREACHABLE else self.port
        provider = crib.providers.find(crib.principal.realm, "world")
        assert provider is not None
        await crib.save_provider(provider.model_copy(update={"base_url": f"grpc://127.0.0.1:{port}"}))

    async def _act(self, request: Any, context: Any) -> Any:
        try:
            return _DONE(said=(await self.world.act(request.text))["said"])
        except Mischief as mischief:
            await context.abort(*mischief.what)  # pyright: ignore[reportGeneralTypeIssues] - a status and its words
        except Flaky:
            await context.abort(grpc.StatusCode.UNAVAILABLE, "not now")
        except Refused:
            sent = dict(context.invocation_metadata())
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, f"wrong: {sent['authorization']}")

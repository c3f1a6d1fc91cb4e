"""A gRPC server in this process, with reflection, whose answers a test decides."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import grpc
import grpc.aio
from google.protobuf import any_pb2, duration_pb2, wrappers_pb2
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.rpc import error_details_pb2, status_pb2

from tests.unit.grpc.protos import pool
from toolcrib import EgressPolicy

Deal: type[Message] = GetMessageClass(pool().FindMessageTypeByName("crm.v1.Deal"))
Order: type[Message] = GetMessageClass(pool().FindMessageTypeByName("old.Order"))
Request = Any
"""A message whose class is made at run time."""
Context = grpc.aio.ServicerContext[Any, Any]

REFLECTIONS = ("grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection")


class Crm:
    """What the service does, and what it was asked."""

    def __init__(self) -> None:
        self.metadata: list[dict[str, str | bytes]] = []
        self.remaining_s: list[float] = []
        self.ended = asyncio.Event()
        """Set when a stream has ended."""
        self.stored: list[Any] = []
        self.deal: Any = Deal(display_name="Acme", stage=1)
        self.trailing: tuple[tuple[str, str | bytes], ...] = ()
        """Metadata that follows a failure."""
        self.reject: str | None = None
        """A value of `authorization` that is refused."""

    async def note(self, context: Context) -> None:
        """Remember how a call came."""
        sent = {str(name): value for name, value in context.invocation_metadata() or ()}
        self.metadata.append(sent)
        self.remaining_s.append(context.time_remaining())
        if self.reject is not None and sent.get("authorization") == self.reject:
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, f"who is {sent['authorization']!r}?")

    async def get_deal(self, request: Request, context: Context) -> Message:
        """The deal of the test."""
        await self.note(context)
        self.deal.id = request.id
        return self.deal

    async def list_deals(self, request: Request, context: Context) -> AsyncIterator[Message]:
        """So many deals; without end if fewer than none are asked for."""
        await self.note(context)
        number = 0
        try:
            while request.count < 0 or number < request.count:
                self.deal.id = str(number)
                yield self.deal
                number += 1
        finally:
            self.ended.set()

    async def put_deal(self, request: Request, context: Context) -> Message:
        """Store a deal."""
        await self.note(context)
        self.stored.append(request)
        return request

    async def shout(self, request: wrappers_pb2.StringValue, context: Context) -> wrappers_pb2.StringValue:
        """In capitals."""
        await self.note(context)
        return wrappers_pb2.StringValue(value=request.value.upper())

    async def place(self, request: Request, context: Context) -> Message:
        """Store an order."""
        await self.note(context)
        self.stored.append(request)
        return request

    async def fail(self, request: Request, context: Context) -> Message:
        """Fail with a status, told in full."""
        await self.note(context)
        code = next(code for code in grpc.StatusCode if code.value[0] == request.status)
        if code is grpc.StatusCode.OK:
            return Deal(id="ok")
        if request.message == "rich":
            self.trailing = (("grpc-status-details-bin", rich(code, request.message)),)
        await context.abort(code, request.message, self.trailing)
        raise AssertionError("abort raises")


def rich(code: grpc.StatusCode, message: str) -> bytes:
    """A `google.rpc.Status` with a wait, a wrong field, a reason, a stack trace and something unknown."""
    details = [
        error_details_pb2.RetryInfo(retry_delay=duration_pb2.Duration(seconds=2, nanos=500_000_000)),
        error_details_pb2.BadRequest(
            field_violations=[error_details_pb2.BadRequest.FieldViolation(field="deal.id", description="is no id")]
        ),
        error_details_pb2.ErrorInfo(reason="OUT_OF_DEALS", domain="crm.example"),
        error_details_pb2.DebugInfo(stack_entries=["secret.py:1"]),
    ]
    packed = [any_pb2.Any(type_url="type.googleapis.com/crm.v1.Unknown", value=b"\x01")]
    for detail in details:
        holder = any_pb2.Any()
        holder.Pack(detail)
        packed.append(holder)
    return status_pb2.Status(code=code.value[0], message=message, details=packed).SerializeToString()


def handlers(crm: Crm) -> list[grpc.GenericRpcHandler]:
    """The services of the CRM."""
    unary: Any = grpc.unary_unary_rpc_method_handler
    stream: Any = grpc.unary_stream_rpc_method_handler

    def handled(kind: Any, behaviour: Any, request: str) -> Any:
        wrapped = request.startswith("google.")
        message = wrappers_pb2.StringValue if wrapped else GetMessageClass(pool().FindMessageTypeByName(request))
        return kind(behaviour, message.FromString, message.SerializeToString)

    deals = {
        "GetDeal": handled(unary, crm.get_deal, "crm.v1.GetDealRequest"),
        "ListDeals": handled(stream, crm.list_deals, "crm.v1.ListDealsRequest"),
        "PutDeal": handled(unary, crm.put_deal, "crm.v1.Deal"),
        "Fail": handled(unary, crm.fail, "crm.v1.FailRequest"),
        "Shout": handled(unary, crm.shout, "google.protobuf.StringValue"),
    }
    return [
        grpc.method_handlers_generic_handler("crm.v1.DealService", deals),
        grpc.method_handlers_generic_handler("old.Orders", {"Place": handled(unary, crm.place, "old.Order")}),
    ]


def reflecting(names: Sequence[str], version: str) -> grpc.GenericRpcHandler:
    """The standard reflection service under one of its two names."""
    servicer = _servicer(names)
    return conversing(version, servicer.ServerReflectionInfo, raw=False)


def _servicer(names: Sequence[str]) -> Any:
    from grpc_reflection.v1alpha._async import ReflectionServicer

    return ReflectionServicer(names, pool=pool())


def conversing(service: str, behaviour: Any, *, raw: bool = True) -> grpc.GenericRpcHandler:
    """A reflection service with a behaviour of the test's own: of bytes, or of messages."""
    from grpc_reflection.v1alpha.reflection_pb2 import ServerReflectionRequest, ServerReflectionResponse

    stream: Any = grpc.stream_stream_rpc_method_handler
    made = (
        stream(behaviour)
        if raw
        else stream(behaviour, ServerReflectionRequest.FromString, ServerReflectionResponse.SerializeToString)
    )
    return grpc.method_handlers_generic_handler(service, {"ServerReflectionInfo": made})


@asynccontextmanager
async def serving(
    *found: grpc.GenericRpcHandler, credentials: grpc.ServerCredentials | None = None
) -> AsyncGenerator[int]:
    """A server with these services; yields its port."""
    server = grpc.aio.server()
    server.add_generic_rpc_handlers(found)
    if credentials is None:
        port = server.add_insecure_port("127.0.0.1:0")
    else:
        port = server.add_secure_port("127.0.0.1:0", credentials)
    await server.start()
    try:
        yield port
    finally:
        await server.stop(None)


@asynccontextmanager
async def crm_server(crm: Crm, version: str = REFLECTIONS[0]) -> AsyncGenerator[int]:
    """The CRM with reflection; yields its port."""
    names = ("crm.v1.DealService", "old.Orders", version)
    async with serving(*handlers(crm), reflecting(names, version)) as port:
        yield port


def local(port: int) -> EgressPolicy:
    """A policy that lets the server be reached."""
    return EgressPolicy(allow=(f"127.0.0.1:{port}", f"localhost:{port}"))

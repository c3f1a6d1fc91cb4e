"""Calls a gRPC method, unary or server-streaming, and maps its status to one of the nine error codes. Loads grpcio.

| status | code | why |
|---|---|---|
| UNAUTHENTICATED, PERMISSION_DENIED | AUTH_REQUIRED | the credentials are wrong or not enough |
| DEADLINE_EXCEEDED | TIMEOUT | the effect is unknown, as after our own time-out |
| RESOURCE_EXHAUSTED | RATE_LIMIT | with the seconds to wait, where the server says so |
| INVALID_ARGUMENT, NOT_FOUND, ALREADY_EXISTS | VALIDATION_ERROR | it refused this request; do not repeat it |
| FAILED_PRECONDITION, OUT_OF_RANGE | VALIDATION_ERROR | the same |
| UNAVAILABLE | NETWORK_ERROR | it was not reached, or is not there now |
| UNKNOWN, INTERNAL, DATA_LOSS, ABORTED, CANCELLED, UNIMPLEMENTED | PROVIDER_ERROR | its own fault |

An error contains what the server adds as `google.rpc.Status` (AIP-193): wrong fields, delays and reasons, but no stack
traces. Messages are converted from and to ProtoJSON with the names of the `.proto` file, without generated code.
Outputs contain fields without presence also at their default. A message inside an `Any` whose type is unknown is kept
as its type and bytes.
"""

import asyncio
import base64
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import grpc
import grpc.aio
import orjson
from google.protobuf import any_pb2, json_format, struct_pb2
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError, EncodeError, Message
from google.protobuf.message_factory import GetMessageClass
from google.rpc import error_details_pb2, status_pb2
from grpc import StatusCode
from grpc.aio import AioRpcError

from toolcrib.contracts import (
    EgressDenied,
    ErrorCode,
    InvalidDefinition,
    InvalidSettings,
    Json,
    JsonObject,
    NotFound,
    Principal,
    ProviderDefinition,
    Reason,
    ToolDefinition,
)
from toolcrib.core.executor import CallFailed, Dispatch, Outcome, error
from toolcrib.core.providers import Credentials, ProviderAccess
from toolcrib.core.providers.request_errors import count_request, network_failure, request_limit_s
from toolcrib.infrastructure.net import HttpSession, NetworkError
from toolcrib.infrastructure.store import Blobs
from toolcrib.kinds.grpc.importer import VALUE, Channels, Reflected, as_is, is_wrapped, pool_of, read_set, reflect
from toolcrib.kinds.grpc.shape import GrpcImplementation

MAX_EXPLANATION: Final = 4_096
"""Bytes of the server's own details."""

_MAX_WORDS: Final = 500
_MAX_PROBLEMS: Final = 20
_DETAILS: Final = "grpc-status-details-bin"
_PUSHBACK: Final = "grpc-retry-pushback-ms"
_TOO_LARGE: Final = "Received message larger than max"
"""What grpcio says when it refuses an answer; the status is that of a rate limit."""

_Meaning: TypeAlias = tuple[ErrorCode, Reason]
_MEANINGS: Final[Mapping[StatusCode, _Meaning]] = {
    StatusCode.OK: (ErrorCode.PROVIDER_ERROR, Reason.BAD_RESPONSE),
    StatusCode.CANCELLED: (ErrorCode.PROVIDER_ERROR, Reason.CANCELLED),
    StatusCode.UNKNOWN: (ErrorCode.PROVIDER_ERROR, Reason.TOOL_FAILED),
    StatusCode.INVALID_ARGUMENT: (ErrorCode.VALIDATION_ERROR, Reason.REQUEST_REFUSED),
    StatusCode.DEADLINE_EXCEEDED: (ErrorCode.TIMEOUT, Reason.TOOL_TIMEOUT),
    StatusCode.NOT_FOUND: (ErrorCode.VALIDATION_ERROR, Reason.NOT_FOUND),
    StatusCode.ALREADY_EXISTS: (ErrorCode.VALIDATION_ERROR, Reason.REQUEST_REFUSED),
    StatusCode.PERMISSION_DENIED: (ErrorCode.AUTH_REQUIRED, Reason.REQUEST_REFUSED),
    StatusCode.RESOURCE_EXHAUSTED: (ErrorCode.RATE_LIMIT, Reason.RATE_LIMITED),
    StatusCode.FAILED_PRECONDITION: (ErrorCode.VALIDATION_ERROR, Reason.REQUEST_REFUSED),
    StatusCode.ABORTED: (ErrorCode.PROVIDER_ERROR, Reason.TOOL_FAILED),
    StatusCode.OUT_OF_RANGE: (ErrorCode.VALIDATION_ERROR, Reason.REQUEST_REFUSED),
    StatusCode.UNIMPLEMENTED: (ErrorCode.PROVIDER_ERROR, Reason.NOT_FOUND),
    StatusCode.INTERNAL: (ErrorCode.PROVIDER_ERROR, Reason.TOOL_FAILED),
    StatusCode.UNAVAILABLE: (ErrorCode.NETWORK_ERROR, Reason.TOOL_FAILED),
    StatusCode.DATA_LOSS: (ErrorCode.PROVIDER_ERROR, Reason.BAD_RESPONSE),
    StatusCode.UNAUTHENTICATED: (ErrorCode.AUTH_REQUIRED, Reason.REQUEST_REFUSED),
}
_REMEDIES: Final[Mapping[StatusCode, str]] = {
    StatusCode.UNAUTHENTICATED: "check the provider's credentials",
    StatusCode.PERMISSION_DENIED: "check what the provider's credentials may do",
    StatusCode.RESOURCE_EXHAUSTED: "wait before calling again",
    StatusCode.UNAVAILABLE: "check the provider's address, or try again later",
    StatusCode.UNIMPLEMENTED: "the server has no such method any more; import the provider again",
}
_CORRECT: Final = "correct the arguments; the same call cannot work later"
_MAY_WORK_LATER: Final = frozenset(
    {ErrorCode.RATE_LIMIT, ErrorCode.PROVIDER_ERROR, ErrorCode.TIMEOUT, ErrorCode.NETWORK_ERROR}
)


def status_failure(tool: ToolDefinition, problem: AioRpcError, max_bytes: int) -> CallFailed:
    """The failure that a status means.

    Args:
        tool: The tool.
        problem: The status, with what the server adds.
        max_bytes: The largest message that is taken.
    """
    status, words = problem.code(), " ".join((problem.details() or "").split())[:_MAX_WORDS]
    metadata: JsonObject = {"grpc_status": status.name}
    if status is StatusCode.RESOURCE_EXHAUSTED and _TOO_LARGE in words:
        message = f"tool {tool.name!r} got an answer of more than {max_bytes} bytes; ask for less, a page or a filter"
        return CallFailed(error(ErrorCode.PROVIDER_ERROR, Reason.BAD_RESPONSE, message), metadata=metadata)
    code, reason = _MEANINGS[status]
    remedy = _REMEDIES.get(status, _CORRECT if code is ErrorCode.VALIDATION_ERROR else None)
    trailing = dict(_pairs(problem))
    added = _Added(trailing.get(_DETAILS, b""))
    outcome = f"tool {tool.name!r} got {status.name}" + (f": {words}" if words else "")
    failure = error(code, reason, "; ".join(filter(None, [outcome, *added.list_problems(), remedy])), **added.details())
    wait = added.wait_s if added.wait_s is not None else _pushback(trailing.get(_PUSHBACK))
    if wait is not None and code in _MAY_WORK_LATER:
        failure = failure.model_copy(update={"retry_after_s": wait})
    return CallFailed(failure, metadata=metadata)


class _Added:
    """The details of a `google.rpc.Status`, those of the standard types."""

    def __init__(self, data: bytes) -> None:
        self.wait_s: float | None = None
        self.problems: list[JsonObject] = []
        self.explanation: list[Json] = []
        try:
            found = status_pb2.Status.FromString(data)
        except DecodeError:
            return
        for packed in found.details:
            self._take(packed)

    def _take(self, packed: Any) -> None:
        retry, bad, debug = (
            error_details_pb2.RetryInfo(),
            error_details_pb2.BadRequest(),
            error_details_pb2.DebugInfo.DESCRIPTOR,
        )
        try:
            if packed.Unpack(retry):
                self.wait_s = max(retry.retry_delay.seconds + retry.retry_delay.nanos / 1e9, 0.0)
            elif packed.Unpack(bad):
                found = bad.field_violations[:_MAX_PROBLEMS]
                self.problems += [{"path": one.field, "problem": one.description} for one in found]
            elif not packed.Is(debug):
                self.explanation.append(json_format.MessageToDict(packed, preserving_proto_field_name=True))
        except (json_format.Error, DecodeError, TypeError, ValueError):
            self.explanation.append({"@type": packed.type_url[:_MAX_WORDS]})

    def list_problems(self) -> Iterable[str]:
        """The wrong fields, for the message."""
        return (f"{one['path']}: {one['problem']}" for one in self.problems[:5])

    def details(self) -> JsonObject:
        """What goes into the error's details."""
        found: JsonObject = {"problems": self.problems} if self.problems else {}
        if self.explanation and len(orjson.dumps(self.explanation)) <= MAX_EXPLANATION:
            found["explanation"] = self.explanation
        return found


def _pairs(problem: AioRpcError) -> Iterable[tuple[str, Any]]:
    trailing: Any = problem.trailing_metadata()
    return trailing or ()


def _pushback(milliseconds: Any) -> float | None:
    """Seconds that a server asks to wait (gRFC A6); a negative number asks not to try again."""
    text = str(milliseconds)
    return int(text) / 1000 if text.isdecimal() and text.isascii() else None


_ANY: Final = any_pb2.Any.DESCRIPTOR.full_name


class UnsendableMessage(ValueError):
    """The arguments cannot become the request."""


class UnreadableMessage(ValueError):
    """The bytes are not the message that they should be, or one that JSON cannot say."""


class Codec:
    """Reads and writes the messages of one method.

    Args:
        pool: Describes both.
        request: Full name of the message that is sent.
        response: Full name of the message that comes back.

    Raises:
        KeyError: The pool has no such message.
    """

    def __init__(self, pool: DescriptorPool, request: str, response: str) -> None:
        self._pool = pool
        self._request = GetMessageClass(pool.FindMessageTypeByName(request))
        self._response = GetMessageClass(pool.FindMessageTypeByName(response))
        self._is_wrapped = is_wrapped(request)

    def write(self, arguments: JsonObject) -> bytes:
        """The request's bytes.

        Raises:
            UnsendableMessage: The arguments are no such message.
        """
        given: Any = arguments.get(VALUE) if self._is_wrapped else arguments
        try:
            message = json_format.ParseDict(given, self._request(), descriptor_pool=self._pool)
            return message.SerializeToString()
        except (json_format.Error, EncodeError, TypeError, ValueError, AttributeError, RecursionError) as problem:
            raise UnsendableMessage(_words(problem)) from None

    def read(self, data: bytes) -> Json:
        """What a response says.

        Raises:
            UnreadableMessage: The bytes are no such message, or JSON cannot say what they do.
        """
        try:
            message = self._response.FromString(data)
        except DecodeError:
            name = self._response.DESCRIPTOR.full_name
            raise UnreadableMessage(f"{len(data)} bytes came back that are no {name}; import the tool again") from None
        try:
            for unknown in list(_unknown(message, self._pool)):
                _seal(unknown)
            return json_format.MessageToDict(
                message,
                always_print_fields_with_no_presence=True,
                preserving_proto_field_name=True,
                descriptor_pool=self._pool,
            )
        except (json_format.Error, DecodeError, TypeError, ValueError, OverflowError, RecursionError) as problem:
            raise UnreadableMessage(f"the answer cannot be written as JSON: {_words(problem)}") from None


def _unknown(message: Message, pool: DescriptorPool) -> Iterator[Message]:
    """The `Any`s inside a message whose type nothing describes; those inside of known ones are unpacked for it."""
    if message.DESCRIPTOR.full_name == _ANY:
        yield from _unknown_any(message, pool)
        return
    for field, value in message.ListFields():
        if field.message_type is not None:
            for inner in _messages(value):
                yield from _unknown(inner, pool)


def _unknown_any(message: Any, pool: DescriptorPool) -> Iterator[Message]:
    if not message.type_url:
        return
    try:
        described = pool.FindMessageTypeByName(message.type_url.rpartition("/")[2])
    except KeyError:
        yield message
        return
    inner = GetMessageClass(described).FromString(message.value)
    lost = list(_unknown(inner, pool))
    for unknown in lost:
        _seal(unknown)
    if lost:
        message.value = inner.SerializeToString()


def _messages(value: Any) -> Iterator[Message]:
    """The messages of a field: one, a list of them, or the values of a map."""
    if isinstance(value, Message):
        yield value
    elif hasattr(value, "values"):
        yield from (inner for inner in value.values() if isinstance(inner, Message))
    else:
        yield from value


def _seal(unknown: Any) -> None:
    """Put type and bytes, as JSON can say them, in the place of a message that cannot be read."""
    kept = struct_pb2.Struct()
    kept.update({"type_url": unknown.type_url, "value": base64.b64encode(unknown.value).decode()})
    unknown.type_url = f"type.googleapis.com/{kept.DESCRIPTOR.full_name}"
    unknown.value = kept.SerializeToString()


def _words(problem: Exception) -> str:
    return str(problem)[:_MAX_WORDS]


MAX_CODECS: Final = 1_000
"""Maximum number of methods whose descriptors are cached."""

_HEADER_KEY: Final = "header:"
_NAME: Final = re.compile(r"[0-9a-z_.-]+")
_VALUE: Final = re.compile(r"[\x20-\x7e]*")
_OURS: Final = frozenset({"content-type", "te", "host", "user-agent", "connection", "content-length"})


@dataclass(frozen=True, slots=True)
class _Call:
    """What a call is made with."""

    dispatch: Dispatch
    implementation: GrpcImplementation
    provider: ProviderDefinition
    codec: Codec
    request: bytes

    @property
    def tool(self) -> ToolDefinition:
        """The tool that is called."""
        return self.dispatch.tool.definition


class GrpcCalls:
    """Calls methods over channels that it keeps.

    Args:
        session: Judges addresses.
        providers: Finds providers and the credentials for them.
        blobs: Has the descriptors.
    """

    def __init__(self, session: HttpSession, providers: ProviderAccess, blobs: Blobs) -> None:
        self._session = session
        self._providers = providers
        self._blobs = blobs
        self.channels: Final = Channels(session)
        self._codecs: dict[tuple[str, str, str, str], Codec] = {}

    async def call(self, dispatch: Dispatch, implementation: GrpcImplementation) -> Outcome:
        """Call once; once more if a token that was fetched for it was refused.

        Raises:
            CallFailed: As the table of `failures` says; it names the credentials that must not be shown.
        """
        provider = self._providers.require(dispatch.tool, implementation.provider)
        codec = await self._codec(dispatch, implementation)
        call = _Call(dispatch, implementation, provider, codec, _write_request(dispatch, codec))
        credentials = await self._credentials(call)
        try:
            return await self._attempt(call, credentials)
        except CallFailed as failure:
            refused = failure.metadata.get("grpc_status") == grpc.StatusCode.UNAUTHENTICATED.name
            if not (refused and self._providers.forget(credentials)):
                raise
        try:
            return await self._attempt(call, await self._credentials(call))
        except CallFailed as failure:
            failure.sent = True  # by the first request
            raise

    async def reflect(self, provider: ProviderDefinition, principal: Principal) -> Reflected:
        """The services of a server by reflection, over a separate connection.

        Raises:
            CallFailed: Its credentials are not available, or are not valid metadata.
            EgressDenied: The policy forbids the address.
            Unavailable: The server cannot be reached, or does not answer in time.
            ReconnectRequired: It refuses the credentials.
            InvalidInput: It has no reflection, refuses it, or answers with something else.
        """
        found = await self._providers.credentials(provider, provider.address, principal)
        metadata = _check_metadata(provider, {**_headers(provider), **_only_headers(provider, found)})
        channels = Channels(self._session)
        try:
            return await reflect(await channels.get(principal.realm, provider, found.tls), provider.address, metadata)
        finally:
            await channels.close()

    async def close(self) -> None:
        """Close the connections."""
        await self.channels.close()

    async def _credentials(self, call: _Call) -> Credentials:
        provider = call.provider
        return await self._providers.credentials(provider, provider.address, call.dispatch.context.principal)

    async def _attempt(self, call: _Call, credentials: Credentials) -> Outcome:
        try:
            metadata = _metadata(call, credentials)
            count_request(call.dispatch)
            try:
                channel = await self.channels.get(call.dispatch.tool.realm, call.provider, credentials.tls)
            except (EgressDenied, NetworkError) as problem:
                raise network_failure(call.tool, problem) from None
            except InvalidSettings as problem:
                message = f"tool {call.tool.name!r} cannot authenticate: {problem}"
                raise CallFailed(error(ErrorCode.AUTH_REQUIRED, Reason.MISSING_SECRET, message)) from None
            try:
                output, facts = await self._exchange(call, channel, metadata)
            except grpc.aio.AioRpcError as problem:
                if problem.code() is grpc.StatusCode.UNAVAILABLE:
                    self.channels.doubt(call.dispatch.tool.realm, call.provider, credentials.tls)
                raise status_failure(call.tool, problem, self._session.policy.max_bytes) from None
        except CallFailed as failure:
            failure.secrets += credentials.secrets
            raise
        return Outcome(output, metadata={"grpc_status": grpc.StatusCode.OK.name, **facts}, secrets=credentials.secrets)

    async def _exchange(
        self, call: _Call, channel: grpc.aio.Channel, metadata: list[tuple[str, str]]
    ) -> tuple[Json, JsonObject]:
        limit_s = request_limit_s(call.tool, call.provider)
        method = call.implementation.method
        try:
            if call.implementation.server_streaming:
                stream: grpc.aio.UnaryStreamCall[bytes, bytes] = channel.unary_stream(
                    method, request_serializer=as_is, response_deserializer=as_is
                )(call.request, timeout=limit_s, metadata=tuple(metadata))
                return await self._collect(call, stream)
            unary: grpc.aio.UnaryUnaryCall[bytes, bytes] = channel.unary_unary(
                method, request_serializer=as_is, response_deserializer=as_is
            )(call.request, timeout=limit_s, metadata=tuple(metadata))
            return call.codec.read(await unary), {}
        except UnreadableMessage as problem:
            raise _unreadable(call.tool, str(problem)) from None

    async def _collect(
        self, call: _Call, stream: "grpc.aio.UnaryStreamCall[bytes, bytes]"
    ) -> tuple[list[Json], JsonObject]:
        """The messages of a stream, until it ends or a bound is reached."""
        found: list[Json] = []
        most, left = call.implementation.max_messages, self._session.policy.max_bytes
        stopped: str | None = None
        try:
            async for data in stream:
                left -= len(data)
                if left < 0:
                    stopped = f"{self._session.policy.max_bytes} bytes"
                    break
                found.append(call.codec.read(data))
                if len(found) == most:
                    stopped = f"max_messages={most}"
                    break
        finally:
            stream.cancel()
        facts: JsonObject = {"stream": {"messages": len(found), "complete": stopped is None}}
        if stopped is not None:
            facts["warnings"] = [f"the stream was ended after {len(found)} messages ({stopped}); there may be more"]
        return found, facts

    async def _codec(self, dispatch: Dispatch, implementation: GrpcImplementation) -> Codec:
        key = (dispatch.tool.realm, implementation.descriptors, implementation.request, implementation.response)
        if key not in self._codecs:
            if len(self._codecs) >= MAX_CODECS:
                del self._codecs[next(iter(self._codecs))]
            self._codecs[key] = await self._read_codec(dispatch, implementation)
        return self._codecs[key]

    async def _read_codec(self, dispatch: Dispatch, implementation: GrpcImplementation) -> Codec:
        try:
            data = await self._blobs.get(dispatch.tool.realm, implementation.descriptors)
            return await asyncio.to_thread(_make_codec, data, implementation)
        except (NotFound, InvalidDefinition, KeyError) as problem:
            message = (
                f"tool {dispatch.tool.name!r} cannot be called, because its descriptors are not at hand or do not "
                f"describe {implementation.request!r} and {implementation.response!r} ({problem}); import it again"
            )
            raise CallFailed(error(ErrorCode.PROVIDER_ERROR, Reason.NOT_FOUND, message)) from None


def _make_codec(data: bytes, implementation: GrpcImplementation) -> Codec:
    return Codec(pool_of(read_set(data)), implementation.request, implementation.response)


def _write_request(dispatch: Dispatch, codec: Codec) -> bytes:
    tool, given = dispatch.tool.definition, dispatch.input
    taken_by = tool.idempotency_key
    if taken_by is not None and not taken_by.startswith(_HEADER_KEY):
        given = {taken_by: dispatch.idempotency_key, **given}
    try:
        return codec.write(given)
    except UnsendableMessage as problem:
        message = f"tool {tool.name!r} was not called: {problem}; correct the arguments and call again"
        raise CallFailed(error(ErrorCode.VALIDATION_ERROR, Reason.INPUT_SCHEMA_MISMATCH, message), sent=False) from None


def _metadata(call: _Call, credentials: Credentials) -> list[tuple[str, str]]:
    """What goes along with the request: the provider's headers, the call's key, the credentials."""
    sent = _headers(call.provider)
    key = call.tool.idempotency_key or ""
    if key.startswith(_HEADER_KEY):
        sent[key.removeprefix(_HEADER_KEY).lower()] = call.dispatch.idempotency_key
    return _check_metadata(call.provider, sent | _only_headers(call.provider, credentials))


def _headers(provider: ProviderDefinition) -> dict[str, str]:
    return {name.lower(): value for name, value in provider.headers.items()}


def _only_headers(provider: ProviderDefinition, credentials: Credentials) -> dict[str, str]:
    if not credentials.query and not credentials.cookies:
        return credentials.headers
    message = (
        f"a gRPC call carries credentials in metadata only, and provider {provider.name!r} has them in a query or a "
        "cookie; give them the place 'header'"
    )
    raise CallFailed(error(ErrorCode.AUTH_REQUIRED, Reason.REQUEST_REFUSED, message))


def _check_metadata(provider: ProviderDefinition, sent: Mapping[str, str]) -> list[tuple[str, str]]:
    for name, value in sent.items():
        reserved = name in _OURS or name.startswith("grpc-") or name.endswith("-bin")
        if reserved or not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
            message = (
                f"{name!r} of provider {provider.name!r} cannot be metadata of a gRPC call, which is printable ASCII "
                "under a name that is not gRPC's own; correct the provider's headers and credentials"
            )
            raise CallFailed(error(ErrorCode.VALIDATION_ERROR, Reason.REQUEST_REFUSED, message))
    return list(sent.items())


def _unreadable(tool: ToolDefinition, problem: str) -> CallFailed:
    message = f"tool {tool.name!r} ran, but its answer cannot be used: {problem}"
    return CallFailed(error(ErrorCode.PROVIDER_ERROR, Reason.BAD_RESPONSE, message), effect="done")

"""One call of a gRPC method, unary or server-streaming. Loads grpcio; `GrpcRuntime` does so with its first call."""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import grpc
import grpc.aio

from toolcrib.contracts import (
    EgressDenied,
    ErrorCode,
    GrpcImplementation,
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
from toolcrib.core.providers.reach import count_request, unanswered
from toolcrib.core.providers.reaching import request_limit_s
from toolcrib.infrastructure.net import HttpSession, NetworkError
from toolcrib.infrastructure.store import Blobs
from toolcrib.kinds.grpc.importer import Channels, Reflected, as_is, pool_of, read_set, reflect
from toolcrib.kinds.grpc.runtime.failures import answered
from toolcrib.kinds.grpc.runtime.messages import Codec, UnreadableMessage, UnsendableMessage

MAX_CODECS: Final = 1_000
"""Methods whose descriptors are kept at hand."""

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
        call = _Call(dispatch, implementation, provider, codec, _written(dispatch, codec))
        credentials = await self._credentials(call)
        try:
            return await self._attempt(call, credentials)
        except CallFailed as failure:
            refused = failure.metadata.get("grpc_status") == grpc.StatusCode.UNAUTHENTICATED.name
            if not (refused and self._providers.forget(credentials)):
                raise
        return await self._attempt(call, await self._credentials(call))

    async def reflect(self, provider: ProviderDefinition, principal: Principal) -> Reflected:
        """What a server says that it serves, asked over a connection of its own.

        Raises:
            CallFailed: Its credentials are not at hand, or are no metadata.
            EgressDenied: The policy forbids the address.
            Unavailable: The server cannot be reached, or does not answer in time.
            ReconnectRequired: It refuses the credentials.
            InvalidInput: It has no reflection, refuses it, or answers with something else.
        """
        found = await self._providers.credentials(provider, provider.address, principal)
        metadata = _checked(provider, {**_headers(provider), **_only_headers(provider, found)})
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
                raise unanswered(call.tool, problem) from None
            except InvalidSettings as problem:
                message = f"tool {call.tool.name!r} cannot authenticate: {problem}"
                raise CallFailed(error(ErrorCode.AUTH_REQUIRED, Reason.MISSING_SECRET, message)) from None
            try:
                output, told = await self._exchange(call, channel, metadata)
            except grpc.aio.AioRpcError as problem:
                if problem.code() is grpc.StatusCode.UNAVAILABLE:
                    self.channels.doubt(call.dispatch.tool.realm, call.provider, credentials.tls)
                raise answered(call.tool, problem, self._session.policy.max_bytes) from None
        except CallFailed as failure:
            failure.secrets += credentials.secrets
            raise
        return Outcome(output, metadata={"grpc_status": grpc.StatusCode.OK.name, **told}, secrets=credentials.secrets)

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
        told: JsonObject = {"stream": {"messages": len(found), "complete": stopped is None}}
        if stopped is not None:
            told["warnings"] = [f"the stream was ended after {len(found)} messages ({stopped}); there may be more"]
        return found, told

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
            return await asyncio.to_thread(_made, data, implementation)
        except (NotFound, InvalidDefinition, KeyError) as problem:
            message = (
                f"tool {dispatch.tool.name!r} cannot be called, because its descriptors are not at hand or do not "
                f"describe {implementation.request!r} and {implementation.response!r} ({problem}); import it again"
            )
            raise CallFailed(error(ErrorCode.PROVIDER_ERROR, Reason.NOT_FOUND, message)) from None


def _made(data: bytes, implementation: GrpcImplementation) -> Codec:
    return Codec(pool_of(read_set(data)), implementation.request, implementation.response)


def _written(dispatch: Dispatch, codec: Codec) -> bytes:
    tool, given = dispatch.tool.definition, dispatch.input
    taken_by = tool.idempotency_key
    if taken_by is not None and not taken_by.startswith(_HEADER_KEY):
        given = {taken_by: dispatch.idempotency_key, **given}
    try:
        return codec.write(given)
    except UnsendableMessage as problem:
        message = f"tool {tool.name!r} was not called: {problem}; correct the arguments and call again"
        raise CallFailed(error(ErrorCode.VALIDATION_ERROR, Reason.INPUT_SCHEMA_MISMATCH, message)) from None


def _metadata(call: _Call, credentials: Credentials) -> list[tuple[str, str]]:
    """What goes along with the request: the provider's headers, the call's key, the credentials."""
    sent = _headers(call.provider)
    key = call.tool.idempotency_key or ""
    if key.startswith(_HEADER_KEY):
        sent[key.removeprefix(_HEADER_KEY).lower()] = call.dispatch.idempotency_key
    return _checked(call.provider, sent | _only_headers(call.provider, credentials))


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


def _checked(provider: ProviderDefinition, sent: Mapping[str, str]) -> list[tuple[str, str]]:
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

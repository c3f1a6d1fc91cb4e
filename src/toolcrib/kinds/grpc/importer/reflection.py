"""Requests a server's descriptors by gRPC Server Reflection (grpc.reflection.v1, and v1alpha for older servers).

Both protocols use the same messages. Each file is requested once. Number, size and time are limited, so a server that
never stops answering, or never answers, causes an error.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import grpc
import grpc.aio
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.message import DecodeError
from grpc_reflection.v1alpha.reflection_pb2 import ServerReflectionRequest, ServerReflectionResponse

from toolcrib.contracts import InvalidInput, ReconnectRequired, ToolcribError, Unavailable
from toolcrib.kinds.grpc.importer.channels import as_is
from toolcrib.kinds.grpc.importer.descriptors import check_size, is_infrastructure

MAX_SERVICES: Final = 1_000
TIMEOUT_S: Final = 60.0
"""Of the whole conversation."""

_VERSIONS: Final = ("v1", "v1alpha")
_METHOD: Final = "/grpc.reflection.{}.ServerReflection/ServerReflectionInfo"
_MAX_WORDS: Final = 300
_CLOSED: Final = "Internal error from Core"
"""What grpcio itself, and no server, says of a message that it could not write: the server had ended the stream."""
_OURS: Final = "google/protobuf/"


@dataclass(slots=True)
class Reflected:
    """What a server says that it serves."""

    version: str
    services: list[str] = field(default_factory=list[str])
    files: dict[str, FileDescriptorProto] = field(default_factory=dict[str, FileDescriptorProto])


async def reflect(
    channel: grpc.aio.Channel,
    address: str,
    metadata: Sequence[tuple[str, str]] = (),
    *,
    within_s: float = TIMEOUT_S,
) -> Reflected:
    """The services of a server and the files that define them.

    Args:
        channel: To the server.
        address: The address of the server, for messages.
        metadata: With its credentials.
        within_s: Seconds for all of it.

    Raises:
        Unavailable: The server cannot be reached, or does not answer in time.
        ReconnectRequired: It refuses the credentials.
        InvalidInput: It has no reflection, refuses it, or answers with something else.
        InvalidDefinition: It describes more than can be handled.
    """
    try:
        async with asyncio.timeout(within_s):
            for version in _VERSIONS:
                found = await _Conversation(channel, address, metadata, version).hold()
                if found is not None:
                    return found
    except TimeoutError:
        msg = f"{address} did not describe its services within {within_s:g} s; try again, or give a descriptor set"
        raise Unavailable(msg) from None
    msg = f"{address} has no server reflection; turn it on there, or give a descriptor set made by protoc or buf"
    raise InvalidInput(msg)


class _Conversation:
    """One stream of questions and answers."""

    def __init__(
        self, channel: grpc.aio.Channel, address: str, metadata: Sequence[tuple[str, str]], version: str
    ) -> None:
        self._address = address
        self._found = Reflected(version)
        self._size = 0
        self._stream: grpc.aio.StreamStreamCall[bytes, bytes] = channel.stream_stream(
            _METHOD.format(version), request_serializer=as_is, response_deserializer=as_is
        )(metadata=tuple(metadata))

    async def hold(self) -> Reflected | None:
        """All that the server says; null if it does not speak this version."""
        try:
            await self._ask_all()
        except grpc.aio.AioRpcError as problem:
            if problem.code() is grpc.StatusCode.UNIMPLEMENTED and not self._found.services:
                return None
            raise self._to_error(problem) from None
        finally:
            self._stream.cancel()
        return self._found

    async def _ask_all(self) -> None:
        answer = await self._ask(ServerReflectionRequest(list_services=""))
        names = [service.name for service in answer.list_services_response.service]
        if len(names) > MAX_SERVICES:
            msg = f"{self._address} names {len(names)} services and {MAX_SERVICES} is the most; give a descriptor set"
            raise InvalidInput(msg)
        self._found.services += names
        for name in names:
            if not is_infrastructure(name):
                self._take(await self._ask(ServerReflectionRequest(file_containing_symbol=name)))
        requested: set[str] = set()
        while missing := self._missing() - requested:
            for name in sorted(missing):
                requested.add(name)
                self._take(await self._ask(ServerReflectionRequest(file_by_filename=name)))

    async def _ask(self, question: ServerReflectionRequest) -> ServerReflectionResponse:
        try:
            await self._stream.write(question.SerializeToString())
            data = await self._stream.read()
        except grpc.aio.AioRpcError as problem:
            if problem.details() != _CLOSED:
                raise
            data = None
        if not isinstance(data, bytes):
            raise self._strange("ended the conversation without an answer")
        try:
            return ServerReflectionResponse.FromString(data)
        except DecodeError:
            raise self._strange("answered with something else") from None

    def _take(self, answer: ServerReflectionResponse) -> None:
        """Files of an answer; an error in their place means that there are none, which is found out later."""
        for data in answer.file_descriptor_response.file_descriptor_proto:
            self._size += len(data)
            try:
                file = FileDescriptorProto.FromString(data)
            except DecodeError:
                raise self._strange("describes a file in a way that cannot be read") from None
            self._found.files.setdefault(file.name, file)
        check_size(len(self._found.files), self._size)

    def _missing(self) -> set[str]:
        files = self._found.files
        imported = {name for file in files.values() for name in file.dependency}
        return {name for name in imported - files.keys() if not name.startswith(_OURS)}

    def _to_error(self, problem: grpc.aio.AioRpcError) -> ToolcribError:
        details = (problem.details() or "")[:_MAX_WORDS]
        if problem.code() in {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED}:
            return Unavailable(f"{self._address} cannot be reached: {details}; check the address, or try again later")
        if problem.code() in {grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED}:
            return ReconnectRequired(
                f"{self._address} refused the credentials with {problem.code().name}: {details}; "
                "check or renew them, or give a descriptor set"
            )
        return InvalidInput(
            f"{self._address} refused to describe its services with {problem.code().name}: {details}; "
            "give a descriptor set instead"
        )

    def _strange(self, problem: str) -> InvalidInput:
        return InvalidInput(f"the reflection of {self._address} {problem}; give a descriptor set instead")

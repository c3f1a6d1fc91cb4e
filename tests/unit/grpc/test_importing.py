"""Bringing in a server: by reflection, from a set, again; and what cannot be brought in."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from grpc_reflection.v1alpha.reflection_pb2 import ServerReflectionResponse

from tests.unit.grpc.protos import crm as crm_file
from tests.unit.grpc.protos import descriptor_set, old
from tests.unit.grpc.server import REFLECTIONS, Crm, conversing, crm_server, handlers, local, serving
from toolcrib import Crib
from toolcrib.contracts import (
    BearerAuth,
    GrpcConnection,
    InvalidDefinition,
    InvalidInput,
    ProviderDefinition,
    ReconnectRequired,
    ToolcribError,
    Unavailable,
)
from toolcrib.infrastructure.net import HttpSession
from toolcrib.kinds.grpc.importer import Channels, import_grpc, reflect

V1, V1ALPHA = REFLECTIONS


def tool(crib: Crib, name: str) -> Any:
    """The current definition."""
    return crib.registry.require("default", name).definition


@pytest.mark.requirement("grpc.import_reflection", "grpc.effects", "grpc.import_losses")
@pytest.mark.parametrize("version", [V1, V1ALPHA])
async def test_a_server_is_imported_by_what_it_says_of_itself(version: str) -> None:
    async with crm_server(Crm(), version) as port, Crib("memory://", egress=local(port)) as crib:
        imported = await crib.imports.grpc(f"grpc://127.0.0.1:{port}/", name="crm")
        assert imported.report.format == f"gRPC reflection {'v1' if version == V1 else 'v1alpha'}"
        assert imported.provider.base_url == f"grpc://127.0.0.1:{port}"
        assert {found.name: (found.side_effects, found.idempotent) for found in imported.tools} == {
            "DealService_GetDeal": ("reads", True),
            "DealService_ListDeals": ("reads", True),
            "DealService_PutDeal": ("writes", True),
            "DealService_Fail": ("writes", False),
            "DealService_Shout": ("writes", False),
            "Orders_Place": ("writes", False),
        }
        left_out = {entry.operation: entry.losses[0].why for entry in imported.report.operations if entry.tool is None}
        assert left_out == {
            "/crm.v1.DealService/Upload": "left out: the client sends a stream",
            "/crm.v1.DealService/Chat": "left out: the client sends a stream, and so does the server",
        }
        assert [group.name for group in imported.groups] == ["dealservice", "orders"]
        assert (await crib.call("DealService_GetDeal", id="7")).output["id"] == "7"


@pytest.mark.requirement("grpc.import_set")
async def test_a_set_brings_comments_and_nobody_is_asked() -> None:
    async with Crib("memory://") as crib:
        imported = await crib.imports.grpc("grpcs://crm.example", name="crm", descriptors=descriptor_set(crm_file()))
        found = tool(crib, "DealService_GetDeal")
        assert found.description == "Reads one deal. With everything in it."
        assert tool(crib, "DealService_PutDeal").description.startswith("Deprecated. ")
        assert found.input_schema["required"] == ["id"]
        deal = found.output_schema
        assert deal["description"] == "A sale that may happen."
        assert deal["properties"]["amount_cents"]["description"] == "In cents of the deal's currency."
        assert deal["$defs"]["crm.v1.Stage"]["description"] == "STAGE_WON: The customer has signed."
        assert imported.groups[0].description == "Deals of the company."
        assert imported.report.format == "FileDescriptorSet"


@pytest.mark.requirement("grpc.import_again")
async def test_names_and_authentication_stay_and_a_new_comment_changes_no_descriptors() -> None:
    auth = BearerAuth(token="${env:CRM_TOKEN}")
    async with Crib("memory://") as crib:
        first = await crib.imports.grpc(
            "grpcs://crm.example", name="crm", descriptors=descriptor_set(crm_file()), auth=auth
        )
        changed = FileDescriptorProto.FromString(crm_file().SerializeToString())
        changed.source_code_info.location[0].leading_comments = "Something else."
        changed.service.add(name="More").method.add(name="Do", input_type=".crm.v1.Team", output_type=".crm.v1.Team")
        again = await crib.imports.grpc("grpcs://crm.example", name="crm", descriptors=descriptor_set(changed))
        assert again.provider.auth == auth
        before = {found.name: found.implementation for found in first.tools}
        after = {found.name: found.implementation for found in again.tools}
        assert after.pop("More_Do")
        assert after == before


@pytest.mark.requirement("grpc.import_again")
async def test_a_name_that_somebody_else_has_gets_the_providers_name_in_front() -> None:
    async with Crib("memory://") as crib:
        await crib.imports.grpc("grpcs://a.example", name="a", descriptors=descriptor_set(old()))
        second = await crib.imports.grpc("grpcs://b.example", name="b", descriptors=descriptor_set(old()))
        third = await crib.imports.grpc("grpcs://b.example", name="b", descriptors=descriptor_set(old()))
        assert [found.name for found in second.tools] == [found.name for found in third.tools] == ["b_Orders_Place"]


@pytest.mark.requirement("grpc.import_again")
def test_services_of_one_name_get_tools_of_different_names_whatever_their_order() -> None:
    first = FileDescriptorProto.FromString(old().SerializeToString().replace(b"old", b"v11"))
    first.name = "v11.proto"
    names = [
        {entry.operation: entry.tool for entry in import_grpc(files, name="x", base_url="grpc://x:1").report.operations}
        for files in ([old(), first], [first, old()])
    ]
    assert names[0] == names[1]
    assert names[0]["/old.Orders/Place"] == "Orders_Place"
    assert str(names[0]["/v11.Orders/Place"]).startswith("Orders_Place_")


def _set(*files: FileDescriptorProto) -> bytes:
    return FileDescriptorSet(file=files).SerializeToString()


def _broken(**fields: Any) -> bytes:
    return _set(FileDescriptorProto(name="x.proto", package="x", syntax="proto3", **fields))


BAD_FIELD = {"name": "a", "number": 1, "type": 11, "type_name": ".no"}
FOREIGN = FileDescriptorProto(name="t.proto", package="google.protobuf")
MANY = [FileDescriptorProto(name=f"{number}.proto") for number in range(5001)]


@pytest.mark.requirement("grpc.import_refused")
@pytest.mark.parametrize(
    ("descriptors", "says"),
    [
        pytest.param(b"", "no FileDescriptorSet", id="empty"),
        pytest.param(b"\xff\xff", "no FileDescriptorSet", id="noise"),
        pytest.param(b"openapi: 3.1.0", "no FileDescriptorSet", id="text"),
        pytest.param(bytes(17 * 2**20), "is the most", id="large"),
        pytest.param(_broken(dependency=["y.proto"]), "--include_imports", id="missing import"),
        pytest.param(_broken(dependency=["x.proto"]), "cycle", id="cycle"),
        pytest.param(_broken(message_type=[{"name": "M", "field": [BAD_FIELD]}]), "not well formed", id="bad type"),
        pytest.param(_set(FOREIGN), "which are not its own", id="foreign well-known"),
        pytest.param(_set(*MANY), "5000 is the most", id="many files"),
    ],
)
async def test_a_set_that_cannot_be_used_is_refused_and_nothing_is_stored(descriptors: bytes, says: str) -> None:
    async with Crib("memory://") as crib:
        with pytest.raises(InvalidDefinition, match=says):
            await crib.imports.grpc("grpcs://crm.example", name="crm", descriptors=descriptors)
        assert crib.providers.current("default") == []
        assert crib.registry.names("default") == []


@pytest.mark.requirement("grpc.import_refused")
@pytest.mark.parametrize("address", ["crm.example:443", "https://crm.example", "grpc://", "grpc://host/path", ""])
async def test_an_address_that_is_none_is_refused(address: str) -> None:
    async with Crib("memory://") as crib:
        with pytest.raises(InvalidDefinition, match="grpc://host:port"):
            await crib.imports.grpc(address, name="crm", descriptors=descriptor_set(old()))


@pytest.mark.requirement("grpc.import_refused")
async def test_a_server_without_reflection_is_told_from_one_that_is_not_there() -> None:
    async with serving(*handlers(Crm())) as port, Crib("memory://", egress=local(port)) as crib:
        with pytest.raises(InvalidInput, match="has no server reflection"):
            await crib.imports.grpc(f"grpc://127.0.0.1:{port}", name="crm")
    async with Crib("memory://", egress=local(port)) as crib:
        with pytest.raises(Unavailable, match="cannot be reached"):
            await crib.imports.grpc(f"grpc://127.0.0.1:{port}", name="crm")


@pytest.mark.requirement("grpc.import_refused", "grpc.credentials")
async def test_wrong_credentials_are_a_refusal_and_missing_ones_name_the_reference() -> None:
    async def refuse(questions: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
        await context.abort(grpc.StatusCode.UNAUTHENTICATED, "who are you?")
        yield b""

    auth = BearerAuth(token="${env:CRM_TOKEN}")
    async with serving(conversing(V1, refuse)) as port:
        for environment, says in (({"CRM_TOKEN": "t"}, "UNAUTHENTICATED: who are you"), ({}, "CRM_TOKEN")):
            async with Crib("memory://", egress=local(port), environment=environment) as crib:
                with pytest.raises(ReconnectRequired, match=says):
                    await crib.imports.grpc(f"grpc://127.0.0.1:{port}", name="crm", auth=auth)


def _files(*files: FileDescriptorProto) -> bytes:
    answer = ServerReflectionResponse()
    answer.file_descriptor_response.file_descriptor_proto.extend(file.SerializeToString() for file in files)
    return answer.SerializeToString()


def _services(*names: str) -> bytes:
    answer = ServerReflectionResponse()
    for name in names:
        answer.list_services_response.service.add(name=name)
    return answer.SerializeToString()


async def chain(questions: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
    """Files that import ever more."""
    number = 0
    async for _ in questions:
        file = FileDescriptorProto(name=f"{number}.proto", dependency=[f"{number + 1}.proto"])
        yield _files(file) if number else _services("x.Y")
        number += 1


async def same_again(questions: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
    """The same file, whatever is asked for, which imports another."""
    first = True
    async for _ in questions:
        yield _services("x.Y") if first else _files(FileDescriptorProto(name="a.proto", dependency=["b.proto"]))
        first = False


async def noise(questions: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
    """No messages of reflection."""
    async for _ in questions:
        yield b"\xff\xff\xff"


async def bad_file(questions: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
    """A file that is none."""
    answer = ServerReflectionResponse()
    answer.file_descriptor_response.file_descriptor_proto.append(b"\xff\xff")
    first = True
    async for _ in questions:
        yield _services("x.Y") if first else answer.SerializeToString()
        first = False


async def huge(questions: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
    """Files without end of size."""
    first = True
    async for _ in questions:
        yield (
            _services("x.Y", "x.Z", "x.W")
            if first
            else _files(FileDescriptorProto(name="a.proto", package="x" * 7 * 2**20))
        )
        first = False


async def crowd(questions: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
    """More services than anybody has."""
    async for _ in questions:
        yield _services(*(f"x.S{number}" for number in range(2000)))


async def nothing(questions: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
    """The end, at once."""
    return
    yield b""


async def silence(questions: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
    """No answer, ever."""
    await asyncio.Event().wait()
    yield b""


@pytest.mark.requirement("grpc.import_refused")
@pytest.mark.parametrize(
    ("behaviour", "says"),
    [
        (chain, "5000 is the most"),
        (same_again, "which is not there"),
        (noise, "answered with something else"),
        (bad_file, "cannot be read"),
        (huge, "is the most"),
        (crowd, "1000 is the most"),
        (nothing, "without an answer"),
    ],
)
async def test_a_server_that_answers_with_something_else_ends_in_an_error(behaviour: Any, says: str) -> None:
    async with serving(conversing(V1, behaviour)) as port, Crib("memory://", egress=local(port)) as crib:
        with pytest.raises(ToolcribError, match=says):
            await crib.imports.grpc(f"grpc://127.0.0.1:{port}", name="crm")
        assert crib.providers.current("default") == []


@pytest.mark.requirement("grpc.import_refused")
async def test_a_server_that_never_answers_ends_in_an_error() -> None:
    async with serving(conversing(V1, silence)) as port:
        channels = Channels(HttpSession(local(port)))
        address = f"grpc://127.0.0.1:{port}"
        provider = ProviderDefinition(name="crm", base_url=address, connection=GrpcConnection())
        with pytest.raises(Unavailable, match="did not describe its services"):
            await reflect(await channels.get("default", provider), address, within_s=0.1)
        await channels.close()


@pytest.mark.requirement("grpc.import_losses")
async def test_a_service_that_nothing_describes_is_left_out_and_said_to_be() -> None:
    async def unknown(questions: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
        first = True
        async for _ in questions:
            yield _services("x.Y", "grpc.health.v1.Health") if first else ServerReflectionResponse().SerializeToString()
            first = False

    async with serving(conversing(V1, unknown)) as port, Crib("memory://", egress=local(port)) as crib:
        imported = await crib.imports.grpc(f"grpc://127.0.0.1:{port}", name="crm")
    assert imported.tools == ()
    assert [(loss.kind, loss.what) for loss in imported.report.losses] == [
        ("reference", "service x.Y"),
        ("annotation", "service grpc.health.v1.Health"),
        ("operation", "services"),
    ]

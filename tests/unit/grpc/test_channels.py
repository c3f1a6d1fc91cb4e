"""Connections: judged, shared, found anew, replaced and closed; and a process without the packages."""

import sys
from collections.abc import AsyncGenerator

import pytest

from tests.unit.grpc.protos import descriptor_set, old
from tests.unit.net.servers import TableResolver
from toolcrib import Crib, EgressPolicy
from toolcrib.contracts import EgressDenied, ErrorCode, GrpcConnection, InvalidSettings, ProviderDefinition, Reason
from toolcrib.infrastructure.net import ConnectionFailed, HttpSession
from toolcrib.infrastructure.store import MemoryStore
from toolcrib.kinds.grpc.importer import Channels
from toolcrib.kinds.grpc.importer import channels as module
from toolcrib.kinds.grpc.importer.channels import target_of

pytestmark = pytest.mark.requirement("grpc.channels")


def provider(address: str = "grpc://crm.example:80", authority: str | None = None) -> ProviderDefinition:
    """A provider of gRPC."""
    return ProviderDefinition(name="crm", base_url=address, connection=GrpcConnection(authority=authority))


@pytest.fixture
def resolver() -> TableResolver:
    """Names that lead somewhere."""
    return TableResolver({"crm.example": [["203.0.113.1"], ["203.0.113.1"], ["203.0.113.2"]]})


@pytest.fixture
async def channels(resolver: TableResolver) -> AsyncGenerator[Channels]:
    """Channels of a session that may reach what lies in the documentation's network."""
    policy = EgressPolicy(allow=("203.0.113.0/24:80", "203.0.113.0/24:443"))
    made = Channels(HttpSession(policy, resolver=resolver))
    yield made
    await made.close()


async def test_a_provider_has_one_channel_until_its_address_changes(
    channels: Channels, resolver: TableResolver
) -> None:
    first = await channels.get("default", provider())
    assert await channels.get("default", provider()) is first
    assert resolver.asked == [("crm.example", 80)]
    assert await channels.get("elsewhere", provider()) is not first
    assert await channels.get("default", provider(authority="crm.internal")) is not first


async def test_a_doubted_channel_stays_if_the_name_leads_where_it_did_and_is_replaced_if_not(
    channels: Channels,
) -> None:
    first = await channels.get("default", provider())
    channels.doubt("default", provider())
    assert await channels.get("default", provider()) is first
    channels.doubt("default", provider())
    assert await channels.get("default", provider()) is not first
    channels.doubt("elsewhere", provider())


async def test_no_more_than_so_many_channels_are_kept(channels: Channels, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_CHANNELS", 1)
    first = await channels.get("one", provider())
    await channels.get("two", provider())
    assert await channels.get("one", provider()) is not first


@pytest.mark.requirement("grpc.egress")
async def test_a_name_is_resolved_and_judged_before_anything_connects(
    channels: Channels, resolver: TableResolver
) -> None:
    for answers, expected in (([["10.0.0.1"]], EgressDenied), ([["203.0.113.1", "127.0.0.1"]], EgressDenied)):
        resolver = TableResolver({"crm.example": answers})
        with pytest.raises(expected):
            await HttpSession(EgressPolicy(), resolver=resolver).route("http://crm.example")
    for name in ("nobody.example", "empty.example"):
        with pytest.raises(ConnectionFailed, match="does not resolve"):
            await HttpSession(EgressPolicy(), resolver=TableResolver({"empty.example": [[]]})).route(f"http://{name}")
    with pytest.raises(EgressDenied):
        await channels.get("default", provider("grpc://a b"))


@pytest.mark.requirement("grpc.egress")
async def test_the_addresses_of_one_family_are_connected_to_as_they_stand() -> None:
    table = {"v4.example": [["8.8.8.8", "2001:4860:4860::8888", "8.8.4.4"]], "v6.example": [["2001:4860:4860::8888"]]}
    session = HttpSession(EgressPolicy(), resolver=TableResolver(table))
    assert target_of(await session.route("https://v4.example")) == "ipv4:8.8.8.8:443,8.8.4.4:443"
    assert target_of(await session.route("https://v6.example")) == "ipv6:[2001:4860:4860::8888]:443"


@pytest.mark.requirement("grpc.surfaces")
async def test_without_the_packages_a_call_and_an_import_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    async with Crib(store) as elsewhere, Crib(store) as crib:
        await elsewhere.imports.grpc("grpcs://old.example", name="old", descriptors=descriptor_set(old()))
        monkeypatch.setitem(sys.modules, "toolcrib.kinds.grpc.runtime.calls", None)
        await crib.refresh()
        envelope = await crib.call("Orders_Place", number=1)
        with pytest.raises(InvalidSettings, match=r"pip install 'toolcrib\[grpc\]'"):
            await crib.imports.grpc("grpcs://old.example", name="old", descriptors=descriptor_set(old()))
    assert envelope.error is not None
    assert (envelope.error.code, envelope.error.reason) == (ErrorCode.UNKNOWN, Reason.RUNTIME_MISSING)
    assert "pip install 'toolcrib[grpc]'" in envelope.error.message

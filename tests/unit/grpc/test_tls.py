"""Servers over TLS: whose certificate is believed, under which name, and who we are to them."""

import grpc
import pytest

from tests.unit.grpc.protos import descriptor_set, old
from tests.unit.grpc.server import Crm, handlers, local, serving
from tests.unit.net.certificates import authority, issued
from toolcrib import Crib
from toolcrib.contracts import ErrorCode, MutualTlsAuth, ToolEnvelope

pytestmark = pytest.mark.requirement("grpc.tls")

OURS, FOREIGN = "gRPC authority", "another authority"


async def placed(
    address: str, auth: MutualTlsAuth, environment: dict[str, str], *, of: str = OURS, name: str | None = None
) -> ToolEnvelope:
    """One call of a server whose certificate is for `127.0.0.1`."""
    server, client = issued("server", of, "127.0.0.1"), authority(OURS)
    credentials = grpc.ssl_server_credentials(
        [(server.key().encode(), server.pem.encode())],
        root_certificates=client.pem.encode(),
        require_client_auth=auth.certificate is not None,
    )
    async with serving(*handlers(Crm()), credentials=credentials) as port:
        secrets = {"CRM_CA": authority(OURS).pem, **environment}
        async with Crib("memory://", egress=local(port), environment=secrets) as crib:
            await crib.imports.grpc(
                f"{address}:{port}", name="crm", descriptors=descriptor_set(old()), auth=auth, authority=name
            )
            return await crib.call("Orders_Place", number=1)


TRUSTING = MutualTlsAuth(ca="${env:CRM_CA}")


async def test_a_server_is_known_by_its_providers_authority() -> None:
    envelope = await placed("grpcs://127.0.0.1", TRUSTING, {})
    assert envelope.error is None


async def test_a_certificate_of_another_authority_or_name_is_not_believed() -> None:
    for address, of in (("grpcs://127.0.0.1", FOREIGN), ("grpcs://localhost", OURS)):
        envelope = await placed(address, TRUSTING, {}, of=of)
        assert envelope.error is not None
        assert envelope.error.code is ErrorCode.NETWORK_ERROR


async def test_a_certificate_may_be_held_against_another_name_than_the_hosts() -> None:
    envelope = await placed("grpcs://localhost", TRUSTING, {}, name="127.0.0.1")
    assert envelope.error is None


async def test_a_client_certificate_says_who_we_are() -> None:
    mine = issued("client", OURS)
    auth = MutualTlsAuth(certificate="${env:CRM_CERT}", key="${env:CRM_KEY}", ca="${env:CRM_CA}")
    envelope = await placed("grpcs://127.0.0.1", auth, {"CRM_CERT": mine.pem, "CRM_KEY": mine.key()})
    assert envelope.error is None


@pytest.mark.parametrize("password", [None, "sesame"])
async def test_a_certificate_that_cannot_be_used_is_named_before_anything_is_sent(password: str | None) -> None:
    mine = issued("client", OURS)
    auth = MutualTlsAuth(
        certificate="${env:CRM_CERT}",
        key="${env:CRM_KEY}",
        password=None if password is None else "${env:CRM_PASSWORD}",
        ca="${env:CRM_CA}",
    )
    key = mine.key(password) if password else authority(OURS).key()
    environment = {"CRM_CERT": mine.pem, "CRM_KEY": key, "CRM_PASSWORD": password or ""}
    envelope = await placed("grpcs://127.0.0.1", auth, environment)
    assert envelope.error is not None
    assert envelope.error.code is ErrorCode.AUTH_REQUIRED
    assert "BEGIN" not in envelope.error.message

"""Client certificates and private authorities, against real TLS servers."""

import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.unit.net.certificates import authority, issued, server_context
from tests.unit.net.servers import serving
from toolcrib.contracts import InvalidSettings
from toolcrib.infrastructure.net import ConnectionFailed, EgressPolicy, HttpSession, TlsIdentity

CLIENT = issued("client-one", "clients")
IDENTITY = TlsIdentity(CLIENT.pem, CLIENT.key(), ca=authority("servers").pem)


@dataclass
class Place:
    """A TLS server that says who it talks to, and on which connection."""

    url: str
    session: HttpSession

    async def asked_by(self, identity: TlsIdentity | None, path: str = "/") -> tuple[str, str]:
        """Name of the client as the server knows it, and port of the connection."""
        answer = await self.session.request("GET", self.url + path, tls=identity)
        name, _, port = answer.body.decode().partition(" ")
        return name, port


async def who(request: web.BaseRequest) -> web.StreamResponse:
    transport = request.transport
    assert transport is not None
    if request.path.startswith("/to/"):
        return web.Response(status=302, headers={"Location": request.path.removeprefix("/to/")})
    certificate: dict[str, Any] = transport.get_extra_info("peercert") or {}
    names: list[str] = [value for part in certificate.get("subject", ()) for _, value in part]
    return web.Response(text=f"{''.join(names)} {transport.get_extra_info('peername')[1]}")


@asynccontextmanager
async def place(folder: Path, *, closed: bool = True) -> AsyncGenerator[Place]:
    server = issued("server", "servers", "127.0.0.1")
    context = server_context(folder, server, authority("clients") if closed else None)
    async with serving(who, tls=context) as port, HttpSession(EgressPolicy(allow=(f"127.0.0.1:{port}",))) as session:
        yield Place(f"https://127.0.0.1:{port}", session)


@pytest.mark.requirement("net.tls_identity")
async def test_a_server_that_wants_a_certificate_gets_ours_and_is_known_by_its_own_authority(tmp_path: Path) -> None:
    async with place(tmp_path) as server:
        assert (await server.asked_by(IDENTITY))[0] == "client-one"
        async with server.session.stream("GET", server.url, tls=IDENTITY) as stream:
            assert (await stream.read()).startswith(b"client-one ")


@pytest.mark.requirement("net.tls_identity")
async def test_connections_are_not_shared_between_identities(tmp_path: Path) -> None:
    other = issued("client-two", "clients")
    async with place(tmp_path) as server:
        first = await server.asked_by(IDENTITY)
        second = await server.asked_by(replace(IDENTITY, certificate=other.pem, key=other.key()))
        again = await server.asked_by(replace(IDENTITY))
        assert (first[0], second[0]) == ("client-one", "client-two")
        assert again == first
        with pytest.raises(ConnectionFailed):
            await server.asked_by(TlsIdentity(ca=authority("servers").pem))


@pytest.mark.requirement("net.tls_identity")
@pytest.mark.parametrize("identity", [None, replace(IDENTITY, ca=None), replace(IDENTITY, ca=authority("else").pem)])
async def test_a_server_of_an_unknown_authority_gets_nothing(tmp_path: Path, identity: TlsIdentity | None) -> None:
    async with place(tmp_path, closed=False) as server:
        with pytest.raises(ConnectionFailed, match="TLS: "):
            await server.asked_by(identity)


@pytest.mark.requirement("net.tls_identity")
async def test_a_foreign_certificate_is_refused_by_the_server(tmp_path: Path) -> None:
    stranger = issued("stranger", "strangers")
    async with place(tmp_path) as server:
        with pytest.raises(ConnectionFailed, match="how some refuse a client certificate"):
            await server.asked_by(replace(IDENTITY, certificate=stranger.pem, key=stranger.key()))


@pytest.mark.requirement("net.tls_identity")
async def test_an_identity_follows_a_redirect_within_its_origin_and_to_no_other(tmp_path: Path) -> None:
    async with place(tmp_path) as server:
        assert (await server.asked_by(IDENTITY, "/to//elsewhere"))[0] == "client-one"
        context = server_context(tmp_path, issued("server", "servers", "127.0.0.1"), None)
        async with serving(who, tls=context) as port:
            policy = EgressPolicy(allow=("127.0.0.1/32:" + server.url.rpartition(":")[2], f"127.0.0.1/32:{port}"))
            async with HttpSession(policy) as session:
                with pytest.raises(ConnectionFailed, match="TLS: "):
                    await Place(server.url, session).asked_by(IDENTITY, f"/to/https://127.0.0.1:{port}/")


@pytest.mark.requirement("net.tls_identity")
def test_an_encrypted_key_needs_its_password() -> None:
    locked = replace(IDENTITY, key=CLIENT.key("open sesame"))
    context = replace(locked, password="open sesame").context()
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    for password in (None, "wrong"):
        with pytest.raises(InvalidSettings, match="an encrypted key needs its password"):
            replace(locked, password=password).context()


@pytest.mark.requirement("net.tls_identity")
@pytest.mark.parametrize(
    "identity",
    [
        replace(IDENTITY, certificate="no pem"),
        replace(IDENTITY, key=None),
        replace(IDENTITY, key=issued("client-two", "clients").key()),
        replace(IDENTITY, ca="no pem"),
        replace(IDENTITY, ca="ü"),
    ],
)
def test_what_is_no_certificate_with_its_key_is_refused_without_repeating_it(identity: TlsIdentity) -> None:
    with pytest.raises(InvalidSettings, match="PEM") as caught:
        identity.context()
    assert "no pem" not in str(caught.value)
    assert repr(identity) == "TlsIdentity()"


@pytest.mark.requirement("net.tls_identity")
async def test_a_great_many_identities_are_not_all_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolcrib.infrastructure.net._transport._MAX_CONTEXTS", 1)
    async with place(tmp_path, closed=False) as server:
        ca = authority("servers").pem
        ports = [(await server.asked_by(TlsIdentity(ca=text)))[1] for text in (ca, ca + "\n", ca)]
        assert len(set(ports)) == 3

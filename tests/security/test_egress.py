"""Server-side request forgery: nothing inside is reached by an odd spelling, a name, a rebinding or a redirect.

Every case runs the whole client. The servers that must stay untouched listen on loopback and fail the test if reached.
"""

import asyncio
import socket
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.abc import ResolveResult

from tests.unit.net.servers import TableResolver, no_answer, serving
from toolcrib.infrastructure.net import EgressDenied, EgressPolicy, HttpSession, Origin, _transport

PUBLISHED = Path(__file__).parents[3] / "shared" / "data" / "ssrf"
"""Lists of encodings from public payload collections; optional."""

OWN = [
    "http://127.0.0.1/",
    "http://127.1/",
    "http://127.0.1/",
    "http://2130706433/",
    "http://0x7f000001/",
    "http://0x7f.0x0.0x0.0x1/",
    "http://0177.0.0.1/",
    "http://017700000001/",
    "http://127.0.0.01/",
    "http://383.256.256.257/",
    "http://0/",
    "http://0.0.0.0/",
    "http://①②⑦.⓪.⓪.①/",
    "http://127。0。0。1/",
    "http://\uff10x7f.1/",
    "http://127.0.0.1./",
    "http://localhost/",
    "http://LOCALHOST./",
    "http://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ/",
    "http://[::1]/",
    "http://[::]/",
    "http://[0:0:0:0:0:0:0:1]/",
    "http://[::1%25lo]/",
    "http://[::127.0.0.1]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:7f00:1]/",
    "http://[::ffff:0:127.0.0.1]/",
    "http://[64:ff9b::7f00:1]/",
    "http://[64:ff9b:1::7f00:1]/",
    "http://[2002:7f00:1::]/",
    "http://[2001:0:7f00:1::]/",
    "http://[2606:4700::5efe:7f00:1]/",
    "http://[fe80::1]/",
    "http://[fc00::1]/",
    "http://[ff02::1]/",
    "http://169.254.169.254/latest/meta-data/",
    "http://[fd00:ec2::254]/latest/meta-data/",
    "http://168.63.129.16/",
    "http://100.100.100.200/",
    "http://10.0.0.1/",
    "http://192.168.0.1/",
    "http://255.255.255.255/",
    "http://127.0.0.1:80@example.com/",
    "http://example.com@127.0.0.1/",
    "http://example.com:80@127.0.0.1:80/",
    "http://example.com#@127.0.0.1:22/",
    "http://127.0.0.1\\@example.com/",
    "http://127.0.0.1%2f@example.com/",
    "http://127.0.0.1%00.example.com/",
    "http://loc%61lhost/",
    "http://loc\u00adalhost/",
    "http://[::1/",
    "http:///127.0.0.1/",
    "//127.0.0.1/",
    "127.0.0.1",
    "file:///etc/passwd",
    "gopher://127.0.0.1:80/_",
    "unix:///var/run/docker.sock",
    "http+unix://%2Fvar%2Frun%2Fdocker.sock/",
    "data:text/plain,hello",
    "",
]

OUTSIDE = {"example.com": [["169.254.0.1"]], "xn--zca.localdomain.pw": [["127.0.0.1"]]}
"""The names in those URLs. They lead inside, so that a URL which passes by its name is caught by its address."""


def _published() -> Iterator[str]:
    for path in sorted(PUBLISHED.glob("*.txt")):
        yield from path.read_text(encoding="utf-8").splitlines()


class SystemLike(TableResolver):
    """Answers from the table, else as the system's parser of numeric addresses does, and never asks the network."""

    async def resolve(self, host: str, port: int) -> list[str]:
        if host in OUTSIDE:
            return list(await super().resolve(host, port))
        if host == "localhost":
            return ["::1", "127.0.0.1"]
        return [socket.inet_ntoa(socket.inet_aton(host))]


async def refuse_all(urls: list[str]) -> None:
    async with HttpSession(resolver=SystemLike(OUTSIDE)) as session:
        for url in urls:
            try:
                await session.request("GET", url)
            except EgressDenied:
                continue
            pytest.fail(f"{url!r} was not denied")


@pytest.mark.requirement("net.url_judged", "net.denied_ranges")
@pytest.mark.parametrize("url", OWN)
async def test_hostile_url_is_denied(url: str) -> None:
    await refuse_all([url])


@pytest.mark.requirement("net.url_judged", "net.denied_ranges")
@pytest.mark.skipif(not PUBLISHED.is_dir(), reason="the published payload lists are not beside the repository")
async def test_every_published_encoding_is_denied() -> None:
    urls = list(_published())
    assert len(urls) > 300
    await refuse_all(urls)


@pytest.mark.requirement("net.connected_address_judged")
@pytest.mark.parametrize("answer", [["127.0.0.1"], ["8.8.8.8", "127.0.0.1"], ["8.8.8.8", "::ffff:10.0.0.1"]])
async def test_name_with_one_inner_address_is_denied_as_a_whole(answer: list[str]) -> None:
    async with serving(no_answer) as port:
        policy = EgressPolicy(ports=(port,))
        async with HttpSession(policy, resolver=TableResolver({"evil.test": [answer]})) as session:
            with pytest.raises(EgressDenied, match=rf"evil\.test:{port} leads to"):
                await session.request("GET", f"http://evil.test:{port}/")


@pytest.mark.requirement("net.connected_address_judged")
async def test_name_without_an_address_is_a_failed_connection() -> None:
    async with HttpSession(resolver=TableResolver({"empty.test": [[]]})) as session:
        with pytest.raises(Exception, match="does not resolve"):
            await session.request("GET", "http://empty.test/")


@pytest.mark.requirement("net.connected_address_judged")
async def test_rebinding_between_two_connections_is_denied() -> None:
    """The first answer is allowed, the second leads to a neighbour that is not."""

    async def hello(request: web.BaseRequest) -> web.Response:
        return web.Response(text="hello")

    async with serving(hello, "127.0.0.2") as good, serving(no_answer) as bad:
        policy = EgressPolicy(allow=(f"127.0.0.2/32:{good}", f"127.0.0.2/32:{bad}"))
        resolver = TableResolver({"rebind.test": [["127.0.0.2"], ["127.0.0.1"]]})
        async with HttpSession(policy, resolver=resolver) as session:
            assert (await session.request("GET", f"http://rebind.test:{good}/")).body == b"hello"
            with pytest.raises(EgressDenied, match=r"127\.0\.0\.1 \(loopback"):
                await session.request("GET", f"http://rebind.test:{bad}/")
    assert [host for host, _ in resolver.asked] == ["rebind.test", "rebind.test"]


@pytest.mark.requirement("net.exception_binding")
async def test_hostile_name_does_not_share_the_exception_of_another_name() -> None:
    async def hello(request: web.BaseRequest) -> web.Response:
        return web.Response(text="hello")

    table = {"friend.test": [["127.0.0.1"]], "evil.test": [["127.0.0.1"]]}
    async with serving(hello) as port:
        policy = EgressPolicy(allow=(f"friend.test:{port}",), ports=(port,))
        async with HttpSession(policy, resolver=TableResolver(table)) as session:
            friend, evil = f"http://friend.test:{port}/", f"http://evil.test:{port}/"
            answers = await asyncio.gather(
                *(session.request("GET", url) for url in [friend, evil] * 5), return_exceptions=True
            )
    assert [type(answer).__name__ for answer in answers] == ["HttpResponse", "EgressDenied"] * 5


class Unvetted(_transport.VettingResolver):
    """The fault: a resolver that forgot to vet."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        addresses = await self._resolver.resolve(host, port)
        return [ResolveResult(hostname=host, host=a, port=port, family=family, proto=0, flags=0) for a in addresses]


@pytest.mark.requirement("net.connected_address_judged")
@pytest.mark.parametrize("inner", [["127.0.0.1"], ["127.0.0.1", "127.0.0.1"]])
async def test_socket_is_refused_for_an_address_that_slipped_past_the_resolver(
    inner: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last line holds by itself: as if the resolver had vetted nothing."""
    monkeypatch.setattr(_transport, "VettingResolver", Unvetted)
    async with serving(no_answer) as port:
        policy = EgressPolicy(ports=(port,))
        async with HttpSession(policy, resolver=TableResolver({"evil.test": [inner]})) as session:
            with pytest.raises(EgressDenied, match="loopback"):
                await session.request("GET", f"http://evil.test:{port}/")


@pytest.mark.requirement("net.redirects_judged")
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_redirect_inside_is_denied(status: int) -> None:
    async with serving(no_answer) as inside:
        turn = partial(_redirect, status, f"http://127.0.0.1:{inside}/admin?token=s3cret")
        async with serving(turn) as outside, _opened(outside) as session:
            with pytest.raises(EgressDenied) as caught:
                await session.request("GET", f"http://127.0.0.1:{outside}/")
    assert f"127.0.0.1:{inside}" in str(caught.value)
    assert "s3cret" not in str(caught.value)


@pytest.mark.requirement("net.redirects_judged")
@pytest.mark.parametrize(
    "location", ["file:///etc/passwd", "http://user:pw@127.0.0.1/", "http://2130706433/", "ftp://x/"]
)
async def test_redirect_to_a_hostile_url_is_denied(location: str) -> None:
    async with serving(partial(_redirect, 302, location)) as port, _opened(port) as session:
        with pytest.raises(EgressDenied):
            await session.request("GET", f"http://127.0.0.1:{port}/")


@pytest.mark.requirement("net.redirects_judged")
async def test_redirects_are_counted_and_can_be_left_alone() -> None:
    async with serving(partial(_redirect, 302, "/again")) as port, _opened(port) as session:
        url = f"http://127.0.0.1:{port}/"
        with pytest.raises(EgressDenied, match="after 3 redirects"):
            await session.request("GET", url)
        assert (await session.request("GET", url, follow_redirects=False)).status == 302


@pytest.mark.requirement("net.redirect_headers")
async def test_credentials_stay_with_the_origin_they_were_sent_to() -> None:
    seen: list[dict[str, str]] = []

    async def record(request: web.BaseRequest) -> web.Response:
        seen.append({name.lower(): value for name, value in request.headers.items()})
        return web.Response(text="done")

    async with (
        serving(record) as other,
        serving(partial(_redirect, 302, f"http://127.0.0.1:{other}/done")) as first,
        _opened(first, other) as session,
    ):
        response = await session.request(
            "POST",
            f"http://127.0.0.1:{first}/",
            headers={"Authorization": "Bearer x", "X-Api-Key": "k", "Cookie": "c", "Accept": "text/plain"},
            body=b"private",
        )
    assert (response.body, response.url) == (b"done", f"http://127.0.0.1:{other}/done")
    assert seen[0]["accept"] == "text/plain"
    assert seen[0].keys().isdisjoint({"authorization", "x-api-key", "cookie", "content-type", "content-length"})


@pytest.mark.requirement("net.streaming", "net.url_judged")
async def test_streams_are_judged_like_requests() -> None:
    async with HttpSession() as session:
        with pytest.raises(EgressDenied):
            async with session.stream("GET", "http://169.254.169.254/"):
                pytest.fail("entered")


@pytest.mark.requirement("net.url_judged")
async def test_verdicts_are_remembered_for_a_bounded_number_of_origins() -> None:
    remembered = _transport.AiohttpTransport(EgressPolicy(), TableResolver({}))
    try:
        for number in range(1500):
            remembered.admit(_transport.URL(f"https://host-{number}.test/"))
        assert len(remembered.admitted) <= 1024
        assert remembered.admit(_transport.URL("https://host-1499.test/other")) == Origin(
            "https", "host-1499.test", 443
        )
    finally:
        await remembered.close()


def _opened(*ports: int) -> HttpSession:
    return HttpSession(EgressPolicy(allow=tuple(f"127.0.0.1:{port}" for port in ports)))


async def _redirect(status: int, location: str, request: web.BaseRequest) -> web.Response:
    return web.Response(status=status, headers={"Location": location})

"""`HttpSession` against servers in this process: answers, limits, failures and the life of a session."""

import asyncio
import gzip
import shutil
import ssl
import subprocess
import sys
import traceback
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.unit.net.servers import TableResolver, answering, serving, serving_raw, silent
from toolcrib.contracts.base.errors import Conflict, EgressDenied, InvalidInput
from toolcrib.infrastructure.net import (
    ConnectionFailed,
    EgressPolicy,
    HttpSession,
    SystemResolver,
    TimedOut,
    Timeouts,
    TooLarge,
)

SECRET = "s3cret"
SECRET_PATH = f"/p4th?token={SECRET}"


WAYS = pytest.mark.parametrize(
    "way", [{"method": "GET"}, {"method": "POST", "body": b"{}", "follow_redirects": False}], ids=["any", "endpoint"]
)
"""A request as aiohttp's client makes it, and one for which an endpoint is prepared once."""
Way = dict[str, Any]


def session_for(port: int, max_bytes: int = 10 * 2**20) -> HttpSession:
    return HttpSession(EgressPolicy(allow=(f"127.0.0.1:{port}",), max_bytes=max_bytes))


async def echo(request: web.BaseRequest) -> web.Response:
    seen = {name.lower(): value for name, value in request.headers.items()}
    return web.json_response({"method": request.method, "headers": seen, "size": len(await request.read())})


@pytest.mark.requirement("net.lazy_http")
def test_importing_the_package_loads_no_http_library() -> None:
    imported = "import sys; from toolcrib.infrastructure.net import HttpSession; HttpSession()"
    code = f"{imported}; print(sorted({{'aiohttp', 'yarl'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.requirement("net.answers")
@WAYS
async def test_answer_has_status_lower_case_headers_body_and_url(way: Way) -> None:
    async def handler(request: web.BaseRequest) -> web.Response:
        answer = web.Response(status=418, body=b"short and stout", headers={"X-Twice": "one"})
        answer.headers.add("X-Twice", "two")
        return answer

    async with serving(handler) as port, session_for(port) as session:
        url = f"http://127.0.0.1:{port}/tea?x=1"
        response = await session.request(**way, url=url)
        assert (response.status, response.body, response.url) == (418, b"short and stout", url)
        assert response.headers["x-twice"] == "one, two"
        assert repr(response) == "HttpResponse(status=418)"


@pytest.mark.requirement("net.answers")
async def test_request_sends_method_headers_and_bodies_of_any_size() -> None:
    async with serving(echo) as port, session_for(port) as session:
        for size in (0, 10, 2**20 - 5):
            response = await session.request(
                "PUT", f"http://127.0.0.1:{port}/", headers={"X-Key": "k"}, body=b"x" * size
            )
            assert b'"method": "PUT"' in response.body
            assert b'"x-key": "k"' in response.body
            assert f'"size": {size}'.encode() in response.body


@pytest.mark.requirement("net.answers")
async def test_body_of_several_megabytes_is_sent_without_a_warning() -> None:
    async def count(request: web.BaseRequest) -> web.Response:
        size = 0
        async for chunk in request.content.iter_any():
            size += len(chunk)
        return web.Response(text=f"{request.headers['Content-Length']} {size}")

    async with serving(count) as port, session_for(port) as session:
        response = await session.request("POST", f"http://127.0.0.1:{port}/", body=b"x" * (3 * 2**20))
        assert response.body == b"3145728 3145728"


@pytest.mark.requirement("net.answers")
@pytest.mark.parametrize("method", ["HEAD", "GET"])
async def test_answer_without_a_body_is_empty(method: str) -> None:
    async def handler(request: web.BaseRequest) -> web.Response:
        return web.Response(status=200 if request.method == "HEAD" else 204, headers={"X-Seen": "yes"})

    async with serving(handler) as port, session_for(port) as session:
        response = await session.request(method, f"http://127.0.0.1:{port}/")
        assert (response.body, response.headers["x-seen"]) == (b"", "yes")


@pytest.mark.requirement("net.connections_reused")
@WAYS
async def test_requests_to_one_origin_share_a_connection(way: Way) -> None:
    peers: set[object] = set()

    async def handler(request: web.BaseRequest) -> web.Response:
        assert request.transport is not None
        peers.add(request.transport.get_extra_info("peername"))
        return web.Response(body=b"x" * 100_000)

    async with serving(handler) as port, session_for(port) as session:
        for _ in range(5):
            await session.request(**way, url=f"http://127.0.0.1:{port}/")
    assert len(peers) == 1


@pytest.mark.requirement("net.connections_reused")
@pytest.mark.parametrize("follow", [False, True])
async def test_a_kept_connection_that_the_server_has_closed_costs_no_request(*, follow: bool) -> None:
    received: list[bytes] = []

    async def close_after_each(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        received.append(await reader.readexactly(2))
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
        await writer.drain()

    async with serving_raw(close_after_each) as port, session_for(port) as session:
        for number in range(20):
            url, body = f"http://127.0.0.1:{port}/", b"%02d" % number
            await session.request("POST", url, body=body, follow_redirects=follow)

    assert received == [b"%02d" % number for number in range(20)]


@pytest.mark.requirement("net.failures_named")
async def test_a_server_that_does_not_read_a_body_is_a_failure_without_the_url() -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.transport.abort()

    async with serving_raw(hang_up) as port, session_for(port) as session:
        with pytest.raises(ConnectionFailed) as caught:
            await session.request("POST", f"http://127.0.0.1:{port}{SECRET_PATH}", body=bytes(20 * 2**20))
    assert SECRET not in str(caught.value)


@pytest.mark.requirement("net.no_ambient_state")
@WAYS
async def test_cookies_and_proxy_variables_are_ignored(monkeypatch: pytest.MonkeyPatch, way: Way) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")

    async def handler(request: web.BaseRequest) -> web.Response:
        return web.Response(text=request.headers.get("Cookie", "none"), headers={"Set-Cookie": "a=b; Path=/"})

    async with serving(handler) as port:
        policy = EgressPolicy(allow=(f"inside.test:{port}",))
        async with HttpSession(policy, resolver=TableResolver({"inside.test": [["127.0.0.1"]]})) as session:
            for _ in range(2):
                assert (await session.request(**way, url=f"http://inside.test:{port}/")).body == b"none"


@pytest.mark.requirement("net.body_bounded")
@WAYS
async def test_body_at_the_limit_is_read_and_one_byte_more_is_refused(way: Way) -> None:
    async def handler(request: web.BaseRequest) -> web.Response:
        return web.Response(body=b"x" * 1000)

    async with serving(handler) as port, session_for(port, max_bytes=2000) as session:
        url = f"http://127.0.0.1:{port}/"
        assert len((await session.request(**way, url=url, max_bytes=1000)).body) == 1000
        with pytest.raises(TooLarge, match="more than 999 bytes") as caught:
            await session.request(**way, url=url, max_bytes=999)
        assert caught.value.limit_bytes == 999
        assert not caught.value.retryable


@pytest.mark.requirement("net.body_bounded")
async def test_a_request_cannot_raise_the_limit_of_the_policy() -> None:
    async def handler(request: web.BaseRequest) -> web.Response:
        return web.Response(body=b"x" * 1000)

    async with serving(handler) as port, session_for(port, max_bytes=500) as session:
        with pytest.raises(TooLarge, match="more than 500 bytes"):
            await session.request("GET", f"http://127.0.0.1:{port}/", max_bytes=5000)


@pytest.mark.requirement("net.body_bounded")
@pytest.mark.parametrize("chunked", [False, True])
@WAYS
async def test_compressed_body_is_bounded_after_decompression(*, chunked: bool, way: Way) -> None:
    squeezed = BytesIO()
    with gzip.GzipFile(fileobj=squeezed, mode="wb") as out:
        for _ in range(64):
            out.write(bytes(2**20))

    async def handler(request: web.BaseRequest) -> web.Response:
        answer = web.Response(body=squeezed.getvalue(), headers={"Content-Encoding": "gzip"})
        if chunked:
            answer.enable_chunked_encoding()
        return answer

    async with serving(handler) as port, session_for(port, max_bytes=2**20) as session:
        with pytest.raises(TooLarge, match="1048576 bytes"):
            await session.request(**way, url=f"http://127.0.0.1:{port}/")


@pytest.mark.requirement("net.answers")
@WAYS
async def test_compressed_body_is_decoded(way: Way) -> None:
    async def handler(request: web.BaseRequest) -> web.Response:
        assert "gzip" in request.headers["Accept-Encoding"]
        return web.Response(body=gzip.compress(b"hello" * 50_000), headers={"Content-Encoding": "gzip"})

    async with serving(handler) as port, session_for(port) as session:
        response = await session.request(**way, url=f"http://127.0.0.1:{port}/")
        assert response.body == b"hello" * 50_000


@pytest.mark.requirement("net.timeouts")
@pytest.mark.parametrize(
    ("timeouts", "phase"),
    [(Timeouts(read_idle_s=0.05, total_s=None), "read"), (Timeouts(read_idle_s=60, total_s=0.05), "total")],
)
@WAYS
async def test_silent_server_runs_into_the_limit_that_the_error_names(timeouts: Timeouts, phase: str, way: Way) -> None:
    async with serving_raw(silent) as port, session_for(port) as session:
        with pytest.raises(TimedOut, match=rf"127\.0\.0\.1:{port} .* 0\.05 s") as caught:
            await session.request(**way, url=f"http://127.0.0.1:{port}{SECRET_PATH}", timeout=timeouts)
        assert (caught.value.phase, caught.value.limit_s) == (phase, 0.05)


@pytest.mark.requirement("net.timeouts")
@WAYS
async def test_host_that_does_not_take_the_connection_runs_into_the_connect_limit(way: Way) -> None:
    class NeverResolves:
        async def resolve(self, host: str, port: int) -> list[str]:
            await asyncio.Event().wait()
            return []

    async with HttpSession(resolver=NeverResolves()) as session:
        with pytest.raises(TimedOut) as caught:
            await session.request(**way, url=f"http://slow.test{SECRET_PATH}", timeout=Timeouts(connect_s=0.05))
    assert caught.value.phase == "connect"
    assert SECRET not in "".join(traceback.format_exception(caught.value))


@pytest.mark.requirement("net.timeouts")
@WAYS
async def test_body_that_stops_in_the_middle_runs_into_the_read_limit(way: Way) -> None:
    async def stall(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
        await reader.read()

    async with serving_raw(stall) as port, session_for(port) as session:
        with pytest.raises(TimedOut) as caught:
            await session.request(**way, url=f"http://127.0.0.1:{port}/", timeout=Timeouts(read_idle_s=0.05))
        assert caught.value.phase == "read"


@pytest.mark.requirement("net.timeouts")
async def test_the_total_limit_covers_all_redirects() -> None:
    async def around(request: web.BaseRequest) -> web.Response:
        if request.path == "/3":
            await asyncio.get_running_loop().create_future()
        return web.Response(status=302, headers={"Location": f"/{int(request.path[1:]) + 1}"})

    async with serving(around) as port, session_for(port) as session:
        with pytest.raises(TimedOut) as caught:
            await session.request("GET", f"http://127.0.0.1:{port}/1", timeout=Timeouts(total_s=0.2))
        assert (caught.value.phase, caught.value.limit_s) == ("total", 0.2)


@pytest.mark.requirement("net.failures_named")
@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "closed the connection without an answer"),
        (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", "not valid HTTP"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", "broke off"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n", "broke off|not valid HTTP"),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nnope", "decoded|not valid HTTP"),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 4\r\n\r\nnope", "decoded|not valid HTTP"),
    ],
)
@WAYS
async def test_broken_answer_is_a_failed_connection_with_its_reason(raw: bytes, reason: str, way: Way) -> None:
    async with serving_raw(answering(raw)) as port, session_for(port) as session:
        with pytest.raises(ConnectionFailed, match=reason) as caught:
            await session.request(**way, url=f"http://127.0.0.1:{port}{SECRET_PATH}", headers={"X-Api-Key": SECRET})
        assert f"127.0.0.1:{port}" in str(caught.value)
        assert caught.value.retryable
        shown = "".join(traceback.format_exception(caught.value))
        assert SECRET not in shown
        assert "p4th" not in shown


@pytest.mark.requirement("net.failures_named")
@WAYS
async def test_refused_unknown_and_wrongly_secured_hosts_are_failed_connections(way: Way) -> None:
    async with serving(echo) as port, session_for(port) as session:
        with pytest.raises(ConnectionFailed, match="TLS"):
            await session.request(**way, url=f"https://127.0.0.1:{port}{SECRET_PATH}")
    async with session_for(port) as session:
        with pytest.raises(ConnectionFailed, match="failed: Connect"):
            await session.request(**way, url=f"http://127.0.0.1:{port}{SECRET_PATH}")
    async with HttpSession(resolver=TableResolver({})) as session:
        with pytest.raises(ConnectionFailed, match=r"unknown\.test:80 failed: the host name does not resolve"):
            await session.request(**way, url=f"http://unknown.test{SECRET_PATH}")


@pytest.fixture
def self_signed(tmp_path: Path) -> ssl.SSLContext:
    """A server's side of TLS with a certificate that nobody trusts."""
    if (openssl := shutil.which("openssl")) is None:
        pytest.skip("openssl makes the certificate")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    make = "req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=inside.test"
    subprocess.run([openssl, *make.split(), "-keyout", key, "-out", certificate], check=True, capture_output=True)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    return context


@pytest.mark.requirement("net.failures_named")
@WAYS
async def test_untrusted_certificate_is_a_failed_connection_and_the_server_is_told_the_name(
    self_signed: ssl.SSLContext,
    way: Way,
) -> None:
    names: list[object] = []
    self_signed.sni_callback = lambda sock, name, context: names.append(name)
    async with serving(echo, tls=self_signed) as port:
        policy = EgressPolicy(allow=(f"inside.test:{port}",))
        async with HttpSession(policy, resolver=TableResolver({"inside.test": [["127.0.0.1"]]})) as session:
            with pytest.raises(ConnectionFailed, match=r"failed: TLS: self.signed certificate"):
                await session.request(**way, url=f"https://inside.test:{port}{SECRET_PATH}")
    assert names == ["inside.test"]


@pytest.mark.requirement("net.streaming", "net.redirects_judged")
async def test_stream_follows_redirects() -> None:
    async def handler(request: web.BaseRequest) -> web.Response:
        return (
            web.Response(text="end")
            if request.path == "/end"
            else web.Response(status=307, headers={"Location": "/end"})
        )

    async with (
        serving(handler) as port,
        session_for(port) as session,
        session.stream("GET", f"http://127.0.0.1:{port}/") as stream,
    ):
        assert (stream.status, stream.url, await stream.read()) == (200, f"http://127.0.0.1:{port}/end", b"end")


@pytest.mark.requirement("net.connected_address_judged")
async def test_an_address_is_judged_for_each_connection_although_its_url_was_asked_before() -> None:
    async with serving(echo) as port:
        policy = EgressPolicy(allow=(f"inside.test:{port}",))
        resolver = TableResolver({"inside.test": [["169.254.169.254"], ["169.254.169.254"], ["127.0.0.1"]]})
        url = f"http://inside.test:{port}/v1/chat"
        async with HttpSession(policy, resolver=resolver) as session:
            for _ in range(2):
                with pytest.raises(EgressDenied, match="metadata"):
                    await session.request("POST", url, body=b"{}", follow_redirects=False)
            assert (await session.request("POST", url, body=b"{}", follow_redirects=False)).status == 200

        assert len(resolver.asked) == 3


@pytest.mark.requirement("net.connected_address_judged")
async def test_system_resolver_gives_every_address_once() -> None:
    addresses = await SystemResolver().resolve("localhost", 80)
    assert set(addresses) <= {"127.0.0.1", "::1"}
    assert len(set(addresses)) == len(addresses) > 0


@pytest.mark.requirement("net.failures_named")
@pytest.mark.parametrize("name", ["Host", "content-length", "Transfer-Encoding", "X: y\tHost", "X Key", ""])
async def test_framing_headers_are_not_the_callers(name: str) -> None:
    async with session_for(1) as session:
        with pytest.raises(InvalidInput, match="omit it"):
            await session.request("GET", "http://127.0.0.1:1/", headers={name: "evil.test"})


@pytest.mark.requirement("net.failures_named")
@pytest.mark.parametrize(
    ("method", "value"), [("GET", f"a\r\nX-Other: {SECRET}"), ("POST", f"a\nX-Other: {SECRET}"), ("G ET", "a")]
)
async def test_line_breaks_and_odd_methods_are_refused_without_being_shown(method: str, value: str) -> None:
    async with serving(echo) as port, session_for(port) as session:
        url, headers = f"http://127.0.0.1:{port}/", {"X-Key": value}
        with pytest.raises(InvalidInput) as caught:
            await session.request(method, url, headers=headers, body=b"{}", follow_redirects=False)
        assert SECRET not in "".join(traceback.format_exception(caught.value))


@pytest.mark.requirement("net.answers")
async def test_a_prepared_endpoint_sends_what_the_client_would_send() -> None:
    heads: list[list[bytes]] = []

    async def keep(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(sorted((await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")))
        assert await reader.readexactly(12) == b'{"text": 12}'
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

    headers = {"content-type": "application/json", "authorization": "Bearer key", "X-Odd": "ü"}
    async with serving_raw(keep) as port, session_for(port) as session:
        for follow in (True, False, False):
            url = f"http://127.0.0.1:{port}/a%2Fb/chat?x=%20"
            await session.request("POST", url, headers=headers, body=b'{"text": 12}', follow_redirects=follow)

    assert heads[0] == heads[1] == heads[2]


@pytest.mark.requirement("net.answers")
async def test_an_answer_that_is_announced_is_waited_for() -> None:
    announced = b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n"
    told = answering(announced + b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    async with serving_raw(told) as port, session_for(port) as session:
        response = await session.request("POST", f"http://127.0.0.1:{port}/", body=b"{}", follow_redirects=False)
        assert (response.status, response.body) == (200, b"ok")


@pytest.mark.requirement("net.answers")
async def test_a_body_is_held_back_where_the_caller_asks_for_that() -> None:
    async def expect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(reader.read(1), 0.05)
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        assert await reader.readexactly(2) == b"{}"
        writer.write(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")

    async with serving_raw(expect) as port, session_for(port) as session:
        url, headers = f"http://127.0.0.1:{port}/", {"Expect": "100-continue"}
        for _ in range(2):
            response = await session.request("POST", url, headers=headers, body=b"{}", follow_redirects=False)
            assert response.status == 204


@pytest.mark.requirement("net.connections_reused")
async def test_a_connection_whose_answer_nobody_waits_for_is_not_used_again() -> None:
    async def slow(request: web.BaseRequest) -> web.Response:
        body = await request.read()
        if body == b"first":
            await asyncio.sleep(0.2)
        return web.Response(body=body)

    async with serving(slow) as port, session_for(port) as session:
        url = f"http://127.0.0.1:{port}/"
        for _ in range(2):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(session.request("POST", url, body=b"first", follow_redirects=False), 0.05)
            assert (await session.request("POST", url, body=b"second", follow_redirects=False)).body == b"second"


@pytest.mark.requirement("net.timeouts")
async def test_each_of_many_requests_has_a_time_of_its_own() -> None:
    async def wait(request: web.BaseRequest) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        await answer.write(b"x")
        await asyncio.sleep(float(await request.read()))
        return answer

    async with serving(wait) as port, session_for(port) as session:

        async def ask(total_s: float, answers_after_s: float) -> bytes:
            url, body = f"http://127.0.0.1:{port}/", f"{answers_after_s}".encode()
            timeouts = Timeouts(total_s=total_s)
            return (await session.request("POST", url, body=body, timeout=timeouts, follow_redirects=False)).body

        limits = ((9, 0.2), (0.3, 5), (0.1, 5), (0.05, 0), (0.2, 5))
        done = await asyncio.gather(*(ask(*limit) for limit in limits), return_exceptions=True)
    assert [getattr(each, "limit_s", each) for each in done] == [b"x", 0.3, 0.1, b"x", 0.2]
    assert {each.phase for each in done if isinstance(each, TimedOut)} == {"total"}


@pytest.mark.requirement("net.timeouts")
async def test_the_total_limit_covers_connecting() -> None:
    class NeverResolves:
        async def resolve(self, host: str, port: int) -> list[str]:
            await asyncio.Event().wait()
            return []

    async with HttpSession(resolver=NeverResolves()) as session:
        timeouts = Timeouts(connect_s=20, total_s=0.05)
        with pytest.raises(TimedOut) as caught:
            await session.request("POST", "http://slow.test/", body=b"{}", timeout=timeouts, follow_redirects=False)
    assert (caught.value.phase, caught.value.limit_s) == ("total", 0.05)


@pytest.mark.requirement("net.streaming")
async def test_stream_yields_chunks_as_they_arrive() -> None:
    go_on = asyncio.Event()

    async def events(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b"data: 1\n\n")
        await go_on.wait()
        await response.write(b"data: 2\n\n")
        return response

    async with serving(events) as port, session_for(port) as session:
        url = f"http://127.0.0.1:{port}/"
        async with session.stream("POST", url, body=b"{}", timeout=Timeouts(total_s=1e-6)) as stream:
            assert (stream.status, stream.headers["content-type"], stream.url) == (200, "text/event-stream", url)
            assert await anext(stream.chunks) == b"data: 1\n\n"
            go_on.set()
            assert await stream.read() == b"data: 2\n\n"
            assert await stream.read() == b""


@pytest.mark.requirement("net.streaming", "net.timeouts")
async def test_silence_between_chunks_runs_into_the_read_limit() -> None:
    async def stall(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\n\r\ndata: 1\n\n")
        await reader.read()

    async with serving_raw(stall) as port, session_for(port) as session:
        url = f"http://127.0.0.1:{port}/"
        async with session.stream("GET", url, timeout=Timeouts(read_idle_s=0.05, total_s=0.05)) as stream:
            assert await anext(stream.chunks) == b"data: 1\n\n"
            with pytest.raises(TimedOut) as caught:
                await anext(stream.chunks)
            assert caught.value.phase == "read"


@pytest.mark.requirement("net.streaming", "net.body_bounded")
async def test_endless_stream_is_bounded() -> None:
    async def endless(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(bytes(50_000))

    async with (
        serving(endless) as port,
        session_for(port, max_bytes=10**6) as session,
        session.stream("GET", f"http://127.0.0.1:{port}/") as stream,
    ):
        with pytest.raises(TooLarge):
            await stream.read()


@pytest.mark.requirement("net.streaming")
async def test_leaving_a_stream_early_closes_its_connection() -> None:
    gone = asyncio.Event()

    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\n\r\ndata: 1\n\n")
        await reader.read()
        gone.set()

    async with serving_raw(endless) as port, session_for(port) as session:
        async with session.stream("GET", f"http://127.0.0.1:{port}/") as stream:
            await anext(stream.chunks)
        await asyncio.wait_for(gone.wait(), 10)
        with pytest.raises(ConnectionFailed):
            await anext(stream.chunks)


@pytest.mark.requirement("net.loop_binding")
def test_session_is_made_outside_a_loop_and_used_in_one() -> None:
    session = HttpSession(EgressPolicy(allow=("inside.test:80",)), resolver=TableResolver({}))

    async def use() -> None:
        with pytest.raises(ConnectionFailed):
            await session.request("GET", "http://inside.test/")
        await session.close()
        await session.close()

    asyncio.run(use())


@pytest.mark.requirement("net.loop_binding")
def test_second_loop_and_closed_session_are_refused() -> None:
    session = HttpSession(resolver=TableResolver({}))

    async def touch() -> None:
        with pytest.raises(ConnectionFailed):
            await session.request("GET", "http://unknown.test/")

    async def touch_elsewhere() -> None:
        with pytest.raises(Conflict, match="one session per loop"):
            await session.request("GET", "http://example.com/")
        with pytest.raises(Conflict, match="close it in the loop"):
            await session.close()

    async def close() -> None:
        await session.close()
        with pytest.raises(Conflict, match="closed"):
            await session.request("GET", "http://example.com/")

    first = asyncio.new_event_loop()
    try:
        first.run_until_complete(touch())
        asyncio.run(touch_elsewhere())
    finally:
        first.close()
    asyncio.run(close())


@pytest.mark.requirement("net.loop_binding")
async def test_session_that_was_never_used_closes() -> None:
    async with HttpSession():
        pass

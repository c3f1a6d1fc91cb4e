"""How Restate is spoken to: what is sent, what is understood of its answers, and what may be reached on the way."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from toolcrib.contracts import InvalidSettings, NotFound, PermissionDenied, Unavailable
from toolcrib.core.engines.restate import RestateClient, RestateOptions
from toolcrib.infrastructure.net import HttpSession

pytestmark = pytest.mark.requirement("restate.reached")

ACCEPTED = "202 Accepted"


class Answering:
    """A server that gives every request one answer, and keeps what it was sent."""

    def __init__(self, status: str) -> None:
        self._status = status
        self.heard: list[str] = []
        self.url = ""

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(int(line[16:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length: "))
        self.heard.append((head + await reader.readexactly(length)).decode())
        writer.write(f"HTTP/1.1 {self._status}\r\ncontent-length: 4\r\nconnection: close\r\n\r\ntold".encode())
        await writer.drain()
        writer.close()


@asynccontextmanager
async def answering(status: str) -> AsyncGenerator[tuple[Answering, RestateClient]]:
    there = Answering(status)
    async with await asyncio.start_server(there.answer, "127.0.0.1") as server:
        host, port = server.sockets[0].getsockname()
        there.url = f"http://{host}:{port}"
        client = RestateClient(RestateOptions(ingress_url=f"{there.url}/", admin_url=there.url), owner="me/1")
        try:
            yield there, client
        finally:
            await client.close()


async def test_a_run_is_sent_by_its_id_and_who_asks_and_nothing_else():
    async with answering(ACCEPTED) as (there, client):
        await client.send("run 1", once="run 1/event:größer")
        await client.send("run_2")
    first, second = there.heard
    assert first.startswith("POST /ToolcribRun/run%201/drive/send HTTP/1.1\r\n")
    assert "idempotency-key: run%201/event:gr%C3%B6%C3%9Fer\r\n" in first.lower().replace(
        "%c3%b6%c3%9f", "%C3%B6%C3%9F"
    )
    assert first.endswith('\r\n\r\n"me/1"')
    assert "idempotency-key" not in second.lower()


@pytest.mark.parametrize(
    ("status", "error", "told"),
    [
        ("404 Not Found", NotFound, "start `toolcrib worker --engine restate`"),
        ("503 Service Unavailable", Unavailable, "Restate does not take a run: status 503, told"),
        ("302 Found", Unavailable, "status 302"),
    ],
)
async def test_an_answer_that_is_not_its_acceptance_is_an_error(status: str, error: type[Exception], told: str):
    async with answering(status) as (_, client):
        with pytest.raises(error, match=told):
            await client.send("run_1")


async def test_a_worker_is_registered_by_its_url():
    async with answering("201 Created") as (there, client):
        await client.register("http://10.0.0.7:9080/restate/v1")
    (heard,) = there.heard
    assert heard.startswith("POST /deployments HTTP/1.1\r\n")
    assert heard.endswith('{"uri":"http://10.0.0.7:9080/restate/v1","force":true}')


async def test_a_worker_that_restate_cannot_reach_is_not_registered():
    async with answering("400 Bad Request") as (_, client):
        with pytest.raises(Unavailable, match="does not take the worker at http://w:1"):
            await client.register("http://w:1")


async def test_that_restate_is_not_there_is_an_error_that_may_pass():
    async with answering(ACCEPTED) as (there, _):
        pass
    client = RestateClient(RestateOptions(ingress_url=there.url, admin_url=there.url), owner="me/1")
    with pytest.raises(Unavailable):
        await client.send("run_1")
    await client.close()


async def test_tools_reach_restate_no_more_than_any_other_local_address():
    async with answering(ACCEPTED) as (there, client), HttpSession() as tools:
        await client.send("run_1")
        with pytest.raises(PermissionDenied, match="egress denied"):
            await tools.request("POST", f"{there.url}/ToolcribRun/run_1/drive/send")


@pytest.mark.parametrize("url", ["127.0.0.1:8080", "ftp://127.0.0.1", "http://", "http://host:port"])
def test_an_address_that_is_no_url_is_refused(url: str):
    with pytest.raises(InvalidSettings, match="write it like"):
        RestateClient(RestateOptions(admin_url=url), owner="me/1")


@pytest.mark.parametrize("url", ["http://u:planted@host:8080", "http://u:planted@:80", "u:planted@host"])
@pytest.mark.parametrize("field", ["ingress_url", "admin_url", "worker_url"])
def test_a_password_in_an_address_is_refused_and_not_repeated(field: str, url: str):
    with pytest.raises(InvalidSettings, match="write it like") as refused:
        RestateClient(RestateOptions.model_validate({field: url}), owner="me/1")
    assert "planted" not in str(refused.value)


def test_addresses_of_every_form_are_taken():
    for url in ("http://[::1]:8080", "https://restate.example.com", "http://localhost:8080/"):
        RestateClient(RestateOptions(ingress_url=url, admin_url=url), owner="me/1")

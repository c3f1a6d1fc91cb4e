"""The end of a redirect on this machine: a page on 127.0.0.1 to which a browser comes back (RFC 8252, section 7.3)."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

PATH: Final = "/callback"
_MAX_HEAD: Final = 16_384
_PAGE: Final = "<!doctype html><title>Toolcrib</title><p>{text}</p>"


@dataclass(frozen=True)
class Landing:
    """Where browsers are sent back to, while it is open."""

    redirect_uri: str
    arrival: Callable[[str], Awaitable[str]]
    """Waits for the redirect that carries a state, and returns its URL; other visitors are turned away."""


@asynccontextmanager
async def landing(port: int = 0) -> AsyncGenerator[Landing]:
    """Open the page, on any free port if none is named.

    Raises:
        OSError: The port is taken.
    """
    arrived: asyncio.Queue[tuple[str, asyncio.Future[bool]]] = asyncio.Queue()

    async def visit(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            method, _, rest = head.decode("latin-1").partition(" ")
            target = rest.partition(" ")[0]
            welcome: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
            known = False
            if method == "GET" and target.partition("?")[0] == PATH:
                arrived.put_nowait((target, welcome))
                known = await welcome
            writer.write(_answer(known=known))
            await writer.drain()
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
            pass  # a visitor who is no browser
        finally:
            writer.close()

    server = await asyncio.start_server(visit, "127.0.0.1", port, limit=_MAX_HEAD)
    origin = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"

    async def arrival(state: str) -> str:
        while True:
            target, welcome = await arrived.get()
            known = f"state={state}" in target.partition("?")[2].split("&")
            welcome.set_result(known)
            if known:
                return origin + target

    async with server:
        yield Landing(origin + PATH, arrival)


def _answer(*, known: bool) -> bytes:
    text = "This window can be closed; go on in the terminal." if known else "Nobody waits for this."
    page = _PAGE.format(text=text).encode()
    status = "200 OK" if known else "400 Bad Request"
    head = f"HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: {len(page)}\r\nConnection: close\r\n\r\n"
    return head.encode() + page

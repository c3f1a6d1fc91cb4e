"""A server on loopback that speaks for the clouds: it records what arrives and answers in the wire's own shapes."""

import json
import struct
from base64 import b64encode
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

from aiohttp import web

from tests.unit.net.servers import serving

SSE = "text/event-stream"
EVENT_STREAM = "application/vnd.amazon.eventstream"


@dataclass
class Cloud:
    """What arrived, and what to answer."""

    port: int = 0
    answer: dict[str, Any] = field(default_factory=dict[str, Any])
    path: str = ""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: dict[str, Any] = field(default_factory=dict[str, Any])

    def will(self, body: Any, status: int = 200, content_type: str = "application/json", **headers: str) -> None:
        """Answer every request with this."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.answer = {"body": content, "status": status, "content_type": content_type, "headers": headers}

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        self.path, self.headers = request.path_qs, request.headers.copy()
        self.body = json.loads(await request.read())
        return web.Response(**self.answer)


@asynccontextmanager
async def cloud() -> AsyncGenerator[Cloud]:
    """A running one."""
    here = Cloud()
    async with serving(here.handle) as port:
        here.port = port
        yield here


def server_sent(*events: Any) -> bytes:
    """Events as server-sent events."""
    return b"".join(b"data: " + (e if isinstance(e, bytes) else json.dumps(e).encode()) + b"\n\n" for e in events)


def event_stream(*events: dict[str, Any]) -> bytes:
    """Events as Bedrock streams them."""
    return b"".join(
        message(
            {":message-type": "event", ":event-type": "chunk"},
            {"bytes": b64encode(json.dumps(event).encode()).decode()},
        )
        for event in events
    )


def message(headers: Mapping[str, str], payload: Any) -> bytes:
    """One message of Amazon's event stream, https://docs.aws.amazon.com/lexv2/latest/dg/event-stream-encoding.html"""
    named = b"".join(_header(name, value) for name, value in headers.items())
    body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    prelude = struct.pack("!II", 16 + len(named) + len(body), len(named))
    checked = prelude + struct.pack("!I", crc32(prelude)) + named + body
    return checked + struct.pack("!I", crc32(checked))


def _header(name: str, value: str) -> bytes:
    return bytes([len(name)]) + name.encode() + b"\x07" + struct.pack("!H", len(value)) + value.encode()

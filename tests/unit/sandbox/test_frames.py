"""Frames of a hostile side: what has not the form of a turn is none."""

import asyncio
import struct

import orjson
import pytest

from toolcrib.contracts import JsonObject
from toolcrib.infrastructure.sandbox import Exceeded, Failed, Returned, ToolRequest
from toolcrib.infrastructure.sandbox.jail_session import BadFrame, as_turn, read_frame

pytestmark = pytest.mark.requirement("sandbox.frames")


async def read(data: bytes) -> JsonObject:
    stream = asyncio.StreamReader()
    stream.feed_data(data)
    stream.feed_eof()
    return await read_frame(stream, largest=1024)


def framed(payload: bytes) -> bytes:
    return struct.pack(">I", len(payload)) + payload


async def test_a_frame_is_read_whole():
    assert await read(framed(b'{"kind": "returned", "output": [1]}')) == {"kind": "returned", "output": [1]}


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (struct.pack(">I", 2**31), "2147483648 bytes"),
        (framed(b"[1]"), "not an object"),
        (framed(b"{"), "not JSON"),
        (framed(b"\xff\xfe"), "not JSON"),
    ],
)
async def test_a_frame_that_is_none_is_refused_before_it_is_kept(data: bytes, told: str):
    with pytest.raises(BadFrame, match=told):
        await read(data)


async def test_an_end_in_the_middle_of_a_frame_is_an_end():
    with pytest.raises(asyncio.IncompleteReadError):
        await read(framed(b"{}")[:-1])


def test_frames_are_turns():
    assert as_turn({"kind": "asked", "function": "f", "arguments": {"a": 1}}) == ToolRequest("f", {"a": 1})
    assert as_turn({"kind": "returned", "output": None}) == Returned(None)
    assert as_turn({"kind": "failed", "type": "MemoryError", "message": "", "line": None}) == Exceeded("memory_mb")
    assert as_turn({"kind": "failed", "type": "X", "message": "y" * 5000, "line": "1"}) == Failed("X", "y" * 2000)
    assert as_turn({"kind": "failed", "type": "X", "message": "", "line": True}) == Failed("X", "")


@pytest.mark.parametrize(
    "frame",
    [
        {},
        {"kind": "asked", "function": "f", "arguments": [1]},
        {"kind": "asked", "function": 1, "arguments": {}},
        {"kind": "returned"},
        {"kind": "failed", "type": 1, "message": "", "line": 1},
        {"kind": "other"},
    ],
)
def test_frames_of_another_form_are_refused(frame: JsonObject):
    with pytest.raises(BadFrame, match="unknown form"):
        as_turn(orjson.loads(orjson.dumps(frame)))

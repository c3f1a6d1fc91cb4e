"""Messages between this process and code in a jail: four bytes of length, big-endian, then JSON.

The other side is hostile. A frame is read only up to a size, and what does not have the form of a turn is the code's
failure. `inside.py` has the other end.
"""

import asyncio
import struct
from typing import Final, cast

import orjson

from toolcrib.contracts import Json, JsonObject
from toolcrib.infrastructure.sandbox.jobs import Answer, Asked, CodeJob, Dialect, Exceeded, Failed, Returned, Turn

_LENGTH: Final = struct.Struct(">I")
_ROOM: Final = 64 * 1024
"""Bytes that a frame may have besides its payload."""
_MOST_SHOWN: Final = 2000
"""Characters of what the code says of its failure."""


class BadFrame(Exception):
    """The other side does not keep to the form."""


async def read_frame(stream: asyncio.StreamReader, *, largest: int) -> JsonObject:
    """Read one frame.

    Args:
        stream: From the jail.
        largest: Bytes that its payload may have.

    Raises:
        BadFrame: It is larger, or no JSON object.
        asyncio.IncompleteReadError: The other side has ended.
    """
    (length,) = _LENGTH.unpack(await stream.readexactly(_LENGTH.size))
    if length > largest + _ROOM:
        raise BadFrame(f"a frame of {length} bytes")
    try:
        frame: Json = orjson.loads(await stream.readexactly(length))
    except orjson.JSONDecodeError:
        raise BadFrame("a frame that is no JSON") from None
    if not isinstance(frame, dict):
        raise BadFrame("a frame that is no object")
    return cast("JsonObject", frame)


def as_turn(frame: JsonObject) -> Turn:
    """What a frame says.

    Raises:
        BadFrame: Nothing that is known.
    """
    match frame:
        case {"kind": "asked", "function": str(function), "arguments": arguments} if isinstance(arguments, dict):
            return Asked(function, cast("JsonObject", arguments))
        case {"kind": "returned", "output": output}:
            return Returned(output)
        case {"kind": "failed", "type": "MemoryError"}:
            return Exceeded("memory_mb")
        case {"kind": "failed", "type": "OutputTooLarge"}:
            return Exceeded("output_kb")
        case {"kind": "failed", "type": str(name), "message": str(message), "line": line}:
            return Failed(name[:100], message[:_MOST_SHOWN], line if type(line) is int else None)
        case _:
            raise BadFrame("a frame of an unknown form")


def start_frame(job: CodeJob, dialect: Dialect) -> bytes:
    """What a jail is told first."""
    return _frame(
        {
            "dialect": dialect,
            "source": job.source,
            "arguments": job.arguments,
            "functions": list(job.functions),
            "seed": job.seed,
            "memory_mb": job.limits.memory_mb,
            "largest": job.limits.output_kb * 1024,
        }
    )


def answer_frame(answer: Answer) -> bytes:
    """What the code is answered."""
    return _frame({"output": answer.output, "failure": answer.failure})


def _frame(content: JsonObject) -> bytes:
    payload = orjson.dumps(content)
    return _LENGTH.pack(len(payload)) + payload

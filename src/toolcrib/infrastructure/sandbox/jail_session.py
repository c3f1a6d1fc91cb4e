"""One execution in a jail: exchanges frames with the code, and enforces quotas from outside, also during waits.

A frame is a length of four bytes, big-endian, then JSON. The code is untrusted: frames have a maximum size, and an
invalid frame is a failure of the code. `jail_program.py` has the other end.
"""

import asyncio
import contextlib
import signal
import struct
import time
from typing import Final, Protocol, cast

import orjson

from toolcrib.contracts import Json, JsonObject
from toolcrib.infrastructure.sandbox.cgroups import Cgroup
from toolcrib.infrastructure.sandbox.jobs import (
    CodeJob,
    Dialect,
    Exceeded,
    Failed,
    Returned,
    ToolReply,
    ToolRequest,
    Turn,
    Used,
)

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
        raise BadFrame("a frame that is not JSON") from None
    if not isinstance(frame, dict):
        raise BadFrame("a frame that is not an object")
    return cast("JsonObject", frame)


def as_turn(frame: JsonObject) -> Turn:
    """What a frame says.

    Raises:
        BadFrame: Nothing that is known.
    """
    match frame:
        case {"kind": "asked", "function": str(function), "arguments": arguments} if isinstance(arguments, dict):
            return ToolRequest(function, cast("JsonObject", arguments))
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


def answer_frame(answer: ToolReply) -> bytes:
    """What the code is answered."""
    return _frame({"output": answer.output, "failure": answer.failure})


def _frame(content: JsonObject) -> bytes:
    payload = orjson.dumps(content)
    return _LENGTH.pack(len(payload)) + payload


_LOOK_S: Final = 0.2
"""Seconds between looks at what a jail has computed."""
_DIED: Final = 128
"""bubblewrap ends with this plus the signal that has ended the code."""


class Cell(Protocol):
    """A process that runs `jail_program.py`, apart."""

    @property
    def process(self) -> asyncio.subprocess.Process:
        """With pipes to it."""
        ...

    @property
    def cgroup(self) -> Cgroup | None:
        """Counts what it uses; null if nobody does."""
        ...

    def kill(self) -> None:
        """Kill it and all that it has started."""
        ...

    async def close(self) -> None:
        """Kill it, and take away what it was made of."""
        ...


class JailedSession:
    """Turns of a process that speaks frames.

    Args:
        jail: Started, with `jail_program.py` as its command.
        job: What it shall run.
        dialect: How.
    """

    def __init__(self, jail: Cell, job: CodeJob, dialect: Dialect) -> None:
        self.used = Used()
        self._jail = jail
        self._job = job
        self._dialect: Dialect = dialect
        self._largest = job.limits.output_kb * 1024
        self._printed = bytearray()
        self._is_flooded = False
        self._listening = asyncio.create_task(self._listen())
        self._watching = asyncio.create_task(self._watch())

    async def start(self) -> Turn:
        """Let the code begin."""
        return await self._turn(start_frame(self._job, self._dialect))

    async def answer(self, answer: ToolReply) -> Turn:
        """Let the code go on."""
        return await self._turn(answer_frame(answer))

    async def close(self) -> None:
        """End the jail and all in it."""
        self._jail.kill()
        self._watching.cancel()
        await asyncio.wait({self._listening, self._watching})
        await self._jail.close()

    async def _turn(self, frame: bytes) -> Turn:
        began = time.monotonic()
        try:
            async with asyncio.timeout(max(self._job.limits.wall_s - self.used.wall_s, 0.0)):
                turn = await self._exchange(frame)
        except TimeoutError:
            turn = Exceeded("wall_s")
        self.used.wall_s += time.monotonic() - began
        self._measure()
        self.used.printed = self._printed[: self._largest].decode(errors="replace")
        return turn

    async def _exchange(self, frame: bytes) -> Turn:
        stdin = cast("asyncio.StreamWriter", self._jail.process.stdin)
        stdout = cast("asyncio.StreamReader", self._jail.process.stdout)
        with contextlib.suppress(OSError):  # it has ended: how, its output tells
            stdin.write(frame)
            await stdin.drain()
        try:
            return await self._finish_turn(as_turn(await read_frame(stdout, largest=self._largest)))
        except BadFrame as problem:
            return Failed("BadFrame", f"the code has written {problem} where its results are read")
        except asyncio.IncompleteReadError:
            return await self._post_mortem()

    async def _finish_turn(self, turn: Turn) -> Turn:
        """The turn, with all that was printed before it if it is the last."""
        if not isinstance(turn, ToolRequest):
            self._jail.kill()
            await self._listening
        return Exceeded("output_kb") if self._is_flooded else turn

    async def _post_mortem(self) -> Turn:
        """Why the code ended without a word."""
        await self._listening
        status = await self._jail.process.wait()
        cgroup = self._jail.cgroup
        if self._is_flooded:
            return Exceeded("output_kb")
        if cgroup is not None and cgroup.was_out_of_memory:
            return Exceeded("memory_mb")
        if status == _DIED + signal.SIGXCPU or self._has_computed_too_much():
            return Exceeded("cpu_s")
        how = f"by signal {status - _DIED}" if status > _DIED else f"with status {status}"
        return Failed("ProcessEnded", f"the code's process ended {how} before main returned")

    def _has_computed_too_much(self) -> bool:
        self._measure()
        return self.used.cpu_s is not None and self.used.cpu_s >= self._job.limits.cpu_s

    def _measure(self) -> None:
        cgroup = self._jail.cgroup
        if cgroup is None:
            return
        peak, seconds = cgroup.memory_peak, cgroup.cpu_s
        if peak is not None:
            self.used.memory_peak_mb = round(peak / 2**20, 1)
        if seconds is not None:
            self.used.cpu_s = round(seconds, 3)

    async def _watch(self) -> None:
        """End a jail that computes more than it may: its threads go on while the code waits for an answer."""
        ended = asyncio.create_task(self._jail.process.wait())
        try:
            while not (await asyncio.wait({ended}, timeout=_LOOK_S))[0]:
                if self._has_computed_too_much():
                    self._jail.kill()
        finally:
            ended.cancel()

    async def _listen(self) -> None:
        """Keep what is printed, and end a jail that prints more than it may."""
        stderr = cast("asyncio.StreamReader", self._jail.process.stderr)
        while part := await stderr.read(2**16):
            self._printed += part[: self._largest + 1 - len(self._printed)]
            if len(self._printed) > self._largest:
                self._is_flooded = True
                self._jail.kill()

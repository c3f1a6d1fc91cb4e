"""A program that is started as an MCP server and spoken to over its standard input and output, a message a line.

It runs in a session of its own with the variables that it is given and nothing else of ours. Lines are bounded, and
what it writes to its standard error is kept only to its end. When the connection is closed, its standard input is; if
it does not end then, it is asked to, and killed with all that it has started.
"""

import asyncio
import os
import signal
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final, TypeAlias, cast

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

MAX_LINE: Final = 16 * 2**20
"""Bytes of one message."""

_GRACE_S: Final = 2.0
"""Seconds to end after each step: the end of its input, being asked to."""
_KEPT: Final = 4_096
"""Bytes of its standard error."""
_CHUNK: Final = 4_096

Streams: TypeAlias = tuple[
    MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]
]


@asynccontextmanager
async def running(
    command: Sequence[str], environment: Mapping[str, str], tell: Callable[[str], None]
) -> AsyncGenerator[Streams]:
    """Start a program, and give the streams of its messages.

    Args:
        command: The program and its arguments.
        environment: All of its variables.
        tell: Is told the end of its standard error, whenever there is more.

    Raises:
        OSError: It cannot be started.
    """
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=dict(environment),
        cwd="/",
        start_new_session=True,
        limit=MAX_LINE,
    )
    incoming, received = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    sent, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
    tasks = [
        asyncio.create_task(_read(process, incoming)),
        asyncio.create_task(_write(process, outgoing)),
        asyncio.create_task(_listen(process, tell)),
    ]
    try:
        yield received, sent
    finally:
        await asyncio.shield(_end(process))
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for stream in (incoming, received, sent, outgoing):
            stream.close()


async def _read(
    process: asyncio.subprocess.Process, incoming: MemoryObjectSendStream[SessionMessage | Exception]
) -> None:
    """Hand on messages until there are no more, or one is too long; a line that is none is left out."""
    stdout = cast("asyncio.StreamReader", process.stdout)
    with incoming, suppress(ValueError, anyio.BrokenResourceError):  # a line over the limit is a ValueError
        while line := await stdout.readline():
            try:
                message = jsonrpc_message_adapter.validate_json(line, by_name=False)
            except ValueError:
                continue  # many servers print other things as well
            await incoming.send(SessionMessage(message))


async def _write(process: asyncio.subprocess.Process, outgoing: MemoryObjectReceiveStream[SessionMessage]) -> None:
    stdin = cast("asyncio.StreamWriter", process.stdin)
    with suppress(ConnectionError):
        async for message in outgoing:
            text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
            stdin.write(text.encode() + b"\n")
            await stdin.drain()


async def _listen(process: asyncio.subprocess.Process, tell: Callable[[str], None]) -> None:
    stderr = cast("asyncio.StreamReader", process.stderr)
    kept = b""
    while chunk := await stderr.read(_CHUNK):
        kept = (kept + chunk)[-_KEPT:]
        tell(kept.decode(errors="replace"))


async def _end(process: asyncio.subprocess.Process) -> None:
    """End the program, and all that it has started."""
    cast("asyncio.StreamWriter", process.stdin).close()
    for asking in (None, signal.SIGTERM, signal.SIGKILL):
        if asking is not None:
            _signal(process, asking)
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), _GRACE_S)
            break
    _signal(process, signal.SIGKILL)  # what is left of its group


def _signal(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)

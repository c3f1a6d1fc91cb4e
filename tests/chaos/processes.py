"""Real processes for the chaos tests: each job runs in a process of its own, which may be killed at any time.

The processes are forked from a server that has imported and used everything (`tests.chaos.warm`), so that hundreds of
them cost little. Their coverage is not measured: most are killed before they could write it, and to write it takes each
of the others longer than its job.
"""

import asyncio
import faulthandler
import json
import multiprocessing
import os
import signal
import sys
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import DupFd
from pathlib import Path
from typing import Any, TypeAlias

from toolcrib.contracts import Json

_FORKSERVER = multiprocessing.get_context("forkserver")
_FORKSERVER.set_forkserver_preload(["tests.chaos.warm"])

Job: TypeAlias = Callable[..., Coroutine[Any, Any, Json]]
"""An importable async function; its arguments can be pickled, its result is JSON."""

_PATIENCE_S = 60.0
_COVERAGE = "COVERAGE_PROCESS_CONFIG"

KILLED = -signal.SIGKILL
"""Exit code of a process that was killed."""


class Child:
    """A process that does one job.

    Args:
        answer: The file that takes the result.
        job: What it does.
        *arguments: Of the job.
        patience_s: Seconds after which it fails if it hangs, and tells where it hung.
    """

    def __init__(self, answer: Path, job: Job, *arguments: Any, patience_s: float = _PATIENCE_S) -> None:
        self._answer = answer
        self._process = _FORKSERVER.Process(target=_work, args=(answer, job, arguments, patience_s))
        with _unmeasured():
            self._process.start()

    @property
    def pid(self) -> int:
        """Its process id."""
        assert self._process.pid is not None
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether it has not ended, by itself or otherwise."""
        return self._process.exitcode is None

    async def ended(self) -> int:
        """Its exit code: negative if a signal ended it."""
        await _joined(self._process)
        assert self._process.exitcode is not None
        return self._process.exitcode

    async def result(self) -> Any:
        """What the job returned; the process must have ended well."""
        assert await self.ended() == 0
        return json.loads(self._answer.read_bytes())

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal, unless it has ended by itself."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)


@asynccontextmanager
async def announced(command: Callable[..., None], *arguments: str) -> AsyncGenerator[str]:
    """The first line that a program prints, which runs in a process of its own until the end of the block."""
    reader, writer = os.pipe()
    process = _FORKSERVER.Process(target=_command, args=(DupFd(writer), command, arguments))
    with _unmeasured():
        process.start()
    os.close(writer)
    with os.fdopen(reader) as output:
        try:
            yield await asyncio.to_thread(output.readline)
        finally:
            process.terminate()
            await _joined(process)


@contextmanager
def _unmeasured() -> Generator[None]:
    """The first process to start begins the forkserver too, which hands its variables down."""
    config = os.environ.pop(_COVERAGE, None)
    try:
        yield
    finally:
        if config is not None:
            os.environ[_COVERAGE] = config


async def _joined(process: BaseProcess) -> None:
    """Wait for the end of a process. Its status is read in one thread only, because it can be read once."""
    ready = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(process.sentinel, ready.set)
    await ready.wait()
    loop.remove_reader(process.sentinel)
    process.join()


def _command(output: Any, command: Callable[..., None], arguments: tuple[str, ...]) -> None:
    os.dup2(output.detach(), sys.stdout.fileno())
    sys.argv[1:] = arguments
    command()


def _work(answer: Path, job: Job, arguments: tuple[Any, ...], patience_s: float) -> None:
    faulthandler.enable()

    async def hurried() -> Json:
        async with asyncio.timeout(patience_s):
            return await job(*arguments)

    answer.write_text(json.dumps(asyncio.run(hurried())))

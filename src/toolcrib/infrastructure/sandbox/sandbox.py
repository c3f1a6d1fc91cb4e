"""Chooses the cheapest sandbox of this machine that is isolated enough, and limits parallel executions.

A sandbox is used only after it has passed an escape test. If none passes, code is refused; it never runs in this
process. An execution has a place while it computes, and releases it while it waits for a tool, which may need a place
itself. The number of open executions is limited too.
"""

import asyncio
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Protocol, Self, cast, get_args

from toolcrib.contracts import Isolation, Json, SandboxLimits, ToolcribError, Unavailable
from toolcrib.infrastructure.sandbox.jobs import (
    Backend,
    CodeJob,
    Dialect,
    Exceeded,
    Failed,
    Returned,
    SandboxSession,
    ToolReply,
    Turn,
    Used,
)

_OPEN: Final = 16
"""Executions that may be open for each place."""


class Places:
    """The places of a sandbox.

    Args:
        count: How many executions compute at the same time.
    """

    def __init__(self, count: int) -> None:
        self.free = asyncio.Semaphore(count)
        self._most = _OPEN * count
        self._open = 0

    def enter(self) -> None:
        """Count an execution that is to be opened.

        Raises:
            Unavailable: Too many are open.
        """
        if self._open >= self._most:
            msg = f"{self._open} executions of code are open, the most at a time"
            raise Unavailable(f"{msg}; try again later, or raise TOOLCRIB_SANDBOX_PLACES")
        self._open += 1

    def leave(self) -> None:
        """Count one that has ended."""
        self._open -= 1


class PlacedSession:
    """A session that computes only while it has a place. The clock of its quotas stands still until then."""

    def __init__(self, places: Places, session: SandboxSession) -> None:
        self._places = places
        self._session = session
        self._is_open = True

    @classmethod
    async def open(cls, places: Places, backend: Backend, job: CodeJob, dialect: Dialect) -> Self:
        """Open a session.

        Raises:
            Unavailable: Too many are open, or the backend cannot.
        """
        places.enter()
        try:
            async with places.free:
                return cls(places, await backend.open(job, dialect))
        except BaseException:
            places.leave()
            raise

    @property
    def used(self) -> Used:
        """What it has used so far."""
        return self._session.used

    async def start(self) -> Turn:
        """Let the code begin."""
        async with self._places.free:
            return await self._session.start()

    async def answer(self, answer: ToolReply) -> Turn:
        """Let the code go on."""
        async with self._places.free:
            return await self._session.answer(answer)

    async def close(self) -> None:
        """End it. Any number of times."""
        try:
            await self._session.close()
        finally:
            if self._is_open:
                self._is_open = False
                self._places.leave()


_RANK: Final = {isolation: rank for rank, isolation in enumerate(get_args(Isolation))}
_QUOTAS: Final = SandboxLimits.model_construct(wall_s=30.0, cpu_s=2.0, memory_mb=64, processes=8)
"""Patient: a way that is slow because the machine is busy is not one that does not hold."""
_STARTED: Final = datetime(2026, 1, 1, tzinfo=UTC)

_ATTACKS: Final = """
def main(host_file, most):
    held = []

    def attack(name, act):
        try:
            act()
        except (AttributeError, ImportError, MemoryError, NotImplementedError, OSError, RuntimeError):
            return
        held.append(name)

    def take_memory():
        taken = b"x" * (1024 * 1024 * 1024)

    def read_host():
        open(host_file).read()

    def connect():
        import socket
        socket.create_connection(("1.1.1.1", 53), timeout=0.2)

    attack("reads a file of the machine", read_host)
    attack("reaches the network", connect)
    if not held:
        attack("takes more memory than its quota", take_memory)
    return held
"""
_FORKS: Final = """
import os
import time

def main(host_file, most):
    for _ in range(most + 200):
        try:
            if os.fork() == 0:
                time.sleep(2)
                os._exit(0)
        except OSError:
            return []
    return ["starts more processes than its quota"]
"""
_FOR_QUICKJS: Final = (
    "function main() { return [typeof require, typeof std, typeof os].filter(t => t !== 'undefined') }"
)
_FOR_RESTRICTED: Final = "def main(host_file, most):\n    return []\n"
_SOURCES: Final[Mapping[Dialect, Sequence[str]]] = {
    "cpython": (_ATTACKS, _FORKS),
    "monty": (_ATTACKS,),
    "quickjs": (_FOR_QUICKJS,),
    "restricted": (_FOR_RESTRICTED,),
}


@dataclass(frozen=True, slots=True)
class SandboxProbe:
    """What trying one way has shown."""

    backend: str
    dialect: Dialect
    isolation: Isolation
    problem: str | None
    """Why it is not used; null if it is."""
    seconds: float
    """How long the trial took, from a cold start."""


class Sandboxes(Protocol):
    """Where code is run: `Sandbox`, or what stands for one in a replay."""

    async def open(self, job: CodeJob, isolation: Isolation) -> SandboxSession:
        """Prepare an execution; see `Sandbox.open`."""
        ...


class Sandbox:
    """Runs code in the cheapest way that will do.

    Args:
        backends: Ways, the cheapest first.
        minimum: The least isolation that the operator wants, whatever a tool says.
        places: How many executions compute at the same time; twice as many as processors if null.
    """

    def __init__(
        self, backends: Sequence[Backend], *, minimum: Isolation = "language", places: int | None = None
    ) -> None:
        self._backends = backends
        self._minimum: Isolation = minimum
        self._known: dict[tuple[str, Dialect], SandboxProbe] = {}
        self._probing = asyncio.Lock()
        self._places = Places(places or 2 * (os.cpu_count() or 1))

    async def open(self, job: CodeJob, isolation: Isolation) -> SandboxSession:
        """Prepare an execution.

        Args:
            job: What is to be run.
            isolation: The least that its author wants.

        Raises:
            Unavailable: Nothing on this machine is apart enough; names what is wanted and what there is. Or too many
                executions are open.
        """
        wanted: Isolation = isolation if _RANK[isolation] >= _RANK[self._minimum] else self._minimum
        tried: list[SandboxProbe] = []
        for dialect in job.dialects:
            for backend in self._backends:
                if dialect not in backend.dialects:
                    continue
                tried.append(await self._probe_once(backend, dialect))
                if tried[-1].problem is None and _RANK[backend.isolation] >= _RANK[wanted]:
                    return await PlacedSession.open(self._places, backend, job, dialect)
        raise Unavailable(_nothing(job, wanted, tried))

    async def probe(self) -> Sequence[SandboxProbe]:
        """Try every way that was not tried yet, and tell of all."""
        return [
            await self._probe_once(backend, dialect)
            for backend in self._backends
            for dialect in sorted(backend.dialects)
        ]

    async def close(self) -> None:
        """Let go of what is kept ready."""
        for backend in self._backends:
            await backend.close()

    async def _probe_once(self, backend: Backend, dialect: Dialect) -> SandboxProbe:
        async with self._probing:
            key = (backend.name, dialect)
            if key not in self._known:
                began = time.monotonic()
                problem = await _try_all(backend, dialect)
                seconds = round(time.monotonic() - began, 3)
                self._known[key] = SandboxProbe(backend.name, dialect, backend.isolation, problem, seconds)
            return self._known[key]


async def _try_all(backend: Backend, dialect: Dialect) -> str | None:
    """What is wrong with a way, or null."""
    for source in _SOURCES[dialect]:
        problem = await _try(backend, dialect, source)
        if problem is not None:
            return problem
    return None


async def _try(backend: Backend, dialect: Dialect, source: str) -> str | None:
    """Run an escape test; why it cannot be run, or what it could do."""
    arguments = {"host_file": __file__, "most": _QUOTAS.processes}
    job = CodeJob(source, arguments, _STARTED, seed="probe", limits=_QUOTAS)
    try:
        session = await backend.open(job, dialect)
    except (ToolcribError, OSError) as problem:
        return str(problem)
    try:
        turn = await session.start()
    finally:
        await session.close()
    match turn:
        case Returned([]) | Exceeded("memory_mb"):
            return None
        case Failed("ProcessEnded") if source is _FORKS:
            return None  # the whole sandbox was stopped
        case Returned(list()):
            return "the code in it " + ", ".join(map(str, cast("list[Json]", turn.output)))
        case _:
            return f"a trial did not end as it should: {turn}"


def _nothing(job: CodeJob, wanted: Isolation, tried: Sequence[SandboxProbe]) -> str:
    """Why no way will do."""
    found = [f"{probe.dialect} with isolation {probe.isolation!r}" for probe in tried if probe.problem is None]
    broken = [f"{probe.backend} ({probe.dialect}): {probe.problem}" for probe in tried if probe.problem is not None]
    what = f"{job.language} code" + (f" for {job.interpreter}" if job.interpreter != "any" else "")
    msg = (
        f"no sandbox of this machine runs {what} with isolation {wanted!r}; available: {', '.join(found) or 'nothing'}"
    )
    return "; ".join((msg, *broken, "see `toolcrib doctor`"))

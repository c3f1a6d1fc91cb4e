"""Counts of one process: function calls, allocations and jobs for threads, the same every time.

What is counted:

- calls: of Python functions and of those written in C, as cProfile counts them. A coroutine that goes on after it was
  suspended is called once more. Type constructors in C and operators do not count.
- allocations: blocks that Python's two allocators of objects and their parts were asked for, resized ones included.
  What an object takes from a free list of the interpreter, or a C library from the system, does not count.
- thread_jobs: functions that were given to a thread.

What would make counts differ is fixed: the seed of hashes (`ENVIRONMENT`), random bytes, the clock, the order of
threads, what the network answers and when (`network`), and the garbage collector, which is off while something is
counted. What is left is the version of Python and of the packages.
"""

import asyncio
import cProfile
import ctypes
import gc
import os
import secrets
import shutil
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Awaitable, Callable, Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from random import Random
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, Final
from unittest.mock import patch

import anyio.to_thread

from benchmarks.costs.network import CountingLoop, Server
from toolcrib.infrastructure.store.database.committer import WriterThread

ENVIRONMENT: Final = {"PYTHONHASHSEED": "0"}
"""Without which a process of counts must not start."""
START: Final = datetime(2026, 1, 31, 12, tzinfo=UTC)
REPEATS: Final = 7
SOURCE: Final = Path(__file__).with_name("allocations.c")

Work = Callable[[], Awaitable[object]]


class CannotCountError(Exception):
    """What is measured cannot be counted here."""


@dataclass(frozen=True, slots=True)
class Counts:
    """What some work costs."""

    calls: float
    allocations: float
    thread_jobs: float

    def beyond(self, other: "Counts", units: int) -> "Counts":
        """What one of so many units costs that this has and the other has not, to a tenth."""
        return Counts(
            round((self.calls - other.calls) / units, 1),
            round((self.allocations - other.allocations) / units, 1),
            round((self.thread_jobs - other.thread_jobs) / units, 1),
        )


class LoopClock:
    """The time of the loop, as the crib's parts ask for it."""

    def __init__(self) -> None:
        self.monotonic = asyncio.get_running_loop().time

    def now(self) -> datetime:
        """The current moment in UTC; like those of a real clock, hardly ever a whole second."""
        return START + timedelta(seconds=self.monotonic(), microseconds=1)

    async def sleep(self, seconds: float) -> None:
        """Let so much time pass."""
        await asyncio.sleep(seconds)


# Allocations ----------------------------------------------------------------------------------------------------------


class _Allocator(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_void_p) for name in ("ctx", "malloc", "calloc", "realloc", "free"))


_DOMAINS: Final = (1, 2)
"""PYMEM_DOMAIN_MEM and PYMEM_DOMAIN_OBJ."""


@cache
def built_counter() -> ctypes.CDLL:
    """The functions of `allocations.c`.

    Raises:
        CannotCountError: There is no compiler.
    """
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise CannotCountError("there is no C compiler, cc or gcc, to build the counter of allocations; install one")
    with TemporaryDirectory() as folder:
        built = Path(folder) / "allocations.so"
        subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-o", built, SOURCE], check=True)
        return ctypes.CDLL(str(built))


class AllocationCounter:
    """Counts allocations while it is in use."""

    def __init__(self) -> None:
        library = built_counter()
        self._count = ctypes.c_ulonglong.in_dll(library, "allocations")
        self._inner = {domain: _Allocator() for domain in _DOMAINS}
        self._outer: dict[int, _Allocator] = {}
        address = {
            name: ctypes.cast(getattr(library, f"counted_{name}"), ctypes.c_void_p).value
            for name in ("malloc", "calloc", "realloc", "free")
        }
        for domain, inner in self._inner.items():
            ctypes.pythonapi.PyMem_GetAllocator(domain, ctypes.byref(inner))
            self._outer[domain] = _Allocator(ctx=ctypes.addressof(inner), **address)

    @property
    def count(self) -> int:
        """So far."""
        return self._count.value

    @contextmanager
    def in_front(self) -> Generator[None]:
        """Count what is asked for meanwhile."""
        for domain, outer in self._outer.items():
            ctypes.pythonapi.PyMem_SetAllocator(domain, ctypes.byref(outer))
        try:
            yield
        finally:
            for domain, inner in self._inner.items():
                ctypes.pythonapi.PyMem_SetAllocator(domain, ctypes.byref(inner))


# The process ----------------------------------------------------------------------------------------------------------


def _watched() -> bool:
    return "coverage" in sys.modules or sys.getprofile() is not None or sys.gettrace() is not None


@contextmanager
def deterministic(servers: Mapping[int, Server]) -> Generator[CountingLoop]:
    """A loop, in a process in which nothing is left to chance."""
    if os.environ.get("PYTHONHASHSEED") != ENVIRONMENT["PYTHONHASHSEED"]:
        raise CannotCountError("PYTHONHASHSEED is not 0; start the process with counting.ENVIRONMENT")
    if _watched():
        raise CannotCountError("coverage, a profiler or a debugger is active, whose work would be counted too")
    chance, loop = Random(0), CountingLoop(servers)

    def submit(
        _: ThreadPoolExecutor | WriterThread, function: Callable[..., Any], /, *arguments: Any, **named: Any
    ) -> Any:
        return loop.run_at_once(function, *arguments, **named)

    async def run_sync(function: Callable[..., Any], *arguments: Any, **_: Any) -> Any:
        return loop.run_at_once(function, *arguments).result()

    with (
        patch.object(ThreadPoolExecutor, "submit", submit),
        patch.object(WriterThread, "submit", submit),
        patch.object(anyio.to_thread, "run_sync", run_sync),  # which runs what FastAPI finds not to be a coroutine
        patch.object(secrets, "token_bytes", lambda size=32: chance.randbytes(size)),
        patch.object(secrets, "token_hex", lambda size=32: chance.randbytes(size).hex()),
        patch.object(time, "time_ns", lambda: int((START.timestamp() + loop.time()) * 1e9)),
        patch.object(uuid, "uuid4", lambda: uuid.UUID(int=chance.getrandbits(128), version=4)),
    ):
        try:
            yield loop
        finally:
            loop.close()


@contextmanager
def _undisturbed() -> Generator[None]:
    before = set(threading.enumerate())
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
    started = set(threading.enumerate()) - before
    if started:
        names = ", ".join(sorted(thread.name for thread in started))
        raise CannotCountError(f"the work has started a thread, so its counts would depend on chance: {names}")


async def count(work: Work, repeats: int = REPEATS) -> Counts:
    """What one repetition costs: medians, after as many repetitions that are not counted.

    A median leaves out what happens once in some seconds and not in each run, such as the renewal of leases: it would
    fall into the counted runs or beside them because of a change that has nothing to do with it.
    """
    loop = asyncio.get_running_loop()
    if not isinstance(loop, CountingLoop):
        raise CannotCountError("work is counted in a CountingLoop only")
    for _ in range(repeats):
        await work()
    counter = AllocationCounter()
    allocations: list[int] = []
    thread_jobs: list[int] = []
    with _undisturbed(), counter.in_front():
        for _ in range(repeats):
            before, jobs_before = counter.count, loop.thread_jobs
            await work()
            allocations.append(counter.count - before)
            thread_jobs.append(loop.thread_jobs - jobs_before)
    with _undisturbed():
        calls = [await _calls(work) for _ in range(repeats)]
    return Counts(median(calls), median(allocations), median(thread_jobs))


async def _calls(work: Work) -> int:
    profile = cProfile.Profile()
    profile.enable()
    try:
        await work()
    finally:
        profile.disable()
    return sum(entry.callcount for entry in profile.getstats())

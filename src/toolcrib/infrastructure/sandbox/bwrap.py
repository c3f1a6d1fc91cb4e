"""CPython and QuickJS in bubblewrap jails, one jail per execution, and a pool of jails that are kept ready."""

import asyncio
import contextlib
import importlib.util
import io
import os
import zipfile
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Final, Generic, Protocol, TypeVar

import orjson

from toolcrib.contracts import Isolation, SandboxLimits, Unavailable
from toolcrib.contracts.base.errors import missing_extra
from toolcrib.infrastructure.sandbox.cgroups import find_cgroups
from toolcrib.infrastructure.sandbox.jail import PYTHON, Ground, Jail, find_bwrap, find_interpreter, quotas
from toolcrib.infrastructure.sandbox.jail_session import JailedSession
from toolcrib.infrastructure.sandbox.jobs import CodeJob, Dialect


class Closable(Protocol):
    """What is kept ready."""

    async def close(self) -> None:
        """End it."""
        ...


T = TypeVar("T", bound=Closable)


class Ready(Generic[T]):
    """A number of them.

    Args:
        start: Starts one; raises `Unavailable` if that cannot be.
        count: How many are kept.
    """

    def __init__(self, start: Callable[[], Awaitable[T]], count: int) -> None:
        self._start = start
        self._count = count
        self._waiting: deque[T] = deque()
        self._starting: set[asyncio.Task[None]] = set()

    async def take(self) -> T:
        """One that is ready, else a new one; its successor is started meanwhile."""
        item = self._waiting.popleft() if self._waiting else await self._start()
        for _ in range(self._count - len(self._waiting) - len(self._starting)):
            task = asyncio.create_task(self._keep())
            self._starting.add(task)
            task.add_done_callback(self._starting.discard)
        return item

    async def close(self) -> None:
        """End those that wait."""
        self._count = 0
        await asyncio.gather(*self._starting)
        while self._waiting:
            await self._waiting.popleft().close()

    async def _keep(self) -> None:
        with contextlib.suppress(Unavailable):  # who needs one next is told
            self._waiting.append(await self._start())


FLAGS: Final = ("-B", "-P", "-S", "-s", "-X", "utf8")
"""The interpreter's: it compiles to no file, and imports nothing but its own library."""


class BwrapBackend:
    """Executions under bubblewrap.

    Args:
        warm: Jails that are kept ready for jobs with the default quotas. Each is used once.
    """

    name = "bwrap"
    isolation: Isolation = "namespace"
    dialects: frozenset[Dialect] = frozenset({"cpython", "quickjs", "restricted"})

    def __init__(self, warm: int = 0) -> None:
        self._ready = Ready(lambda: self._start(SandboxLimits()), warm)
        self._warm = warm
        self._ground: Ground | None = None

    async def open(self, job: CodeJob, dialect: Dialect) -> JailedSession:
        """A jail for the job: one that is ready, or a new one."""
        packages = packages_of(dialect)
        is_usual = not packages and fits(job.limits)
        jail = await (self._ready.take() if self._warm and is_usual else self._start(job.limits, packages))
        return JailedSession(jail, job, dialect)

    async def close(self) -> None:
        """End the jails that are kept ready."""
        await self._ready.close()

    @property
    def ground(self) -> Ground:
        """What this machine has to make jails of.

        Raises:
            Unavailable: Nothing.
        """
        if self._ground is None:
            self._ground = find_ground()
        return self._ground

    async def _start(self, limits: SandboxLimits, packages: Mapping[str, bytes] | None = None) -> Jail:
        ground = self.ground
        allowed = orjson.dumps(quotas(limits, counted=ground.cgroups is not None)).decode()
        return await Jail.start(ground, (PYTHON, *FLAGS, "-c", program(), allowed), limits, packages=packages)


def fits(limits: SandboxLimits) -> bool:
    """Whether a jail that was made before anybody knew the job has its quotas: those that are not told it later."""
    later = {"wall_s": 1.0, "output_kb": 1, "tool_calls": 1}
    return limits.model_copy(update=later) == SandboxLimits().model_copy(update=later)


def find_ground() -> Ground:
    """What this machine has to make jails of.

    Raises:
        Unavailable: bubblewrap is not there.
    """
    is_root = os.geteuid() == 0
    interpreter = find_interpreter(for_others=is_root)
    return Ground(find_bwrap(), interpreter, find_cgroups(), drop=is_root and interpreter.is_public)


@cache
def program() -> str:
    """The text of `jail_program.py`."""
    return files("toolcrib.infrastructure.sandbox").joinpath("jail_program.py").read_text()


def packages_of(dialect: Dialect) -> Mapping[str, bytes]:
    """What the dialect needs besides CPython.

    Raises:
        Unavailable: It is not installed.
    """
    match dialect:
        case "restricted":
            return {"restricted.zip": _zip_restricted_python()}
        case "quickjs":
            return {"_quickjs.abi3.so": _quickjs()}
        case "cpython" | "monty":
            return {}


@cache
def _zip_restricted_python() -> bytes:
    """RestrictedPython as an archive that can be imported from."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for file in sorted(_origin("RestrictedPython").parent.rglob("*.py")):
            archive.writestr(
                f"RestrictedPython/{file.relative_to(_origin('RestrictedPython').parent)}", file.read_text()
            )
    return packed.getvalue()


@cache
def _quickjs() -> bytes:
    """The extension module, for any CPython from 3.10 on."""
    return _origin("_quickjs").read_bytes()


def _origin(module: str) -> Path:
    """The file of a module that is not imported here."""
    found = importlib.util.find_spec(module)
    if found is None or found.origin is None:
        raise Unavailable(missing_extra("this sandbox", module.lstrip("_"), "sandbox"))
    return Path(found.origin)

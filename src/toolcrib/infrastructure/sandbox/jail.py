"""A jail: one process tree under bubblewrap, in separate namespaces of every type, and the Python that runs in it.

It has no network, only the files of the Python interpreter and the C library (read-only), a work directory in memory,
an empty environment, no capabilities, few system calls, and quotas. It starts blocked, gets its quotas from outside,
and is then released: nothing runs between fork and exec, which would not be safe with threads.
"""

import asyncio
import contextlib
import math
import os
import shutil
import signal
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self, cast

import orjson

from toolcrib.contracts import SandboxLimits, Unavailable
from toolcrib.infrastructure.sandbox.cgroups import Cgroup, Cgroups
from toolcrib.infrastructure.sandbox.seccomp import seccomp_program

PYTHON: Final = "/python/bin/python3"
"""Where it is inside."""
_OLDEST: Final = 11
"""Minor version."""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """An installed CPython."""

    prefix: Path
    minor: int
    """Of its version 3."""

    @property
    def program(self) -> Path:
        """Its executable."""
        return self.prefix / "bin" / f"python3.{self.minor}"

    @property
    def is_public(self) -> bool:
        """Whether everybody on the machine may run it."""
        program = self.program.resolve()
        return all(folder.stat().st_mode & stat.S_IXOTH for folder in (program, *program.parents))

    def binds(self) -> Iterator[tuple[Path, str]]:
        """What of it is seen inside, and where: the program, its library, its standard library."""
        yield self.program.resolve(), PYTHON
        for folder in ("lib", "lib64"):
            library = self.prefix / folder / f"python3.{self.minor}"
            if library.is_dir():
                yield library, f"/python/{folder}/python3.{self.minor}"
        if self.prefix != Path("/usr"):
            for library in (self.prefix / "lib").glob("libpython3*.so*"):
                yield library.resolve(), f"/python/lib/{library.name}"


def find_interpreter(*, for_others: bool) -> Interpreter:
    """The interpreter for jails.

    Args:
        for_others: Whether it should be one that everybody may run: jails are started under another user.
    """
    own = Interpreter(Path(sys.base_prefix), sys.version_info.minor)
    if not for_others or own.is_public:
        return own
    return next((found for found in _of_system() if found.is_public), own)


def _of_system() -> Iterator[Interpreter]:
    for prefix in (Path("/usr/local"), Path("/usr")):
        for minor in range(_OLDEST, sys.version_info.minor + 10):
            found = Interpreter(prefix, minor)
            if os.access(found.program, os.X_OK):
                yield found


JAIL_UID: Final = 60001
"""Under whom code runs, inside and, where this process is root, outside too."""
LIBRARIES: Final = ("/lib", "/lib64", "/usr/lib", "/usr/lib64")
_START_S: Final = 10.0
"""Seconds that a jail may take to be ready."""
_SPARE_MB: Final = 64
"""MiB of addresses that an interpreter takes without using them."""


@dataclass(frozen=True, slots=True)
class Ground:
    """What this machine has to make jails of."""

    bwrap: Path
    interpreter: Interpreter
    cgroups: Cgroups | None
    """Null if none can be made; a jail is then held to one process."""
    drop: bool
    """Whether jails are started as `JAIL_UID`, because this process is root."""

    def inside(self, limits: SandboxLimits, programs: Iterable[tuple[Path, str]]) -> list[str]:
        """Options of bubblewrap for what a jail is apart from, and what is seen inside.

        Args:
            limits: Its quotas.
            programs: What is seen besides the system's libraries: files and folders, and where.
        """
        options = [*_APART, "--proc", "/proc", "--dev", "/dev", "--remount-ro", "/dev"]
        for folder in LIBRARIES:
            options += ["--ro-bind-try", folder, folder]
        for source, place in programs:
            options += ["--ro-bind", str(source), place]
        options += ["--size", str(limits.disk_mb * 2**20), "--tmpfs", "/work", "--chdir", "/work"]
        options += ["--symlink", "work", "/tmp", "--clearenv"]  # noqa: S108 - inside the jail
        for name, value in ENVIRONMENT.items():
            options += ["--setenv", name, value]
        return options


_APART: Final = tuple(
    f"--unshare-all --unshare-user --uid {JAIL_UID} --gid {JAIL_UID} --disable-userns --die-with-parent --new-session "
    "--cap-drop ALL --hostname sandbox".split()
)
"""Options of bubblewrap for what the jail is apart from."""
ENVIRONMENT: Final = {
    "HOME": "/work",
    "LANG": "C.UTF-8",
    "LD_LIBRARY_PATH": "/python/lib",
    "PYTHONHASHSEED": "0",  # the order of sets is the same when a run is carried on
    "TMPDIR": "/work",
}


@dataclass(slots=True)
class Jail:
    """One that is started.

    Use `start`, and `close` whatever happens.
    """

    process: asyncio.subprocess.Process
    first_pid: int
    """The first process inside, as it is numbered outside."""
    cgroup: Cgroup | None
    limits: SandboxLimits
    _open: bool = field(default=True)

    @classmethod
    async def start(
        cls,
        ground: Ground,
        command: Sequence[str],
        limits: SandboxLimits,
        *,
        packages: Mapping[str, bytes] | None = None,
    ) -> Self:
        """Start a command in a jail of its own, with pipes to it.

        Args:
            ground: What the machine has.
            command: Program and arguments, as they are seen inside.
            limits: Its quotas.
            packages: Files by name that are put into `/packages`.

        Raises:
            Unavailable: bubblewrap cannot make it; says why.
        """
        with contextlib.ExitStack() as ours:
            with contextlib.ExitStack() as theirs:
                info, tell = os.pipe()
                ours.callback(os.close, info)
                theirs.callback(os.close, tell)
                wait, let_go = os.pipe()
                theirs.callback(os.close, wait)
                ours.callback(os.close, let_go)
                rules = memory_file(theirs, seccomp_program(single=ground.cgroups is None))
                files = {name: memory_file(theirs, content) for name, content in (packages or {}).items()}
                options = _options(ground, limits, files)
                options += ["--info-fd", str(tell), "--block-fd", str(wait), "--seccomp", str(rules)]
                program = [str(ground.bwrap), *options, "--", *command]
                if ground.cgroups is None:
                    program = [*_ulimit_command(limits), *program]
                process = await _launch(ground, program, (tell, wait, rules, *files.values()))
            first_pid = None
            try:
                first_pid = await _first_pid(info, process)
                cgroup = await _hold(ground, first_pid, limits)
            except BaseException:
                await _end(process, first_pid)
                raise
            os.write(let_go, b".")
        return cls(process, first_pid, cgroup, limits)

    def kill(self) -> None:
        """Kill everything inside."""
        _kill(self.process, self.first_pid)

    async def close(self) -> None:
        """Kill everything inside, wait until it is gone, and take its group away. Any number of times."""
        if not self._open:
            return
        self._open = False
        await _end(self.process, self.first_pid)
        if self.cgroup is not None:
            await self.cgroup.close()


def find_bwrap() -> Path:
    """The bubblewrap program.

    Raises:
        Unavailable: It is not installed.
    """
    found = shutil.which("bwrap", path="/usr/bin:/usr/local/bin:/bin")
    if found is None:
        raise Unavailable("bubblewrap is not installed; install the package `bubblewrap`, 0.8 or newer")
    return Path(found)


def _options(ground: Ground, limits: SandboxLimits, packages: Mapping[str, int]) -> list[str]:
    """Options of bubblewrap; the packages are descriptors by name."""
    options = [*ground.inside(limits, ground.interpreter.binds()), "--dir", "/packages"]
    for name, file in packages.items():
        options += ["--file", str(file), f"/packages/{name}"]
    return [*options, "--remount-ro", "/"]


async def _hold(ground: Ground, pid: int, limits: SandboxLimits) -> Cgroup | None:
    """Put a blocked jail into a group of its own.

    Raises:
        Unavailable: The group cannot be made.
    """
    if ground.cgroups is None:
        return None
    cgroup: Cgroup | None = None
    try:
        cgroup = ground.cgroups.make(limits)
        cgroup.join(pid)
    except OSError as problem:
        if cgroup is not None:
            await cgroup.close()
        raise Unavailable(f"a jail cannot be put into a control group: {problem.strerror}") from problem
    return cgroup


def quotas(limits: SandboxLimits, *, counted: bool) -> dict[str, int]:
    """Quotas of each process, by the names that `resource` has for them without `RLIMIT_`.

    The program in the jail sets them before it does anything else, and nothing in there can raise them again.

    Args:
        limits: Of the job.
        counted: Whether a control group counts memory and processes, so that these are a second line only.
    """
    addresses = (limits.memory_mb * (4 if counted else 1) + _SPARE_MB) * 2**20
    found = {
        "AS": addresses,
        "CORE": 0,
        "CPU": math.ceil(limits.cpu_s),
        "FSIZE": limits.disk_mb * 2**20,
        "MEMLOCK": 0,
        "MSGQUEUE": 0,
        "NOFILE": limits.open_files,
    }
    return found if counted else {**found, "NPROC": limits.processes + 1}


def _ulimit_command(limits: SandboxLimits) -> list[str]:
    """What holds the jail's own first process to the quotas too, where no control group does: code may write to it."""
    found = quotas(limits, counted=False)
    bounds = ("-v", str(found["AS"] // 1024), "-t", str(found["CPU"] + 1))  # KiB; a second more than the code itself
    return ["/bin/sh", "-c", 'ulimit "$1" "$2" && ulimit "$3" "$4" && shift 4 && exec "$@"', "sh", *bounds]


async def _launch(ground: Ground, program: Sequence[str], passed: Sequence[int]) -> asyncio.subprocess.Process:
    user = JAIL_UID if ground.drop else None
    try:
        return await asyncio.create_subprocess_exec(
            *program,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            pass_fds=passed,
            env={},
            cwd="/",
            user=user,
            group=user,
            extra_groups=None if user is None else (),
        )
    except OSError as problem:
        raise Unavailable(f"bubblewrap cannot be started: {problem.strerror}") from problem


async def _first_pid(info: int, process: asyncio.subprocess.Process) -> int:
    """What bubblewrap tells of the process that it has made; it writes it in two parts."""
    loop, text = asyncio.get_running_loop(), b""
    try:
        async with asyncio.timeout(_START_S):
            while b"}" not in text:
                part = await loop.run_in_executor(None, os.read, info, 4096)
                if not part:
                    stderr = cast("asyncio.StreamReader", process.stderr)
                    message = (await stderr.read(1000)).decode(errors="replace").strip()
                    raise Unavailable(f"bubblewrap cannot make a jail here: {message or 'it says nothing'}")
                text += part
    except TimeoutError:
        raise Unavailable(f"bubblewrap has not made a jail within {_START_S:g} s; the machine may be busy") from None
    return int(orjson.loads(text)["child-pid"])


def _kill(process: asyncio.subprocess.Process, first_pid: int | None) -> None:
    """Kill the first process inside, with which the kernel ends all others there; bubblewrap follows it."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid if first_pid is None else first_pid, signal.SIGKILL)


async def _end(process: asyncio.subprocess.Process, first_pid: int | None) -> None:
    """Kill all, and wait until it is gone."""
    _kill(process, first_pid)
    await drain_process(process)


async def drain_process(process: asyncio.subprocess.Process) -> None:
    """Wait for the end of a process that was killed, and read what is left in its pipes, so that they are closed."""
    cast("asyncio.StreamWriter", process.stdin).close()
    for stream in (process.stdout, process.stderr):
        while await cast("asyncio.StreamReader", stream).read(2**16):
            pass
    await process.wait()


def memory_file(fds: contextlib.ExitStack, content: bytes) -> int:
    """A file that has no name, at its beginning."""
    file = os.memfd_create("toolcrib")
    fds.callback(os.close, file)
    with open(file, "wb", closefd=False) as writing:
        writing.write(content)
    os.lseek(file, 0, os.SEEK_SET)
    return file

"""CPython and QuickJS under gVisor, a kernel in user space that handles the code's system calls.

It uses `runsc run` with one bundle per execution (OCI runtime specification 1.0), and the programs and frames of the
other jails. gVisor has no quota of CPU time, so it is used only with a control group.
"""

import asyncio
import os
import shlex
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Self

import orjson

from toolcrib.contracts import Isolation, Json, JsonObject, SandboxLimits, Unavailable
from toolcrib.infrastructure.sandbox.bwrap import FLAGS, packages_of, program
from toolcrib.infrastructure.sandbox.cgroups import Cgroup, Cgroups, find_cgroups
from toolcrib.infrastructure.sandbox.jail import (
    ENVIRONMENT,
    JAIL_UID,
    LIBRARIES,
    PYTHON,
    Interpreter,
    drain_process,
    find_interpreter,
    quotas,
)
from toolcrib.infrastructure.sandbox.jail_session import JailedSession
from toolcrib.infrastructure.sandbox.jobs import CodeJob, Dialect

_OWN_MB: Final = 192
"""MiB that gVisor's kernel takes for itself."""
_OWN_THREADS: Final = 96
_WITH_US: Final = ("setpriv", "--pdeathsig", "KILL")
"""Has the kernel end `runsc`, and that its container, when this process is killed."""


class GvisorBackend:
    """Executions under gVisor."""

    name = "gvisor"
    isolation: Isolation = "kernel"
    dialects: frozenset[Dialect] = frozenset({"cpython", "quickjs", "restricted"})

    async def open(self, job: CodeJob, dialect: Dialect) -> JailedSession:
        """A container for the job."""
        packages = packages_of(dialect)
        runsc = shutil.which("runsc", path="/usr/local/bin:/usr/bin:/bin")
        if runsc is None:
            raise Unavailable("gVisor is not installed; put `runsc` into /usr/local/bin")
        cgroups = find_cgroups()
        if cgroups is None:
            raise Unavailable("gVisor needs control groups, and this process cannot create any")
        return JailedSession(await Container.start(runsc, cgroups, job.limits, packages), job, dialect)

    async def close(self) -> None:
        """Nothing is kept ready."""


class Container:
    """One that is started. Use `start`, and `close` whatever happens."""

    def __init__(self, process: asyncio.subprocess.Process, cgroup: Cgroup, runsc: list[str], folder: Path) -> None:
        self.process = process
        self.cgroup = cgroup
        self._runsc = runsc
        self._folder: Path | None = folder

    @classmethod
    async def start(cls, runsc: str, cgroups: Cgroups, limits: SandboxLimits, packages: Mapping[str, bytes]) -> Self:
        """Start a container.

        Raises:
            Unavailable: It cannot be started.
        """
        folder = await asyncio.to_thread(_bundle, limits, packages)
        options = [runsc, "--root", str(folder / "state"), "--network=none", "--ignore-cgroups"]
        if os.geteuid() != 0:
            options.append("--rootless")
        roomy = {"memory_mb": limits.memory_mb + _OWN_MB, "processes": limits.processes + _OWN_THREADS}
        cgroup = None
        try:
            cgroup = cgroups.make(limits.model_copy(update=roomy))
            joined = [f"echo $$ > {shlex.quote(str(place / 'cgroup.procs'))}" for place in cgroup.places]
            command = shlex.join([*_WITH_US, *options, "run", "--bundle", str(folder), folder.name])
            process = await asyncio.create_subprocess_exec(
                "/bin/sh",
                "-ec",
                "\n".join((*joined, f"exec {command}")),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env={"PATH": "/usr/bin:/bin"},
                cwd="/",
            )
        except BaseException as problem:
            if cgroup is not None:
                cgroup.kill()
                await cgroup.close()
            shutil.rmtree(folder, ignore_errors=True)
            if isinstance(problem, OSError):
                raise Unavailable(f"gVisor cannot be started: {problem.strerror}") from problem
            raise
        return cls(process, cgroup, options, folder)

    def kill(self) -> None:
        """Kill everything: the kernel in user space is in the group too."""
        self.cgroup.kill()

    async def close(self) -> None:
        """Kill everything, and take away what it was made of. Any number of times."""
        if self._folder is None:
            return
        folder, self._folder = self._folder, None
        self.kill()
        await drain_process(self.process)
        await self.cgroup.close()
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


def _bundle(limits: SandboxLimits, packages: Mapping[str, bytes]) -> Path:
    """A folder with all that gVisor is told of a container."""
    folder = Path(tempfile.mkdtemp(prefix="toolcrib-"))
    folder.chmod(0o755)
    (folder / "rootfs").mkdir()
    (folder / "packages").mkdir()
    for name, content in packages.items():
        (folder / "packages" / name).write_bytes(content)
    (folder / "config.json").write_bytes(
        orjson.dumps(_configuration(folder, find_interpreter(for_others=True), limits))
    )
    return folder


def _configuration(folder: Path, interpreter: Interpreter, limits: SandboxLimits) -> JsonObject:
    """What is seen inside, and the quotas that gVisor's kernel keeps."""
    allowed = quotas(limits, counted=False).items()
    mounts: list[Json] = [
        {"destination": "/proc", "type": "proc", "source": "proc"},
        {"destination": "/dev", "type": "tmpfs", "source": "tmpfs"},
        _memory("/work", limits),
        _memory("/tmp", limits),  # noqa: S108 - inside the container
        _bind(folder / "packages", "/packages"),
        *(_bind(Path(place), place) for place in LIBRARIES if Path(place).is_dir()),
        *(_bind(source, place) for source, place in interpreter.binds()),
    ]
    return {
        "ociVersion": "1.0.0",
        "root": {"path": "rootfs", "readonly": True},
        "process": {
            "user": {"uid": JAIL_UID, "gid": JAIL_UID},
            "args": [PYTHON, *FLAGS, "-c", program(), "{}"],
            "cwd": "/work",
            "env": [f"{name}={value}" for name, value in ENVIRONMENT.items()],
            "noNewPrivileges": True,
            "capabilities": {},
            "rlimits": [{"type": f"RLIMIT_{name}", "soft": value, "hard": value} for name, value in allowed],
        },
        "mounts": mounts,
        "hostname": "sandbox",
        "linux": {"namespaces": [{"type": kind} for kind in ("pid", "mount", "uts", "ipc", "network")]},
    }


def _memory(place: str, limits: SandboxLimits) -> Json:
    options = [f"size={limits.disk_mb * 2**20}", "mode=1777"]
    return {"destination": place, "type": "tmpfs", "source": "tmpfs", "options": options}


def _bind(source: Path, place: str) -> Json:
    return {"destination": place, "type": "bind", "source": str(source), "options": ["rbind", "ro"]}

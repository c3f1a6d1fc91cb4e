"""Monty: an interpreter for a subset of Python, in a separate process, by default in a jail.

The interpreter offers no files, network or processes, and enforces quotas itself; the jail protects against faults in
it. It runs without a jail only if the operator allows it.
"""

import asyncio
import contextlib
import math
import os
import shlex
import signal
import sysconfig
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Self

import orjson

from toolcrib.contracts import Isolation, Json, SandboxLimits, Unavailable
from toolcrib.contracts.base.errors import missing_extra
from toolcrib.infrastructure.sandbox.bwrap import Ready, find_ground, fits
from toolcrib.infrastructure.sandbox.cgroups import Cgroup
from toolcrib.infrastructure.sandbox.jail import JAIL_UID, Ground, memory_file
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
from toolcrib.infrastructure.sandbox.seccomp import seccomp_program

_PROGRAM: Final = "/monty"
"""Where the interpreter is inside."""
_SPARE_MB: Final = 512
"""MiB of addresses that the interpreter takes without using them."""
_GRACE_S: Final = 2.0
"""Seconds after a quota until a worker is killed that did not keep it by itself."""
_SUSPENSIONS: Final = 1000
"""Questions to the outside besides tools: names that are not there, files that are refused."""
_CALL: Final = "\n\nmain(**_arguments_of_main)\n"
_NOT_HERE: Final = "; Monty has a part of Python only: set interpreter to 'cpython' for all of it"


class MontyBackend:
    """Executions by Monty.

    Args:
        allow_unjailed: Whether it may run without a jail where none can be made.
        warm: Workers that are kept ready for jobs with the default quotas. Each is used once.
    """

    name = "monty"
    isolation: Isolation = "language"
    dialects: frozenset[Dialect] = frozenset({"monty"})

    def __init__(self, *, allow_unjailed: bool = False, warm: int = 0) -> None:
        self._allow_unjailed = allow_unjailed
        self._warm = warm
        self._ready = Ready(lambda: self._start(SandboxLimits()), warm)

    async def open(self, job: CodeJob, dialect: Dialect) -> "MontySession":
        """A worker for the job."""
        take = self._warm and fits(job.limits)
        return MontySession(await (self._ready.take() if take else self._start(job.limits)), job)

    async def close(self) -> None:
        """End the workers that are kept ready."""
        await self._ready.close()

    async def _start(self, limits: SandboxLimits) -> "MontyProcess":
        try:
            ground = find_ground()
        except Unavailable as problem:
            if not self._allow_unjailed:
                msg = f"{problem}; without it Monty runs only where TOOLCRIB_SANDBOX_ALLOW_UNJAILED is set"
                raise Unavailable(msg) from problem
            ground = None
        return await MontyProcess.start(ground, limits)


class MontyProcess:
    """One process of Monty's. Use `start`, and `close` whatever happens."""

    def __init__(self, pool: Any, cgroup: Cgroup | None, fds: contextlib.ExitStack, *, is_jailed: bool) -> None:
        self.pool = pool
        self.cgroup = cgroup
        self.is_jailed = is_jailed
        self._fds = fds

    @classmethod
    async def start(cls, ground: Ground | None, limits: SandboxLimits) -> Self:
        """Start a worker.

        Args:
            ground: What jails are made of; null for none.
            limits: Its quotas.

        Raises:
            Unavailable: It cannot be started.
        """
        monty, program = _library(), _program()
        cgroup = None
        with contextlib.ExitStack() as fds:
            try:
                if ground is not None:
                    cgroup = ground.cgroups.make(limits) if ground.cgroups is not None else None
                    program = _descriptor(memory_file(fds, _script(ground, program, limits, cgroup, fds).encode()))
                pool = monty.AsyncMonty(binary_path=program, min_processes=1, max_processes=1)
                await pool.__aenter__()
            except BaseException as problem:
                if cgroup is not None:
                    await cgroup.close()
                if isinstance(problem, OSError | RuntimeError | monty.MontyError):
                    raise Unavailable(f"Monty cannot be started: {problem}") from problem
                raise
            return cls(pool, cgroup, fds.pop_all(), is_jailed=ground is not None)

    async def close(self) -> None:
        """End it."""
        await self.pool.__aexit__(None, None, None)
        self._fds.close()
        if self.cgroup is not None:
            await self.cgroup.close()


class MontySession:
    """Turns of a worker.

    Args:
        worker: Started, and used for this only.
        job: What it shall run.
    """

    def __init__(self, worker: MontyProcess, job: CodeJob) -> None:
        self.used = Used()
        self._worker = worker
        self._job = job
        self._monty = _library()
        self._printed = self._monty.CollectString(max_bytes=job.limits.output_kb * 1024)
        self._session: Any = None
        self._snapshot: Any = None

    async def start(self) -> Turn:
        """Let the code begin."""
        return await self._turn(self._begin())

    async def answer(self, answer: ToolReply) -> Turn:
        """Let the code go on."""
        if answer.failure is not None:
            return await self._turn(self._snapshot.resume({"exception": RuntimeError(answer.failure)}))
        return await self._turn(self._snapshot.resume({"return_value": answer.output}))

    async def close(self) -> None:
        """End the worker."""
        if self._session is not None:
            if self._worker.is_jailed:
                await _kill_inside(self._session.worker_pid)
            with contextlib.suppress(self._monty.MontyError):
                await self._session.__aexit__(None, None, None)
        await self._worker.close()

    async def _begin(self) -> Any:
        limits = self._job.limits
        self._session = self._worker.pool.checkout(
            script_name="code",
            limits={
                "max_feed_duration_secs": min(limits.cpu_s, limits.wall_s),
                "max_memory": limits.memory_mb * 2**20,
                "max_suspensions": limits.tool_calls + _SUSPENSIONS,
                "max_total_sleep_secs": limits.wall_s,
            },
            os_policy={"datetime": self._job.started_at, "random_start": {"seed": self._job.seed}},
        )
        await self._session.__aenter__()
        return await self._session.feed_start(
            self._job.source + _CALL,
            inputs={"_arguments_of_main": self._job.arguments},
            print_callback=self._printed,
        )

    async def _turn(self, step: Any) -> Turn:
        began = time.monotonic()
        try:
            async with asyncio.timeout(max(self._job.limits.wall_s - self.used.wall_s, 0.0) + _GRACE_S):
                turn = await self._until_asked(step)
        except TimeoutError:
            turn = Exceeded("wall_s")
        except self._monty.MontyError as problem:
            turn = self._turn_from_error(problem)
        self.used.wall_s += time.monotonic() - began
        self.used.printed = self._printed.output
        if self._worker.cgroup is not None:
            self.used.cpu_s = self._worker.cgroup.cpu_s
            self.used.memory_peak_mb = _mebibytes(self._worker.cgroup.memory_peak)
        return (
            Exceeded("wall_s") if isinstance(turn, ToolRequest) and self.used.wall_s > self._job.limits.wall_s else turn
        )

    async def _until_asked(self, step: Any) -> Turn:
        """Go on until a tool is wanted or the end is there; what else the code wants from outside is refused."""
        while True:
            reached = await step
            match reached:
                case self._monty.MontyComplete():
                    return self._turn_from_output(reached.output)
                case self._monty.AsyncFunctionSnapshot(is_os_function=True):
                    step = reached.resume_not_handled()
                case self._monty.AsyncFunctionSnapshot(function_name=str(name)):
                    self._snapshot = reached
                    refusal = self._refusal(name, reached.args)
                    if refusal is None:
                        arguments = _plain(reached.kwargs)
                        if arguments is not None:
                            return ToolRequest(name, arguments)
                        refusal = TypeError(f"the arguments of {name}() are not JSON")
                    step = reached.resume({"exception": refusal})
                case self._monty.AsyncNameLookupSnapshot():
                    step = reached.resume()
                case _:
                    return Failed("NotImplementedError", "tools are called without await")

    def _refusal(self, name: str, args: tuple[Any, ...]) -> Exception | None:
        if name not in self._job.functions:
            return NameError(f"name {name!r} is not defined")
        return TypeError(f"{name}() takes its arguments by name only") if args else None

    def _turn_from_output(self, output: Any) -> Turn:
        try:
            text = orjson.dumps(output)
        except TypeError as problem:
            return Failed("TypeError", f"main returned a value that is not JSON: {problem}")
        if len(text) > self._job.limits.output_kb * 1024:
            return Exceeded("output_kb")
        return Returned(orjson.loads(text))

    def _turn_from_error(self, problem: Any) -> Turn:
        """What an error of Monty's means."""
        limits, monty = self._job.limits, self._monty
        if isinstance(problem, monty.MontyCrashedError):
            cgroup = self._worker.cgroup
            if "memory" in str(problem) or (cgroup is not None and cgroup.was_out_of_memory):
                return Exceeded("memory_mb")
            return Failed("ProcessEnded", "the interpreter ended before main returned")
        inner, text = problem.exception(), str(problem)
        match inner:
            case MemoryError():
                return Exceeded("output_kb" if f"> {limits.output_kb * 1024} bytes" in text else "memory_mb")
            case TimeoutError() if "limit exceeded" in text:
                return Exceeded("wall_s" if "sleep" in text or limits.wall_s < limits.cpu_s else "cpu_s")
            case _:
                lines = [frame.line for frame in problem.traceback()] if hasattr(problem, "traceback") else []
                hint = _NOT_HERE if isinstance(inner, NotImplementedError | ModuleNotFoundError) else ""
                return Failed(type(inner).__name__, f"{inner}"[:2000] + hint, lines[-1] if lines else None)


async def _kill_inside(bwrap: int | None) -> None:
    """Kill what bubblewrap has started and let it see that, so that no dead process is left to another parent."""
    for pid in _children(bwrap):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        for _ in range(100):
            if not _is_there(pid):
                break
            await asyncio.sleep(0.002)


def _is_there(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def _children(pid: int | None) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def _script(
    ground: Ground, program: Path, limits: SandboxLimits, cgroup: Cgroup | None, fds: contextlib.ExitStack
) -> str:
    """A program for the shell that starts Monty in a jail: the library that starts workers knows a program only."""
    rules = memory_file(fds, seccomp_program(single=cgroup is None))
    inside = [*ground.inside(limits, ((program, _PROGRAM),)), "--remount-ro", "/", "--seccomp", "9", "--", _PROGRAM]
    identity = ["setpriv", f"--reuid={JAIL_UID}", f"--regid={JAIL_UID}", "--clear-groups"] if ground.drop else []
    return "\n".join(
        (*_steps(limits, cgroup, rules), f'exec {shlex.join([*identity, str(ground.bwrap), *inside])} "$@"\n')
    )


def _steps(limits: SandboxLimits, cgroup: Cgroup | None, rules: int) -> Iterator[str]:
    yield "#!/bin/sh"
    yield "set -e"
    for folder in cgroup.places if cgroup is not None else ():
        yield f"echo $$ > {shlex.quote(str(folder / 'cgroup.procs'))}"
    yield f"ulimit -c 0 && ulimit -n {limits.open_files} && ulimit -f {limits.disk_mb * 2048}"
    yield f"ulimit -t {math.ceil(limits.cpu_s + _GRACE_S)} && ulimit -v {(limits.memory_mb + _SPARE_MB) * 1024}"
    yield f"exec 9< {_descriptor(rules)}"


def _descriptor(file: int) -> Path:
    """A path under which children of this process find one of its open files."""
    return Path(f"/proc/{os.getpid()}/fd/{file}")


def _library() -> Any:
    try:
        return import_module("pydantic_monty")
    except ModuleNotFoundError as missing:
        raise Unavailable(missing_extra("Monty", "pydantic_monty", "sandbox")) from missing


def _program() -> Path:
    """The interpreter's program, which its package installs beside Python's."""
    found = Path(sysconfig.get_path("scripts")) / "monty"
    if not found.exists():
        raise Unavailable(f"Monty's program is not at {found}; reinstall 'toolcrib[sandbox]'")
    return found


def _plain(value: Any) -> dict[str, Json] | None:
    """The value as JSON has it; null if it has none."""
    try:
        return orjson.loads(orjson.dumps(value))
    except (TypeError, orjson.JSONDecodeError):
        return None


def _mebibytes(number: int | None) -> float | None:
    return None if number is None else round(number / 2**20, 1)

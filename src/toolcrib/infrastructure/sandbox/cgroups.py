"""Control groups: limits of memory, processes and CPU time for a whole jail.

Both versions of the kernel's interface (Documentation/admin-guide/cgroup-v1 and cgroup-v2.rst) are supported, if this
process may write there. A jail without a control group is limited to a single process.
"""

import asyncio
import contextlib
import itertools
import os
import re
import signal
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from toolcrib.contracts import SandboxLimits

ROOT: Final = Path("/sys/fs/cgroup")
_MEMBERSHIP: Final = Path("/proc/self/cgroup")
_PREFIX: Final = "toolcrib-"
_PERIOD_US: Final = 100_000
_NEEDED: Final = frozenset({"cpu", "memory", "pids"})
_NAMES: Final = itertools.count(1)
_OWNER: Final = re.compile(rf"{_PREFIX}(\d+)-\d+")


@dataclass(frozen=True, slots=True)
class Cgroups:
    """Where groups can be made: a directory by controller; in version 2 the same for all."""

    parents: Mapping[str, Path]
    unified: bool

    def make(self, limits: SandboxLimits) -> "Cgroup":
        """A group for one jail, of one processor at most.

        Raises:
            OSError: It cannot be made any more.
        """
        name = f"{_PREFIX}{os.getpid()}-{next(_NAMES)}"
        group = Cgroup({controller: parent / name for controller, parent in self.parents.items()}, self.unified)
        group.limit(limits)
        return group


@dataclass(frozen=True, slots=True)
class Cgroup:
    """The group of one jail."""

    folders: Mapping[str, Path]
    unified: bool

    @property
    def places(self) -> Sequence[Path]:
        """Its directories, each once."""
        return tuple(dict.fromkeys(self.folders.values()))

    def limit(self, limits: SandboxLimits) -> None:
        """Make it, with its quotas."""
        for folder in self.folders.values():
            folder.mkdir(exist_ok=True)
        memory, pids, cpu = self.folders["memory"], self.folders["pids"], self.folders["cpu"]
        size = limits.memory_mb * 2**20
        if self.unified:
            (memory / "memory.max").write_text(str(size))
            with contextlib.suppress(OSError):  # a kernel without swap accounting
                (memory / "memory.swap.max").write_text("0")
            (cpu / "cpu.max").write_text(f"{_PERIOD_US} {_PERIOD_US}")
        else:
            (memory / "memory.limit_in_bytes").write_text(str(size))
            with contextlib.suppress(OSError):
                (memory / "memory.memsw.limit_in_bytes").write_text(str(size))
            (cpu / "cpu.cfs_period_us").write_text(str(_PERIOD_US))
            (cpu / "cpu.cfs_quota_us").write_text(str(_PERIOD_US))
        (pids / "pids.max").write_text(str(limits.processes + 1))  # the jail's own first process is one too

    def join(self, pid: int) -> None:
        """Put a process in, and all that it starts from now on."""
        for folder in self.places:
            (folder / "cgroup.procs").write_text(str(pid))

    def kill(self) -> None:
        """Kill all that is in it."""
        kill_all(self.folders["pids"])

    @property
    def memory_peak(self) -> int | None:
        """Bytes at most at a time; null if the kernel does not tell."""
        return _number(self.folders["memory"] / ("memory.peak" if self.unified else "memory.max_usage_in_bytes"))

    @property
    def cpu_s(self) -> float | None:
        """Seconds of computing so far; null if the kernel does not tell."""
        if self.unified:
            microseconds = _field(self.folders["cpu"] / "cpu.stat", "usage_usec")
            return None if microseconds is None else microseconds / 1e6
        nanoseconds = _number(self.folders["cpuacct"] / "cpuacct.usage") if "cpuacct" in self.folders else None
        return None if nanoseconds is None else nanoseconds / 1e9

    @property
    def was_out_of_memory(self) -> bool:
        """Whether the kernel has killed something in it for want of memory."""
        name = "memory.events" if self.unified else "memory.oom_control"
        return bool(_field(self.folders["memory"] / name, "oom_kill"))

    async def close(self) -> None:
        """Remove it, once the kernel has taken the dead out."""
        for folder in self.places:
            for _ in range(100):
                try:
                    folder.rmdir()
                except FileNotFoundError:
                    break
                except OSError:
                    await asyncio.sleep(0.01)
                else:
                    break


def find_cgroups(root: Path = ROOT, membership: Path = _MEMBERSHIP) -> Cgroups | None:
    """Where this process may make groups; null if nowhere.

    Args:
        root: Where the control groups are mounted.
        membership: Tells the groups of this process.
    """
    try:
        own = dict(_memberships(membership.read_text()))
    except OSError:
        return None
    is_unified = (root / "cgroup.controllers").exists()
    for found in _places_v2(root, own.get("", "/")) if is_unified else _places_v1(root, own):
        if _works(found):
            _sweep(found)
            return found
    return None


def _memberships(text: str) -> Iterator[tuple[str, str]]:
    """Paths by controller; that of version 2 has no name."""
    for line in text.splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            yield controller, path


def _places_v1(root: Path, own: Mapping[str, str]) -> Iterator[Cgroups]:
    """The own groups, else the top ones."""
    controllers = [name for name in (*sorted(_NEEDED), "cpuacct") if (root / name).is_dir()]
    if set(controllers) >= _NEEDED:
        yield Cgroups({name: root / name / own.get(name, "/").lstrip("/") for name in controllers}, unified=False)
        yield Cgroups({name: root / name for name in controllers}, unified=False)


def _places_v2(root: Path, own: str) -> Iterator[Cgroups]:
    """Beside the own group, then under it, then at the top: a group with processes in it can have no limited ones."""
    mine = root / own.lstrip("/")
    for place in dict.fromkeys((mine.parent if mine != root else mine, mine, root)):
        if place.is_relative_to(root):
            yield Cgroups(dict.fromkeys(sorted(_NEEDED), place), unified=True)


def _works(place: Cgroups) -> bool:
    """Whether a group can be made there: made and removed again."""
    try:
        if place.unified:
            with contextlib.suppress(OSError):
                (place.parents["memory"] / "cgroup.subtree_control").write_text("+cpu +memory +pids")
        group = place.make(SandboxLimits())
        for folder in group.places:
            folder.rmdir()
    except OSError:
        return False
    return True


def _sweep(place: Cgroups) -> None:
    """Remove the groups of processes that died without doing so."""
    for parent in dict.fromkeys(place.parents.values()):
        for folder in parent.glob(f"{_PREFIX}*"):
            owner = _OWNER.fullmatch(folder.name)
            if owner is not None and not Path(f"/proc/{owner[1]}").exists():
                kill_all(folder)
                with contextlib.suppress(OSError):
                    folder.rmdir()


def kill_all(folder: Path) -> None:
    """Kill what is in a group, and what that has started meanwhile."""
    for _ in range(3):
        for pid in _members(folder):
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)


def _members(folder: Path) -> list[int]:
    """Processes of a group. Those of other containers are 0 here, and a signal to 0 would go to ourselves."""
    try:
        return [pid for pid in map(int, (folder / "cgroup.procs").read_text().split()) if pid > 0]
    except OSError:
        return []


def _number(file: Path) -> int | None:
    try:
        return int(file.read_text())
    except (OSError, ValueError):
        return None


def _field(file: Path, name: str) -> int | None:
    """A number from lines of `name number`."""
    try:
        fields = dict(line.split(" ", 1) for line in file.read_text().splitlines())
        return int(fields[name])
    except (OSError, KeyError, ValueError):
        return None

"""Control groups of both versions: the quotas that are written, and what is read of them."""

import os
from pathlib import Path

import pytest

from toolcrib.contracts import SandboxLimits
from toolcrib.infrastructure.sandbox.cgroups import Cgroup, find_cgroups

pytestmark = pytest.mark.requirement("sandbox.quotas")

LIMITS = SandboxLimits(memory_mb=64, processes=8)


def test_a_unified_group_has_its_quotas_and_tells_what_was_used(tmp_path: Path):
    group = Cgroup(dict.fromkeys(("cpu", "memory", "pids"), tmp_path / "job"), unified=True)
    group.limit(LIMITS)
    folder = group.places[0]

    assert len(group.places) == 1
    assert (folder / "memory.max").read_text() == str(64 * 2**20)
    assert (folder / "memory.swap.max").read_text() == "0"
    assert (folder / "pids.max").read_text() == "9"
    assert (folder / "cpu.max").read_text() == "100000 100000"
    assert (group.cpu_s, group.memory_peak, group.was_out_of_memory) == (None, None, False)

    (folder / "cpu.stat").write_text("usage_usec 1500000\nuser_usec 1\n")
    (folder / "memory.peak").write_text("1048576\n")
    (folder / "memory.events").write_text("low 0\noom 1\noom_kill 1\n")
    assert (group.cpu_s, group.memory_peak, group.was_out_of_memory) == (1.5, 2**20, True)


def test_a_group_of_version_one_has_a_directory_for_each_controller(tmp_path: Path):
    names = ("cpu", "cpuacct", "memory", "pids")
    for name in names:
        (tmp_path / name).mkdir()
    group = Cgroup({name: tmp_path / name / "job" for name in names}, unified=False)
    group.limit(LIMITS)
    group.join(4321)

    assert (tmp_path / "memory/job/memory.limit_in_bytes").read_text() == str(64 * 2**20)
    assert (tmp_path / "pids/job/pids.max").read_text() == "9"
    assert (tmp_path / "cpu/job/cpu.cfs_quota_us").read_text() == "100000"
    assert {(tmp_path / name / "job/cgroup.procs").read_text() for name in names} == {"4321"}

    (tmp_path / "cpuacct/job/cpuacct.usage").write_text("2500000000\n")
    (tmp_path / "memory/job/memory.oom_control").write_text("oom_kill_disable 0\noom_kill 0\n")
    assert (group.cpu_s, group.was_out_of_memory) == (2.5, False)


def test_where_none_can_be_made_there_are_none(tmp_path: Path):
    membership = tmp_path / "membership"
    assert find_cgroups(tmp_path, membership) is None

    membership.write_text("0::/service\n")
    (tmp_path / "cgroup.controllers").write_text("cpu memory pids\n")
    assert find_cgroups(tmp_path, membership) is None

    (tmp_path / "cgroup.controllers").unlink()
    membership.write_text("4:memory:/service\n2:cpu,cpuacct:/\n")
    (tmp_path / "memory").mkdir()
    assert find_cgroups(tmp_path, membership) is None


def test_processes_of_other_containers_in_a_group_are_not_taken_for_ourselves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    killed: list[int] = []

    def kill(pid: int, _: int) -> None:
        killed.append(pid)

    monkeypatch.setattr(os, "kill", kill)
    (tmp_path / "cgroup.procs").write_text("0\n4321\n0\n")

    Cgroup({"pids": tmp_path}, unified=True).kill()

    assert set(killed) == {4321}


async def test_a_group_that_is_gone_already_is_closed_without_a_word(tmp_path: Path):
    group = Cgroup({"pids": tmp_path / "gone"}, unified=True)

    group.kill()
    await group.close()

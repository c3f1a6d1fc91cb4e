"""The ways in which code is run on this machine, at the edges of what the machine has."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from toolcrib.contracts import SandboxLimits, Unavailable
from toolcrib.infrastructure.sandbox import (
    BwrapBackend,
    CodeJob,
    Exceeded,
    Failed,
    GvisorBackend,
    MontyBackend,
    Returned,
    ToolReply,
    ToolRequest,
    jail,
)
from toolcrib.infrastructure.sandbox.bwrap import PYTHON, find_ground, program
from toolcrib.infrastructure.sandbox.jail import Interpreter, Jail, find_interpreter
from toolcrib.infrastructure.sandbox.jail_session import JailedSession
from toolcrib.infrastructure.sandbox.monty import MontyProcess, MontySession

pytestmark = pytest.mark.requirement("sandbox.ways")

FORK = "import os\ndef main():\n    try:\n        os.fork()\n    except OSError as e:\n        return str(e)\n"
LIMITS = SandboxLimits(wall_s=3, cpu_s=1, memory_mb=64)


def job(source: str, **arguments: object) -> CodeJob:
    return CodeJob(source, arguments, datetime(2026, 1, 1, tzinfo=UTC), seed="7", functions=("f",), limits=LIMITS)


async def test_a_jail_without_a_control_group_is_one_process(monkeypatch: pytest.MonkeyPatch):
    from toolcrib.infrastructure.sandbox import bwrap

    monkeypatch.setattr(bwrap, "find_cgroups", lambda: None)
    session = await BwrapBackend().open(job(FORK), "cpython")
    turn = await session.start()
    await session.close()

    assert isinstance(turn, Returned)
    assert turn.output in ("[Errno 11] Resource temporarily unavailable", "[Errno 1] Operation not permitted")
    assert session.used.cpu_s is None


async def test_a_jail_without_a_control_group_is_held_to_its_memory(monkeypatch: pytest.MonkeyPatch):
    from toolcrib.infrastructure.sandbox import bwrap

    monkeypatch.setattr(bwrap, "find_cgroups", lambda: None)
    session = await BwrapBackend().open(job("def main():\n    return len(b'x' * 200 * 2**20)\n"), "cpython")
    turn = await session.start()
    await session.close()

    assert turn == Exceeded("memory_mb")


async def test_the_first_process_of_a_jail_without_a_control_group_is_held_to_the_quotas_too(
    monkeypatch: pytest.MonkeyPatch,
):
    from toolcrib.infrastructure.sandbox import bwrap

    monkeypatch.setattr(bwrap, "find_cgroups", lambda: None)
    session = await BwrapBackend().open(job("def main():\n    return open('/proc/1/limits').read()\n"), "cpython")
    turn = await session.start()
    await session.close()

    assert isinstance(turn, Returned)
    bounds = {line[:26].strip(): line[26:].split()[:2] for line in str(turn.output).splitlines()}
    assert bounds["Max address space"] == [str((64 + 64) * 2**20)] * 2
    assert bounds["Max cpu time"] == ["2", "2"]


async def test_a_process_that_is_not_ours_to_drop_keeps_its_user(monkeypatch: pytest.MonkeyPatch):
    from toolcrib.infrastructure.sandbox import bwrap

    ground = replace(find_ground(), drop=False, interpreter=find_interpreter(for_others=False))
    monkeypatch.setattr(bwrap, "find_ground", lambda: ground)
    session = await BwrapBackend().open(job("import os\ndef main():\n    return os.getuid()\n"), "cpython")
    turn = await session.start()
    await session.close()

    assert turn == Returned(60001)


async def test_what_bubblewrap_says_when_it_cannot_make_a_jail_is_told(tmp_path: Path):
    ground = find_ground()
    script = tmp_path / "bwrap"
    script.write_text("#!/bin/sh\necho 'No permissions to create new namespace' >&2\nexit 1\n")
    script.chmod(0o755)

    with pytest.raises(Unavailable, match="cannot make a jail here: No permissions to create new namespace"):
        await Jail.start(replace(ground, bwrap=script, drop=False), (PYTHON,), LIMITS)
    with pytest.raises(Unavailable, match="bubblewrap cannot be started"):
        await Jail.start(replace(ground, bwrap=tmp_path / "none", drop=False), (PYTHON,), LIMITS)


async def test_a_jail_that_is_not_there_in_time_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(jail, "_START_S", 0.0)
    script = tmp_path / "bwrap"
    script.write_text("#!/bin/sh\nexec sleep 60\n")
    script.chmod(0o755)

    with pytest.raises(Unavailable, match="has not made a jail within 0 s"):
        await Jail.start(replace(find_ground(), bwrap=script, drop=False), (PYTHON,), LIMITS)


async def test_code_that_computes_while_its_tool_works_is_stopped_too():
    source = """
import threading
def burn():
    while True:
        pass
def main():
    threading.Thread(target=burn, daemon=True).start()
    f()
"""
    backend = BwrapBackend()
    cell = await Jail.start(backend.ground, (PYTHON, "-c", program(), '{"CPU": 60}'), LIMITS)
    session = JailedSession(cell, job(source), "cpython")
    assert await session.start() == ToolRequest("f", {})
    await asyncio.wait_for(cell.process.wait(), 60)

    assert await session.answer(ToolReply()) == Exceeded("cpu_s")
    await session.close()


async def test_without_bubblewrap_monty_runs_only_where_the_operator_allows_it(monkeypatch: pytest.MonkeyPatch):
    def nothing(*_: object, **__: object) -> None:
        return None

    monkeypatch.setattr(jail.shutil, "which", nothing)

    with pytest.raises(Unavailable, match=r"bubblewrap is not installed.*TOOLCRIB_SANDBOX_ALLOW_UNJAILED"):
        await MontyBackend().open(job("def main():\n    return 1\n"), "monty")
    session = await MontyBackend(allow_unjailed=True).open(job("def main():\n    return 1\n"), "monty")
    turn = await session.start()
    await session.close()
    assert turn == Returned(1)


async def test_without_gvisor_it_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch):
    from toolcrib.infrastructure.sandbox import gvisor

    monkeypatch.setattr(gvisor, "find_cgroups", lambda: None)
    with pytest.raises(Unavailable, match="needs control groups"):
        await GvisorBackend().open(job(""), "cpython")

    def nothing(*_: object, **__: object) -> None:
        return None

    monkeypatch.setattr(gvisor.shutil, "which", nothing)
    with pytest.raises(Unavailable, match="gVisor is not installed"):
        await GvisorBackend().open(job(""), "cpython")


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("def main():\n    return g\n", Failed("NameError", "name 'g' is not defined", 2)),
        ("def main():\n    return g(x=1)\n", Failed("NameError", "name 'g' is not defined", 2)),
        ("def main():\n    return f(1)\n", Failed("TypeError", "f() takes its arguments by name only", 2)),
        ("def main():\n    return f(x={1})\n", Failed("TypeError", "the arguments of f() are not JSON", 2)),
    ],
)
async def test_what_monty_code_wants_from_outside_and_does_not_get(source: str, expected: Failed):
    session = MontySession(await MontyProcess.start(None, LIMITS), job(source))
    turn = await session.start()
    await session.close()

    assert turn == expected


async def test_monty_code_goes_on_with_what_it_is_answered():
    source = "def main():\n    try:\n        f(x=1)\n    except RuntimeError as e:\n        return [str(e), f(x=[2])]\n"
    session = MontySession(await MontyProcess.start(None, LIMITS), job(source))

    assert await session.start() == ToolRequest("f", {"x": 1})
    assert await session.answer(ToolReply(failure="no")) == ToolRequest("f", {"x": [2]})
    assert await session.answer(ToolReply({"y": None})) == Returned(["no", {"y": None}])
    await session.close()


async def test_prints_before_a_question_are_there_when_it_is_asked():
    session = await BwrapBackend().open(job("def main():\n    print('a')\n    f()\n    print('b')\n"), "cpython")
    assert isinstance(session, JailedSession)
    assert await session.start() == ToolRequest("f", {})
    assert await session.answer(ToolReply()) == Returned(None)
    await session.close()

    assert session.used.printed == "a\nb\n"


def test_an_interpreter_that_others_may_not_read_is_not_public(tmp_path: Path):
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "python3.99"
    program.touch(mode=0o700)

    assert not Interpreter(tmp_path, 99).is_public

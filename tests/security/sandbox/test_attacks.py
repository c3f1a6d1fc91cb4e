"""Code that attacks, in every sandbox that this machine has: nothing gets through, everything ends, nothing stays."""

import asyncio
import json
import resource
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.security.sandbox.attacks import OUTSIDE, PROCESS
from tests.security.sandbox.walks import JAVASCRIPT, LANGUAGE
from tests.security.sandbox.witness import SECRET, Witness, left_behind, witnessed
from toolcrib.contracts import JsonObject, SandboxLimits
from toolcrib.infrastructure.sandbox import (
    Backend,
    BwrapBackend,
    CodeJob,
    Dialect,
    Exceeded,
    Failed,
    GvisorBackend,
    MontyBackend,
    Returned,
    ToolReply,
    ToolRequest,
    Turn,
    Used,
    machine_sandbox,
)

LIMITS = SandboxLimits(wall_s=2.0, cpu_s=1.0, memory_mb=64, processes=16, disk_mb=8, output_kb=64)
PYTHON: tuple[Dialect, ...] = ("cpython", "monty", "restricted")
ATTACKS = PROCESS | OUTSIDE | LANGUAGE
OF_THE_GUEST = (
    "other_families",
    "system_calls",
    "new_user_namespace",
    "become_root",
    "devices",
    "calls_of_another_processor",
)
"""What gVisor's own kernel grants, of its own: only the witness outside can tell whether that is harmless."""

pytestmark = pytest.mark.requirement("sandbox.attacks")


@pytest.fixture(scope="module")
def witness(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Witness]:
    with witnessed(tmp_path_factory.mktemp("outside")) as found:
        yield found


def backend_of(dialect: Dialect) -> Backend:
    return MontyBackend() if dialect == "monty" else BwrapBackend()


async def run(
    source: str,
    dialect: Dialect,
    arguments: JsonObject,
    *,
    backend: Backend | None = None,
    limits: SandboxLimits = LIMITS,
) -> tuple[Turn, Used]:
    """Run a program to its end; what it asks for is refused."""
    session = await (backend or backend_of(dialect)).open(job(source, arguments, limits), dialect)
    try:
        turn = await session.start()
        while isinstance(turn, ToolRequest):
            turn = await session.answer(ToolReply(failure="DENIED: no"))
    finally:
        await session.close()
    return turn, session.used


def job(source: str, arguments: JsonObject, limits: SandboxLimits) -> CodeJob:
    return CodeJob(source, arguments, datetime(2026, 1, 1, tzinfo=UTC), seed="7", limits=limits)


def got_through(turn: Turn) -> object:
    """What an attack has brought, or null."""
    match turn:
        case Returned(list()):
            return [found for found in turn.output if found] or None
        case Returned():
            return turn
        case Failed():
            return turn if SECRET in turn.message else None
        case Exceeded() | ToolRequest():
            return None


@pytest.fixture(autouse=True)
async def outside(witness: Witness) -> AsyncIterator[None]:
    """Whatever happens inside, the outside is what it was."""
    yield
    assert witness.is_untouched()
    assert left_behind() == []


@pytest.mark.parametrize("dialect", PYTHON)
@pytest.mark.parametrize("name", ATTACKS)
async def test_an_attack_in_python_gets_nothing_and_ends_within_its_quotas(
    name: str, dialect: Dialect, witness: Witness
):
    turn, used = await run(ATTACKS[name], dialect, witness.known)

    assert got_through(turn) is None
    assert used.memory_peak_mb is None or used.memory_peak_mb <= LIMITS.memory_mb
    assert SECRET not in used.printed


@pytest.mark.parametrize("name", PROCESS | OUTSIDE)
async def test_an_attack_under_gvisor_gets_nothing_and_ends_within_its_quotas(name: str, witness: Witness):
    turn, used = await run(ATTACKS[name], "cpython", witness.known, backend=GvisorBackend())

    assert got_through(turn) is None or name in OF_THE_GUEST
    assert SECRET not in used.printed


@pytest.mark.parametrize(
    "name", ["read_the_secret", "tcp_to_the_host", "abstract_socket", "eval_source", "traceback_frame"]
)
def test_the_same_attack_without_a_sandbox_gets_through(name: str, tmp_path: Path):
    with witnessed(tmp_path) as witness:
        program = f"import json, sys\n{ATTACKS[name]}\nprint(main(**json.loads(sys.argv[1])))"
        ran = subprocess.run(
            [sys.executable, "-c", program, json.dumps(witness.known)], capture_output=True, text=True, check=True
        )

    assert "connected" in ran.stdout or SECRET in ran.stdout


@pytest.mark.parametrize("name", JAVASCRIPT)
async def test_an_attack_in_javascript_gets_nothing_and_ends_within_its_quotas(name: str, witness: Witness):
    turn, used = await run(JAVASCRIPT[name], "quickjs", {"k": witness.known})

    assert got_through(turn) is None
    assert used.memory_peak_mb is None or used.memory_peak_mb <= LIMITS.memory_mb


@pytest.mark.parametrize(
    ("name", "quota"),
    [
        ("endless_loop", "cpu_s"),
        ("loops_in_many", "cpu_s"),
        ("ignores_the_signal", "cpu_s"),
        ("sleep", "wall_s"),
        ("huge_allocation", "memory_mb"),
        ("stdout_flood", "output_kb"),
        ("stderr_flood", "output_kb"),
    ],
)
async def test_code_that_takes_too_much_is_stopped_at_the_quota_that_it_meets(name: str, quota: str, witness: Witness):
    patient = LIMITS.model_copy(update={"wall_s": 2.0 if quota == "wall_s" else 40.0})  # the machine may be busy

    turn, _ = await run(PROCESS[name], "cpython", witness.known, limits=patient)

    assert turn == Exceeded(quota)  # pyright: ignore[reportArgumentType] - one of the table above


@pytest.mark.parametrize("dialect", PYTHON)
async def test_code_that_does_no_harm_runs(dialect: Dialect):
    turn, used = await run("def main(a):\n    print('here')\n    return {'sum': a + 1}\n", dialect, {"a": 1})

    assert turn == Returned({"sum": 2})
    assert used.printed == "here\n"


async def test_javascript_that_does_no_harm_runs():
    turn, used = await run("function main({a}) { console.log('here'); return {sum: a + 1} }", "quickjs", {"a": 1})

    assert turn == Returned({"sum": 2})
    assert used.printed == "here\n"


async def test_a_whole_python_has_its_library_files_threads_and_processes():
    source = """
import os, sqlite3, statistics, subprocess, sys, threading
def main():
    open('/tmp/file', 'w').write('kept')
    found = []
    thread = threading.Thread(target=found.append, args=(1,))
    thread.start()
    thread.join()
    child = os.fork()
    if child == 0:
        os._exit(3)
    return [open('/work/file').read(), found, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]),
            statistics.median([1, 2, 9]), sqlite3.connect(':memory:').execute('select 1').fetchone()]
"""

    turn, _ = await run(source, "cpython", {})

    assert turn == Returned(["kept", [1], 3, 2, [1]])


async def test_jails_at_the_same_time_see_nothing_of_each_other():
    source = """
import os, time
def main(name):
    open('/work/' + name, 'w').write(name)
    time.sleep(0.3)
    return [sorted(os.listdir('/work')), len([p for p in os.listdir('/proc') if p.isdigit()])]
"""

    ends = await asyncio.gather(*(run(source, "cpython", {"name": name}) for name in ("a", "b", "c")))

    assert [turn for turn, _ in ends] == [Returned([[name], 2]) for name in ("a", "b", "c")]


async def test_a_flood_of_output_does_not_fill_this_process(witness: Witness):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    await asyncio.gather(*(run(PROCESS["stderr_flood"], "cpython", witness.known) for _ in range(4)))

    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 32 * 1024


async def test_an_execution_that_is_given_up_in_the_middle_leaves_nothing():
    backend = BwrapBackend()
    session = await backend.open(job(PROCESS["sleep"], {}, LIMITS), "cpython")
    working = asyncio.create_task(session.start())
    await asyncio.wait({working}, timeout=0.2)

    working.cancel()
    await asyncio.wait({working})
    await session.close()
    await session.close()

    assert left_behind() == []


async def test_jails_that_are_kept_ready_are_used_once_and_ended_with_the_sandbox():
    sandbox = machine_sandbox(warm=1)
    source = (
        "import os\ndef main():\n    found = os.listdir('/work')\n    open('/work/x', 'w').close()\n    return found\n"
    )
    for _ in range(3):
        session = await sandbox.open(replace(job(source, {}, SandboxLimits()), interpreter="cpython"), "namespace")
        turn = await session.start()
        await session.close()

        assert turn == Returned([])
    await sandbox.close()

    assert left_behind() == []

"""The gate of costs: counts of fixed work, what is recorded of them, and what no commit may do to that."""

import asyncio
import secrets
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from benchmarks.costs import counting, gate
from benchmarks.costs.__main__ import check, in_own_process, is_counted_here
from benchmarks.costs.counting import CannotCountError, Counts, count, deterministic
from benchmarks.costs.gate import Cost, RefusedError, Version, history_problems, problems, recorded
from benchmarks.costs.network import CountingLoop, StuckError
from benchmarks.costs.where import CallTree, module_of, package_of, tables

NAME = "agent run, memory: calls"
KEPT = {NAME: Cost(1000, 1020, "first count")}


@pytest.fixture
def loop(monkeypatch: pytest.MonkeyPatch) -> Iterator[CountingLoop]:
    """A loop of counts in this process, which coverage may watch."""
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    monkeypatch.setattr(counting, "_watched", lambda: False)
    with deterministic({}) as loop:
        yield loop


# The costs of this commit ---------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.requirement("benchmarks.costs", "benchmarks.costs_history")
@pytest.mark.skipif(not is_counted_here(), reason="the costs are those of Python 3.11")
def test_every_cost_is_as_recorded():
    assert check() == []


# What is refused ------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("benchmarks.costs_gate")
@pytest.mark.parametrize("value", [990, 1000, 1010])
def test_a_count_within_a_hundredth_of_the_recorded_one_stands(value: float):
    assert list(problems(KEPT, {NAME: value})) == []
    assert recorded(KEPT, {NAME: value})[NAME].last == min(value, 1000)  # many small growths do not add up


@pytest.mark.requirement("benchmarks.costs_gate")
@pytest.mark.parametrize(
    ("counts", "message"),
    [
        (
            {NAME: 1015},
            (
                f"{NAME}: 1015 counted, 1.5% above the last value 1000; the ceiling is 1020. Make it cheaper, or "
                'record it with the reason in the same commit: python -m benchmarks.costs record --reason "..."'
            ),
        ),
        (
            {NAME: 1021},
            (
                f"{NAME}: 1021 counted, 2.1% above the last value 1000; the ceiling is 1020. No commit may exceed or "
                "raise a ceiling: make it cheaper. To see what it calls: python -m benchmarks.costs where "
                '"agent run, memory"'
            ),
        ),
        (
            {NAME: 900},
            (
                f"{NAME}: 900 counted, 10.0% below the last value 1000; the ceiling is 1020. Record the saving in the "
                "same commit, so that it is not lost again: python -m benchmarks.costs record"
            ),
        ),
        ({}, f"{NAME}: recorded, but no longer counted; count it again: what is not counted grows unseen"),
        (
            {NAME: 1000, "new: calls": 7},
            "new: calls: 7 counted, and nothing is recorded; run: python -m benchmarks.costs record",
        ),
    ],
)
def test_a_count_that_does_not_stand_is_told_with_the_next_step(counts: dict[str, float], message: str):
    assert list(problems(KEPT, counts)) == [message]


@pytest.mark.requirement("benchmarks.costs_gate")
def test_one_thread_job_more_is_a_growth_and_above_a_first_ceiling():
    kept = recorded({}, {"a: thread_jobs": 0.0, "b: thread_jobs": 5.0})
    assert {name: cost.ceiling for name, cost in kept.items()} == {"a: thread_jobs": 0.0, "b: thread_jobs": 5.0}
    assert len(list(problems(kept, {"a: thread_jobs": 1.0, "b: thread_jobs": 6.0}))) == 2


@pytest.mark.requirement("benchmarks.costs_gate")
def test_a_growth_is_recorded_with_its_reason_only_and_never_above_the_ceiling():
    with pytest.raises(RefusedError, match=f'{NAME}: 1015 is 1.5% above 1000; say why: --reason "..."'):
        recorded(KEPT, {NAME: 1015})
    assert recorded(KEPT, {NAME: 1015}, "each call is signed") == {NAME: Cost(1015, 1020, "each call is signed")}
    with pytest.raises(RefusedError, match="1021 is above the ceiling 1020, which no commit may raise"):
        recorded(KEPT, {NAME: 1021}, "each call is signed")
    with pytest.raises(RefusedError, match=f"no longer counted: {NAME}"):
        recorded(KEPT, {})


@pytest.mark.requirement("benchmarks.costs_gate")
def test_a_ceiling_is_lowered_with_what_was_saved_and_never_raised():
    saved = recorded(KEPT, {NAME: 500}, lower_ceilings=True)
    assert saved == {NAME: Cost(500, 600, "first count")}
    assert recorded(KEPT, {NAME: 1000}, lower_ceilings=True) == KEPT


@pytest.mark.requirement("benchmarks.costs_gate")
def test_the_file_is_read_as_it_was_written_and_a_malformed_one_is_told():
    assert gate.read(gate.write(KEPT)) == KEPT
    assert gate.write(KEPT).count("\n") == 3  # a line for each cost
    for text in ("", "{}", '{"costs": {"a": {"last": 1}}}', '{"costs": []}'):
        with pytest.raises(ValueError, match=r"costs\.json is malformed: .*; restore it from the last commit"):
            gate.read(text)


# History --------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("benchmarks.costs_history")
def test_a_ceiling_above_any_earlier_one_is_refused():
    versions = [Version("b2", {NAME: Cost(500, 600, "first count")}), Version("a1", KEPT)]

    assert list(history_problems(KEPT, KEPT, iter(versions))) == [
        f"{NAME}: the ceiling is 1020, and was 600 in commit b2; set it back"
    ]
    assert list(history_problems({}, KEPT, iter(versions))) == [
        f"{NAME}: gone, but commit b2 has a ceiling for it, 600; count it again"
    ]
    assert list(history_problems({NAME: Cost(500, 510, "first count")}, KEPT, iter(versions))) == []


@pytest.mark.requirement("benchmarks.costs_history")
def test_a_growth_needs_a_new_reason():
    grown = {NAME: Cost(1015, 1020, "first count")}

    assert list(history_problems(grown, KEPT, iter([]))) == [
        f"{NAME}: the last value grew from 1000 to 1015 without a new reason; say why"
    ]
    assert list(history_problems({NAME: Cost(1015, 1020, "signed")}, KEPT, iter([]))) == []
    assert list(history_problems(grown, None, iter([]))) == []


@pytest.mark.requirement("benchmarks.costs_history")
@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")
def test_the_history_is_read_from_git_and_may_be_missing(tmp_path: Path):
    file = tmp_path / "inside" / "costs.json"
    file.parent.mkdir()
    file.write_text(gate.write(KEPT))
    assert gate.committed(file) == (None, [])

    def git(*arguments: str) -> None:
        author = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", *author, "-C", tmp_path, *arguments], check=True, capture_output=True)

    git("init")
    git("add", ".")
    git("commit", "-m", "one")
    before, versions = gate.committed(file)
    assert (before, [version.ledger for version in versions]) == (None, [KEPT])

    lower = {NAME: Cost(900, 1000, "first count")}
    file.write_text(gate.write(lower))
    assert gate.committed(file)[0] == KEPT  # not committed: against the last commit
    git("commit", "-am", "two")
    before, versions = gate.committed(file)
    assert (before, [version.ledger for version in versions]) == (KEPT, [lower, KEPT])

    shallow = tmp_path / "shallow"
    git("clone", "--depth", "1", tmp_path.as_uri(), str(shallow))
    before, versions = gate.committed(shallow / "inside" / "costs.json")
    assert (before, [version.ledger for version in versions]) == (None, [lower])


# Counting -------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("benchmarks.costs")
def test_each_call_allocation_and_thread_job_counts(loop: CountingLoop):
    async def small() -> None:
        [object() for _ in range(10)]

    async def large() -> None:
        kept = [object() for _ in range(60)]
        for _ in range(7):
            len(kept)
        loop.run_at_once(sum, ())

    async def both() -> tuple[Counts, Counts]:
        return await count(small), await count(large)

    few, many = loop.run_until_complete(both())
    assert many.thread_jobs - few.thread_jobs == 1
    assert 8 <= many.calls - few.calls < 30
    assert 50 <= many.allocations - few.allocations < 150  # a tracer of this process adds some
    assert many.beyond(few, 10).thread_jobs == 0.1


@pytest.mark.requirement("benchmarks.costs")
def test_time_jumps_threads_run_at_once_and_chance_is_fixed(loop: CountingLoop):
    async def pass_time() -> list[object]:
        started = loop.time()
        await asyncio.sleep(3600)
        with ThreadPoolExecutor(1) as pool:
            failed = pool.submit(int, "x")
        ran_in = await asyncio.to_thread(threading.current_thread)
        return [loop.time() - started, type(failed.exception()), ran_in is threading.current_thread()]

    assert loop.run_until_complete(pass_time()) == [3600, ValueError, True]
    assert secrets.token_hex(4) == "cd072cd8"
    assert loop.thread_jobs == 2


@pytest.mark.requirement("benchmarks.costs_chance")
def test_what_waits_for_ever_is_told(loop: CountingLoop):
    with pytest.raises(StuckError, match="everything waits, and no timer is left; does the work use a thread"):
        loop.run_until_complete(asyncio.Event().wait())


@pytest.mark.requirement("benchmarks.costs_chance")
def test_a_thread_and_another_loop_are_refused(loop: CountingLoop):
    over = threading.Event()
    threads: list[threading.Thread] = []

    async def start() -> None:
        threads.append(threading.Thread(target=over.wait, name="by-chance"))
        threads[-1].start()

    try:
        with pytest.raises(CannotCountError, match=r"has started a thread, so its counts would depend on .*by-chance"):
            loop.run_until_complete(count(start, 1))
    finally:
        over.set()
        for thread in threads:
            thread.join()
    with pytest.raises(CannotCountError, match="in a CountingLoop only"):
        asyncio.run(count(start, 1))


@pytest.mark.requirement("benchmarks.costs_chance")
def test_a_process_that_is_watched_or_has_an_unknown_seed_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("PYTHONHASHSEED", raising=False)
    with pytest.raises(CannotCountError, match="PYTHONHASHSEED is not 0"), deterministic({}):
        pass
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    monkeypatch.setattr(sys, "gettrace", lambda: print)
    with pytest.raises(CannotCountError, match="coverage, a profiler or a debugger is active"), deterministic({}):
        pass


@pytest.mark.requirement("benchmarks.costs_chance")
def test_without_a_compiler_and_with_a_failing_process_one_line_says_so(monkeypatch: pytest.MonkeyPatch):
    counting.built_counter.cache_clear()
    monkeypatch.setattr(shutil, "which", dict[str, str]().get)
    with pytest.raises(CannotCountError, match="there is no C compiler, cc or gcc"):
        counting.AllocationCounter()
    with pytest.raises(CannotCountError, match=r"the costs could not be counted: .*there is no work 'none'"):
        in_own_process("follow", "none")


# Where ----------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("benchmarks.costs")
def test_the_calls_of_a_work_are_told_by_package_module_and_function():
    tree = CallTree()
    before = sys.getprofile()

    async def inner() -> None:
        await asyncio.sleep(0)
        "".islower()

    async def outer() -> None:
        for _ in range(3):
            await inner()

    try:
        asyncio.run(tree.follow(outer, 2))
    finally:
        sys.setprofile(before)
    by_name = {code.co_name: tally for code, tally in tree.functions.items()}
    assert by_name["inner"].calls == 12  # six, and each goes on once
    assert by_name["inner"].own == 18
    assert by_name["outer"].below > by_name["inner"].below >= 18
    shown = tables(tree, 2, 30)
    assert "test_costs.py test_the_calls" in shown
    assert "| str.islower | 3.0 |" in shown


@pytest.mark.requirement("benchmarks.costs")
@pytest.mark.parametrize(
    ("file", "module", "package"),
    [
        ("/a/src/toolcrib/core/runs/journal/log.py", "toolcrib/core/runs/journal/log.py", "toolcrib/core/runs"),
        ("/a/src/toolcrib/crib/crib.py", "toolcrib/crib/crib.py", "toolcrib/crib"),
        ("/a/.venv/lib/python3.11/site-packages/aiohttp/client.py", "aiohttp", "aiohttp"),
        (asyncio.__file__, "asyncio", "asyncio"),
        ("<string>", "<string>", "<string>"),
    ],
)
def test_modules_are_named_as_in_the_source(file: str, module: str, package: str):
    assert module_of(file) == module
    assert package_of(module) == package

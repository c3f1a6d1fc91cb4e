"""The queue in front of the committing thread, with commits that only note what they were given."""

import asyncio
import gc
import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from toolcrib.contracts import Conflict, Unavailable
from toolcrib.infrastructure.store.database.committer import Job, Writer, WriterThread


class Committer:
    """Commits that note the results of their jobs, and wait at a gate that is open unless a test closes it."""

    def __init__(self) -> None:
        self.commits: list[list[Any]] = []
        self.gate = threading.Event()
        self.gate.set()
        self.broken = False

    def __call__(self, jobs: Sequence[Job[Any]]) -> None:
        self.gate.wait()
        if self.broken:
            msg = "disk full"
            raise Unavailable(msg)
        for job in jobs:
            try:
                job.result = job.work(None)
            except Conflict as error:
                job.error = error
        self.commits.append([job.result for job in jobs])


@pytest.fixture
def committer() -> Committer:
    return Committer()


@pytest.fixture
def thread(committer: Committer) -> Generator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as executor:
        yield executor
        committer.gate.set()


@pytest.fixture
async def writer(committer: Committer, thread: ThreadPoolExecutor) -> Writer:
    return Writer(committer, thread)


def result(value: Any) -> Callable[[object], Any]:
    return lambda _: value


def refuse(text: str) -> Callable[[object], None]:
    def work(_: object) -> None:
        raise Conflict(text)

    return work


@pytest.mark.requirement("store.group_commit")
async def test_what_is_queued_is_committed_together_and_in_order(writer: Writer, committer: Committer):
    jobs = [writer.put(result(number)) for number in range(4)]

    assert await jobs[2] == 2
    assert committer.commits == [[0, 1, 2, 3]]
    assert [await job for job in jobs] == [0, 1, 2, 3]


@pytest.mark.requirement("store.group_commit")
async def test_tasks_that_are_ready_at_once_share_a_commit(writer: Writer, committer: Committer):
    async def run(name: str) -> None:
        await writer.put(result(f"{name}1"))
        await writer.put(result(f"{name}2"))

    await asyncio.gather(run("a"), run("b"), run("c"))

    assert committer.commits == [["a1", "b1", "c1"], ["a2", "b2", "c2"]]


class NotingPool(ThreadPoolExecutor):
    """Notes in which task each commit was begun; null for one that the loop has begun by itself."""

    def __init__(self) -> None:
        super().__init__(1)
        self.begun_in: list[asyncio.Task[Any] | None] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.begun_in.append(asyncio.current_task())
        return super().submit(fn, *args, **kwargs)


@pytest.mark.requirement("store.lone_commit")
async def test_a_lone_operation_waits_for_no_company(committer: Committer):
    with NotingPool() as pool:
        writer = Writer(committer, pool)
        assert await writer.put(result(1)) == 1
        assert await asyncio.gather(*(writer.put(result(number)) for number in (2, 3))) == [2, 3]

        assert pool.begun_in == [asyncio.current_task(), None]
        assert committer.commits == [[1], [2, 3]]


@pytest.mark.requirement("store.lone_commit")
async def test_commits_that_are_awaited_one_after_the_other_set_no_timer_each(
    writer: Writer, monkeypatch: pytest.MonkeyPatch
):
    loop = asyncio.get_running_loop()
    began, timers = loop.time(), list[float]()
    set_timer = loop.call_later

    def noted(delay: float, *arguments: Any, **named: Any) -> asyncio.TimerHandle:
        timers.append(delay)
        return set_timer(delay, *arguments, **named)

    monkeypatch.setattr(loop, "call_later", noted)
    for number in range(100):
        await writer.put(result(number))

    assert len(timers) <= 1 + 2 * (loop.time() - began) / 0.005  # one for each wait, and one for what is left of it


@pytest.mark.requirement("store.group_commit")
async def test_one_commit_is_in_flight_at_most_and_the_next_takes_all_that_came(writer: Writer, committer: Committer):
    committer.gate.clear()
    first = asyncio.ensure_future(writer.put(result(1)))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    second = [asyncio.ensure_future(writer.put(result(number))) for number in (2, 3)]
    await asyncio.sleep(0)
    committer.gate.set()

    assert await asyncio.gather(first, *second) == [1, 2, 3]
    assert committer.commits == [[1], [2, 3]]


@pytest.mark.requirement("store.group_commit")
async def test_what_nobody_awaits_is_committed_after_a_while(writer: Writer, committer: Committer):
    loop, done = asyncio.get_running_loop(), asyncio.Event()
    for _ in range(2):
        done.clear()
        writer.put(lambda _: loop.call_soon_threadsafe(done.set) and None)
        await done.wait()

    await writer.drain()
    assert committer.commits == [[None], [None]]


@pytest.mark.requirement("store.group_commit")
async def test_what_lingers_behind_a_commit_is_committed_after_it(writer: Writer, committer: Committer):
    loop, done = asyncio.get_running_loop(), asyncio.Event()
    committer.gate.clear()
    first = asyncio.ensure_future(writer.put(result(1)))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    writer.put(lambda _: loop.call_soon_threadsafe(done.set) and None)
    committer.gate.set()

    assert await first == 1
    await done.wait()
    await writer.drain()
    assert committer.commits == [[1], [None]]


@pytest.mark.requirement("store.group_commit")
async def test_draining_waits_for_all_and_raises_nothing(writer: Writer, committer: Committer):
    writer.put(result(1))
    writer.put(refuse("no"))
    await writer.drain()
    await writer.drain()

    assert committer.commits == [[1, None]]


@pytest.mark.requirement("store.group_commit")
async def test_a_task_that_stops_waiting_does_not_stop_the_commit(writer: Writer, committer: Committer):
    committer.gate.clear()
    job = writer.put(result(1))
    task = asyncio.ensure_future(job)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    committer.gate.set()

    assert await job == 1


@pytest.mark.requirement("store.unheard_failures")
async def test_a_failure_that_nobody_heard_is_raised_by_the_next_of_its_chain_once(
    writer: Writer, committer: Committer, caplog: pytest.LogCaptureFixture
):
    writer.put(refuse("first"), "r1")
    writer.put(refuse("second"), "r1")
    await writer.drain()
    gc.collect()

    assert await writer.put(result(1), "r2") == 1
    with pytest.raises(Conflict, match="first"):
        await writer.put(result(2), "r1")
    assert await writer.put(result(3), "r1") == 3
    assert committer.commits == [[None, None], [1], [3]]
    assert caplog.records == []


@pytest.mark.requirement("store.unheard_failures")
async def test_a_failure_that_was_heard_late_is_not_raised_again(writer: Writer):
    job = writer.put(refuse("no"), "r1")
    await writer.drain()

    with pytest.raises(Conflict, match="no"):
        await job
    assert await writer.put(result(1), "r1") == 1


@pytest.mark.requirement("store.unheard_failures")
async def test_a_failure_that_somebody_awaits_breaks_no_chain(writer: Writer):
    refused = asyncio.ensure_future(writer.put(refuse("no"), "r1"))
    await writer.drain()

    assert await writer.put(result(1), "r1") == 1
    with pytest.raises(Conflict, match="no"):
        await refused


@pytest.mark.requirement("store.unheard_failures")
async def test_a_failure_is_kept_when_those_who_awaited_it_are_gone(writer: Writer, committer: Committer):
    committer.gate.clear()
    task = asyncio.ensure_future(writer.put(refuse("no"), "r1"))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    committer.gate.set()
    await writer.drain()

    with pytest.raises(Conflict, match="no"):
        await writer.put(result(1), "r1")


@pytest.mark.requirement("store.unheard_failures")
async def test_a_commit_that_fails_as_a_whole_fails_each_of_its_jobs(writer: Writer, committer: Committer):
    committer.broken = True
    jobs = [writer.put(result(number)) for number in (1, 2)]

    for job in jobs:
        with pytest.raises(Unavailable, match="disk full"):
            await job
    committer.broken = False
    assert await writer.put(result(3)) == 3


@pytest.mark.requirement("store.writer_thread")
async def test_the_thread_of_commits_tells_what_comes_of_each():
    thread, heard, order = WriterThread("writer"), SimpleQueue[BaseException | None](), list[int]()

    def work(number: int) -> None:
        order.append(number)
        if number == 1:
            raise KeyboardInterrupt

    for number in range(3):
        thread.submit(work, number).add_done_callback(lambda handed: heard.put(handed.exception()))
    found = [await asyncio.to_thread(heard.get) for _ in range(3)]
    thread.shutdown()
    thread.shutdown()

    assert order == [0, 1, 2]
    assert [type(error) for error in found] == [type(None), KeyboardInterrupt, type(None)]
    assert not [each for each in threading.enumerate() if each.name == "writer"]


@pytest.mark.requirement("store.writer_thread")
def test_the_thread_of_commits_ends_with_whoever_has_it_and_after_what_it_has_begun(tmp_path: Path):
    held, begun = threading.Event(), threading.Event()
    thread = WriterThread("forgotten")
    thread.submit(lambda: (begun.set(), held.wait())).add_done_callback(lambda _: None)
    begun.wait()
    held.set()
    del thread
    gc.collect()
    program = (
        "import sys, time; from pathlib import Path\n"
        "from toolcrib.infrastructure.store.database.committer import WriterThread\n"
        "thread = WriterThread('writer')\n"
        "thread.submit(lambda: (time.sleep(0.2), Path(sys.argv[1]).touch())).add_done_callback(lambda _: None)\n"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "done")], check=True, timeout=60)

    assert not [each for each in threading.enumerate() if each.name == "forgotten"]
    assert (tmp_path / "done").exists()

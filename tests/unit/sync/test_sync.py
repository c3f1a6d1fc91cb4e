"""The synchronous crib, from scripts, threads, notebooks and tools."""

import asyncio
import gc
import inspect
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from textwrap import dedent
from typing import Any, cast

import pytest
from pydantic import BaseModel

import toolcrib
from toolcrib import CompositeRoute, ScriptedModel, tool
from toolcrib.contracts import Conflict, NotFound, Principal, ToolOutput
from toolcrib.crib.api.acting import ActingCrib as AsynchronousActingCrib
from toolcrib.sync import Crib
from toolcrib.sync.event_loop import EventLoopThread
from toolcrib.testing import FrozenClock, calls
from tools import sync_facade

WAIT_S = 30


@tool(side_effects="none")
def double(n: int) -> int:
    """Twice the number."""
    return 2 * n


def memory(**models: Any) -> Crib:
    return Crib("memory://", models={f"scripted:{name}": model for name, model in models.items()})


@pytest.mark.requirement("sync.facade")
def test_a_script_defines_calls_and_asks(tmp_path: Path):
    with Crib(f"sqlite:///{tmp_path}/crib.db", models={"scripted:m": ScriptedModel(["Two deals."])}) as crib:
        crib.add(double)
        desk = crib.agent("desk", model="scripted:m")
        assert crib.call("double", n=4).output == 8
        assert crib.invoke(double, {"n": 5}).output == 10
        answer = desk("Which deals?")
        assert answer.output == "Two deals."
        assert desk.definition.name == "desk"
        assert crib.trace(answer.run_id).status == "completed"
        assert crib.agents.get("desk").name == "desk"

    with Crib(f"sqlite:///{tmp_path}/crib.db") as again:
        assert [found.name for found in again.listing.page().items] == ["desk", "double"]


class Order(BaseModel):
    item: str
    count: int


@pytest.mark.requirement("sync.facade")
def test_an_agent_with_a_type_answers_with_an_instance_of_it():
    with memory(m=ScriptedModel(['{"item": "hat", "count": 2}'])) as crib:
        order = crib.agent("clerk", model="scripted:m", output_type=Order)("Two hats").unwrap()
    assert order.count + 1 == 3
    assert order == Order(item="hat", count=2)


@pytest.mark.requirement("sync.facade")
def test_a_handle_is_streamed_and_leaving_early_cancels_the_run():
    begun, go_on = threading.Event(), threading.Event()

    @tool(side_effects="none")
    def wait() -> str:
        """Wait."""
        begun.set()
        go_on.wait(WAIT_S)
        return "over"

    with memory(m=ScriptedModel(lambda request: calls("wait") if len(request.messages) == 1 else "Two deals.")) as crib:
        crib.add(wait)
        desk = crib.agent("desk", model="scripted:m", tools=[wait])
        go_on.set()
        with desk.stream("Which deals?") as stream:
            text = "".join(stream.text())
            result = stream.result()
        go_on.clear()
        begun.clear()
        with desk.stream("Which deals?") as left:
            for event in left:
                if event.type == "tool_call_start":
                    break
        go_on.set()
        ended = crib.executions.result(left.run_id)
    assert text.endswith("Two deals.")
    assert (result.output, result.run_id) == ("Two deals.", stream.run_id)
    assert ended.status == "cancelled"


@pytest.mark.requirement("sync.facade")
def test_streams_and_contexts_are_iterators_and_contexts():
    with memory(m=ScriptedModel(["One two three."])) as crib:

        @tool(side_effects="none")
        def letters() -> Iterator[str]:
            yield from "abc"

        crib.add(letters)
        run_id = crib.submit("letters", {})
        pieces = [event.text for _, event in crib.stream(run_id, drive=True) if isinstance(event, ToolOutput)]
        assert "".join(filter(None, pieces)) == "abc"

        for _ in crib.stream(run_id):
            break  # a stream that is left is closed
        with crib.shadow() as (shadow, _):
            shadow.save(double.definition)
        with pytest.raises(NotFound):
            crib.call("double", n=1)
        report = crib.rehearse(lambda other: other.save(double.definition))
        assert report.runs == ()


@pytest.mark.requirement("sync.facade")
def test_errors_and_principals_are_those_of_the_asynchronous_crib():
    with memory() as crib:
        crib.add(double)
        ann = crib.acting_as(Principal(id="ann", grants=("ai://tools/*/*",)))
        assert ann.principal.id == "ann"
        assert ann.invoke("double", {"n": 1}).output == 2
        with pytest.raises(NotFound, match="nothing"):
            crib.invoke("nothing", {})
        with pytest.raises(NotFound):
            next(iter(crib.stream("run_nothing")))


@pytest.mark.requirement("sync.facade")
def test_handles_are_called_and_passed_on_as_tools():
    routes = [CompositeRoute(id="all", tool="double", input={"n": "${input.n}"})]
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    with memory() as crib:
        crib.add(double)
        quadruple = crib.composite_tool("twofold", input_schema=schema, routes=routes)
        assert quadruple(n=2).output == 4
        assert crib.call(quadruple, n=3).output == 6
        move = crib.workflow("move", steps=[{"name": "first", "tool": "double", "input": {"n": 2}}])
        assert move().status == "completed"
        assert move.definition.name == "move"
        assert crib.instances.page().items[0].status == "completed"


@pytest.mark.requirement("sync.facade")
def test_settings_make_a_synchronous_crib(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TOOLCRIB_STORE", "memory://")
    with Crib.from_settings() as crib:
        crib.add(double)
        assert crib.call(double, n=1).output == 2


@pytest.mark.requirement("sync.threads")
def test_two_cribs_and_many_threads_at_once():
    with memory() as one, memory() as other, ThreadPoolExecutor(8) as threads:
        for crib in (one, other):
            crib.add(double)
        calls = [threads.submit(crib.call, "double", n=n) for n in range(40) for crib in (one, other)]
        assert [call.result(WAIT_S).output for call in calls] == [2 * n for n in range(40) for _ in range(2)]


@pytest.mark.requirement("sync.threads")
async def test_it_works_where_an_event_loop_runs_as_in_a_notebook():
    with memory() as crib:
        crib.add(double)
        assert crib.call("double", n=4).output == 8


@pytest.mark.requirement("sync.tools")
def test_tools_may_call_the_crib_however_deep_and_many():
    with memory() as crib:

        @tool(side_effects="none")
        def countdown(n: int) -> int:
            return 0 if n == 0 else 1 + crib.call("countdown", n=n - 1).output

        crib.add(countdown)
        with ThreadPoolExecutor(10) as threads:
            calls = [threads.submit(crib.call, "countdown", n=10) for _ in range(10)]
            assert [call.result(WAIT_S).output for call in calls] == [10] * 10


@pytest.mark.requirement("sync.refused")
def test_a_call_in_the_cribs_own_event_loop_is_refused_with_what_to_do():
    with memory() as crib:

        @tool(side_effects="none")
        async def waits_for_itself() -> int:
            return crib.call("double", n=1).output

        crib.add(double, waits_for_itself)
        result = crib.call("waits_for_itself")
        assert result.error is not None
        assert "called in its own event loop" in result.error.message
        assert "write the tool with `def`" in result.error.message


@pytest.mark.requirement("sync.refused")
def test_a_closed_crib_says_so():
    crib = memory()
    crib.add(double)
    crib.close()
    crib.close()
    with pytest.raises(Conflict, match="this crib is closed; make another one"):
        crib.call("double", n=1)
    with pytest.raises(Conflict, match="closed"):
        crib.stream("run")


@pytest.mark.requirement("sync.refused")
def test_a_fork_is_refused():
    context = multiprocessing.get_context("fork")
    with memory() as crib:
        reader, writer = context.Pipe()

        def child() -> None:
            try:
                crib.call("double", n=1)
            except Conflict as refused:
                writer.send(str(refused))
            os._exit(0)

        process = context.Process(target=child)
        process.start()
        assert reader.poll(WAIT_S)
        assert f"made in process {os.getpid()}, and is used in its fork {process.pid}" in reader.recv()
        process.join()


@pytest.mark.requirement("sync.ends")
def test_a_crib_that_fails_to_open_leaves_no_thread(tmp_path: Path):
    before = threading.active_count()
    (tmp_path / "crib.db").write_text("this is no database" * 100)
    with pytest.raises(Exception, match="database"), Crib(f"sqlite:///{tmp_path}/crib.db"):
        raise AssertionError
    gc.collect()
    assert threading.active_count() <= before


@pytest.mark.requirement("sync.ends")
def test_a_crib_that_is_collected_ends_its_thread():
    loop, closed = EventLoopThread(), threading.Event()
    thread = loop.call(threading.current_thread)

    async def close() -> None:
        closed.set()

    loop.closes(close)
    del loop
    gc.collect()
    thread.join(WAIT_S)
    assert closed.is_set()
    assert not thread.is_alive()


@pytest.mark.requirement("sync.ends")
def test_what_still_runs_is_cancelled_when_the_loop_ends():
    loop, begun = EventLoopThread(), threading.Event()

    async def wait() -> None:
        begun.set()
        await asyncio.Event().wait()

    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(loop.run, wait)
        assert begun.wait(WAIT_S)
        loop.close()
        with pytest.raises(Conflict, match="closed"):
            waiting.result(WAIT_S)


@pytest.mark.requirement("sync.ends")
def test_an_iteration_ends_with_its_loop_and_its_errors_are_raised():
    loop, closed = EventLoopThread(), threading.Event()

    async def count() -> AsyncGenerator[int]:
        try:
            yield 1
            yield 2
            await asyncio.Event().wait()
        finally:
            closed.set()

    async def fail() -> AsyncGenerator[int]:
        yield 1
        raise ValueError("no second")

    with pytest.raises(ValueError, match="no second"):
        list(loop.iterate(fail))
    left = loop.iterate(count)
    assert next(left) == 1
    del left
    gc.collect()
    assert closed.wait(WAIT_S)

    numbers = loop.iterate(count)
    assert [next(numbers), next(numbers)] == [1, 2]
    with ThreadPoolExecutor(1) as threads:
        third = threads.submit(lambda: next(numbers))
        loop.close()
        with pytest.raises(Conflict, match="closed"):
            third.result(WAIT_S)


@pytest.mark.requirement("sync.ends")
def test_a_loop_that_its_own_thread_lets_go_of_ends_without_waiting_for_itself():
    loops, closed = [EventLoopThread()], threading.Event()
    thread = loops[0].call(threading.current_thread)

    async def close() -> None:
        closed.set()

    loops[0].closes(close)
    own = loops[0]._loop  # pyright: ignore[reportPrivateUsage]

    def let_go() -> None:
        loops.clear()
        gc.collect()

    own.call_soon_threadsafe(let_go)
    assert closed.wait(WAIT_S)
    thread.join(WAIT_S)
    assert not thread.is_alive()


SCRIPT = """
    import sys, time
    from toolcrib import tool
    from toolcrib.sync import Crib

    @tool(side_effects="none")
    def slow(s: float) -> str:
        print("begun", flush=True)
        time.sleep(s)
        return "done"

    @tool(side_effects="none")
    async def endless() -> str:
        import asyncio
        try:
            print("begun", flush=True)
            await asyncio.Event().wait()
        finally:
            print("cancelled", flush=True)

    crib = Crib("sqlite:///crib.db")
    crib.add(slow, endless)
    closing = crib.asynchronous.close

    async def close():
        await closing()
        print("closed", flush=True)

    crib._loop._closers[:] = [close]
"""


def start(folder: Path, *lines: str) -> "subprocess.Popen[str]":
    script = folder / "script.py"
    script.write_text(dedent(SCRIPT) + "\n".join(lines))
    return subprocess.Popen([sys.executable, str(script)], stdout=-1, stderr=-1, text=True, cwd=folder)


@pytest.mark.requirement("sync.ends")
def test_a_program_that_ends_without_closing_ends_and_the_store_is_closed(tmp_path: Path):
    process = start(tmp_path, 'print(crib.call("slow", s=0).output)')
    out, err = process.communicate(timeout=WAIT_S)
    assert (out.split(), err, process.returncode) == (["begun", "done", "closed"], "", 0)
    assert not list(tmp_path.glob("crib.db-wal"))


@pytest.mark.requirement("sync.ends")
def test_an_interrupt_cancels_the_call_and_the_program_ends(tmp_path: Path):
    process = start(tmp_path, 'with crib:\n    crib.call("endless")')
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=WAIT_S)
    assert out.split() == ["cancelled", "closed"]
    assert err.rstrip().endswith("KeyboardInterrupt")
    assert process.returncode != 0


@pytest.mark.requirement("sync.ends")
def test_an_interrupted_stream_leaves_the_run_and_the_program_ends(tmp_path: Path):
    lines = 'with crib:\n    for _ in crib.stream(crib.submit("endless", {}), drive=True):\n        pass'
    process = start(tmp_path, lines)
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=WAIT_S)
    assert out.split() == ["cancelled", "closed"]
    assert err.rstrip().endswith("KeyboardInterrupt")


@pytest.mark.requirement("sync.complete")
def test_the_facade_is_as_its_generator_writes_it():
    old = [path for path, text in sync_facade.files().items() if path.read_text() != text]
    assert old == [], "run: python -m tools.sync_facade"


@pytest.mark.requirement("sync.complete")
def test_every_public_method_has_its_synchronous_form():
    with Crib("memory://", clock=FrozenClock()) as crib:
        pairs: list[tuple[Any, Any]] = [(crib, toolcrib.Crib), (crib.acting_as(crib.principal), AsynchronousActingCrib)]
        pairs += [(getattr(crib, name), type(getattr(crib.asynchronous, name))) for name in parts()]
        for facade, kind in pairs:
            made = cast("type[object]", type(facade))
            allowed = {name.partition(".")[2] for name in sync_facade.INTERNAL}
            assert public(kind) - public(made) <= allowed, made
            assert not any(inspect.iscoroutinefunction(getattr(made, name)) for name in public(made))


def parts() -> list[str]:
    return ["retention", *(name for name in vars(AsynchronousActingCrib) if not name.startswith("_") and is_part(name))]


def is_part(name: str) -> bool:
    return type(vars(AsynchronousActingCrib)[name]).__name__ == "cached_property"


def public(kind: type[object]) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}

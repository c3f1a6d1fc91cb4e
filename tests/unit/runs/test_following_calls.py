"""Following what tools yield: wherever a subscriber is cut off, it gets each piece once and in order."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.twins import make_definition
from tests.unit.runs.house import House, ask, settled
from tests.unit.runs.speaking import Subscriber
from toolcrib.contracts import ErrorCode, Json, Reason, RetryPolicy
from toolcrib.contracts.base.envelope import YIELDED
from toolcrib.contracts.runs.stream import ToolOutput, ToolProgress
from toolcrib.core.executor import CallFailed, Dispatch, Outcome, Progress, error
from toolcrib.core.runs import RunContext, StreamMessage
from toolcrib.core.runs.models.live import CallBuffer, TokenHub

PIECE_S = 0.03
WHOLE = [f"piece {number}, " for number in range(8)]


@dataclass
class Yielding:
    """A tool that yields slowly; its first attempts break off."""

    house: House = field(init=False)
    is_text: bool = True
    broken: list[int] = field(default_factory=list[int])
    """After how many pieces each of the first attempts fails."""
    progress: bool = False

    def __post_init__(self) -> None:
        self.house = House(self._script, self._run)

    async def _script(self, context: RunContext) -> Json:
        first, second = context.call(ask("t1.c1", "act")), context.call(ask("t1.c2", "act"))
        await context.wait_all([first, second])
        return (await first).output

    async def _run(self, dispatch: Dispatch) -> Outcome:
        most = self.broken.pop(0) if self.broken and dispatch.position == "t1.c1" else len(WHOLE) + 1
        with dispatch.context.journal.live_call(dispatch.position, dispatch.attempt) as live:
            for number, piece in enumerate(WHOLE):
                if number == most:
                    raise CallFailed(error(ErrorCode.NETWORK_ERROR, Reason.TOOL_FAILED, "cut"))
                (live.add_text if self.is_text else live.add_item)(piece)
                if self.progress:
                    live.report(Progress(number))
                await self.house.clock.sleep(PIECE_S)
        kind = "text" if self.is_text else "items"
        return Outcome("".join(WHOLE) if self.is_text else list(WHOLE), metadata={YIELDED: kind})

    async def begin(self) -> str:
        retry = RetryPolicy(count=3, base_s=0.1, max_s=1)
        await self.house.save(make_definition("act", side_effects="none", retry=retry))
        return await self.house.engine.create(await self.house.request())

    async def follow(self, run_id: str, *others: "asyncio.Task[Any]", at_a_time: int | None = None) -> Subscriber:
        subscriber = Subscriber(self.house, run_id)
        following = asyncio.create_task(subscriber.follow(at_a_time=at_a_time))
        await settled()
        driving = asyncio.create_task(self.house.engine.drive(run_id))
        await settled()
        for _ in range(2000):
            if all(task.done() for task in (following, driving, *others)):
                break
            await self.house.clock.pass_time(PIECE_S / 3)
        await following
        await driving
        return subscriber


def joined(messages: list[StreamMessage]) -> dict[str, str | list[Json]]:
    """What the pieces of each call add up to; each must follow on the one before."""
    found: dict[str, tuple[tuple[int, int], str | list[Json]]] = {}
    for _, event in messages:
        if isinstance(event, ToolOutput):
            empty: Any = "" if event.text is not None else []
            key, told = found.get(event.position, ((0, 0), empty))
            if (event.number, event.attempt) > key:
                told = empty
            assert (event.number, event.attempt) >= key
            assert event.offset == len(told)
            assert (event.text is None) != (event.items is None)
            found[event.position] = (event.number, event.attempt), told + (event.text or event.items)  # type: ignore[operator]
    return {position: told for position, (_, told) in found.items()}


@pytest.mark.requirement("live.outputs")
@pytest.mark.parametrize("is_text", [True, False])
async def test_pieces_come_as_they_are_yielded(is_text: bool):
    tool = Yielding(is_text=is_text)
    steady = await tool.follow(await tool.begin())

    whole = "".join(WHOLE) if is_text else WHOLE
    assert joined(steady.messages) == {"t1.c1": whole, "t1.c2": whole}
    pieces = [event for _, event in steady.messages if isinstance(event, ToolOutput)]
    assert len(pieces) == 2 * len(WHOLE)
    assert {event.call_id for event in pieces} == {
        event.call_id for _, event in steady.messages if event.type == "tool_call_start"
    }
    assert vars(tool.house.engine.live) == {"_runs": {}}


@pytest.mark.requirement("live.outputs", "live.re_attach")
@settings(deadline=None, max_examples=15)
@given(
    broken=st.lists(st.integers(0, len(WHOLE)), max_size=3),
    at_a_time=st.integers(1, 6),
    is_text=st.booleans(),
)
async def test_who_is_cut_off_anywhere_gets_each_piece_once(broken: list[int], at_a_time: int, is_text: bool):
    tool = Yielding(is_text=is_text, broken=broken)
    run_id = await tool.begin()
    often = Subscriber(tool.house, run_id)
    following = asyncio.create_task(often.follow(at_a_time=at_a_time))
    steady = await tool.follow(run_id, following)

    whole = "".join(WHOLE) if is_text else WHOLE
    assert joined(steady.messages) == joined(often.messages) == {"t1.c1": whole, "t1.c2": whole}
    for cut in range(1, len(steady.messages) + 1):
        late = Subscriber(tool.house, run_id, steady.messages[:cut])
        await late.follow()
        assert joined(late.messages) == joined(steady.messages), steady.messages[cut - 1].place


@pytest.mark.requirement("live.outputs", "live.other_process")
async def test_another_process_tells_the_output_in_one_piece():
    tool = Yielding()
    run_id = await tool.begin()
    await tool.follow(run_id)

    late = Subscriber(House(_never, other=tool.house, owner="other"), run_id)
    await late.follow()

    assert [event.type for _, event in late.messages] == [
        "tool_call_start", "tool_call_start", "tool_output", "tool_call_end", "tool_output", "tool_call_end", "done",
    ]  # fmt: skip
    assert set(joined(late.messages).values()) == {"".join(WHOLE)}


async def _never(_: RunContext) -> Json:
    raise AssertionError


@pytest.mark.requirement("live.outputs")
async def test_an_output_that_was_cut_to_another_form_is_not_told_as_pieces():
    house = House(_ask_once, lambda _: Outcome(["x" * 500], metadata={YIELDED: "items"}))
    await house.save(make_definition("act", side_effects="none", max_output_bytes=50))
    run_id = (await house.start()).result.run_id
    late = Subscriber(house, run_id)
    await late.follow()

    assert "tool_output" not in {event.type for _, event in late.messages}


async def _ask_once(context: RunContext) -> Json:
    return (await context.call(ask("t1.c1", "act"))).output


@pytest.mark.requirement("live.bounded")
async def test_the_last_progress_of_some_ended_calls_is_kept_while_somebody_follows():
    hub = TokenHub()
    with hub.watch("run"):
        for number in range(100):
            with hub.call("run", number, 1) as live:
                live.add_text("x")
                live.report(Progress(number))
        kept = hub.calls("run")
        assert len(kept) == 64
        assert all(not buffer.text for buffer in kept.values())
        assert not hub.active("run")
    assert vars(hub) == {"_runs": {}}
    assert not hub.calls("run")


@pytest.mark.requirement("live.bounded")
def test_a_thread_that_outlives_its_event_loop_may_go_on_yielding():
    async def open_buffer() -> CallBuffer:
        return CallBuffer(1, lambda: None)

    buffer = asyncio.run(open_buffer())
    buffer.add_text("late")
    assert buffer.text == "late"


@pytest.mark.requirement("runtimes.progress")
async def test_each_report_that_is_told_is_newer_than_the_one_before():
    tool = Yielding(progress=True)
    steady = await tool.follow(await tool.begin())

    told = [event.done for _, event in steady.messages if isinstance(event, ToolProgress) and event.position == "t1.c1"]
    assert told == sorted(set(told))
    assert told[-1] == len(WHOLE) - 1

"""Streams of handles: events, text, results, leaving early, and several at once."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from datetime import datetime
from decimal import Decimal

import pytest

from toolcrib import Crib, ScriptedModel, tool
from toolcrib.contracts import (
    ApprovalPending,
    Conflict,
    InvalidInput,
    ModelError,
    StreamDone,
    TextDelta,
    ToolCallEnd,
    ToolCallStart,
)
from toolcrib.llm import Cost, Event, Message, Request, Response, Text, TokenUsage, ToolCall
from toolcrib.testing import new_crib

pytestmark = pytest.mark.requirement("live.handles")
MODEL = "scripted:m"
CUT = ModelError("stream_cut", "the line is dead")


@tool(side_effects="reads")
async def find(text: str) -> str:
    """Finds."""
    return f"found {text}"


@tool(side_effects="writes", requires_confirmation=True)
async def pay() -> str:
    """Pays."""
    return "paid"


class CutModel:
    """Breaks its first attempts off after some pieces; then it may wait for a gate."""

    name = MODEL

    def __init__(self, answers: Sequence[str], cuts: int = 0, gate: asyncio.Event | None = None) -> None:
        self._answers, self._cuts, self._gate = list(answers), cuts, gate

    async def request(self, request: Request) -> Response:
        return await ScriptedModel([self._answers.pop(0)]).request(request)

    async def stream(self, request: Request) -> AsyncGenerator[Event]:
        answer, pieces = self._answers.pop(0), 0
        async for event in ScriptedModel([answer]).stream(request):
            if self._cuts and pieces == 2:
                self._cuts -= 1
                raise CUT
            yield event
            pieces += 1
            for _ in range(20):  # those who listen have their turn
                await asyncio.sleep(0)
            if self._gate is not None and pieces == 2:
                await self._gate.wait()

    def cost(self, usage: TokenUsage, at: datetime) -> Cost:
        return Cost(Decimal(0), "scripted")


def crib_with(*answers: Message | str) -> Crib:
    crib = new_crib(models={MODEL: ScriptedModel(answers)})
    crib.add(find, pay)
    return crib


CALL = Message("assistant", (Text("I look."), ToolCall("c1", "find", '{"text": "a"}')))


async def test_events_text_and_result_of_an_agent():
    async with crib_with(CALL, "It is a.") as crib:
        desk = crib.agent("desk", model=MODEL, tools=["find"])
        async with desk.stream("Which?") as stream:
            events = [event async for event in stream]
            result = await stream.result()
            later = [event async for event in stream]

    assert isinstance(events[-1], StreamDone)
    assert [type(event) for event in events if not isinstance(event, TextDelta)] == [
        ToolCallStart,
        ToolCallEnd,
        StreamDone,
    ]
    assert (result.output, result.run_id, later) == ("It is a.", stream.run_id, [])
    assert result.conversation_id is not None


@pytest.mark.requirement("live.iteration")
async def test_events_of_a_model_s_turn_have_its_number():
    async with crib_with(CALL, "It is a.") as crib:
        desk = crib.agent("desk", model=MODEL, tools=["find"])
        async with desk.stream("Which?") as stream:
            events = [event async for event in stream]

    shown = [event for event in events if isinstance(event, TextDelta | ToolCallStart | ToolCallEnd)]
    turns = {(type(event), event.iteration) for event in shown}
    assert turns == {(TextDelta, 1), (ToolCallStart, 1), (ToolCallEnd, 1), (TextDelta, 2)}


async def test_text_comes_in_pieces_and_as_a_whole():
    async with crib_with(CALL, "It is a.", CALL, "It is a.") as crib:
        desk = crib.agent("desk", model=MODEL, tools=["find"])
        async with desk.stream("Which?") as stream:
            pieces = [piece async for piece in stream.text()]
        async with desk.stream("Which?") as stream:
            wholes = [whole async for whole in stream.text(whole=True)]

    assert "".join(pieces) == "I look.\n\nIt is a."
    assert wholes[-1] == "It is a."


@pytest.mark.parametrize(("again", "told"), [("one two three four", "one two three four"), ("ten", None)])
async def test_text_of_a_failed_attempt_is_not_told_twice(again: str, told: str | None):
    model = CutModel(["one two three four", again], cuts=1)
    async with new_crib(models={MODEL: model}) as crib:
        desk = crib.agent("desk", model=MODEL)
        async with desk.stream("Count") as stream:
            pieces = [piece async for piece in stream.text()]
            result = await stream.result()

    text = "".join(pieces)
    assert result.output == again
    assert text == told if told else text.endswith("\n\nten")


async def test_leaving_early_cancels_the_run_and_another_stream_of_the_agent_goes_on():
    gate = asyncio.Event()
    async with new_crib(models={MODEL: CutModel(["one two three"] * 2, gate=gate)}) as crib:
        desk = crib.agent("desk", model=MODEL)
        async with desk.stream("Count") as left, desk.stream("Count") as kept:
            texts = kept.text()
            await anext(texts)
            third = desk.stream("Never followed")
            with pytest.raises(ZeroDivisionError):
                async with third:
                    raise ZeroDivisionError
            async for _ in left:
                break
            gate.set()
            result = await kept.result()
        states = [(await crib.executions.result(run_id)).status for run_id in (left.run_id, third.run_id)]

    assert (result.output, states) == ("one two three", ["cancelled", "cancelled"])


async def test_a_loop_that_was_left_goes_on_where_it_stopped():
    async with crib_with("one two three") as crib, crib.agent("desk", model=MODEL).stream("Count") as stream:
        first = ""
        async for piece in stream.text():
            first = piece
            break
        rest = "".join([piece async for piece in stream.text()])

    assert first + rest == "one two three"


async def test_a_run_that_waits_for_a_person_is_left_as_it_is():
    asks = Message("assistant", (ToolCall("c1", "pay", "{}"),))
    async with crib_with(asks, "Paid.") as crib:
        desk = crib.agent("desk", model=MODEL, tools=["pay"])
        async with desk.stream("Pay") as stream:
            async for event in stream:
                if isinstance(event, ApprovalPending):
                    break
        await crib.resume(stream.run_id)
        waiting = await desk.result(stream.run_id)
        await crib.approvals.decide(waiting.approvals[0].approval_id, approve=True)
        done = await desk.resume(stream.run_id)

    assert (waiting.status, done.output) == ("awaiting_approval", "Paid.")


async def test_workflows_agentic_tools_and_composites_stream_too():
    async with crib_with("Done.") as crib:
        flow = crib.workflow("flow", steps=[{"name": "one", "tool": "find", "input": {"text": "${input.text}"}}])
        helper = crib.agentic_tool("helper", mode="agentic", model=MODEL, tools=["find"])
        async with flow.stream(text="a") as stream:
            types = [event.type async for event in stream]
            flowed = await stream.result()
        async with helper.stream("Help") as stream:
            text = "".join([piece async for piece in stream.text()])

    assert types == ["tool_call_start", "tool_call_end", "step", "done"]
    assert (flowed.output, text) == ({"one": "found a"}, "Done.")


async def test_what_is_submitted_is_read_and_resumed():
    async with crib_with("Hello.") as crib:
        desk = crib.agent("desk", model=MODEL)
        run_id = await desk.submit("Hi")
        before, done = await desk.result(run_id), await desk.resume(run_id)

    assert (before.status, before.output, done.output) == ("queued", None, "Hello.")


async def test_a_stream_is_entered_once():
    async with crib_with("Hello.") as crib:
        stream = crib.agent("desk", model=MODEL).stream("Hi")
        with pytest.raises(InvalidInput, match="enter it first"):
            _ = stream.run_id
        async with stream:
            with pytest.raises(Conflict, match="was entered before"):
                await stream.__aenter__()
            await stream.result()

"""Following runs live: what a subscriber hears, wherever it is cut off and whenever it comes back."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from tests.twins import make_definition
from tests.unit.runs.house import House, ask, settled
from tests.unit.runs.speaking import WORD_S, SlowModel, Subscriber, heard, thought
from toolcrib.contracts import (
    ContentFilter,
    InvalidInput,
    Json,
    ModelFailed,
    ModelFinished,
    StreamDone,
    StreamEvent,
    StreamFailed,
    TextDelta,
    ThinkingDelta,
    ToolDefinition,
)
from toolcrib.core.engines import DriveResult
from toolcrib.core.runs import ModelCall, RunContext
from toolcrib.core.runs.models.live import TokenHub, answer
from toolcrib.llm import Event, Request, ScriptedModel, TextChunk, ThinkingChunk, user

FIRST = thought("Let me see what is there.", "I look the deal up for you. ")
_QUESTION = Request(messages=(user("how is the deal?"),))
SECOND = "The deal is open, and it is worth a hundred."


def question(position: str, model: SlowModel) -> ModelCall:
    return ModelCall(position, "answer", model, _QUESTION)


class Talk:
    """A run that asks, calls a tool, asks again and answers."""

    def __init__(self, *, broken: tuple[int, ...] = (), waits: bool = False) -> None:
        self.house = House(self._script)
        self.model = SlowModel(self.house.clock, [FIRST, SECOND], broken)
        self._waits = waits

    async def _script(self, context: RunContext) -> Json:
        await context.model(question("t1.llm", self.model))
        await context.call(ask("t1.c1"))
        if self._waits:
            await context.wait_signal("go")
        return (await context.model(question("t2.llm", self.model))).message.text

    async def begin(self, **fields: Any) -> str:
        await self.house.save()
        return await self.house.engine.create(await self.house.request(**fields))

    async def drive(self, run_id: str) -> DriveResult:
        """Drive it, and let time pass until it has halted and whoever follows has heard it."""
        driving = asyncio.create_task(self.house.engine.drive(run_id))
        await self.pass_time(driving)
        return await driving

    async def pass_time(self, *tasks: "asyncio.Task[Any]") -> None:
        """Let time pass until the tasks are done."""
        await settled()
        for _ in range(2000):
            if all(task.done() for task in tasks):
                return
            await self.house.clock.pass_time(WORD_S / 3)
        raise AssertionError("it does not end")


async def followed(talk: Talk, run_id: str, *, at_a_time: int | None = None) -> Subscriber:
    """A subscriber that was there from the beginning."""
    subscriber = Subscriber(talk.house, run_id)
    following = asyncio.create_task(subscriber.follow(at_a_time=at_a_time))
    await settled()
    await talk.pass_time(asyncio.create_task(talk.drive(run_id)), following)
    await following
    return subscriber


@pytest.mark.requirement("live.stream", "live.watched")
async def test_a_subscriber_hears_the_words_as_they_come_and_every_call_once():
    talk = Talk()
    run_id = await talk.begin()

    subscriber = await followed(talk, run_id)

    found = heard(subscriber.messages)
    assert [text for _, text in found.texts.values()] == ["I look the deal up for you. ", SECOND]
    assert [text for _, text in found.thoughts.values()] == ["Let me see what is there."]
    assert found.calls == ["tool_call_start t1.c1", "tool_call_end t1.c1"]
    assert isinstance(found.last, StreamDone)
    assert found.last.result.output == SECOND
    assert len(subscriber.messages) > 12, "too few to have come as they were said"
    assert talk.model.streamed == 2


@pytest.mark.requirement("live.stream")
async def test_each_piece_is_told_as_soon_as_it_is_said():
    talk = Talk()
    run_id = await talk.begin()

    subscriber = await followed(talk, run_id)

    speaker = ScriptedModel([FIRST, SECOND])
    said = [event for _ in range(2) async for event in speaker.stream(_QUESTION)]
    pieces = [event.text for event in said if isinstance(event, TextChunk | ThinkingChunk)]
    events = [told.event for told in subscriber.messages]
    assert [event.text for event in events if isinstance(event, TextDelta | ThinkingDelta)] == pieces


@pytest.mark.requirement("live.watched")
async def test_a_run_that_nobody_watches_is_not_streamed_and_is_told_whole_afterwards():
    talk, watched = Talk(), Talk()
    run_id, same = await talk.begin(), await watched.begin()
    await talk.drive(run_id)
    await followed(watched, same)

    late = Subscriber(talk.house, run_id)
    await late.follow()

    assert talk.model.streamed == 0
    assert [told.event.type for told in late.messages] == [
        "thinking", "text_delta", "tool_call_start", "tool_call_end", "text_delta", "done",
    ]  # fmt: skip
    unwatched = [event for event in await talk.house.events(run_id) if isinstance(event, ModelFinished)]
    streamed = [event for event in await watched.house.events(same) if isinstance(event, ModelFinished)]
    assert [event.response for event in unwatched] == [event.response for event in streamed]


@pytest.mark.requirement("live.re_attach")
@pytest.mark.parametrize("broken", [(), (4,), (0, 9)])
@pytest.mark.parametrize("at_a_time", [1, 2, 5])
async def test_who_is_cut_off_after_every_message_hears_the_same(broken: tuple[int, ...], at_a_time: int):
    talk = Talk(broken=broken)
    run_id = await talk.begin()
    often = Subscriber(talk.house, run_id)
    following = asyncio.create_task(often.follow(at_a_time=at_a_time))

    steady = await followed(talk, run_id)
    await talk.pass_time(following)

    assert heard(often.messages).total == heard(steady.messages).total
    assert [text for _, text in heard(often.messages).texts.values()][-1] == SECOND


@pytest.mark.requirement("live.re_attach")
@pytest.mark.parametrize("waits", [False, True])
async def test_who_was_cut_off_anywhere_and_comes_back_after_the_end_hears_the_rest(waits: bool):
    talk = Talk(broken=(3,), waits=waits)
    run_id = await talk.begin()
    steady = await followed(talk, run_id)
    if waits:
        assert isinstance(last := steady.messages[-1].event, StreamDone)
        assert last.result.status == "awaiting_client"
        await talk.house.signal(run_id, "go")
        following = asyncio.create_task(steady.follow())
        await settled()
        await talk.pass_time(asyncio.create_task(talk.drive(run_id)), following)

    for cut in range(1, len(steady.messages) + 1):
        late = Subscriber(talk.house, run_id, steady.messages[:cut])
        assert (await late.follow()).total == heard(steady.messages).total, late.messages[cut - 1].place


@pytest.mark.requirement("live.stream")
async def test_who_comes_in_the_middle_of_an_answer_hears_it_from_its_beginning():
    talk = Talk()
    run_id = await talk.begin()
    first = asyncio.create_task(Subscriber(talk.house, run_id).follow())
    await settled()
    driving = asyncio.create_task(talk.drive(run_id))
    await talk.house.clock.pass_time(4 * WORD_S)
    for _ in range(3):
        await talk.house.clock.pass_time(WORD_S)
    late = Subscriber(talk.house, run_id)
    following = asyncio.create_task(late.follow())
    await settled()
    assert 0 < len(late.messages) < 3
    await talk.pass_time(driving, following, first)

    assert (await following).total == (await first).total


@pytest.mark.requirement("live.other_process")
async def test_a_run_of_another_process_is_told_call_by_call():
    talk = Talk()
    run_id = await talk.begin()
    elsewhere = Subscriber(House(_never, other=talk.house, owner="other"), run_id)
    following = asyncio.create_task(elsewhere.follow())

    steady = await followed(talk, run_id)
    await talk.pass_time(following)

    assert heard(elsewhere.messages).total == heard(steady.messages).total
    assert len(elsewhere.messages) == 6


async def _never(_: RunContext) -> Json:
    raise AssertionError


@pytest.mark.requirement("live.broken_off")
async def test_the_text_of_an_attempt_that_broke_off_is_void_and_its_successor_has_another_number():
    talk = Talk(broken=(8,))
    run_id = await talk.begin()

    found = await followed(talk, run_id)

    numbers = {told.event.number for told in found.messages if told.event.type == "text_delta"}
    assert len(numbers) == 3
    assert heard(found.messages).texts["t1.llm"][0] == sorted(numbers)[1]
    (failed,) = [event for event in await talk.house.events(run_id) if isinstance(event, ModelFailed)]
    assert (failed.position, failed.kind) == ("t1.llm", "stream_cut")


@pytest.mark.requirement("live.filtered")
async def test_words_that_a_filter_must_have_seen_whole_are_not_streamed():
    talk = Talk()
    run_id = await talk.begin(guardrails=(ContentFilter(words=("worth",), action="redact"),))

    found = heard((await followed(talk, run_id)).messages)

    assert talk.model.streamed == 0
    assert "worth" not in found.texts["t2.llm"][1]


@pytest.mark.requirement("live.stream")
async def test_a_failed_run_ends_with_its_error():
    talk = Talk(broken=(1, 1, 1, 1, 1, 1))
    run_id = await talk.begin()

    last = heard((await followed(talk, run_id)).messages).last

    assert isinstance(last, StreamFailed)
    assert (last.result.status, last.error) == ("failed", last.result.error)


@pytest.mark.requirement("live.re_attach")
@pytest.mark.parametrize("place", ["", "x", "-1", "1.5", "3~", "99", "2~1.5.0", "3~2.1", "1~2.1.1~", "٣"])
async def test_a_place_that_the_stream_does_not_have_is_refused(place: str):
    talk = Talk()
    run_id = await talk.begin()
    await talk.drive(run_id)

    with pytest.raises(InvalidInput, match=r"not a place|no place"):
        await Subscriber(talk.house, run_id).follow(place=place)


@pytest.mark.requirement("live.bounded")
async def test_nothing_is_kept_of_a_call_that_has_ended_nor_of_a_subscriber_that_has_gone():
    talk = Talk()
    run_id = await talk.begin()
    await followed(talk, run_id)

    live = talk.house.engine.live
    assert not live.speeches(run_id)
    assert vars(live) == {"_runs": {}}


@pytest.mark.requirement("live.bounded")
async def test_a_subscriber_that_goes_in_the_middle_of_an_answer_leaves_nothing_behind():
    talk = Talk()
    run_id = await talk.begin()
    following = asyncio.create_task(Subscriber(talk.house, run_id).follow())
    await settled()
    driving = asyncio.create_task(talk.drive(run_id))
    for _ in range(6):
        await talk.house.clock.pass_time(WORD_S)
    following.cancel()
    await talk.pass_time(driving)

    assert (await driving).result.output == SECOND
    assert vars(talk.house.engine.live) == {"_runs": {}}


@pytest.mark.requirement("live.stream")
@pytest.mark.parametrize(
    ("tool", "kind"),
    [
        (make_definition("act", side_effects="writes", requires_confirmation=True), "approval_requested"),
        (make_definition("act", runs_on="client"), "client_handoff"),
    ],
)
async def test_what_waits_for_somebody_is_told_before_the_stream_ends(tool: ToolDefinition, kind: str):
    async def script(context: RunContext) -> Json:
        return (await context.call(ask("t1.c1", "act"))).output

    house = House(script)
    await house.save(tool)
    result = (await house.start()).result

    messages = await told(house, result.run_id)

    assert [event.type for event in messages][-2:] == [kind, "done"]
    assert isinstance(messages[-1], StreamDone)
    assert messages[-1].result.status == result.status


async def told(house: House, run_id: str) -> list[StreamEvent]:
    """All there is to tell of a run that has halted."""
    subscriber = Subscriber(house, run_id)
    await subscriber.follow()
    return [message.event for message in subscriber.messages]


class Mute(SlowModel):
    """Says something, and ends without an end."""

    async def stream(self, request: Request) -> AsyncGenerator[Event]:
        """One word."""
        yield TextChunk("well")


@pytest.mark.requirement("live.broken_off")
async def test_a_stream_that_ends_without_an_end_is_an_attempt_that_broke_off():
    talk = Talk()
    talk.model = Mute(talk.house.clock, ["unsaid"])
    run_id = await talk.begin()

    last = heard((await followed(talk, run_id)).messages).last

    assert isinstance(last, StreamFailed)
    failures = [event for event in await talk.house.events(run_id) if isinstance(event, ModelFailed)]
    assert {failed.kind for failed in failures} == {"stream_cut"}


@pytest.mark.requirement("live.broken_off")
async def test_an_answer_that_nobody_hears_is_asked_for_as_a_whole():
    model = ScriptedModel(["Fine."])

    with TokenHub().speech("run", 1) as speech:
        answered = await answer(model, _QUESTION, speech)

    assert speech is None
    assert answered.message.text == "Fine."

"""Who is asked whether a call took effect that nobody has heard of: the tool's lookup, then a person."""

import asyncio
from typing import Any

import pytest

from tests.twins import make_definition
from tests.unit.runs.house import House, any_done, ask, hang
from toolcrib.contracts import (
    OWNER,
    Approval,
    CallFinished,
    ErrorCode,
    Json,
    JsonObject,
    Reason,
    RunResult,
    ToolDefinition,
    ToolEnvelope,
    ToolStep,
)
from toolcrib.contracts.runs.stream import ToolCallInDoubt
from toolcrib.core.executor import CallFailed, Dispatch, Outcome, error
from toolcrib.core.runs import RunContext, decision_on, read_trace
from toolcrib.core.runs.views.stream import MessageProjector
from toolcrib.infrastructure.store import ApprovalFilter

LIMIT_S = 120.0


async def pay(context: RunContext) -> Json:
    envelope = await context.call(ask("a", "act", to=1))
    return [envelope.status, envelope.output]


def writing(**changes: Any) -> ToolDefinition:
    return make_definition("act", side_effects="writes").model_copy(update={"timeout_s": LIMIT_S, **changes})


class World:
    """What the tool does, and what its lookup answers, in order; the last for ever."""

    def __init__(self, *answers: Json | CallFailed, act: BaseException | None = None) -> None:
        self.answers = list(answers)
        self.act: BaseException | None = act
        self.acted: list[tuple[str, int]] = []

    def __call__(self, dispatch: Dispatch) -> Outcome:
        if dispatch.tool.name == "act":
            self.acted.append((dispatch.idempotency_key, dispatch.context.attempt))
            if self.act is not None:
                raise self.act
            return Outcome("acted")
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, CallFailed):
            raise answer
        return Outcome(answer)


def broken(code: ErrorCode = ErrorCode.NETWORK_ERROR, **fields: Any) -> CallFailed:
    return CallFailed(error(code, Reason.TOOL_FAILED, "no answer"), **fields)


async def crashed(definition: ToolDefinition, world: World) -> tuple[House, str]:
    """A run whose process died while it acted, and the process that follows it."""
    house = House(pay, hang)
    await house.save(definition)
    await house.save(make_definition("find"))
    run_id = await house.crash(asyncio.create_task(house.start()))
    return House(pay, world, other=house, owner="second"), run_id


async def go_on(house: House, run_id: str, seconds: float = 0.0) -> RunResult:
    """How a run stands after so much time."""
    await house.clock.pass_time(seconds)
    resuming = asyncio.create_task(house.engine.resume(run_id))
    while not resuming.done():
        await house.clock.pass_time(0.5)
    return (await resuming).result


async def envelope_of(house: House, run_id: str, position: str = "a") -> ToolEnvelope:
    return (await house.envelopes(run_id))[position]


# Its own lookup -------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("effects.lookup")
async def test_that_nothing_is_found_is_believed_when_the_call_cannot_be_under_way_any_more():
    world = World({"found": False})
    house, run_id = await crashed(writing(reconcile="find"), world)

    waiting = await go_on(house, run_id)
    assert (waiting.status, world.acted) == ("awaiting_client", [])
    assert (await go_on(house, run_id, LIMIT_S / 2)).status == "awaiting_client"
    assert house.dispatched == ["a.reconcile1"]
    done = await go_on(house, run_id, LIMIT_S)

    assert done.output == ["success", "acted"]
    assert house.dispatched == ["a.reconcile1", "a.reconcile1.again2", "a"]
    assert world.acted == [(f"{run_id}/a", 2)]


@pytest.mark.requirement("effects.lookup")
async def test_what_arrives_after_the_crash_is_found_and_not_done_again():
    world = World({"found": False}, {"found": True, "output": "late"})
    house, run_id = await crashed(writing(reconcile="find"), world)

    await go_on(house, run_id)
    done = await go_on(house, run_id, LIMIT_S)

    assert (done.output, world.acted) == (["success", "late"], [])


@pytest.mark.requirement("effects.lookup")
async def test_a_lookup_that_fails_is_asked_again_and_waits_longer_each_time():
    world = World(broken(), broken(ErrorCode.TIMEOUT), {"found": True, "output": "done"})
    house, run_id = await crashed(writing(reconcile="find"), world)

    assert (await go_on(house, run_id)).status == "awaiting_client"  # one second was held, ten are not
    assert house.dispatched == ["a.reconcile1", "a.reconcile1.again2"]
    assert (await go_on(house, run_id, 10)).output == ["success", "done"]
    assert world.acted == []


@pytest.mark.requirement("effects.lookup")
async def test_a_lookup_that_keeps_failing_settles_nothing_and_is_named():
    world = World(broken())
    house, run_id = await crashed(writing(reconcile="find"), world)

    for seconds in (0, 10, 60):
        result = await go_on(house, run_id, seconds)

    assert (result.output, world.acted) == (["error", None], [])
    assert len(house.dispatched) == 4
    failure = (await envelope_of(house, run_id)).error
    assert failure is not None
    assert (failure.reason, failure.effect) == (Reason.OUTCOME_UNKNOWN, "unknown")
    assert "'find' could not tell" in failure.message


@pytest.mark.requirement("effects.lookup_live")
async def test_a_call_whose_answer_was_lost_is_looked_up_at_once_and_has_what_is_found():
    world = World({"found": True, "output": "done"}, act=broken())
    house = House(pay, world)
    await house.save(writing(reconcile="find"))
    await house.save(make_definition("find"))

    result = (await house.start()).result

    assert result.output == ["success", "done"]
    assert len(world.acted) == 1
    assert len([event for event in await house.events(result.run_id) if isinstance(event, CallFinished)]) == 2


@pytest.mark.requirement("effects.lookup_live")
async def test_a_failure_whose_effect_is_found_missing_stands_and_says_that_it_had_none():
    world = World({"found": False}, act=broken())
    house = House(pay, world)
    await house.save(writing(reconcile="find"))
    await house.save(make_definition("find"))

    result = await go_on(house, (await house.start()).result.run_id, LIMIT_S)

    failure = (await envelope_of(house, result.run_id)).error
    assert failure is not None
    assert (failure.code, failure.effect) == (ErrorCode.NETWORK_ERROR, "none")
    assert failure.message.endswith("'find' has found since that it did not")
    assert len(world.acted) == 1


@pytest.mark.requirement("effects.lookup_live", "effects.told")
async def test_a_failure_that_nobody_can_clear_up_stands_with_its_effect_unknown():
    world = World({"found": None}, act=broken())
    house = House(pay, world)
    await house.save(writing(reconcile="find"))
    await house.save(make_definition("find"))

    run_id = (await house.start()).result.run_id

    failure = (await envelope_of(house, run_id)).error
    assert failure is not None
    assert (failure.code, failure.effect) == (ErrorCode.NETWORK_ERROR, "unknown")
    assert "whether it took effect is unknown" in failure.message


@pytest.mark.requirement("effects.lookup_live")
async def test_the_process_that_follows_one_which_died_while_looking_up_goes_on_with_that():
    world = World({"found": False}, act=broken())
    house = House(pay, world)
    await house.save(writing(reconcile="find"))
    await house.save(make_definition("find"))
    run_id = (await house.start()).result.run_id
    assert (await house.store.journal.run(run_id)).status == "awaiting_client"

    heir = House(pay, World({"found": True, "output": "late"}), other=house, owner="second")
    done = await go_on(heir, run_id, LIMIT_S)

    assert done.output == ["success", "late"]
    assert len(world.acted) == 1


# A person -------------------------------------------------------------------------------------------------------------


async def inbox(house: House) -> list[Approval]:
    return list(await house.store.approvals.page(OWNER.realm, ApprovalFilter()))


async def answer(house: House, run_id: str, **said: Any) -> bool:
    [question] = [each for each in await inbox(house) if each.status == "waiting"]
    assert question.question == "outcome"
    told: JsonObject = decision_on(question, **said).model_dump(mode="json")
    return await house.signal(run_id, question.signal, told)


@pytest.mark.requirement("effects.ask")
async def test_a_person_is_asked_what_became_of_a_call_and_their_word_is_its_output():
    world = World(None)
    house, run_id = await crashed(writing(on_unknown="ask"), world)

    assert (await go_on(house, run_id, LIMIT_S)).status == "awaiting_approval"
    [question] = await inbox(house)
    assert (question.tool, question.input, question.position) == ("act", {"to": 1}, "a.outcome1")
    assert "was started at 2026-01-31 12:00:00 UTC" in question.message
    assert "did it happen?" in question.message
    await answer(house, run_id, approve=True, happened=True, output="by hand")

    assert (await go_on(house, run_id)).output == ["success", "by hand"]
    assert world.acted == []


@pytest.mark.requirement("effects.ask", "effects.key")
async def test_a_call_that_did_not_happen_is_made_once_more_with_its_key():
    world = World(None)
    house, run_id = await crashed(writing(on_unknown="ask"), world)
    await go_on(house, run_id, LIMIT_S)
    await answer(house, run_id, approve=True, happened=False)

    assert (await go_on(house, run_id)).output == ["success", "acted"]
    assert world.acted == [(f"{run_id}/a", 2)]


@pytest.mark.requirement("effects.ask_late")
async def test_ask_0_nobody_is_asked_while_the_process_that_was_cut_off_may_still_act():
    house, run_id = await crashed(writing(on_unknown="ask"), World(None))

    assert (await go_on(house, run_id)).status == "awaiting_client"
    assert (await go_on(house, run_id, LIMIT_S / 2)).status == "awaiting_client"
    assert await inbox(house) == []
    assert (await go_on(house, run_id, LIMIT_S / 2)).status == "awaiting_approval"

    [question] = await inbox(house)
    begun = (await house.store.journal.events(run_id))[0].at
    [asked] = [one.at for one in await house.store.journal.events(run_id) if one.event.type == "approval_requested"]
    assert (asked - begun).total_seconds() >= LIMIT_S
    assert question.position == "a.outcome1"


@pytest.mark.requirement("effects.label")
async def test_d2_an_outcome_that_a_crash_left_unknown_says_so_in_its_details():
    house, run_id = await crashed(writing(), World(None))

    assert (await go_on(house, run_id)).output == ["error", None]
    failure = (await envelope_of(house, run_id)).error
    assert failure is not None
    assert failure.details == {"reason": "outcome_unknown", "effect": "unknown"}


@pytest.mark.requirement("effects.ask")
async def test_a_call_that_is_given_up_has_an_unknown_outcome():
    world = World(None)
    house, run_id = await crashed(writing(on_unknown="ask"), world)
    await go_on(house, run_id, LIMIT_S)
    await answer(house, run_id, approve=False)

    assert (await go_on(house, run_id)).output == ["error", None]
    failure = (await envelope_of(house, run_id)).error
    assert failure is not None
    assert failure.reason is Reason.OUTCOME_UNKNOWN
    assert "the person who was asked could not tell" in failure.message
    assert world.acted == []


@pytest.mark.requirement("effects.ask")
async def test_nobody_who_answers_in_time_gives_the_call_up():
    house, run_id = await crashed(writing(on_unknown="ask", confirmation_expires_s=60), World(None))
    await go_on(house, run_id, LIMIT_S)

    assert (await go_on(house, run_id, 60)).output == ["error", None]
    assert [each.status for each in await inbox(house)] == ["expired"]


@pytest.mark.requirement("effects.ask")
async def test_the_lookup_is_asked_first_and_a_person_only_where_it_cannot_tell():
    told, silent = World({"found": True, "output": "done"}), World({"found": None})

    house, run_id = await crashed(writing(on_unknown="ask", reconcile="find"), told)
    assert (await go_on(house, run_id)).output == ["success", "done"]
    assert await inbox(house) == []

    house, run_id = await crashed(writing(on_unknown="ask", reconcile="find"), silent)
    assert (await go_on(house, run_id)).status == "awaiting_client"
    assert (await go_on(house, run_id, LIMIT_S)).status == "awaiting_approval"


@pytest.mark.requirement("effects.ask")
async def test_a_call_that_is_cut_off_twice_is_asked_about_twice():
    house, run_id = await crashed(writing(on_unknown="ask"), World(None))
    await go_on(house, run_id, LIMIT_S)
    await answer(house, run_id, approve=True, happened=False)
    third = House(pay, hang, other=house, owner="third")
    await third.crash(asyncio.create_task(third.engine.resume(run_id)))

    fourth = House(pay, World(None), other=house, owner="fourth")
    assert (await go_on(fourth, run_id, LIMIT_S)).status == "awaiting_approval"
    await answer(fourth, run_id, approve=True, happened=True, output="the second time")

    assert (await go_on(fourth, run_id)).output == ["success", "the second time"]
    assert [each.position for each in await inbox(fourth)] == ["a.outcome1", "a.outcome2"]


@pytest.mark.requirement("effects.ask")
@pytest.mark.parametrize(
    ("said", "output", "acts"),
    [
        ({"approve": True, "happened": True, "output": 7}, ["success", 7], 1),
        ({"approve": True, "happened": False}, ["success", "acted"], 2),
        ({"approve": False}, ["error", None], 1),
    ],
)
async def test_a_person_is_asked_too_about_a_call_that_failed_without_an_answer(
    said: JsonObject, output: Json, acts: int
):
    world = World(None, act=broken())
    house = House(pay, world)
    await house.save(writing(on_unknown="ask"))
    run_id = (await house.start()).result.run_id
    world.act = None
    await answer(house, run_id, **said)

    assert (await go_on(house, run_id)).output == output
    assert len(world.acted) == acts
    assert len({key for key, _ in world.acted}) == 1


@pytest.mark.requirement("effects.ask")
async def test_while_a_part_of_the_run_works_the_question_is_asked_and_the_answer_is_heard_at_once():
    world, release = World(None, act=broken()), asyncio.Event()

    async def script(context: RunContext) -> Json:
        paying = context.call(ask("a", "act", to=1))
        working = context.start(release.wait())
        envelope = await paying
        release.set()
        await any_done(context, [working])
        return [envelope.status, envelope.output]

    house = House(script, world)
    await house.save(writing(on_unknown="ask"))
    driving = asyncio.create_task(house.start())
    await house.clock.pass_time(0)
    [question] = await inbox(house)
    await answer(house, question.run_id, approve=True, happened=True, output="yes")
    await house.clock.pass_time(1)

    assert (await driving).result.output == ["success", "yes"]
    assert len(world.acted) == 1


@pytest.mark.requirement("effects.told")
@pytest.mark.parametrize("fields", [{"idempotent": True}, {"idempotency_key": "header:Key"}])
async def test_a_call_that_may_run_twice_is_repeated_after_a_crash_and_nobody_is_asked(fields: dict[str, Any]):
    house, run_id = await crashed(writing(on_unknown="ask", **fields), world := World(None))

    assert (await go_on(house, run_id)).output == ["success", "acted"]
    assert len(world.acted) == 1


# What is seen of it ---------------------------------------------------------------------------------------------------


@pytest.mark.requirement("effects.shown")
async def test_a_subscriber_and_the_trace_are_told_of_a_call_in_doubt_before_it_ends():
    world = World(None, act=broken())
    house = House(pay, world)
    await house.save(writing(on_unknown="ask"))
    run_id = (await house.start()).result.run_id
    narration = MessageProjector()
    told = [message.event for entry in await house.store.journal.events(run_id) for message in narration.tell(entry)]
    [asked, *_] = [each for each in (await read_trace(house.store.journal, run_id)).steps if isinstance(each, ToolStep)]
    await answer(house, run_id, approve=True, happened=True, output="by hand")
    await go_on(house, run_id)
    [known, *_] = [each for each in (await read_trace(house.store.journal, run_id)).steps if isinstance(each, ToolStep)]

    [doubt] = [each for each in told if isinstance(each, ToolCallInDoubt)]
    assert (doubt.position, doubt.name, doubt.error.effect) == ("a", "act", "unknown")
    assert [each.type for each in told] == ["tool_call_start", "tool_call_in_doubt", "approval_requested"]
    assert (asked.status, asked.error) == ("running", doubt.error)
    assert (known.status, known.error, known.result) == ("success", None, "by hand")


@pytest.mark.requirement("effects.told")
async def test_a_call_that_nobody_can_be_asked_about_fails_at_once_with_its_effect_unknown():
    world = World(None, act=broken())
    house = House(pay, world)
    await house.save(writing())

    result = (await house.start()).result

    failure = (await envelope_of(house, result.run_id)).error
    assert failure is not None
    assert (result.output, failure.effect) == (["error", None], "unknown")

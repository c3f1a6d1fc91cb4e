"""Ordinary calls: made by a plan without the stages that have nothing to do, interrupted as any other call."""

import asyncio
from decimal import Decimal
from typing import Any, cast

import msgspec
import pytest

from tests.twins import Rig, call, make_context, make_tool
from toolcrib.contracts import ErrorCode, Principal, Reason, RetryPolicy, ServiceAccount
from toolcrib.contracts.base.errors import StoreUnavailable
from toolcrib.core.executor import CallFailed, Dispatch, ExecutionRules, Executor, Outcome, error, plans
from toolcrib.core.executor.envelope import EnvelopeBuilder
from toolcrib.core.policy.caps import CapReservation

ORDINARY = pytest.mark.requirement("executor.plans")


@pytest.fixture
def staged(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Positions of the calls that have gone through the pipeline."""
    found: list[str] = []
    run: Any = vars(Executor)["_run"]

    async def noted(self: Executor, builder: EnvelopeBuilder, tool: Any) -> Any:
        found.append(builder.call.position)
        return await run(self, builder, tool)

    monkeypatch.setattr(Executor, "_run", noted)
    return found


@ORDINARY
async def test_a_plan_makes_ordinary_calls_and_the_pipeline_all_others(
    staged: list[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(ExecutionRules, "uses_plans", True)
    rig = Rig(make_tool(), make_tool("paid", cost_usd_per_call=Decimal(1)), make_tool("off", enabled=False))

    envelopes = [
        await rig.run(position="ordinary"),
        await rig.run("paid", position="paid"),
        await rig.run("off", position="off"),
        await rig.run(position="dry", context=make_context(dry_run=True, journal=rig.journal)),
        await rig.run(position="again", context=make_context(attempt=2, journal=rig.journal)),
        await rig.run(position="wrong", arguments=[]),
    ]

    assert [envelope.status for envelope in envelopes] == [
        "success",
        "success",
        "denied",
        "success",
        "success",
        "error",
    ]
    assert staged == ["paid", "off", "again", "wrong"]


@ORDINARY
async def test_a_revision_that_is_blocked_later_has_another_plan(staged: list[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ExecutionRules, "uses_plans", True)
    monkeypatch.setattr(plans, "_MOST", 2)
    tool = make_tool()
    blocked = tool.model_copy(update={"status": "blocked"})
    known = plans.CallPlans()

    assert known.of(tool) is known.of(tool) is not None
    assert known.of(blocked) is None
    assert known.of(make_tool("third")) is not None
    assert known.of(blocked) is None, "forgotten, and found out again"
    assert known.of(make_tool(input_schema={"type": 7})) is None


@ORDINARY
async def test_a_tool_that_notices_its_time_out_may_still_bring_something():
    async def work(dispatch: Dispatch) -> Outcome:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if dispatch.input:
                await asyncio.sleep(0)
            return Outcome("what there was")
        return Outcome("never")

    rig = Rig(make_tool(timeout_s=0.001), behaviour=work)

    at_once, later = await rig.run(), await rig.run(arguments={"clean": "up"}, position="t1.c2")

    assert at_once.output == later.output == "what there was"


@ORDINARY
async def test_the_time_before_a_tool_first_waits_is_part_of_its_time(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ExecutionRules, "uses_plans", True)  # the pipeline's limit is in the time of the event loop

    async def work(_: Dispatch) -> Outcome:
        rig.clock.advance(59.999)
        return Outcome(await asyncio.Event().wait())

    rig = Rig(make_tool(timeout_s=60), behaviour=work)

    envelope = await rig.run()

    assert envelope.error is not None
    assert envelope.error.code is ErrorCode.TIMEOUT
    assert "timeout_s=60" in envelope.error.message


@ORDINARY
async def test_a_call_that_is_thrown_away_ends_its_tool():
    ended: list[str] = []

    async def work(dispatch: Dispatch) -> Outcome:
        try:
            await asyncio.sleep(0)
        finally:
            ended.append(dispatch.position)
        return Outcome(None)

    rig = Rig(make_tool(), behaviour=work)
    made = rig.executor.execute(call(), rig.context)
    made.send(None)  # to the journal
    made.send(None)  # to the tool
    assert not ended

    made.close()

    assert ended == ["t1.c1"]
    assert rig.context.lanes.enter_at_once(alone=True)


@ORDINARY
async def test_a_first_attempt_that_waits_is_repeated_as_any_other():
    async def work(dispatch: Dispatch) -> Outcome:
        await asyncio.sleep(0)
        if dispatch.attempt < 3:
            raise TimeoutError
        return Outcome(dispatch.attempt)

    rig = Rig(make_tool(retry=RetryPolicy(count=2, base_s=0.1)), behaviour=work)

    envelope = await rig.run()

    assert envelope.output == envelope.attempts == 3
    assert [dispatch.attempt for dispatch in rig.dispatcher.dispatched] == [1, 2, 3]
    assert rig.clock.naps == [0.1, 0.2]


@ORDINARY
async def test_a_call_whose_intent_is_not_accepted_uses_no_budget():
    rig = Rig(make_tool())
    rig.journal.refusal = StoreUnavailable("it is down")

    with pytest.raises(StoreUnavailable):
        await rig.run()

    assert rig.untouched
    assert rig.context.lanes.enter_at_once(alone=True)


@ORDINARY
async def test_a_call_of_which_nothing_was_sent_uses_no_budget():
    def work(_: Dispatch) -> Outcome:
        raise CallFailed(error(ErrorCode.UNKNOWN, Reason.RUNTIME_MISSING, "nothing runs it"))

    rig = Rig(make_tool(), behaviour=work)

    envelope = await rig.run()

    assert envelope.metadata == {"sent": False}
    assert rig.budget.tool_calls == 0


@ORDINARY
async def test_a_service_account_has_the_grants_that_it_has_now_also_in_ordinary_calls():
    account = ServiceAccount(name="robot", grants=("ai://*",))
    principal = account.principal(make_tool().realm)
    rig = Rig(make_tool())

    envelope = await rig.run(context=make_context(principal=principal, journal=rig.journal))
    other = await rig.run(context=make_context(principal=Principal(id="job", kind="service"), journal=rig.journal))

    assert envelope.status == "denied", "the account is gone"
    assert other.status == "success"


@ORDINARY
async def test_a_default_that_is_nested_too_deep_is_the_pipeline_s_to_refuse():
    deep: Any = 1
    for _ in range(110):
        deep = [deep]
    rig = Rig(make_tool(input_schema={"type": "object", "properties": {"deep": {"default": deep}}}))

    envelope = await rig.run()

    assert envelope.error is not None
    assert "cannot be checked" in envelope.error.message
    assert rig.untouched


@ORDINARY
async def test_what_is_left_of_a_call_may_wait_again_after_each_interruption():
    async def stubborn() -> str:
        for _ in range(2):
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                await asyncio.sleep(0)
        await asyncio.sleep(0)
        return "done"

    async def rest() -> str:
        return await plans.resume(work, awaited)

    work = stubborn()
    awaited = work.send(None)
    waiting = asyncio.create_task(rest())
    for _ in range(2):
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    assert await waiting == "done"


@ORDINARY
async def test_what_is_left_of_a_call_may_end_at_an_interruption():
    async def forgiving() -> str:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return "enough"
        return "slept"

    async def rest() -> str:
        return await plans.resume(work, awaited)

    work = forgiving()
    awaited = work.send(None)
    waiting = asyncio.create_task(rest())
    await asyncio.sleep(0)
    waiting.cancel()
    assert await waiting == "enough"


@ORDINARY
@pytest.mark.parametrize(
    ("schema", "filled"),
    [
        ({"type": "object", "properties": {"n": {"default": 2}, "m": True, "t": {"default": "x"}}}, {"n": 2, "t": "x"}),
        ({"type": "object", "properties": {"n": {"default": [2]}}}, {"n": [2]}),
        ({"type": "object", "properties": {"n": {"default": 2**60}}}, {"n": 2**60}),
        ({"type": "object", "properties": {"n": {"default": {}, "properties": {"m": {"default": 1}}}}}, {"n": {}}),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"properties": {"n": {"default": 2}}}}}, {"n": 2}),
    ],
)
async def test_a_plan_fills_in_all_defaults(
    schema: dict[str, Any], filled: dict[str, Any], staged: list[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(ExecutionRules, "uses_plans", True)
    rig = Rig(make_tool(input_schema={"type": "object", **schema}))

    envelope = await rig.run(arguments={"given": "é"})
    alike = await rig.run(arguments={"given": "é"}, position="t1.c2")
    own = await rig.run(arguments={"n": 5}, position="t1.c3")

    assert envelope.input == alike.input == {"given": "é"} | filled
    assert own.input == filled | {"n": 5}
    assert not staged


@ORDINARY
async def test_arguments_that_wait_for_their_turn_are_those_that_were_given():
    held = asyncio.Event()

    async def work(dispatch: Dispatch) -> Outcome:
        if "hold" in dispatch.input:
            await held.wait()
        return Outcome(dispatch.input)

    rig = Rig(make_tool(sequential=True), behaviour=work)
    later = call(position="t1.c2", arguments={"n": 1})
    first = asyncio.create_task(rig.run(arguments={"hold": True}))
    await asyncio.sleep(0)
    second = asyncio.create_task(rig.executor.execute(later, rig.context))
    await asyncio.sleep(0)
    later.input["n"] = 2
    held.set()

    assert (await first).ok
    assert (await second).input == (await second).output == {"n": 1}


class FreeCaps:
    """Caps that allow everything."""

    async def reserve(self, spender: Any, ticket: str, most: Any, *, tool: str | None = None) -> CapReservation:
        return CapReservation(ticket, (), {})

    async def settle(self, reservation: CapReservation, spent: Any) -> None:
        """Forget it."""


@ORDINARY
async def test_what_somebody_spends_under_caps_is_no_ordinary_call(staged: list[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ExecutionRules, "uses_plans", True)
    rig = Rig(make_tool())
    rig.executor.caps = cast("Any", FreeCaps())

    assert (await rig.run(position="nobody's")).ok
    under_caps = msgspec.structs.replace(make_context(journal=rig.journal), starter="ann")
    assert (await rig.run(position="ann's", context=under_caps)).ok
    assert staged == ["ann's"]

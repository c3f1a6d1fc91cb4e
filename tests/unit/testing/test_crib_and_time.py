"""Cribs for tests, their clock, approvals, time, signals, crashes, and assertions on calls."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from tests.unit.testing.conftest import MODEL, Ledger
from toolcrib import Crib, ScriptedModel, builtin_tools, tool
from toolcrib.contracts import AgentRequest, InvalidInput, RetryPolicy
from toolcrib.testing import (
    FrozenClock,
    advance,
    approve,
    assert_called,
    assert_not_called,
    calls,
    calls_of,
    crash,
    new_crib,
    override_models,
    reject,
    restart,
    says,
    send_signal,
    together,
)


@pytest.mark.requirement("testing.clock")
def test_the_clock_stands_until_it_is_moved():
    clock = FrozenClock(datetime(2026, 3, 1, 9, tzinfo=UTC))
    moments = [clock.now(), clock.now(), clock.advance(days=1, hours=1, minutes=1, seconds=1), clock.now()]

    assert moments[0] == moments[1] == datetime(2026, 3, 1, 9, tzinfo=UTC)
    assert moments[2] == moments[3] == datetime(2026, 3, 2, 10, 1, 1, tzinfo=UTC)
    assert clock.monotonic() == timedelta(days=1, hours=1, minutes=1, seconds=1).total_seconds()
    assert repr(clock) == "FrozenClock(2026-03-02T10:01:01+00:00)"


@pytest.mark.requirement("testing.clock")
def test_a_clock_without_a_time_zone_or_that_goes_back_is_refused():
    with pytest.raises(InvalidInput, match="has no time zone; add tzinfo=UTC"):
        FrozenClock(datetime(2026, 3, 1))  # noqa: DTZ001 - the mistake
    with pytest.raises(InvalidInput, match="cannot go back by 0:00:01"):
        FrozenClock().advance(seconds=-1)


@pytest.mark.requirement("testing.clock")
async def test_a_retry_waits_on_the_clock_and_not_in_the_test():
    left = [1, 2]

    @tool(side_effects="reads", retry=RetryPolicy(count=2, base_s=20.0))
    async def flaky() -> str:
        """Fails twice."""
        if left:
            left.pop()
            raise ConnectionError
        return "done"

    async with new_crib() as crib:
        crib.add(flaky)
        before = crib.clock.now()
        envelope = await crib.call("flaky")
        after = crib.clock.now()

    assert (envelope.output, envelope.attempts) == ("done", 3)
    assert isinstance(crib.clock, FrozenClock)
    assert after - before == timedelta(seconds=sum(crib.clock.slept))
    assert len(crib.clock.slept) == 2


@pytest.mark.requirement("testing.clock")
async def test_time_does_not_pass_while_a_tool_works():
    news = asyncio.Event()

    @tool(side_effects="reads")
    async def slow() -> str:
        """Waits for the test."""
        await news.wait()
        return "done"

    async with new_crib() as crib:
        crib.add(slow)
        began = crib.clock.now()
        running = asyncio.create_task(crib.call("slow"))
        for _ in range(50):
            await asyncio.sleep(0)
        stood = crib.clock.now()
        assert isinstance(crib.clock, FrozenClock)
        crib.clock.advance(minutes=1)  # the lease, which is over by now, is renewed
        for _ in range(50):
            await asyncio.sleep(0)
        news.set()
        envelope = await running

    assert (stood, envelope.output) == (began, "done")


@pytest.mark.requirement("testing.crib")
async def test_a_crib_for_tests_reaches_no_network():
    async with new_crib() as crib:
        crib.add(*builtin_tools.http())
        envelope = await crib.call("http_get", url="https://example.com/")

    assert envelope.error is not None
    assert "egress denied" in envelope.error.message


@pytest.mark.requirement("testing.approvals")
async def test_a_call_is_approved_as_it_is_or_with_other_arguments(office: Crib, ledger: Ledger):
    first = await office.invoke("send_offer", {"deal": "d1", "price": 10})
    second = await office.invoke("send_offer", {"deal": "d1", "price": 20})

    sent = await approve(office, first)
    edited = await approve(office, second, "send_offer", edited_input={"deal": "d1", "price": 15})

    assert (first.status, sent.output, edited.output) == ("awaiting_approval", {"price": 10}, {"price": 15})
    assert ledger.entries == ["offered 10", "offered 15"]


@pytest.mark.requirement("testing.approvals")
async def test_a_call_inside_agents_is_approved_and_the_answer_is_returned(office: Crib, ledger: Ledger):
    script = [calls("desk", message="Offer"), calls("send_offer", deal="d1", price=10), says("Sent."), says("It is.")]
    with override_models(office, ScriptedModel(script)):
        waiting = await office.executions.execute("boss", AgentRequest(message="Offer"))
        answer = await approve(office, waiting)

    assert (waiting.status, answer.status, answer.response) == ("awaiting_approval", "completed", "It is.")
    assert ledger.entries == ["offered 10"]


@pytest.mark.requirement("testing.approvals")
async def test_a_conversation_continues_after_an_approval(office: Crib):
    script = [calls("send_offer", deal="d1", price=10), says("Sent."), says("You asked for an offer.")]
    with override_models(office, ScriptedModel(script)):
        waiting = await office.executions.execute("desk", AgentRequest(message="Offer"))
        await approve(office, waiting)
        more = await office.executions.continue_(waiting.conversation_id or "", "What did I ask?")

    assert more.output == "You asked for an offer."


@pytest.mark.requirement("testing.approvals")
async def test_a_rejected_call_is_not_made(office: Crib, ledger: Ledger):
    waiting = await office.invoke("send_offer", {"deal": "d1", "price": 10})
    ended = await reject(office, waiting, reason="Too cheap")

    assert ended.error is not None
    assert "Too cheap" in ended.error.message
    assert ledger.entries == []
    await assert_not_called(office, ended, "send_offer")


@pytest.mark.requirement("testing.approvals")
async def test_what_does_not_wait_is_told_with_what_does(office: Crib):
    waiting = await office.invoke("send_offer", {"deal": "d1", "price": 10})
    done = await office.invoke("search_deals", {"company": "Acme"})

    with pytest.raises(AssertionError, match=r"no call of 'charge' waits .* awaiting_approval; send_offer waits"):
        await approve(office, waiting, "charge")
    with pytest.raises(AssertionError, match=r"no call waits .* which is completed; no call waits"):
        await reject(office, done)


@pytest.mark.requirement("testing.approvals", "testing.time")
async def test_a_workflow_waits_for_a_person_a_signal_and_time(office: Crib, ledger: Ledger):
    office.workflow(
        "sale",
        steps=[
            {"name": "offer", "tool": "send_offer", "input": {"deal": "d1", "price": 10}},
            {"name": "payment", "wait": {"signal": "paid"}, "depends_on": ["offer"]},
            {"name": "pause", "wait": {"seconds": 7200}, "depends_on": ["payment"]},
            {"name": "mail", "tool": "send_mail", "input": {"to": "ann"}, "depends_on": ["pause"]},
        ],
    )
    instance = await office.instances.start("sale", {})
    statuses = [instance.status]
    instance = await approve(office, instance)
    instance = await send_signal(office, instance, "paid", {"amount": 10})
    assert ledger.entries == ["offered 10"]
    early = await advance(office, hours=1)
    [done] = await advance(office, hours=1)
    final = await office.instances.get(instance.run_id)

    assert (statuses, early, done.status, final.status) == (["awaiting_approval"], [], "completed", "completed")
    assert ledger.entries == ["offered 10", "sent ann"]


@pytest.mark.requirement("testing.time")
async def test_a_signal_that_was_sent_before_is_told(office: Crib):
    order = office.workflow(
        "order", steps=[{"name": "a", "wait": {"signal": "paid"}}, {"name": "b", "wait": {"signal": "sent"}}]
    )
    waiting = await send_signal(office, await order(), "paid")

    with pytest.raises(AssertionError, match=r"signal 'paid' was sent to run .* before"):
        await send_signal(office, waiting, "paid")


@pytest.mark.requirement("testing.time")
async def test_an_approval_expires_when_time_passes():
    @tool(side_effects="writes", requires_confirmation=True, confirmation_expires_s=60)
    async def wire(amount: int) -> int:
        """Send money."""
        return amount

    async with new_crib() as crib:
        crib.add(wire)
        await crib.invoke("wire", {"amount": 3})
        [ended] = await advance(crib, seconds=61)

    assert ended.error is not None
    assert ended.error.reason == "approval_expired"


@pytest.mark.requirement("testing.time")
async def test_the_time_of_a_real_clock_cannot_be_moved():
    async with Crib("memory://") as crib:
        with pytest.raises(InvalidInput, match=r"has a SystemClock, .*; make it with clock=FrozenClock\(\)"):
            await advance(crib, hours=1)


@pytest.mark.requirement("testing.crashes")
@pytest.mark.parametrize(("where", "charged"), [("before", 1), ("after", 2)])
async def test_an_idempotent_call_is_repeated_with_its_key(office: Crib, ledger: Ledger, where: str, charged: int):
    cut_off = crash(office, before="charge") if where == "before" else crash(office, after="charge")
    with cut_off:
        await office.invoke("charge", {"order": "o1", "amount": 3})
    [run] = await office.store.journal.runs("default")
    assert run.status == "running"

    [result] = await restart(office)

    assert (result.status, ledger.entries) == ("completed", ["charged o1"] * charged)
    assert result.unwrap()["charge"] == "o1"


@pytest.mark.requirement("testing.crashes")
async def test_a_call_that_cannot_be_repeated_has_an_unknown_outcome(office: Crib, ledger: Ledger):
    with crash(office, after="send_mail"):
        await office.invoke("send_mail", {"to": "ann"})
    [result] = await restart(office)

    assert result.error is not None
    assert (result.error.reason, ledger.entries) == ("outcome_unknown", ["sent ann"])


@pytest.mark.requirement("testing.crashes")
async def test_what_an_agent_did_before_the_crash_is_not_repeated(office: Crib, ledger: Ledger):
    office.agent("clerk", model=MODEL, tools=["search_deals", "charge"])
    script = [calls("search_deals", company="Acme"), calls("charge", order="o1", amount=3), says("Charged.")]
    with override_models(office, ScriptedModel(script)) as model:
        with crash(office, after="charge"):
            await office.executions.execute("clerk", AgentRequest(message="Charge"))
        [result] = await restart(office)

    assert (result.ok, len(model.requests)) == (True, 3)
    assert ledger.entries == ["searched Acme", "charged o1", "charged o1"]


@pytest.mark.requirement("testing.crashes")
async def test_a_later_call_of_a_workflow_crashes(office: Crib, ledger: Ledger):
    orders = {"type": "object", "properties": {"orders": {"type": "array", "items": {"type": "string"}}}}
    each = {"for_each": {"items": "${input.orders}", "max_concurrency": 1}, "input": {"order": "${item}", "amount": 1}}
    charges = office.workflow("charges", input_schema=orders, steps=[{"name": "each", "tool": "charge", **each}])
    with crash(office, before="charge", call=2):
        await charges(orders=["o1", "o2", "o3"])
    [result] = await restart(office)

    assert (result.ok, ledger.entries) == (True, ["charged o1", "charged o2", "charged o3"])


@pytest.mark.requirement("testing.crashes")
async def test_a_crash_that_did_not_happen_fails_the_test(office: Crib):
    with (
        pytest.raises(AssertionError, match="nothing crashed: tool 'charge' was called 0 times"),
        crash(office, after="charge"),
    ):
        await office.invoke("search_deals", {"company": "Acme"})
    result = await office.invoke("charge", {"order": "o1", "amount": 3})

    assert result.ok


@pytest.mark.requirement("testing.crashes")
@pytest.mark.parametrize("named", [{}, {"before": "a", "after": "b"}, {"before": "a", "call": 0}])
async def test_a_crash_names_one_call(office: Crib, named: dict[str, object]):
    with pytest.raises(InvalidInput, match="name one call"), crash(office, **named):  # pyright: ignore[reportArgumentType]
        pass


@pytest.mark.requirement("testing.calls")
async def test_calls_of_nested_runs_stand_before_the_call_that_made_them(office: Crib):
    looks = together(calls("search_deals", company="Acme"), calls("search_deals", company="Bolt", limit=1))
    with override_models(office, ScriptedModel([calls("desk", message="Ask"), looks, says("Two."), says("Two.")])):
        answer = await office.executions.execute("boss", AgentRequest(message="Ask"))
    found = await calls_of(office, answer)

    assert [call.name for call in found] == ["search_deals", "search_deals", "desk"]
    assert found == await calls_of(office, answer.run_id)
    assert (await assert_called(office, answer, "search_deals", times=2)).input["company"] == "Bolt"
    assert (await assert_called(office, answer, "search_deals", company="Acme")).input["company"] == "Acme"
    await assert_not_called(office, answer, "search_deals", company="Zeta")


@pytest.mark.requirement("testing.calls")
async def test_a_call_that_was_not_made_shows_what_differs(office: Crib):
    result = await office.invoke("search_deals", {"company": "Bolt", "limit": 2})

    with pytest.raises(AssertionError) as differs:
        await assert_called(office, result, "search_deals", company="Acme", limit=2, stage="Won")
    with pytest.raises(AssertionError) as unknown:
        await assert_called(office, result, "search_deal")
    with pytest.raises(AssertionError) as often:
        await assert_called(office, result, "search_deals", times=3)
    with pytest.raises(AssertionError) as made:
        await assert_not_called(office, result, "search_deals")

    call = 'search_deals({"company": "Bolt", "limit": 2}) at call, success'
    assert str(differs.value).splitlines() == [
        'tool \'search_deals\' was not called with {"company": "Acme", "limit": 2, "stage": "Won"}.',
        f"call 1: {call}",
        '  - company: "Acme"',
        '  + company: "Bolt"',
        '  - stage: "Won"',
        "  + stage is missing",
    ]
    assert str(unknown.value).splitlines() == [
        "tool 'search_deal' was not called.",
        "It has called: search_deals (1). Did you mean 'search_deals'?",
    ]
    assert str(often.value).splitlines()[0] == "tool 'search_deals' was called 1 time, not 3 times."
    assert str(made.value).splitlines() == ["tool 'search_deals' was called 1 time, and it should not:", call]


@pytest.mark.requirement("testing.calls")
async def test_a_refused_call_does_not_count_and_its_reason_is_shown(office: Crib):
    refused = await office.invoke("search_deals", {"town": "Bonn"})
    script = [says("Hello.")]
    with override_models(office, ScriptedModel(script)):
        silent = await office.executions.execute("desk", AgentRequest(message="Hello"))

    await assert_not_called(office, refused, "search_deals")
    with pytest.raises(AssertionError, match=r"call 1: search_deals\(.*error: .*town"):
        await assert_called(office, refused, "search_deals")
    with pytest.raises(AssertionError, match="The run has called no tool"):
        await assert_called(office, silent, "search_deals")


@pytest.mark.requirement("testing.calls")
async def test_of_many_calls_the_first_are_shown(office: Crib):
    numbers = {"type": "object", "properties": {"numbers": {"type": "array", "items": {"type": "integer"}}}}
    each = {"for_each": {"items": "${input.numbers}"}, "input": {"company": "Acme"}}
    many = office.workflow("many", input_schema=numbers, steps=[{"name": "each", "tool": "search_deals", **each}])
    result = await many(numbers=[1, 2, 3, 4, 5, 6, 7])

    with pytest.raises(AssertionError, match=r"\.\.\. and 2 more calls of it"):
        await assert_called(office, result, "search_deals", company="Bolt")


@pytest.mark.requirement("testing.crashes")
async def test_a_person_is_asked_whether_a_call_took_effect():
    @tool(side_effects="writes", on_unknown="ask", timeout_s=30)
    async def ship(parcel: str) -> str:
        """Ship a parcel."""
        return f"shipped {parcel}"

    async with new_crib() as crib:
        crib.add(ship)
        with crash(crib, after="ship"):
            await crib.invoke("ship", {"parcel": "p1"})
        await restart(crib)
        await advance(crib, seconds=30)
        [question] = (await crib.approvals.page()).items
        await crib.approvals.decide(question.approval_id, approve=True, happened=True, output="shipped p1")
        result = await crib.resume(question.run_id)

    assert question.question == "outcome"
    assert result.output == "shipped p1"

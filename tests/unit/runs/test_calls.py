"""What a program gets when it calls, waits, sleeps and tells: from the world once, from the journal ever after."""

import asyncio
from datetime import timedelta
from decimal import Decimal

import pytest

from tests.twins import make_definition
from tests.unit.runs.house import House, any_done, ask, hang, settled
from toolcrib.contracts import (
    ApprovalDecided,
    CallFinished,
    CallStarted,
    GuardDecision,
    JournalDivergence,
    Json,
    LimitReached,
    ProgressMade,
    Reason,
    RunSuspended,
    Signal,
    SignalAwaited,
    SignalReceived,
    digest,
)
from toolcrib.core.executor import Dispatch, Outcome
from toolcrib.core.policy import CallPolicy
from toolcrib.core.runs import RunContext, RunEnd, Suspended


def waits_after(*calls: str):
    """A program that makes calls, waits for `go`, and returns the outputs."""

    async def script(context: RunContext) -> Json:
        envelopes = await context.wait_all([context.call(ask(position, at=position)) for position in calls])
        await context.wait_signal("go")
        return [envelope.output for envelope in envelopes]

    return script


@pytest.mark.requirement("runs.recorded")
async def test_a_call_that_the_journal_knows_returns_its_envelope_without_being_executed():
    house = House(waits_after("a", "b"))
    await house.save()
    first = await house.start()
    assert (first.result.status, house.dispatched) == ("awaiting_client", ["a", "b"])
    recorded = await house.envelopes(first.result.run_id)

    await house.signal(first.result.run_id, "go")
    last = await house.engine.resume(first.result.run_id)

    assert last.result.output == [{"at": "a"}, {"at": "b"}]
    assert house.dispatched == ["a", "b"]
    assert await house.envelopes(first.result.run_id) == recorded
    assert last.result.tool_calls == 2


@pytest.mark.requirement("runs.recorded")
async def test_what_a_recorded_call_had_cost_counts_again():
    priced = make_definition("priced", cost_usd_per_call=Decimal("0.25"))

    async def script(context: RunContext) -> Json:
        await context.call(ask("a", "priced"))
        await context.call(ask("b", "unknown"))
        await context.wait_signal("go")
        return [str(context.budget.cost_usd), context.budget.tool_calls]

    house = House(script)
    await house.save(priced)
    run_id = (await house.start()).result.run_id
    await house.signal(run_id, "go")

    assert (await house.engine.resume(run_id)).result.output == ["0.25", 1]


@pytest.mark.requirement("runs.order")
async def test_calls_start_in_the_order_of_the_requests():
    async def script(context: RunContext) -> Json:
        pending = [context.call(ask(position)) for position in "abc"]
        await pending[2]
        return None

    house = House(script)
    await house.save()
    driven = await house.start()

    events = await house.events(driven.result.run_id)
    assert [event.position for event in events if isinstance(event, CallStarted)] == ["a", "b", "c"]


@pytest.mark.requirement("runs.waiting_any")
async def test_waiting_for_any_returns_all_that_are_done_while_others_run():
    release = asyncio.Event()

    async def behaviour(dispatch: Dispatch) -> Outcome:
        if dispatch.position == "slow":
            await release.wait()
        return Outcome(dispatch.position)

    async def script(context: RunContext) -> Json:
        pending = {position: context.call(ask(position)) for position in ("slow", "quick", "quicker")}
        done = await any_done(context, list(pending.values()))
        release.set()
        rest = await context.wait_all(list(pending.values()))
        return [sorted(call.result().position for call in done), [found.output for found in rest]]

    house = House(script, behaviour)
    await house.save()

    driven = await house.start()

    assert driven.result.output == [["quick", "quicker"], ["slow", "quick", "quicker"]]


@pytest.mark.requirement("runs.waiting_any")
async def test_waiting_for_any_skips_a_call_that_waits_for_a_person():
    async def script(context: RunContext) -> Json:
        pending = [context.call(ask("a", "confirmed")), context.call(ask("b"))]
        (done,) = await any_done(context, pending)
        return done.result().position

    house = House(script)
    await house.save()
    await house.save(make_definition("confirmed", requires_confirmation=True))

    assert (await house.start()).result.output == "b"


@pytest.mark.requirement("runs.waiting_any", "runs.suspension")
async def test_when_all_calls_wait_for_somebody_the_run_waits_for_each_of_them():
    async def script(context: RunContext) -> Json:
        pending = [context.call(ask("a", "client")), context.call(ask("b", "confirmed"))]
        return [call.result().position for call in await any_done(context, pending)]

    house = House(script)
    await house.save(make_definition("confirmed", requires_confirmation=True))
    await house.save(make_definition("client", runs_on="client", side_effects="writes"))
    driven = await house.start()

    last = (await house.events(driven.result.run_id))[-1]
    assert isinstance(last, RunSuspended)
    assert (last.status, last.waiting_for) == ("awaiting_approval", ("client:a", "approval:b"))

    await house.signal(driven.result.run_id, "client:a", {"output": "performed"})
    assert (await house.engine.resume(driven.result.run_id)).result.output == ["a"]


@pytest.mark.requirement("runs.waiting_all", "runs.suspension")
async def test_a_call_that_waits_does_not_keep_the_others_from_ending():
    async def script(context: RunContext) -> Json:
        envelopes = await context.wait_all([context.call(ask("a", "confirmed")), context.call(ask("b"))])
        return [found.status for found in envelopes]

    house = House(script)
    await house.save()
    await house.save(make_definition("confirmed", requires_confirmation=True))
    driven = await house.start()
    run_id = driven.result.run_id
    assert driven.result.status == "awaiting_approval"
    assert set(await house.envelopes(run_id)) == {"b"}

    (asked,) = [event for event in await house.events(run_id) if event.type == "approval_requested"]
    decision = {"approved": True, "arguments_hash": asked.arguments_hash, "content_hash": asked.content_hash}
    await house.signal(run_id, "approval:a", decision)
    again = await house.engine.resume(run_id)

    assert again.result.output == ["success", "success"]
    assert house.dispatched == ["b", "a"]


@pytest.mark.requirement("runs.suspension")
async def test_a_suspension_waits_for_calls_that_are_under_way():
    release = asyncio.Event()

    async def behaviour(dispatch: Dispatch) -> Outcome:
        await release.wait()
        return Outcome(dispatch.position)

    async def script(context: RunContext) -> Json:
        call = context.call(ask("a"))
        await context.wait_signal("go")
        return (await call).output

    house = House(script, behaviour)
    await house.save()
    driving = asyncio.create_task(house.start())
    await settled()
    assert not driving.done()
    release.set()
    run_id = (await driving).result.run_id

    events = await house.events(run_id)
    assert isinstance(events[-2], CallFinished)
    assert isinstance(events[-1], RunSuspended)


@pytest.mark.requirement("runs.pending")
async def test_a_pending_call_tells_whether_it_is_done_or_waits():
    seen: list[tuple[bool, bool]] = []

    async def script(context: RunContext) -> Json:
        call = context.call(ask("a", "confirmed"))
        seen.append((call.done, call.parked))
        with pytest.raises(Suspended):
            await any_done(context, [call])
        seen.append((call.done, call.parked))
        return len(seen)

    house = House(script)
    await house.save(make_definition("confirmed", requires_confirmation=True))

    assert (await house.start()).result.output == 2
    assert seen == [(False, False), (False, True)]


@pytest.mark.requirement("runs.signals")
async def test_a_signal_that_is_there_already_is_taken_without_waiting():
    async def script(context: RunContext) -> Json:
        signal = await context.wait_signal("go")
        assert signal is not None
        return signal.payload

    house = House(script)
    run_id = await house.engine.create(await house.request())
    assert await house.signal(run_id, "go", {"n": 1})
    assert not await house.signal(run_id, "go", {"n": 2})

    driven = await house.engine.drive(run_id)

    assert driven.result.output == {"n": 1}
    assert not [event for event in await house.events(run_id) if isinstance(event, SignalAwaited)]


@pytest.mark.requirement("runs.signals", "runs.once")
async def test_a_signal_is_the_same_one_however_often_the_program_runs_and_asks():
    seen: list[Signal | None] = []

    async def script(context: RunContext) -> Json:
        seen.extend([await context.wait_signal("go"), await context.wait_signal("go")])
        await context.wait_signal("later")
        return None

    house = House(script)
    run_id = (await house.start()).result.run_id
    await house.signal(run_id, "go", {"n": 1})
    await house.clock.pass_time(5)
    await house.engine.resume(run_id)
    await house.signal(run_id, "later")
    await house.clock.pass_time(5)
    await house.engine.resume(run_id)

    assert len(seen) == 4
    assert set(map(repr, seen)) == {repr(seen[0])}
    taken = [event.name for event in await house.events(run_id) if isinstance(event, SignalReceived)]
    assert taken == ["go", "later"]


@pytest.mark.requirement("runs.signals")
async def test_a_wait_ends_with_nothing_when_its_time_is_over_and_a_late_signal_changes_nothing():
    async def script(context: RunContext) -> Json:
        signal = await context.wait_signal("go", timeout_s=60)
        await context.wait_signal("end")
        return signal is None

    house = House(script)
    driven = await house.start()
    run_id = driven.result.run_id
    started = house.clock.now()
    assert (await house.store.journal.run(run_id)).wake_at == started + timedelta(seconds=60)
    await house.clock.pass_time(59)
    assert (await house.engine.resume(run_id)).result.status == "awaiting_client"
    await house.clock.pass_time(1)
    assert (await house.engine.resume(run_id)).result.status == "awaiting_client"

    await house.signal(run_id, "go")
    await house.signal(run_id, "end")

    assert (await house.engine.resume(run_id)).result.output is True
    awaited = [event for event in await house.events(run_id) if isinstance(event, SignalAwaited)]
    assert [event.name for event in awaited] == ["go", "end"]
    received = [event for event in await house.events(run_id) if isinstance(event, SignalReceived)]
    assert [(event.name, event.payload, event.made_by) for event in received] == [
        ("go", None, "clock"),
        ("end", {}, "ann"),
    ]


@pytest.mark.requirement("runs.signals")
async def test_a_run_that_is_woken_for_another_reason_goes_on_waiting_for_the_same_moment():
    async def script(context: RunContext) -> Json:
        call = context.call(ask("a", "client"))
        await settled()
        await context.sleep("nap", 60)
        return (await call).output

    house = House(script)
    await house.save(make_definition("client", runs_on="client"))
    run_id = (await house.start()).result.run_id
    wake_at = (await house.store.journal.run(run_id)).wake_at
    await house.clock.pass_time(60)
    await house.signal(run_id, "client:a", {"output": 1})

    driven = await house.engine.resume(run_id)

    assert driven.result.output == 1
    awaited = [event for event in await house.events(run_id) if isinstance(event, SignalAwaited)]
    assert [event.wake_at for event in awaited] == [wake_at]


@pytest.mark.requirement("runs.signals")
async def test_a_process_that_takes_a_waiting_run_too_early_lets_it_wait_until_the_same_moment():
    naps = 0

    async def script(context: RunContext) -> Json:
        nonlocal naps
        naps += 1
        await context.sleep("nap", 60)
        return None

    house = House(script)
    driven = await house.start()
    run_id = driven.result.run_id
    moment = (await house.store.journal.run(run_id)).wake_at
    assert moment is not None
    # Its clock is ahead, and it dies at once.
    assert await house.store.journal.claim(run_id, owner="fast", now=moment, lease_s=-60)

    assert (await house.engine.drive(run_id)).result.status == "awaiting_client"

    assert naps == 2
    assert (await house.store.journal.run(run_id)).wake_at == moment
    awaited = [event for event in await house.events(run_id) if isinstance(event, SignalAwaited)]
    assert len(awaited) == 1


@pytest.mark.requirement("runs.once")
async def test_something_is_told_once_per_key_however_often_the_program_runs():
    async def script(context: RunContext) -> Json:
        for n in (1, 2):
            await context.emit("found", "note", {"n": n})
        await context.wait_signal("go")
        await context.emit("done", "note")
        return None

    house = House(script)
    run_id = (await house.start()).result.run_id
    await house.signal(run_id, "go")
    await house.engine.resume(run_id)

    told = [event for event in await house.events(run_id) if isinstance(event, ProgressMade)]
    assert [(event.key, event.data) for event in told] == [("found", {"n": 1}), ("done", None)]


@pytest.mark.requirement("runs.notes")
async def test_large_texts_are_kept_as_blobs_and_limits_are_noted():
    async def script(context: RunContext) -> Json:
        context.note_limit("max_iterations", 11, 10, "enough")
        return await context.keep(b"prompt")

    house = House(script)
    driven = await house.start()

    assert driven.result.output == digest(b"prompt")
    assert await house.store.blobs.get("default", digest(b"prompt")) == b"prompt"
    (noted,) = [event for event in await house.events(driven.result.run_id) if isinstance(event, LimitReached)]
    assert (noted.limit, noted.value, noted.maximum, noted.message) == ("max_iterations", 11, 10, "enough")


@pytest.mark.requirement("runs.divergence")
async def test_a_program_that_asks_for_another_tool_at_a_recorded_position_is_stopped():
    house = House(waits_after("a"))
    await house.save()
    run_id = (await house.start()).result.run_id
    await house.signal(run_id, "go")

    async def changed(context: RunContext) -> Json:
        return (await context.call(ask("a", "other"))).output

    driven = await House(changed, other=house).engine.resume(run_id)

    assert driven.result.status == "failed"
    assert driven.result.error is not None
    assert "has a call of 'look_up' and the program asks for 'other'" in driven.result.error.message


@pytest.mark.requirement("runs.divergence")
async def test_a_program_that_asks_for_another_tool_at_an_open_position_is_stopped():
    async def script(context: RunContext) -> Json:
        return (await context.call(ask("a"))).output

    async def changed(context: RunContext) -> Json:
        with pytest.raises(JournalDivergence):
            await context.call(ask("a", "other"))
        return "stopped"

    house = House(script, hang)
    await house.save()
    run_id = await house.crash(asyncio.create_task(house.start()))

    assert (await House(changed, other=house).engine.resume(run_id)).result.output == "stopped"


@pytest.mark.requirement("runs.denials")
async def test_a_denied_call_stands_in_the_journal_with_the_decision():
    async def script(context: RunContext) -> Json:
        context.policy = CallPolicy(allowed=frozenset({"other"}))
        denied = await context.call(ask("a"))
        missing = await context.call(ask("b", "nothing"))
        return [denied.status, missing.status]

    house = House(script)
    await house.save()
    driven = await house.start()

    decisions = [
        event.decision for event in await house.events(driven.result.run_id) if isinstance(event, CallFinished)
    ]
    rules = [(found.outcome, found.rule, found.reason) for found in decisions if isinstance(found, GuardDecision)]
    assert rules == [
        ("deny", "allow_list", Reason.TOOL_NOT_ALLOWED),
        ("deny", "resolve", Reason.TOOL_NOT_FOUND),
    ]
    assert house.dispatched == []


@pytest.mark.requirement("runs.decisions")
async def test_a_decision_and_a_client_s_result_are_taken_up_once():
    async def script(context: RunContext) -> Json:
        context.policy = CallPolicy(confirm=frozenset({"client"}))
        envelope = context.call(ask("a", "client"))
        await context.wait_all([envelope])
        await context.wait_signal("go")
        return envelope.result().output

    house = House(script)
    await house.save(make_definition("client", runs_on="client", side_effects="writes"))
    run_id = (await house.start()).result.run_id
    (asked,) = [event for event in await house.events(run_id) if event.type == "approval_requested"]
    decision = {"approved": True, "arguments_hash": asked.arguments_hash, "content_hash": asked.content_hash}
    await house.signal(run_id, "approval:a", decision)
    assert (await house.engine.resume(run_id)).result.status == "awaiting_client"
    await house.signal(run_id, "client:a", {"output": "performed"})
    await house.engine.resume(run_id)
    await house.signal(run_id, "go")

    assert (await house.engine.resume(run_id)).result.output == "performed"

    kinds = [event.type for event in await house.events(run_id)]
    once = ("approval_requested", "approval_decided", "client_handoff", "client_returned")
    assert [kinds.count(kind) for kind in once] == [1, 1, 1, 1]
    (decided,) = [event for event in await house.events(run_id) if isinstance(event, ApprovalDecided)]
    assert decided.made_by == "ann"


@pytest.mark.requirement("runs.decisions")
async def test_after_a_crash_a_decision_and_a_client_s_result_come_from_the_journal():
    hanging = True

    async def behaviour(dispatch: Dispatch) -> Outcome:
        if hanging and dispatch.position == "b":
            await asyncio.get_running_loop().create_future()
        return Outcome(dispatch.position)

    async def script(context: RunContext) -> Json:
        pending = [context.call(ask("a", "client")), context.call(ask("b", "confirmed"))]
        return [found.output for found in await context.wait_all(pending)]

    house = House(script, behaviour)
    await house.save(make_definition("client", runs_on="client", side_effects="writes"))
    await house.save(make_definition("confirmed", requires_confirmation=True, side_effects="reads"))
    run_id = (await house.start()).result.run_id
    (asked,) = [event for event in await house.events(run_id) if event.type == "approval_requested"]
    decision = {"approved": True, "arguments_hash": asked.arguments_hash, "content_hash": asked.content_hash}
    await house.signal(run_id, "approval:b", decision)
    await house.signal(run_id, "client:a", {"output": "performed"})
    await house.crash(asyncio.create_task(house.engine.resume(run_id)))
    hanging = False

    driven = await House(script, behaviour, other=house, owner="second").engine.resume(run_id)

    assert driven.result.output == ["performed", "b"]
    assert driven.result == (await house.engine.drive(run_id)).result


@pytest.mark.requirement("runs.ends")
async def test_a_program_ends_its_run_as_it_says():
    async def script(context: RunContext) -> Json:
        return RunEnd(output=1, stop_reason="max_cost", warnings=("dear",))

    driven = await House(script).start()

    assert (driven.result.status, driven.result.stop_reason) == ("completed", "max_cost")
    assert (driven.result.output, driven.result.warnings) == (1, ("dear",))

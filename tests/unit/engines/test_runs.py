"""How runs begin, end, wait and fail under the local engine."""

import asyncio

import pytest

from tests.twins import ManualClock, make_definition, make_tool
from tests.unit.runs.house import House, ask, hang, settled
from toolcrib.contracts import (
    AgenticImplementation,
    CallFinished,
    Conflict,
    ErrorCode,
    Json,
    LimitReached,
    Limits,
    LLMConfig,
    NotFound,
    Reason,
    RunFinished,
    RunResumed,
    RunStarted,
    RunSuspended,
    ToolDefinition,
)
from toolcrib.core.engines import SystemClock, limits_of, new_run_id
from toolcrib.core.executor import Clock, error
from toolcrib.core.runs import RunContext


async def echo(context: RunContext) -> Json:
    return context.request.input


async def waits(context: RunContext) -> Json:
    signal = await context.wait_signal("go")
    return None if signal is None else signal.payload


@pytest.mark.requirement("engines.start")
async def test_a_run_is_created_driven_and_ended_in_the_journal():
    house = House(echo)

    driven = await house.start(input={"n": 1})

    run = await house.store.journal.run(driven.result.run_id)
    assert (run.status, run.output, run.epoch) == ("completed", {"n": 1}, 1)
    first, last = await house.events(run.run_id)
    assert isinstance(first, RunStarted)
    assert isinstance(last, RunFinished)
    assert [entry.event for entry in driven.log] == [first, last]


@pytest.mark.requirement("engines.start")
async def test_a_created_run_waits_for_whoever_drives_it():
    house = House(echo)
    run_id = await house.engine.create(await house.request(), run_id="mine")
    assert (await house.store.journal.run("mine")).status == "queued"
    with pytest.raises(Conflict):
        await house.engine.create(await house.request(), run_id="mine")

    assert (await House(echo, other=house, owner="second").engine.drive(run_id)).result.status == "completed"
    assert not [event for event in await house.events(run_id) if isinstance(event, RunResumed)]


@pytest.mark.requirement("engines.start")
async def test_an_ended_run_is_not_driven_again_but_told_whole():
    async def script(context: RunContext) -> Json:
        await context.call(ask("a"))
        return 1

    house = House(script)
    await house.save()
    driven = await house.start()

    again = await house.engine.drive(driven.result.run_id)

    assert again.result == driven.result
    assert again.result.tool_calls == 1
    assert list(again.log) == list(driven.log)
    assert (await house.engine.resume(driven.result.run_id)).result == driven.result


@pytest.mark.requirement("engines.start")
async def test_a_run_that_does_not_exist_is_not_found():
    house = House(echo)
    for attempt in (house.engine.drive("none"), house.engine.resume("none"), house.signal("none", "go")):
        with pytest.raises(NotFound):
            await attempt


@pytest.mark.requirement("engines.refused")
@pytest.mark.parametrize(
    ("code", "stop_reason"), [(ErrorCode.POLICY_DENIED, "policy"), (ErrorCode.VALIDATION_ERROR, "error")]
)
async def test_a_refused_run_is_in_the_journal_with_the_reason(code: ErrorCode, stop_reason: str):
    house = House(echo)
    refusal = error(code, Reason.TOOL_BLOCKED, "not this one")

    driven = await house.engine.refuse(await house.request(), refusal)

    assert (driven.result.status, driven.result.stop_reason, driven.result.error) == ("failed", stop_reason, refusal)
    run = await house.store.journal.run(driven.result.run_id)
    assert (run.status, run.error) == ("failed", refusal)
    assert [event.type for event in await house.events(run.run_id)] == ["run_started", "run_finished"]


@pytest.mark.requirement("engines.failed")
@pytest.mark.parametrize(
    ("crash", "message"),
    [
        (KeyError("x"), "the run's program failed with KeyError: 'x'"),
        (TimeoutError("late"), "the run's program failed with TimeoutError: late"),
        (NotFound("no such thing"), "no such thing"),
    ],
)
async def test_a_program_that_crashes_is_a_failed_run(crash: Exception, message: str):
    async def script(context: RunContext) -> Json:
        raise crash

    driven = await House(script).start()

    assert (driven.result.status, driven.result.stop_reason) == ("failed", "error")
    assert driven.result.error is not None
    assert (driven.result.error.reason, driven.result.error.message) == (Reason.TOOL_FAILED, message)


@pytest.mark.requirement("engines.failed", "engines.closed_calls")
async def test_calls_that_go_on_when_a_program_ends_are_stopped_and_have_their_envelopes():
    async def script(context: RunContext) -> Json:
        context.call(ask("a"))
        context.call(ask("b", "act"))
        await settled()
        raise KeyError("x")

    house = House(script, hang)
    await house.save()
    await house.save(make_definition("act", side_effects="writes"))
    driven = await house.start()

    found = await house.envelopes(driven.result.run_id)
    errors = {position: envelope.error for position, envelope in found.items()}
    assert {position: (failed.code, failed.reason) for position, failed in errors.items() if failed} == {
        "a": (ErrorCode.TIMEOUT, Reason.CANCELLED),
        "b": (ErrorCode.UNKNOWN, Reason.OUTCOME_UNKNOWN),
    }
    assert {envelope.run_id for envelope in found.values()} == {driven.result.run_id}
    last = (await house.events(driven.result.run_id))[-1]
    assert isinstance(last, RunFinished)


def impatient(timeout_s: float) -> ToolDefinition:
    """A tool whose runs may take so long."""
    limits = Limits(timeout_s=timeout_s)
    llm = LLMConfig(model="scripted:none")
    agentic = AgenticImplementation(mode="agentic", llm=llm, system_prompt="", limits=limits)
    return make_definition("impatient", side_effects="writes", timeout_s=timeout_s + 60, implementation=agentic)


@pytest.mark.requirement("engines.time_out", "engines.closed_calls")
async def test_a_run_that_takes_too_long_ends_with_what_it_has():
    async def script(context: RunContext) -> Json:
        context.partial = lambda: {"so_far": 7}
        await context.wait_all([context.call(ask("a")), context.call(ask("b", "act"))])
        return None

    house = House(script, hang)
    await house.save()
    await house.save(make_definition("act", side_effects="writes"))
    tool = await house.save(impatient(0.01))
    driven = await house.start(kind="agentic", tool=tool.ref, content_hash=tool.content_hash)

    result = driven.result
    assert (result.status, result.stop_reason, result.output) == ("timed_out", "timeout", {"so_far": 7})
    assert result.error is not None
    assert (result.error.code, result.error.reason) == (ErrorCode.TIMEOUT, Reason.RUN_TIMEOUT)
    assert result.warnings == (result.error.message,)
    assert "timeout_s=0.01" in result.error.message
    found = await house.envelopes(result.run_id)
    reasons = {position: envelope.error and envelope.error.reason for position, envelope in found.items()}
    assert reasons == {"a": Reason.RUN_TIMEOUT, "b": Reason.OUTCOME_UNKNOWN}
    (limit,) = [event for event in await house.events(result.run_id) if isinstance(event, LimitReached)]
    assert limit.limit == "timeout_s"


@pytest.mark.requirement("engines.time_out")
async def test_a_run_without_partial_results_times_out_with_none():
    async def script(context: RunContext) -> Json:
        await asyncio.get_running_loop().create_future()

    house = House(script)
    tool = await house.save(impatient(0.01))
    driven = await house.start(kind="agentic", tool=tool.ref, content_hash=tool.content_hash)

    assert (driven.result.status, driven.result.output) == ("timed_out", None)


@pytest.mark.requirement("engines.time_out", "engines.closed_calls")
async def test_time_used_by_earlier_processes_counts_and_their_open_calls_are_closed_too():
    async def script(context: RunContext) -> Json:
        await context.wait_all([context.call(ask("a", "act"))])
        return None

    house = House(script, hang)
    await house.save(make_definition("act", side_effects="writes"))
    tool = await house.save(impatient(100))
    request = {"kind": "agentic", "tool": tool.ref, "content_hash": tool.content_hash}

    async def slowly(context: RunContext) -> Json:
        house.clock.advance(101)
        return await script(context)

    house.script = slowly
    run_id = await house.crash(asyncio.create_task(house.start(**request)))

    async def never(context: RunContext) -> Json:
        await asyncio.get_running_loop().create_future()

    heir = House(never, other=house, owner="second")
    driven = await heir.engine.resume(run_id)

    assert driven.result.status == "timed_out"
    envelope = (await heir.envelopes(run_id))["a"]
    assert envelope.error is not None
    assert envelope.error.reason is Reason.OUTCOME_UNKNOWN


@pytest.mark.requirement("engines.time_out")
async def test_waiting_does_not_count_against_the_time_out():
    house = House(waits)
    tool = await house.save(impatient(100))
    driven = await house.start(kind="agentic", tool=tool.ref, content_hash=tool.content_hash)
    await house.clock.pass_time(10_000)
    await house.signal(driven.result.run_id, "go", {"n": 1})

    assert (await house.engine.resume(driven.result.run_id)).result.output == {"n": 1}


@pytest.mark.requirement("engines.time_out")
def test_a_configured_length_of_answers_raises_the_limit_and_a_single_call_s_run_outlasts_the_call():
    agentic = impatient(5).implementation
    assert isinstance(agentic, AgenticImplementation)
    talkative = agentic.model_copy(update={"llm": LLMConfig(model="scripted:none", max_tokens=8000)})

    assert limits_of(make_tool(timeout_s=5), "tool").timeout_s > 5
    assert limits_of(make_tool(implementation=agentic), "agentic").max_tokens_per_call == 4000
    assert limits_of(make_tool(implementation=talkative), "agentic").max_tokens_per_call == 8000
    around = limits_of(make_tool(implementation=agentic, timeout_s=5), "tool")
    assert around.timeout_s > 5
    assert around.max_tool_calls == agentic.limits.max_tool_calls + 1


@pytest.mark.requirement("engines.resume")
@pytest.mark.parametrize(
    ("names", "cause"),
    [(["approval:a"], "approval"), (["client:a"], "client"), (["go"], "signal"), ([], "timer")],
)
async def test_the_journal_tells_why_a_run_goes_on(names: list[str], cause: str):
    async def script(context: RunContext) -> Json:
        for name in ("approval:a", "client:a", "go"):
            if name in names:
                await context.wait_signal(name)
        await context.sleep("nap", 0 if names else 5)
        return None

    house = House(script)
    driven = await house.start()
    run_id = driven.result.run_id
    suspended = driven.log[-1].event
    assert isinstance(suspended, RunSuspended)
    for name in names:
        await house.signal(run_id, name)
    await house.clock.pass_time(5)
    await house.engine.resume(run_id)

    (resumed,) = [event for event in await house.events(run_id) if isinstance(event, RunResumed)]
    assert (resumed.cause, resumed.epoch) == (cause, 2)


@pytest.mark.requirement("engines.resume")
async def test_a_run_that_waits_is_told_as_it_stands():
    house = House(waits)
    driven = await house.start()

    again = await house.engine.resume(driven.result.run_id)

    assert again.result == driven.result
    assert (await house.store.journal.run(driven.result.run_id)).epoch == 1


@pytest.mark.requirement("engines.resume")
async def test_a_signal_that_comes_while_the_run_is_being_suspended_is_not_missed():
    house = House(waits)

    async def signalled(context: RunContext) -> Json:
        try:
            return await waits(context)
        finally:
            await house.signal(context.run_id, "go", {"n": 1})

    house.script = signalled
    driven = await house.start()
    assert driven.result.status == "awaiting_client"
    house.script = waits

    (recovered,) = await house.engine.recover()

    assert recovered.result.output == {"n": 1}


@pytest.mark.requirement("engines.cancelled")
async def test_a_cancelled_caller_leaves_a_run_that_another_process_can_go_on_with():
    ended: list[str] = []

    async def script(context: RunContext) -> Json:
        try:
            return (await context.call(ask("a"))).output
        finally:
            ended.append("program")

    house = House(script, hang)
    await house.save()
    run_id = await house.crash(asyncio.create_task(house.start()))
    assert ended == ["program"]
    assert not [event for event in await house.events(run_id) if isinstance(event, CallFinished)]

    assert (await House(script, other=house, owner="second").engine.resume(run_id)).result.output == {}


@pytest.mark.requirement("engines.clock")
async def test_the_real_clock_and_ids_go_forward():
    clock: Clock = SystemClock()
    before = clock.now(), clock.monotonic()
    await clock.sleep(0)
    assert (clock.now(), clock.monotonic()) >= before
    assert clock.now().tzinfo is not None
    ids = {new_run_id() for _ in range(100)}
    assert len(ids) == 100
    assert all(len(run_id) == len("run_") + 32 for run_id in ids)
    assert ManualClock().now() < clock.now()

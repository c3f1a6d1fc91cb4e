"""Steps that wait: for a while, until a moment, for a signal; across processes, and each for itself."""

import asyncio
from pathlib import Path

import pytest

from tests.unit.runs.house import StandingClock, settled
from tests.unit.workflows.flows import HOUR, error_of, run, save, steps_of
from toolcrib import Crib, tool
from toolcrib.contracts import JsonObject, Reason, SignalAwaited
from toolcrib.contracts.workflows import WorkflowInstance, event_signal

pytestmark = pytest.mark.requirement("workflow_steps.wait")

AFTER: JsonObject = {"name": "after", "output": "done", "depends_on": ["rest"]}


def rest(**wait: object) -> JsonObject:
    return {"name": "rest", "wait": wait}


@pytest.mark.parametrize(
    ("wait", "given"),
    [
        ({"seconds": HOUR}, {}),
        ({"seconds": "${input.hours * 3600}"}, {"hours": 1}),
        ({"until": "2026-01-31T13:00:00Z"}, {}),
        ({"until": "${input.at}"}, {"at": "2026-01-31T15:00:00+02:00"}),
    ],
    ids=["seconds", "computed seconds", "moment", "computed moment"],
)
async def test_a_run_waits_that_long_and_not_longer(wait: JsonObject, given: JsonObject):
    clock = StandingClock()  # it is noon
    async with Crib("memory://", clock=clock) as crib:
        waiting = await run(crib, rest(**wait), AFTER, given=given)
        clock.advance(HOUR - 1)
        early = await crib.resume(waiting.run_id)
        clock.advance(1)
        result = await crib.resume(waiting.run_id)

    assert (waiting.status, early.summary.status) == ("awaiting_client", "awaiting_client")
    assert result.output == {"after": "done"}


@pytest.mark.parametrize("wait", [{"until": "2026-01-31T12:00:00Z"}, {"until": "2001-01-01T00:00:00Z"}, {"seconds": 0}])
async def test_what_is_over_is_no_wait(wait: JsonObject):
    async with Crib("memory://", clock=StandingClock()) as crib:
        assert (await run(crib, rest(**wait), AFTER)).status == "completed"


async def test_a_short_wait_does_not_suspend_the_run():
    clock = StandingClock()
    async with Crib("memory://", clock=clock) as crib:
        await save(crib, rest(seconds=2), AFTER)
        running = asyncio.create_task(crib.instances.start("flow", {}))
        await settled()
        assert not running.done()
        await clock.pass_time(2)

        assert (await running).status == "completed"


@pytest.mark.requirement("workflow_steps.durable_wait")
async def test_waits_outlive_the_process(tmp_path: Path):
    clock, url = StandingClock(), f"sqlite:///{tmp_path}/crib.db"
    news: JsonObject = {"name": "news", "wait": {"signal": "paid", "timeout_s": 2 * HOUR}}
    async with Crib(url, clock=clock) as crib:
        waiting = await run(crib, rest(seconds=HOUR), news, AFTER)
    clock.advance(HOUR)
    async with Crib(url, clock=clock) as crib:
        first = await crib.resume(waiting.run_id)
        await crib.instances.signal(waiting.run_id, "paid", {"by": "ann"})
    async with Crib(url, clock=clock) as crib:
        second = await crib.resume(waiting.run_id)

    assert first.summary.status == "awaiting_client"
    assert second.output == {"news": {"by": "ann"}, "after": "done"}


# Signals --------------------------------------------------------------------------------------------------------------


def news(name: str = "news", **fields: object) -> JsonObject:
    return {"name": name, "wait": {"signal": "paid", **fields}}


async def test_what_a_signal_brings_is_the_output_and_may_be_mapped():
    step = {**news(), "output": "${output.by}"}
    async with Crib("memory://", clock=StandingClock()) as crib:
        waiting = await run(crib, step)
        assert await crib.instances.signal(waiting.run_id, "paid", {"by": "ann"})
        assert not await crib.instances.signal(waiting.run_id, "paid", {"by": "ben"})

        assert (await crib.resume(waiting.run_id)).output == {"news": "ann"}


async def test_a_signal_that_came_before_the_step_counts():
    async with Crib("memory://", clock=(clock := StandingClock())) as crib:
        waiting = await run(crib, rest(seconds=HOUR), {**news(), "depends_on": ["rest"]})
        await crib.instances.signal(waiting.run_id, "paid", {"by": "ann"})
        clock.advance(HOUR)

        assert (await crib.resume(waiting.run_id)).output == {"news": {"by": "ann"}}


async def test_a_signal_that_does_not_come_in_time_fails_the_step():
    async with Crib("memory://", clock=(clock := StandingClock())) as crib:
        waiting = await run(crib, {**news(timeout_s=HOUR), "on_error": "continue"}, {**AFTER, "depends_on": ["news"]})
        clock.advance(HOUR)
        await crib.resume(waiting.run_id)
        instance = await crib.instances.get(waiting.run_id)

    error = error_of(instance, "news")
    assert (error.code, error.reason) == ("TIMEOUT", Reason.WAIT_TIMEOUT)
    assert error.message.startswith("step 'news' got no signal 'paid' within timeout_s=3600; send it earlier")
    assert instance.output == {"after": "done"}


async def test_steps_that_wait_for_one_signal_wait_each_as_long_as_it_will():
    async with Crib("memory://", clock=(clock := StandingClock())) as crib:
        waiting = await run(crib, {**news("soon", timeout_s=HOUR), "on_error": "continue"}, news("later"))
        clock.advance(HOUR)
        await crib.resume(waiting.run_id)
        await crib.instances.signal(waiting.run_id, "paid", {"by": "ann"})
        result = await crib.resume(waiting.run_id)
        instance = await crib.instances.get(waiting.run_id)

    assert result.output == {"soon": None, "later": {"by": "ann"}}
    assert error_of(instance, "soon").reason is Reason.WAIT_TIMEOUT


async def test_elements_of_a_list_wait_each_for_themselves():
    step = {**news(), "for_each": "${input.items}", "output": "${item} ${output.by}"}
    async with Crib("memory://", clock=StandingClock()) as crib:
        waiting = await run(crib, step, given={"items": ["a", "b"]})
        events = [entry.event for entry in await crib.store.journal.events(waiting.run_id)]
        await crib.instances.signal(waiting.run_id, "paid", {"by": "ann"})
        result = await crib.resume(waiting.run_id)

    awaited = [event for event in events if isinstance(event, SignalAwaited)]
    assert [(event.name, event.position) for event in awaited] == [("event:paid", "news[0]"), ("event:paid", "news[1]")]
    assert result.output == {"news": ["a ann", "b ann"]}


async def test_a_signal_of_a_workflow_can_decide_on_nothing():
    assert event_signal("approval:pay").startswith("event:")


async def test_other_branches_go_on_while_one_waits():
    @tool
    async def note() -> str:
        """Note."""
        return "noted"

    async with Crib("memory://", clock=StandingClock()) as crib:
        crib.add(note)
        waiting = await run(crib, news(), {"name": "note", "tool": "note"})

    assert {name: step.status for name, step in steps_of(waiting).items()} == {"news": "waiting", "note": "succeeded"}


# What cannot be waited for --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wait", "message"),
    [
        ({}, "step 'rest' cannot use its wait: it says nothing; give one of seconds, until and signal"),
        ({"seconds": 1, "signal": "x"}, "it says seconds and signal; give one of"),
        ({"seconds": "${input.word}"}, "its wait/seconds: it must be a number of seconds, and is string"),
        ({"seconds": "${-1}"}, "its wait/seconds: it must be from 0 to 31,536,000, and is -1"),
        ({"seconds": "${input.gone}"}, "step 'rest' has no value for its wait/seconds"),
        ({"until": "${input.word}"}, "its wait/until: it must be a moment of RFC 3339, and is 'soon'; write it like"),
        ({"until": "${1}"}, "its wait/until: it must be a moment of RFC 3339, and is number"),
        ({"until": "2026-01-31T12:00:00"}, "its wait/until: '2026-01-31T12:00:00' has no time zone"),
    ],
)
@pytest.mark.requirement("workflow_steps.messages")
async def test_a_wait_that_cannot_be_is_a_failure_of_the_step_that_says_why(wait: JsonObject, message: str):
    async with Crib("memory://", clock=StandingClock()) as crib:
        instance: WorkflowInstance = await run(crib, rest(**wait), given={"word": "soon"})

    assert instance.status == "failed"
    assert error_of(instance, "rest").code == "VALIDATION_ERROR"
    assert message in error_of(instance, "rest").message

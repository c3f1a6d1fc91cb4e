"""Calls outside any run, and the result that the Python API returns."""

from decimal import Decimal

import pytest

from tests.twins import Rig, make_context, make_tool
from tests.unit.runs.house import House, ask
from toolcrib.contracts import Conflict, ErrorCode, Json, RunResult, ToolError
from toolcrib.core.executor import CallerQuestion
from toolcrib.core.runs import NullJournal, Result, RunContext


@pytest.mark.requirement("runs.unrecorded")
async def test_a_call_outside_a_run_may_be_judged_and_does_nothing():
    tool = make_tool("act", side_effects="writes")
    rig = Rig(tool)
    journal = NullJournal()
    prepared = await rig.run("act")
    asked = rig.journal.requests
    await rig.run("act", context=make_context(journal=rig.journal))
    (intent, *_) = rig.journal.intents

    for refusal in (
        journal.intend(intent),
        journal.hand_off(prepared),
        journal.spawn("a", tool, {}),
    ):
        with pytest.raises(Conflict, match="'act' was called outside a run"):
            await refusal
    with pytest.raises(Conflict, match="'act' was called outside a run"):
        journal.live_call("act", 1)
    assert (journal.find_client_call("a"), journal.find_failed_call("a")) == (None, None)
    assert asked == []


@pytest.mark.requirement("runs.unrecorded")
async def test_a_call_outside_a_run_cannot_wait_for_a_person():
    rig = Rig(make_tool("act", requires_confirmation=True))
    await rig.run("act")
    (request,) = rig.journal.requests

    with pytest.raises(Conflict, match="start a run"):
        await NullJournal().confirm(request)
    question = CallerQuestion(number=1, text="Which?")
    assert await NullJournal().ask_caller("a", question) is None


@pytest.mark.requirement("runs.result")
async def test_a_result_shows_output_cost_envelopes_events_and_trace():
    async def script(context: RunContext) -> Json:
        return (await context.call(ask("a"))).output

    house = House(script)
    await house.save()
    driven = await house.start()
    result = Result(driven.result, driven.log)

    assert result.ok
    assert (result.run_id, result.output, result.cost_usd) == (driven.result.run_id, {}, Decimal(0))
    assert [found.position for found in result.envelopes] == ["a"]
    assert [entry.number for entry in result.events] == [1, 2, 3, 4]
    assert result.trace.run_id == result.run_id
    assert result.error is None

    error = ToolError(code=ErrorCode.UNKNOWN, message="the CRM is down")
    failed = Result(RunResult(run_id="r1", status="failed", error=error), driven.log)
    assert (failed.ok, failed.error) == (False, error)

"""A call that a client performs, across resumptions."""

import pytest

from tests.twins import make_definition
from tests.unit.runs.house import LEASE_S, House, ask
from toolcrib.contracts import ClientResult, ClientReturned, Json, RunEvent, approval_signal
from toolcrib.core.runs import RunContext, client_signal, decision_on, waiting_approvals


async def both(context: RunContext) -> Json:
    calls = [context.call(ask("a", "confirmed")), context.call(ask("b", "client"))]
    return [envelope.output for envelope in await context.wait_all(calls)]


async def waiting_for_both() -> tuple[House, str]:
    """A run that waits for a person and for a client."""
    house = House(both)
    await house.save(make_definition("confirmed", requires_confirmation=True))
    await house.save(make_definition("client", runs_on="client"))
    return house, (await house.start()).result.run_id


@pytest.mark.requirement("runs.decisions")
async def test_a_run_that_resumes_for_another_reason_hands_over_once():
    house, run_id = await waiting_for_both()
    (asked,) = waiting_approvals(await house.store.journal.events(run_id), ())
    decision = decision_on(asked, approve=True, edited_input=None, reason=None)
    await house.signal(run_id, approval_signal("a"), decision.model_dump(mode="json"))

    driven = await house.engine.resume(run_id)

    assert driven.result.status == "awaiting_client"
    assert [event.type for event in await house.events(run_id)].count("client_handoff") == 1


@pytest.mark.requirement("runs.decisions")
async def test_a_result_that_was_taken_up_before_a_crash_is_not_asked_for_again():
    house, run_id = await waiting_for_both()
    await house.signal(run_id, client_signal("b"), {"output": "too late"})
    journal = house.store.journal
    claim = await journal.claim(run_id, owner="ghost", now=house.clock.now(), lease_s=LEASE_S)
    assert claim is not None
    returned = ClientReturned(position="b", result=ClientResult(output="in time"), made_by="ann")
    run = claim.run
    entry = RunEvent(run.run_id, run.events + 1, house.clock.now(), run.realm, run.made_by, returned)
    await journal.append(run.run_id, run.epoch, [entry])
    await house.clock.pass_time(LEASE_S + 1)
    (asked,) = waiting_approvals(await journal.events(run_id), ())
    decision = decision_on(asked, approve=True, edited_input=None, reason=None)
    await house.signal(run_id, approval_signal("a"), decision.model_dump(mode="json"))

    driven = await house.engine.resume(run_id)

    assert driven.result.output is not None
    assert driven.result.output[1] == "in time"

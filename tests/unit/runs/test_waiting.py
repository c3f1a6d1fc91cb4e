"""Which calls of a run wait for somebody, as its journal tells."""

import pytest

from tests.twins import make_definition
from tests.unit.runs.house import House, ask
from toolcrib.contracts import Conflict, Json, approval_signal
from toolcrib.core.runs import RunContext, client_signal, decision_on, waiting_approvals, waiting_at, waiting_handoffs


async def both(context: RunContext) -> Json:
    calls = [context.call(ask("a", "confirmed")), context.call(ask("b", "client"))]
    return [envelope.output for envelope in await context.wait_all(calls)]


@pytest.mark.requirement("runs.waiting")
async def test_a_call_waits_until_it_was_answered():
    house = House(both)
    await house.save(make_definition("confirmed", requires_confirmation=True))
    await house.save(make_definition("client", runs_on="client"))
    run_id = (await house.start()).result.run_id
    events = await house.store.journal.events(run_id)

    (asked,) = waiting_approvals(events, ())
    (handed,) = waiting_handoffs(events, ())
    assert (asked.position, handed.position) == ("a", "b")
    assert waiting_approvals(events, (approval_signal("a"),)) == []
    assert waiting_handoffs(events, (client_signal("b"),)) == []

    decision = decision_on(asked, approve=True, edited_input={"n": 1}, reason="fine")
    assert (decision.arguments_hash, decision.content_hash) == (asked.arguments_hash, asked.content_hash)
    await house.signal(run_id, approval_signal("a"), decision.model_dump(mode="json"))
    await house.signal(run_id, client_signal("b"), {"output": 2})
    assert (await house.engine.resume(run_id)).result.output == [{"n": 1}, 2]
    events = await house.store.journal.events(run_id)
    assert [*waiting_approvals(events, ()), *waiting_handoffs(events, ())] == []


@pytest.mark.requirement("runs.waiting")
def test_an_answer_to_a_call_that_does_not_wait_is_refused_with_those_that_do():
    assert waiting_at("r1", "a", {"a": 1}, "approval") == 1
    with pytest.raises(Conflict, match="no call at 'c' that waits for approval; waiting: a, b"):
        waiting_at("r1", "c", {"b": 1, "a": 2}, "approval")
    with pytest.raises(Conflict, match="waiting: none"):
        waiting_at("r1", "c", {}, "a client")

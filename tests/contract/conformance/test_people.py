"""Calls that a person decides on: the same on every kind of tool."""

import pytest

from tests.contract.conformance.kind import Kind
from tests.contract.conformance.kinds import every_kind
from tests.contract.conformance.stand import Stand, standing
from tests.contract.conformance.world import Behaviour
from toolcrib.contracts import ErrorCode, JsonObject, Reason, ToolEnvelope


async def decided(stand: Stand, *, approve: bool, edited: JsonObject | None = None) -> ToolEnvelope:
    """The envelope of a call on which a person has decided."""
    waiting = await stand.start()
    assert waiting.summary.status == "awaiting_approval"
    assert stand.world.acts == []
    [request] = await stand.crib.pending_approvals(waiting.run_id)
    assert await stand.crib.decide(waiting.run_id, request.position, approve=approve, edited_input=edited, reason="so")
    result = await stand.kind.settle(stand.crib, await stand.crib.resume(waiting.run_id))
    [envelope] = result.envelopes
    assert envelope.call_id == request.call_id
    return envelope


@pytest.mark.requirement("conformance.people")
@every_kind
async def test_an_approved_call_runs(kind: type[Kind]):
    async with standing(kind, requires_confirmation=True) as stand:
        envelope = await decided(stand, approve=True)

    assert (envelope.status, envelope.approved_input) == ("success", None)
    assert stand.kind.said(envelope.output) == "ok"
    assert len(stand.world.acts) == 1


@pytest.mark.requirement("conformance.people")
@every_kind
async def test_a_rejected_call_does_not_run(kind: type[Kind]):
    async with standing(kind, requires_confirmation=True) as stand:
        envelope = await decided(stand, approve=False)

    assert envelope.error is not None
    assert (envelope.status, envelope.error.code) == ("denied", ErrorCode.POLICY_DENIED)
    assert envelope.error.reason is Reason.APPROVAL_REJECTED
    assert stand.world.acts == []


@pytest.mark.requirement("conformance.people")
@every_kind
async def test_an_edited_call_runs_as_the_person_changed_it_and_keeps_its_id(kind: type[Kind]):
    async with standing(kind, requires_confirmation=True) as stand:
        edited = stand.kind.arguments(Behaviour.BE_BIG)
        envelope = await decided(stand, approve=True, edited=edited)

    assert (envelope.status, envelope.input, envelope.approved_input) == ("success", edited, edited)
    assert stand.kind.said(envelope.output).startswith("big")

"""Calls that are cut off in the middle: the same on every kind of tool."""

import asyncio

import pytest

from tests.contract.conformance.envelopes import check_outcome, check_time
from tests.contract.conformance.kind import Kind
from tests.contract.conformance.kinds import every_kind_that_writes, kinds_that
from tests.contract.conformance.stand import Stand, standing
from tests.contract.conformance.world import Behaviour
from toolcrib import Result
from toolcrib.contracts import DELEGATES, OWNER, ErrorCode, Reason


async def cut_off(stand: Stand) -> Result:
    """A call that is cancelled while it acts, and what becomes of its run when a process takes it on."""
    calling = asyncio.create_task(stand.start(Behaviour.HANG))
    await stand.world.started.wait()
    calling.cancel()
    await asyncio.wait([calling])
    assert calling.cancelled()
    runs = await stand.crib.store.journal.runs(OWNER.realm)
    [outer] = [run for run in runs if run.request.parent_run_id is None]
    assert not outer.ended
    stand.world.released.set()
    return await stand.kind.settle(stand.crib, await stand.crib.resume(outer.run_id))


@pytest.mark.requirement("conformance.crashes")
@kinds_that(Behaviour.HANG)
async def test_a_call_that_only_reads_is_repeated(kind: type[Kind]):
    async with standing(kind) as stand:
        envelope = stand.ended(await cut_off(stand))

    assert envelope.status == "success"
    assert stand.kind.said(envelope.output) == "ok"


@pytest.mark.requirement("conformance.crashes")
@every_kind_that_writes
async def test_a_call_that_writes_is_not_repeated_and_a_run_of_its_own_goes_on(kind: type[Kind]):
    async with standing(kind) as stand:
        await stand.define(**stand.kind.writing())
        [envelope] = (await cut_off(stand)).envelopes

    check_outcome(envelope)
    check_time(envelope)
    if stand.tool.definition.implementation.kind in DELEGATES:
        assert envelope.status == "success"
        return
    assert envelope.error is not None
    assert (envelope.error.code, envelope.error.reason) == (ErrorCode.UNKNOWN, Reason.OUTCOME_UNKNOWN)
    assert len(stand.world.acts) == 1

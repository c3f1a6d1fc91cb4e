"""Ways to decide on what a workflow asks on one's own behalf: through who resumes it, or by telling it something."""

import pytest

from tests.unit.workflows.flows import save
from toolcrib import Crib
from toolcrib.contracts import Approval, JsonObject, PermissionDenied, Principal

pytestmark = pytest.mark.requirement("workflow_attacks.approval")

ANN, BOB, CEM, DAN = Principal(id="ann"), Principal(id="bob"), Principal(id="cem"), Principal(id="dan")
NEWS: JsonObject = {"name": "news", "wait": {"signal": "news"}}
ASKS: JsonObject = {"name": "ask", "approval": {"message": "Pay ${news.amount}?"}, "depends_on": ["news"]}


async def only(crib: Crib) -> Approval:
    """What waits for a person."""
    (approval,) = (await crib.approvals.page()).items
    return approval


async def refused(crib: Crib, approval: Approval, *people: Principal) -> None:
    """None of them decides."""
    for who in people:
        with pytest.raises(PermissionDenied, match="takes part in the run"):
            await crib.acting_as(who).approvals.decide(approval.approval_id, approve=True)


async def heard(crib: Crib, run_id: str, by: Principal) -> None:
    """Tell an instance the news, and carry it on."""
    await crib.acting_as(by).instances.signal(run_id, "news", {"amount": 1_000_000})
    await crib.instances.resume(run_id)


async def test_who_told_an_instance_what_it_waited_for_does_not_decide_what_it_asks_then():
    async with Crib("memory://") as crib:
        await save(crib, NEWS, ASKS)
        waiting = await crib.acting_as(ANN).instances.start("flow", {})
        await heard(crib, waiting.run_id, BOB)
        approval = await only(crib)

        await refused(crib, approval, ANN, BOB)
        answered = await crib.acting_as(CEM).approvals.decide(approval.approval_id, approve=True)

    assert answered.status == "approved"


@pytest.mark.parametrize("nested", [False, True])
async def test_who_had_a_part_in_an_instance_does_not_decide_in_one_that_takes_it_up(nested: bool):
    async with Crib("memory://") as crib:
        await save(crib, NEWS, ASKS, name="inner")
        await save(crib, {"name": "inside", "workflow": "inner"})
        name = "flow" if nested else "inner"
        began = await crib.acting_as(ANN).instances.start(name, {})
        hears = [each.run_id for each in await crib.store.journal.runs("default", tool="inner")]
        await heard(crib, hears[0], BOB)
        await crib.instances.cancel(began.run_id)
        await crib.acting_as(CEM).instances.resume(began.run_id)
        approval = await only(crib)

        await refused(crib, approval, ANN, BOB, CEM)
        answered = await crib.acting_as(DAN).approvals.decide(approval.approval_id, approve=True)

    assert answered.status == "approved"

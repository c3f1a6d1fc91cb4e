"""Steps that ask a person: what is shown, what may become of it, and who may decide."""

from typing import Any

import pytest

from tests.unit.runs.house import StandingClock
from tests.unit.workflows.flows import HOUR, error_of, run, steps_of
from toolcrib import Crib, tool
from toolcrib.contracts import ApprovalWithdrawn, InvalidInput, JsonObject, PermissionDenied, Principal, Reason
from toolcrib.contracts.workflows import WorkflowInstance

pytestmark = pytest.mark.requirement("workflow_steps.approval")

ANN = Principal(id="ann", grants=("ai://workflows/*", "ai://tools/*", "ai://approvals/*"))
BEN = Principal(id="ben", grants=("ai://approvals/flow/write",))
PAY: JsonObject = {"amount": 120, "to": "Acme", "why": None}


def agree(**fields: Any) -> JsonObject:
    show = {"amount": "${input.amount}", "to": "${input.to}", "why": "${input.why}"}
    approval = {"message": "Pay ${input.amount} to ${input.to}?", "show": show}
    return {"name": "agree", "approval": {**approval, **fields}}


async def decide(crib: Crib, waiting: WorkflowInstance, **answer: Any) -> WorkflowInstance:
    """Decide on the one thing that waits, and carry the run on."""
    [asked] = (await crib.approvals.page()).items
    await crib.approvals.decide(asked.approval_id, **answer)
    await crib.resume(waiting.run_id)
    return await crib.instances.get(waiting.run_id)


async def test_what_was_shown_is_put_out_when_somebody_has_agreed():
    async with Crib("memory://") as crib:
        waiting = await run(crib, agree(), {"name": "paid", "output": "${agree.amount}"}, given=PAY)
        [asked] = (await crib.approvals.page()).items
        shown = await crib.approvals.get(asked.approval_id)
        instance = await decide(crib, waiting, approve=True)
        trace = (await crib.trace(waiting.run_id)).model_dump(mode="json")

    assert waiting.status == "awaiting_approval"
    assert (asked.tool, asked.step, asked.position) == ("flow", "agree", "agree")
    assert (asked.message, asked.input) == ("Pay 120 to Acme?", PAY)
    assert shown.preview is not None
    assert shown.preview.arguments == PAY
    assert (steps_of(instance)["agree"].output, instance.output) == (PAY, {"paid": 120})
    [step] = [step for step in trace["steps"] if step["type"] == "approval"]
    assert (step["status"], step["made_by"]) == ("approved", "owner")


async def test_what_the_person_made_of_it_is_put_out():
    async with Crib("memory://") as crib:
        waiting = await run(crib, agree(), given=PAY)
        instance = await decide(crib, waiting, approve=True, edited_input={**PAY, "amount": 99.5, "why": "less"})

    assert steps_of(instance)["agree"].output == {"amount": 99.5, "to": "Acme", "why": "less"}


@pytest.mark.parametrize(
    "edited", [{"amount": 1}, {**PAY, "amount": "much"}, {**PAY, "more": 1}], ids=["less", "another kind", "more"]
)
async def test_what_later_steps_could_not_read_is_refused_and_the_request_stays_open(edited: JsonObject):
    async with Crib("memory://") as crib:
        await run(crib, agree(), given=PAY)
        [asked] = (await crib.approvals.page()).items
        with pytest.raises(InvalidInput, match="not valid"):
            await crib.approvals.decide(asked.approval_id, approve=True, edited_input=edited)

        assert (await crib.approvals.get(asked.approval_id)).approval.status == "waiting"


async def test_a_rejected_step_fails_with_what_the_person_said():
    async with Crib("memory://") as crib:
        waiting = await run(crib, agree(), given=PAY)
        instance = await decide(crib, waiting, approve=False, reason="too much")

    error = error_of(instance, "agree")
    assert (error.code, error.reason) == ("POLICY_DENIED", Reason.APPROVAL_REJECTED)
    assert error.message == "step 'agree' was rejected by a person: too much"
    assert (instance.status, instance.stop_reason) == ("incomplete", "policy")
    assert instance.error == error


async def test_what_follows_a_rejection_can_be_another_way():
    refuse = {"name": "refuse", "output": "${error.code} ${error.step}: ${error.details.said}"}
    async with Crib("memory://") as crib:
        waiting = await run(crib, {**agree(), "on_error": {"go_to": "refuse"}}, refuse, given=PAY)
        instance = await decide(crib, waiting, approve=False, reason="too much")

    assert (instance.status, steps_of(instance)["refuse"].output) == ("completed", "POLICY_DENIED agree: too much")


async def test_what_nobody_decides_in_time_counts_as_rejected():
    async with Crib("memory://", clock=(clock := StandingClock())) as crib:
        waiting = await run(crib, agree(expires_s=HOUR), given=PAY)
        clock.advance(HOUR)
        await crib.resume(waiting.run_id)
        instance = await crib.instances.get(waiting.run_id)

    assert error_of(instance, "agree").reason is Reason.APPROVAL_EXPIRED
    assert "within expires_s=3600" in error_of(instance, "agree").message


async def test_who_has_started_the_run_cannot_decide_and_another_one_with_the_grant_can():
    async with Crib("memory://") as crib:
        await run(crib, agree(), given=PAY)
        waiting = await crib.acting_as(ANN).instances.start("flow", PAY)
        asked = next(item for item in (await crib.approvals.page()).items if item.run_id == waiting.run_id)
        with pytest.raises(PermissionDenied, match="takes part in the run"):
            await crib.acting_as(ANN).approvals.decide(asked.approval_id, approve=True)
        approval = await crib.acting_as(BEN).approvals.decide(asked.approval_id, approve=True)
        result = await crib.resume(waiting.run_id)

    assert (approval.status, approval.decided_by) == ("approved", "ben")
    assert result.output == {"agree": PAY}


async def test_for_a_list_there_is_one_request_for_each_element():
    step = {
        "name": "agree",
        "for_each": {"items": "${input.names}", "on_item_error": "continue"},
        "approval": {"message": "Invite ${item} (${index + 1})?", "show": {"name": "${item}"}},
        "output": "${output.name}",
    }
    async with Crib("memory://") as crib:
        waiting = await run(crib, step, given={"names": ["Ann", "Ben", "Eve"]})
        asked = (await crib.approvals.page()).items
        for approval in asked:
            await crib.approvals.decide(approval.approval_id, approve=approval.position != "agree[2]", reason="no")
        await crib.resume(waiting.run_id)
        instance = await crib.instances.get(waiting.run_id)

    assert [(each.position, each.message) for each in asked] == [
        ("agree[0]", "Invite Ann (1)?"),
        ("agree[1]", "Invite Ben (2)?"),
        ("agree[2]", "Invite Eve (3)?"),
    ]
    assert (steps_of(instance)["agree"].status, steps_of(instance)["agree"].output) == ("partial", ["Ann", "Ben", None])


@pytest.mark.requirement("workflow_steps.for_each")
async def test_when_an_element_fails_that_must_not_nobody_is_asked_for_the_others_any_more():
    step = {
        "name": "agree",
        "for_each": "${input.names}",
        "approval": {"message": "Invite ${item}?", "show": {"name": "${item}"}},
        "on_error": "continue",
    }
    rest = {"name": "rest", "wait": {"seconds": HOUR}, "depends_on": ["agree"]}
    async with Crib("memory://", clock=(clock := StandingClock())) as crib:
        waiting = await run(crib, step, rest, given={"names": ["Ann", "Ben"]})
        [ben] = [asked for asked in (await crib.approvals.page()).items if asked.position == "agree[1]"]
        await crib.approvals.decide(ben.approval_id, approve=False)
        await crib.resume(waiting.run_id)
        left = (await crib.approvals.page()).items
        clock.advance(HOUR)
        result = await crib.resume(waiting.run_id)
        events = [entry.event for entry in await crib.store.journal.events(waiting.run_id)]

    assert left == ()
    withdrawn = [event for event in events if isinstance(event, ApprovalWithdrawn)]
    assert [(event.position, event.for_good) for event in withdrawn] == [("agree[0]", True)]
    assert result.output == {"rest": None}


@pytest.mark.parametrize("field", ["message", "show"])
@pytest.mark.requirement("workflow_steps.messages")
async def test_what_cannot_be_shown_fails_the_step(field: str):
    broken = {"message": "Pay ${input.gone}?"} if field == "message" else {"show": {"amount": "${input.gone}"}}
    async with Crib("memory://") as crib:
        instance = await run(crib, agree(**broken), given=PAY)

    assert f"step 'agree' has no value for its approval/{field}: " in error_of(instance, "agree").message


async def test_a_run_that_fails_asks_for_nothing_any_more():
    @tool(side_effects="reads")
    async def fail() -> None:
        """Fail."""
        raise RuntimeError("no")

    async with Crib("memory://") as crib:
        crib.add(fail)
        instance = await run(crib, agree(), {"name": "fail", "tool": "fail"}, given=PAY)
        cancelled = (await crib.approvals.page(status=None)).items

    assert instance.status == "failed"
    assert [approval.status for approval in cancelled] == ["cancelled"]

"""What a person was shown is what runs: else the person is asked again; and when nobody answers, the clock does."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from tests.twins import make_definition
from tests.unit.runs.house import LEASE_S, House, ask
from toolcrib.contracts import (
    OWNER,
    Approval,
    ApprovalDecided,
    ApprovalRequested,
    ApprovalWithdrawn,
    Json,
    Reason,
    RunEvent,
    RunSuspended,
    ToolRevision,
    approval_signal,
)
from toolcrib.core.executor import CallRequest
from toolcrib.core.runs import RunContext, decision_on, waiting_approvals
from toolcrib.infrastructure.store import ApprovalFilter

CONFIRMED = make_definition("pay", requires_confirmation=True, side_effects="writes")


class Office:
    """A run with one call that waits, of which the arguments, the tool and the policy can be made others."""

    def __init__(self, **fields: Any) -> None:
        self.arguments: dict[str, Json] = {"usd": 5}
        self.version: str | None = None
        self.allowed = frozenset({"pay"})
        self.definition = CONFIRMED.model_copy(update=fields)
        self.house = House(self.script)

    async def script(self, context: RunContext) -> Json:
        context.policy = replace(context.policy, allowed=self.allowed)
        envelope = await context.call(CallRequest("t1.c1", "pay", dict(self.arguments), self.version))
        return envelope.output if envelope.ok else {"reason": envelope.error.reason if envelope.error else None}

    async def start(self) -> str:
        """Start the run; it waits."""
        tool = await self.house.save(self.definition)
        self.version = tool.content_hash
        result = (await self.house.start()).result
        assert result.status == "awaiting_approval"
        return result.run_id

    async def answer(
        self, run_id: str, *, number: int = 1, approve: bool = True, changes: dict[str, str] | None = None
    ) -> None:
        """Decide on the last request."""
        events = await self.house.store.journal.events(run_id)
        [request] = waiting_approvals(events, ())
        decision = decision_on(request, approve=approve, edited_input=None, reason=None).model_copy(
            update=changes or {}
        )
        await self.house.signal(run_id, approval_signal("t1.c1", number), decision.model_dump(mode="json"))

    async def inbox(self) -> dict[int, Approval]:
        """The rows, by number."""
        found = await self.house.store.approvals.page(OWNER.realm, ApprovalFilter())
        return {row.number: row for row in found}

    async def carry_on(self, run_id: str) -> str:
        """Resume the run; its status then."""
        return (await self.house.engine.resume(run_id)).result.status


async def other_arguments(office: Office) -> None:
    office.arguments = {"usd": 5000}


async def other_revision(office: Office) -> None:
    tool: ToolRevision = await office.house.save(office.definition.model_copy(update={"description": "Pays twice."}))
    office.version = tool.content_hash


async def other_policy(office: Office) -> None:
    office.allowed = frozenset({"pay", "ship"})


@pytest.mark.requirement("approvals.binding")
@pytest.mark.parametrize("answered", ["approved", "rejected"])
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (other_arguments, "the arguments changed after it was shown"),
        (other_revision, "the tool's revision changed after it was shown"),
        (other_policy, "the policy changed after it was shown"),
    ],
)
async def test_a_call_that_is_not_what_was_shown_is_asked_about_again(change: Any, said: str, answered: str):
    office = Office()
    run_id = await office.start()
    await office.answer(run_id, approve=answered == "approved")
    await change(office)

    assert await office.carry_on(run_id) == "awaiting_approval"
    assert office.house.dispatched == []
    rows = await office.inbox()
    assert (rows[1].status, rows[1].reason) == ("cancelled", said)
    assert (rows[2].status, rows[2].input) == ("waiting", office.arguments)

    await office.answer(run_id, number=2)
    assert await office.carry_on(run_id) == "completed"
    assert [dispatch.input for dispatch in office.house.dispatcher.dispatched] == [office.arguments]
    assert (await office.inbox())[2].status == "approved"


@pytest.mark.requirement("approvals.binding")
@pytest.mark.parametrize("forged", ["arguments_hash", "content_hash", "policy_hash"])
async def test_a_decision_that_names_something_else_is_not_used_and_the_person_is_asked_again(forged: str):
    office = Office()
    run_id = await office.start()
    await office.answer(run_id, changes={forged: "sha256:forged"})

    assert await office.carry_on(run_id) == "awaiting_approval"
    assert office.house.dispatched == []
    await office.answer(run_id, number=2)
    assert await office.carry_on(run_id) == "completed"
    assert office.house.dispatched == ["t1.c1"]


@pytest.mark.requirement("approvals.binding")
async def test_a_withdrawal_that_a_crash_cut_off_from_the_next_request_is_not_forgotten():
    office = Office()
    run_id = await office.start()
    await office.answer(run_id)
    claim = await office.house.store.journal.claim(run_id, owner="first", now=office.house.clock.now(), lease_s=LEASE_S)
    assert claim is not None
    lost = ApprovalWithdrawn(position="t1.c1", number=1, reason="the policy changed after it was shown")
    entry = RunEvent(run_id, claim.run.events + 1, office.house.clock.now(), "default", "owner", lost)
    await office.house.store.journal.append(run_id, claim.run.epoch, [entry])
    await office.house.clock.pass_time(LEASE_S + 1)

    assert await office.carry_on(run_id) == "awaiting_approval"
    assert office.house.dispatched == []
    assert {number: row.status for number, row in (await office.inbox()).items()} == {1: "cancelled", 2: "waiting"}


@pytest.mark.requirement("approvals.expiry")
async def test_a_call_that_nobody_decides_in_time_is_denied_and_the_run_goes_on():
    office = Office(confirmation_expires_s=60)
    run_id = await office.start()
    suspended = (await office.house.events(run_id))[-1]
    assert isinstance(suspended, RunSuspended)
    assert suspended.wake_at == (await office.inbox())[1].expires_at
    assert [driven.result.run_id for driven in await office.house.engine.recover()] == []

    await office.house.clock.pass_time(60)
    [driven] = await office.house.engine.recover()

    assert driven.result.output == {"reason": Reason.APPROVAL_EXPIRED}
    assert office.house.dispatched == []
    row = (await office.inbox())[1]
    assert (row.status, row.decided_by) == ("expired", "clock")


@pytest.mark.requirement("approvals.expiry")
async def test_a_decision_that_comes_with_the_end_of_the_time_counts_if_it_was_first(monkeypatch: pytest.MonkeyPatch):
    office = Office(confirmation_expires_s=60)
    run_id = await office.start()
    await office.house.clock.pass_time(60)
    journal, looked = office.house.store.journal, asyncio.Event()
    signals = journal.signals

    async def late(_: str) -> dict[str, Any]:
        """The run looks for an answer; then a person answers, before the clock does."""
        if not looked.is_set():
            looked.set()
            await office.answer(run_id)
            return {}
        return dict(await signals(run_id))

    monkeypatch.setattr(journal, "signals", late)
    assert await office.carry_on(run_id) == "completed"
    assert office.house.dispatched == ["t1.c1"]
    assert (await office.inbox())[1].status == "approved"


@pytest.mark.requirement("approvals.expiry")
async def test_the_call_that_expires_first_wakes_the_run_and_the_others_go_on_waiting():
    async def script(context: RunContext) -> Json:
        calls = [context.call(ask("a", "soon")), context.call(ask("b", "later")), context.call(ask("c", "never"))]
        return [envelope.status for envelope in await context.wait_all(calls)]

    house = House(script)
    for name, seconds in (("soon", 10), ("later", 20), ("never", None)):
        await house.save(make_definition(name, requires_confirmation=True, confirmation_expires_s=seconds))
    run_id = (await house.start()).result.run_id

    async def statuses() -> dict[str, str]:
        found = await house.store.approvals.page(OWNER.realm, ApprovalFilter())
        return {row.position: row.status for row in found}

    await house.clock.pass_time(10)
    [driven] = await house.engine.recover()
    assert driven.result.status == "awaiting_approval"
    assert await statuses() == {"a": "expired", "b": "waiting", "c": "waiting"}
    await house.clock.pass_time(10)
    [driven] = await house.engine.recover()
    assert await statuses() == {"a": "expired", "b": "expired", "c": "waiting"}
    [request] = waiting_approvals(await house.store.journal.events(run_id), ())
    decision = decision_on(request, approve=True, edited_input=None, reason=None)
    await house.signal(run_id, "approval:c", decision.model_dump(mode="json"))
    assert (await house.engine.resume(run_id)).result.output == ["denied", "denied", "success"]


@pytest.mark.requirement("approvals.rows")
async def test_a_request_is_withdrawn_when_its_call_ends_without_an_answer():
    office = Office()
    run_id = await office.start()
    office.allowed = frozenset()
    await office.answer(run_id)

    assert await office.carry_on(run_id) == "completed"
    events = await office.house.events(run_id)
    assert [event.reason for event in events if isinstance(event, ApprovalWithdrawn)] == [
        "the call has ended without it"
    ]
    assert not [event for event in events if isinstance(event, ApprovalDecided)]
    assert (await office.inbox())[1].status == "cancelled"
    assert waiting_approvals(await office.house.store.journal.events(run_id), ()) == []


@pytest.mark.requirement("approvals.rows")
async def test_a_request_says_for_whom_and_under_which_tools_the_call_is():
    office = Office()
    run_id = await office.start()
    [request] = [event for event in await office.house.events(run_id) if isinstance(event, ApprovalRequested)]

    assert (request.requested_by, request.acting, request.root_run_id) == (OWNER.id, OWNER.id, run_id)
    assert request.policy_hash is not None

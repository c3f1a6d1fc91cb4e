"""A run of a tool that needs confirmation waits as a whole, before it begins."""

import json
from collections.abc import AsyncGenerator

import pytest

from tests.twins import ManualClock
from toolcrib import Crib, Result, ScriptedModel, tool
from toolcrib.contracts import Approval, Json, Reason, Signal
from toolcrib.llm import Message, Request, ScriptedAnswer, ToolCall, ToolResult

pytestmark = pytest.mark.requirement("approvals.whole_run")


@tool(side_effects="writes")
async def note(text: str) -> Json:
    """Write a note."""
    return {"noted": text}


def script(request: Request) -> ScriptedAnswer:
    """Note what one is asked, and repeat it."""
    if any(isinstance(part, ToolResult) for message in request.messages for part in message.parts):
        return request.messages[0].text
    [offered] = request.tools.tools
    name = "text" if offered.name == "note" else "message"
    return Message("assistant", (ToolCall("1", offered.name, json.dumps({name: request.messages[0].text})),))


@pytest.fixture
async def crib() -> AsyncGenerator[Crib]:
    async with Crib("memory://", models={"scripted:m": ScriptedModel(script)}, clock=ManualClock()) as made:
        made.add(note)
        clerk = made.agent("clerk", model="scripted:m", tools=["note"])
        asks = clerk.definition.tool().model_copy(update={"requires_confirmation": True, "confirmation_expires_s": 60})
        made.add(asks)
        made.agent("head", model="scripted:m", delegates=("clerk",))
        yield made


async def begun(crib: Crib, name: str = "clerk", *, dry_run: bool = False) -> tuple[Result, tuple[Approval, ...]]:
    result = await crib.invoke(name, {"message": "five"}, dry_run=dry_run)
    return result, (await crib.approvals.page()).items


async def test_nothing_is_asked_of_a_model_before_a_person_agrees(crib: Crib):
    waiting, [approval] = await begun(crib)
    assert waiting.summary.status == "awaiting_approval"
    assert [entry.event.type for entry in waiting.events] == ["run_started", "approval_requested", "run_suspended"]
    assert (approval.tool, approval.callers, approval.root_run_id) == ("clerk", (), waiting.run_id)
    assert approval.message == "clerk writes; a person must confirm"

    await crib.approvals.decide(approval.approval_id, approve=True)
    done = await crib.resume(waiting.run_id)
    assert (done.summary.status, done.output) == ("completed", "five")


async def test_a_run_begins_with_what_the_person_made_of_its_arguments(crib: Crib):
    waiting, [approval] = await begun(crib)
    await crib.approvals.decide(approval.approval_id, approve=True, edited_input={"message": "three"})
    assert (await crib.resume(waiting.run_id)).output == "three"


async def test_a_run_that_a_person_rejects_ends_with_the_reason(crib: Crib):
    waiting, [approval] = await begun(crib)
    await crib.approvals.decide(approval.approval_id, approve=False, reason="not today")
    ended = (await crib.resume(waiting.run_id)).summary
    assert ended.error is not None
    assert (ended.status, ended.stop_reason, ended.error.reason) == ("failed", "policy", Reason.APPROVAL_REJECTED)
    assert "not today" in ended.error.message


async def test_a_run_for_which_nobody_decides_ends_with_its_time(crib: Crib):
    waiting, _ = await begun(crib)
    await crib.clock.sleep(60)
    ended = (await crib.resume(waiting.run_id)).summary
    assert ended.error is not None
    assert (ended.stop_reason, ended.error.reason) == ("policy", Reason.APPROVAL_EXPIRED)


async def test_edited_arguments_of_a_run_are_checked_again_when_it_begins(crib: Crib):
    waiting, [approval] = await begun(crib)
    forged = {
        "approved": True,
        "arguments_hash": approval.arguments_hash,
        "content_hash": approval.content_hash,
        "edited_input": {"massage": "five"},
    }
    signal = Signal(name=approval.signal, payload=forged, made_by="ann", at=crib.clock.now())
    await crib.engine.signal(waiting.run_id, signal)
    ended = (await crib.resume(waiting.run_id)).summary
    assert ended.error is not None
    assert (ended.status, ended.error.reason) == ("failed", Reason.INPUT_SCHEMA_MISMATCH)


async def test_an_agent_that_another_one_calls_is_asked_for_once(crib: Crib):
    waiting, [approval] = await begun(crib, "head")
    assert (approval.tool, approval.run_id, approval.callers) == ("clerk", waiting.run_id, ("head@1.0.0",))
    await crib.approvals.decide(approval.approval_id, approve=True)
    done = await crib.resume(waiting.run_id)
    assert (done.summary.status, (await crib.approvals.page()).items) == ("completed", ())


async def test_a_dry_run_asks_nobody(crib: Crib):
    done, waiting = await begun(crib, dry_run=True)
    assert (done.summary.status, waiting) == ("completed", ())

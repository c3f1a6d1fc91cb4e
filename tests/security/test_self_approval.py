"""Ways to decide on one's own call: as who steers the run, by a client's result, in another realm."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.unit.agents.crm import MODEL, Crm, asks
from tests.unit.agents.desk import agent
from toolcrib import Crib, ScriptedModel, tool
from toolcrib.contracts import (
    AgentRequest,
    AgentResponse,
    Approval,
    Conflict,
    LLMConfig,
    PermissionDenied,
    Principal,
    RequireConfirmation,
    ReturnedCall,
)
from toolcrib.crib.runs.approvals import ApprovalAnswer

pytestmark = pytest.mark.requirement("approvals.self")

ANN, BOB, CEM = Principal(id="ann"), Principal(id="bob"), Principal(id="cem")
INNER = "scripted:inner"
PICK = asks(("pick", {}))
UPDATE = asks(("update_deals", {"ids": ["d0"], "stage": "3003"}))
BOTH = asks(("pick", {}), ("update_deals", {"ids": ["d0"], "stage": "3003"}))


@tool(side_effects="reads", runs_on="client")
async def pick() -> Any:
    """Let the person at the client choose."""
    return {}


@asynccontextmanager
async def asked(outer: Sequence[Any], inner: Sequence[Any] = ()) -> AsyncGenerator[tuple[Crib, Crm, AgentResponse]]:
    """Ann has asked an agent that writes with consent only, and that may ask another one to do so."""
    crm, models = Crm(1), {MODEL: ScriptedModel(outer), INNER: ScriptedModel(inner)}
    async with Crib("memory://", models=models) as crib:
        crib.add(*crm.tools, pick)
        await crib.agents.save(agent("mover", llm=LLMConfig(model=INNER), tools=["update_deals"]))
        await crib.agents.save(
            agent(tools=["update_deals", "pick"], delegates=["mover"], guardrails=[RequireConfirmation()])
        )
        yield crib, crm, await crib.acting_as(ANN).executions.execute("desk", AgentRequest(message="Go"))


async def bring(crib: Crib, waiting: AgentResponse, call_id: str, who: Principal) -> AgentResponse:
    """Bring a result that says that everything is approved."""
    result = ReturnedCall(call_id=call_id, output={"approved": True})
    return await crib.acting_as(who).executions.execute(
        "desk", AgentRequest(run_id=waiting.run_id, tool_results=(result,))
    )


async def only(crib: Crib) -> Approval:
    (approval,) = (await crib.approvals.page()).items
    return approval


@pytest.mark.parametrize("nested", [False, True])
async def test_who_brought_a_clients_result_to_a_run_does_not_decide_on_what_it_does_then(nested: bool):
    second = asks(("mover", {"message": "Move it"})) if nested else UPDATE
    async with asked([PICK, second, "Done."], [UPDATE, "Done."]) as (crib, crm, waiting):
        steered = await bring(crib, waiting, waiting.tool_calls[0].call_id, BOB)
        approval = await only(crib)
        for who in (ANN, BOB):
            with pytest.raises(PermissionDenied, match="takes part in the run"):
                await crib.acting_as(who).approvals.decide(approval.approval_id, approve=True)
        assert crm.updates == []
        await crib.acting_as(CEM).approvals.decide(approval.approval_id, approve=True)
        await crib.resume(steered.run_id)

    assert crm.updates == [(["d0"], "3003")]


async def test_a_clients_result_is_no_decision_whatever_call_it_names():
    async with asked([BOTH, "Done."]) as (crib, crm, waiting):
        approval = await only(crib)
        for named in (approval.call_id, approval.approval_id, approval.position, approval.signal):
            with pytest.raises(Conflict, match="not a call that a client was given"):
                await bring(crib, waiting, named, ANN)
        await bring(crib, waiting, waiting.tool_calls[0].call_id, ANN)

        assert (await only(crib)).status == "waiting"
    assert crm.updates == []


async def test_nobody_of_another_realm_decides_by_the_place_of_a_call():
    eve = Principal(id="eve", realm="elsewhere")
    async with asked([UPDATE, "Done."]) as (crib, _, waiting):
        approval = await only(crib)
        with pytest.raises(PermissionDenied, match="belongs to realm 'elsewhere'"):
            await crib.acting_as(eve).approvals.decide_call(
                waiting.run_id, approval.position, ApprovalAnswer(approve=True)
            )

        assert (await only(crib)).status == "waiting"

"""What an execution records of its calls, on the store that users have: their order, and what a client took."""

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from tests.twins import MASTER_KEYS
from tests.unit.executions.house import MODEL, Desk, agent, open_crib, results, turn
from toolcrib import Crib, ScriptedModel, ToolContext, tool
from toolcrib.contracts import AgentRequest, AgentResponse, ErrorCode, Json, ReturnedCall, SecretReference, ToolError

GO = AgentRequest(message="go")


@tool(side_effects="reads", cache="ttl", cache_ttl_s=60)
async def big(item: str) -> str:
    """Looks something up that does not change."""
    return f"{item} is big"


def called(answer: AgentResponse) -> list[tuple[str, Json]]:
    return [(answer.tools_by_id[call_id].name, answer.tools_by_id[call_id].input) for call_id in answer.tool_order]


@pytest.mark.requirement("outputs.order")
async def test_f2_tool_order_is_the_model_s_whatever_the_store_takes(tmp_path: Path):
    """A cached call waits for the store before it begins, and the calls beside it do not."""
    asked = turn(("big", "hat"), ("look", "coat"), ("big", "shoe"), ("look", "bag"))
    definition = agent(tools=("big", "look"))
    model = ScriptedModel([asked, "One.", asked, "Two."])
    async with Crib(f"sqlite:///{tmp_path}/crib.db", models={MODEL: model}) as crib:
        crib.add(*Desk().tools, big)
        await crib.save(definition)
        missed = await crib.executions.execute("clerk", GO)
        hit = await crib.executions.execute("clerk", GO)

    wanted = [("big", "hat"), ("look", "coat"), ("big", "shoe"), ("look", "bag")]
    for answer, cached in ((missed, False), (hit, True)):
        assert called(answer) == [(name, {"item": item}) for name, item in wanted]
        assert answer.last_tool is not None
        assert (answer.last_tool.name, answer.last_tool.input) == ("look", {"item": "bag"})
        assert [answer.tools_by_id[call_id].cached for call_id in answer.tool_order] == [cached, False, cached, False]


@pytest.mark.requirement("outputs.order")
async def test_f2_secrets_of_the_vault_do_not_change_the_order(tmp_path: Path):
    @tool(side_effects="reads", secrets=(SecretReference(name="key", reference="${secret:KEY}"),))
    async def vaulted(item: str, context: ToolContext) -> str:
        """Needs a key."""
        return item

    crib = Crib(
        f"sqlite:///{tmp_path}/crib.db",
        models={MODEL: ScriptedModel([turn(("vaulted", "a"), ("vaulted", "b"), ("look", "c")), "Done."])},
        environment={"TOOLCRIB_MASTER_KEYS": MASTER_KEYS},
    )
    async with crib:
        crib.add(*Desk().tools, vaulted)
        await crib.secrets.set("KEY", "hunter2-but-longer")
        await crib.save(agent(tools=("vaulted", "look")))
        answer = await crib.executions.execute("clerk", GO)

    assert [answer.tools_by_id[call_id].position for call_id in answer.tool_order] == ["t1.c1", "t1.c2", "t1.c3"]
    assert answer.last_tool is not None
    assert answer.last_tool.name == "look"


@pytest.mark.requirement("outputs.order")
async def test_f2_a_call_that_waited_for_a_person_keeps_its_place(tmp_path: Path):
    async with await open_crib(
        turn(("pay", "hat"), ("look", "coat")), "Done.", store=f"sqlite:///{tmp_path}/crib.db"
    ) as crib:
        waiting = await crib.executions.execute("clerk", GO)
        [asked] = waiting.approvals
        await crib.decide(waiting.run_id, asked.position, approve=True)
        await crib.resume(waiting.run_id)
        answer = await crib.executions.respond(waiting.run_id)

    assert called(answer) == [("pay", {"item": "hat"}), ("look", {"item": "coat"})]


async def hand_over(store: str) -> AgentResponse:
    async with await open_crib(turn(("pick", "hat")), store=store) as crib:
        return await crib.executions.execute("clerk", GO)


@pytest.mark.requirement("handoff.history")
@pytest.mark.parametrize("failed", [False, True])
async def test_f9_a_client_s_call_keeps_its_hand_off_start_and_wait_after_a_restart(tmp_path: Path, failed: bool):
    store = f"sqlite:///{tmp_path}/crib.db"
    waiting = await hand_over(store)
    [prepared] = waiting.tool_calls
    await asyncio.sleep(0.3)
    brought = results(waiting, "red")
    if failed:
        lost = ToolError(code=ErrorCode.PROVIDER_ERROR, message="the window was closed")
        brought = (ReturnedCall(call_id=prepared.call_id, error=lost),)
    async with await open_crib("Done.", store=store) as crib:
        answer = await crib.executions.execute("clerk", AgentRequest(run_id=waiting.run_id, tool_results=brought))

    call = answer.tools_by_id[prepared.call_id]
    assert call.requires_client_execution
    assert call.t_start == prepared.t_start
    assert call.timings.wait >= 0.3
    assert call.output == (None if failed else "red")
    spent = call.timings.model_dump().values()
    assert abs(timedelta(seconds=sum(spent)) - (call.t_end - call.t_start)) < timedelta(milliseconds=100)


@pytest.mark.requirement("handoff.history")
async def test_f9_a_client_s_call_that_nobody_answered_keeps_its_hand_off(tmp_path: Path):
    store = f"sqlite:///{tmp_path}/crib.db"
    waiting = await hand_over(store)
    [prepared] = waiting.tool_calls
    await asyncio.sleep(0.1)
    async with await open_crib(store=store) as crib:
        await crib.cancel(waiting.run_id)
        answer = await crib.executions.respond(waiting.run_id)

    call = answer.tools_by_id[prepared.call_id]
    assert (call.status, call.requires_client_execution, call.t_start) == ("error", True, prepared.t_start)
    assert call.timings.wait >= 0.1

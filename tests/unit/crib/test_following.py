"""Following and cancelling runs in Python."""

import pytest

from toolcrib import Crib, ScriptedModel, tool
from toolcrib.contracts import (
    AgentDefinition,
    AgentRequest,
    Conflict,
    InvalidInput,
    LLMConfig,
    NotFound,
    PermissionDenied,
    Principal,
    StreamDone,
    TextDelta,
)
from toolcrib.core.runs import StreamMessage

ANN = Principal(id="ann", realm="default", grants=("ai://agents/desk/*",))
MODELS = {"scripted:desk": ScriptedModel(lambda _: "the deal is open")}


@tool(side_effects="writes", requires_confirmation=True)
async def sign() -> str:
    """Sign."""
    return "signed"


async def desk(crib: Crib) -> None:
    """Save the agent."""
    await crib.agents.save(AgentDefinition(name="desk", llm=LLMConfig(model="scripted:desk"), system_prompt="Answer."))


def said(messages: list[StreamMessage]) -> str:
    return "".join(message.event.text for message in messages if isinstance(message.event, TextDelta))


@pytest.mark.requirement("live.stream", "live.re_attach")
async def test_an_execution_is_followed_from_its_beginning_and_from_any_place():
    async with Crib("memory://", models=MODELS) as crib:
        await desk(crib)
        begun = await crib.executions.submit("desk", AgentRequest(message="how is the deal?"))
        messages = [message async for message in crib.stream(begun.run_id, drive=True)]
        rest = [message async for message in crib.stream(begun.run_id, after=messages[0].place)]

    assert said(messages) == "the deal is open"
    assert isinstance(messages[-1].event, StreamDone)
    assert said([messages[0], *rest]) == said(messages)


@pytest.mark.requirement("live.stream")
async def test_who_may_not_read_a_run_does_not_hear_it():
    async with Crib("memory://", models=MODELS) as crib:
        await desk(crib)
        begun = await crib.executions.execute("desk", AgentRequest(message="how is the deal?"))

        with pytest.raises(PermissionDenied, match="ai://runs/desk/read"):
            await anext(crib.acting_as(ANN).stream(begun.run_id))
        with pytest.raises(NotFound):
            await anext(crib.acting_as(Principal(id="ann", realm="elsewhere")).stream(begun.run_id))
        with pytest.raises(InvalidInput, match="no place"):
            await anext(crib.stream(begun.run_id, after="99"))


@pytest.mark.requirement("crib.cancel")
async def test_a_waiting_run_is_cancelled_in_somebody_s_name():
    async with Crib("memory://") as crib:
        crib.add(sign)
        run_id = (await crib.invoke("sign", {})).run_id

        signer = Principal(id="ann", grants=("ai://runs/sign/execute",))
        assert await crib.acting_as(signer).cancel(run_id, reason="no deal")

        trace = await crib.trace(run_id)
        assert trace.status == "cancelled"
        assert trace.error is not None
        assert trace.error.message == "the run was cancelled by 'ann': no deal"
        assert await crib.pending_approvals(run_id) == []
        with pytest.raises(Conflict):
            await crib.cancel(run_id)

"""Tools of a crib in pydantic-ai, and pydantic-ai's toolsets in a crib."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic_ai import Agent, ModelRetry, RunContext, Tool
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.toolsets import AbstractToolset, ExternalToolset, FunctionToolset
from pydantic_ai.usage import RunUsage

from tests.unit.adapters.crm import small_crm
from toolcrib import Crib
from toolcrib.contracts import InvalidDefinition, NotFound
from toolcrib.interfaces.adapters import pydantic_ai

OUTWARD = pytest.mark.requirement("adapters.outward")
ERRORS = pytest.mark.requirement("adapters.errors")
INWARD = pytest.mark.requirement("adapters.inward")


def scripted(*answers: ModelResponse) -> FunctionModel:
    left: Iterator[ModelResponse] = iter(answers)

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        del messages, info
        return next(left)

    return FunctionModel(answer)


def asks(name: str, **arguments: Any) -> ModelResponse:
    return ModelResponse([ToolCallPart(name, arguments)])


def says(text: str) -> ModelResponse:
    return ModelResponse([TextPart(text)])


def context(deps: Any = None) -> RunContext[Any]:
    return RunContext(deps=deps, model=TestModel(), usage=RunUsage())


async def call(toolset: AbstractToolset[Any], name: str, **arguments: Any) -> Any:
    found = await toolset.get_tools(context())
    return await toolset.call_tool(name, arguments, context(), found[name])


def heard(messages: list[ModelMessage]) -> list[Any]:
    parts = [part for message in messages for part in message.parts]
    return [part for part in parts if isinstance(part, ToolReturnPart)]


@pytest.mark.requirement("adapters.agents")
async def test_an_agent_of_pydantic_ai_corrects_its_arguments_and_moves_a_deal():
    async with small_crm() as crm:
        model = scripted(
            asks("find_deals", compny="Acme"),
            asks("find_deals", company="Acme"),
            asks("move_deal", deal="d1", to_stage="won"),
            says("Moved."),
        )
        agent = Agent(model, toolsets=[pydantic_ai.CribToolset(crm.ann)])
        result = await agent.run("Win Acme's deal")

        retry, found, moved = heard(result.all_messages())
        assert result.output == "Moved."
        assert (crm.moved, len(await crm.runs())) == (["d1 won"], 3)
        assert "VALIDATION_ERROR" in str(retry.content)
        assert found.content == [{"id": "d1", "company": "Acme", "stage": "open"}]
        assert moved.metadata["status"] == "success"
        assert (await crm.crib.trace(moved.metadata["run_id"])).steps


@OUTWARD
async def test_a_toolset_shows_what_the_principal_may_execute_at_each_step():
    async with small_crm() as crm:
        toolset = pydantic_ai.CribToolset(crm.ann, id="crm")
        before = await toolset.get_tools(context())
        definition = crm.crib.registry.require("default", "find_deals").definition
        await crm.crib.save(definition.model_copy(update={"enabled": False}))
        after = await toolset.get_tools(context())

    assert (toolset.id, sorted(before), sorted(after)) == ("crm", ["find_deals", "move_deal"], ["move_deal"])
    assert before["find_deals"].tool_def.parameters_json_schema == definition.input_schema


@OUTWARD
async def test_a_tool_that_the_principal_may_not_execute_is_not_found():
    async with small_crm() as crm:
        with pytest.raises(NotFound, match="move_deal"):
            await pydantic_ai.CribToolset(crm.bob, "move_deal").get_tools(context())


@OUTWARD
async def test_a_tool_of_another_toolset_is_refused():
    async with small_crm() as crm:
        toolset, other = pydantic_ai.CribToolset(crm.ann), FunctionToolset([exchange_rate])
        found = await other.get_tools(context())
        with pytest.raises(NotFound, match="exchange_rate"):
            await toolset.call_tool("exchange_rate", {}, context(), found["exchange_rate"])


@ERRORS
async def test_a_failure_that_cannot_be_corrected_is_told_with_its_code():
    async with small_crm() as crm:
        toolset = pydantic_ai.CribToolset(crm.crib)
        with pytest.raises(ToolFailed, match=r"UNKNOWN: .*no such company"):
            await call(toolset, "find_deals", company="Nobody")
        with pytest.raises(ModelRetry, match="VALIDATION_ERROR"):
            await call(toolset, "find_deals", company=3)
        with pytest.raises(ToolFailed, match=r"awaiting_approval: .*waits for a person"):
            await call(toolset, "send_offer", deal="d1")


@pytest.mark.requirement("adapters.loops")
async def test_a_toolset_is_used_from_another_loop():
    async with small_crm() as crm:
        toolset = pydantic_ai.CribToolset(crm.ann)
        await toolset.get_tools(context())
        returned = await asyncio.to_thread(lambda: asyncio.run(call(toolset, "find_deals", company="Acme")))

    assert returned.return_value == [{"id": "d1", "company": "Acme", "stage": "open"}]


# Inward ---------------------------------------------------------------------------------------------------------------


def exchange_rate(ctx: RunContext[str], currency: str, days: list[int] | None = None) -> dict[str, Any]:
    """Look up an exchange rate.

    Args:
        ctx: Of the run.
        currency: ISO code.
        days: Which.
    """
    if currency == "XXX":
        raise ModelRetry("no such currency")
    return {"rate": 1.1, "source": ctx.deps, "days": days}


@INWARD
async def test_a_toolset_of_pydantic_ai_is_tools_of_a_crib():
    toolset = FunctionToolset([Tool(exchange_rate)])
    async with Crib("memory://") as crib:
        crib.add(*await pydantic_ai.tools(toolset, deps="ecb", side_effects="reads"))
        envelope = await crib.call("exchange_rate", currency="USD", days=[1])
        wrong = await crib.call("exchange_rate", days=[1])
        failed = await crib.call("exchange_rate", currency="XXX")
        definition = crib.registry.require("default", "exchange_rate").definition

    assert envelope.output == {"rate": 1.1, "source": "ecb", "days": [1]}
    assert definition.description == "Look up an exchange rate."
    assert definition.input_schema["properties"]["currency"]["description"] == "ISO code."
    assert "ctx" not in definition.input_schema["properties"]
    assert wrong.error is not None
    assert wrong.error.code == "VALIDATION_ERROR"
    assert failed.error is not None
    assert "no such currency" in failed.error.message


@INWARD
async def test_a_tool_of_pydantic_ai_is_governed_like_all_others():
    async with Crib("memory://") as crib:
        crib.add(*await pydantic_ai.tools(FunctionToolset([exchange_rate]), requires_confirmation=True))
        waiting = await crib.invoke("exchange_rate", {"currency": "USD"})

    assert waiting.status == "awaiting_approval"


@INWARD
async def test_a_tool_whose_result_comes_from_outside_is_refused():
    described = (await FunctionToolset([exchange_rate]).get_tools(context()))["exchange_rate"].tool_def
    with pytest.raises(InvalidDefinition, match="'external'"):
        await pydantic_ai.tools(ExternalToolset([described]))


@pytest.mark.requirement("adapters.round_trip")
async def test_a_tool_that_went_out_comes_back_with_its_schema_and_description():
    async with small_crm() as crm:
        out = pydantic_ai.CribToolset(crm.ann, "find_deals")
        [back] = await pydantic_ai.tools(out, side_effects="reads")
        own = crm.crib.registry.require("default", "find_deals").definition
        async with Crib("memory://") as other:
            other.add(back)
            envelope = await other.call("find_deals", company="Acme")

    assert back.definition.input_schema == own.input_schema
    assert back.definition.description.startswith("Use this tool to find the deals of a company.")
    assert envelope.output == [{"id": "d1", "company": "Acme", "stage": "open"}]

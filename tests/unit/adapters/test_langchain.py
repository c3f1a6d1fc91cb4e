"""Tools of a crib in LangChain, and LangChain's tools in a crib."""

import asyncio
from typing import Annotated, Any

import pytest
from langchain import agents
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolCall, ToolMessage
from langchain_core.tools import BaseTool, InjectedToolArg, StructuredTool, ToolException

from tests.unit.adapters.crm import small_crm
from toolcrib import Crib, Principal, ToolDefinition, code_tool
from toolcrib.contracts import Conflict, InvalidDefinition, NotFound, Unavailable
from toolcrib.interfaces.adapters import langchain

OUTWARD = pytest.mark.requirement("adapters.outward")
ERRORS = pytest.mark.requirement("adapters.errors")
INWARD = pytest.mark.requirement("adapters.inward")
LOOPS = pytest.mark.requirement("adapters.loops")


class Scripted(GenericFakeChatModel):
    """A model that says what it is given, and may be told of tools."""

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        """The same."""
        return self


def asks(name: str, **arguments: Any) -> AIMessage:
    return AIMessage("", tool_calls=[ToolCall(name=name, args=arguments, id="c1")])


def call_of(name: str, **arguments: Any) -> ToolCall:
    return ToolCall(name=name, args=arguments, id="c1", type="tool_call")


def answer(crm_tool: BaseTool, **arguments: Any) -> Any:
    return crm_tool.ainvoke(call_of(crm_tool.name, **arguments))


@pytest.mark.requirement("adapters.agents")
async def test_an_agent_of_langchain_moves_a_deal():
    async with small_crm() as crm:
        model = Scripted(
            messages=iter([asks("find_deals", company="Acme"), asks("move_deal", deal="d1", to_stage="won"), "Moved."])
        )
        create_agent: Any = vars(agents)["create_agent"]  # its type is not fully known
        agent = create_agent(model, await langchain.load(crm.ann))
        state = await agent.ainvoke({"messages": [("user", "Win Acme's deal")]})

        heard = [message for message in state["messages"] if isinstance(message, ToolMessage)]
        assert state["messages"][-1].content == "Moved."
        assert [message.content for message in heard] == [
            '[{"id":"d1","company":"Acme","stage":"open"}]',
            '{"moved":"d1"}',
        ]
        assert crm.moved == ["d1 won"]
        assert await crm.runs() == [
            ("ann", "find_deals", {"company": "Acme"}),
            ("ann", "move_deal", {"deal": "d1", "to_stage": "won"}),
        ]


@OUTWARD
async def test_tools_are_loaded_with_description_and_schema_for_whom_they_are_visible():
    async with small_crm() as crm:
        names = [loaded.name for loaded in await langchain.load(crm.bob)]
        [find] = await langchain.load(crm.ann, "find_deals")

    assert names == ["find_deals"]
    assert find.description.startswith("Use this tool to find the deals of a company.")
    assert find.args["company"] == {"description": "Part of its name.", "type": "string"}


@OUTWARD
async def test_a_tool_that_the_principal_may_not_execute_is_not_loaded():
    async with small_crm() as crm:
        with pytest.raises(NotFound, match="move_deal"):
            await langchain.load(crm.bob, "move_deal")
        with pytest.raises(NotFound, match="missing"):
            await langchain.load(crm.ann, "missing")


@OUTWARD
async def test_a_tool_that_may_be_seen_and_not_executed_is_refused_with_the_grant_that_lacks():
    cay = Principal(id="cay", grants=("ai://tools/crm/move_deal/read",))
    async with small_crm() as crm:
        with pytest.raises(NotFound, match="grant 'ai://tools/crm/move_deal/execute'"):
            await langchain.load(crm.crib.acting_as(cay), "move_deal")
        with pytest.raises(NotFound, match="there is no tool 'send_offer'"):
            await langchain.load(crm.crib.acting_as(cay), "send_offer")


@OUTWARD
async def test_a_tool_is_called_in_the_version_that_was_asked_for():
    async with Crib("memory://") as crib:
        first = code_tool("version", "def main(): return 1")
        await crib.save(first)
        newer = code_tool("version", "def main(): return 2").model_copy(update={"version": "2.0.0"})
        await crib.save(newer)
        [old] = await langchain.load(crib, "version@1")
        [new] = await langchain.load(crib, "version")

        assert (await old.ainvoke({}), await new.ainvoke({})) == ("1", "2")


@OUTWARD
async def test_the_artifact_is_the_envelope_which_names_the_run():
    async with small_crm() as crm:
        [find] = await langchain.load(crm.ann, "find_deals")
        message = await answer(find, company="Acme")
        trace = await crm.crib.trace(message.artifact["run_id"])

    assert (message.status, message.artifact["status"]) == ("success", "success")
    assert message.artifact["output"][0]["id"] == "d1"
    assert trace.steps


@OUTWARD
async def test_a_tool_that_was_disabled_after_it_was_loaded_is_refused():
    async with small_crm() as crm:
        [find] = await langchain.load(crm.ann, "find_deals")
        definition = crm.crib.registry.require("default", "find_deals").definition
        await crm.crib.save(definition.model_copy(update={"enabled": False}))
        message = await answer(find, company="Acme")

    assert message.status == "error"


@ERRORS
async def test_a_model_reads_the_code_of_a_failure():
    async with small_crm() as crm:
        [find] = await langchain.load(crm.ann, "find_deals")
        wrong = await answer(find, compny="Acme")
        failed = await answer(find, company="Nobody")

    assert (wrong.status, failed.status) == ("error", "error")
    assert wrong.content.startswith("VALIDATION_ERROR: ")
    assert "there is no such company" in failed.content


@ERRORS
async def test_a_failure_is_raised_as_langchains_exception_if_that_is_wanted():
    async with small_crm() as crm:
        [find] = await langchain.load(crm.ann, "find_deals", raise_errors=True)
        with pytest.raises(langchain.ToolCallFailed, match="VALIDATION_ERROR") as caught:
            await find.ainvoke({"compny": "Acme"})

    assert isinstance(caught.value, ToolException)
    assert caught.value.code == "VALIDATION_ERROR"
    assert caught.value.envelope["run_id"] == caught.value.run_id


@ERRORS
async def test_a_call_that_waits_for_a_person_says_so_and_ends_after_the_decision():
    async with small_crm() as crm:
        [send] = await langchain.load(crm.crib, "send_offer", raise_errors=True)
        with pytest.raises(langchain.ToolCallFailed, match="waits for a person to approve it") as caught:
            await send.ainvoke({"deal": "d1"})
        await crm.crib.decide(caught.value.run_id, "call", approve=True)
        result = await crm.crib.resume(caught.value.run_id)

    assert caught.value.code == "awaiting_approval"
    assert caught.value.envelope == {"run_id": caught.value.run_id}
    assert result.output == "offer for d1 is sent"


@OUTWARD
@pytest.mark.parametrize("taken", ["config", "run_manager"])
async def test_an_argument_that_langchain_would_replace_is_refused(taken: str):
    schema = {"type": "object", "properties": {taken: {"type": "string"}}}
    async with Crib("memory://") as crib:
        await crib.save(code_tool("odd", "def main(**given): return 1").model_copy(update={"input_schema": schema}))
        with pytest.raises(InvalidDefinition, match=taken):
            await langchain.load(crib, "odd")


# Threads and loops ----------------------------------------------------------------------------------------------------


@LOOPS
async def test_a_tool_is_called_from_another_thread_and_another_loop():
    async with small_crm() as crm:
        [find] = await langchain.load(crm.ann, "find_deals")
        blocking = await asyncio.to_thread(find.invoke, {"company": "Acme"})
        elsewhere = await asyncio.to_thread(lambda: asyncio.run(find.ainvoke({"company": "Acme"})))

        assert blocking == elsewhere == '[{"id":"d1","company":"Acme","stage":"open"}]'
        assert len(await crm.runs()) == 2


@LOOPS
async def test_a_blocking_call_in_the_loop_of_the_crib_is_refused_instead_of_waiting_for_ever():
    async with small_crm() as crm:
        [find] = await langchain.load(crm.ann, "find_deals")
        with pytest.raises(Conflict, match="asynchronously"):
            find.invoke({"company": "Acme"})


@LOOPS
def test_a_blocking_call_runs_the_loop_that_was_left():
    loop = asyncio.new_event_loop()
    opened = small_crm()
    crm = loop.run_until_complete(opened.__aenter__())
    [find] = loop.run_until_complete(langchain.load(crm.ann, "find_deals"))
    said = find.invoke({"company": "Acme"})
    loop.run_until_complete(opened.__aexit__(None, None, None))
    loop.close()

    assert said == '[{"id":"d1","company":"Acme","stage":"open"}]'
    with pytest.raises(Unavailable, match="does not run"):
        find.invoke({"company": "Acme"})


# Inward ---------------------------------------------------------------------------------------------------------------


def exchange_rate(currency: str, day: str = "today") -> dict[str, Any]:
    """Look up an exchange rate.

    Args:
        currency: ISO code.
        day: The day.
    """
    if currency == "XXX":
        raise ToolException("no such currency")
    return {"rate": 1.1, "day": day}


async def exchange_rate_later(currency: str) -> float:
    """Look up an exchange rate."""
    return 1.2


def with_artifact(currency: str) -> tuple[str, Any]:
    """Look up an exchange rate."""
    return "1.1", {"source": "ecb"}


RATE = StructuredTool.from_function(exchange_rate, parse_docstring=True, handle_tool_error=True)


@INWARD
async def test_a_tool_of_langchain_is_a_tool_of_a_crib():
    async with Crib("memory://") as crib:
        crib.add(*langchain.tools(RATE, side_effects="reads", category="money"))
        envelope = await crib.call("exchange_rate", currency="USD")
        refused = await crib.call("exchange_rate", curency="USD")
        definition: ToolDefinition = crib.registry.require("default", "exchange_rate").definition

    assert envelope.output == {"rate": 1.1, "day": "today"}
    assert refused.error is not None
    assert refused.error.code == "VALIDATION_ERROR"
    assert definition.description == "Look up an exchange rate."
    assert definition.category == "money"
    assert definition.input_schema["required"] == ["currency"]
    assert definition.input_schema["properties"]["currency"] == {"type": "string", "description": "ISO code."}


@INWARD
async def test_what_a_tool_of_langchain_raises_is_the_error_of_its_call_even_if_it_would_tell_a_model():
    async with Crib("memory://") as crib:
        crib.add(*langchain.tools(RATE, side_effects="reads"))
        envelope = await crib.call("exchange_rate", currency="XXX")

    assert envelope.error is not None
    assert "no such currency" in envelope.error.message


@INWARD
async def test_asynchronous_tools_and_artifacts_come_in():
    later = StructuredTool.from_function(coroutine=exchange_rate_later)
    described = StructuredTool.from_function(with_artifact, response_format="content_and_artifact")
    async with Crib("memory://") as crib:
        crib.add(*langchain.tools(later, described, side_effects="none"))
        rate = await crib.call("exchange_rate_later", currency="USD")
        both = await crib.call("with_artifact", currency="USD")

    assert rate.output == 1.2
    assert both.output == {"content": "1.1", "artifact": {"source": "ecb"}}


@INWARD
async def test_a_tool_of_langchain_is_governed_like_all_others():
    async with Crib("memory://") as crib:
        crib.add(*langchain.tools(RATE, requires_confirmation=True))
        waiting = await crib.invoke("exchange_rate", {"currency": "USD"})

    assert waiting.status == "awaiting_approval"


@INWARD
def test_a_tool_that_needs_langchains_runtime_is_refused():
    def of_user(deal: str, user: Annotated[str, InjectedToolArg]) -> str:
        """Look."""
        return deal + user

    with pytest.raises(InvalidDefinition, match="'user' from LangChain's runtime"):
        langchain.tools(StructuredTool.from_function(of_user))


@INWARD
def test_a_schema_of_pydantic_1_is_refused():
    from pydantic.v1 import BaseModel as OldModel

    class Old(OldModel):
        x: int

    old = StructuredTool.from_function(with_artifact, name="old", args_schema=Old)
    with pytest.raises(InvalidDefinition, match="pydantic 1"):
        langchain.tools(old)


@pytest.mark.requirement("adapters.round_trip")
async def test_a_tool_that_went_out_comes_back_with_its_schema_and_description():
    async with small_crm() as crm:
        [out] = await langchain.load(crm.ann, "find_deals")
        [back] = langchain.tools(out, side_effects="reads")
        own = crm.crib.registry.require("default", "find_deals").definition
        async with Crib("memory://") as other:
            other.add(back)
            envelope = await other.call("find_deals", company="Acme")

    assert back.definition.input_schema == own.input_schema
    assert back.definition.description == out.description
    output: Any = envelope.output
    assert output["artifact"]["output"] == [{"id": "d1", "company": "Acme", "stage": "open"}]

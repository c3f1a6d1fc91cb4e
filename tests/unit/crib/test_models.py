"""Which models a crib opens, and which addresses they may have."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from operator import methodcaller
from typing import Any

import pytest
from aiohttp import web

from tests.unit.net.servers import serving
from toolcrib import Crib, DefinitionOptions, EgressPolicy, LLMConfig, Principal, tool
from toolcrib.agents import agentic_definition
from toolcrib.contracts import ErrorCode, InvalidSettings

ANN = Principal(id="ann", realm="default", grants=("ai://*",))


@tool(side_effects="reads")
async def look() -> str:
    """Look."""
    return "seen"


@asynccontextmanager
async def model_server() -> AsyncGenerator[tuple[str, list[dict[str, Any]]]]:
    """A server of the chat API on loopback that answers "hello"; yields its address and what it was asked."""
    asked: list[dict[str, Any]] = []

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        asked.append({"body": await request.json(), "authorization": request.headers.get("authorization")})
        message = {"role": "assistant", "content": "hello"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return web.json_response({"id": "1", "model": "local", "choices": [choice], "usage": usage})

    async with serving(answer) as port:
        yield f"http://127.0.0.1:{port}/v1", asked


@pytest.mark.requirement("crib.trusted_urls")
async def test_an_address_given_in_code_may_be_a_local_one():
    async with model_server() as (url, asked), Crib("memory://", environment={}) as crib:
        crib.add(look)
        agent = crib.agentic_tool(
            "agent", mode="agentic", model="openai-compatible:local", base_url=url, tools=["look"]
        )
        result = await agent("go")
        again = await agent("go")
        drawn = methodcaller("_repr_html_")(await crib.trace(result.run_id))

    assert "cost in US dollars" not in drawn
    assert (result.cost_unknown, result.cost_usd) == (True, None)
    assert result.output == again.output == {"summary": "hello"}
    assert result.summary.cost_unknown
    assert [call["body"]["model"] for call in asked] == ["local", "local"]


@pytest.mark.requirement("crib.trusted_urls")
async def test_an_address_in_a_definition_that_was_saved_must_not_be_a_local_one():
    async with model_server() as (url, asked), Crib("memory://", environment={}) as crib:
        crib.add(look)
        llm = LLMConfig(model="openai-compatible:local", base_url=url)
        await crib.acting_as(ANN).save(agentic_definition("theirs", mode="agentic", llm=llm, tools=["look"]))
        result = await crib.acting_as(ANN).invoke("theirs", {"task": "go"})

    assert result.summary.status == "failed"
    assert result.summary.error is not None
    assert result.summary.error.code is ErrorCode.PROVIDER_ERROR
    assert "127.0.0.1" in result.summary.error.message
    assert asked == []


@pytest.mark.requirement("crib.trusted_urls")
async def test_an_address_that_only_resembles_a_trusted_one_is_not_trusted():
    async with model_server() as (url, asked), Crib("memory://", environment={}) as crib:
        crib.add(look)
        crib.agentic_tool("ours", mode="agentic", model="openai-compatible:local", base_url=url, tools=["look"])
        llm = LLMConfig(model="openai-compatible:local", base_url=f"{url}/../admin")
        await crib.acting_as(ANN).save(agentic_definition("theirs", mode="agentic", llm=llm, tools=["look"]))
        result = await crib.acting_as(ANN).invoke("theirs", {"task": "go"})

    assert result.summary.status == "failed"
    assert asked == []


@pytest.mark.requirement("crib.trusted_urls")
async def test_an_address_that_is_trusted_later_is_used_from_then_on():
    async with model_server() as (url, _), Crib("memory://", environment={}) as crib:
        crib.add(look)
        llm = LLMConfig(model="openai-compatible:local", base_url=url)
        await crib.save(agentic_definition("early", mode="agentic", llm=llm, tools=["look"]))
        before = await crib.invoke("early", {"task": "go"})
        crib.agentic_tool("ours", mode="agentic", model=llm, tools=["look"])
        after = await crib.invoke("early", {"task": "go"})

    assert before.summary.status == "failed"
    assert after.output == {"summary": "hello"}


@pytest.mark.requirement("crib.trusted_urls")
async def test_a_definition_cannot_send_a_variable_that_is_not_released():
    async with Crib(
        "memory://", environment={"SERVER_KEY": "secret"}, definitions=DefinitionOptions(released=("TOOLS_*",))
    ) as crib:
        crib.add(look)
        llm = LLMConfig(model="openai:gpt-4o", api_key_env="SERVER_KEY")
        with pytest.raises(InvalidSettings, match=r"'SERVER_KEY' to 'api\.openai\.com', and it is not released"):
            await crib.acting_as(ANN).save(agentic_definition("theirs", mode="agentic", llm=llm, tools=["look"]))


@pytest.mark.requirement("crib.trusted_urls")
async def test_a_server_that_needs_no_key_is_asked_without_one_and_never_with_one_that_is_not_released():
    environment: dict[str, str] = {}
    async with model_server() as (url, asked):
        llm = LLMConfig(model="openai-compatible:local", base_url=url)
        reach = EgressPolicy(allow=(url.split("/")[2],))
        async with Crib(
            "memory://", environment=environment, definitions=DefinitionOptions(released=("TOOLS_*",)), egress=reach
        ) as crib:
            crib.add(look)
            theirs = agentic_definition("theirs", mode="agentic", llm=llm, tools=["look"])
            await crib.acting_as(ANN).save(theirs)
            first = await crib.acting_as(ANN).invoke("theirs", {"task": "go"})
            environment["OPENAI_COMPATIBLE_API_KEY"] = "secret"
            second = await crib.acting_as(ANN).invoke("theirs", {"task": "go"})
            with pytest.raises(InvalidSettings, match="TOOLCRIB_RELEASED_ENV"):
                await crib.acting_as(ANN).save(theirs.model_copy(update={"name": "other"}))

    assert first.output == second.output == {"summary": "hello"}
    assert [call["authorization"] for call in asked] == [None, None]


@pytest.mark.requirement("crib.models")
async def test_a_key_comes_from_the_environment_of_the_crib():
    async with model_server() as (url, asked), Crib("memory://", environment={"LOCAL_KEY": "k1"}) as crib:
        crib.add(look)
        llm = LLMConfig(model="openai-compatible:local", base_url=url, api_key_env="LOCAL_KEY")
        await crib.agentic_tool("agent", mode="agentic", model=llm, tools=["look"])("go")

    assert asked[0]["authorization"] == "Bearer k1"


@pytest.mark.requirement("crib.models", "agents.model_failure")
async def test_a_missing_key_fails_the_run_and_names_the_variable():
    async with Crib("memory://", environment={}) as crib:
        crib.add(look)
        result = await crib.agentic_tool("agent", mode="agentic", model="openai:gpt-4o", tools=["look"])("go")

    assert result.summary.error is not None
    assert result.summary.error.code is ErrorCode.AUTH_REQUIRED
    assert "OPENAI_API_KEY is not set" in result.summary.error.message


@pytest.mark.requirement("crib.models")
@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("gpt-4o", "did you mean openai:gpt-4o"),
        ("opnai:gpt-4o", "did you mean 'openai'"),
        ("openai-compatible:x", "needs base_url"),
    ],
)
async def test_a_model_that_cannot_be_is_refused_where_it_is_written(model: str, said: str):
    async with Crib("memory://") as crib:
        with pytest.raises(InvalidSettings, match=said):
            crib.agentic_tool("agent", mode="agentic", model=model, tools=["look"])

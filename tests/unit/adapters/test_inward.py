"""Tools of other frameworks in a crib are governed like all others: approval, denial and budget."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest
from agents import function_tool as openai_function_tool
from langchain_core.tools import StructuredTool
from pydantic_ai.toolsets import FunctionToolset

from toolcrib import Crib, Principal, SharingOptions
from toolcrib.contracts import PermissionDenied, Reason
from toolcrib.interfaces.adapters import langchain, openai_agents, openai_functions, pydantic_ai

pytestmark = pytest.mark.requirement("adapters.inward_governed")

DONE: list[str] = []
PARAMETERS = {"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]}


def send(to: str) -> str:
    """Send a letter."""
    DONE.append(to)
    return f"sent to {to}"


async def of_langchain(**options: Any) -> Any:
    return langchain.tools(StructuredTool.from_function(send), **options)


async def of_pydantic_ai(**options: Any) -> Any:
    return await pydantic_ai.tools(FunctionToolset([send]), **options)


async def of_openai_agents(**options: Any) -> Any:
    return openai_agents.tools(openai_function_tool(send, failure_error_function=None), **options)


async def of_openai_functions(**options: Any) -> Any:
    definition: Any = {
        "type": "function",
        "function": {"name": "send", "description": "Send.", "parameters": PARAMETERS},
    }
    return [openai_functions.function_tool(definition, send, **options)]


SOURCES: Mapping[str, Callable[..., Awaitable[Any]]] = {
    "LangChain": of_langchain,
    "pydantic-ai": of_pydantic_ai,
    "OpenAI Agents SDK": of_openai_agents,
    "OpenAI function": of_openai_functions,
}


@pytest.mark.parametrize("source", SOURCES)
async def test_a_tool_of_another_framework_waits_for_approval_is_denied_and_counts_against_budgets(source: str) -> None:
    DONE.clear()
    ann = Principal(id="ann", grants=("ai://tools/post/*/execute",))
    sharing = SharingOptions(budgets=["tool=send 1 calls/day"])
    async with Crib("memory://", sharing=sharing) as crib:
        crib.add(*await SOURCES[source](category="post", requires_confirmation=True))
        stranger = crib.acting_as(Principal(id="bob", grants=("ai://tools/*/find/execute",)))
        denied = await stranger.invoke("send", {"to": "bob"})
        waits = await crib.acting_as(ann).invoke("send", {"to": "ann"})
        before = list(DONE)
        [approval] = (await crib.approvals.page(run_id=waits.run_id)).items
        with pytest.raises(PermissionDenied):
            await crib.acting_as(ann).approvals.decide(approval.approval_id, approve=True)
        await crib.approvals.decide(approval.approval_id, approve=True, edited_input={"to": "zoe"})
        done = await crib.resume(waits.run_id)
        again = await crib.acting_as(ann).invoke("send", {"to": "eve"})
        if again.status == "awaiting_approval":
            [second] = (await crib.approvals.page(run_id=again.run_id, status="waiting")).items
            await crib.approvals.decide(second.approval_id, approve=True)
            again = await crib.resume(again.run_id)
        [envelope] = done.envelopes

    assert denied.error is not None
    assert denied.error.reason == Reason.PERMISSION_MISSING
    assert (waits.status, before, approval.tool, approval.input) == ("awaiting_approval", [], "send", {"to": "ann"})
    assert (done.output, DONE) == ("sent to zoe", ["zoe"])
    assert (envelope.side_effects, envelope.approved_input) == ("writes", {"to": "zoe"})
    assert again.error is not None
    assert again.error.reason == Reason.BUDGET_EXCEEDED

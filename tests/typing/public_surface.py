"""What a type checker makes of Toolcrib's public names. The checkers read this file; it is not run."""

from collections.abc import Sequence
from decimal import Decimal
from typing import assert_type

from toolcrib import (
    AgentDefinition,
    Crib,
    Limits,
    ScriptedModel,
    ToolContext,
    ToolcribError,
    ToolDefinition,
    ToolEnvelope,
    WorkflowDefinition,
    tool,
    tools_of,
)
from toolcrib.contracts import AgentRequest, AgentResponse, RunEvent, ToolError, ToolRevision, Trace
from toolcrib.contracts.workflows import WorkflowInstance
from toolcrib.core.runs import StreamMessage
from toolcrib.llm import Message, Request
from toolcrib.testing import (
    CallsEachTool,
    FrozenClock,
    advance,
    approve,
    assert_called,
    calls,
    calls_of,
    new_crib,
    says,
)


@tool(side_effects="reads", timeout_s=5.0, tags=("orders",))
async def find_order(order_id: str, limit: int = 3) -> dict[str, str]:
    """Find an order."""
    return {"id": order_id, "limit": str(limit)}


@tool
def add(first: int, second: int) -> int:
    """Add two numbers."""
    return first + second


@tool(side_effects="writes")
async def charge(order_id: str, context: ToolContext) -> str:
    """Charge for an order."""
    assert_type(context.idempotency_key, str)
    return order_id


class Shop:
    """Methods are tools too."""

    @tool(side_effects="reads")
    def stock(self, product: str) -> int:
        """How many there are."""
        return len(product)


async def a_decorated_function_keeps_its_signature() -> None:
    """By position and by name, with its defaults."""
    assert_type(await find_order("o1"), dict[str, str])
    assert_type(await find_order(order_id="o1", limit=1), dict[str, str])
    assert_type(add(1, second=2), int)
    assert_type(add.definition, ToolDefinition)
    assert_type(add.definition.name, str)


async def tools_are_called(crib: Crib) -> None:
    """By name, with arguments as keywords or as an object."""
    crib.add(find_order, add, charge, *tools_of(Shop()))
    envelope = await crib.call("find_order", order_id="o1")
    assert_type(envelope, ToolEnvelope)
    assert_type(envelope.ok, bool)
    assert_type(envelope.error, ToolError | None)
    result = await crib.invoke("find_order", {"order_id": "o1"})
    assert_type(result.ok, bool)
    assert_type(result.run_id, str)
    assert_type(result.error, ToolError | None)
    assert_type(result.cost_usd, Decimal | None)
    assert_type(result.trace, Trace)
    assert_type(result.envelopes, Sequence[ToolEnvelope])
    assert_type(result.events, Sequence[RunEvent])
    assert_type(await crib.submit("find_order", {"order_id": "o1"}), str)
    assert_type(await crib.save(find_order.definition), ToolRevision)


async def agents_answer(crib: Crib) -> None:
    """And their runs can be followed."""
    desk = crib.agent("desk", model="scripted:desk", tools=[find_order, "add"], limits=Limits(max_iterations=3))
    answer = await desk("Where is o1?", conversation_id="c1")
    assert_type(answer.run_id, str)
    assert_type(desk.definition, AgentDefinition)
    assert_type(await crib.executions.execute("desk", AgentRequest(message="Where?")), AgentResponse)
    async for message in crib.executions.follow(answer.run_id):
        assert_type(message, StreamMessage)


async def workflows_run(crib: Crib) -> None:
    """As instances, or as calls."""
    restock = crib.workflow("restock", steps=[{"name": "look", "tool": "find_order", "input": {"order_id": "o1"}}])
    assert_type((await restock()).run_id, str)
    assert_type(restock.definition, WorkflowDefinition)
    instance = await crib.instances.start("restock", {})
    assert_type(instance, WorkflowInstance)
    assert_type(await crib.instances.signal(instance.run_id, "delivered"), bool)


async def tests_of_an_application() -> None:
    """What `toolcrib.testing` returns."""
    assert_type(calls("find_order", order_id="o1"), Message)
    assert_type(says("Shipped."), Message)
    async with new_crib(clock=FrozenClock(), models={"scripted:desk": CallsEachTool()}) as crib:
        assert_type(crib, Crib)
        answer = await crib.executions.execute("desk", AgentRequest(message="Where?"))
        assert_type(await approve(crib, answer), AgentResponse)
        assert_type(await assert_called(crib, answer, "find_order", order_id="o1"), ToolEnvelope)
        assert_type(await calls_of(crib, answer), Sequence[ToolEnvelope])
        await advance(crib, days=1)


def answers_by_rule(request: Request) -> str:
    """A function as a model."""
    return request.messages[-1].text


SCRIPTED = ScriptedModel(answers_by_rule)
assert_type(SCRIPTED.requests, list[Request])


def errors_have_a_code(error: ToolcribError) -> str:
    """Which a program can compare."""
    assert_type(error.retryable, bool)
    return error.code

"""Types of results, as a type checker infers them; nothing of this runs."""

from dataclasses import dataclass
from typing import Any, assert_type

from toolcrib import Agent, AgenticTool, CompositeTool, Crib, Result, RunStream, WorkflowHandle, use_tools_with_ai


@dataclass
class Order:
    """What an agent answers."""

    number: str


async def agents(crib: Crib) -> None:
    """Handles carry the type of their answers into results and streams."""
    typed = crib.agent("desk", output_type=Order)
    assert_type(typed, Agent[Order])
    result = await typed("Which?")
    assert_type(result, Result[Order])
    assert_type(result.output, Order | None)
    assert_type(result.unwrap(), Order)
    assert_type(typed.stream("Which?"), RunStream[Order])
    async with typed.stream("Which?") as stream:
        assert_type(await stream.result(), Result[Order])
    assert_type(await typed.resume(await typed.submit("Which?")), Result[Order])
    assert_type(crib.agent("desk", output_type=list[Order]), Agent[list[Order]])
    assert_type(crib.agent("desk", output_type=int), Agent[int])
    assert_type(crib.agent("desk"), Agent[str])
    assert_type(crib.agent("desk", response_schema={}), Agent[dict[str, Any]])


async def others(crib: Crib) -> None:
    """The same for agentic tools, workflows, composites, and runs by name."""
    assert_type(crib.agentic_tool("deals", mode="agentic", output_type=Order), AgenticTool[Order])
    assert_type(crib.workflow("flow", steps=[], output_type=Order), WorkflowHandle[Order])
    assert_type(crib.composite_tool("one", input_schema={}, routes=[]), CompositeTool[Any])
    assert_type(await crib.invoke("search_deals", {}), Result[Any])
    assert_type(await use_tools_with_ai("scripted:m", [], "", "", output_type=Order), Result[Order])
    assert_type(await use_tools_with_ai("scripted:m", [], "", ""), Result[str])
    covariant: Result[object] = await crib.agent("desk", output_type=Order)("Which?")
    assert covariant.ok

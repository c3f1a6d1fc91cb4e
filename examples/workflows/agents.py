"""The agents that the gallery's workflows ask, and those that ask for a workflow or write one."""

from collections.abc import Iterator

from toolcrib import AgentDefinition, AllocatedTool, LLMConfig
from toolcrib.contracts import PinnedHandle, PinSelector


def helpers() -> Iterator[AgentDefinition]:
    """Agents that are steps of workflows."""
    yield AgentDefinition(
        name="exception-handling-agent",
        description="Decides what becomes of an order that something is wrong with.",
        llm=LLMConfig(model="scripted:exceptions"),
        tools=(AllocatedTool(tool="shop.find_address"),),
        side_effects="reads",
        response_format="structured",
        response_schema={
            "type": "object",
            "properties": {"resolution": {"enum": ["ship", "cancel"]}},
            "required": ["resolution"],
        },
    )
    yield AgentDefinition(
        name="message-classifier",
        description="Says what a message is about.",
        llm=LLMConfig(model="scripted:triage"),
        side_effects="none",
        response_format="structured",
        response_schema={"type": "object", "properties": {"topic": {"type": "string"}}, "required": ["topic"]},
    )
    yield AgentDefinition(
        name="market-researcher",
        description="Looks around in a market.",
        llm=LLMConfig(model="scripted:market"),
        tools=(AllocatedTool(tool="market.prices"),),
        side_effects="reads",
        pins=(PinnedHandle(name="last_prices", selector=PinSelector(tool="market.prices")),),
    )


def askers() -> Iterator[AgentDefinition]:
    """Agents that have a workflow as a tool, or make one."""
    yield AgentDefinition(
        name="order-clerk",
        description="Has orders fulfilled.",
        llm=LLMConfig(model="scripted:clerk"),
        tools=(AllocatedTool(tool="execute_fulfillment_workflow"),),
    )
    yield AgentDefinition(
        name="workflow-author",
        description="Writes workflows that people publish.",
        llm=LLMConfig(model="scripted:author"),
        tools=(AllocatedTool(tool="people.welcome"),),
        can_create_workflows=True,
    )

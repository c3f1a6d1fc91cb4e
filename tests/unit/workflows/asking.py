"""Workflows whose steps ask the agent of the desk, and what expressions read of that."""

from typing import Any

from tests.unit.executions.house import Desk, agent, open_crib, turn
from toolcrib import Crib
from toolcrib.contracts import Json, JsonObject, PinnedHandle, PinSelector, ToolDefinition
from toolcrib.contracts.workflows import WorkflowDefinition, WorkflowInstance
from toolcrib.crib import ActingCrib
from toolcrib.llm import Message

LOOKS: tuple[Message | str, ...] = (turn(("look", "hat")), "A hat.")
DOES_NOT: tuple[Message | str, ...] = ("Nothing.",)


def pin(name: str, tool: str = "look", **fields: Any) -> JsonObject:
    """A pin of a step."""
    selector = {"tool": tool, **{key: fields.pop(key) for key in ("strategy", "call_id") if key in fields}}
    return {"name": name, "selector": selector, **fields}


def pinned(name: str, tool: str = "look", **fields: Any) -> PinnedHandle:
    """A pin of an agent."""
    return PinnedHandle(name=name, selector=PinSelector(tool=tool), **fields)


def asks(name: str = "ask", **fields: Any) -> JsonObject:
    """A step that asks the clerk."""
    return {"name": name, "agent": "clerk", "input": {"message": "go"}, **fields}


def workflow(*steps: JsonObject, name: str = "flow", **fields: Any) -> WorkflowDefinition:
    """A workflow of these steps."""
    return WorkflowDefinition.model_validate({"name": name, "steps": steps, **fields})


async def opened(
    definition: WorkflowDefinition,
    *answers: Message | str,
    clerk: ToolDefinition | None = None,
    desk: Desk | None = None,
    **options: Any,
) -> Crib:
    """A crib with the desk's agent, and a workflow that is published."""
    crib = await open_crib(*answers, definition=clerk or agent(tools=("look", "fail", "pay")), desk=desk, **options)
    await crib.workflows.publish(definition)
    return crib


async def run(crib: ActingCrib, name: str = "flow", **fields: Any) -> WorkflowInstance:
    """Run the workflow as far as it goes."""
    return await crib.instances.start(name, fields.pop("input", {}), **fields)


async def read(definition: WorkflowDefinition, *answers: Message | str, **options: Any) -> Json:
    """What the workflow puts out, run once."""
    async with await opened(definition, *answers, **options) as crib:
        instance = await run(crib)
    assert instance.status == "completed", instance.error
    return instance.output

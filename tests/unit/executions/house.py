"""A crib with an agent whose model is scripted, and the tools that tests of executions are about."""

import json
from collections.abc import Sequence
from typing import Any

from toolcrib import Crib, ScriptedModel, tool
from toolcrib.contracts import (
    AgentDefinition,
    AgentResponse,
    AllocatedTool,
    Json,
    LLMConfig,
    ModelError,
    PinnedHandle,
    ReturnedCall,
    ToolDefinition,
)
from toolcrib.infrastructure.store import Store
from toolcrib.llm import Message, Text, ToolCall

MODEL = "scripted:m"


class Desk:
    """Tools of every sort, and what they have done.

    `look` reads, `pay` writes and asks before, `pick` reads and `show` writes at the client, `fail` fails.
    """

    def __init__(self) -> None:
        self.done: list[tuple[str, Json]] = []
        """What was executed or prepared on this side, in order."""

        @tool(side_effects="reads")
        async def look(item: str) -> str:
            """Looks something up."""
            self.done.append(("look", item))
            return f"{item} is here"

        @tool(side_effects="writes", requires_confirmation=True)
        async def pay(item: str) -> str:
            """Pays for something."""
            self.done.append(("pay", item))
            return f"{item} is paid"

        @tool(side_effects="reads", runs_on="client")
        async def pick(item: str) -> Any:
            """Lets the person at the client choose."""
            self.done.append(("pick", item))
            return {"ask": item}

        @tool(side_effects="writes", runs_on="client")
        async def show(item: str) -> Any:
            """Shows something at the client."""
            self.done.append(("show", item))
            return {"open": item}

        @tool(side_effects="reads")
        async def fail(item: str) -> str:
            """Fails."""
            raise RuntimeError(item)

        self.tools = (look, pay, pick, show, fail)


def turn(*calls: tuple[str, str], text: str = "") -> Message:
    """A model's answer that calls tools with an item each."""
    wanted = [ToolCall(f"m{n}", name, json.dumps({"item": item})) for n, (name, item) in enumerate(calls, start=1)]
    return Message("assistant", (*((Text(text),) if text else ()), *wanted))


def agent(
    name: str = "clerk",
    *,
    tools: Sequence[str] = ("look", "pay", "pick", "show", "fail"),
    pins: Sequence[PinnedHandle] = (),
    **fields: Any,
) -> ToolDefinition:
    """An agent with the tools of the desk."""
    return AgentDefinition(
        name=name,
        description="Does what is to be done.",
        llm=LLMConfig(model=MODEL),
        tools=tuple(AllocatedTool(tool=named) for named in tools),
        pins=tuple(pins),
        **fields,
    ).tool()


async def open_crib(
    *answers: Message | str | ModelError,
    store: str | Store = "memory://",
    desk: Desk | None = None,
    definition: ToolDefinition | None = None,
    model: ScriptedModel | None = None,
) -> Crib:
    """A crib with the desk's tools and the agent, whose models answer so in turn; or as a model that others share."""
    crib = Crib(store, models={MODEL: model or ScriptedModel(list(answers))})
    crib.add(*(desk or Desk()).tools)
    await crib.save(definition or agent())
    return crib


def results(response: AgentResponse, *outputs: Json) -> tuple[ReturnedCall, ...]:
    """What a client brings for the calls that wait, in their order."""
    return tuple(
        ReturnedCall(call_id=call.call_id, output=output)
        for call, output in zip(response.tool_calls, outputs, strict=True)
    )

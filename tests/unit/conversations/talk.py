"""Conversations with an agent whose model follows a script, on any store."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

from toolcrib import Crib, ScriptedModel, tool
from toolcrib.contracts import (
    AgentImplementation,
    AgentMemory,
    AgentRequest,
    AgentResponse,
    AllocatedTool,
    JsonObject,
    LLMConfig,
    Principal,
    ToolDefinition,
)
from toolcrib.infrastructure.store import Store
from toolcrib.llm import Message, Request, Text, ToolCall
from toolcrib.llm.models.scripted import ScriptedAnswer

MODEL = "scripted:model"
INPUT: JsonObject = {
    "type": "object",
    "properties": {"message": {"type": "string"}, "context": {"type": "object"}},
    "required": ["message"],
}
ANN, BOB = Principal(id="ann"), Principal(id="bob")

Answer: TypeAlias = ScriptedAnswer


@tool(side_effects="reads")
async def look_up(word: str, size: int = 1) -> dict[str, str]:
    """Find a text."""
    return {"found": word * size}


@tool(side_effects="reads", untrusted=True)
async def read_mail() -> dict[str, str]:
    """Read what outsiders have written."""
    return {"mail": "Hello"}


@tool(side_effects="writes", requires_confirmation=True)
async def send(text: str) -> dict[str, str]:
    """Send a text."""
    return {"sent": text}


@tool(side_effects="reads", runs_on="client")
async def pick(question: str) -> dict[str, str]:
    """Let the person choose."""
    return {"question": question}


TOOLS = (look_up, read_mail, send, pick)


def helper(name: str = "helper", memory: AgentMemory | None = None, **fields: Any) -> ToolDefinition:
    """An agent with all tools."""
    values: dict[str, Any] = {
        "llm": LLMConfig(model=MODEL, **fields.pop("llm", {})),
        "system_prompt": "Help.",
        "tools": tuple(AllocatedTool(tool=each) for each in ("look_up", "read_mail", "send", "pick")),
        "memory": memory or AgentMemory(),
    }
    version = fields.pop("version", "1.0.0")
    implementation = AgentImplementation(**(values | fields))
    return ToolDefinition(
        name=name, version=version, description="Helps.", input_schema=INPUT, implementation=implementation
    )


def echo(request: Request) -> Answer:
    """Says again what was said last."""
    return f"You said: {request.messages[-1].text}"


def calls(*asked: tuple[str, str], text: str = "") -> Message:
    """A model's answer with calls: name and arguments as JSON."""
    parts = (ToolCall(f"id{number}", name, args) for number, (name, args) in enumerate(asked))
    return Message("assistant", (*([Text(text)] if text else []), *parts))


class Talk:
    """Somebody who talks to agents.

    Args:
        crib: Has the agents.
        model: Their model.
    """

    def __init__(self, crib: Crib, model: ScriptedModel) -> None:
        self.crib = crib
        self.model = model

    async def say(
        self,
        message: str,
        conversation_id: str | None = None,
        *,
        agent: str = "helper",
        who: Principal = ANN,
        context: JsonObject | None = None,
    ) -> AgentResponse:
        """Send a message and wait for the answer."""
        request = AgentRequest(message=message, conversation_id=conversation_id, context=context or {})
        return await self.crib.acting_as(who).executions.execute(agent, request)

    async def begin(self, *messages: str, agent: str = "helper", who: Principal = ANN) -> str:
        """Send messages one after the other; returns the id of the conversation."""
        conversation_id = None
        for message in messages:
            conversation_id = (await self.say(message, conversation_id, agent=agent, who=who)).conversation_id
        assert conversation_id is not None
        return conversation_id


@asynccontextmanager
async def talking(
    script: Callable[[Request], Any] | Sequence[Answer] = echo,
    *agents: ToolDefinition,
    store: str | Store = "memory://",
) -> AsyncGenerator[Talk]:
    """A crib with agents, one named `helper` if none is given."""
    model = ScriptedModel(script)
    async with Crib(store, models={MODEL: model}) as crib:
        crib.add(*TOOLS)
        crib.add(*(agents or (helper(),)))
        yield Talk(crib, model)

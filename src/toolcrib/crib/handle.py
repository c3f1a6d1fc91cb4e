"""Handles: what a program calls instead of naming a tool."""

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from toolcrib.contracts import AgentDefinition, AgentRequest, AgentResponse, Json, JsonObject, ToolDefinition
from toolcrib.contracts.workflows import WorkflowDefinition
from toolcrib.core.runs import Result

Invoke: TypeAlias = Callable[[str, JsonObject], Awaitable[Result]]
"""Runs the tool of a reference with arguments."""

Execute: TypeAlias = Callable[[str, AgentRequest], Awaitable[AgentResponse]]
"""Asks the agent of a reference."""


class Agent:
    """A handle to an agent: await it with a message."""

    def __init__(self, execute: Execute, definition: AgentDefinition) -> None:
        self._execute = execute
        self.definition = definition

    async def __call__(
        self, message: str, *, conversation_id: str | None = None, context: JsonObject | None = None
    ) -> AgentResponse:
        """Ask the agent, and wait until it has answered or waits for somebody.

        Args:
            message: What it is asked.
            conversation_id: The conversation that this goes on with; null begins a new one.
            context: Facts that it needs to know, by name.
        """
        request = AgentRequest(message=message, conversation_id=conversation_id, context=context or {})
        return await self._execute(f"{self.definition.name}@{self.definition.version}", request)


class CompositeTool:
    """A handle to a composite tool: await it with its arguments."""

    def __init__(self, invoke: Invoke, definition: ToolDefinition) -> None:
        self._invoke = invoke
        self.definition = definition

    async def __call__(self, **arguments: Json) -> Result:
        """Run the tool and wait until the run ends or suspends."""
        return await self._invoke(f"{self.definition.name}@{self.definition.version}", arguments)


class WorkflowHandle:
    """A handle to a workflow: await it with its arguments."""

    def __init__(self, invoke: Invoke, definition: WorkflowDefinition) -> None:
        self._invoke = invoke
        self.definition = definition

    async def __call__(self, **arguments: Json) -> Result:
        """Run the workflow and wait until the run ends or suspends."""
        return await self._invoke(f"{self.definition.name}@{self.definition.version}", arguments)


class AgenticTool:
    """A handle to an agentic tool: await it with a task."""

    def __init__(self, invoke: Invoke, definition: ToolDefinition) -> None:
        self._invoke = invoke
        self.definition = definition

    async def __call__(self, task: str | None = None, **parameters: Json) -> Result:
        """Run the tool and wait until the run ends or suspends; `crib.questions.answer` answers what it asks."""
        arguments = parameters if task is None else {"task": task, **parameters}
        return await self._invoke(f"{self.definition.name}@{self.definition.version}", arguments)

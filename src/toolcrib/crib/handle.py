"""Handles: what a program calls instead of naming a tool."""

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from toolcrib.contracts import Json, JsonObject, ToolDefinition
from toolcrib.runs import Result

Invoke: TypeAlias = Callable[[str, JsonObject], Awaitable[Result]]
"""Runs the tool of a reference with arguments."""


class CompositeTool:
    """A handle to a composite tool: await it with its arguments."""

    def __init__(self, invoke: Invoke, definition: ToolDefinition) -> None:
        self._invoke = invoke
        self.definition = definition

    async def __call__(self, **arguments: Json) -> Result:
        """Run the tool and wait until the run ends or suspends."""
        return await self._invoke(f"{self.definition.name}@{self.definition.version}", arguments)


class AgenticTool:
    """A handle to an agentic tool: await it with a task."""

    def __init__(self, invoke: Invoke, definition: ToolDefinition) -> None:
        self._invoke = invoke
        self.definition = definition

    async def __call__(self, task: str | None = None, **parameters: Json) -> Result:
        """Run the tool and wait until the run ends or suspends."""
        arguments = parameters if task is None else {"task": task, **parameters}
        return await self._invoke(f"{self.definition.name}@{self.definition.version}", arguments)

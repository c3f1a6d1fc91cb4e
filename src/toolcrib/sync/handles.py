"""Synchronous forms of `toolcrib.crib.definitions`.

Written by `python -m tools.sync_facade`; not to be edited.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.sync.event_loop import EventLoopThread, Facade

if TYPE_CHECKING:
    from toolcrib.contracts import AgentDefinition, AgentResponse, Json, JsonObject, ToolDefinition
    from toolcrib.contracts.workflows import WorkflowDefinition
    from toolcrib.core.runs import Result
    from toolcrib.crib.definitions import Agent as AsynchronousAgent
    from toolcrib.crib.definitions import AgenticTool as AsynchronousAgenticTool
    from toolcrib.crib.definitions import CompositeTool as AsynchronousCompositeTool
    from toolcrib.crib.definitions import WorkflowHandle as AsynchronousWorkflowHandle


class Agent(Facade):
    """A handle to an agent: call it with a message.

    Example:
        desk = crib.agent("desk", model="anthropic:claude-sonnet-4", tools=[search_deals])
        answer = desk("Which deals has Acme?")
        print(answer.response, answer.cost_usd)
    """

    def __init__(self, asynchronous: AsynchronousAgent, loop: EventLoopThread) -> None:
        super().__init__(asynchronous, loop)
        self._agent = asynchronous

    @property
    def definition(self) -> AgentDefinition:
        """The definition."""
        return self._agent.definition

    def __call__(
        self, message: str, *, conversation_id: str | None = None, context: JsonObject | None = None
    ) -> AgentResponse:
        """Ask the agent, and wait until it has answered or waits for a person.

        Args:
            message: What it is asked.
            conversation_id: The conversation to continue; null starts a new one.
            context: Facts that it needs to know, by name.

        Example:
            answer = desk("Which deals has Acme?")
            more = desk("And who owns them?", conversation_id=answer.conversation_id)
        """
        return self._loop.run(self._agent, message, conversation_id=conversation_id, context=context)


class CompositeTool(Facade):
    """A handle to a composite tool: call it with its arguments.

    Example:
        schema = {"type": "object", "properties": {"company": {"type": "string"}}, "required": ["company"]}
        routes = [CompositeRoute(id="deals", tool="search_deals", input={"company": "${input.company}"})]
        find = crib.composite_tool("find", input_schema=schema, routes=routes)
        print(find(company="Acme").output)
    """

    def __init__(self, asynchronous: AsynchronousCompositeTool, loop: EventLoopThread) -> None:
        super().__init__(asynchronous, loop)
        self._composite_tool = asynchronous

    @property
    def definition(self) -> ToolDefinition:
        """The definition."""
        return self._composite_tool.definition

    def __call__(self, **arguments: Json) -> Result:
        """Run the tool and wait until the run ends or suspends.

        Example:
            routes = [CompositeRoute(id="acme", tool="search_deals", input={"company": "Acme"})]
            find_acme = crib.composite_tool("find_acme", input_schema={"type": "object"}, routes=routes)
            result = find_acme()
        """
        return self._loop.run(self._composite_tool, **arguments)


class WorkflowHandle(Facade):
    """A handle to a workflow: call it with its arguments.

    Example:
        steps = [{"name": "deals", "tool": "search_deals", "input": {"company": "Acme"}}]
        list_acme = crib.workflow("list_acme", steps=steps)
        print(list_acme().output)
    """

    def __init__(self, asynchronous: AsynchronousWorkflowHandle, loop: EventLoopThread) -> None:
        super().__init__(asynchronous, loop)
        self._workflow_handle = asynchronous

    @property
    def definition(self) -> WorkflowDefinition:
        """The definition."""
        return self._workflow_handle.definition

    def __call__(self, **arguments: Json) -> Result:
        """Run the workflow and wait until the run ends or suspends.

        Example:
            result = move(company="Acme")
            print(result.error or result.output)
        """
        return self._loop.run(self._workflow_handle, **arguments)


class AgenticTool(Facade):
    """A handle to an agentic tool: call it with a task.

    Example:
        deals = crib.agentic_tool(
            "deals", mode="deterministic", model="anthropic:claude-sonnet-4", steps=["search_deals", "update_deals"]
        )
        result = deals("Update all Acme Corp deals to Negotiation")
    """

    def __init__(self, asynchronous: AsynchronousAgenticTool, loop: EventLoopThread) -> None:
        super().__init__(asynchronous, loop)
        self._agentic_tool = asynchronous

    @property
    def definition(self) -> ToolDefinition:
        """The definition."""
        return self._agentic_tool.definition

    def __call__(self, task: str | None = None, **parameters: Json) -> Result:
        """Run the tool and wait until the run ends or suspends; `crib.questions.answer` answers what it asks.

        Example:
            result = deals("Update all Acme Corp deals to Negotiation")
            if result.question:
                result = crib.questions.answer(result.run_id, "Acme Corp")
        """
        return self._loop.run(self._agentic_tool, task, **parameters)

"""What a program defines in its own code: tools, agentic tools, agents, composite tools and workflows.

Each is saved before the next call, and all but plain tools give a handle to call them.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Unpack

from toolcrib.agents import agentic_definition
from toolcrib.contracts import (
    AgenticMode,
    AllocatedTool,
    CompositeRoute,
    JsonObject,
    JsonSchema,
    Limits,
    LLMConfig,
    Principal,
    ToolDefinition,
)
from toolcrib.contracts.workflows import WorkflowStep
from toolcrib.core.registry import FunctionTool, as_function_tool, composite_definition
from toolcrib.core.runs import Result
from toolcrib.crib.agents.executions import Executions
from toolcrib.crib.container.container import Parts
from toolcrib.crib.container.models import llm_of
from toolcrib.crib.definitions import (
    AgenticOptions,
    AgentOptions,
    Usable,
    WorkflowOptions,
    agent_definition,
    reference_of,
    workflow_definition,
)
from toolcrib.crib.handle import Agent, AgenticTool, CompositeTool, WorkflowHandle


class Defaults(NamedTuple):
    """What is meant where a definition in code does not say it."""

    model: LLMConfig | None
    """Of agentic tools and agents."""
    limits: Limits | None
    """What their runs may spend."""


class Definer(ABC):
    """The half of a crib that defines.

    Args:
        parts: Of the crib.
        principal: In whose realm and name it is all saved.
        defaults: For what is not said.
    """

    executions: Executions

    def __init__(self, parts: Parts, principal: Principal, defaults: Defaults) -> None:
        self._parts = parts
        self._defaults = defaults
        self.principal = principal
        self._catalogue = parts.catalogue

    @abstractmethod
    async def invoke(self, ref: str, arguments: JsonObject) -> Result:
        """Run a tool, as the crib does: what the handles call."""

    def add(self, *tools: FunctionTool[..., Any] | Callable[..., Any] | ToolDefinition) -> None:
        """Add tools: decorated functions, plain ones (taken to write), or definitions. Saved before the next call."""
        for item in tools:
            addition = item if isinstance(item, ToolDefinition) else as_function_tool(item)
            self._catalogue.add(addition, self.principal)

    def agentic_tool(
        self,
        name: str,
        *,
        mode: AgenticMode,
        model: str | LLMConfig | None = None,
        base_url: str | None = None,
        limits: Limits | None = None,
        **options: Unpack[AgenticOptions],
    ) -> AgenticTool:
        """Define a tool with a model inside, and get a handle to call it.

        Args:
            name: The tool's name.
            mode: `deterministic` with `steps`, or `agentic` with `tools`.
            model: `provider:model`, or a whole configuration; the crib's default if null.
            base_url: Address of the model's server. Given here, in code, it is trusted: it may be a local one.
            limits: What a run may spend; the crib's default if null.
            **options: What it works with and what it is told.

        Raises:
            InvalidDefinition: The prompt, the steps or the limits are not well formed.
            InvalidSettings: The model reference is malformed, its provider unknown, or there is none.
        """
        llm = llm_of(name, model, base_url, default=self._defaults.model, models=self._parts.models)
        definition = agentic_definition(name, mode=mode, llm=llm, limits=limits or self._defaults.limits, **options)
        self._catalogue.add(definition, self.principal)
        return AgenticTool(self.invoke, definition)

    def agent(
        self,
        name: str,
        *,
        model: str | LLMConfig | None = None,
        tools: Sequence[Usable | AllocatedTool] = (),
        base_url: str | None = None,
        limits: Limits | None = None,
        **options: Unpack[AgentOptions],
    ) -> Agent:
        """Define an agent, and get a handle to ask it.

        Args:
            name: The agent's name.
            model: `provider:model`, or a whole configuration; the crib's default if null.
            tools: What it may call: by reference, pattern, `group:…` or `tag:…`, or functions, which are added.
            base_url: Address of the model's server. Given here, in code, it is trusted: it may be a local one.
            limits: What a run may spend; the crib's default if null.
            **options: The other fields of `AgentDefinition`.

        Raises:
            InvalidDefinition: An option is unknown or not of its type, or a function cannot be a tool.
            InvalidSettings: The model reference is malformed, its provider unknown, or there is none.
        """
        llm = llm_of(name, model, base_url, default=self._defaults.model, models=self._parts.models)
        may_call = [one if isinstance(one, AllocatedTool) else reference_of(one, self.add) for one in tools]
        definition = agent_definition(name, llm, may_call, limits or self._defaults.limits, **options)
        self._catalogue.add(definition.tool(), self.principal)
        return Agent(self.executions.execute, definition)

    def composite_tool(
        self,
        name: str,
        *,
        input_schema: JsonSchema,
        routes: Sequence[CompositeRoute],
        description: str = "",
        output_schema: JsonSchema | None = None,
        version: str = "1.0.0",
    ) -> CompositeTool:
        """Define a tool that calls one of several, by rules and without a model, and get a handle to call it.

        Args:
            name: The tool's name.
            input_schema: Its parameters.
            routes: Operations in order: the first whose condition holds is called.
            description: What a model reads.
            output_schema: Shape of what comes back.
            version: Semantic version.
        """
        made = {"description": description, "output_schema": output_schema, "version": version}
        definition = composite_definition(name, input_schema, routes, **made)
        self._catalogue.add(definition, self.principal)
        return CompositeTool(self.invoke, definition)

    def workflow(
        self,
        name: str,
        *,
        steps: Sequence[WorkflowStep | JsonObject],
        limits: Limits | None = None,
        **options: Unpack[WorkflowOptions],
    ) -> WorkflowHandle:
        """Define a workflow, and get a handle to run it. It is checked, and published, before the next call.

        Args:
            name: The workflow's name.
            steps: The nodes of its graph, in any order.
            limits: What a run may spend; what workflows usually may if null.
            **options: The other fields of `WorkflowDefinition`.

        Raises:
            InvalidDefinition: A field is unknown or not of its type. What else is wrong is told when it is saved.
        """
        definition = workflow_definition(name, steps, limits, **options)
        self._catalogue.add(definition.tool(), self.principal)
        return WorkflowHandle(self.invoke, definition)

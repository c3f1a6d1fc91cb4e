"""Definitions in a program's own code: tools, agentic tools, agents, composite tools and workflows, with their options.

Each is saved before the next call. All except plain tools return a handle, with which the program calls them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict, Unpack, cast

from pydantic import ValidationError

from toolcrib import agents, contracts
from toolcrib.contracts import AllocatedTool, InvalidDefinition, ToolDefinition
from toolcrib.crib import container
from toolcrib.kinds.python.functions import FunctionTool, as_function_tool
from toolcrib.kinds.python.signatures import inner_function, name_of
from toolcrib.workflows import checks

if TYPE_CHECKING:
    from toolcrib.contracts import (
        AgentDefinition,
        AgenticContext,
        AgenticMode,
        AgenticStatus,
        AgenticStep,
        AgentMemory,
        AgentRequest,
        AgentResponse,
        Grounding,
        Guardrail,
        Json,
        JsonObject,
        JsonSchema,
        Limits,
        LLMConfig,
        PinnedHandle,
        Principal,
        ResponseFormat,
        SideEffects,
    )
    from toolcrib.contracts.workflows import WorkflowDefinition, WorkflowStep
    from toolcrib.core.runs import Result
    from toolcrib.crib.container.catalogue import Catalogue
    from toolcrib.crib.container.container import CribServices
    from toolcrib.kinds.composite.shape import CompositeRoute

Invoke: TypeAlias = "Callable[[str, JsonObject], Coroutine[Any, Any, Result]]"
"""Runs the tool of a reference with arguments."""

Execute: TypeAlias = "Callable[[str, AgentRequest], Awaitable[AgentResponse]]"
"""Asks the agent of a reference."""


class Agent:
    """A handle to an agent: await it with a message.

    Example:
        desk = crib.agent("desk", model="anthropic:claude-sonnet-4", tools=[search_deals])
        answer = await desk("Which deals has Acme?")
        print(answer.response, answer.cost_usd)
    """

    def __init__(self, execute: Execute, definition: AgentDefinition) -> None:
        self._execute = execute
        self.definition = definition

    async def __call__(
        self, message: str, *, conversation_id: str | None = None, context: JsonObject | None = None
    ) -> AgentResponse:
        """Ask the agent, and wait until it has answered or waits for a person.

        Args:
            message: What it is asked.
            conversation_id: The conversation to continue; null starts a new one.
            context: Facts that it needs to know, by name.

        Example:
            answer = await desk("Which deals has Acme?")
            more = await desk("And who owns them?", conversation_id=answer.conversation_id)
        """
        request = contracts.AgentRequest(message=message, conversation_id=conversation_id, context=context or {})
        return await self._execute(f"{self.definition.name}@{self.definition.version}", request)


class CompositeTool:
    """A handle to a composite tool: await it with its arguments.

    Example:
        schema = {"type": "object", "properties": {"company": {"type": "string"}}, "required": ["company"]}
        routes = [CompositeRoute(id="deals", tool="search_deals", input={"company": "${input.company}"})]
        find = crib.composite_tool("find", input_schema=schema, routes=routes)
        print((await find(company="Acme")).output)
    """

    def __init__(self, invoke: Invoke, definition: ToolDefinition) -> None:
        self._invoke = invoke
        self.definition = definition

    def __call__(self, **arguments: Json) -> Coroutine[Any, Any, Result]:
        """Run the tool and wait until the run ends or suspends.

        Example:
            routes = [CompositeRoute(id="acme", tool="search_deals", input={"company": "Acme"})]
            find_acme = crib.composite_tool("find_acme", input_schema={"type": "object"}, routes=routes)
            result = await find_acme()
        """
        return self._invoke(f"{self.definition.name}@{self.definition.version}", arguments)


class WorkflowHandle:
    """A handle to a workflow: await it with its arguments.

    Example:
        steps = [{"name": "deals", "tool": "search_deals", "input": {"company": "Acme"}}]
        list_acme = crib.workflow("list_acme", steps=steps)
        print((await list_acme()).output)
    """

    def __init__(self, invoke: Invoke, definition: WorkflowDefinition) -> None:
        self._invoke = invoke
        self.definition = definition

    def __call__(self, **arguments: Json) -> Coroutine[Any, Any, Result]:
        """Run the workflow and wait until the run ends or suspends.

        Example:
            result = await move(company="Acme")
            print(result.error or result.output)
        """
        return self._invoke(f"{self.definition.name}@{self.definition.version}", arguments)


class AgenticTool:
    """A handle to an agentic tool: await it with a task.

    Example:
        deals = crib.agentic_tool(
            "deals", mode="deterministic", model="anthropic:claude-sonnet-4", steps=["search_deals", "update_deals"]
        )
        result = await deals("Update all Acme Corp deals to Negotiation")
    """

    def __init__(self, invoke: Invoke, definition: ToolDefinition) -> None:
        self._invoke = invoke
        self.definition = definition

    def __call__(self, task: str | None = None, **parameters: Json) -> Coroutine[Any, Any, Result]:
        """Run the tool and wait until the run ends or suspends; `crib.questions.answer` answers what it asks.

        Example:
            result = await deals("Update all Acme Corp deals to Negotiation")
            if result.question:
                result = await crib.questions.answer(result.run_id, "Acme Corp")
        """
        arguments = parameters if task is None else {"task": task, **parameters}
        return self._invoke(f"{self.definition.name}@{self.definition.version}", arguments)


Usable: TypeAlias = str | FunctionTool[..., Any] | Callable[..., Any] | ToolDefinition
"""A tool: one of the crib's by reference, a function, or a definition."""


class AgenticOptions(TypedDict, total=False):
    """Of an agentic tool."""

    steps: Sequence[str | AgenticStep]
    """The fixed sequence."""
    tools: Sequence[str | AllocatedTool]
    """What the model may choose from."""
    description: str
    """What a parent agent reads."""
    system_prompt: str | None
    """A template; a default one if null."""
    context: AgenticContext | None
    """Reference data, documentation."""
    input_schema: JsonSchema | None
    """Parameters; one `task` if null."""
    result_schema: JsonSchema | None
    """Shape of the answer; `{"summary": text}` if null."""
    grounding: Grounding
    """How sure one must be of what the model takes from a task: `evidence` (default), `strict`, `off`."""
    preview_above: int
    """A change of more items than this waits for a person, who is shown what would change; 500 by default."""
    version: str
    """Semantic version."""


class AgentOptions(TypedDict, total=False):
    """Of an agent; each is the field of `AgentDefinition` with its name, which has some more of every tool."""

    description: str
    title: str
    system_prompt: str
    prompt_fragments: Sequence[str]
    response_format: ResponseFormat
    """`structured` if a `response_schema` is given."""
    response_schema: JsonSchema
    tool_categories: Sequence[str]
    tool_tags: Sequence[str]
    excluded_tools: Sequence[str]
    max_tools_in_context: int
    delegates: Sequence[str | Agent]
    """By name, or as `Crib.agent` gave them."""
    side_effects: SideEffects
    parallel_tool_calls: bool
    durable: bool
    memory: AgentMemory
    guardrails: Sequence[Guardrail]
    requires_approval: bool
    principal_ref: str
    realms: Sequence[str]
    can_create_workflows: bool
    pins: Sequence[PinnedHandle]
    status: AgenticStatus
    security_uri: str
    category: str
    tags: Sequence[str]
    usage: str
    input_schema: JsonSchema
    version: str


class WorkflowOptions(TypedDict, total=False):
    """Of a workflow; each is the field of `WorkflowDefinition` with its name, which has some more of every tool."""

    description: str
    title: str
    input_schema: JsonSchema
    output_schema: JsonSchema
    output: Json
    side_effects: SideEffects
    guardrails: Sequence[Guardrail]
    requires_confirmation: bool
    status: AgenticStatus
    security_uri: str
    category: str
    tags: Sequence[str]
    usage: str
    version: str


def agent_definition(
    name: str,
    llm: LLMConfig,
    tools: Sequence[str | AllocatedTool],
    limits: Limits | None,
    **options: Unpack[AgentOptions],
) -> AgentDefinition:
    """The definition of an agent.

    Args:
        name: Its name.
        llm: Its model.
        tools: By reference, pattern of names, group or tag.
        limits: What a run may spend; the usual ones if null.
        **options: What else is to be said.

    Raises:
        InvalidDefinition: A field is unknown or not of its type; the message names it.
    """
    given: dict[str, Any] = {**options}
    if "response_schema" in given:
        given.setdefault("response_format", "structured")
    if limits is not None:
        given["limits"] = limits
    if "delegates" in given:
        given["delegates"] = [one.definition.name if isinstance(one, Agent) else one for one in given["delegates"]]
    try:
        return contracts.AgentDefinition.model_validate({"name": name, "llm": llm, "tools": tuple(tools), **given})
    except ValidationError as problem:
        found = problem.errors()[0]
        place = ".".join(map(str, found["loc"]))
        message = found["msg"].removeprefix("Value error, ")
        msg = ": ".join(filter(None, (f"agent {name!r}", place, message)))
        raise InvalidDefinition(msg) from None


def workflow_definition(
    name: str, steps: Sequence[WorkflowStep | JsonObject], limits: Limits | None, **options: Unpack[WorkflowOptions]
) -> WorkflowDefinition:
    """The definition of a workflow.

    Args:
        name: Its name.
        steps: Its steps.
        limits: What a run may spend; the usual ones if null.
        **options: What else is to be said.

    Raises:
        InvalidDefinition: A field is unknown or not of its type; `problems` has all of them.
    """
    given: dict[str, object] = {"name": name, "steps": list(steps), **options}
    if limits is not None:
        given["limits"] = limits
    found = checks.read_definition(given)
    if found.definition is None:
        raise checks.refusal(name, found.problems)
    return found.definition


def reference_of(tool: Usable, add: Callable[[FunctionTool[..., Any] | ToolDefinition], None]) -> str:
    """The reference of a tool; a function that is not yet a tool is added.

    Raises:
        InvalidDefinition: No tool can be made of the function.
    """
    if isinstance(tool, str):
        return tool
    addition = tool if isinstance(tool, ToolDefinition) else as_function_tool(tool)
    add(addition)
    definition = addition if isinstance(addition, ToolDefinition) else addition.definition
    return f"{definition.name}@{definition.version}"


Callee: TypeAlias = str | Callable[..., Any]
"""What is called: a tool's `name` or `name@range`, its function, decorated or not, or a handle."""


def reference_to(callee: Callee) -> str:
    """The reference of something that is to be called; nothing is added.

    Args:
        callee: A reference, a handle, or a function, which stands for the tool of its name.

    Raises:
        InvalidDefinition: It is none of these.
    """
    if isinstance(callee, str):
        return callee
    if isinstance(callee, FunctionTool | Agent | AgenticTool | CompositeTool | WorkflowHandle):
        definition = cast("ToolDefinition", callee.definition)
        return f"{definition.name}@{definition.version}"
    inner_function(callee)
    return name_of(callee)


class Definer(ABC):
    """The half of a crib that defines, in the realm and name of the crib's own principal."""

    principal: Principal
    _parts: CribServices
    _catalogue: Catalogue

    @abstractmethod
    async def invoke(self, ref: str, arguments: JsonObject) -> Result:
        """Run a tool, as the crib does: what the handles call."""

    @abstractmethod
    async def _ask(self, agent: str, request: AgentRequest) -> AgentResponse:
        """Ask an agent, as the crib does."""

    def add(self, *tools: FunctionTool[..., Any] | Callable[..., Any] | ToolDefinition) -> None:
        """Add tools: decorated functions, plain ones (taken to write), or definitions. Saved before the next call.

        If one of them cannot be a tool, none is added.

        Raises:
            InvalidDefinition: One is no function, its signature cannot be expressed in JSON, or it could not run.

        Example:
            @tool(side_effects="reads")
            def find_person(name: str) -> str:
                return f"{name}@acme.example"

            crib.add(find_person)
            print((await crib.call("find_person", name="Ann")).output)
        """
        made = [item if isinstance(item, ToolDefinition) else as_function_tool(item) for item in tools]
        self._catalogue.add(*made, owner=self.principal)

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
            **options: Its tools, its model and its prompt.

        Raises:
            InvalidDefinition: The prompt, the steps or the limits are not well formed.
            InvalidSettings: The model reference is malformed, its provider unknown, or there is none.

        Example:
            helper = crib.agentic_tool(
                "helper", mode="agentic", model="anthropic:claude-sonnet-4", tools=["search_deals"]
            )
            result = await helper("Which deals has Acme?")
        """
        defaults = self._parts.outside.definitions
        llm = self._llm_of(name, model, base_url)
        definition = agents.agentic_definition(
            name, mode=mode, llm=llm, limits=limits or defaults.default_limits, **options
        )
        self._catalogue.add(definition, owner=self.principal)
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

        Example:
            desk = crib.agent(
                "desk", model="anthropic:claude-sonnet-4", tools=[search_deals], system_prompt="You know the deals."
            )
            answer = await desk("Which deals has Acme?")
        """
        defaults = self._parts.outside.definitions
        llm = self._llm_of(name, model, base_url)
        may_call = [one if isinstance(one, AllocatedTool) else reference_of(one, self.add) for one in tools]
        definition = agent_definition(name, llm, may_call, limits or defaults.default_limits, **options)
        self._catalogue.add(definition.tool(), owner=self.principal)
        return Agent(self._ask, definition)

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

        Example:
            schema = {"type": "object", "properties": {"stage": {"type": "string"}, "company": {"type": "string"}}}
            find = crib.composite_tool(
                "find",
                input_schema=schema,
                routes=[CompositeRoute(id="by_company", when="${input.company != null}", tool="search_deals")],
            )
        """
        from toolcrib.kinds.composite.checks import composite_definition

        made = {"description": description, "output_schema": output_schema, "version": version}
        definition = composite_definition(name, input_schema, routes, **made)
        self._catalogue.add(definition, owner=self.principal)
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
            InvalidDefinition: A field is unknown or not of its type. Other errors are reported when it is saved.

        Example:
            move = crib.workflow(
                "move_acme",
                steps=[
                    {"name": "deals", "tool": "search_deals", "input": {"company": "Acme"}},
                    {"name": "moved", "tool": "update_deals", "input": {"ids": "${deals[*].id}", "stage": "Won"}},
                ],
            )
            result = await move()
        """
        definition = workflow_definition(name, steps, limits, **options)
        self._catalogue.add(definition.tool(), owner=self.principal)
        return WorkflowHandle(self.invoke, definition)

    def _llm_of(self, name: str, model: str | LLMConfig | None, base_url: str | None) -> LLMConfig:
        default, realm = self._parts.outside.definitions.default_model, self.principal.realm
        return container.llm_of(name, model, base_url, default=default, models=self._parts.models, realm=realm)

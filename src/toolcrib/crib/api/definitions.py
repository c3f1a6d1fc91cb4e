"""Definitions in a program's own code: tools, agentic tools, agents, composite tools and workflows, with their options.

Each is saved before the next call. All except plain tools return a handle, with which the program calls them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, TypeVar, Unpack, cast, overload

from pydantic import ValidationError

from toolcrib import agents, contracts
from toolcrib.contracts import AllocatedTool, InvalidDefinition, McpServerDefinition, ToolDefinition
from toolcrib.crib import container
from toolcrib.crib.api.handles import Agent, AgenticTool, CompositeTool, WorkflowHandle
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
    from toolcrib.crib.api.output_types import OutputType
    from toolcrib.crib.api.run_streams import HandleCrib
    from toolcrib.crib.container.catalogue import Catalogue
    from toolcrib.crib.container.container import CribServices
    from toolcrib.kinds.composite.shape import CompositeRoute

OutputT = TypeVar("OutputT")

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
    **options: Any,
) -> AgentDefinition:
    """The definition of an agent.

    Args:
        name: Its name.
        llm: Its model.
        tools: By reference, pattern of names, group or tag.
        limits: What a run may spend; the usual ones if null.
        **options: What else is to be said; see `AgentOptions`.

    Raises:
        InvalidDefinition: A field is unknown or not of its type; the message names it.
    """
    given: dict[str, Any] = {**options}
    if limits is not None:
        given["limits"] = limits
    if "delegates" in given:
        given["delegates"] = [one.definition.name if isinstance(one, Agent) else one for one in given["delegates"]]
    try:
        return contracts.AgentDefinition.model_validate({"name": name, "llm": llm, "tools": tuple(tools), **given})
    except ValidationError as problem:
        raise _refusal(f"agent {name!r}", problem) from None


def _refusal(owner: str, problem: ValidationError) -> InvalidDefinition:
    found = problem.errors()[0]
    place = ".".join(map(str, found["loc"]))
    return InvalidDefinition(": ".join(filter(None, (owner, place, found["msg"].removeprefix("Value error, ")))))


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


class Definer:
    """The half of a crib that defines, in the realm and name of the crib's own principal."""

    principal: Principal
    _parts: CribServices
    _catalogue: Catalogue

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

    @overload
    def agentic_tool(
        self,
        name: str,
        *,
        mode: AgenticMode,
        output_type: type[OutputT],
        model: str | LLMConfig | None = None,
        base_url: str | None = None,
        limits: Limits | None = None,
        **options: Unpack[AgenticOptions],
    ) -> AgenticTool[OutputT]: ...

    @overload
    def agentic_tool(
        self,
        name: str,
        *,
        mode: AgenticMode,
        output_type: object | None = None,
        model: str | LLMConfig | None = None,
        base_url: str | None = None,
        limits: Limits | None = None,
        **options: Unpack[AgenticOptions],
    ) -> AgenticTool[Json]: ...

    def agentic_tool(
        self,
        name: str,
        *,
        mode: AgenticMode,
        output_type: object | None = None,
        model: str | LLMConfig | None = None,
        base_url: str | None = None,
        limits: Limits | None = None,
        **options: Unpack[AgenticOptions],
    ) -> AgenticTool[Any]:
        """Define a tool with a model inside, and get a handle to call it.

        Args:
            name: The tool's name.
            mode: `deterministic` with `steps`, or `agentic` with `tools`.
            output_type: Type of the answer, whose JSON Schema is the `result_schema`: see `agent`.
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
        wanted = _output_type(f"agentic tool {name!r}", output_type, options.get("result_schema"), "result_schema")
        if wanted is not None:
            options["result_schema"] = wanted.schema
        llm = self._llm_of(name, model, base_url)
        definition = agents.agentic_definition(
            name, mode=mode, llm=llm, limits=limits or defaults.default_limits, **options
        )
        self._catalogue.add(definition, owner=self.principal)
        self._check_answers(f"{definition.name}@{definition.version}", wanted)
        return AgenticTool(self._as_handle_crib(), definition, wanted)

    @overload
    def agent(
        self,
        name: str,
        *,
        output_type: type[OutputT],
        model: str | LLMConfig | None = None,
        tools: Sequence[Usable | AllocatedTool] = (),
        base_url: str | None = None,
        limits: Limits | None = None,
        **options: Unpack[AgentOptions],
    ) -> Agent[OutputT]: ...

    @overload
    def agent(
        self,
        name: str,
        *,
        response_schema: JsonSchema,
        response_format: Literal["structured"] = "structured",
        model: str | LLMConfig | None = None,
        tools: Sequence[Usable | AllocatedTool] = (),
        base_url: str | None = None,
        limits: Limits | None = None,
        **options: Unpack[AgentOptions],
    ) -> Agent[JsonObject]: ...

    @overload
    def agent(
        self,
        name: str,
        *,
        response_format: Literal["json"],
        model: str | LLMConfig | None = None,
        tools: Sequence[Usable | AllocatedTool] = (),
        base_url: str | None = None,
        limits: Limits | None = None,
        **options: Unpack[AgentOptions],
    ) -> Agent[JsonObject]: ...

    @overload
    def agent(
        self,
        name: str,
        *,
        response_format: Literal["text"] = "text",
        model: str | LLMConfig | None = None,
        tools: Sequence[Usable | AllocatedTool] = (),
        base_url: str | None = None,
        limits: Limits | None = None,
        **options: Unpack[AgentOptions],
    ) -> Agent[str]: ...

    @overload
    def agent(
        self,
        name: str,
        *,
        output_type: object,
        model: str | LLMConfig | None = None,
        tools: Sequence[Usable | AllocatedTool] = (),
        base_url: str | None = None,
        limits: Limits | None = None,
        **options: Unpack[AgentOptions],
    ) -> Agent[Any]: ...

    def agent(
        self,
        name: str,
        *,
        output_type: object | None = None,
        response_schema: JsonSchema | None = None,
        response_format: ResponseFormat | None = None,
        model: str | LLMConfig | None = None,
        tools: Sequence[Usable | AllocatedTool] = (),
        base_url: str | None = None,
        limits: Limits | None = None,
        **options: Unpack[AgentOptions],
    ) -> Agent[Any]:
        """Define an agent, and get a handle to ask it.

        Args:
            name: The agent's name.
            output_type: Type of the answer: a pydantic model, dataclass, TypedDict, enum, `Literal`, list, union or
                number. The model is told its JSON Schema, and `Result.output` is an instance. Text if null.
            response_schema: JSON Schema of the answer, an object, instead of a type; the output is a dictionary.
            response_format: `json` for an object of any shape; else it follows from the other two.
            model: `provider:model`, or a whole configuration; the crib's default if null.
            tools: What it may call: by reference, pattern, `group:…` or `tag:…`, or functions, which are added.
            base_url: Address of the model's server. Given here, in code, it is trusted: it may be a local one.
            limits: What a run may spend; the crib's default if null.
            **options: The other fields of `AgentDefinition`.

        Raises:
            InvalidDefinition: An option is unknown or not of its type, a function cannot be a tool, or the
                `output_type` has no JSON Schema.
            InvalidSettings: The model reference is malformed, its provider unknown, or there is none.

        Example:
            desk = crib.agent(
                "desk", model="anthropic:claude-sonnet-4", tools=[search_deals], system_prompt="You know the deals."
            )
            answer = await desk("Which deals has Acme?")
        """
        llm = self._llm_of(name, model, base_url)
        may_call = [one if isinstance(one, AllocatedTool) else reference_of(one, self.add) for one in tools]
        given: dict[str, Any] = {**options}
        if response_format is not None:
            given["response_format"] = response_format
        return self.define_agent(
            name, llm, may_call, given, output_type=output_type, response_schema=response_schema, limits=limits
        )

    def define_agent(
        self,
        name: str,
        llm: LLMConfig,
        tools: Sequence[str | AllocatedTool],
        options: JsonObject,
        *,
        output_type: object | None = None,
        response_schema: JsonSchema | None = None,
        limits: Limits | None = None,
    ) -> Agent[Any]:
        """As `agent`, whose types say more, with a model that is configured and tools that are added.

        Raises:
            InvalidDefinition: As `agent`.

        Example:
            crib.define_agent("clerk", LLMConfig(model="anthropic:claude-sonnet-4"), [], {}, output_type=int)
        """
        owner, given = f"agent {name!r}", {**options}
        wanted = _output_type(owner, output_type, response_schema, "response_schema")
        if response_schema is not None:
            from toolcrib.crib.api.output_types import check_response_schema

            check_response_schema(owner, response_schema)
        if response_schema is not None or wanted is not None:
            given["response_schema"] = response_schema if wanted is None else wanted.schema
            given.setdefault("response_format", "structured")
        limits = limits or self._parts.outside.definitions.default_limits
        definition = agent_definition(name, llm, tools, limits, **given)
        self._catalogue.add(definition.tool(), owner=self.principal)
        self._check_answers(f"{definition.name}@{definition.version}", wanted)
        return Agent(self._as_handle_crib(), definition, wanted)

    def composite_tool(
        self,
        name: str,
        *,
        input_schema: JsonSchema,
        routes: Sequence[CompositeRoute],
        description: str = "",
        output_schema: JsonSchema | None = None,
        version: str = "1.0.0",
    ) -> CompositeTool[Json]:
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
        return CompositeTool(self._as_handle_crib(), definition)

    @overload
    def workflow(
        self,
        name: str,
        *,
        output_type: type[OutputT],
        steps: Sequence[WorkflowStep | JsonObject],
        limits: Limits | None = None,
        **options: Unpack[WorkflowOptions],
    ) -> WorkflowHandle[OutputT]: ...

    @overload
    def workflow(
        self,
        name: str,
        *,
        output_type: object | None = None,
        steps: Sequence[WorkflowStep | JsonObject],
        limits: Limits | None = None,
        **options: Unpack[WorkflowOptions],
    ) -> WorkflowHandle[Json]: ...

    def workflow(
        self,
        name: str,
        *,
        output_type: object | None = None,
        steps: Sequence[WorkflowStep | JsonObject],
        limits: Limits | None = None,
        **options: Unpack[WorkflowOptions],
    ) -> WorkflowHandle[Any]:
        """Define a workflow, and get a handle to run it. It is checked, and published, before the next call.

        Args:
            name: The workflow's name.
            output_type: Type of what it puts out, whose JSON Schema is the `output_schema`: see `agent`.
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
        wanted = _output_type(f"workflow {name!r}", output_type, options.get("output_schema"), "output_schema")
        if wanted is not None:
            options["output_schema"] = wanted.value_schema
        definition = workflow_definition(name, steps, limits, **options)
        self._catalogue.add(definition.tool(), owner=self.principal)
        return WorkflowHandle(self._as_handle_crib(), definition, wanted)

    def mcp_server(
        self,
        name: str,
        tools: Sequence[str],
        *,
        excluded_tools: Sequence[str] = (),
        offer: Literal["tools", "search"] = "tools",
        title: str | None = None,
        description: str = "",
    ) -> McpServerDefinition:
        """Define a virtual MCP server: a selection of tools at `/mcp/servers/{name}`. It is saved before the next call.

        Args:
            name: The end of its address.
            tools: Names, patterns of names (`crm.*`), groups (`group:crm/deals`) and tags (`tag:deals`).
            excluded_tools: The same, for tools that are taken out again.
            offer: `search` lists `search_tools` and `call_tool` in place of the tools.
            title: What people see in place of the name.
            description: What it is for; instructions for the clients' model.

        Raises:
            InvalidDefinition: A field is not of its type.

        Example:
            server = crib.mcp_server("crm", ["search_deals", "tag:crm"], description="Find and change deals.")
            print(server.path)
        """
        content = {"title": title, "description": description, "offer": offer}
        content |= {"name": name, "tools": tuple(tools), "excluded_tools": tuple(excluded_tools)}
        try:
            definition = McpServerDefinition.model_validate(content)
        except ValidationError as problem:
            raise _refusal(f"MCP server {name!r}", problem) from None
        self._catalogue.add(definition, owner=self.principal)
        return definition

    def _as_handle_crib(self) -> HandleCrib:
        return cast("HandleCrib", self)

    def _check_answers(self, ref: str, wanted: OutputType[Any] | None) -> None:
        """Have the validators of a type judge the answers of an agent, which is told what they say."""
        check = None if wanted is None else wanted.problem_of
        self._parts.definitions.answer_checks.add(self.principal.realm, ref, check)

    def _llm_of(self, name: str, model: str | LLMConfig | None, base_url: str | None) -> LLMConfig:
        default, realm = self._parts.outside.definitions.default_model, self.principal.realm
        return container.llm_of(name, model, base_url, default=default, models=self._parts.models, realm=realm)


def _output_type(owner: str, output_type: object | None, schema: object, field: str) -> OutputType[Any] | None:
    """The type of an answer; null for text, or what a schema says.

    Raises:
        InvalidDefinition: It has no JSON Schema, or there is a schema besides.
    """
    if output_type is None:
        return None
    if schema is not None:
        msg = f"{owner} has both output_type and {field}; give one of them: output_type makes the schema"
        raise InvalidDefinition(msg)
    if output_type is str:
        return None
    from toolcrib.crib.api.output_types import OutputType

    return OutputType(owner, output_type)

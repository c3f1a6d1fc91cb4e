"""Synchronous forms of `toolcrib.crib.crib`.

Written by `python -m tools.sync_facade`; not to be edited.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast, overload

from toolcrib.contracts import OWNER
from toolcrib.crib import crib as asynchronous
from toolcrib.sync.acting import ActingCrib
from toolcrib.sync.event_loop import EventLoopThread
from toolcrib.sync.handles import Agent, AgenticTool, CompositeTool, WorkflowHandle
from toolcrib.sync.runs import Ids, Retention

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence
    from types import TracebackType
    from typing import IO, Literal, Self, Unpack

    from toolcrib import llm
    from toolcrib.contracts import (
        AgenticMode,
        AllocatedTool,
        Json,
        JsonObject,
        JsonSchema,
        Limits,
        LLMConfig,
        McpServerDefinition,
        Principal,
        ResponseFormat,
        ToolDefinition,
    )
    from toolcrib.contracts.pruning_and_rehearsal import RehearsalReport
    from toolcrib.contracts.workflows import WorkflowStep
    from toolcrib.core import runs
    from toolcrib.core.executor import Clock
    from toolcrib.core.runs.journal.bundles import Manifest
    from toolcrib.crib import container
    from toolcrib.crib import runs as run_parts
    from toolcrib.crib.api.definitions import AgenticOptions, AgentOptions, OutputT, Usable, WorkflowOptions
    from toolcrib.crib.container.catalogue import Addition
    from toolcrib.crib.settings import Settings
    from toolcrib.infrastructure import net
    from toolcrib.infrastructure.store import Store
    from toolcrib.infrastructure.store.memory.shadow import ShadowStore
    from toolcrib.kinds.composite.shape import CompositeRoute
    from toolcrib.kinds.python.functions import FunctionTool


class Crib(ActingCrib):
    """A crib of tools with its store, executor and engine.

    Example:
        with Crib("memory://", models={"scripted:m": ScriptedModel(["Done."])}) as crib:
            crib.add(search_deals, update_deals)

    Args:
        store: A URL (`sqlite:///crib.db`, `postgresql://user:password@host/crib`, `memory://`) or a store.
        principal: The principal that acts unless `acting_as` names another.
        models: Models by reference that are used instead of opening one: scripted ones for tests and demonstrations.
        egress: Which addresses HTTP tools and models may reach.
        environment: Where `${env:NAME}` and API keys are looked up; `os.environ` if null.
        clock: Time.
        definitions: What definitions may use, and what they get where they say nothing.
        sharing: What the processes of the crib share, and how they divide the work.
    """

    def __init__(
        self,
        store: str | Store = "sqlite:///toolcrib.db",
        *,
        principal: Principal = OWNER,
        models: Mapping[str, llm.LanguageModel] | None = None,
        egress: net.EgressPolicy | None = None,
        environment: Mapping[str, str] | None = None,
        clock: Clock | None = None,
        definitions: container.DefinitionOptions | None = None,
        sharing: container.SharingOptions | None = None,
    ) -> None:
        loop = EventLoopThread()
        crib = loop.call(
            asynchronous.Crib,
            store,
            principal=principal,
            models=models,
            egress=egress,
            environment=environment,
            clock=clock,
            definitions=definitions,
            sharing=sharing,
        )
        self._begin(crib, loop, owns_loop=True)

    def _begin(self, crib: asynchronous.Crib, loop: EventLoopThread, *, owns_loop: bool) -> None:
        super().__init__(crib, loop)
        self._crib = crib
        self._owns_loop = owns_loop
        if owns_loop:
            loop.closes(crib.close)

    @classmethod
    def _around(cls, crib: asynchronous.Crib, loop: EventLoopThread, *, owns_loop: bool = True) -> Self:
        made = cls.__new__(cls)
        made._begin(crib, loop, owns_loop=owns_loop)  # noqa: SLF001
        return made

    def _beside(self, crib: asynchronous.Crib) -> Crib:
        """Another crib in the same loop."""
        return Crib._around(crib, self._loop, owns_loop=False)

    def __enter__(self) -> Self:
        try:
            self.open()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    @cached_property
    def retention(self) -> Retention:
        """What is kept of ended runs, and how they are pruned."""
        return Retention(self._crib.retention, self._loop)

    @classmethod
    def from_settings(
        cls,
        settings: Settings | None = None,
        *,
        store: Store | None = None,
        principal: Principal = OWNER,
        models: Mapping[str, llm.LanguageModel] | None = None,
        environment: Mapping[str, str] | None = None,
        prices: llm.Prices | None = None,
        clock: Clock | None = None,
    ) -> Self:
        """A crib with the operator's settings, as the command line and the server use it.

        Args:
            settings: As `load_settings` reads them from the environment and `toolcrib.toml` if null.
            store: An open store instead of the one that the settings name.
            principal: As in the constructor, like all that follow.
            models: See there.
            environment: See there.
            prices: See there.
            clock: See there.

        Raises:
            InvalidSettings: A setting cannot be used.

        Example:
            with Crib.from_settings() as crib:  # reads TOOLCRIB_STORE and toolcrib.toml
                crib.add(search_deals)
        """
        loop = EventLoopThread()
        crib = loop.call(
            asynchronous.Crib.from_settings,
            settings,
            store=store,
            principal=principal,
            models=models,
            environment=environment,
            prices=prices,
            clock=clock,
        )
        return cls._around(crib, loop)

    def acting_as(self, principal: Principal, *, start: container.StartRecord | None = None) -> ActingCrib:
        """This crib for one principal: it acts in the principal's realm and with the principal's permissions.

        Args:
            principal: In whose realm and name everything is done.
            start: Remembers the run that is begun, for the one request that this crib is for: a request that is sent
                again gets the same run.

        Example:
            ann = crib.acting_as(Principal(id="ann", grants=("ai://tools/crm/*/execute",)))
            result = ann.invoke("search_deals", {"company": "Acme"})

        The crib itself acts as the application, which needs no grant to see and decide.
        """
        return ActingCrib(self._loop.call(self._crib.acting_as, principal, start=start), self._loop)

    @property
    def additions(self) -> Sequence[tuple[Addition, Principal]]:
        """What was added and is not saved yet, and by which principal."""
        return self._crib.additions

    @property
    def budgets(self) -> Sequence[str]:
        """The caps on what many runs spend together."""
        return self._crib.budgets

    @cached_property
    def ids(self) -> Ids:
        """Finds ids of the realm by their first characters."""
        return Ids(self._crib.ids, self._loop)

    def open(self) -> None:
        """Connect the store and save what was added; calls do this too.

        Raises:
            InvalidInput: Something that was added is not well formed, or its model cannot be opened. Each refusal is
                raised by one `open`, and by every call of what was refused. Everything else is saved.
            NotFound: Something that was added names something that does not exist.

        Example:
            crib.agent("greeter", model="anthropic:claude-sonnet-4")
            crib.open()  # raises here what would else be raised by the first call
        """
        return self._loop.run(
            self._crib.open,
        )

    def recover(self) -> Sequence[runs.Result]:
        """Resume all runs that can continue now.

        Example:
            resumed = crib.recover()
        """
        return self._loop.run(
            self._crib.recover,
        )

    def export_run(self, run_id: str, file: IO[bytes], *, sees: run_parts.Sees = lambda _: True) -> Manifest:
        """Write a run, ended or not, with everything needed to replay it, into one seekable file.

        Args:
            run_id: The run.
            file: Where to.
            sees: Tells of another run, or of a definition, that the run names whether it may be in the file.

        Raises:
            NotFound: No such run.

        Example:
            result = crib.invoke("search_deals", {"company": "Acme"})
            with open("run.bundle", "wb") as file:
                crib.export_run(result.run_id, file)
        """
        return self._loop.run(self._crib.export_run, run_id, file, sees=sees)

    def rehearse(
        self, changes: Callable[[Crib], object] | None = None, *, functions_here: bool = True
    ) -> RehearsalReport:
        """Test whether all runs that have not ended could continue in this process after a change.

        Nothing runs, no model is asked, and nothing is saved: neither the change, which is made to a shadow of the
        store, nor what was added to this crib and not saved yet.

        Args:
            changes: Does to the crib that it is given what is to be rehearsed; null for the code of this process alone.
            functions_here: Whether the Python functions were added here that the runs call; if not, nothing is said
                of them.

        Example:
            report = crib.rehearse(lambda shadow: shadow.save(update_deals.definition))
        """
        if changes is None:
            return self._loop.run(self._crib.rehearse, functions_here=functions_here)

        async def change(shadow: asynchronous.Crib) -> None:
            await asyncio.to_thread(changes, self._beside(shadow))

        return self._loop.run(self._crib.rehearse, change, functions_here=functions_here)

    @contextmanager
    def shadow(self, clock: Clock | None = None) -> Generator[tuple[Crib, ShadowStore]]:
        """A crib on a shadow of the store: it has the same definitions, and what is saved there is never stored.

        Args:
            clock: Its time; that of this crib if null.

        Example:
            with crib.shadow() as (shadow, _):
                shadow.save(update_deals.definition)  # checked, and not stored
        """
        with self._loop.enter(self._crib.shadow, clock) as (crib, store):
            yield self._beside(crib), store

    def refresh(self, realm: str | None = None) -> None:
        """Read definitions that other processes have saved.

        Example:
            crib.refresh()
        """
        return self._loop.run(self._crib.refresh, realm)

    def close(self) -> None:
        """Let go of leases, connections and the store."""
        if self._owns_loop:
            self._loop.close()
        else:
            self._loop.run(self._crib.close)

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
            print(crib.call("find_person", name="Ann").output)
        """
        return self._loop.call(self._crib.add, *tools)

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
            result = helper("Which deals has Acme?")
        """
        return AgenticTool(
            self._loop.call(
                cast("Any", self._crib.agentic_tool),
                name,
                mode=mode,
                output_type=output_type,
                model=model,
                base_url=base_url,
                limits=limits,
                **options,
            ),
            self._loop,
        )

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
            answer = desk("Which deals has Acme?")
        """
        return Agent(
            self._loop.call(
                cast("Any", self._crib.agent),
                name,
                output_type=output_type,
                response_schema=response_schema,
                response_format=response_format,
                model=model,
                tools=tools,
                base_url=base_url,
                limits=limits,
                **options,
            ),
            self._loop,
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
        return Agent(
            self._loop.call(
                self._crib.define_agent,
                name,
                llm,
                tools,
                options,
                output_type=output_type,
                response_schema=response_schema,
                limits=limits,
            ),
            self._loop,
        )

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
        return CompositeTool(
            self._loop.call(
                self._crib.composite_tool,
                name,
                input_schema=input_schema,
                routes=routes,
                description=description,
                output_schema=output_schema,
                version=version,
            ),
            self._loop,
        )

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
            result = move()
        """
        return WorkflowHandle(
            self._loop.call(
                cast("Any", self._crib.workflow), name, output_type=output_type, steps=steps, limits=limits, **options
            ),
            self._loop,
        )

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
        return self._loop.call(
            self._crib.mcp_server,
            name,
            tools,
            excluded_tools=excluded_tools,
            offer=offer,
            title=title,
            description=description,
        )

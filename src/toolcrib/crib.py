"""The crib: the one object that wires the house together, and the Python API.

    crib = Crib()                                # SQLite in the working directory
    crib.add(search_deals, update_deals)
    deals = crib.agentic_tool("deals", mode="deterministic", model="anthropic:claude-sonnet-4",
                              steps=["search_deals", "update_deals"])
    result = await deals("Update all Acme Corp deals to Negotiation")

Nothing is connected until the first call. Everything that a crib does goes through its executor and its journal.
"""

import asyncio
import os
import socket
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from toolcrib.agents import agentic_definition, check_agentic, pins_of, programs
from toolcrib.contracts import (
    OWNER,
    AgenticContext,
    AgenticMode,
    AgenticStep,
    AllocatedTool,
    ApprovalDecision,
    ApprovalRequested,
    ChildStarted,
    ClientResult,
    Conflict,
    InvalidInput,
    Json,
    JsonObject,
    JsonSchema,
    Limits,
    LLMConfig,
    NotFound,
    Principal,
    ProviderAuth,
    ProviderDefinition,
    RunEvent,
    RunKind,
    RunRequest,
    Signal,
    ToolDefinition,
    ToolEnvelope,
    ToolError,
    ToolRevision,
    Trace,
)
from toolcrib.engines import Driven, EngineSettings, LocalEngine, SystemClock, new_run_id
from toolcrib.executor import CallFailed, Clock, Executor, SlidingWindow, ToolCall
from toolcrib.llm import LanguageModel, ModelPool
from toolcrib.llm.prices import Prices
from toolcrib.net import EgressPolicy, HttpSession
from toolcrib.providers import ImportedApi, ToolOverride, import_openapi
from toolcrib.registry import FunctionTool, Providers, Registry, as_function_tool, check_definition
from toolcrib.runs import (
    Ended,
    Program,
    Result,
    RunContext,
    approval_signal,
    client_signal,
    decision_on,
    outside_call,
    trace_of,
    waiting_approvals,
    waiting_at,
    waiting_handoffs,
)
from toolcrib.runtimes import Abilities, AgenticRuntime, HttpRuntime, PythonRuntime, RuntimeDispatcher
from toolcrib.secrets import EnvironmentSecrets
from toolcrib.store import Store, open_store


class Crib:
    """A crib of tools with its store, executor and engine.

    Args:
        store: A URL (`sqlite:///toolcrib.db`, `memory://`) or a store.
        principal: Who acts when nobody else is named.
        egress: Which addresses HTTP tools and models may reach.
        models: Models by reference that are used instead of opening one: scripted ones for tests and demonstrations.
        environment: Where `${env:NAME}` and API keys are looked up; `os.environ` if null.
        released: Patterns of the variables that tools may use as secrets.
        prices: What models cost.
        clock: Time.
        lease_s: Seconds after which the runs of a process that died are free.
    """

    def __init__(
        self,
        store: str | Store = "sqlite:///toolcrib.db",
        *,
        principal: Principal = OWNER,
        egress: EgressPolicy | None = None,
        models: Mapping[str, LanguageModel] | None = None,
        environment: Mapping[str, str] | None = None,
        released: tuple[str, ...] = ("*",),
        prices: Prices | None = None,
        clock: Clock | None = None,
        lease_s: float = 10.0,
    ) -> None:
        self.principal = principal
        self.store = open_store(store) if isinstance(store, str) else store
        self.clock: Clock = clock or SystemClock()
        self.registry = Registry(self.store.definitions)
        self.providers = Providers(self.store.definitions)
        self.egress = egress or EgressPolicy()
        environment = os.environ if environment is None else environment
        secrets = EnvironmentSecrets(environment, released)
        self._session = HttpSession(self.egress)
        self._models = ModelPool(
            self._session,
            given=models or {},
            environment=environment,
            is_released=secrets.is_released,
            prices=prices or Prices(),
        )
        self._functions = PythonRuntime()
        self._pending: list[ToolDefinition | FunctionTool[..., Any]] = []
        self._realms: set[str] = set()
        self._open = False
        self._opening = asyncio.Lock()
        self.executor = self._make_executor(secrets)
        self.engine = self._make_engine(lease_s)

    def _make_executor(self, secrets: EnvironmentSecrets) -> Executor:
        return Executor(
            tools=self.registry,
            dispatcher=RuntimeDispatcher(
                {
                    "python": self._functions,
                    "http": HttpRuntime(self._session, self.providers.find, secrets, clock=self.clock),
                    "agentic": AgenticRuntime(),
                }
            ),
            secrets=secrets,
            results=self.store.cache,
            attic=self.store.blobs,
            rates=SlidingWindow(),
            clock=self.clock,
        )

    def _make_engine(self, lease_s: float) -> LocalEngine:
        return LocalEngine(
            store=self.store,
            registry=self.registry,
            executor=self.executor,
            programs={
                kind: self._at_home(program) for kind, program in programs(self._models.model, self.registry).items()
            },
            clock=self.clock,
            new_run_id=new_run_id,
            settings=EngineSettings(owner=f"{socket.gethostname()}/{os.getpid()}", lease_s=lease_s),
            check_able=Abilities(self.registry, self._functions, self._models).check,
        )

    # Defining ---------------------------------------------------------------------------------------------------------

    def add(self, *tools: FunctionTool[..., Any] | Callable[..., Any] | ToolDefinition) -> None:
        """Add tools: decorated functions, plain ones (taken to write), or definitions. Saved before the next call."""
        self._pending += [item if isinstance(item, ToolDefinition) else as_function_tool(item) for item in tools]

    def agentic_tool(
        self,
        name: str,
        *,
        mode: AgenticMode,
        model: str | LLMConfig,
        steps: Sequence[str | AgenticStep] = (),
        tools: Sequence[str | AllocatedTool] = (),
        description: str = "",
        system_prompt: str | None = None,
        context: AgenticContext | None = None,
        limits: Limits | None = None,
        input_schema: JsonSchema | None = None,
        result_schema: JsonSchema | None = None,
        base_url: str | None = None,
        version: str = "1.0.0",
    ) -> "AgenticTool":
        """Define a tool with a model inside, and get a handle to call it.

        Args:
            name: The tool's name.
            mode: `deterministic` with `steps`, or `agentic` with `tools`.
            model: `provider:model`, or a whole configuration.
            steps: The fixed sequence.
            tools: What the model may choose from.
            description: What a parent agent reads.
            system_prompt: A template; a default one if null.
            context: Reference data, documentation.
            limits: What a run may spend.
            input_schema: Parameters; one `task` if null.
            result_schema: Shape of the answer; `{"summary": text}` if null.
            base_url: Address of the model's server. Given here, in code, it is trusted: it may be a local one.
            version: Semantic version.

        Raises:
            InvalidDefinition: The prompt, the steps or the limits are not well formed.
            InvalidSettings: The model reference is malformed or its provider unknown.
        """
        llm = model if isinstance(model, LLMConfig) else LLMConfig(model=model, base_url=base_url)
        if llm.base_url is not None:
            self._models.trust(llm.base_url)
        self._models.check(llm)
        definition = agentic_definition(
            name,
            mode=mode,
            llm=llm,
            steps=steps,
            tools=tools,
            description=description,
            system_prompt=system_prompt,
            context=context,
            limits=limits,
            input_schema=input_schema,
            result_schema=result_schema,
            version=version,
        )
        self._pending.append(definition)
        return AgenticTool(self, definition)

    async def import_openapi(
        self,
        document: bytes | str | Mapping[str, Json],
        *,
        name: str,
        base_url: str | None = None,
        auth: ProviderAuth | None = None,
        overrides: Mapping[str, ToolOverride] | None = None,
        principal: Principal | None = None,
    ) -> ImportedApi:
        """Import an OpenAPI document: a provider and a tool per operation.

        Args:
            document: JSON or YAML text, what it parses to, or an http(s) URL to fetch it from.
            name: The provider's name.
            base_url: Address of the API, instead of the document's servers.
            auth: Authentication, instead of the document's.
            overrides: Corrections by operationId.
            principal: Whose realm gets them.

        Raises:
            InvalidInput: The URL answers with something else than success.
            InvalidDefinition: It is no OpenAPI document that can be read.
        """
        if isinstance(document, str) and document.startswith(("http://", "https://")):
            fetched = await self._session.request("GET", document)
            if fetched.status != 200:
                msg = f"there is no OpenAPI document at {document}: it answered with status {fetched.status}"
                raise InvalidInput(msg)
            document = fetched.body
        imported = import_openapi(document, name=name, base_url=base_url, auth=auth, overrides=overrides or {})
        await self.save_provider(imported.provider, principal=principal)
        for tool in imported.tools:
            await self.save(tool, principal=principal)
        return imported

    async def save(self, definition: ToolDefinition, *, principal: Principal | None = None) -> ToolRevision:
        """Check a definition and store it as a revision.

        Raises:
            InvalidDefinition: It is not well formed.
            NotFound: It is allotted a tool that does not exist.
        """
        who = await self.enter(principal)
        return await self._save(definition, who)

    async def check(self, definition: ToolDefinition, *, principal: Principal | None = None) -> ToolDefinition:
        """The definition as `save` would store it; raises what `save` would, and stores nothing."""
        return self._checked(definition, await self.enter(principal))

    def _checked(self, definition: ToolDefinition, who: Principal) -> ToolDefinition:
        check_definition(definition)
        checked = check_agentic(definition, self.registry, who.realm)
        if checked.implementation.kind == "agentic":
            self._models.check(checked.implementation.llm)
        return checked

    async def _save(self, definition: ToolDefinition, who: Principal) -> ToolRevision:
        checked = self._checked(definition, who)
        return await self.registry.save(checked, realm=who.realm, made_by=who.id, at=self.clock.now())

    async def save_provider(self, provider: ProviderDefinition, *, principal: Principal | None = None) -> None:
        """Store a provider."""
        who = await self.enter(principal)
        await self.providers.save(provider, realm=who.realm, made_by=who.id, at=self.clock.now())

    # Running ----------------------------------------------------------------------------------------------------------

    async def invoke(
        self,
        ref: str,
        arguments: JsonObject,
        *,
        principal: Principal | None = None,
        conversation_id: str | None = None,
        session_id: str | None = None,
        dry_run: bool = False,
        as_call: bool = False,
    ) -> Result:
        """Run a tool of any kind and wait until the run ends or suspends.

        Args:
            ref: `name` or `name@range`.
            arguments: The tool's input.
            principal: Who calls.
            conversation_id: Conversation that the run belongs to.
            session_id: Session that the run belongs to.
            dry_run: Skip every call that would write.
            as_call: Make one call of the tool, as an agent would, so that an agentic tool has an envelope too.

        Raises:
            NotFound: No such tool. Everything else that goes wrong is in the result.
        """
        request, refusal = await self._admit(
            ref,
            arguments,
            principal=principal,
            conversation_id=conversation_id,
            session_id=session_id,
            dry_run=dry_run,
            as_call=as_call,
        )
        driven = self.engine.start(request) if refusal is None else self.engine.refuse(request, refusal)
        return _result(await driven)

    async def submit(
        self,
        ref: str,
        arguments: JsonObject,
        *,
        principal: Principal | None = None,
        conversation_id: str | None = None,
        session_id: str | None = None,
        dry_run: bool = False,
    ) -> str:
        """Write a run into the journal for a serving engine to drive, and return its id; a refused one is ended."""
        request, refusal = await self._admit(
            ref,
            arguments,
            principal=principal,
            conversation_id=conversation_id,
            session_id=session_id,
            dry_run=dry_run,
        )
        if refusal is not None:
            return (await self.engine.refuse(request, refusal)).result.run_id
        return await self.engine.create(request)

    async def _admit(
        self,
        ref: str,
        arguments: JsonObject,
        *,
        principal: Principal | None,
        conversation_id: str | None,
        session_id: str | None,
        dry_run: bool,
        as_call: bool = False,
    ) -> tuple[RunRequest, ToolError | None]:
        """The request of a run, and why it is refused, if it is. A single call is judged inside its run."""
        who = await self.enter(principal)
        tool = await self._require(who.realm, ref)
        agentic = tool.definition.implementation.kind == "agentic" and not as_call
        kind: RunKind = "agentic" if agentic else "tool"
        request = RunRequest(
            kind=kind,
            tool=tool.ref,
            content_hash=tool.content_hash,
            pins=pins_of(tool, self.registry),
            input=arguments,
            principal=who,
            conversation_id=conversation_id,
            session_id=session_id,
            dry_run=dry_run,
        )
        if agentic:
            return request, self._refusal(tool, arguments, who)
        return request, None

    async def refusal(self, ref: str, arguments: JsonObject, *, principal: Principal | None = None) -> ToolError | None:
        """Why a call would be refused before anything runs: arguments, policy, permission. Null if it would run.

        Raises:
            NotFound: No such tool.
        """
        who = await self.enter(principal)
        return self._refusal(await self._require(who.realm, ref), arguments, who)

    async def _require(self, realm: str, ref: str) -> ToolRevision:
        """The tool, also if another process has saved it since this one last looked."""
        if self.registry.named(realm, ref) is None:
            await self.refresh(realm)
        return self.registry.require(realm, ref)

    def _refusal(self, tool: ToolRevision, arguments: JsonObject, who: Principal) -> ToolError | None:
        try:
            self.executor.admit(ToolCall("call", tool.name, arguments, tool.content_hash), outside_call(who))
        except CallFailed as refusal:
            return refusal.error
        return None

    async def call(self, ref: str, arguments: JsonObject | None = None, /, **keywords: Json) -> ToolEnvelope:
        """Call a tool once and get its envelope.

        Args:
            ref: `name` or `name@range`.
            arguments: The tool's input.
            **keywords: The same, as keywords.

        Raises:
            NotFound: No such tool.
            Conflict: The call waits for a person or a client; its run can be resumed.
        """
        result = await self.invoke(ref, {**(arguments or {}), **keywords}, as_call=True)
        if not result.envelopes:
            msg = f"run {result.run_id} {result.summary.status.replace('_', ' ')}; decide it and resume it"
            raise Conflict(msg)
        return result.envelopes[-1]

    async def resume(self, run_id: str) -> Result:
        """Carry a run on: after a decision, or after the process that drove it died."""
        await self.open()
        return _result(await self.engine.resume(run_id))

    async def recover(self) -> Sequence[Result]:
        """Carry on every run that can go on now."""
        await self.open()
        return [_result(driven) for driven in await self.engine.recover()]

    async def trace(self, run_id: str) -> Trace:
        """What a run has done so far, step by step, with its nested runs.

        Raises:
            NotFound: No such run.
        """
        await self.open()
        await self.store.journal.run(run_id)
        return await self._trace(await self.store.journal.events(run_id))

    async def pending_approvals(self, run_id: str) -> Sequence[ApprovalRequested]:
        """Calls of a run that wait for a person."""
        await self.open()
        signals = await self.store.journal.signals(run_id)
        return waiting_approvals(await self.store.journal.events(run_id), signals.keys())

    async def pending_handoffs(self, run_id: str) -> Sequence[ToolEnvelope]:
        """Prepared calls of a run that wait for a client."""
        await self.open()
        signals = await self.store.journal.signals(run_id)
        return waiting_handoffs(await self.store.journal.events(run_id), signals.keys())

    async def decide(
        self,
        run_id: str,
        position: str,
        *,
        approve: bool,
        edited_input: JsonObject | None = None,
        reason: str | None = None,
        principal: Principal | None = None,
    ) -> bool:
        """Approve or reject a call that waits. The first decision counts; false if there was one.

        Raises:
            Conflict: No call at this position waits for a person.
        """
        waiting = {request.position: request for request in await self.pending_approvals(run_id)}
        request = waiting_at(run_id, position, waiting, "approval")
        decision = decision_on(request, approve=approve, edited_input=edited_input, reason=reason)
        return await self._signal(run_id, approval_signal(position), decision, principal)

    async def return_client_result(
        self, run_id: str, position: str, result: ClientResult, *, principal: Principal | None = None
    ) -> bool:
        """Bring back what a client did with a prepared call. The first result counts; false if there was one.

        Raises:
            Conflict: No call at this position waits for a client.
        """
        waiting = {prepared.position: prepared for prepared in await self.pending_handoffs(run_id)}
        waiting_at(run_id, position, waiting, "a client")
        return await self._signal(run_id, client_signal(position), result, principal)

    # Life -------------------------------------------------------------------------------------------------------------

    async def open(self) -> None:
        """Connect the store and save what was added; called by everything that needs it."""
        if self._open and not self._pending:
            return
        async with self._opening:
            if not self._open:
                await self.store.open()
                await self.refresh()
                self._open = True
            while self._pending:
                # It stays in the list while it is saved, so that nobody else takes the crib to be up to date.
                try:
                    await self._save_added(self._pending[0])
                except (InvalidInput, NotFound):
                    del self._pending[0]
                    raise
                del self._pending[0]

    async def enter(self, principal: Principal | None) -> Principal:
        """Who acts, with the definitions of the realm at hand."""
        await self.open()
        who = principal or self.principal
        await self._read_realm(who.realm)
        return who

    async def _read_realm(self, realm: str) -> None:
        if realm not in self._realms:
            async with self._opening:
                if realm not in self._realms:
                    await self.refresh(realm)

    def _at_home(self, program: Program) -> Program:
        """A program that finds the definitions of its run's realm, also in a process that nobody of it has called."""

        async def run(context: RunContext, tool: ToolRevision) -> Ended:
            await self._read_realm(context.run.realm)
            return await program(context, tool)

        return run

    async def refresh(self, realm: str | None = None) -> None:
        """Read definitions that other processes have saved."""
        realm = realm or self.principal.realm
        await self.registry.refresh(realm)
        await self.providers.refresh(realm)
        self._realms.add(realm)

    async def close(self) -> None:
        """Let go of leases, connections and the store."""
        await self.engine.close()
        await self._models.close()
        await self._session.close()
        await self.store.close()
        self._open = False

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def _trace(self, events: Sequence[RunEvent]) -> Trace:
        nested = [entry.event.child_run_id for entry in events if isinstance(entry.event, ChildStarted)]
        logs = [await self.store.journal.events(child) for child in nested]
        return trace_of(events, {log[0].run_id: await self._trace(log) for log in logs if log})

    async def _save_added(self, added: ToolDefinition | FunctionTool[..., Any]) -> None:
        if isinstance(added, ToolDefinition):
            await self._save(added, self.principal)
            return
        revision = await self._save(added.definition, self.principal)
        self._functions.bind(revision.content_hash, added)

    async def _signal(
        self, run_id: str, name: str, payload: ApprovalDecision | ClientResult, principal: Principal | None
    ) -> bool:
        made_by = (principal or self.principal).id
        body = payload.model_dump(mode="json")
        return await self.engine.signal(run_id, Signal(name=name, payload=body, made_by=made_by, at=self.clock.now()))


class AgenticTool:
    """A handle to an agentic tool: await it with a task."""

    def __init__(self, crib: Crib, definition: ToolDefinition) -> None:
        self._crib = crib
        self.definition = definition

    async def __call__(self, task: str | None = None, **parameters: Json) -> Result:
        """Run the tool and wait until the run ends or suspends."""
        arguments = parameters if task is None else {"task": task, **parameters}
        return await self._crib.invoke(f"{self.definition.name}@{self.definition.version}", arguments)


def _result(driven: Driven) -> Result:
    return Result(driven.result, driven.log)

"""The crib: the one object that wires everything together, and the Python API.

    crib = Crib()                                # SQLite in the working directory
    crib.add(search_deals, update_deals)
    deals = crib.agentic_tool("deals", mode="deterministic", model="anthropic:claude-sonnet-4",
                              steps=["search_deals", "update_deals"])
    result = await deals("Update all Acme Corp deals to Negotiation")

Nothing is connected until the first call. Everything that a crib does goes through its executor and its journal.
"""

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from types import TracebackType
from typing import IO, Self

from toolcrib.contracts import (
    OWNER,
    ApprovalRequested,
    ClientResult,
    Conflict,
    Json,
    JsonObject,
    Limits,
    LLMConfig,
    ModelService,
    Principal,
    ProviderDefinition,
    Replay,
    RunRequest,
    ToolDefinition,
    ToolEnvelope,
    ToolError,
    ToolRevision,
    Trace,
)
from toolcrib.contracts.maintenance import RehearsalReport
from toolcrib.core.engines import DriveResult, SystemClock
from toolcrib.core.engines.restate import RestateOptions
from toolcrib.core.executor import Clock
from toolcrib.core.export import ExportFormat, export_tools, select_available
from toolcrib.core.policy import read_caps
from toolcrib.core.providers import ImportedApi
from toolcrib.core.runs import Result, read_trace
from toolcrib.core.runs.journal.bundles import Manifest
from toolcrib.crib.agents.agents import Agents
from toolcrib.crib.agents.conversations import Conversations
from toolcrib.crib.agents.evaluations import Evaluations
from toolcrib.crib.agents.executions import Executions
from toolcrib.crib.agents.questions import Handoffs, Questions
from toolcrib.crib.container.container import CribServices, Environment
from toolcrib.crib.container.environment import resolve_store
from toolcrib.crib.container.model_services import read_services
from toolcrib.crib.container.plugins import NO_PLUGINS, Plugins, load_plugins
from toolcrib.crib.container.requests import refusal_of, refusal_of_run, request_of
from toolcrib.crib.definitions import Defaults, Definer
from toolcrib.crib.providers.connections import Connections
from toolcrib.crib.providers.entities import Source, Thing
from toolcrib.crib.providers.imports import Imports
from toolcrib.crib.providers.reference_data import ReferenceData
from toolcrib.crib.providers.secrets import Secrets
from toolcrib.crib.runs.approvals import ApprovalAnswer, Approvals
from toolcrib.crib.runs.bundles import Capture, Sees, replay_run
from toolcrib.crib.runs.forks import Forks
from toolcrib.crib.runs.rehearsal import Rehearsal, ShiftedClock
from toolcrib.crib.runs.retention import Retention
from toolcrib.crib.runs.settlements import Settlements
from toolcrib.crib.settings import Settings, load_settings
from toolcrib.crib.tools.lifecycle import ToolLife
from toolcrib.crib.tools.listing import NamedThings, ToolListing, check_grants
from toolcrib.crib.tools.prompts import Prompts
from toolcrib.crib.workflows.authoring import Authoring
from toolcrib.crib.workflows.instances import Instances
from toolcrib.crib.workflows.workflows import Workflows
from toolcrib.infrastructure.net import EgressPolicy
from toolcrib.infrastructure.redis import RedisServer
from toolcrib.infrastructure.sandbox import Sandbox, machine_sandbox
from toolcrib.infrastructure.store import Store
from toolcrib.infrastructure.store.memory.shadow import ShadowStore
from toolcrib.llm import LanguageModel
from toolcrib.llm.base.prices import Prices
from toolcrib.llm.local import MODELS_FOLDER


class Crib(Definer):
    """A crib of tools with its store, executor and engine.

    Args:
        store: A URL (`sqlite:///crib.db`, `postgresql://user:password@host/crib`, `memory://`) or a store.
        redis: URL of the Redis server by which the processes of a crib share results, rate limits and budgets.
        budgets: Caps on what many runs spend together, such as `realm 50 usd/day`; `toolcrib.core.policy.caps`
            says how.
        blobs: URL of the folder or bucket of a store's blobs, by default, where the store keeps them.
        principal: Who acts when nobody else is named.
        egress: Which addresses HTTP tools and models may reach.
        models: Models by reference that are used instead of opening one: scripted ones for tests and demonstrations.
        environment: Where `${env:NAME}` and API keys are looked up; `os.environ` if null.
        released: Patterns of the variables that tools may use as secrets.
        prices: What models cost.
        clock: Time.
        lease_s: Seconds after which the runs of a process that died are free.
        default_model: The model of agentic tools that are defined here without one.
        default_limits: What their runs may spend, if they are defined here without limits.
        sandbox: Where code tools run; what this machine has if null.
        mcp_commands: Programs that may be started as MCP servers, word for word; none by default.
        plugins: Runtimes and model providers of other packages, as `load_plugins` finds them; none by default.
        model_services: Model providers by name, beside those that everybody has.
        keep_ended: How long serving processes keep what has ended; for ever if null.
        restate: The Restate cluster whose workers drive the runs; this process drives them, if null.
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
        default_model: LLMConfig | None = None,
        default_limits: Limits | None = None,
        sandbox: Sandbox | None = None,
        mcp_commands: tuple[str, ...] = (),
        plugins: Plugins = NO_PLUGINS,
        model_services: Mapping[str, ModelService] | None = None,
        blobs: str | None = None,
        redis: str | None = None,
        budgets: Sequence[str] = (),
        keep_ended: timedelta | None = None,
        restate: RestateOptions | None = None,
    ) -> None:
        parts = CribServices.wire(
            Environment(
                store=resolve_store(store, blobs),
                clock=clock or SystemClock(),
                egress=egress or EgressPolicy(),
                environment=os.environ if environment is None else environment,
                released=released,
                models=models or {},
                prices=prices or Prices(),
                sandbox=sandbox or machine_sandbox(),
                mcp_commands=mcp_commands,
                plugins=plugins,
                model_services=model_services or {},
                redis=None if redis is None else RedisServer(redis),
                budgets=read_caps(budgets),
                restate=restate,
            ),
            lease_s=lease_s,
        )
        super().__init__(parts, principal, Defaults(default_model, default_limits))
        outside = parts.outside
        self.store, self.clock = outside.store, outside.clock
        self.sandbox, self.egress = outside.sandbox, outside.egress
        self.registry, self.providers = parts.registry, parts.providers
        self.executor, self.engine = parts.executor, parts.engine
        self.retention = Retention(self.store, self.clock, self.authorize, keep=keep_ended)
        self._open_services(parts)

    def _open_services(self, parts: CribServices) -> None:
        """Make what the parts are asked through."""
        self._handoffs = Handoffs(self.store.journal, self.engine, self.clock)
        self.approvals, self.settlements = Approvals(parts, self.authorize), Settlements(parts, self.authorize)
        self.reference_data, self.imports = (
            ReferenceData(parts, self.authorize, self.invoke),
            Imports(parts, self.authorize),
        )
        self.lifecycle, self.listing = ToolLife(parts, self.authorize), ToolListing(self.registry, self.authorize)
        self.agents = Agents(parts, self.listing, self.authorize)
        self.prompts = Prompts.of(parts, self.authorize)
        self.secrets = Secrets(parts, self.authorize)
        self.fragments = NamedThings(parts.fragments, self.authorize, self.clock)
        self.accounts = NamedThings(parts.accounts, self.authorize, self.clock, check_grants)
        self.steps = NamedThings(parts.steps, self.authorize, self.clock, parts.catalogue.check_step)
        self.conditions = NamedThings(parts.conditions, self.authorize, self.clock, parts.catalogue.check_condition)
        self.connections = Connections(parts, self.authorize)
        self.conversations = Conversations(self.store, self.engine, self.clock, self.authorize)
        self.evaluate = Evaluations(parts, self.authorize)
        self.questions = Questions(parts, self.authorize)
        self.executions = Executions(parts, self.conversations, self.authorize, self.questions)
        self.workflows = Workflows(parts, self.listing, self.lifecycle, self.executions, self.authorize)
        Authoring(self.workflows, self.registry).bind(parts.functions)
        self.instances = Instances(parts, self.executions, self.authorize)
        self.forks = Forks(parts, self.executions, self.authorize)
        self.fork, self.compare = self.forks.fork, self.forks.compare
        self.stream = self.executions.follow

    @classmethod
    def from_settings(
        cls,
        settings: Settings | None = None,
        *,
        store: Store | None = None,
        principal: Principal = OWNER,
        models: Mapping[str, LanguageModel] | None = None,
        environment: Mapping[str, str] | None = None,
        prices: Prices | None = None,
        clock: Clock | None = None,
    ) -> Self:
        """A crib as the operator wants it, the way that the command line and the server make theirs.

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
        """
        settings = settings or load_settings(environment=environment).settings
        if settings.models_dir is not None:
            around = os.environ if environment is None else environment
            environment = {**around, MODELS_FOLDER: str(settings.models_dir)}
        return cls(
            store or settings.store,
            principal=principal,
            egress=settings.egress.policy(),
            models=models,
            environment=environment,
            released=settings.released_env,
            prices=prices,
            clock=clock,
            lease_s=settings.lease_s,
            default_model=settings.llm(),
            default_limits=settings.limits,
            sandbox=settings.sandbox.open(),
            mcp_commands=settings.mcp_commands,
            plugins=load_plugins(settings.plugins),
            model_services=read_services(settings.model_services) if settings.model_services else None,
            restate=settings.restate if settings.engine == "restate" else None,
            blobs=settings.blobs if store is None else None,
            redis=settings.redis,
            budgets=settings.budgets,
            keep_ended=settings.retention.keep,
        )

    # Defining ---------------------------------------------------------------------------------------------------------

    async def save(
        self, definition: ToolDefinition, *, principal: Principal | None = None, after: int | None = None
    ) -> ToolRevision:
        """Check a definition and store it as a revision.

        Args:
            definition: The definition.
            principal: In whose realm and name.
            after: Number of the revision that the author has changed; null to save over whatever is there.

        Raises:
            InvalidDefinition: It is not well formed.
            NotFound: It is allotted a tool that does not exist.
            Conflict: Another revision has been saved since `after`.
        """
        return await self._catalogue.save(definition, await self.authorize(principal), after=after)

    async def check(self, definition: ToolDefinition, *, principal: Principal | None = None) -> ToolDefinition:
        """The definition as `save` would store it; raises what `save` would, and stores nothing."""
        who = await self.authorize(principal)
        return self._catalogue.check_tool(definition, who.realm)

    async def save_provider(self, provider: ProviderDefinition, *, principal: Principal | None = None) -> None:
        """Store a provider."""
        await self._catalogue.save_provider(provider, await self.authorize(principal))

    async def add_entities(self, name: str, database: Source, *things: Thing) -> ImportedApi:
        """Make tools of tables that the application maps; see `Imports.entities`, which takes a principal too."""
        return await self.imports.entities(name, database, *things)

    async def export(
        self, *names: str, form: ExportFormat = "universal", principal: Principal | None = None
    ) -> list[JsonObject]:
        """Describe tools in the shape of another system.

        Args:
            *names: `name` or `name@range`; if none is given, every tool that is available to such a system.
            form: `universal`, `openai`, `anthropic`, `langchain` or `mcp`.
            principal: Whose tools.

        Raises:
            NotFound: No such tool.
        """
        who = await self.authorize(principal, newest=True)
        found = [self.registry.require(who.realm, name) for name in names] or select_available(
            self.registry.current(who.realm), form
        )
        return export_tools(found, form, beside=self.registry.names(who.realm))

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
        test: bool = False,
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
            test: The run is its caller's test of an agentic tool, which may be a draft of the same author.

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
            test=test,
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
        test: bool = False,
    ) -> tuple[RunRequest, ToolError | None]:
        """The request of a run, and why it is refused, if it is."""
        who = await self.authorize(principal)
        tool = await self._catalogue.require(who.realm, ref)
        request = request_of(
            tool,
            arguments,
            who,
            self.registry,
            conversation_id=conversation_id,
            session_id=session_id,
            dry_run=dry_run,
            as_call=as_call,
        )
        return request, refusal_of_run(self.executor, tool, request, test=test)

    async def refusal(self, ref: str, arguments: JsonObject, *, principal: Principal | None = None) -> ToolError | None:
        """Why a call would be refused before anything runs: arguments, policy, permission. Null if it would run.

        Raises:
            NotFound: No such tool.
        """
        who = await self.authorize(principal)
        tool = await self._catalogue.require(who.realm, ref)
        return refusal_of(self.executor, tool, arguments, who)

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

    async def cancel(self, run_id: str, *, reason: str | None = None, principal: Principal | None = None) -> bool:
        """End a run and its nested runs, whatever they do or wait for; false if somebody has done so before.

        Raises:
            NotFound: No such run, or none of the principal's realm.
            PermissionDenied: It is somebody else's.
            Conflict: It has ended.
        """
        await self.open()
        if principal is not None:
            await self.executions.run_for(run_id, principal, "execute")
        return await self.engine.cancel(run_id, by=(principal or self.principal).id, reason=reason)

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
        return await read_trace(self.store.journal, run_id)

    async def replay(self, run_id: str, *, parked: bool = False) -> Replay:
        """Make the events of a run again, from its recording alone, and tell where they are others.

        No tool runs, no model is asked, nothing is written. With `parked`, a run that has not ended is replayed as far
        as it has come. `recorded_model` is for running it again for real.

        Raises:
            NotFound: No such run.
            Conflict: It has not ended.
        """
        await self.open()
        return await replay_run(self._parts, run_id, parked=parked)

    async def export_run(self, run_id: str, file: IO[bytes], *, sees: Sees = lambda _: True) -> Manifest:
        """Write a run, ended or not, with all that is needed to replay it elsewhere into one file, which can seek.

        Args:
            run_id: The run.
            file: Where to.
            sees: Tells of another run, or of a definition, that the run names whether it may be in the file.

        Raises:
            NotFound: No such run.
        """
        await self.open()
        return await Capture(self.store, run_id, sees).write(file)

    async def rehearse(
        self, changes: "Callable[[Crib], Awaitable[object]] | None" = None, *, functions_here: bool = True
    ) -> RehearsalReport:
        """Tell what would become of every run that has not ended, if this process were to carry it on after a change.

        Nothing runs, no model is asked, and nothing is saved: neither the change, which is made to a shadow of the
        store, nor what was added to this crib and not saved yet.

        Args:
            changes: Does to the crib that it is given what is to be rehearsed; null for the code of this process alone.
            functions_here: Whether the Python functions were added here that the runs call; if not, nothing is said
                of them.
        """
        await self.store.open()
        outside, clock, store = self._parts.outside, ShiftedClock(self.clock), ShadowStore(self.store)
        shadow = Crib(
            store,
            principal=self.principal,
            egress=outside.egress,
            models=outside.models,
            environment=outside.environment,
            released=outside.released,
            prices=outside.prices,
            clock=clock,
            sandbox=outside.sandbox,
            mcp_commands=outside.mcp_commands,
            plugins=outside.plugins,
            model_services=outside.model_services,
        )
        realms = await self.store.retention.realms()
        try:
            await shadow._parts.begin_with(self._parts, store, realms)
            await shadow.open()
            if changes is not None:
                await changes(shadow)
            rehearsal = Rehearsal(self._parts, store, shadow._parts, clock, functions_here=functions_here)
            return RehearsalReport(at=self.clock.now(), runs=await rehearsal.of_all(realms))
        finally:
            await shadow._parts.let_go()

    async def pending_approvals(self, run_id: str) -> Sequence[ApprovalRequested]:
        """Calls of a run that wait for a person."""
        await self.open()
        return await self.approvals.of_run(run_id)

    async def pending_handoffs(self, run_id: str) -> Sequence[ToolEnvelope]:
        """Prepared calls of a run that wait for a client."""
        await self.open()
        return await self._handoffs.of_run(run_id)

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

        Without a principal the application decides in its own name. With one it must not be its own call.

        Raises:
            Conflict: No call at this position waits for a person, or its time is over.
            PermissionDenied: The principal may not decide on it.
            InvalidInput: The edited arguments do not fit the schema; the call still waits.
        """
        answer = ApprovalAnswer(approve, edited_input, reason, principal)
        return await self.approvals.decide_call(run_id, position, answer)

    async def return_client_result(
        self, run_id: str, position: str, result: ClientResult, *, principal: Principal | None = None
    ) -> bool:
        """Bring back what a client did with a prepared call. The first result counts; false if there was another.

        The same result from the same client counts however often it comes: an answer that was lost can be asked for.

        Raises:
            NotFound: No such run, or none of the principal's realm.
            PermissionDenied: It is somebody else's.
            Conflict: No call at this position waits for a client.
        """
        await self.open()
        if principal is not None:
            await self.executions.run_for(run_id, principal, "execute")
        return await self._handoffs.return_result(run_id, position, result, principal or self.principal)

    # Life -------------------------------------------------------------------------------------------------------------

    async def open(self) -> None:
        """Connect the store and save what was added; called by everything that needs it."""
        await self._catalogue.open(self.principal.realm)

    async def authorize(self, principal: Principal | None, *, newest: bool = False) -> Principal:
        """Who acts, with the definitions of the realm at hand; with `newest`, those that other processes saved too."""
        await self.open()
        who = principal or self.principal
        await (self._catalogue.renew(who.realm) if newest else self._catalogue.read(who.realm))
        return who

    async def refresh(self, realm: str | None = None) -> None:
        """Read definitions that other processes have saved."""
        await self._catalogue.refresh(realm or self.principal.realm)

    async def close(self) -> None:
        """Let go of leases, connections and the store."""
        await self._parts.close()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()


def _result(driven: DriveResult) -> Result:
    return Result(driven.result, driven.log)

"""The crib: the object that wires everything together, and the Python API.

Nothing is connected until the first call, and what a crib is made of is loaded with the first crib. All operations of
a crib use its executor and its journal.

Example:
    crib = Crib()  # SQLite in the working directory
    crib.add(search_deals, update_deals)
    deals = crib.agentic_tool(
        "deals", mode="deterministic", model="anthropic:claude-sonnet-4", steps=["search_deals", "update_deals"]
    )
    result = await deals("Update all Acme Corp deals to Negotiation")
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import cached_property
from types import TracebackType
from typing import IO, TYPE_CHECKING, Self

from toolcrib import contracts, llm
from toolcrib.contracts import OWNER, Conflict, Unavailable
from toolcrib.contracts import workflows as workflow_contracts
from toolcrib.core import engines, runs
from toolcrib.crib import agents as agent_parts
from toolcrib.crib import container
from toolcrib.crib import providers as provider_parts
from toolcrib.crib import runs as run_parts
from toolcrib.crib import tools as tool_parts
from toolcrib.crib import workflows as workflow_parts
from toolcrib.crib.definitions import Definer, reference_to
from toolcrib.infrastructure import net
from toolcrib.llm import local

if TYPE_CHECKING:
    from toolcrib.contracts import (
        AgentRequest,
        AgentResponse,
        ApprovalRequested,
        ClientResult,
        Json,
        JsonObject,
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
    from toolcrib.contracts.pruning_and_rehearsal import RehearsalReport
    from toolcrib.core.executor import Clock
    from toolcrib.core.export import ExportFormat
    from toolcrib.core.providers import ImportedApi
    from toolcrib.core.runs.journal.bundles import Manifest
    from toolcrib.crib.container.catalogue import Addition
    from toolcrib.crib.definitions import Callee
    from toolcrib.crib.settings import Settings
    from toolcrib.infrastructure.store import Store
    from toolcrib.infrastructure.store.memory.shadow import ShadowStore
    from toolcrib.kinds.entity.commands import BoundDatabase, Mapped


class ActingCrib:
    """A crib as one principal uses it: all operations act in its realm and with its permissions.

    `Crib.acting_as` makes one. It is cheap, holds no connection of its own, and lives as long as its crib. The parts
    that it shows (`store`, `registry`, ...) are those of the whole crib, for every actor.

    Args:
        parts: The parts of the crib.
        actor: The actor of the crib.
    """

    def __init__(self, parts: container.CribServices, actor: container.Actor) -> None:
        self._parts = parts
        self._actor = actor
        self._catalogue = parts.catalogue
        self.principal = actor.principal
        outside = parts.outside
        self.store, self.clock = outside.store, outside.clock
        self.sandbox, self.egress = outside.sandbox, outside.egress
        self.registry, self.providers = parts.registry, parts.providers
        self.executor, self.engine, self.models = parts.executor, parts.engine, parts.models

    async def authorize(self, *, newest: bool = False) -> Principal:
        """Read the realm's definitions and return the principal; `newest` includes what other processes saved."""
        return await self._actor.authorize(newest=newest)

    # Subjects ---------------------------------------------------------------------------------------------------------

    @cached_property
    def approvals(self) -> run_parts.Approvals:
        """Calls that wait for a person."""
        return run_parts.Approvals(self._parts, self._actor)

    @cached_property
    def settlements(self) -> run_parts.Settlements:
        """What is said of calls whose outcome is unknown."""
        return run_parts.Settlements(self._parts, self._actor)

    @cached_property
    def reference_data(self) -> provider_parts.ReferenceData:
        """The lists that providers declare."""
        return provider_parts.ReferenceData(self._parts, self._actor, self.invoke)

    @cached_property
    def imports(self) -> provider_parts.Imports:
        """Tools made from what other systems describe."""
        return provider_parts.Imports(self._parts, self._actor)

    @cached_property
    def lifecycle(self) -> tool_parts.ToolLife:
        """Deprecating and blocking tools, and what providers want to change."""
        return tool_parts.ToolLife(self._parts, self._actor)

    @cached_property
    def listing(self) -> tool_parts.ToolListing:
        """The tools that the principal may see."""
        return tool_parts.ToolListing(self.registry, self._parts.visibility, self._actor)

    @cached_property
    def agents(self) -> agent_parts.Agents:
        """Agents."""
        return agent_parts.Agents(self._parts, self.listing, self._actor)

    @cached_property
    def prompts(self) -> tool_parts.Prompts:
        """The prompts of agentic tools."""
        return tool_parts.Prompts.of(self._parts, self._actor)

    @cached_property
    def secrets(self) -> provider_parts.Secrets:
        """Secrets of the vault."""
        return provider_parts.Secrets(self._parts, self._actor)

    @cached_property
    def fragments(self) -> tool_parts.NamedThings[contracts.PromptFragment]:
        """Prompt fragments."""
        return tool_parts.NamedThings(self._parts.fragments, self._actor, self.clock)

    @cached_property
    def accounts(self) -> tool_parts.NamedThings[contracts.ServiceAccount]:
        """Service accounts."""
        return tool_parts.NamedThings(self._parts.accounts, self._actor, self.clock, tool_parts.check_grants)

    @cached_property
    def steps(self) -> tool_parts.NamedThings[workflow_contracts.StepRegistration]:
        """Handlers that workflow steps name."""
        return tool_parts.NamedThings(self._parts.steps, self._actor, self.clock, self._catalogue.check_step)

    @cached_property
    def conditions(self) -> tool_parts.NamedThings[workflow_contracts.ConditionBinding]:
        """Conditions that workflows name."""
        return tool_parts.NamedThings(self._parts.conditions, self._actor, self.clock, self._catalogue.check_condition)

    @cached_property
    def connections(self) -> provider_parts.Connections:
        """Connections to providers."""
        return provider_parts.Connections(self._parts, self._actor)

    @cached_property
    def conversations(self) -> agent_parts.Conversations:
        """Conversations with agents."""
        return agent_parts.Conversations(self.store, self.engine, self.clock, self._actor)

    @cached_property
    def evaluate(self) -> agent_parts.Evaluations:
        """Runs tasks by candidates, and compares them."""
        return agent_parts.Evaluations(self._parts, self._actor)

    @cached_property
    def questions(self) -> agent_parts.Questions:
        """What runs ask."""
        return agent_parts.Questions(self._parts, self._actor)

    @cached_property
    def executions(self) -> agent_parts.Executions:
        """Executions of agents and agentic tools."""
        return agent_parts.Executions(self._parts, self.conversations, self._actor, self.questions)

    @cached_property
    def workflows(self) -> workflow_parts.Workflows:
        """Workflows and their drafts."""
        return workflow_parts.Workflows(self._parts, self.listing, self.lifecycle, self.executions, self._actor)

    @cached_property
    def instances(self) -> workflow_parts.Instances:
        """Instances of workflows."""
        return workflow_parts.Instances(self._parts, self.executions, self._actor)

    @cached_property
    def forks(self) -> run_parts.Forks:
        """Forks of runs."""
        return run_parts.Forks(self._parts, self.executions, self._actor)

    @property
    def fork(self):  # noqa: ANN201 - the type is that of the method
        """See `Forks.fork`."""
        return self.forks.fork

    @property
    def compare(self):  # noqa: ANN201 - the type is that of the method
        """See `Forks.compare`."""
        return self.forks.compare

    @property
    def stream(self):  # noqa: ANN201 - the type is that of the method
        """See `Executions.follow`."""
        return self.executions.follow

    @cached_property
    def _handoffs(self) -> agent_parts.Handoffs:
        return agent_parts.Handoffs(self.store.journal, self.engine, self.clock)

    async def _open(self, run_id: str, verb: container.RunVerb) -> None:
        """Open the crib; refuse a caller who may not look at the run, or act on it."""
        await self._actor.authorize()
        await self._actor.check_run(self.store.journal, run_id, verb)

    # Defining ---------------------------------------------------------------------------------------------------------

    async def save(self, definition: ToolDefinition, *, after: int | None = None) -> ToolRevision:
        """Check a definition and store it as a revision.

        Args:
            definition: The definition.
            after: Number of the revision that the author has changed; null to save over whatever is there.

        Raises:
            InvalidDefinition: It is not well formed.
            NotFound: It is allotted a tool that does not exist.
            Conflict: Another revision has been saved since `after`.

        Example:
            revision = await crib.save(code_tool("double", "def main(n): return 2 * n"))
        """
        return await self._catalogue.save(definition, await self.authorize(), after=after)

    async def check(self, definition: ToolDefinition) -> ToolDefinition:
        """The definition as `save` would store it; raises what `save` would, and stores nothing.

        Example:
            checked = await crib.check(code_tool("double", "def main(n): return 2 * n"))
        """
        who = await self.authorize()
        return self._catalogue.check_tool(definition, who.realm)

    async def save_provider(self, provider: ProviderDefinition) -> None:
        """Store a provider.

        Example:
            await crib.save_provider(ProviderDefinition(name="crm", base_url="https://api.crm.example"))
        """
        await self._catalogue.save_provider(provider, await self.authorize())

    async def add_entities(self, name: str, database: BoundDatabase, *things: Mapped) -> ImportedApi:
        """Make tools of tables that the application maps; see `Imports.entities`."""
        return await self.imports.entities(name, database, *things)

    async def export(self, *names: str, form: ExportFormat = "universal") -> list[JsonObject]:
        """Describe tools in the shape of another system.

        Args:
            *names: `name` or `name@range`; if none is given, every tool that is available to such a system.
            form: `universal`, `openai`, `anthropic`, `langchain` or `mcp`.

        Raises:
            NotFound: No such tool.

        Example:
            [described] = await crib.export("search_deals", form="openai")
        """
        from toolcrib.core.export import export_tools, select_available

        who = await self.authorize(newest=True)
        found = [self.registry.require(who.realm, name) for name in names] or select_available(
            self.registry.current(who.realm), form
        )
        return export_tools(found, form, beside=self.registry.names(who.realm))

    # Running ----------------------------------------------------------------------------------------------------------

    async def invoke(
        self,
        ref: Callee,
        arguments: JsonObject,
        *,
        conversation_id: str | None = None,
        session_id: str | None = None,
        dry_run: bool = False,
        as_call: bool = False,
        test: bool = False,
    ) -> runs.Result:
        """Run a tool of any kind and wait until the run ends or suspends.

        If this process lacks a Python function that the run needs, a worker on the same store drives the run. Without
        a worker, the result is `queued` after some seconds (`SharingOptions.worker_wait_s`), and `warnings` says why.

        Args:
            ref: The tool: `name` or `name@range`, its function, or a handle.
            arguments: The tool's input.
            conversation_id: Conversation that the run belongs to.
            session_id: Session that the run belongs to.
            dry_run: Skip every call that would write.
            as_call: Make one call of the tool, as an agent would, so that an agentic tool has an envelope too.
            test: The run is its caller's test of an agentic tool, which may be a draft of the same author.

        Raises:
            NotFound: No such tool. Everything else that goes wrong is in the result.

        Example:
            result = await crib.invoke("search_deals", {"company": "Acme"})
            print(result.error or result.output, result.cost_usd)
        """
        request, refusal = await self._admit(
            ref,
            arguments,
            conversation_id=conversation_id,
            session_id=session_id,
            dry_run=dry_run,
            as_call=as_call,
            test=test,
        )
        driven = self._parts.start(request) if refusal is None else self.engine.refuse(request, refusal)
        return _result(await driven)

    async def submit(
        self,
        ref: Callee,
        arguments: JsonObject,
        *,
        conversation_id: str | None = None,
        session_id: str | None = None,
        dry_run: bool = False,
    ) -> str:
        """Write a run into the journal for a serving engine to drive, and return its id; a refused one is ended.

        Example:
            run_id = await crib.submit("search_deals", {"company": "Acme"})
        """
        request, refusal = await self._admit(
            ref,
            arguments,
            conversation_id=conversation_id,
            session_id=session_id,
            dry_run=dry_run,
        )
        if refusal is not None:
            return (await self.engine.refuse(request, refusal)).result.run_id
        return await self.engine.create(request)

    async def _admit(
        self,
        ref: Callee,
        arguments: JsonObject,
        *,
        conversation_id: str | None,
        session_id: str | None,
        dry_run: bool,
        as_call: bool = False,
        test: bool = False,
    ) -> tuple[RunRequest, ToolError | None]:
        """The request of a run, and why it is refused, if it is."""
        who = await self.authorize()
        if not isinstance(ref, str):
            ref = reference_to(ref)
        self._catalogue.require_saved(who.realm, ref)
        tool = self.registry.find_by_ref(who.realm, ref) or await self._catalogue.require(who.realm, ref)
        request = container.request_of(
            tool,
            arguments,
            who,
            self.registry,
            conversation_id=conversation_id,
            session_id=session_id,
            dry_run=dry_run,
            as_call=as_call,
        )
        return request, container.refusal_of_run(self.executor, tool, request, test=test, registry=self.registry)

    async def refusal(self, ref: Callee, arguments: JsonObject) -> ToolError | None:
        """Why a call would be refused before anything runs: arguments, policy, permission. Null if it would run.

        Raises:
            NotFound: No such tool.

        Example:
            problem = await crib.refusal("search_deals", {"compny": "Acme"})
        """
        who = await self.authorize()
        tool = await self._catalogue.require(who.realm, reference_to(ref))
        return container.refusal_of(self.executor, tool, arguments, who)

    async def call(self, ref: Callee, arguments: JsonObject | None = None, /, **keywords: Json) -> ToolEnvelope:
        """Call a tool once and get its envelope.

        Args:
            ref: The tool: `name` or `name@range`, its function, or a handle.
            arguments: The tool's input.
            **keywords: The same, as keywords.

        Raises:
            NotFound: No such tool.
            Conflict: The call waits for a person or a client; its run can be resumed.
            Unavailable: The call waits for a worker that has the tool's Python function.

        Example:
            envelope = await crib.call("search_deals", company="Acme")
        """
        result = await self.invoke(ref, {**(arguments or {}), **keywords}, as_call=True)
        if not result.envelopes and result.status == "queued":
            raise Unavailable("; ".join(result.warnings))
        if not result.envelopes:
            msg = f"run {result.run_id} {result.summary.status.replace('_', ' ')}; decide it and resume it"
            raise Conflict(msg)
        return result.envelopes[-1]

    async def resume(self, run_id: str) -> runs.Result:
        """Carry a run on: after a decision, or after the process that drove it died.

        Raises:
            NotFound: No such run, or none of the principal's realm.
            PermissionDenied: It belongs to another principal.

        Example:
            waiting = await crib.invoke("send_offer", {"deal": "d1"})
            await crib.decide(waiting.run_id, "call", approve=True)
            result = await crib.resume(waiting.run_id)
        """
        await self._open(run_id, "execute")
        return _result(await self._parts.resume(run_id))

    async def cancel(self, run_id: str, *, reason: str | None = None) -> bool:
        """Cancel a run and its nested runs, whatever they do or wait for; false if it was cancelled before.

        Raises:
            NotFound: No such run, or none of the principal's realm.
            PermissionDenied: It belongs to another principal.
            Conflict: It has ended.

        Example:
            run_id = await crib.submit("search_deals", {"company": "Acme"})
            await crib.cancel(run_id, reason="No longer needed")
        """
        await self._open(run_id, "execute")
        return await self.engine.cancel(run_id, by=self.principal.id, reason=reason)

    async def trace(self, run_id: str) -> Trace:
        """What a run has done so far, step by step, with its nested runs.

        Raises:
            NotFound: No such run, or none of the principal's realm.
            PermissionDenied: It belongs to another principal.

        Example:
            result = await deals("Update all Acme Corp deals to Negotiation")
            print([step.type for step in (await crib.trace(result.run_id)).steps])
        """
        await self._open(run_id, "read")
        return await runs.read_trace(self.store.journal, run_id)

    async def replay(self, run_id: str, *, parked: bool = False) -> Replay:
        """Replay a run from its recording alone, and report where it diverges.

        No tool runs, no model is asked, nothing is written. With `parked`, a run that has not ended is replayed as far
        as it has come. `recorded_model` is for running it again for real.

        Raises:
            NotFound: No such run, or none of the principal's realm.
            PermissionDenied: It belongs to another principal.
            Conflict: It has not ended.

        Example:
            result = await deals("Update all Acme Corp deals to Negotiation")
            print((await crib.replay(result.run_id)).same)
        """
        await self._open(run_id, "read")
        return await run_parts.replay_run(self._parts, run_id, parked=parked)

    async def pending_approvals(self, run_id: str) -> Sequence[ApprovalRequested]:
        """Calls of a run that wait for a person; see `Approvals.of_run`."""
        return await self.approvals.of_run(run_id)

    async def pending_handoffs(self, run_id: str) -> Sequence[ToolEnvelope]:
        """Prepared calls of a run that wait for a client.

        Example:
            waiting = await crib.invoke("print_label", {"deal": "d1"})
            [prepared] = await crib.pending_handoffs(waiting.run_id)
        """
        await self._open(run_id, "read")
        return await self._handoffs.of_run(run_id)

    async def decide(
        self,
        run_id: str,
        position: str,
        *,
        approve: bool,
        edited_input: JsonObject | None = None,
        reason: str | None = None,
    ) -> bool:
        """Approve or reject a call that waits. The first decision counts; false if there was one.

        The application decides in its own name. A principal must have no part in the run.

        Raises:
            Conflict: No call at this position waits for a person, or its time is over.
            PermissionDenied: The principal may not decide on it.
            InvalidInput: The edited arguments do not fit the schema; the call still waits.

        Example:
            waiting = await crib.invoke("send_offer", {"deal": "d1"})
            await crib.decide(waiting.run_id, "call", approve=False, reason="Not yet")
        """
        answer = run_parts.ApprovalAnswer(approve, edited_input, reason)
        return await self.approvals.decide_call(run_id, position, answer)

    async def return_client_result(self, run_id: str, position: str, result: ClientResult) -> bool:
        """Bring back what a client did with a prepared call. The first result counts; false if there was another.

        The same result from the same client counts however often it comes: an answer that was lost can be asked for.

        Raises:
            NotFound: No such run, or none of the principal's realm.
            PermissionDenied: It belongs to another principal.
            Conflict: No call at this position waits for a client.

        Example:
            waiting = await crib.invoke("print_label", {"deal": "d1"})
            await crib.return_client_result(waiting.run_id, "call", ClientResult(output={"printed": True}))
        """
        await self._open(run_id, "execute")
        return await self._handoffs.return_result(run_id, position, result, self.principal)


class Crib(ActingCrib, Definer):
    """A crib of tools with its store, executor and engine.

    Example:
        async with Crib("memory://", models={"scripted:m": ScriptedModel(["Done."])}) as crib:
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
        definitions, sharing = definitions or container.DefinitionOptions(), sharing or container.SharingOptions()
        parts = container.CribServices.wire(
            container.Environment(
                store=container.resolve_store(store, sharing.blobs),
                clock=clock or engines.SystemClock(),
                egress=egress or net.EgressPolicy(),
                environment=os.environ if environment is None else environment,
                models=models or {},
                sandbox=definitions.sandbox or container.machine_sandbox(),
                definitions=definitions,
                sharing=sharing,
            )
        )
        super().__init__(parts, container.Actor(parts.catalogue, principal.realm, principal, is_application=True))
        self.retention = run_parts.Retention(self.store, self.clock, self._actor, keep=sharing.keep_ended)
        workflow_parts.Authoring(lambda who: self.acting_as(who).workflows, self.registry).bind(parts.functions)

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
            async with Crib.from_settings() as crib:  # reads TOOLCRIB_STORE and toolcrib.toml
                crib.add(search_deals)
        """
        from toolcrib.crib.settings import load_settings

        settings = settings or load_settings(environment=environment).settings
        if settings.models_dir is not None:
            around = os.environ if environment is None else environment
            environment = {**around, local.MODELS_FOLDER: str(settings.models_dir)}
        return cls(
            store or settings.store,
            principal=principal,
            models=models,
            egress=settings.egress.policy(),
            environment=environment,
            clock=clock,
            definitions=container.definitions_of(settings, prices or llm.Prices()),
            sharing=container.sharing_of(settings, blobs=settings.blobs if store is None else None),
        )

    def acting_as(self, principal: Principal) -> ActingCrib:
        """This crib for one principal: it acts in the principal's realm and with the principal's permissions.

        Example:
            ann = crib.acting_as(Principal(id="ann", grants=("ai://tools/crm/*/execute",)))
            result = await ann.invoke("search_deals", {"company": "Acme"})

        The crib itself acts as the application, which needs no grant to see and decide.
        """
        return ActingCrib(self._parts, container.Actor(self._catalogue, self.principal.realm, principal))

    @property
    def additions(self) -> Sequence[tuple[Addition, Principal]]:
        """What was added and is not saved yet, and by which principal."""
        return self._catalogue.additions

    @property
    def budgets(self) -> Sequence[str]:
        """The caps on what many runs spend together."""
        return self._parts.outside.sharing.budgets

    async def _ask(self, agent: str, request: AgentRequest) -> AgentResponse:
        return await self.executions.execute(agent, request)

    @cached_property
    def ids(self) -> run_parts.Ids:
        """Finds ids of the realm by their first characters."""
        return run_parts.Ids(self._opened, self.principal.realm, lambda: self.instances.page(limit=1))

    async def _opened(self) -> Store:
        await self.open()
        return self.store

    # Life -------------------------------------------------------------------------------------------------------------

    async def open(self) -> None:
        """Connect the store and save what was added; calls do this too.

        Raises:
            InvalidInput: Something that was added is not well formed, or its model cannot be opened. Each refusal is
                raised by one `open`, and by every call of what was refused. Everything else is saved.
            NotFound: Something that was added names something that does not exist.

        Example:
            crib.agent("greeter", model="anthropic:claude-sonnet-4")
            await crib.open()  # raises here what would else be raised by the first call
        """
        await self._catalogue.open(self.principal.realm)
        self._catalogue.raise_refusal()

    async def recover(self) -> Sequence[runs.Result]:
        """Resume all runs that can continue now.

        Example:
            resumed = await crib.recover()
        """
        await self.open()
        return [_result(driven) for driven in await self.engine.recover()]

    async def export_run(self, run_id: str, file: IO[bytes], *, sees: run_parts.Sees = lambda _: True) -> Manifest:
        """Write a run, ended or not, with everything needed to replay it, into one seekable file.

        Args:
            run_id: The run.
            file: Where to.
            sees: Tells of another run, or of a definition, that the run names whether it may be in the file.

        Raises:
            NotFound: No such run.

        Example:
            result = await crib.invoke("search_deals", {"company": "Acme"})
            with open("run.bundle", "wb") as file:
                await crib.export_run(result.run_id, file)
        """
        await self.open()
        return await run_parts.Capture(self.store, run_id, sees).write(file)

    async def rehearse(
        self, changes: Callable[[Crib], Awaitable[object]] | None = None, *, functions_here: bool = True
    ) -> RehearsalReport:
        """Test whether all runs that have not ended could continue in this process after a change.

        Nothing runs, no model is asked, and nothing is saved: neither the change, which is made to a shadow of the
        store, nor what was added to this crib and not saved yet.

        Args:
            changes: Does to the crib that it is given what is to be rehearsed; null for the code of this process alone.
            functions_here: Whether the Python functions were added here that the runs call; if not, nothing is said
                of them.

        Example:
            report = await crib.rehearse(lambda shadow: shadow.save(update_deals.definition))
        """
        from toolcrib.contracts.pruning_and_rehearsal import RehearsalReport

        clock = run_parts.ShiftedClock(self.clock)
        async with self.shadow(clock) as (shadow, store):
            if changes is not None:
                await changes(shadow)
            parts = shadow._parts  # noqa: SLF001 - of a crib too
            rehearsal = run_parts.Rehearsal(self._parts, store, parts, clock, functions_here=functions_here)
            return RehearsalReport(at=self.clock.now(), runs=await rehearsal.of_all(await self._realms()))

    @asynccontextmanager
    async def shadow(self, clock: Clock | None = None) -> AsyncGenerator[tuple[Crib, ShadowStore]]:
        """A crib on a shadow of the store: it has the same definitions, and what is saved there is never stored.

        Args:
            clock: Its time; that of this crib if null.

        Example:
            async with crib.shadow() as (shadow, _):
                await shadow.save(update_deals.definition)  # checked, and not stored
        """
        from toolcrib.infrastructure.store.memory.shadow import ShadowStore

        await self.store.open()
        outside, store = self._parts.outside, ShadowStore(self.store)
        shadow = Crib(
            store,
            principal=self.principal,
            models=outside.models,
            egress=outside.egress,
            environment=outside.environment,
            clock=clock or self.clock,
            definitions=replace(outside.definitions, sandbox=outside.sandbox),
        )
        try:
            await shadow._parts.begin_with(self._parts, store, await self._realms())
            await shadow.open()
            yield shadow, store
        finally:
            await shadow._parts.let_go()

    async def _realms(self) -> Sequence[str]:
        return tuple(dict.fromkeys((*await self.store.retention.realms(), self.principal.realm)))

    async def refresh(self, realm: str | None = None) -> None:
        """Read definitions that other processes have saved.

        Example:
            await crib.refresh()
        """
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


def _result(driven: engines.DriveResult) -> runs.Result:
    return runs.Result(driven.result, driven.log)

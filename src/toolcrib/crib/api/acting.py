"""The crib as one principal uses it: its parts by subject, and what it saves, runs, reads and decides."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from toolcrib import contracts
from toolcrib.contracts import Conflict, Unavailable
from toolcrib.contracts import workflows as workflow_contracts
from toolcrib.core import engines, runs
from toolcrib.crib import agents as agent_parts
from toolcrib.crib import container
from toolcrib.crib import providers as provider_parts
from toolcrib.crib import runs as run_parts
from toolcrib.crib import tools as tool_parts
from toolcrib.crib import workflows as workflow_parts
from toolcrib.crib.api.definitions import reference_to

if TYPE_CHECKING:
    from toolcrib.contracts import (
        ApprovalRequested,
        ClientResult,
        FileInput,
        Json,
        JsonObject,
        Principal,
        ProviderDefinition,
        Replay,
        Run,
        RunRequest,
        ToolDefinition,
        ToolEnvelope,
        ToolError,
        ToolRevision,
        Trace,
    )
    from toolcrib.contracts.runs.comparisons import RunDiff
    from toolcrib.contracts.tools.rendered_prompts import SentPrompt
    from toolcrib.core.export import ExportFormat
    from toolcrib.core.providers import ImportedApi
    from toolcrib.crib.api.definitions import Callee
    from toolcrib.crib.tools.resources import ResourceName
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

    def __repr__(self) -> str:
        """Class, store and principal, without what the store's address may hide."""
        return f"{type(self).__name__}(store={type(self.store).__name__}, principal={self.principal!r})"

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
        return tool_parts.ToolListing(self.registry, self._parts.visibility, self._actor, self.clock)

    @cached_property
    def queries(self) -> tool_parts.Queries:
        """Filters, sorts and counts over all that the principal may see."""
        return tool_parts.Queries(self._parts, self._actor, lambda: self.conversations, self._list)

    async def _list(self, resource: ResourceName) -> Sequence[Any]:
        """All that the realm has of something; of tools those that the principal may see."""
        match resource:
            case "providers":
                return self.providers.current(self.principal.realm)
            case "drafts":
                return await self.workflows.drafts()
            case "secrets" | "fragments" | "accounts" | "steps" | "conditions" | "mcp_servers" | "triggers":
                return await getattr(self, resource).list()
            case _:
                return await self.listing.visible()

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
    def mcp_servers(self) -> tool_parts.NamedThings[contracts.McpServerDefinition]:
        """Virtual MCP servers."""
        return tool_parts.NamedThings(self._parts.mcp_servers, self._actor, self.clock)

    @cached_property
    def triggers(self) -> run_parts.Triggers:
        """What starts runs without a person: times, webhooks, ends of other runs."""
        return run_parts.Triggers(self._parts, self._actor)

    @cached_property
    def connections(self) -> provider_parts.Connections:
        """Connections to providers."""
        return provider_parts.Connections(self._parts, self._actor)

    @cached_property
    def model_catalog(self) -> provider_parts.ModelCatalog:
        """The models that definitions can name."""
        return provider_parts.ModelCatalog(self._parts, self._actor)

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
            *names: `name` or `name@range`; if none is given, every tool that is available to such a system and that
                the principal may see.
            form: One of `toolcrib.core.export.FORMATS`, such as `universal`, `openai_strict`, `gemini` or `skill`.

        Raises:
            NotFound: No such tool, or the principal may not see it.

        Example:
            [described] = await crib.export("search_deals", form="openai")
        """
        from toolcrib.core.export import export_tools, select_available

        who = await self.authorize(newest=True)
        visible = self._parts.visibility.of(who)
        found = [self.registry.require(who.realm, name) for name in names] or [
            tool
            for tool in select_available(self.registry.current(who.realm), form)
            if all(tool.name in seen for seen in visible)
        ]
        hidden = next((tool.name for tool in found if any(tool.name not in seen for seen in visible)), None)
        if hidden is not None:
            raise contracts.NotFound(f"no tool {hidden!r} that {who.id!r} may see; grant it, or leave the name out")
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
        earlier = await self._actor.earlier_run()
        if earlier is not None:
            return await self.resume(earlier)
        request, tool, refusal = await self._admit(
            ref,
            arguments,
            conversation_id=conversation_id,
            session_id=session_id,
            dry_run=dry_run,
            as_call=as_call,
            test=test,
        )
        driven = self._start(request) if refusal is None else self.engine.refuse(request, refusal)
        return await self._parts.result(await driven, tool)

    async def _start(self, request: RunRequest) -> engines.DriveResult:
        """Have a run driven until it ends or waits; one whose request is remembered is in the journal first."""
        if self._actor.start is None:
            return await self._parts.start(request)
        return await self._parts.resume(await self._create(request))

    async def _create(self, request: RunRequest) -> str:
        return await self.engine.create(request, run_id=await self._actor.begin_run(engines.new_run_id()))

    async def submit(
        self,
        ref: Callee,
        arguments: JsonObject,
        *,
        conversation_id: str | None = None,
        session_id: str | None = None,
        dry_run: bool = False,
        files: Sequence[FileInput] = (),
    ) -> str:
        """Write a run into the journal for a serving engine to drive, and return its id; a refused one is ended.

        Args:
            ref: What is run.
            arguments: Its input.
            conversation_id: The conversation that the run is told to belong to.
            session_id: The session that it belongs to.
            dry_run: Skip every call that would write.
            files: What the model of an agent or agentic tool is shown with the message.

        Example:
            run_id = await crib.submit("search_deals", {"company": "Acme"})
        """
        earlier = await self._actor.earlier_run()
        if earlier is not None:
            return earlier
        request, tool, refusal = await self._admit(
            ref,
            arguments,
            conversation_id=conversation_id,
            session_id=session_id,
            dry_run=dry_run,
        )
        if refusal is not None:
            return (await self.engine.refuse(request, refusal)).result.run_id
        if files:
            request = await self.executions.with_files(request, tool.definition, files)
        return await self._create(request)

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
    ) -> tuple[RunRequest, ToolRevision, ToolError | None]:
        """The request of a run, its tool, and why it is refused, if it is."""
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
        return request, tool, container.refusal_of_run(self.executor, tool, request, test=test, registry=self.registry)

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
        return await self._parts.result(await self._parts.resume(run_id))

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

    async def sent_prompts(self, run_id: str) -> Sequence[SentPrompt]:
        """The whole requests of a run's own model calls, in the order in which they were made.

        They are put together by a replay, which holds each against what the journal has of it. Those of nested runs
        are theirs. An answer that a fork took over has none, and the request of the first difference is left out.

        Raises:
            NotFound: No such run, or none of the principal's realm.
            PermissionDenied: It belongs to another principal.
            Conflict: The replay differs before the first request.

        Example:
            result = await deals("Update all Acme Corp deals to Negotiation")
            for prompt in await crib.sent_prompts(result.run_id):
                print(prompt.position, prompt.tokens.total, len(prompt.messages))
        """
        await self._open(run_id, "read")
        return await run_parts.read_sent_prompts(self._parts, run_id)

    async def fork(
        self,
        run_id: str,
        *,
        at: int | str | None = None,
        changes: Mapping[str, Json] | None = None,
        allow_writes: bool = False,
        anew: bool = False,
        wait: bool = True,
    ) -> Run:
        """Start a run with what another run knew at an event, and continue from there: see `Forks.fork`.

        Example:
            answer = await desk("Which deals has Acme?")
            fork = await crib.fork(answer.run_id, changes={"prompt": "Answer in one word."})
        """
        return await self.forks.fork(run_id, at=at, changes=changes, allow_writes=allow_writes, anew=anew, wait=wait)

    async def compare(self, before: str, after: str) -> RunDiff:
        """How two runs differ: see `Forks.compare`.

        Example:
            answer = await desk("Which deals has Acme?")
            fork = await crib.fork(answer.run_id, changes={"prompt": "Answer in one word."})
            print((await crib.compare(answer.run_id, fork.run_id)).output)
        """
        return await self.forks.compare(before, after)

    def stream(self, run_id: str, *, after: str = "0", drive: bool = False) -> AsyncGenerator[runs.StreamMessage]:
        """The text and calls of a run while it is active: see `Executions.follow`. Leaving it never ends the run.

        Example:
            run_id = await crib.submit("desk", {"message": "Which deals has Acme?"})
            async for message in crib.stream(run_id, drive=True):
                print(message.place, message.event)
        """
        return self.executions.follow(run_id, after=after, drive=drive)

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

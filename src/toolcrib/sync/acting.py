"""Synchronous forms of `toolcrib.crib.api.acting`.

Written by `python -m tools.sync_facade`; not to be edited.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from toolcrib.sync.agents import Agents, Executions
from toolcrib.sync.conversations import Conversations, Evaluations, Questions
from toolcrib.sync.event_loop import EventLoopThread, Facade
from toolcrib.sync.imports import Imports
from toolcrib.sync.providers import Connections, ModelCatalog, ReferenceData, Secrets
from toolcrib.sync.runs import Approvals, Forks, Settlements, Triggers
from toolcrib.sync.tools import NamedThings, Prompts, Queries, ToolLife, ToolListing
from toolcrib.sync.workflows import Instances, Workflows

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from toolcrib import contracts
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
        ToolDefinition,
        ToolEnvelope,
        ToolError,
        ToolRevision,
        Trace,
    )
    from toolcrib.contracts import workflows as workflow_contracts
    from toolcrib.contracts.runs.comparisons import RunDiff
    from toolcrib.contracts.tools.rendered_prompts import SentPrompt
    from toolcrib.core import runs
    from toolcrib.core.export import ExportFormat
    from toolcrib.core.providers import ImportedApi
    from toolcrib.crib.api.acting import ActingCrib as AsynchronousActingCrib
    from toolcrib.crib.api.definitions import Callee
    from toolcrib.kinds.entity.commands import BoundDatabase, Mapped


class ActingCrib(Facade):
    """A crib as one principal uses it: all operations act in its realm and with its permissions.

    `Crib.acting_as` makes one. It is cheap, holds no connection of its own, and lives as long as its crib. The parts
    that it shows (`store`, `registry`, ...) are those of the whole crib, for every actor.

    Args:
        parts: The parts of the crib.
        actor: The actor of the crib.
    """

    def __init__(self, asynchronous: AsynchronousActingCrib, loop: EventLoopThread) -> None:
        super().__init__(asynchronous, loop)
        self._acting_crib = asynchronous

    @property
    def principal(self) -> Principal:
        """The principal."""
        return self._acting_crib.principal

    @cached_property
    def approvals(self) -> Approvals:
        """Calls that wait for a person."""
        return Approvals(self._acting_crib.approvals, self._loop)

    @cached_property
    def settlements(self) -> Settlements:
        """What is said of calls whose outcome is unknown."""
        return Settlements(self._acting_crib.settlements, self._loop)

    @cached_property
    def reference_data(self) -> ReferenceData:
        """The lists that providers declare."""
        return ReferenceData(self._acting_crib.reference_data, self._loop)

    @cached_property
    def imports(self) -> Imports:
        """Tools made from what other systems describe."""
        return Imports(self._acting_crib.imports, self._loop)

    @cached_property
    def lifecycle(self) -> ToolLife:
        """Deprecating and blocking tools, and what providers want to change."""
        return ToolLife(self._acting_crib.lifecycle, self._loop)

    @cached_property
    def listing(self) -> ToolListing:
        """The tools that the principal may see."""
        return ToolListing(self._acting_crib.listing, self._loop)

    @cached_property
    def queries(self) -> Queries:
        """Filters, sorts and counts over all that the principal may see."""
        return Queries(self._acting_crib.queries, self._loop)

    @cached_property
    def agents(self) -> Agents:
        """Agents."""
        return Agents(self._acting_crib.agents, self._loop)

    @cached_property
    def prompts(self) -> Prompts:
        """The prompts of agentic tools."""
        return Prompts(self._acting_crib.prompts, self._loop)

    @cached_property
    def secrets(self) -> Secrets:
        """Secrets of the vault."""
        return Secrets(self._acting_crib.secrets, self._loop)

    @cached_property
    def fragments(self) -> NamedThings[contracts.PromptFragment]:
        """Prompt fragments."""
        return NamedThings(self._acting_crib.fragments, self._loop)

    @cached_property
    def accounts(self) -> NamedThings[contracts.ServiceAccount]:
        """Service accounts."""
        return NamedThings(self._acting_crib.accounts, self._loop)

    @cached_property
    def steps(self) -> NamedThings[workflow_contracts.StepRegistration]:
        """Handlers that workflow steps name."""
        return NamedThings(self._acting_crib.steps, self._loop)

    @cached_property
    def conditions(self) -> NamedThings[workflow_contracts.ConditionBinding]:
        """Conditions that workflows name."""
        return NamedThings(self._acting_crib.conditions, self._loop)

    @cached_property
    def mcp_servers(self) -> NamedThings[contracts.McpServerDefinition]:
        """Virtual MCP servers."""
        return NamedThings(self._acting_crib.mcp_servers, self._loop)

    @cached_property
    def triggers(self) -> Triggers:
        """What starts runs without a person: times, webhooks, ends of other runs."""
        return Triggers(self._acting_crib.triggers, self._loop)

    @cached_property
    def connections(self) -> Connections:
        """Connections to providers."""
        return Connections(self._acting_crib.connections, self._loop)

    @cached_property
    def model_catalog(self) -> ModelCatalog:
        """The models that definitions can name."""
        return ModelCatalog(self._acting_crib.model_catalog, self._loop)

    @cached_property
    def conversations(self) -> Conversations:
        """Conversations with agents."""
        return Conversations(self._acting_crib.conversations, self._loop)

    @cached_property
    def evaluate(self) -> Evaluations:
        """Runs tasks by candidates, and compares them."""
        return Evaluations(self._acting_crib.evaluate, self._loop)

    @cached_property
    def questions(self) -> Questions:
        """What runs ask."""
        return Questions(self._acting_crib.questions, self._loop)

    @cached_property
    def executions(self) -> Executions:
        """Executions of agents and agentic tools."""
        return Executions(self._acting_crib.executions, self._loop)

    @cached_property
    def workflows(self) -> Workflows:
        """Workflows and their drafts."""
        return Workflows(self._acting_crib.workflows, self._loop)

    @cached_property
    def instances(self) -> Instances:
        """Instances of workflows."""
        return Instances(self._acting_crib.instances, self._loop)

    @cached_property
    def forks(self) -> Forks:
        """Forks of runs."""
        return Forks(self._acting_crib.forks, self._loop)

    def save(self, definition: ToolDefinition, *, after: int | None = None) -> ToolRevision:
        """Check a definition and store it as a revision.

        Args:
            definition: The definition.
            after: Number of the revision that the author has changed; null to save over whatever is there.

        Raises:
            InvalidDefinition: It is not well formed.
            NotFound: It is allotted a tool that does not exist.
            Conflict: Another revision has been saved since `after`.

        Example:
            revision = crib.save(code_tool("double", "def main(n): return 2 * n"))
        """
        return self._loop.run(self._acting_crib.save, definition, after=after)

    def check(self, definition: ToolDefinition) -> ToolDefinition:
        """The definition as `save` would store it; raises what `save` would, and stores nothing.

        Example:
            checked = crib.check(code_tool("double", "def main(n): return 2 * n"))
        """
        return self._loop.run(self._acting_crib.check, definition)

    def save_provider(self, provider: ProviderDefinition) -> None:
        """Store a provider.

        Example:
            crib.save_provider(ProviderDefinition(name="crm", base_url="https://api.crm.example"))
        """
        return self._loop.run(self._acting_crib.save_provider, provider)

    def add_entities(self, name: str, database: BoundDatabase, *things: Mapped) -> ImportedApi:
        """Make tools of tables that the application maps; see `Imports.entities`."""
        return self._loop.run(self._acting_crib.add_entities, name, database, *things)

    def export(self, *names: str, form: ExportFormat = "universal") -> list[JsonObject]:
        """Describe tools in the shape of another system.

        Args:
            *names: `name` or `name@range`; if none is given, every tool that is available to such a system and that
                the principal may see.
            form: One of `toolcrib.core.export.FORMATS`, such as `universal`, `openai_strict`, `gemini` or `skill`.

        Raises:
            NotFound: No such tool, or the principal may not see it.

        Example:
            [described] = crib.export("search_deals", form="openai")
        """
        return self._loop.run(self._acting_crib.export, *names, form=form)

    def invoke(
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
            result = crib.invoke("search_deals", {"company": "Acme"})
            print(result.error or result.output, result.cost_usd)
        """
        return self._loop.run(
            self._acting_crib.invoke,
            ref,
            arguments,
            conversation_id=conversation_id,
            session_id=session_id,
            dry_run=dry_run,
            as_call=as_call,
            test=test,
        )

    def submit(
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
            run_id = crib.submit("search_deals", {"company": "Acme"})
        """
        return self._loop.run(
            self._acting_crib.submit,
            ref,
            arguments,
            conversation_id=conversation_id,
            session_id=session_id,
            dry_run=dry_run,
            files=files,
        )

    def refusal(self, ref: Callee, arguments: JsonObject) -> ToolError | None:
        """Why a call would be refused before anything runs: arguments, policy, permission. Null if it would run.

        Raises:
            NotFound: No such tool.

        Example:
            problem = crib.refusal("search_deals", {"compny": "Acme"})
        """
        return self._loop.run(self._acting_crib.refusal, ref, arguments)

    def call(self, ref: Callee, arguments: JsonObject | None = None, /, **keywords: Json) -> ToolEnvelope:
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
            envelope = crib.call("search_deals", company="Acme")
        """
        return self._loop.run(self._acting_crib.call, ref, arguments, **keywords)

    def resume(self, run_id: str) -> runs.Result:
        """Carry a run on: after a decision, or after the process that drove it died.

        Raises:
            NotFound: No such run, or none of the principal's realm.
            PermissionDenied: It belongs to another principal.

        Example:
            waiting = crib.invoke("send_offer", {"deal": "d1"})
            crib.decide(waiting.run_id, "call", approve=True)
            result = crib.resume(waiting.run_id)
        """
        return self._loop.run(self._acting_crib.resume, run_id)

    def cancel(self, run_id: str, *, reason: str | None = None) -> bool:
        """Cancel a run and its nested runs, whatever they do or wait for; false if it was cancelled before.

        Raises:
            NotFound: No such run, or none of the principal's realm.
            PermissionDenied: It belongs to another principal.
            Conflict: It has ended.

        Example:
            run_id = crib.submit("search_deals", {"company": "Acme"})
            crib.cancel(run_id, reason="No longer needed")
        """
        return self._loop.run(self._acting_crib.cancel, run_id, reason=reason)

    def trace(self, run_id: str) -> Trace:
        """What a run has done so far, step by step, with its nested runs.

        Raises:
            NotFound: No such run, or none of the principal's realm.
            PermissionDenied: It belongs to another principal.

        Example:
            result = deals("Update all Acme Corp deals to Negotiation")
            print([step.type for step in crib.trace(result.run_id).steps])
        """
        return self._loop.run(self._acting_crib.trace, run_id)

    def replay(self, run_id: str, *, parked: bool = False) -> Replay:
        """Replay a run from its recording alone, and report where it diverges.

        No tool runs, no model is asked, nothing is written. With `parked`, a run that has not ended is replayed as far
        as it has come. `recorded_model` is for running it again for real.

        Raises:
            NotFound: No such run, or none of the principal's realm.
            PermissionDenied: It belongs to another principal.
            Conflict: It has not ended.

        Example:
            result = deals("Update all Acme Corp deals to Negotiation")
            print(crib.replay(result.run_id).same)
        """
        return self._loop.run(self._acting_crib.replay, run_id, parked=parked)

    def sent_prompts(self, run_id: str) -> Sequence[SentPrompt]:
        """The whole requests of a run's own model calls, in the order in which they were made.

        They are put together by a replay, which holds each against what the journal has of it. Those of nested runs
        are theirs. An answer that a fork took over has none, and the request of the first difference is left out.

        Raises:
            NotFound: No such run, or none of the principal's realm.
            PermissionDenied: It belongs to another principal.
            Conflict: The replay differs before the first request.

        Example:
            result = deals("Update all Acme Corp deals to Negotiation")
            for prompt in crib.sent_prompts(result.run_id):
                print(prompt.position, prompt.tokens.total, len(prompt.messages))
        """
        return self._loop.run(self._acting_crib.sent_prompts, run_id)

    def fork(
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
            answer = desk("Which deals has Acme?")
            fork = crib.fork(answer.run_id, changes={"prompt": "Answer in one word."})
        """
        return self._loop.run(
            self._acting_crib.fork, run_id, at=at, changes=changes, allow_writes=allow_writes, anew=anew, wait=wait
        )

    def compare(self, before: str, after: str) -> RunDiff:
        """How two runs differ: see `Forks.compare`.

        Example:
            answer = desk("Which deals has Acme?")
            fork = crib.fork(answer.run_id, changes={"prompt": "Answer in one word."})
            print(crib.compare(answer.run_id, fork.run_id).output)
        """
        return self._loop.run(self._acting_crib.compare, before, after)

    def stream(self, run_id: str, *, after: str = "0", drive: bool = False) -> Iterator[runs.StreamMessage]:
        """The text and calls of a run while it is active: see `Executions.follow`. Leaving it never ends the run.

        Example:
            run_id = crib.submit("desk", {"message": "Which deals has Acme?"})
            for message in crib.stream(run_id, drive=True):
                print(message.place, message.event)
        """
        return self._loop.iterate(self._acting_crib.stream, run_id, after=after, drive=drive)

    def pending_approvals(self, run_id: str) -> Sequence[ApprovalRequested]:
        """Calls of a run that wait for a person; see `Approvals.of_run`."""
        return self._loop.run(self._acting_crib.pending_approvals, run_id)

    def pending_handoffs(self, run_id: str) -> Sequence[ToolEnvelope]:
        """Prepared calls of a run that wait for a client.

        Example:
            waiting = crib.invoke("print_label", {"deal": "d1"})
            [prepared] = crib.pending_handoffs(waiting.run_id)
        """
        return self._loop.run(self._acting_crib.pending_handoffs, run_id)

    def decide(
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
            waiting = crib.invoke("send_offer", {"deal": "d1"})
            crib.decide(waiting.run_id, "call", approve=False, reason="Not yet")
        """
        return self._loop.run(
            self._acting_crib.decide, run_id, position, approve=approve, edited_input=edited_input, reason=reason
        )

    def return_client_result(self, run_id: str, position: str, result: ClientResult) -> bool:
        """Bring back what a client did with a prepared call. The first result counts; false if there was another.

        The same result from the same client counts however often it comes: an answer that was lost can be asked for.

        Raises:
            NotFound: No such run, or none of the principal's realm.
            PermissionDenied: It belongs to another principal.
            Conflict: No call at this position waits for a client.

        Example:
            waiting = crib.invoke("print_label", {"deal": "d1"})
            crib.return_client_result(waiting.run_id, "call", ClientResult(output={"printed": True}))
        """
        return self._loop.run(self._acting_crib.return_client_result, run_id, position, result)

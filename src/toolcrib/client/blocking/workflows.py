"""The synchronous operations on workflows.

Written by `python -m tools.rest_client`.
"""

from collections.abc import Iterator, Sequence
from typing import Literal

from toolcrib.client.answer_parts import WorkflowView
from toolcrib.client.answers import (
    ConditionPage,
    Count,
    DraftPage,
    PublicationView,
    RemovalView,
    StepPage,
    ToldSignal,
    Undone,
    WorkflowPage,
    WorkflowRevisions,
    WorkflowValidity,
)
from toolcrib.client.groups import SyncApi
from toolcrib.client.operations import workflows as asynchronous
from toolcrib.contracts import ImpactReport, Json, JsonObject, StreamEvent
from toolcrib.contracts.runs.workflow_instances import InstancePage, InstanceSummary, WorkflowInstance
from toolcrib.contracts.specs.workflow_steps import ConditionBinding, StepRegistration
from toolcrib.contracts.workflows.graphs import MaterializePreview, WorkflowDraft, WorkflowGraph
from toolcrib.contracts.workflows.workflow_definitions import Materialized, WorkflowDefinition


class WorkflowsApi(SyncApi[asynchronous.AsyncWorkflowsApi]):
    """The operations on workflows."""

    def query_steps(
        self,
        *,
        filter: str | None = None,
        sort: str | None = None,
        after: str | None = None,
        limit: int | None = None,
        idempotency_key: str | None = None,
    ) -> StepPage:
        """The steps that a filter means, page by page."""
        return self._loop.run(
            self._api.query_steps, filter=filter, sort=sort, after=after, limit=limit, idempotency_key=idempotency_key
        )

    def count_steps(self, *, filter: str | None = None) -> Count:
        """How many steps a filter means, of those that the caller may see."""
        return self._loop.run(self._api.count_steps, filter=filter)

    def list_steps(
        self, *, filter: str | None = None, sort: str | None = None, after: str | None = None, limit: int | None = None
    ) -> StepPage:
        """The steps that the caller may read."""
        return self._loop.run(self._api.list_steps, filter=filter, sort=sort, after=after, limit=limit)

    def each_steps(
        self, *, filter: str | None = None, sort: str | None = None, limit: int | None = None
    ) -> Iterator[StepRegistration]:
        """The steps that the caller may read.

        All of them: the next page is read when it is needed.
        """
        return self._loop.iterate(self._api.each_steps, filter=filter, sort=sort, limit=limit)

    def get_step(self, name: str) -> StepRegistration:
        """The step in its newest revision, which the header `ETag` names."""
        return self._loop.run(self._api.get_step, name)

    def save_step(
        self,
        name: str,
        *,
        tool: str,
        description: str | None = None,
        input_mapping: JsonObject | None = None,
        output_mapping: JsonObject | None = None,
        enabled: bool | None = None,
        if_match: int | str | None = None,
    ) -> StepRegistration:
        """Give a tool a name in the vocabulary of workflows. Published ones keep what they were checked with."""
        return self._loop.run(
            self._api.save_step,
            name,
            tool=tool,
            description=description,
            input_mapping=input_mapping,
            output_mapping=output_mapping,
            enabled=enabled,
            if_match=if_match,
        )

    def remove_step(self, name: str) -> None:
        """Take a name out of the vocabulary. Published workflows keep it; new ones cannot name it any more."""
        return self._loop.run(self._api.remove_step, name)

    def query_conditions(
        self,
        *,
        filter: str | None = None,
        sort: str | None = None,
        after: str | None = None,
        limit: int | None = None,
        idempotency_key: str | None = None,
    ) -> ConditionPage:
        """The conditions that a filter means, page by page."""
        return self._loop.run(
            self._api.query_conditions,
            filter=filter,
            sort=sort,
            after=after,
            limit=limit,
            idempotency_key=idempotency_key,
        )

    def count_conditions(self, *, filter: str | None = None) -> Count:
        """How many conditions a filter means, of those that the caller may see."""
        return self._loop.run(self._api.count_conditions, filter=filter)

    def list_conditions(
        self, *, filter: str | None = None, sort: str | None = None, after: str | None = None, limit: int | None = None
    ) -> ConditionPage:
        """The conditions that the caller may read."""
        return self._loop.run(self._api.list_conditions, filter=filter, sort=sort, after=after, limit=limit)

    def each_conditions(
        self, *, filter: str | None = None, sort: str | None = None, limit: int | None = None
    ) -> Iterator[ConditionBinding]:
        """The conditions that the caller may read.

        All of them: the next page is read when it is needed.
        """
        return self._loop.iterate(self._api.each_conditions, filter=filter, sort=sort, limit=limit)

    def get_condition(self, name: str) -> ConditionBinding:
        """The condition in its newest revision, which the header `ETag` names."""
        return self._loop.run(self._api.get_condition, name)

    def save_condition(
        self,
        name: str,
        *,
        expression: str,
        description: str | None = None,
        parameters: Sequence[str] | None = None,
        enabled: bool | None = None,
        if_match: int | str | None = None,
    ) -> ConditionBinding:
        """Give a condition a name. Published workflows keep the one that they were checked with."""
        return self._loop.run(
            self._api.save_condition,
            name,
            expression=expression,
            description=description,
            parameters=parameters,
            enabled=enabled,
            if_match=if_match,
        )

    def remove_condition(self, name: str) -> None:
        """Take a condition out. Published workflows keep it; new ones cannot name it any more."""
        return self._loop.run(self._api.remove_condition, name)

    def query_drafts(
        self,
        *,
        filter: str | None = None,
        sort: str | None = None,
        after: str | None = None,
        limit: int | None = None,
        idempotency_key: str | None = None,
    ) -> DraftPage:
        """The drafts that a filter means, page by page."""
        return self._loop.run(
            self._api.query_drafts, filter=filter, sort=sort, after=after, limit=limit, idempotency_key=idempotency_key
        )

    def count_drafts(self, *, filter: str | None = None) -> Count:
        """How many drafts a filter means, of those that the caller may see."""
        return self._loop.run(self._api.count_drafts, filter=filter)

    def list_drafts(
        self, *, filter: str | None = None, sort: str | None = None, after: str | None = None, limit: int | None = None
    ) -> DraftPage:
        """The drafts of workflows that the caller may see, by name."""
        return self._loop.run(self._api.list_drafts, filter=filter, sort=sort, after=after, limit=limit)

    def each_drafts(
        self, *, filter: str | None = None, sort: str | None = None, limit: int | None = None
    ) -> Iterator[WorkflowDraft]:
        """The drafts of workflows that the caller may see, by name.

        All of them: the next page is read when it is needed.
        """
        return self._loop.iterate(self._api.each_drafts, filter=filter, sort=sort, limit=limit)

    def get_draft(self, name: str) -> WorkflowDraft:
        """A draft, with what is wrong with it by now; the header `ETag` names its revision."""
        return self._loop.run(self._api.get_draft, name)

    def save_draft(
        self, name: str, *, definition: JsonObject, note: str | None = None, if_match: int | str | None = None
    ) -> WorkflowDraft:
        """Keep a definition beside the published one. It must be one that could be published."""
        return self._loop.run(self._api.save_draft, name, definition=definition, note=note, if_match=if_match)

    def discard_draft(self, name: str) -> None:
        """Take a draft out; the published workflow of its name stays."""
        return self._loop.run(self._api.discard_draft, name)

    def undo_draft(self, name: str, *, idempotency_key: str | None = None) -> Undone:
        """Undo the last change of a draft, by a person, an agent, or a materialized call."""
        return self._loop.run(self._api.undo_draft, name, idempotency_key=idempotency_key)

    def query(
        self,
        *,
        filter: str | None = None,
        sort: str | None = None,
        after: str | None = None,
        limit: int | None = None,
        idempotency_key: str | None = None,
    ) -> WorkflowPage:
        """The workflows that a filter means, page by page."""
        return self._loop.run(
            self._api.query, filter=filter, sort=sort, after=after, limit=limit, idempotency_key=idempotency_key
        )

    def count(self, *, filter: str | None = None) -> Count:
        """How many workflows a filter means, of those that the caller may see."""
        return self._loop.run(self._api.count, filter=filter)

    def list(
        self,
        *,
        q: str | None = None,
        category: str | None = None,
        tag: str | None = None,
        filter: str | None = None,
        sort: str | None = None,
        after: str | None = None,
        limit: int | None = None,
    ) -> WorkflowPage:
        """Workflows by name, page by page; `q` is looked for in names, titles, descriptions and tags."""
        return self._loop.run(
            self._api.list, q=q, category=category, tag=tag, filter=filter, sort=sort, after=after, limit=limit
        )

    def each(
        self,
        *,
        q: str | None = None,
        category: str | None = None,
        tag: str | None = None,
        filter: str | None = None,
        sort: str | None = None,
        limit: int | None = None,
    ) -> Iterator[WorkflowView]:
        """Workflows by name, page by page; `q` is looked for in names, titles, descriptions and tags.

        All of them: the next page is read when it is needed.
        """
        return self._loop.iterate(
            self._api.each, q=q, category=category, tag=tag, filter=filter, sort=sort, limit=limit
        )

    def validate(
        self, definition: WorkflowDefinition | JsonObject, *, idempotency_key: str | None = None
    ) -> WorkflowValidity:
        """All that is wrong with a definition, with the place of each, and its graph; nothing is stored.

        For those who may write drafts of it, and see the tools that it calls.
        """
        return self._loop.run(self._api.validate, definition, idempotency_key=idempotency_key)

    def get(self, name: str, *, version: str | None = None) -> WorkflowView:
        """A workflow as it is published; the header `ETag` names the revision."""
        return self._loop.run(self._api.get, name, version=version)

    def remove(self, name: str) -> RemovalView:
        """Remove a workflow from the catalogue. Active runs keep their revision; publishing restores it."""
        return self._loop.run(self._api.remove, name)

    def list_revisions(self, name: str) -> WorkflowRevisions:
        """All that was ever published under this name."""
        return self._loop.run(self._api.list_revisions, name)

    def get_graph(self, name: str, *, version: str | None = None) -> WorkflowGraph:
        """All steps and edges with their current states: ok, held or broken, and why."""
        return self._loop.run(self._api.get_graph, name, version=version)

    def get_impact(self, name: str, *, version: str | None = None) -> ImpactReport:
        """The impact of the workflow: what is bound to it, directly or through others, and its active runs.

        For those who may publish it.
        """
        return self._loop.run(self._api.get_impact, name, version=version)

    def export(self, name: str, *, version: str | None = None, format: Literal["json", "yaml"] | None = None) -> Json:
        """The document that makes the same workflow when it is published in another crib."""
        return self._loop.run(self._api.export, name, version=version, format=format)

    def publish(
        self,
        name: str,
        *,
        definition: JsonObject | None = None,
        draft_revision: int | None = None,
        if_match: int | str | None = None,
        idempotency_key: str | None = None,
    ) -> PublicationView:
        """Publish the draft of this name, or a definition, as the newest revision; the response has its impact."""
        return self._loop.run(
            self._api.publish,
            name,
            definition=definition,
            draft_revision=draft_revision,
            if_match=if_match,
            idempotency_key=idempotency_key,
        )

    def revert(
        self, name: str, *, revision: int, if_match: int | str | None = None, idempotency_key: str | None = None
    ) -> PublicationView:
        """Make an older revision the newest one again."""
        return self._loop.run(
            self._api.revert, name, revision=revision, if_match=if_match, idempotency_key=idempotency_key
        )

    def materialize_call(
        self,
        name: str,
        *,
        run_id: str,
        step: str,
        node: str | None = None,
        call_id: str | None = None,
        position: str | None = None,
        pin: str | None = None,
        idempotency_key: str | None = None,
    ) -> Materialized:
        """Turn a call that an agent has made in a run into a step of its own: one change of the workflow's draft."""
        return self._loop.run(
            self._api.materialize_call,
            name,
            run_id=run_id,
            step=step,
            node=node,
            call_id=call_id,
            position=position,
            pin=pin,
            idempotency_key=idempotency_key,
        )

    def preview_materialized_call(
        self,
        name: str,
        *,
        run_id: str,
        step: str,
        node: str | None = None,
        call_id: str | None = None,
        position: str | None = None,
        pin: str | None = None,
        idempotency_key: str | None = None,
    ) -> MaterializePreview:
        """What turning a call into a step would change, with the difference and all problems. Nothing is written."""
        return self._loop.run(
            self._api.preview_materialized_call,
            name,
            run_id=run_id,
            step=step,
            node=node,
            call_id=call_id,
            position=position,
            pin=pin,
            idempotency_key=idempotency_key,
        )

    def run(
        self,
        name: str,
        *,
        input: JsonObject | None = None,
        wait: bool | None = None,
        idempotency_key: str | None = None,
    ) -> WorkflowInstance:
        """Run a workflow, `name` or `name@range`; responds when it has ended or waits, or at once with `wait: false`."""
        return self._loop.run(self._api.run, name, input=input, wait=wait, idempotency_key=idempotency_key)

    def dry_run(
        self,
        name: str,
        *,
        input: JsonObject | None = None,
        wait: bool | None = None,
        idempotency_key: str | None = None,
    ) -> WorkflowInstance:
        """The same as a dry run: calls that would write are skipped, and listed with their arguments."""
        return self._loop.run(self._api.dry_run, name, input=input, wait=wait, idempotency_key=idempotency_key)

    def query_instances(
        self,
        *,
        filter: str | None = None,
        sort: str | None = None,
        after: str | None = None,
        limit: int | None = None,
        idempotency_key: str | None = None,
    ) -> InstancePage:
        """The instances that a filter means, page by page."""
        return self._loop.run(
            self._api.query_instances,
            filter=filter,
            sort=sort,
            after=after,
            limit=limit,
            idempotency_key=idempotency_key,
        )

    def count_instances(self, *, filter: str | None = None) -> Count:
        """How many instances a filter means, of those that the caller may see."""
        return self._loop.run(self._api.count_instances, filter=filter)

    def list_instances(
        self,
        *,
        workflow: str | None = None,
        status: Literal[
            "queued",
            "running",
            "awaiting_approval",
            "awaiting_client",
            "awaiting_answer",
            "completed",
            "incomplete",
            "failed",
            "timed_out",
            "cancelled",
        ]
        | None = None,
        filter: str | None = None,
        sort: str | None = None,
        after: str | None = None,
        before: str | None = None,
        limit: int | None = None,
    ) -> InstancePage:
        """Instances in short, newest first, those that the caller may see; `workflow` is a name without version."""
        return self._loop.run(
            self._api.list_instances,
            workflow=workflow,
            status=status,
            filter=filter,
            sort=sort,
            after=after,
            before=before,
            limit=limit,
        )

    def each_instances(
        self,
        *,
        workflow: str | None = None,
        status: Literal[
            "queued",
            "running",
            "awaiting_approval",
            "awaiting_client",
            "awaiting_answer",
            "completed",
            "incomplete",
            "failed",
            "timed_out",
            "cancelled",
        ]
        | None = None,
        filter: str | None = None,
        sort: str | None = None,
        before: str | None = None,
        limit: int | None = None,
    ) -> Iterator[InstanceSummary]:
        """Instances in short, newest first, those that the caller may see; `workflow` is a name without version.

        All of them: the next page is read when it is needed.
        """
        return self._loop.iterate(
            self._api.each_instances,
            workflow=workflow,
            status=status,
            filter=filter,
            sort=sort,
            before=before,
            limit=limit,
        )

    def get_instance(self, run_id: str, *, outputs: bool | None = None) -> WorkflowInstance:
        """An instance, step by step."""
        return self._loop.run(self._api.get_instance, run_id, outputs=outputs)

    def stream_instance(self, run_id: str, *, after: str | None = None) -> Iterator[StreamEvent]:
        """Calls and steps as server-sent events, until the instance has ended or waits; `Last-Event-ID` re-attaches."""
        return self._loop.iterate(self._api.stream_instance, run_id, after=after)

    def resume_instance(
        self,
        run_id: str,
        *,
        repeat_unknown: bool | None = None,
        wait: bool | None = None,
        idempotency_key: str | None = None,
    ) -> WorkflowInstance:
        """Resume an instance. One that failed or was cancelled is continued by a new run of the workflow as it is now.

        Calls that succeeded are not repeated. The response is the new instance; the header `Location` names it.
        """
        return self._loop.run(
            self._api.resume_instance, run_id, repeat_unknown=repeat_unknown, wait=wait, idempotency_key=idempotency_key
        )

    def rerun_instance(
        self, run_id: str, *, step: str, wait: bool | None = None, idempotency_key: str | None = None
    ) -> WorkflowInstance:
        """Run a step and all that follow it again, in a new instance, with the earlier outputs of the other steps."""
        return self._loop.run(self._api.rerun_instance, run_id, step=step, wait=wait, idempotency_key=idempotency_key)

    def signal_instance(
        self, run_id: str, *, name: str, payload: JsonObject | None = None, idempotency_key: str | None = None
    ) -> ToldSignal:
        """Send an instance the signal that a step waits for; the instance then resumes. The first one counts.

        A signal never is an approval: those are decided in the inbox.
        """
        return self._loop.run(
            self._api.signal_instance, run_id, name=name, payload=payload, idempotency_key=idempotency_key
        )

    def cancel_instance(
        self, run_id: str, *, reason: str | None = None, idempotency_key: str | None = None
    ) -> WorkflowInstance:
        """End an instance and what is nested in it, whatever it does or waits for. It can be resumed."""
        return self._loop.run(self._api.cancel_instance, run_id, reason=reason, idempotency_key=idempotency_key)

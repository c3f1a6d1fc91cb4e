"""The operations on workflows.

Written by `python -m tools.rest_client`.
"""

from collections.abc import AsyncGenerator, Sequence
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
from toolcrib.client.groups import AsyncApi
from toolcrib.client.transport import ApiRequest, given
from toolcrib.contracts import ImpactReport, Json, JsonObject, StreamEvent
from toolcrib.contracts.runs.workflow_instances import InstancePage, InstanceSummary, WorkflowInstance
from toolcrib.contracts.specs.workflow_steps import ConditionBinding, StepRegistration
from toolcrib.contracts.workflows.graphs import MaterializePreview, WorkflowDraft, WorkflowGraph
from toolcrib.contracts.workflows.workflow_definitions import Materialized, WorkflowDefinition


class AsyncWorkflowsApi(AsyncApi):
    """The operations on workflows."""

    async def query_steps(
        self,
        *,
        filter: str | None = None,
        sort: str | None = None,
        after: str | None = None,
        limit: int | None = None,
        idempotency_key: str | None = None,
    ) -> StepPage:
        """The steps that a filter means, page by page."""
        return await self._transport.send(
            StepPage,
            ApiRequest(
                method="POST",
                path="/api/v1/ai/steps/query",
                body=given(filter=filter, sort=sort, after=after, limit=limit),
                headers={"Idempotency-Key": idempotency_key},
            ),
        )

    async def count_steps(self, *, filter: str | None = None) -> Count:
        """How many steps a filter means, of those that the caller may see."""
        return await self._transport.send(
            Count, ApiRequest(method="GET", path="/api/v1/ai/steps/count", query=given(filter=filter))
        )

    async def list_steps(
        self, *, filter: str | None = None, sort: str | None = None, after: str | None = None, limit: int | None = None
    ) -> StepPage:
        """The steps that the caller may read."""
        return await self._transport.send(
            StepPage,
            ApiRequest(
                method="GET", path="/api/v1/ai/steps", query=given(filter=filter, sort=sort, after=after, limit=limit)
            ),
        )

    def each_steps(
        self, *, filter: str | None = None, sort: str | None = None, limit: int | None = None
    ) -> AsyncGenerator[StepRegistration]:
        """The steps that the caller may read.

        All of them: the next page is read when it is needed.
        """
        return self._transport.each(
            StepPage,
            ApiRequest(method="GET", path="/api/v1/ai/steps", query=given(filter=filter, sort=sort, limit=limit)),
            "after",
        )

    async def get_step(self, name: str) -> StepRegistration:
        """The step in its newest revision, which the header `ETag` names."""
        return await self._transport.send(
            StepRegistration, ApiRequest(method="GET", path="/api/v1/ai/steps/{name}", place={"name": name})
        )

    async def save_step(
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
        return await self._transport.send(
            StepRegistration,
            ApiRequest(
                method="PUT",
                path="/api/v1/ai/steps/{name}",
                place={"name": name},
                body=given(
                    name=name,
                    tool=tool,
                    description=description,
                    input_mapping=input_mapping,
                    output_mapping=output_mapping,
                    enabled=enabled,
                ),
                headers={"If-Match": if_match},
            ),
        )

    async def remove_step(self, name: str) -> None:
        """Take a name out of the vocabulary. Published workflows keep it; new ones cannot name it any more."""
        await self._transport.send(
            None, ApiRequest(method="DELETE", path="/api/v1/ai/steps/{name}", place={"name": name})
        )

    async def query_conditions(
        self,
        *,
        filter: str | None = None,
        sort: str | None = None,
        after: str | None = None,
        limit: int | None = None,
        idempotency_key: str | None = None,
    ) -> ConditionPage:
        """The conditions that a filter means, page by page."""
        return await self._transport.send(
            ConditionPage,
            ApiRequest(
                method="POST",
                path="/api/v1/ai/conditions/query",
                body=given(filter=filter, sort=sort, after=after, limit=limit),
                headers={"Idempotency-Key": idempotency_key},
            ),
        )

    async def count_conditions(self, *, filter: str | None = None) -> Count:
        """How many conditions a filter means, of those that the caller may see."""
        return await self._transport.send(
            Count, ApiRequest(method="GET", path="/api/v1/ai/conditions/count", query=given(filter=filter))
        )

    async def list_conditions(
        self, *, filter: str | None = None, sort: str | None = None, after: str | None = None, limit: int | None = None
    ) -> ConditionPage:
        """The conditions that the caller may read."""
        return await self._transport.send(
            ConditionPage,
            ApiRequest(
                method="GET",
                path="/api/v1/ai/conditions",
                query=given(filter=filter, sort=sort, after=after, limit=limit),
            ),
        )

    def each_conditions(
        self, *, filter: str | None = None, sort: str | None = None, limit: int | None = None
    ) -> AsyncGenerator[ConditionBinding]:
        """The conditions that the caller may read.

        All of them: the next page is read when it is needed.
        """
        return self._transport.each(
            ConditionPage,
            ApiRequest(method="GET", path="/api/v1/ai/conditions", query=given(filter=filter, sort=sort, limit=limit)),
            "after",
        )

    async def get_condition(self, name: str) -> ConditionBinding:
        """The condition in its newest revision, which the header `ETag` names."""
        return await self._transport.send(
            ConditionBinding, ApiRequest(method="GET", path="/api/v1/ai/conditions/{name}", place={"name": name})
        )

    async def save_condition(
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
        return await self._transport.send(
            ConditionBinding,
            ApiRequest(
                method="PUT",
                path="/api/v1/ai/conditions/{name}",
                place={"name": name},
                body=given(
                    name=name, expression=expression, description=description, parameters=parameters, enabled=enabled
                ),
                headers={"If-Match": if_match},
            ),
        )

    async def remove_condition(self, name: str) -> None:
        """Take a condition out. Published workflows keep it; new ones cannot name it any more."""
        await self._transport.send(
            None, ApiRequest(method="DELETE", path="/api/v1/ai/conditions/{name}", place={"name": name})
        )

    async def query_drafts(
        self,
        *,
        filter: str | None = None,
        sort: str | None = None,
        after: str | None = None,
        limit: int | None = None,
        idempotency_key: str | None = None,
    ) -> DraftPage:
        """The drafts that a filter means, page by page."""
        return await self._transport.send(
            DraftPage,
            ApiRequest(
                method="POST",
                path="/api/v1/ai/drafts/query",
                body=given(filter=filter, sort=sort, after=after, limit=limit),
                headers={"Idempotency-Key": idempotency_key},
            ),
        )

    async def count_drafts(self, *, filter: str | None = None) -> Count:
        """How many drafts a filter means, of those that the caller may see."""
        return await self._transport.send(
            Count, ApiRequest(method="GET", path="/api/v1/ai/drafts/count", query=given(filter=filter))
        )

    async def list_drafts(
        self, *, filter: str | None = None, sort: str | None = None, after: str | None = None, limit: int | None = None
    ) -> DraftPage:
        """The drafts of workflows that the caller may see, by name."""
        return await self._transport.send(
            DraftPage,
            ApiRequest(
                method="GET", path="/api/v1/ai/drafts", query=given(filter=filter, sort=sort, after=after, limit=limit)
            ),
        )

    def each_drafts(
        self, *, filter: str | None = None, sort: str | None = None, limit: int | None = None
    ) -> AsyncGenerator[WorkflowDraft]:
        """The drafts of workflows that the caller may see, by name.

        All of them: the next page is read when it is needed.
        """
        return self._transport.each(
            DraftPage,
            ApiRequest(method="GET", path="/api/v1/ai/drafts", query=given(filter=filter, sort=sort, limit=limit)),
            "after",
        )

    async def get_draft(self, name: str) -> WorkflowDraft:
        """A draft, with what is wrong with it by now; the header `ETag` names its revision."""
        return await self._transport.send(
            WorkflowDraft, ApiRequest(method="GET", path="/api/v1/ai/drafts/{name}", place={"name": name})
        )

    async def save_draft(
        self, name: str, *, definition: JsonObject, note: str | None = None, if_match: int | str | None = None
    ) -> WorkflowDraft:
        """Keep a definition beside the published one. It must be one that could be published."""
        return await self._transport.send(
            WorkflowDraft,
            ApiRequest(
                method="PUT",
                path="/api/v1/ai/drafts/{name}",
                place={"name": name},
                body=given(definition=definition, note=note),
                headers={"If-Match": if_match},
            ),
        )

    async def discard_draft(self, name: str) -> None:
        """Take a draft out; the published workflow of its name stays."""
        await self._transport.send(
            None, ApiRequest(method="DELETE", path="/api/v1/ai/drafts/{name}", place={"name": name})
        )

    async def undo_draft(self, name: str, *, idempotency_key: str | None = None) -> Undone:
        """Undo the last change of a draft, by a person, an agent, or a materialized call."""
        return await self._transport.send(
            Undone,
            ApiRequest(
                method="POST",
                path="/api/v1/ai/drafts/{name}/undo",
                place={"name": name},
                headers={"Idempotency-Key": idempotency_key},
            ),
        )

    async def query(
        self,
        *,
        filter: str | None = None,
        sort: str | None = None,
        after: str | None = None,
        limit: int | None = None,
        idempotency_key: str | None = None,
    ) -> WorkflowPage:
        """The workflows that a filter means, page by page."""
        return await self._transport.send(
            WorkflowPage,
            ApiRequest(
                method="POST",
                path="/api/v1/ai/workflows/query",
                body=given(filter=filter, sort=sort, after=after, limit=limit),
                headers={"Idempotency-Key": idempotency_key},
            ),
        )

    async def count(self, *, filter: str | None = None) -> Count:
        """How many workflows a filter means, of those that the caller may see."""
        return await self._transport.send(
            Count, ApiRequest(method="GET", path="/api/v1/ai/workflows/count", query=given(filter=filter))
        )

    async def list(
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
        return await self._transport.send(
            WorkflowPage,
            ApiRequest(
                method="GET",
                path="/api/v1/ai/workflows",
                query=given(q=q, category=category, tag=tag, filter=filter, sort=sort, after=after, limit=limit),
            ),
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
    ) -> AsyncGenerator[WorkflowView]:
        """Workflows by name, page by page; `q` is looked for in names, titles, descriptions and tags.

        All of them: the next page is read when it is needed.
        """
        return self._transport.each(
            WorkflowPage,
            ApiRequest(
                method="GET",
                path="/api/v1/ai/workflows",
                query=given(q=q, category=category, tag=tag, filter=filter, sort=sort, limit=limit),
            ),
            "after",
        )

    async def validate(
        self, definition: WorkflowDefinition | JsonObject, *, idempotency_key: str | None = None
    ) -> WorkflowValidity:
        """All that is wrong with a definition, with the place of each, and its graph; nothing is stored.

        For those who may write drafts of it, and see the tools that it calls.
        """
        return await self._transport.send(
            WorkflowValidity,
            ApiRequest(
                method="POST",
                path="/api/v1/ai/workflows/validate",
                body=definition,
                headers={"Idempotency-Key": idempotency_key},
            ),
        )

    async def get(self, name: str, *, version: str | None = None) -> WorkflowView:
        """A workflow as it is published; the header `ETag` names the revision."""
        return await self._transport.send(
            WorkflowView,
            ApiRequest(
                method="GET", path="/api/v1/ai/workflows/{name}", place={"name": name}, query=given(version=version)
            ),
        )

    async def remove(self, name: str) -> RemovalView:
        """Remove a workflow from the catalogue. Active runs keep their revision; publishing restores it."""
        return await self._transport.send(
            RemovalView, ApiRequest(method="DELETE", path="/api/v1/ai/workflows/{name}", place={"name": name})
        )

    async def list_revisions(self, name: str) -> WorkflowRevisions:
        """All that was ever published under this name."""
        return await self._transport.send(
            WorkflowRevisions,
            ApiRequest(method="GET", path="/api/v1/ai/workflows/{name}/revisions", place={"name": name}),
        )

    async def get_graph(self, name: str, *, version: str | None = None) -> WorkflowGraph:
        """All steps and edges with their current states: ok, held or broken, and why."""
        return await self._transport.send(
            WorkflowGraph,
            ApiRequest(
                method="GET",
                path="/api/v1/ai/workflows/{name}/graph",
                place={"name": name},
                query=given(version=version),
            ),
        )

    async def get_impact(self, name: str, *, version: str | None = None) -> ImpactReport:
        """The impact of the workflow: what is bound to it, directly or through others, and its active runs.

        For those who may publish it.
        """
        return await self._transport.send(
            ImpactReport,
            ApiRequest(
                method="GET",
                path="/api/v1/ai/workflows/{name}/impact",
                place={"name": name},
                query=given(version=version),
            ),
        )

    async def export(
        self, name: str, *, version: str | None = None, format: Literal["json", "yaml"] | None = None
    ) -> Json:
        """The document that makes the same workflow when it is published in another crib."""
        return await self._transport.send(
            Json,
            ApiRequest(
                method="GET",
                path="/api/v1/ai/workflows/{name}/export",
                place={"name": name},
                query=given(version=version, format=format),
            ),
        )

    async def publish(
        self,
        name: str,
        *,
        definition: JsonObject | None = None,
        draft_revision: int | None = None,
        if_match: int | str | None = None,
        idempotency_key: str | None = None,
    ) -> PublicationView:
        """Publish the draft of this name, or a definition, as the newest revision; the response has its impact."""
        return await self._transport.send(
            PublicationView,
            ApiRequest(
                method="POST",
                path="/api/v1/ai/workflows/{name}/publish",
                place={"name": name},
                body=given(definition=definition, draft_revision=draft_revision),
                headers={"If-Match": if_match, "Idempotency-Key": idempotency_key},
            ),
        )

    async def revert(
        self, name: str, *, revision: int, if_match: int | str | None = None, idempotency_key: str | None = None
    ) -> PublicationView:
        """Make an older revision the newest one again."""
        return await self._transport.send(
            PublicationView,
            ApiRequest(
                method="POST",
                path="/api/v1/ai/workflows/{name}/revert",
                place={"name": name},
                body=given(revision=revision),
                headers={"If-Match": if_match, "Idempotency-Key": idempotency_key},
            ),
        )

    async def materialize_call(
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
        return await self._transport.send(
            Materialized,
            ApiRequest(
                method="POST",
                path="/api/v1/ai/workflows/{name}/materialize",
                place={"name": name},
                body=given(run_id=run_id, step=step, node=node, call_id=call_id, position=position, pin=pin),
                headers={"Idempotency-Key": idempotency_key},
            ),
        )

    async def preview_materialized_call(
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
        return await self._transport.send(
            MaterializePreview,
            ApiRequest(
                method="POST",
                path="/api/v1/ai/workflows/{name}/materialize/preview",
                place={"name": name},
                body=given(run_id=run_id, step=step, node=node, call_id=call_id, position=position, pin=pin),
                headers={"Idempotency-Key": idempotency_key},
            ),
        )

    async def run(
        self,
        name: str,
        *,
        input: JsonObject | None = None,
        wait: bool | None = None,
        idempotency_key: str | None = None,
    ) -> WorkflowInstance:
        """Run a workflow, `name` or `name@range`; responds when it has ended or waits, or at once with `wait: false`."""
        return await self._transport.send(
            WorkflowInstance,
            ApiRequest(
                method="POST",
                path="/api/v1/ai/workflows/{name}/run",
                place={"name": name},
                body=given(input=input, wait=wait),
                headers={"Idempotency-Key": idempotency_key},
            ),
        )

    async def dry_run(
        self,
        name: str,
        *,
        input: JsonObject | None = None,
        wait: bool | None = None,
        idempotency_key: str | None = None,
    ) -> WorkflowInstance:
        """The same as a dry run: calls that would write are skipped, and listed with their arguments."""
        return await self._transport.send(
            WorkflowInstance,
            ApiRequest(
                method="POST",
                path="/api/v1/ai/workflows/{name}/dry-run",
                place={"name": name},
                body=given(input=input, wait=wait),
                headers={"Idempotency-Key": idempotency_key},
            ),
        )

    async def query_instances(
        self,
        *,
        filter: str | None = None,
        sort: str | None = None,
        after: str | None = None,
        limit: int | None = None,
        idempotency_key: str | None = None,
    ) -> InstancePage:
        """The instances that a filter means, page by page."""
        return await self._transport.send(
            InstancePage,
            ApiRequest(
                method="POST",
                path="/api/v1/ai/instances/query",
                body=given(filter=filter, sort=sort, after=after, limit=limit),
                headers={"Idempotency-Key": idempotency_key},
            ),
        )

    async def count_instances(self, *, filter: str | None = None) -> Count:
        """How many instances a filter means, of those that the caller may see."""
        return await self._transport.send(
            Count, ApiRequest(method="GET", path="/api/v1/ai/instances/count", query=given(filter=filter))
        )

    async def list_instances(
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
        return await self._transport.send(
            InstancePage,
            ApiRequest(
                method="GET",
                path="/api/v1/ai/instances",
                query=given(
                    workflow=workflow, status=status, filter=filter, sort=sort, after=after, before=before, limit=limit
                ),
            ),
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
    ) -> AsyncGenerator[InstanceSummary]:
        """Instances in short, newest first, those that the caller may see; `workflow` is a name without version.

        All of them: the next page is read when it is needed.
        """
        return self._transport.each(
            InstancePage,
            ApiRequest(
                method="GET",
                path="/api/v1/ai/instances",
                query=given(workflow=workflow, status=status, filter=filter, sort=sort, before=before, limit=limit),
            ),
            "after",
        )

    async def get_instance(self, run_id: str, *, outputs: bool | None = None) -> WorkflowInstance:
        """An instance, step by step."""
        return await self._transport.send(
            WorkflowInstance,
            ApiRequest(
                method="GET",
                path="/api/v1/ai/instances/{run_id}",
                place={"run_id": run_id},
                query=given(outputs=outputs),
            ),
        )

    def stream_instance(self, run_id: str, *, after: str | None = None) -> AsyncGenerator[StreamEvent]:
        """Calls and steps as server-sent events, until the instance has ended or waits; `Last-Event-ID` re-attaches."""
        return self._transport.stream(
            StreamEvent,
            ApiRequest(
                method="GET",
                path="/api/v1/ai/instances/{run_id}/stream",
                place={"run_id": run_id},
                query=given(after=after),
            ),
        )

    async def resume_instance(
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
        return await self._transport.send(
            WorkflowInstance,
            ApiRequest(
                method="POST",
                path="/api/v1/ai/instances/{run_id}/resume",
                place={"run_id": run_id},
                body=given(repeat_unknown=repeat_unknown, wait=wait),
                headers={"Idempotency-Key": idempotency_key},
            ),
        )

    async def rerun_instance(
        self, run_id: str, *, step: str, wait: bool | None = None, idempotency_key: str | None = None
    ) -> WorkflowInstance:
        """Run a step and all that follow it again, in a new instance, with the earlier outputs of the other steps."""
        return await self._transport.send(
            WorkflowInstance,
            ApiRequest(
                method="POST",
                path="/api/v1/ai/instances/{run_id}/rerun",
                place={"run_id": run_id},
                body=given(step=step, wait=wait),
                headers={"Idempotency-Key": idempotency_key},
            ),
        )

    async def signal_instance(
        self, run_id: str, *, name: str, payload: JsonObject | None = None, idempotency_key: str | None = None
    ) -> ToldSignal:
        """Send an instance the signal that a step waits for; the instance then resumes. The first one counts.

        A signal never is an approval: those are decided in the inbox.
        """
        return await self._transport.send(
            ToldSignal,
            ApiRequest(
                method="POST",
                path="/api/v1/ai/instances/{run_id}/signal",
                place={"run_id": run_id},
                body=given(name=name, payload=payload),
                headers={"Idempotency-Key": idempotency_key},
            ),
        )

    async def cancel_instance(
        self, run_id: str, *, reason: str | None = None, idempotency_key: str | None = None
    ) -> WorkflowInstance:
        """End an instance and what is nested in it, whatever it does or waits for. It can be resumed."""
        return await self._transport.send(
            WorkflowInstance,
            ApiRequest(
                method="POST",
                path="/api/v1/ai/instances/{run_id}/cancel",
                place={"run_id": run_id},
                body=given(reason=reason),
                headers={"Idempotency-Key": idempotency_key},
            ),
        )

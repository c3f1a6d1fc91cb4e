"""The operations on runs, approvals.

Written by `python -m tools.rest_client`.
"""

from collections.abc import AsyncGenerator
from typing import Literal

from toolcrib.client.answers import AttachmentList, Count, EventPage, InvokeView, RunAccepted, RunPage, RunView
from toolcrib.client.groups import AsyncApi
from toolcrib.client.transport import ApiRequest, given
from toolcrib.contracts import (
    Approval,
    ApprovalPage,
    ApprovalView,
    Json,
    JsonObject,
    Run,
    RunEvent,
    StreamDone,
    StreamEvent,
    ToolError,
)
from toolcrib.contracts.runs.comparisons import RunDiff
from toolcrib.contracts.runs.trace import Settlement
from toolcrib.contracts.tools.rendered_prompts import SentPrompt


class AsyncRunsApi(AsyncApi):
    """The operations on runs."""

    def stream(self, run_id: str, *, after: str | None = None) -> AsyncGenerator[StreamEvent]:
        """What a run says and does as server-sent events, until it has ended or waits; `Last-Event-ID` re-attaches."""
        return self._transport.stream(
            StreamEvent,
            ApiRequest(
                method="GET",
                path="/api/v1/executions/{run_id}/stream",
                place={"run_id": run_id},
                query=given(after=after),
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
    ) -> RunPage:
        """The runs that a filter means, page by page."""
        return await self._transport.send(
            RunPage,
            ApiRequest(
                method="POST",
                path="/api/v1/executions/query",
                body=given(filter=filter, sort=sort, after=after, limit=limit),
                headers={"Idempotency-Key": idempotency_key},
            ),
        )

    async def count(self, *, filter: str | None = None) -> Count:
        """How many runs a filter means, of those that the caller may see."""
        return await self._transport.send(
            Count, ApiRequest(method="GET", path="/api/v1/executions/count", query=given(filter=filter))
        )

    async def list(
        self,
        *,
        tool: str | None = None,
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
    ) -> RunPage:
        """Runs, newest first, those that the caller may see; `tool` is a name without version."""
        return await self._transport.send(
            RunPage,
            ApiRequest(
                method="GET",
                path="/api/v1/executions",
                query=given(
                    tool=tool, status=status, filter=filter, sort=sort, after=after, before=before, limit=limit
                ),
            ),
        )

    def each(
        self,
        *,
        tool: str | None = None,
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
    ) -> AsyncGenerator[Run]:
        """Runs, newest first, those that the caller may see; `tool` is a name without version.

        All of them: the next page is read when it is needed.
        """
        return self._transport.each(
            RunPage,
            ApiRequest(
                method="GET",
                path="/api/v1/executions",
                query=given(tool=tool, status=status, filter=filter, sort=sort, before=before, limit=limit),
            ),
            "after",
        )

    async def get_bundle(self, run_id: str) -> bytes:
        """A run as one file, from which it can be replayed: with its callers and everything that it has read.

        Other runs, and definitions, that the caller may not read are left out, which the file's manifest says.
        """
        return await self._transport.send(
            bytes, ApiRequest(method="GET", path="/api/v1/executions/{run_id}/bundle", place={"run_id": run_id})
        )

    async def list_attachments(self, run_id: str) -> AttachmentList:
        """What accompanies the outputs of a run's calls: whole outputs that were cut, tables, images."""
        return await self._transport.send(
            AttachmentList,
            ApiRequest(method="GET", path="/api/v1/executions/{run_id}/attachments", place={"run_id": run_id}),
        )

    async def get_attachment(
        self, run_id: str, digest: str, *, range: str | None = None, if_range: str | None = None
    ) -> bytes:
        """The bytes of an attachment, for callers who may read the run; one range of them if `Range` asks for it."""
        return await self._transport.send(
            bytes,
            ApiRequest(
                method="GET",
                path="/api/v1/executions/{run_id}/attachments/{digest}",
                place={"run_id": run_id, "digest": digest},
                headers={"Range": range, "If-Range": if_range},
            ),
        )

    async def get(self, run_id: str) -> RunView:
        """A run and its trace."""
        return await self._transport.send(
            RunView, ApiRequest(method="GET", path="/api/v1/executions/{run_id}", place={"run_id": run_id})
        )

    async def list_events(self, run_id: str, *, after: int | None = None, limit: int | None = None) -> EventPage:
        """What the journal has, without tracebacks: these are for the authors of tools."""
        return await self._transport.send(
            EventPage,
            ApiRequest(
                method="GET",
                path="/api/v1/executions/{run_id}/events",
                place={"run_id": run_id},
                query=given(after=after, limit=limit),
            ),
        )

    async def get_sent_prompt(self, run_id: str, position: str) -> SentPrompt:
        """The whole request of a model call of this run: system prompt, all messages, tools and settings.

        It is put together by a replay, and compared with the journal. Nothing is sent to a model.
        """
        return await self._transport.send(
            SentPrompt,
            ApiRequest(
                method="GET",
                path="/api/v1/executions/{run_id}/prompts/{position}",
                place={"run_id": run_id, "position": position},
            ),
        )

    def stream_events(self, run_id: str, *, after: int | None = None) -> AsyncGenerator[RunEvent | StreamDone]:
        """The same as server-sent events, followed until the run has ended or waits; `Last-Event-ID` re-attaches."""
        return self._transport.stream(
            RunEvent | StreamDone,
            ApiRequest(
                method="GET",
                path="/api/v1/executions/{run_id}/events/stream",
                place={"run_id": run_id},
                query=given(after=after),
            ),
        )

    async def decide(
        self,
        run_id: str,
        position: str,
        *,
        approved: bool,
        edited_input: JsonObject | None = None,
        reason: str | None = None,
        happened: bool | None = None,
        output: Json | None = None,
        idempotency_key: str | None = None,
    ) -> RunAccepted:
        """Approve or reject a call that waits for a person; the run then resumes."""
        return await self._transport.send(
            RunAccepted,
            ApiRequest(
                method="POST",
                path="/api/v1/executions/{run_id}/approvals/{position}",
                place={"run_id": run_id, "position": position},
                body=given(
                    approved=approved, edited_input=edited_input, reason=reason, happened=happened, output=output
                ),
                headers={"Idempotency-Key": idempotency_key},
            ),
        )

    async def settle_call(
        self,
        run_id: str,
        position: str,
        *,
        happened: bool,
        output: Json | None = None,
        reason: str | None = None,
        idempotency_key: str | None = None,
    ) -> Settlement:
        """Record the outcome of a call whose result is unknown, in a run that has ended; the first answer counts.

        This requires the grant to decide on approvals of the tool. A run that continues this one uses the answer.
        """
        return await self._transport.send(
            Settlement,
            ApiRequest(
                method="POST",
                path="/api/v1/executions/{run_id}/calls/{position}/settle",
                place={"run_id": run_id, "position": position},
                body=given(happened=happened, output=output, reason=reason),
                headers={"Idempotency-Key": idempotency_key},
            ),
        )

    async def return_client_result(
        self,
        run_id: str,
        position: str,
        *,
        output: Json | None = None,
        error: ToolError | JsonObject | None = None,
        metadata: JsonObject | None = None,
        tainted: bool | None = None,
        idempotency_key: str | None = None,
    ) -> RunAccepted:
        """Send the result of a client call; the run then resumes."""
        return await self._transport.send(
            RunAccepted,
            ApiRequest(
                method="POST",
                path="/api/v1/executions/{run_id}/client-results/{position}",
                place={"run_id": run_id, "position": position},
                body=given(output=output, error=error, metadata=metadata, tainted=tainted),
                headers={"Idempotency-Key": idempotency_key},
            ),
        )

    async def answer(
        self, run_id: str, *, answer: str, position: str | None = None, idempotency_key: str | None = None
    ) -> RunAccepted:
        """Answer the question of a run; the run then resumes. The first answer counts."""
        return await self._transport.send(
            RunAccepted,
            ApiRequest(
                method="POST",
                path="/api/v1/executions/{run_id}/answer",
                place={"run_id": run_id},
                body=given(answer=answer, position=position),
                headers={"Idempotency-Key": idempotency_key},
            ),
        )

    async def resume(self, run_id: str, *, idempotency_key: str | None = None) -> InvokeView:
        """Resume a run now; responds when it has ended or waits again."""
        return await self._transport.send(
            InvokeView,
            ApiRequest(
                method="POST",
                path="/api/v1/executions/{run_id}/resume",
                place={"run_id": run_id},
                headers={"Idempotency-Key": idempotency_key},
            ),
        )

    async def cancel(
        self, run_id: str, *, reason: str | None = None, idempotency_key: str | None = None
    ) -> RunAccepted:
        """End a run and its nested runs, whatever they do or wait for: it is certain to end, if it has not yet."""
        return await self._transport.send(
            RunAccepted,
            ApiRequest(
                method="POST",
                path="/api/v1/executions/{run_id}/cancel",
                place={"run_id": run_id},
                body=given(reason=reason),
                headers={"Idempotency-Key": idempotency_key},
            ),
        )

    async def fork(
        self,
        run_id: str,
        *,
        at: int | str | None = None,
        changes: JsonObject | None = None,
        allow_writes: bool | None = None,
        anew: bool | None = None,
        wait: bool | None = None,
        idempotency_key: str | None = None,
    ) -> Run:
        """Start a run with what another run knew at an event, and continue from there; the header `Location` names it.

        Needs to read the run and to execute its tool, and to write that if its definition is changed.
        """
        return await self._transport.send(
            Run,
            ApiRequest(
                method="POST",
                path="/api/v1/executions/{run_id}/fork",
                place={"run_id": run_id},
                body=given(at=at, changes=changes, allow_writes=allow_writes, anew=anew, wait=wait),
                headers={"Idempotency-Key": idempotency_key},
            ),
        )

    async def diff(self, run_id: str, other: str) -> RunDiff:
        """How two runs differ: in their ends and costs, in what they called, were answered and were allowed."""
        return await self._transport.send(
            RunDiff,
            ApiRequest(
                method="GET", path="/api/v1/executions/{run_id}/diff/{other}", place={"run_id": run_id, "other": other}
            ),
        )


class AsyncApprovalsApi(AsyncApi):
    """The operations on approvals."""

    async def query(
        self,
        *,
        filter: str | None = None,
        sort: str | None = None,
        after: str | None = None,
        limit: int | None = None,
        idempotency_key: str | None = None,
    ) -> ApprovalPage:
        """The approvals that a filter means, page by page."""
        return await self._transport.send(
            ApprovalPage,
            ApiRequest(
                method="POST",
                path="/api/v1/approvals/query",
                body=given(filter=filter, sort=sort, after=after, limit=limit),
                headers={"Idempotency-Key": idempotency_key},
            ),
        )

    async def count(self, *, filter: str | None = None) -> Count:
        """How many approvals a filter means, of those that the caller may see."""
        return await self._transport.send(
            Count, ApiRequest(method="GET", path="/api/v1/approvals/count", query=given(filter=filter))
        )

    async def list(
        self,
        *,
        status: Literal["waiting", "approved", "edited", "rejected", "expired", "cancelled"] | None = None,
        tool: str | None = None,
        run_id: str | None = None,
        filter: str | None = None,
        sort: str | None = None,
        after: str | None = None,
        limit: int | None = None,
    ) -> ApprovalPage:
        """Approvals, oldest first, those that the caller may see; `run_id` is of the run itself or of the outermost one."""
        return await self._transport.send(
            ApprovalPage,
            ApiRequest(
                method="GET",
                path="/api/v1/approvals",
                query=given(
                    status=status, tool=tool, run_id=run_id, filter=filter, sort=sort, after=after, limit=limit
                ),
            ),
        )

    def each(
        self,
        *,
        status: Literal["waiting", "approved", "edited", "rejected", "expired", "cancelled"] | None = None,
        tool: str | None = None,
        run_id: str | None = None,
        filter: str | None = None,
        sort: str | None = None,
        limit: int | None = None,
    ) -> AsyncGenerator[Approval]:
        """Approvals, oldest first, those that the caller may see; `run_id` is of the run itself or of the outermost one.

        All of them: the next page is read when it is needed.
        """
        return self._transport.each(
            ApprovalPage,
            ApiRequest(
                method="GET",
                path="/api/v1/approvals",
                query=given(status=status, tool=tool, run_id=run_id, filter=filter, sort=sort, limit=limit),
            ),
            "after",
        )

    async def get(self, approval_id: str) -> ApprovalView:
        """An approval, with a preview of what would happen."""
        return await self._transport.send(
            ApprovalView,
            ApiRequest(method="GET", path="/api/v1/approvals/{approval_id}", place={"approval_id": approval_id}),
        )

    async def decide(
        self,
        approval_id: str,
        *,
        approved: bool,
        edited_input: JsonObject | None = None,
        reason: str | None = None,
        happened: bool | None = None,
        output: Json | None = None,
        idempotency_key: str | None = None,
    ) -> Approval:
        """Approve the call, with its own or other arguments, or reject it; its runs then resume.

        If the question is whether a call took effect, `happened` says so, with its `output`.
        """
        return await self._transport.send(
            Approval,
            ApiRequest(
                method="POST",
                path="/api/v1/approvals/{approval_id}/decide",
                place={"approval_id": approval_id},
                body=given(
                    approved=approved, edited_input=edited_input, reason=reason, happened=happened, output=output
                ),
                headers={"Idempotency-Key": idempotency_key},
            ),
        )

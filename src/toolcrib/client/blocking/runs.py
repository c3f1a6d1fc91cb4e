"""The synchronous operations on runs, approvals.

Written by `python -m tools.rest_client`.
"""

from collections.abc import Iterator
from typing import Literal

from toolcrib.client.answers import AttachmentList, Count, EventPage, InvokeView, RunAccepted, RunPage, RunView
from toolcrib.client.groups import SyncApi
from toolcrib.client.operations import runs as asynchronous
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


class RunsApi(SyncApi[asynchronous.AsyncRunsApi]):
    """The operations on runs."""

    def stream(self, run_id: str, *, after: str | None = None) -> Iterator[StreamEvent]:
        """What a run says and does as server-sent events, until it has ended or waits; `Last-Event-ID` re-attaches."""
        return self._loop.iterate(self._api.stream, run_id, after=after)

    def query(
        self,
        *,
        filter: str | None = None,
        sort: str | None = None,
        after: str | None = None,
        limit: int | None = None,
        idempotency_key: str | None = None,
    ) -> RunPage:
        """The runs that a filter means, page by page."""
        return self._loop.run(
            self._api.query, filter=filter, sort=sort, after=after, limit=limit, idempotency_key=idempotency_key
        )

    def count(self, *, filter: str | None = None) -> Count:
        """How many runs a filter means, of those that the caller may see."""
        return self._loop.run(self._api.count, filter=filter)

    def list(
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
        return self._loop.run(
            self._api.list, tool=tool, status=status, filter=filter, sort=sort, after=after, before=before, limit=limit
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
    ) -> Iterator[Run]:
        """Runs, newest first, those that the caller may see; `tool` is a name without version.

        All of them: the next page is read when it is needed.
        """
        return self._loop.iterate(
            self._api.each, tool=tool, status=status, filter=filter, sort=sort, before=before, limit=limit
        )

    def get_bundle(self, run_id: str) -> bytes:
        """A run as one file, from which it can be replayed: with its callers and everything that it has read.

        Other runs, and definitions, that the caller may not read are left out, which the file's manifest says.
        """
        return self._loop.run(self._api.get_bundle, run_id)

    def list_attachments(self, run_id: str) -> AttachmentList:
        """What accompanies the outputs of a run's calls: whole outputs that were cut, tables, images."""
        return self._loop.run(self._api.list_attachments, run_id)

    def get_attachment(
        self, run_id: str, digest: str, *, range: str | None = None, if_range: str | None = None
    ) -> bytes:
        """The bytes of an attachment, for callers who may read the run; one range of them if `Range` asks for it."""
        return self._loop.run(self._api.get_attachment, run_id, digest, range=range, if_range=if_range)

    def get(self, run_id: str) -> RunView:
        """A run and its trace."""
        return self._loop.run(self._api.get, run_id)

    def list_events(self, run_id: str, *, after: int | None = None, limit: int | None = None) -> EventPage:
        """What the journal has, without tracebacks: these are for the authors of tools."""
        return self._loop.run(self._api.list_events, run_id, after=after, limit=limit)

    def get_sent_prompt(self, run_id: str, position: str) -> SentPrompt:
        """The whole request of a model call of this run: system prompt, all messages, tools and settings.

        It is put together by a replay, and compared with the journal. Nothing is sent to a model.
        """
        return self._loop.run(self._api.get_sent_prompt, run_id, position)

    def stream_events(self, run_id: str, *, after: int | None = None) -> Iterator[RunEvent | StreamDone]:
        """The same as server-sent events, followed until the run has ended or waits; `Last-Event-ID` re-attaches."""
        return self._loop.iterate(self._api.stream_events, run_id, after=after)

    def decide(
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
        return self._loop.run(
            self._api.decide,
            run_id,
            position,
            approved=approved,
            edited_input=edited_input,
            reason=reason,
            happened=happened,
            output=output,
            idempotency_key=idempotency_key,
        )

    def settle_call(
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
        return self._loop.run(
            self._api.settle_call,
            run_id,
            position,
            happened=happened,
            output=output,
            reason=reason,
            idempotency_key=idempotency_key,
        )

    def return_client_result(
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
        return self._loop.run(
            self._api.return_client_result,
            run_id,
            position,
            output=output,
            error=error,
            metadata=metadata,
            tainted=tainted,
            idempotency_key=idempotency_key,
        )

    def answer(
        self, run_id: str, *, answer: str, position: str | None = None, idempotency_key: str | None = None
    ) -> RunAccepted:
        """Answer the question of a run; the run then resumes. The first answer counts."""
        return self._loop.run(
            self._api.answer, run_id, answer=answer, position=position, idempotency_key=idempotency_key
        )

    def resume(self, run_id: str, *, idempotency_key: str | None = None) -> InvokeView:
        """Resume a run now; responds when it has ended or waits again."""
        return self._loop.run(self._api.resume, run_id, idempotency_key=idempotency_key)

    def cancel(self, run_id: str, *, reason: str | None = None, idempotency_key: str | None = None) -> RunAccepted:
        """End a run and its nested runs, whatever they do or wait for: it is certain to end, if it has not yet."""
        return self._loop.run(self._api.cancel, run_id, reason=reason, idempotency_key=idempotency_key)

    def fork(
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
        return self._loop.run(
            self._api.fork,
            run_id,
            at=at,
            changes=changes,
            allow_writes=allow_writes,
            anew=anew,
            wait=wait,
            idempotency_key=idempotency_key,
        )

    def diff(self, run_id: str, other: str) -> RunDiff:
        """How two runs differ: in their ends and costs, in what they called, were answered and were allowed."""
        return self._loop.run(self._api.diff, run_id, other)


class ApprovalsApi(SyncApi[asynchronous.AsyncApprovalsApi]):
    """The operations on approvals."""

    def query(
        self,
        *,
        filter: str | None = None,
        sort: str | None = None,
        after: str | None = None,
        limit: int | None = None,
        idempotency_key: str | None = None,
    ) -> ApprovalPage:
        """The approvals that a filter means, page by page."""
        return self._loop.run(
            self._api.query, filter=filter, sort=sort, after=after, limit=limit, idempotency_key=idempotency_key
        )

    def count(self, *, filter: str | None = None) -> Count:
        """How many approvals a filter means, of those that the caller may see."""
        return self._loop.run(self._api.count, filter=filter)

    def list(
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
        return self._loop.run(
            self._api.list, status=status, tool=tool, run_id=run_id, filter=filter, sort=sort, after=after, limit=limit
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
    ) -> Iterator[Approval]:
        """Approvals, oldest first, those that the caller may see; `run_id` is of the run itself or of the outermost one.

        All of them: the next page is read when it is needed.
        """
        return self._loop.iterate(
            self._api.each, status=status, tool=tool, run_id=run_id, filter=filter, sort=sort, limit=limit
        )

    def get(self, approval_id: str) -> ApprovalView:
        """An approval, with a preview of what would happen."""
        return self._loop.run(self._api.get, approval_id)

    def decide(
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
        return self._loop.run(
            self._api.decide,
            approval_id,
            approved=approved,
            edited_input=edited_input,
            reason=reason,
            happened=happened,
            output=output,
            idempotency_key=idempotency_key,
        )

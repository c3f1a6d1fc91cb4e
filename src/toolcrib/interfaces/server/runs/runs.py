"""Routes of runs: read, stream, answer, settle, resume, cancel, fork and compare them."""

from functools import partial
from tempfile import SpooledTemporaryFile
from typing import Annotated, Any, Final

from fastapi import Body, Header, Query, Response
from fastapi.responses import StreamingResponse
from pydantic import Field

from toolcrib.contracts import ENDED, AgentDefinition, Conflict, Contract, JsonObject, LLMConfig, Run, RunStatus
from toolcrib.contracts.runs.comparisons import RunDiff
from toolcrib.contracts.runs.trace import Settlement
from toolcrib.contracts.tools.rendered_prompts import SentPrompt
from toolcrib.core.runs import without_traceback
from toolcrib.crib import ActingCrib
from toolcrib.crib.runs import prompt_at
from toolcrib.crib.runs.approvals import ApprovalAnswer
from toolcrib.interfaces.server.http.caller_rights import (
    Author,
    Caller,
    CribDep,
    WholeCrib,
    demand_execute,
    demand_run,
    may_see_kept,
    run_of,
)
from toolcrib.interfaces.server.http.document import JOURNAL_STREAM
from toolcrib.interfaces.server.http.requests import Routes
from toolcrib.interfaces.server.http.streaming import PARTIAL, RangeRequest, event_stream, file_response, follow
from toolcrib.interfaces.server.queries import After, Filter, Limit, Sort, add_queries, conditions, to_page
from toolcrib.interfaces.server.runs.calls import SelfApproval, run_view
from toolcrib.interfaces.server.views.run_views import (
    AnswerBody,
    AttachmentList,
    CancelBody,
    ClientResultBody,
    DecisionBody,
    EnvelopeView,
    EventPage,
    InvokeView,
    RunAccepted,
    RunPage,
    RunView,
    SettleBody,
    address_of,
)

router = Routes(prefix="/executions", tags=("executions",))

_IN_MEMORY: Final = 16 * 1024 * 1024
_After = Annotated[int, Query(ge=0, description="Only events with greater numbers.")]


add_queries(router, "runs", RunPage)


@router.get("")
async def list_runs(
    *,
    crib: CribDep,
    tool: str | None = None,
    status: RunStatus | None = None,
    filter: Filter = None,
    sort: Sort = None,
    after: After = None,
    before: Annotated[str | None, Query(description="The same as `after`.")] = None,
    limit: Limit = 50,
) -> RunPage:
    """Runs, newest first, those that the caller may see; `tool` is a name without version."""
    where = conditions({"tool": tool, "status": status})
    page = await crib.queries.page("runs", filter=filter, sort=sort, after=after or before, limit=limit, where=where)
    return to_page(RunPage, page)


@router.get("/{run_id}/bundle", response_class=Response)
async def get_bundle(run_id: str, crib: WholeCrib, caller: Caller) -> Response:
    """A run as one file, from which it can be replayed: with its callers and everything that it has read.

    Other runs, and definitions, that the caller may not read are left out, which the file's manifest says.
    """
    run = await run_of(crib, caller, run_id)
    demand_run(caller, run)
    demand_run(caller, await run_of(crib, caller, run.request.root_run_id or run_id))
    with SpooledTemporaryFile(_IN_MEMORY) as file:
        await crib.export_run(run_id, file, sees=partial(may_see_kept, caller))
        file.seek(0)
        data = file.read()
    named = {"content-disposition": f'attachment; filename="{run_id}.bundle"'}
    return Response(data, media_type="application/zip", headers=named)


@router.get("/{run_id}/attachments")
async def list_attachments(run_id: str, crib: CribDep) -> AttachmentList:
    """What accompanies the outputs of a run's calls: whole outputs that were cut, tables, images."""
    found = await crib.executions.attachments(run_id)
    return AttachmentList(items=tuple(address_of(kept, run_id) for kept in found))


@router.get("/{run_id}/attachments/{digest}", response_class=Response, responses=PARTIAL)
async def get_attachment(
    *,
    run_id: str,
    digest: str,
    crib: CribDep,
    byte_range: Annotated[str | None, Header(alias="range", description="One range: `bytes=0-1023`.")] = None,
    if_range: Annotated[str | None, Header(description="The ETag that the range was meant for.")] = None,
    if_none_match: Annotated[str | None, Header(description="The ETag of what the client has.")] = None,
) -> Response:
    """The bytes of an attachment, for callers who may read the run; one range of them if `Range` asks for it."""
    kept, payload = await crib.executions.read_attachment(run_id, digest)
    asked = RangeRequest(byte_range, if_range, if_none_match)
    return file_response(payload, kept.digest or "", kept.content_type, asked)


@router.get("/{run_id}")
async def get_run(run_id: str, crib: WholeCrib, caller: Caller) -> RunView:
    """A run and its trace."""
    run = await run_of(crib, caller, run_id)
    demand_run(caller, run)
    return RunView(
        run=run,
        trace=await crib.trace(run_id),
        pending_approvals=tuple(await crib.pending_approvals(run_id)),
        pending_handoffs=tuple(map(EnvelopeView.of, await crib.pending_handoffs(run_id))),
        question=await crib.questions.of_run(run_id),
    )


@router.get("/{run_id}/events")
async def list_events(
    run_id: str, crib: CribDep, caller: Caller, after: _After = 0, limit: Annotated[int, Query(ge=1, le=1000)] = 1000
) -> EventPage:
    """What the journal has, without tracebacks: these are for the authors of tools."""
    demand_run(caller, await run_of(crib, caller, run_id))
    return EventPage(
        items=tuple(map(without_traceback, await crib.store.journal.events(run_id, after=after, limit=limit)))
    )


@router.get("/{run_id}/prompts/{position}")
async def get_sent_prompt(run_id: str, position: str, crib: CribDep, caller: Caller) -> SentPrompt:
    """The whole request of a model call of this run: system prompt, all messages, tools and settings.

    It is put together by a replay, and compared with the journal. Nothing is sent to a model.
    """
    demand_run(caller, await run_of(crib, caller, run_id))
    return prompt_at(await crib.sent_prompts(run_id), run_id, position)


@router.get("/{run_id}/events/stream", response_class=StreamingResponse, responses=JOURNAL_STREAM)
async def stream_events(
    run_id: str,
    crib: CribDep,
    caller: Caller,
    after: _After = 0,
    last_event_id: Annotated[int | None, Header(ge=0)] = None,
) -> StreamingResponse:
    """The same as server-sent events, followed until the run has ended or waits; `Last-Event-ID` re-attaches."""
    demand_run(caller, await run_of(crib, caller, run_id))
    return event_stream(
        follow(crib.store.journal, crib.clock, run_id, after if last_event_id is None else last_event_id)
    )


@router.post("/{run_id}/approvals/{position}", status_code=202)
async def decide(
    *, run_id: str, position: str, body: DecisionBody, crib: CribDep, caller: Caller, allow_self: SelfApproval
) -> RunAccepted:
    """Approve or reject a call that waits for a person; the run then resumes."""
    await run_of(crib, caller, run_id)
    answer = ApprovalAnswer(
        body.approved, body.edited_input, body.reason, allow_self, happened=body.happened, output=body.output
    )
    counted = await crib.approvals.decide_call(run_id, position, answer)
    return await _accept_answer(crib, run_id, position, counted=counted)


@router.post("/{run_id}/calls/{position}/settle")
async def settle_call(
    *, run_id: str, position: str, body: SettleBody, crib: CribDep, allow_self: SelfApproval
) -> Settlement:
    """Record the outcome of a call whose result is unknown, in a run that has ended; the first answer counts.

    This requires the grant to decide on approvals of the tool. A run that continues this one uses the answer.
    """
    return await crib.settlements.settle(
        run_id,
        position,
        happened=body.happened,
        output=body.output,
        reason=body.reason,
        allow_self=allow_self,
    )


@router.post("/{run_id}/client-results/{position}", status_code=202)
async def return_client_result(
    run_id: str, position: str, body: ClientResultBody, crib: CribDep, caller: Caller
) -> RunAccepted:
    """Send the result of a client call; the run then resumes."""
    demand_execute(caller, await run_of(crib, caller, run_id))
    counted = await crib.return_client_result(run_id, position, body)
    return await _accept_answer(crib, run_id, position, counted=counted)


@router.post("/{run_id}/answer", status_code=202)
async def answer(run_id: str, body: AnswerBody, crib: CribDep, caller: Caller) -> RunAccepted:
    """Answer the question of a run; the run then resumes. The first answer counts."""
    demand_execute(caller, await run_of(crib, caller, run_id))
    await crib.questions.leave(run_id, body.answer, position=body.position)
    return RunAccepted(run_id=run_id, status=(await crib.store.journal.run(run_id)).status)


@router.post("/{run_id}/resume", responses={202: {"model": InvokeView}})
async def resume(run_id: str, crib: WholeCrib, caller: Caller, response: Response) -> InvokeView:
    """Resume a run now; responds when it has ended or waits again."""
    demand_execute(caller, await run_of(crib, caller, run_id))
    await crib.resume(run_id)
    return await run_view(crib, run_id, response)


@router.post("/{run_id}/cancel", status_code=202)
async def cancel(
    run_id: str, crib: CribDep, caller: Caller, body: Annotated[CancelBody, Body(default_factory=CancelBody)]
) -> RunAccepted:
    """End a run and its nested runs, whatever they do or wait for: it is certain to end, if it has not yet."""
    demand_execute(caller, await run_of(crib, caller, run_id))
    if not await crib.cancel(run_id, reason=body.reason):
        msg = f"run {run_id} is being cancelled already; GET /api/v1/executions/{run_id} tells when it has ended"
        raise Conflict(msg)
    return RunAccepted(run_id=run_id, status=(await crib.store.journal.run(run_id)).status)


async def _accept_answer(crib: ActingCrib, run_id: str, position: str, *, counted: bool) -> RunAccepted:
    if not counted:
        msg = f"the call at {position!r} of run {run_id} has its answer already; the first one counts"
        raise Conflict(msg)
    run = await crib.store.journal.run(run_id)
    return RunAccepted(run_id=run_id, status=run.status)


forks_router = Routes(prefix="/executions", tags=("executions",))

_GOES_ON: Final[dict[int | str, dict[str, Any]]] = {202: {"model": Run}}


class ForkBody(Contract):
    """Where a run is cut, and what is different from there on."""

    at: int | str | None = None
    """Number of the last event that is known, `step:NAME` or `turn:N`; null for the beginning."""
    changes: JsonObject = Field(default_factory=dict)
    """By name: `model`, `prompt`, `tool:NAME`, `policy`, `input.FIELD`, `temperature`…"""
    allow_writes: bool = False
    """Make calls with side effects that are not in the recording; else they are skipped."""
    anew: bool = False
    """Take nothing from the recording that came after the event."""
    wait: bool = True
    """False: respond at once; the run continues in the background."""


@forks_router.post("/{run_id}/fork", responses=_GOES_ON)
async def fork_run(
    *,
    run_id: str,
    crib: CribDep,
    author: Author,
    response: Response,
    body: Annotated[ForkBody, Body(default_factory=ForkBody)],
) -> Run:
    """Start a run with what another run knew at an event, and continue from there; the header `Location` names it.

    Needs to read the run and to execute its tool, and to write that if its definition is changed.
    """
    model = body.changes.get("model")
    if isinstance(model, str) and model:
        author.check(AgentDefinition(name="fork", llm=LLMConfig(model=model)).tool())
    fork = await crib.fork(
        run_id,
        at=body.at,
        changes=body.changes,
        allow_writes=body.allow_writes,
        anew=body.anew,
        wait=body.wait,
    )
    response.headers["Location"] = f"/api/v1/executions/{fork.run_id}"
    if fork.status not in ENDED:
        response.status_code = 202
    return fork


@forks_router.get("/{run_id}/diff/{other}")
async def diff_runs(run_id: str, other: str, crib: CribDep) -> RunDiff:
    """How two runs differ: in their ends and costs, in what they called, were answered and were allowed."""
    return await crib.compare(run_id, other)

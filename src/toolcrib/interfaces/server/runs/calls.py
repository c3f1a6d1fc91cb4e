"""Routes that execute tools, each as a run, and routes of the approval inbox.

Each first reads definitions that other processes have changed, so a tool that was blocked there is not executed.
"""

from contextlib import suppress
from typing import Annotated, cast

from fastapi import Body, Depends, Request, Response

from toolcrib.contracts import (
    ENDED,
    AgenticImplementation,
    AgenticMode,
    Approval,
    ApprovalPage,
    ApprovalStatus,
    ApprovalView,
    InvalidInput,
    RunRequest,
    RunStarted,
)
from toolcrib.core.runs import Result, complete_trace
from toolcrib.crib import ActingCrib
from toolcrib.interfaces.server.http.caller_rights import CribDep, demand
from toolcrib.interfaces.server.http.requests import Routes
from toolcrib.interfaces.server.queries import After, Filter, Limit, Sort, add_queries
from toolcrib.interfaces.server.views.run_views import (
    CallBody,
    DecisionBody,
    EnvelopeView,
    InvokeBody,
    InvokeView,
    NamedInvokeBody,
    RunAccepted,
    Validity,
)

router = Routes(tags=("calls",))

_NO_PARAMS = Body(default_factory=CallBody)


@router.post("/ai/tools/{name}/invoke", responses={202: {"model": InvokeView}})
async def invoke_tool(
    name: str,
    crib: CribDep,
    response: Response,
    body: Annotated[InvokeBody, Body(default_factory=InvokeBody)],
) -> InvokeView:
    """Run a tool; responds when the run has ended or waits, or at once with `wait: false`, in the same shape.

    If this server lacks the tool's Python function, a worker drives the run; without one, the run stays queued and
    `meta.warnings` says why.
    """
    return await _invoke(crib, name, body, response)


@router.post("/agentic-tools/invoke", responses={202: {"model": InvokeView}})
async def invoke_named_tool(body: NamedInvokeBody, crib: CribDep, response: Response) -> InvokeView:
    """Run the tool that the body names."""
    return await _invoke(crib, body.tool, body, response)


@router.post("/ai/tools/{name}/execute", responses={202: {"model": RunAccepted}})
async def execute_tool(
    name: str, crib: CribDep, response: Response, body: Annotated[CallBody, _NO_PARAMS]
) -> EnvelopeView | RunAccepted:
    """Make one call and return its envelope; for a call that waits for a person or for a worker, its run."""
    await _demand_tool(crib, name)
    result = await crib.invoke(
        name,
        body.params,
        conversation_id=body.conversation_id,
        session_id=body.session_id,
        dry_run=body.dry_run,
        as_call=True,
    )
    envelopes = result.envelopes
    if envelopes:
        return EnvelopeView.of(envelopes[-1], result.run_id)
    _mark_accepted(response, result.run_id)
    return RunAccepted(run_id=result.run_id, status=result.status, warnings=result.warnings)


@router.post("/ai/tools/{name}/validate")
async def validate_call(name: str, crib: CribDep, body: Annotated[CallBody, _NO_PARAMS]) -> Validity:
    """Hold arguments against schema and policy; nothing runs."""
    await crib.authorize(newest=True)
    return Validity.of(await crib.refusal(name, body.params))


async def run_view(crib: ActingCrib, run_id: str, response: Response) -> InvokeView:
    """The state of a run; the status is 202 if it has not ended."""
    run = await crib.store.journal.run(run_id)
    if not run.ended:
        response.status_code = 202
    mode = await _mode(crib, run.realm, run.request)
    asks = await crib.questions.of_run(run_id) if run.status == "awaiting_answer" else None
    return InvokeView.of(await crib.trace(run_id), mode, asks)


async def _result_view(crib: ActingCrib, result: Result, response: Response) -> InvokeView:
    """The state of a run that this request has driven; of one that has ended, from the events that are at hand."""
    if result.status not in ENDED:
        view = await run_view(crib, result.run_id, response)
        return view if not result.warnings else view.with_warnings(result.warnings)
    first = result.log[0]
    trace = await complete_trace(crib.store.journal, result.log)
    return InvokeView.of(trace, await _mode(crib, first.realm, cast("RunStarted", first.event).request))


async def _mode(crib: ActingCrib, realm: str, request: RunRequest) -> AgenticMode | None:
    """The mode of the agentic tool that a run executes; null if it executes another one."""
    tool = await crib.registry.get_revision(realm, request.content_hash)
    implementation = tool.definition.implementation
    return implementation.mode if isinstance(implementation, AgenticImplementation) else None


async def _demand_tool(crib: ActingCrib, ref: str) -> None:
    """Let a caller pass who may execute a tool, before there is a run; a tool that is unknown is refused by the call.

    Raises:
        PermissionDenied: The grant is missing; the message names it.
    """
    caller = await crib.authorize(newest=True)
    name, _, version = ref.partition("@")
    with suppress(InvalidInput):  # no version range, of which the call tells
        tool = crib.registry.find(caller.realm, name, version or None)
        if tool is not None:
            demand(caller, tool.definition.security())


async def _invoke(crib: ActingCrib, ref: str, body: InvokeBody, response: Response) -> InvokeView:
    await _demand_tool(crib, ref)
    if body.wait:
        result = await crib.invoke(
            ref,
            body.params,
            conversation_id=body.conversation_id,
            session_id=body.session_id,
            dry_run=body.dry_run,
        )
        return await _result_view(crib, result, response)
    run_id = await crib.submit(
        ref,
        body.params,
        conversation_id=body.conversation_id,
        session_id=body.session_id,
        dry_run=body.dry_run,
    )
    _mark_accepted(response, run_id)
    return await run_view(crib, run_id, response)


def _mark_accepted(response: Response, run_id: str) -> None:
    response.status_code = 202
    response.headers["Location"] = f"/api/v1/executions/{run_id}"


approvals_router = Routes(prefix="/approvals", tags=("approvals",))


async def _self_approval(request: Request) -> bool:
    return bool(request.app.state.self_approval)


SelfApproval = Annotated[bool, Depends(_self_approval)]
"""Whether the operator lets callers decide on calls of runs in which they have a part."""


add_queries(approvals_router, "approvals", ApprovalPage)


@approvals_router.get("")
async def list_approvals(
    *,
    crib: CribDep,
    status: ApprovalStatus | None = None,
    tool: str | None = None,
    run_id: str | None = None,
    filter: Filter = None,
    sort: Sort = None,
    after: After = None,
    limit: Limit = 50,
) -> ApprovalPage:
    """Approvals, oldest first, those that the caller may see; `run_id` is of the run itself or of the outermost one."""
    return await crib.approvals.page(
        status=status, tool=tool, run_id=run_id, filter=filter, sort=sort, after=after, limit=limit
    )


@approvals_router.get("/{approval_id}")
async def get_approval(approval_id: str, crib: CribDep) -> ApprovalView:
    """An approval, with a preview of what would happen."""
    return await crib.approvals.get(approval_id)


@approvals_router.post("/{approval_id}/decide")
async def decide_approval(approval_id: str, body: DecisionBody, crib: CribDep, allow_self: SelfApproval) -> Approval:
    """Approve the call, with its own or other arguments, or reject it; its runs then resume.

    If the question is whether a call took effect, `happened` says so, with its `output`.
    """
    return await crib.approvals.decide(
        approval_id,
        approve=body.approved,
        edited_input=body.edited_input,
        reason=body.reason,
        allow_self=allow_self,
        happened=body.happened,
        output=body.output,
    )

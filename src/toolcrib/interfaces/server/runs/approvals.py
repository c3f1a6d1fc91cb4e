"""Routes over the inbox: calls that wait for a person, whoever started them and however deep they are."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request

from toolcrib.contracts import Approval, ApprovalPage, ApprovalStatus, ApprovalView
from toolcrib.interfaces.server.http.context_part import Caller, House
from toolcrib.interfaces.server.http.parsing import JsonRoute
from toolcrib.interfaces.server.views.common import DecisionBody

router = APIRouter(prefix="/approvals", route_class=JsonRoute, tags=["approvals"])


def _self_approval(request: Request) -> bool:
    return bool(request.app.state.self_approval)


SelfApproval = Annotated[bool, Depends(_self_approval)]
"""Whether the operator lets callers decide on calls of runs in which they have a part."""


@router.get("")
async def list_approvals(
    *,
    crib: House,
    caller: Caller,
    status: ApprovalStatus | None = None,
    tool: str | None = None,
    run_id: str | None = None,
    after: str | None = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> ApprovalPage:
    """Approvals, oldest first, those that the caller may see; `run_id` is of the run itself or of the outermost one."""
    return await crib.approvals.page(
        status=status, tool=tool, run_id=run_id, after=after, limit=limit, principal=caller
    )


@router.get("/{approval_id}")
async def get_approval(approval_id: str, crib: House, caller: Caller) -> ApprovalView:
    """An approval, with a preview of what would happen."""
    return await crib.approvals.get(approval_id, principal=caller)


@router.post("/{approval_id}/decide")
async def decide_approval(
    approval_id: str, body: DecisionBody, crib: House, caller: Caller, allow_self: SelfApproval
) -> Approval:
    """Approve the call, as it is or with other arguments, or reject it; the runs then go on by themselves.

    If the question is whether a call took effect, `happened` says so, with its `output`.
    """
    return await crib.approvals.decide(
        approval_id,
        approve=body.approved,
        edited_input=body.edited_input,
        reason=body.reason,
        principal=caller,
        allow_self=allow_self,
        happened=body.happened,
        output=body.output,
    )

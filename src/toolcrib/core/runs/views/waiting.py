"""What a run waits for, and the runs that are nested in it: a person, a client, an answer."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from toolcrib.contracts import (
    ApprovalRequested,
    OpenQuestion,
    ToolEnvelope,
    WaitingApproval,
    approval_id,
    approval_signal,
)
from toolcrib.core.runs.interrupts.signals import Branch, open_client_calls, open_question, to_approve


class Waiting(Struct, frozen=True):
    """What a run waits for, with the runs that are nested in it."""

    question: OpenQuestion | None = None
    """What it asks."""
    approvals: tuple[WaitingApproval, ...] = ()
    """Calls that wait for a person."""
    tool_calls: tuple[ToolEnvelope, ...] = ()
    """Prepared calls that wait for a client."""


NOTHING_WAITS: Final = Waiting()


def waiting_of(tree: Sequence[Branch]) -> Waiting:
    """What the runs of a tree wait for."""
    return Waiting(
        question=open_question(tree),
        approvals=tuple(_in_short(run_id, request) for run_id, request in to_approve(tree)),
        tool_calls=tuple(open_client_calls(tree)),
    )


def _in_short(run_id: str, request: ApprovalRequested) -> WaitingApproval:
    return WaitingApproval(
        approval_id=approval_id(run_id, approval_signal(request.position, request.number)),
        run_id=run_id,
        **request.model_dump(include=_SHOWN),
    )


_SHOWN = WaitingApproval.model_fields.keys() & set(ApprovalRequested.__struct_fields__)

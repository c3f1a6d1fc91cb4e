"""Rows of the inbox: calls that wait, or have waited, for a person, across all runs of a realm.

Nobody writes them. A store keeps them with its journal, each in the transaction of what it follows from: a request, a
decision, a withdrawal, a run's end are events; a decision is there as soon as its signal is left.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from toolcrib.contracts import Approval, ApprovalStatus, NotFound


@dataclass(frozen=True, slots=True)
class ApprovalFilter:
    """Which approvals are read."""

    status: ApprovalStatus | None = None
    tool: str | None = None
    """A name without version."""
    run_id: str | None = None
    """Of the run that makes the call, or of the outermost one."""


class Approvals(Protocol):
    """Approvals by id."""

    async def get(self, realm: str, approval_id: str) -> Approval:
        """One approval.

        Raises:
            NotFound: The realm has none of this id.
        """
        ...

    async def page(
        self, realm: str, which: ApprovalFilter, *, after: str | None = None, limit: int = 50
    ) -> Sequence[Approval]:
        """A page of approvals, oldest first. `after` is the last id of the page before.

        Raises:
            NotFound: The realm has no approval `after` which the page could begin.
        """
        ...


def no_approval(approval_id: str) -> NotFound:
    """The error for an id that names no approval."""
    return NotFound(f"no approval {approval_id!r}; list the realm's approvals for the ids there are")

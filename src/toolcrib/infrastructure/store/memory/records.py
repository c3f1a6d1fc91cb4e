"""Rows of the inbox in memory."""

from collections.abc import Iterator, Sequence
from heapq import nsmallest

from toolcrib.contracts import Approval, Signal
from toolcrib.infrastructure.store.ports._approvals import Answered, Withdrawn, asked, closed, told
from toolcrib.infrastructure.store.ports.approvals import ApprovalFilter, no_approval
from toolcrib.infrastructure.store.ports.ports import Entry


class MemoryApprovals:
    """Approvals, in a dictionary that the journal of the same store keeps."""

    def __init__(self) -> None:
        self._rows: dict[str, dict[str, Approval]] = {}
        """By run, and by the signal that decides each."""

    async def get(self, realm: str, approval_id: str) -> Approval:
        found = next((row for row in self._of(realm) if row.approval_id == approval_id), None)
        if found is None:
            raise no_approval(approval_id)
        return found

    async def page(
        self, realm: str, which: ApprovalFilter, *, after: str | None = None, limit: int = 50
    ) -> Sequence[Approval]:
        last = _age(await self.get(realm, after)) if after is not None else None
        page = (
            row
            for row in self._of(realm)
            if which.status in {None, row.status}
            and which.tool in {None, row.tool}
            and which.run_id in {None, row.run_id, row.root_run_id}
            and (last is None or _age(row) > last)
        )
        return nsmallest(limit, page, key=_age)

    def follow(self, entry: Entry) -> None:
        """Take in an event."""
        row = asked(entry)
        if row is not None:
            self._rows.setdefault(row.run_id, {}).setdefault(row.signal, row)
        change = closed(entry)
        if change is not None:
            self._change(entry.run_id, change)

    def hear(self, run_id: str, signal: Signal) -> None:
        """Take in a signal that was left for a run."""
        answer = told(signal)
        if answer is not None:
            self._change(run_id, answer)

    def forget(self, run_id: str) -> None:
        """Forget the rows of a run that is forgotten."""
        self._rows.pop(run_id, None)

    def count(self, run_id: str) -> int:
        """How many rows a run has."""
        return len(self._rows.get(run_id, ()))

    def texts(self) -> Iterator[str]:
        """All that the rows say."""
        yield from (row.model_dump_json() for rows in self._rows.values() for row in rows.values())

    def _of(self, realm: str) -> list[Approval]:
        return [row for rows in self._rows.values() for row in rows.values() if row.realm == realm]

    def _change(self, run_id: str, change: Answered | Withdrawn) -> None:
        rows = self._rows.get(run_id, {})
        for signal, row in rows.items():
            if change.signal not in {None, signal}:
                continue
            if isinstance(change, Withdrawn):
                rows[signal] = row.model_copy(update={"status": "cancelled", "reason": change.reason})
            elif row.status == "waiting":
                rows[signal] = row.model_copy(
                    update={
                        "status": change.status,
                        "decided_by": change.by,
                        "decided_at": change.at,
                        "reason": change.reason,
                        "edited_input": change.edited_input,
                    }
                )


def _age(row: Approval) -> tuple[object, str]:
    return row.requested_at, row.approval_id

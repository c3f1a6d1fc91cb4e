"""Runs of graphs to their ends, and what can be said of how they ended."""

from dataclasses import dataclass

from tests.contract.graphs.workflows import INPUT
from toolcrib import Crib
from toolcrib.contracts import ENDED, ClientResult, Json, Principal, ToolError

_BOSS = Principal(id="boss")


@dataclass(frozen=True)
class Outcome:
    """How a run ended."""

    status: str
    output: Json
    error: ToolError | None
    warnings: tuple[str, ...]

    def is_like(self, other: "Outcome") -> bool:
        """Whether the run ended in the same way, with the same output."""
        return (self.status, self.output) == (other.status, other.output)


async def play(crib: Crib, name: str) -> Outcome:
    """Run a workflow; people approve of whatever waits for them, and clients bring nothing back."""
    result = await crib.invoke(name, INPUT)
    while result.summary.status not in ENDED:
        if result.summary.status == "awaiting_client":
            await _bring_nothing(crib)
        for approval in (await crib.acting_as(_BOSS).approvals.page()).items:
            await crib.acting_as(_BOSS).approvals.decide(approval.approval_id, approve=True)
        result = await crib.resume(result.run_id)
    ended = result.summary
    return Outcome(ended.status, ended.output, ended.error, tuple(ended.warnings))


async def _bring_nothing(crib: Crib) -> None:
    for run in await crib.store.journal.runs("default", status="awaiting_client", limit=100):
        for prepared in await crib.pending_handoffs(run.run_id):
            await crib.return_client_result(run.run_id, prepared.position, ClientResult())

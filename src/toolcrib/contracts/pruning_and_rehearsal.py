"""Reports of maintenance: what pruning removed and kept, and what a rehearsal found about parked runs."""

from typing import Literal, Self, TypeAlias

from pydantic import Field

from toolcrib.contracts.base.base import Contract, Timestamp
from toolcrib.contracts.runs.runs import RunStatus


class PrunedCounts(Contract):
    """What went, by kind."""

    families: int = 0
    """Outermost runs, each with all its nested runs."""
    runs: int = 0
    """All runs, the nested ones included."""
    events: int = 0
    approvals: int = 0
    conversations: int = 0

    def __add__(self, other: Self) -> "PrunedCounts":
        """The sum, kind by kind."""
        return PrunedCounts(**{name: getattr(self, name) + getattr(other, name) for name in PrunedCounts.model_fields})


class KeptCounts(Contract):
    """Families whose outermost run ended long ago but which were kept, by reason."""

    unfinished: int = 0
    """A nested run is active, or the family has changed since."""
    needed: int = 0
    """An active run refers to one of its runs: it continues it, or was forked from it."""
    in_conversation: int = 0
    """It is a turn of a conversation that stays."""

    def __add__(self, other: Self) -> "KeptCounts":
        """The sum, reason by reason."""
        return KeptCounts(**{name: getattr(self, name) + getattr(other, name) for name in KeptCounts.model_fields})


class PrunedRealm(Contract):
    """What pruning did in one realm."""

    gone: PrunedCounts = PrunedCounts.model_construct()
    kept: KeptCounts = KeptCounts.model_construct()


class Pruned(Contract):
    """What pruning a store did, or would do."""

    ended_before: Timestamp
    """Later ends and changes were not considered."""
    dry_run: bool = False
    """Nothing was removed: the counts say what would be."""
    realms: dict[str, PrunedRealm] = Field(default_factory=dict)
    """By name, those that have runs."""
    expired_results: int = 0
    """Cached results whose time was over; not counted in a dry run."""
    blobs: int = 0
    """Blobs that nothing names any more; in a dry run those that nothing names now."""
    blob_bytes: int = 0

    @property
    def gone(self) -> PrunedCounts:
        """What went in all realms."""
        return sum((realm.gone for realm in self.realms.values()), PrunedCounts())

    @property
    def kept(self) -> KeptCounts:
        """What stays in all realms."""
        return sum((realm.kept for realm in self.realms.values()), KeptCounts())


Verdict: TypeAlias = Literal["safe", "needs_attention", "will_strand"]
"""safe: the run continues as it would have without the change. needs_attention: it continues differently: a
call is refused, or a person is asked again. will_strand: it fails, or no process can resume it."""
ReasonCode: TypeAlias = Literal[
    "cannot_run_here", "fails", "diverges", "call_refused", "asked_again", "later_call_refused"
]


class RehearsalReason(Contract):
    """Why a run is not safe."""

    code: ReasonCode
    verdict: Verdict
    run_id: str
    """The run of the family that it is about."""
    tool: str
    """The tool that it is about: `name@version`, or as a definition names it."""
    position: str | None = None
    """Of the call that it is about; null if it is the run as a whole."""
    message: str
    next_step: str
    """What can be done about it."""


class RehearsedRun(Contract):
    """An outermost run that has not ended, with those that are nested in it."""

    run_id: str
    realm: str
    tool: str
    status: RunStatus
    waits_at: tuple[str, ...] = ()
    """Positions of the calls that wait for a person."""
    verdict: Verdict
    reasons: tuple[RehearsalReason, ...] = ()


class RehearsalReport(Contract):
    """A rehearsal of all parked runs."""

    at: Timestamp
    runs: tuple[RehearsedRun, ...] = ()

    def of(self, verdict: Verdict) -> tuple[RehearsedRun, ...]:
        """The runs with a verdict."""
        return tuple(run for run in self.runs if run.verdict == verdict)

    @property
    def strands(self) -> bool:
        """Whether any run will strand."""
        return bool(self.of("will_strand"))

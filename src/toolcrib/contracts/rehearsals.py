"""What would become of the runs that are parked if definitions, or the release of the code, were others."""

from typing import Literal, TypeAlias

from toolcrib.contracts.base.base import Contract, Timestamp
from toolcrib.contracts.runs.runs import RunStatus

Verdict: TypeAlias = Literal["safe", "needs_attention", "will_strand"]
"""safe: the run goes on from where it waits as it would have. needs_attention: it goes on, but not as it would have: a
call is refused, a person is asked once more. will_strand: it fails, or nobody can carry it on."""
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
    """What somebody can do about it."""


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

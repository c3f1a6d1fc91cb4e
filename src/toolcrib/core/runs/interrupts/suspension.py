"""What a program may read of other runs: those that have ended, whose journals say the same for ever.

A reading and no more: nothing here writes, claims or waits. What is read of a run that may not have ended yet depends
on the moment, so a program keeps what it found, with `RunContext.once`.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from toolcrib.contracts import Run, RunEvent, RunStatus, Signal


class Past(Protocol):
    """The reading side of a journal."""

    async def run(self, run_id: str) -> Run:
        """The run's row.

        Raises:
            NotFound: No such run.
        """
        ...

    async def runs(
        self,
        realm: str,
        *,
        tool: str | None = None,
        made_by: str | None = None,
        status: RunStatus | None = None,
        before: str | None = None,
        limit: int = 50,
    ) -> Sequence[Run]:
        """A page of runs, newest first; see `Journal.runs`."""
        ...

    async def events(self, run_id: str, *, after: int = 0, limit: int | None = None) -> Sequence[RunEvent]:
        """The events with numbers above `after`, in order; none of a run that is not there."""
        ...

    async def signals(self, run_id: str) -> Mapping[str, Signal]:
        """What was left for the run, by name: for one that has ended, also after its end."""
        ...

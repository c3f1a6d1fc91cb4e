"""Links from ended runs to the runs that continue them: a signal to the ended run, stored before the new run.

A run that failed has at most one successor, because it does not know what the successor has done since; to continue,
continue the last one. A run that succeeded may be rerun any number of times.
"""

from collections.abc import Mapping
from typing import Final

from toolcrib.contracts import Conflict, NotFound, Principal, Run, Signal
from toolcrib.contracts.workflows import Rerun
from toolcrib.core.executor import Clock
from toolcrib.infrastructure.store import Journal

_LINK: Final = "rerun:"
"""Begins the name of the signal; no step can wait for one of such a name."""
_NEXT: Final = f"{_LINK}next"


class Successors:
    """The links between runs.

    Args:
        journal: Has the runs.
        clock: Time.
    """

    def __init__(self, journal: Journal, clock: Clock) -> None:
        self._journal = journal
        self._clock = clock

    @staticmethod
    def run_ids_in(signals: Mapping[str, Signal]) -> list[str]:
        """Ids of the runs that continue the run with these signals, in the order in which they started."""
        links = sorted((left for name, left in signals.items() if name.startswith(_LINK)), key=lambda left: left.at)
        return [left.payload["run_id"] for left in links]

    async def last(self, run: Run) -> Run:
        """The run, or the last one of those that went on where it ended."""
        while (left := (await self._journal.signals(run.run_id)).get(_NEXT)) is not None:
            try:
                run = await self._journal.run(left.payload["run_id"])
            except NotFound:  # it was announced, and a crash came before it was made
                break
        return run

    async def announce(self, rerun: Rerun, run_id: str, who: Principal) -> str:
        """Link a run to one that is about to be made.

        Args:
            rerun: Which run it continues, and how.
            run_id: Its id.
            who: The principal that asks.

        Returns:
            The id that it must have: another one, if it was announced before and never made.

        Raises:
            Conflict: Another run continues it already.
        """
        before = await self._journal.run(rerun.run_id)
        name = f"{_LINK}{run_id}" if before.status == "completed" else _NEXT
        payload = {"run_id": run_id, **rerun.model_dump(mode="json", include={"mode", "step"})}
        left = Signal(name=name, payload=payload, made_by=who.id, at=self._clock.now())
        if await self._journal.signal(before.run_id, left):
            return run_id
        known = (await self._journal.signals(before.run_id))[name].payload["run_id"]
        try:
            run = await self._journal.run(known)
        except NotFound:
            return known
        raise under_way(run, before.run_id)


def under_way(run: Run, earlier_id: str) -> Conflict:
    """The error for a run that is already continued."""
    return Conflict(f"instance {earlier_id} is continued by {run.run_id}, which is {run.status}; look at that one")

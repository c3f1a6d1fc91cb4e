"""The port of an engine, implemented by the local engine and by Restate's workers.

Both use the same journal, so a run can begin under one and continue under the other. An engine only decides which
process drives a run, and when; the driver does the rest.
"""

from collections.abc import Sequence
from typing import Protocol

from toolcrib.contracts import RunRequest, Signal, ToolError
from toolcrib.core.engines.outcomes import DriveResult
from toolcrib.core.runs import TokenHub


class Engine(Protocol):
    """Starts, suspends, resumes and recovers runs."""

    @property
    def live(self) -> TokenHub:
        """What the models of the runs that this process drives are saying."""
        ...

    async def create(self, request: RunRequest, *, run_id: str | None = None) -> str:
        """Write a new run into the journal, queued for whoever drives it; durable on return.

        Raises:
            Conflict: A run with this id exists.
        """
        ...

    async def start(self, request: RunRequest) -> DriveResult:
        """Create a run and have it driven at once; returns when it has ended or waits."""
        ...

    async def refuse(self, request: RunRequest, refusal: ToolError) -> DriveResult:
        """Write a run that was not admitted: it is in the journal, ended, with the reason."""
        ...

    async def resume(self, run_id: str) -> DriveResult:
        """Have a run driven that waits or whose process died; returns when it has ended or waits for something outside.

        Raises:
            NotFound: No such run.
            Unavailable: This process drives runs and lacks what this one needs; another one can carry it on.
        """
        ...

    async def recover(self) -> Sequence[DriveResult]:
        """Have every run driven that can go on now, and return how they stand."""
        ...

    async def signal(self, run_id: str, signal: Signal) -> bool:
        """Leave a signal for a run. False if there was one of that name; the first wins.

        Raises:
            NotFound: No such run.
        """
        ...

    async def signal_all(self, signals: Sequence[tuple[str, Signal]]) -> bool:
        """Leave signals for the runs of these ids: all of them, or none because there was one of these names.

        Raises:
            NotFound: No such run; none was left.
        """
        ...

    async def cancel(self, run_id: str, *, by: str, reason: str | None = None) -> bool:
        """End a run, whatever it does or waits for, and its nested runs with it.

        Args:
            run_id: The run.
            by: Id of who wants it, for the record.
            reason: Why, for the record.

        Returns:
            False if somebody has cancelled it before: what they said stands.

        Raises:
            NotFound: No such run.
            Conflict: It has ended.
        """
        ...

    def begin(self, run_id: str) -> None:
        """Have a run driven beside everything else, as far as it goes, if nobody drives it."""
        ...

    async def serve(self) -> None:
        """See to it that whatever can go on is driven, for ever: waits that are over, runs of processes that died."""
        ...

    async def drain(self, grace_s: float) -> Sequence[str]:
        """Begin nothing any more, and let go of what is under way in good order, because this process is about to stop.

        Args:
            grace_s: The most seconds that this may take, from the first time on that it is asked for.

        Returns:
            The ids of the runs that this process drives all the same; `close` cuts them off.
        """
        ...

    async def close(self) -> None:
        """Let go of what this process holds."""
        ...

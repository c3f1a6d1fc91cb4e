"""Starts and resumes runs, and leaves those to other processes for which this one lacks a Python function.

Such a run is queued, and its caller waits until a worker has driven it. If no worker claims it for some seconds, the
caller gets the queued run with a warning; the run stays queued, and the next worker completes it.
"""

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Final

from msgspec import structs

from toolcrib.contracts import WAITING, RunRequest, Unavailable
from toolcrib.core.engines.outcomes import DriveResult, read_driven
from toolcrib.core.engines.ports import Engine
from toolcrib.core.executor import Clock
from toolcrib.infrastructure.store import Journal

_SOONEST_S: Final = 0.02
_LATEST_S: Final = 0.5
_MOST: Final = 4096
"""Kinds of requests that are known to run here; when there are more, all are checked again."""
_CLAIMABLE: Final = 1000


class LeftRuns:
    """Starts and resumes each run here, or leaves it to a worker.

    Args:
        engine: Drives runs in this process.
        journal: The journal that workers share.
        clock: Time.
        missing: What a run needs and this process lacks, such as a function of the application.
        wait_s: Seconds without a worker after which a caller is answered.
    """

    def __init__(
        self,
        engine: Engine,
        journal: Journal,
        clock: Clock,
        missing: Callable[[RunRequest], Awaitable[Sequence[str]]],
        *,
        wait_s: float,
    ) -> None:
        self._engine = engine
        self._journal = journal
        self._clock = clock
        self._missing = missing
        self._wait_s = wait_s
        self._run_here: set[str | tuple[str, ...]] = set()

    def start(self, request: RunRequest) -> Coroutine[Any, Any, DriveResult]:
        """Have a run driven, here or by a worker.

        Returns:
            The run when it has ended or waits; or queued, with a warning, if no worker claims it.
        """
        key = (request.content_hash, *request.pins.values()) if request.pins else request.content_hash
        return self._engine.start(request) if key in self._run_here else self._start(request, key)

    async def resume(self, run_id: str) -> DriveResult:
        """Have a run driven that is queued, waits, or whose process died, here or by a worker.

        Returns:
            The run when it has ended or waits; or as it stands, with a warning, if no worker claims it.

        Raises:
            NotFound: No such run.
            Unavailable: This process lacks something else than a function, such as the key of a model.
        """
        try:
            return await self._engine.resume(run_id)
        except Unavailable:
            missing = await self._missing((await self._journal.run(run_id)).request)
            if not missing:
                raise
            return await self._wait_for(run_id, missing)

    async def _start(self, request: RunRequest, key: str | tuple[str, ...]) -> DriveResult:
        missing = await self._missing(request)
        if missing:
            return await self._wait_for(await self._engine.create(request), missing)
        if len(self._run_here) >= _MOST:
            self._run_here.clear()
        self._run_here.add(key)
        return await self._engine.start(request)

    async def _wait_for(self, run_id: str, missing: Sequence[str]) -> DriveResult:
        """Wait for a run that another process drives, as long as one does."""
        pause_s, free_since = _SOONEST_S, self._clock.monotonic()
        while True:
            is_free = run_id in await self._journal.claimable(now=self._clock.now(), limit=_CLAIMABLE)
            run = await self._journal.run(run_id)
            if run.ended or (run.status in WAITING and not is_free):
                return await read_driven(self._journal, run)
            now = self._clock.monotonic()
            if not is_free:
                free_since = now
            elif now - free_since >= self._wait_s:
                return _with_warning(await read_driven(self._journal, run), self._warning(run_id, missing))
            await self._clock.sleep(pause_s)
            pause_s = min(pause_s * 1.5, _LATEST_S)

    def _warning(self, run_id: str, missing: Sequence[str]) -> str:
        lacks = ", ".join(dict.fromkeys(missing))
        return (
            f"run {run_id} is queued: this process lacks {lacks}, and no worker claimed the run within "
            f"{self._wait_s:g} s; start one with toolcrib worker MODULE:CRIB, which will complete the run"
        )


def _with_warning(driven: DriveResult, warning: str) -> DriveResult:
    result = structs.replace(driven.result, warnings=(*driven.result.warnings, warning))
    return DriveResult(result, driven.log)

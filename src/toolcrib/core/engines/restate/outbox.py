"""Submits runs to Restate: at once, and again if it may not know them.

The row of a run has the time from which a process may claim it. Every claimable run that was not submitted recently is
submitted, so no run is lost if this process dies, or if Restate is unavailable or has lost its data. Submitting twice
is harmless.
"""

import asyncio
import contextlib
import hashlib
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from toolcrib.contracts import NotFound, ToolcribError, Unavailable
from toolcrib.core.engines.restate.ingress import Ingress
from toolcrib.core.executor import Clock
from toolcrib.infrastructure.store import Journal

BATCH: Final = 100
"""Runs that are sent at one look."""
FIRST_S: Final = 5.0
"""After which a run is sent again that can still go on as it could; doubled each time."""
LONGEST_S: Final = 600.0
"""The longest of these pauses: what can go on in no worker is no storm."""

_DOUBLINGS: Final = 10
_ANNOUNCED: Final = "announced"
"""In place of where a run stands: it was not read."""

_logger = logging.getLogger(__name__)


class _Sent(Struct):
    """What was sent of a run that can go on."""

    stands: str
    """Its epoch and last event then."""
    times: int
    next_at: float
    """When it is sent again, on the monotonic clock."""


class Outbox:
    """Sends runs to Restate.

    Args:
        journal: Says which can go on.
        ingress: Takes them.
        clock: Time.
        owner: Names this process; processes look at different moments.
        sweep_s: Seconds between looks.
    """

    def __init__(self, journal: Journal, ingress: Ingress, clock: Clock, *, owner: str, sweep_s: float) -> None:
        self._journal = journal
        self._ingress = ingress
        self._clock = clock
        self._sweep_s = sweep_s
        self._offset_s = sweep_s * hashlib.sha256(owner.encode()).digest()[0] / 256
        self._sent: dict[str, _Sent] = {}
        self._sending: set[asyncio.Task[None]] = set()
        self._problem: str | None = None
        """Why Restate has not taken the last run; each problem is said once."""
        self.unknown: Callable[[], Awaitable[object]] | None = None
        """What a worker does if Restate does not know any: it was made anew."""

    def announce(self, run_id: str, cause: str | None = None) -> None:
        """Send a run beside everything else; it is durable by now that it can go on.

        Args:
            run_id: The run.
            cause: What has made it so, that happens to a run once; null if there is no telling.
        """
        once = None if cause is None else f"{run_id}/{cause}"
        task = asyncio.create_task(self._send(run_id, once))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    async def serve(self) -> None:
        """Look for runs that can go on, for ever."""
        await self._clock.sleep(self._offset_s)
        while True:
            with contextlib.suppress(Unavailable):  # while the store is away nothing goes on
                await self.sweep()
            await self._clock.sleep(self._sweep_s)

    async def sweep(self) -> None:
        """Send what can go on and was not sent lately.

        Raises:
            Unavailable: The store is away.
        """
        found = await self._journal.claimable(now=self._clock.now(), limit=BATCH + len(self._sent))
        self._sent = {run_id: self._sent[run_id] for run_id in found if run_id in self._sent}
        due = await self._due(found)
        for run_id, sent in due.items():
            if not await self._try(run_id, f"{run_id}/{sent.stands}/{sent.times}"):
                return  # the others are sent at a later look
            self._note(run_id, sent)

    async def close(self) -> None:
        """Wait until what is being sent was, or could not be."""
        await asyncio.gather(*self._sending)

    # Inside -----------------------------------------------------------------------------------------------------------

    async def _due(self, found: Sequence[str]) -> Mapping[str, _Sent]:
        """What is sent now, those first that can go on for the longest time."""
        now = self._clock.monotonic()
        due: dict[str, _Sent] = {}
        for run_id in found:
            sent = self._sent.get(run_id)
            if sent is not None and sent.next_at > now:
                continue
            run = await self._journal.run(run_id)
            stands = f"{run.epoch}/{run.events}"
            due[run_id] = sent if sent is not None and sent.stands == stands else _Sent(stands, 0, now)
            if len(due) == BATCH:
                break
        return due

    def _note(self, run_id: str, sent: _Sent) -> None:
        pause_s = min(FIRST_S * 2 ** min(sent.times, _DOUBLINGS), LONGEST_S)
        self._sent[run_id] = _Sent(sent.stands, sent.times + 1, self._clock.monotonic() + pause_s)

    async def _send(self, run_id: str, once: str | None) -> None:
        if await self._try(run_id, once):  # no look need send it once more at once
            self._sent.setdefault(run_id, _Sent(_ANNOUNCED, 0, self._clock.monotonic() + FIRST_S))

    async def _try(self, run_id: str, once: str | None) -> bool:
        """Send a run; false if Restate would not take it, which is no loss."""
        try:
            await self._ingress.send(run_id, once=once)
        except NotFound as unknown:
            self._say(unknown)
            if self.unknown is not None:
                await self.unknown()
            return False
        except ToolcribError as away:
            self._say(away)
            return False
        if self._problem is not None:
            self._problem = None
            _logger.info("Restate takes runs again")
        return True

    def _say(self, problem: ToolcribError) -> None:
        if self._problem != str(problem):
            self._problem = str(problem)
            _logger.warning("runs wait in the store until Restate takes them: %s", problem)

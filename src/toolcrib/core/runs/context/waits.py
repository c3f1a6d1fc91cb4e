"""Waits of a run: for a signal, or until a time.

The end of a wait is recorded when it begins, so a crash does not change it. A waiting run is suspended, except for a
short remaining time.
"""

from datetime import datetime, timedelta

from toolcrib.contracts import CLOCK, RunStatus, Signal, SignalAwaited, SignalReceived
from toolcrib.core.executor import Clock
from toolcrib.core.runs.context.pending import Sleep
from toolcrib.core.runs.context.prior_runs import PriorRuns
from toolcrib.core.runs.interrupts.approvals import Signals
from toolcrib.core.runs.interrupts.suspension import Suspended
from toolcrib.core.runs.journal.history import History, wait_key
from toolcrib.core.runs.journal.log import RunLog


def rest_name(name: str) -> str:
    """What a wait for a moment is called in the journal."""
    return f"sleep:{name}"


class RunWaits:
    """Waits for one run.

    Args:
        log: Where it is written.
        history: What was awaited and received before this process took the run.
        signals: Looks up a signal by name.
        clock: Time.
        elsewhere: Has what another run received, if this one is a fork of it.
        sleep: Sleeps through what is left of a wait, in a replay until it was over then; the clock does if null.
    """

    def __init__(
        self,
        log: RunLog,
        history: History,
        signals: Signals,
        clock: Clock,
        prior_runs: PriorRuns,
        *,
        sleep: Sleep | None = None,
    ) -> None:
        self._sleep = sleep
        self._log = log
        self._history = history
        self._signals = signals
        self._clock = clock
        self._prior_runs = prior_runs

    async def signal(
        self, name: str, position: str | None, timeout_s: float | None, status: RunStatus = "awaiting_client"
    ) -> Signal | None:
        """The signal, or null if the time is over before it comes.

        Args:
            name: Of the signal.
            position: Of the part of the program that waits, where several may wait for one signal.
            timeout_s: Seconds from the moment in which the wait began; null for ever.
            status: How the run stands meanwhile.

        Raises:
            Suspended: It is not there, and there is time.
        """
        key = wait_key(name, position)
        if self._has_received(key):
            if self._history.received[key].payload is None:
                return None
            return await self._signals(name) or self._history.signals[name]
        signal = await self._signals(name)
        wake_at = None
        if signal is None:
            wake_at = self._wake_at(key, None if timeout_s is None else self._after(timeout_s))
            if wake_at is None or self._clock.now() < wake_at:
                self._await(name, position, wake_at)
                raise Suspended(status, name, wake_at=wake_at)
        self._receive(name, position, signal)
        return signal

    async def until(self, name: str, moment: datetime, hold_s: float) -> None:
        """Let time pass until a moment, unless another one was written down when the wait began.

        Args:
            name: Of the rest.
            moment: When it is over.
            hold_s: Seconds that it may still last to be slept through.

        Raises:
            Suspended: It lasts longer.
        """
        key = rest_name(name)
        if self._has_received(key):
            return
        wake_at = self._wake_at(key, moment) or moment
        left = (wake_at - self._clock.now()).total_seconds()
        if left > 0:
            self._await(key, None, wake_at)
            if left > hold_s:
                raise Suspended("awaiting_client", key, wake_at=wake_at)
            await (self._clock.sleep(left) if self._sleep is None else self._sleep(key, left))
        self._receive(key, None, None)

    async def rest(self, name: str, seconds: float, hold_s: float) -> None:
        """Let so many seconds pass; see `until`."""
        await self.until(name, self._after(seconds), hold_s)

    # Inside -----------------------------------------------------------------------------------------------------------

    def _has_received(self, key: str) -> bool:
        """Whether it is known what came of a wait, from the other run if need be."""
        received = None if key in self._history.received else self._prior_runs.signal(key)
        if received is not None:
            self._note(received)
        return key in self._history.received

    def _note(self, received: SignalReceived) -> None:
        for entry in self._log.add_all((received,)):
            self._history.take(entry)

    def _after(self, seconds: float) -> datetime:
        return self._clock.now() + timedelta(seconds=seconds)

    def _wake_at(self, key: str, planned: datetime | None) -> datetime | None:
        known = self._history.awaited.get(key)
        return planned if known is None else known.wake_at

    def _await(self, name: str, position: str | None, wake_at: datetime | None) -> None:
        key = wait_key(name, position)
        if key not in self._history.awaited:
            awaited = SignalAwaited(name=name, wake_at=wake_at, position=position)
            self._history.awaited[key] = awaited
            self._log.add(awaited)

    def _receive(self, name: str, position: str | None, signal: Signal | None) -> None:
        made_by = signal.made_by if signal else CLOCK
        payload = signal.payload if signal else None
        self._note(SignalReceived(name=name, payload=payload, made_by=made_by, position=position))

"""Calls that a run has handed over to its client, one by one: what waits, and what the client brings back.

A result is a signal in the journal; nothing here carries a run on. `Executions` takes the results of a whole turn.
"""

from collections.abc import Sequence

from toolcrib.contracts import ClientResult, Principal, Signal, ToolEnvelope
from toolcrib.core.engines import Engine
from toolcrib.core.executor import Clock
from toolcrib.core.runs import client_signal, waiting_at, waiting_handoffs
from toolcrib.infrastructure.store import Journal


class Handoffs:
    """The calls of a crib's runs that wait for a client.

    Args:
        journal: Has the runs.
        engine: Takes the signals.
        clock: Time.
    """

    def __init__(self, journal: Journal, engine: Engine, clock: Clock) -> None:
        self._journal = journal
        self._engine = engine
        self._clock = clock

    async def of_run(self, run_id: str) -> Sequence[ToolEnvelope]:
        """Prepared calls of a run that wait for a client."""
        signals = await self._journal.signals(run_id)
        return waiting_handoffs(await self._journal.events(run_id), signals.keys())

    async def return_result(self, run_id: str, position: str, result: ClientResult, who: Principal) -> bool:
        """Bring back what a client did. The first result counts, as often as its client sends it.

        Raises:
            Conflict: No call at this position waits for a client.
        """
        known = (await self._journal.signals(run_id)).get(client_signal(position))
        if known is not None and known.payload == result.model_dump(mode="json"):
            return known.made_by == who.id
        waiting = {prepared.position: prepared for prepared in await self.of_run(run_id)}
        waiting_at(run_id, position, waiting, "a client")
        signal = Signal(
            name=client_signal(position),
            payload=result.model_dump(mode="json"),
            made_by=who.id,
            at=self._clock.now(),
        )
        return await self._engine.signal(run_id, signal)

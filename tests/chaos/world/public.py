"""The public: people who decide, clients that bring results, and senders of news; too early, in time, and twice.

They note what they said and what they heard, which the judge holds against the journal.
"""

from collections.abc import Sequence
from random import Random

from tests.chaos.world.judge import Told
from toolcrib import Crib
from toolcrib.contracts import ClientResult, Conflict, Json, NotFound, Run, Unavailable

_OPEN = ("queued", "running", "awaiting_approval", "awaiting_client")
_TOO_EARLY = ("t3.c1", "t5.c1", "asked")
"""Positions at which something may be asked later."""


class Public:
    """All of them.

    Args:
        crib: What they speak to.
        dice: Tells who speaks.
    """

    def __init__(self, crib: Crib, dice: Random) -> None:
        self.told: list[Told] = []
        self._crib = crib
        self._dice = dice
        self._said = 0

    async def open_runs(self) -> Sequence[Run]:
        """Runs that have not ended.

        Raises:
            Unavailable: The store is away.
        """
        journal = self._crib.store.journal
        return [run for status in _OPEN for run in await journal.runs("default", status=status, limit=10_000)]

    async def speak(self, run: Run, *, eager: bool = False) -> None:
        """Answer what a run asks, or what it does not ask yet.

        Args:
            run: The run.
            eager: Whether everything is answered that can be.
        """
        try:
            if run.request.tool_name == "spread":
                await self._crib.instances.signal(run.run_id, "news", {})
            await self._answer(run, eager=eager)
        except (Conflict, NotFound, Unavailable):  # it has just ended, or the store is away
            return

    async def _answer(self, run: Run, *, eager: bool) -> None:
        for request in await self._crib.pending_approvals(run.run_id):
            for _ in range(self._times(eager=eager)):
                await self._decide(run.run_id, request.position)
        for handed in await self._crib.pending_handoffs(run.run_id):
            for _ in range(self._times(eager=eager)):
                await self._bring(run.run_id, handed.position)
        if self._dice.random() < 0.2:
            await self._decide(run.run_id, self._dice.choice(_TOO_EARLY))

    def _times(self, *, eager: bool) -> int:
        return 2 if eager else self._dice.choice((0, 0, 1, 2))

    async def _decide(self, run_id: str, position: str) -> None:
        approve = self._dice.random() < 0.8 or position == "asked"
        accepted: bool | None = None
        try:
            accepted = await self._crib.decide(run_id, position, approve=approve)
        except Conflict:
            accepted = False
        finally:
            self.told.append(Told(run_id, position, approve, accepted))

    async def _bring(self, run_id: str, position: str) -> None:
        self._said += 1
        output: Json = {"printed": self._said}
        accepted: bool | None = None
        try:
            accepted = await self._crib.return_client_result(run_id, position, ClientResult(output=output))
        except Conflict:
            accepted = False
        finally:
            self.told.append(Told(run_id, position, output, accepted))

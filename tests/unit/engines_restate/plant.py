"""A house whose runs are driven by workers of a cluster in memory, and the worker that it calls: this very process."""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Any, cast

from tests.twins import Behaviour, echo
from tests.twins.restate import MemoryRestate
from tests.unit.engines.family import other_store
from tests.unit.runs.house import LEASE_S, House, Script, StandingClock, ask
from toolcrib.contracts import Json, Unavailable
from toolcrib.core.engines.restate import (
    Outbox,
    RestateClient,
    RestateDriver,
    RestateEngine,
    RestateOptions,
    RestateWorker,
)
from toolcrib.core.runs import RunContext
from toolcrib.infrastructure.store import Journal

OWNER = "first"
SWEEP_S = 1.0


async def call_it(context: RunContext) -> Json:
    """The program of a run that makes one call."""
    return (await context.call(ask("a"))).output


class Plant:
    """One process's view, as a house is.

    Args:
        script: What runs do.
        behaviour: What tools do.
        other: A plant whose store, clock, tools and cluster this one shares.
        owner: Names the process.
    """

    def __init__(
        self, script: Script = call_it, behaviour: Behaviour = echo, *, other: "Plant | None" = None, owner: str = OWNER
    ) -> None:
        house_of = other.house if other else None
        store = None if other else other_store(_Journal)
        self.house = House(script, behaviour, other=house_of, owner=owner, store=store)
        self.clock: StandingClock = self.house.clock
        self.restate = other.restate if other else MemoryRestate(self.clock)
        journal, options = self.house.store.journal, RestateOptions()
        outbox = Outbox(journal, self.restate, self.clock, owner=owner, sweep_s=SWEEP_S)
        self.drives = RestateDriver(self.house.engine, journal, self.clock, lease_s=LEASE_S)
        worker = RestateWorker(self.drives, outbox, RestateClient(options, owner=owner), options, self.clock)
        self.engine = RestateEngine(
            self.house.engine,
            outbox=outbox,
            worker=worker,
            journal=journal,
            ingress=self.restate,
            clock=self.clock,
        )

    async def create(self) -> str:
        """Begin a run by way of the engine."""
        await self.house.save()
        return await self.engine.create(await self.house.request())

    async def deliver(self) -> list[str]:
        """Have the cluster call this process for all that is due."""
        return await self.restate.deliver(self.drives.drive)

    def lose_store(self, *, away: bool) -> None:
        """Have the store be away for who looks for runs that can go on, or back."""
        cast("_Journal", self.house.store.journal).away = away

    def serve(self) -> "asyncio.Task[None]":
        """Serve the outbox."""
        return asyncio.create_task(self.engine.serve())


class _Journal:
    def __init__(self, inner: Journal) -> None:
        self.inner = inner
        self.away = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    async def claimable(self, *, now: datetime, limit: int) -> Sequence[str]:
        if self.away:
            raise Unavailable("the store is away")
        return await self.inner.claimable(now=now, limit=limit)

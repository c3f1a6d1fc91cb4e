"""The periodic work of a serving process besides driving runs: triggers, syncs of providers and their data, pruning.

`toolcrib up` and `toolcrib worker` both do it. If several processes serve a store, each piece of work is done by one
of them. Correct calls do not depend on it.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection
from typing import Final

from toolcrib.crib.api.acting import ActingCrib
from toolcrib.crib.crib import Crib

_TRIGGER_S: Final = 1.0
_LOOK_S: Final = 5.0
_PURGE_S: Final = 600.0
_PRUNE_S: Final = 3600.0
_FIRST_WAIT_S: Final = 60.0
_LONGEST_WAIT_S: Final = 3600.0
_REALMS_S: Final = 60.0
"""Seconds between looks for realms that this process does not know."""
_logger = logging.getLogger(__name__)


@contextlib.asynccontextmanager
async def maintenance_loop(crib: Crib) -> AsyncGenerator[None]:
    """Do the periodic work while the block runs."""
    keeping = [
        asyncio.create_task(import_at_start(crib)),
        *(
            asyncio.create_task(by_the_clock(crib, every_s, work))
            for every_s, work in (
                (_TRIGGER_S, TriggerLoop().start_due),
                (_LOOK_S, SyncLoop().sync_due),
                (_LOOK_S, sync_reference_data),
                (_PURGE_S, forget_what_has_expired),
                (_PRUNE_S, prune_what_is_old),
            )
        ),
    ]
    try:
        yield
    finally:
        for task in keeping:
            task.cancel()
        await asyncio.gather(*keeping, return_exceptions=True)


class RealmLoop:
    """Does some work in every realm of the store, as the crib's own principal."""

    def __init__(self) -> None:
        self._acting: dict[str, ActingCrib] = {}
        self._read_at: float | None = None
        """When the realms were read."""

    async def realms(self, crib: Crib) -> Collection[ActingCrib]:
        """A crib for each realm; the same ones each time."""
        now = crib.clock.monotonic()
        if self._read_at is None or now - self._read_at > _REALMS_S:
            self._read_at = now
            found = {crib.principal.realm, *crib.providers.realms, *await crib.store.retention.realms()}
            for realm in found - self._acting.keys():
                self._acting[realm] = crib.acting_as(crib.principal.model_copy(update={"realm": realm}))
        return self._acting.values()


class TriggerLoop(RealmLoop):
    """Starts what triggers are due to start."""

    async def start_due(self, crib: Crib) -> None:
        """Start it, as the accounts of the triggers."""
        for acting in await self.realms(crib):
            await acting.triggers.start_due()


class SyncLoop(RealmLoop):
    """Syncs the providers whose schedule says so."""

    async def sync_due(self, crib: Crib) -> None:
        """Ask them what they offer, and adopt it as far as no person has to look at it."""
        for acting in await self.realms(crib):
            await acting.imports.sync_due()


async def import_at_start(crib: Crib) -> None:
    """Import what the settings name, again and again until it has worked; the process serves meanwhile."""
    wait_s = _FIRST_WAIT_S
    while True:
        try:
            problems = await crib.imports.at_start()
        except Exception:  # the edge of the process, as below
            _logger.exception("the imports of the settings failed; trying again in %s s", wait_s)
        else:
            if not problems:
                return
            for problem in problems:
                _logger.warning("%s; trying again in %s s", problem, wait_s)
        await crib.clock.sleep(wait_s)
        wait_s = min(2 * wait_s, _LONGEST_WAIT_S)


async def sync_reference_data(crib: Crib) -> None:
    """Read the lists that are due, in every realm that this process has met, as the crib's own principal."""
    for realm in {crib.principal.realm, *crib.providers.realms}:
        reader = crib.acting_as(crib.principal.model_copy(update={"realm": realm}))
        for snapshot in await reader.reference_data.sync_due():
            if snapshot.error is not None:
                _logger.warning("provider %s: %s", snapshot.provider, snapshot.error)


async def forget_what_has_expired(crib: Crib) -> None:
    """Make room in the cache of results, and among the counters."""
    await crib.store.cache.purge(now=crib.clock.now())
    await crib.store.counters.purge(now=crib.clock.now())


async def prune_what_is_old(crib: Crib) -> None:
    """Take out what ended as long ago as the settings say, if no process has done so today."""
    await crib.retention.prune_if_due()


async def by_the_clock(crib: Crib, every_s: float, work: Callable[[Crib], Awaitable[None]]) -> None:
    """Do a piece of work again and again, also through times in which the store is not there."""
    while True:
        try:
            await work(crib)
        except Exception:  # the edge of the process: what is not done now is done later
            _logger.exception("%s failed; trying again in %s s", work.__name__, every_s)
        await crib.clock.sleep(every_s)

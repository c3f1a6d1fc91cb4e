"""Pruning: removes old data from a store, with everything that only this data needed.

It removes conversations without recent messages, families of ended runs, expired results, and unreferenced blobs. It
keeps, whatever their age, families with an active run, runs that an active run continues or was forked from, and
turns of a kept conversation. Each family is removed in one transaction, so pruning may be interrupted at any time and
continues the next time. Several processes may prune at once.

Example:
    from datetime import timedelta

    pruned = await crib.retention.prune(older_than=timedelta(days=30), dry_run=True)
    print(sum(each.gone.runs for each in pruned.realms.values()), "runs would be removed")
"""

import contextlib
import logging
from collections.abc import AsyncIterator, Collection, Sequence
from datetime import datetime, timedelta
from typing import Final

from toolcrib.contracts import Conversation, InvalidInput, NotFound
from toolcrib.contracts.pruning_and_rehearsal import KeptCounts, Pruned, PrunedCounts, PrunedRealm
from toolcrib.core.executor import Clock
from toolcrib.core.runs import turn_run_id
from toolcrib.crib.container.access import Actor
from toolcrib.infrastructure.store import Family, Pruning, Root, Store

BLOB_GRACE: Final = timedelta(days=1)
"""No blob that was put within this time is removed: the event that names it may be on its way."""
_EVERY: Final = timedelta(days=1)
_DUE: Final = "retention/pruned"
"""Key of the cached value that is there while nothing has to be done."""
_PAGE: Final = 200
_FAMILIES_AT_ONCE: Final = 50
_BLOBS_AT_ONCE: Final = 100
_logger = logging.getLogger(__name__)


class Retention:
    """Prunes a crib's store.

    Args:
        store: The store of the crib.
        clock: Time.
        actor: The actor of the crib.
        keep: How long what has ended is kept, by who prunes by the clock; null for ever.
    """

    def __init__(self, store: Store, clock: Clock, actor: Actor, *, keep: timedelta | None = None) -> None:
        self._store = store
        self._clock = clock
        self._actor = actor
        self._keep = keep

    async def prune(self, *, older_than: timedelta, realm: str | None = None, dry_run: bool = False) -> Pruned:
        """Take out what has ended, or was last changed, longer ago than a time.

        Args:
            older_than: The time.
            realm: Whose runs and conversations; those of every realm if null.
            dry_run: Remove nothing, and report what would be removed.

        Raises:
            InvalidInput: The time is negative.

        Example:
            from datetime import timedelta

            pruned = await crib.retention.prune(older_than=timedelta(days=30), dry_run=True)
            print(pruned.blobs, {realm: each.gone.runs for realm, each in pruned.realms.items()})
        """
        if older_than < timedelta():
            raise InvalidInput(f"what is older than {older_than} lies in the future; give a time of 0 or more")
        who = await self._actor.authorize()
        now = self._clock.now()
        before = now - older_than
        realms = await self._store.retention.realms() if realm is None else [realm]
        pruned = {name: await self._prune_realm(name, before, dry_run=dry_run) for name in realms}
        for name, each in pruned.items():
            if each.gone != PrunedCounts() and not dry_run:
                await self._store.retention.note(Pruning(name, now, who.id, before, each.gone))
                _logger.info("realm %s: pruned what ended before %s: %s", name, before.isoformat(), each.gone)
        expired = 0 if dry_run else await self._store.cache.purge(now=now)
        sizes = await self._sweep(min(before, now - BLOB_GRACE), dry_run=dry_run)
        return Pruned(
            ended_before=before,
            dry_run=dry_run,
            realms=pruned,
            expired_results=expired,
            blobs=len(sizes),
            blob_bytes=sum(sizes),
        )

    async def history(self, *, limit: int = 50) -> Sequence[Pruning]:
        """What was taken out of the realm, newest first: when, by whom, what had ended before which time, how much.

        Args:
            limit: At most so many records.

        Example:
            for each in await crib.retention.history(limit=10):
                print(each.pruned_at, each.made_by, each.ended_before, each.counts.runs)
        """
        who = await self._actor.authorize()
        return await self._store.retention.prunings(who.realm, limit=limit)

    async def prune_if_due(self) -> Pruned | None:
        """Prune as the settings want it, at most once a day among all processes of a store; null if it is not due.

        Example:
            pruned = await crib.retention.prune_if_due()
            print(pruned.ended_before if pruned else "not due")
        """
        if self._keep is None:
            return None
        who, now = await self._actor.authorize(), self._clock.now()
        mine = await self._store.cache.add(
            _DUE, {"at": now.isoformat()}, realm=who.realm, made_by=who.id, now=now, expires_at=now + _EVERY
        )
        return await self.prune(older_than=self._keep) if mine else None

    # Inside -----------------------------------------------------------------------------------------------------------

    async def _prune_realm(self, realm: str, before: datetime, *, dry_run: bool) -> PrunedRealm:
        idle = await self._leave_conversations(realm, before, dry_run=dry_run)
        pruned, kept = PrunedCounts(conversations=len(idle)), KeptCounts()
        after: Root | None = None
        while page := await self._store.retention.roots(realm, ended_before=before, after=after, limit=_PAGE):
            after = page[-1]
            turns = await self._turns(realm, page, idle)
            kept += KeptCounts(in_conversation=len(turns))
            needed = await self._store.retention.find_needed_runs(realm)
            left = [root.run_id for root in page if root.run_id not in turns]
            while left:
                families = await self._store.retention.prune(
                    left[:_FAMILIES_AT_ONCE], untouched_since=before, needed=needed, dry_run=dry_run
                )
                left = left[len(families) :]
                for family in families:
                    pruned += _count_gone(family)
                    kept += _count_kept(family)
        return PrunedRealm(gone=pruned, kept=kept)

    async def _leave_conversations(self, realm: str, before: datetime, *, dry_run: bool) -> set[str]:
        """Take out the conversations in which nothing was said since a moment and no turn is open; their ids."""
        idle = [found async for found in self._conversations(realm) if found.updated_at < before]
        left: set[str] = set()
        for found in idle:
            if await self._is_open(found):
                continue
            if dry_run or await self._store.conversations.remove(realm, found.conversation_id, revision=found.revision):
                left.add(found.conversation_id)
        return left

    async def _conversations(self, realm: str) -> AsyncIterator[Conversation]:
        last: str | None = None
        with contextlib.suppress(NotFound):  # another process prunes too, and has taken out where the page would begin
            while page := await self._store.conversations.list(realm, before=last, limit=_PAGE):
                last = page[-1].conversation_id
                for found in page:
                    yield found

    async def _is_open(self, found: Conversation) -> bool:
        if found.ended_turns == found.turn_count:
            return False
        try:
            return not (await self._store.journal.run(turn_run_id(found.conversation_id, found.turn_count))).ended
        except NotFound:  # its run was never made
            return False

    async def _turns(self, realm: str, roots: Sequence[Root], left: Collection[str]) -> set[str]:
        """Ids of the roots that are turns of conversations which stay."""
        named = {root.conversation_id for root in roots if root.conversation_id is not None} - set(left)
        staying = {one for one in named if await self._store.conversations.get(realm, one) is not None}
        return {root.run_id for root in roots if root.conversation_id in staying}

    async def _sweep(self, put_before: datetime, *, dry_run: bool) -> list[int]:
        """Remove the blobs that nothing names; their sizes in bytes."""
        unnamed = await self._store.retention.unnamed_blobs(put_before=put_before)
        if dry_run:
            return [size for _, _, size in unnamed]
        sizes: list[int] = []
        for realm in {owner: None for owner, _, _ in unnamed}:
            known = {digest: size for owner, digest, size in unnamed if owner == realm}
            digests = list(known)
            for start in range(0, len(digests), _BLOBS_AT_ONCE):
                part = digests[start : start + _BLOBS_AT_ONCE]
                removed = await self._store.blobs.remove(realm, part, untouched_since=put_before)
                sizes += [known[digest] for digest in removed]
        return sizes


def _count_gone(family: Family) -> PrunedCounts:
    if family.fate != "gone" or not family.run_ids:
        return PrunedCounts()
    return PrunedCounts(families=1, runs=len(family.run_ids), events=family.events, approvals=family.approvals)


def _count_kept(family: Family) -> KeptCounts:
    match family.fate:
        case "gone":
            return KeptCounts()
        case "unfinished":
            return KeptCounts(unfinished=1)
        case "needed":
            return KeptCounts(needed=1)

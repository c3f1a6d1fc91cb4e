"""A shadow of another store: it reads the other store's data and writes only to memory.

Definitions are copied per realm, runs one by one. Blobs, encrypted values, conversations and other runs are read from
the other store. Rehearsals use it.
"""

from collections.abc import Awaitable, Mapping, Sequence
from datetime import datetime
from typing import Final, get_args

from toolcrib.contracts import Conversation, Event, NotFound, PermissionDenied, Run, RunEvent, RunStatus, Signal
from toolcrib.infrastructure.queries.grammar import Condition
from toolcrib.infrastructure.store.memory.memory_store import MemoryStore
from toolcrib.infrastructure.store.ports.queried_fields import StoreQuery
from toolcrib.infrastructure.store.ports.records import (
    ANY_CONVERSATION,
    ApprovalStore,
    ConversationFilter,
    ConversationStore,
    Counters,
    SealedKey,
    SealedValue,
    SealedValues,
)
from toolcrib.infrastructure.store.ports.records import require_next_sealed as require_next
from toolcrib.infrastructure.store.ports.retention import RetentionStore
from toolcrib.infrastructure.store.ports.store import (
    ApiKeys,
    Blobs,
    Claim,
    Definition,
    DefinitionKind,
    Definitions,
    Journal,
    Lease,
    ResultCache,
    RunChange,
    Store,
)

_FOR_EVER: Final = 10**9
_KINDS: Final[tuple[DefinitionKind, ...]] = get_args(DefinitionKind)


class ShadowStore:
    """A store in memory in front of another one.

    Args:
        behind: Is read, and never written; open while this is used.
    """

    def __init__(self, behind: Store) -> None:
        self._memory = MemoryStore(keep_ended=_FOR_EVER)
        self._definitions = _Definitions(self._memory.definitions, behind.definitions)
        self._journal = _Journal(behind.journal)
        self._blobs = _Blobs(self._memory.blobs, behind.blobs)
        self._sealed = _Sealed(behind.sealed)
        self._conversations = _Conversations(behind.conversations)

    async def take_over(self, realm: str) -> None:
        """Copy all definitions that a realm has in its lists, once."""
        await self._definitions.take_over(realm)

    def forget_runs(self) -> None:
        """Forget all runs that were written here."""
        self._journal.forget()

    @property
    def definitions(self) -> Definitions:
        """Copies of those of the realms that were taken over."""
        return self._definitions

    @property
    def journal(self) -> Journal:
        """The runs that were written here, and a view of all others."""
        return self._journal

    @property
    def approvals(self) -> ApprovalStore:
        """None: what waits is asked of the journal."""
        return self._memory.approvals

    @property
    def cache(self) -> ResultCache:
        """Empty at first."""
        return self._memory.cache

    @property
    def blobs(self) -> Blobs:
        """Its own, and those of the store behind."""
        return self._blobs

    @property
    def api_keys(self) -> ApiKeys:
        """Empty at first."""
        return self._memory.api_keys

    @property
    def sealed(self) -> SealedValues:
        """Those of the store behind, with what was changed here."""
        return self._sealed

    @property
    def conversations(self) -> ConversationStore:
        """Those of the store behind, which nobody can change."""
        return self._conversations

    @property
    def counters(self) -> Counters:
        """Empty at first."""
        return self._memory.counters

    @property
    def retention(self) -> RetentionStore:
        """Of what is here."""
        return self._memory.retention

    async def open(self) -> None:
        """Nothing to connect."""

    async def close(self) -> None:
        """Nothing to let go of; the store behind stays open."""


class _Definitions:
    """Definitions in memory, begun with those of another store.

    Args:
        memory: Has the copies.
        behind: Has what is copied, and the revisions of names that were removed.
    """

    def __init__(self, memory: Definitions, behind: Definitions) -> None:
        self._memory = memory
        self._behind = behind
        self.save = memory.save
        self.save_all = memory.save_all
        self.changes = memory.changes
        self.changes_since = memory.changes_since
        self.revisions = memory.revisions
        self.set_status = memory.set_status
        self.remove = memory.remove

    async def take_over(self, realm: str) -> None:
        """Copy all that a realm has in its lists, once."""
        if await self._memory.changes(realm) == 0:
            for kind in _KINDS:
                for definition in await self._behind.revisions(kind, realm):
                    await self._memory.save(definition)

    async def get(self, realm: str, content_hash: str) -> Definition | None:
        """The revision with this hash, here or behind."""
        return await self._memory.get(realm, content_hash) or await self._behind.get(realm, content_hash)


class _Journal:
    """A journal in memory, which shows the runs of another one too.

    Args:
        behind: The other one.
    """

    def __init__(self, behind: Journal) -> None:
        self._behind = behind
        self._memory: Journal = MemoryStore(keep_ended=_FOR_EVER).journal
        self._here: set[str] = set()

    def forget(self) -> None:
        """Forget all runs that are here."""
        self._memory = MemoryStore(keep_ended=_FOR_EVER).journal
        self._here.clear()

    def create(self, run: Run, first: Event, *, lease: Lease | None = None) -> Awaitable[None]:
        self._here.add(run.run_id)
        return self._memory.create(run, first, lease=lease)

    async def claim(self, run_id: str, *, owner: str, now: datetime, lease_s: float) -> Claim | None:
        return await self._memory.claim(run_id, owner=owner, now=now, lease_s=lease_s)

    async def claimable(self, *, now: datetime, limit: int) -> Sequence[str]:
        return await self._memory.claimable(now=now, limit=limit)

    async def renew(self, run_ids: Sequence[str], *, owner: str, now: datetime, lease_s: float) -> Sequence[str]:
        return await self._memory.renew(run_ids, owner=owner, now=now, lease_s=lease_s)

    def append(
        self, run_id: str, epoch: int, events: Sequence[RunEvent], change: RunChange | None = None
    ) -> Awaitable[None]:
        return self._memory.append(run_id, epoch, events, change)

    async def signal(self, run_id: str, signal: Signal) -> bool:
        return await self._memory.signal(run_id, signal)

    async def signal_all(self, signals: Sequence[tuple[str, Signal]]) -> bool:
        return await self._memory.signal_all(signals)

    async def signals(self, run_id: str) -> Mapping[str, Signal]:
        return await self._of(run_id).signals(run_id)

    async def runs_with_signal(self, name: str, run_ids: Sequence[str]) -> Sequence[str]:
        return await self._memory.runs_with_signal(name, run_ids)

    async def run(self, run_id: str) -> Run:
        return await self._of(run_id).run(run_id)

    async def runs(
        self,
        realm: str,
        *,
        tool: str | None = None,
        made_by: str | None = None,
        status: RunStatus | None = None,
        before: str | None = None,
        limit: int = 50,
    ) -> Sequence[Run]:
        return await self._behind.runs(realm, tool=tool, made_by=made_by, status=status, before=before, limit=limit)

    async def find(self, realm: str, query: StoreQuery) -> Sequence[Run]:
        return await self._behind.find(realm, query)

    async def count(self, realm: str, condition: Condition) -> int:
        return await self._behind.count(realm, condition)

    async def ended_runs(
        self, realm: str, *, tool: str, after: tuple[datetime, str], limit: int = 100
    ) -> Sequence[Run]:
        return await self._behind.ended_runs(realm, tool=tool, after=after, limit=limit)

    async def find_ids(self, realm: str, prefix: str, *, limit: int) -> Sequence[str]:
        return await self._behind.find_ids(realm, prefix, limit=limit)

    async def events(self, run_id: str, *, after: int = 0, limit: int | None = None) -> Sequence[RunEvent]:
        return await self._of(run_id).events(run_id, after=after, limit=limit)

    def _of(self, run_id: str) -> Journal:
        return self._memory if run_id in self._here else self._behind


class _Blobs:
    """Blobs in memory, in front of others."""

    def __init__(self, memory: Blobs, behind: Blobs) -> None:
        self._memory = memory
        self._behind = behind

    async def put(self, data: bytes, *, realm: str, made_by: str, content_type: str = "application/json") -> str:
        return await self._memory.put(data, realm=realm, made_by=made_by, content_type=content_type)

    async def get(self, realm: str, digest: str) -> bytes:
        try:
            return await self._memory.get(realm, digest)
        except NotFound:
            return await self._behind.get(realm, digest)

    async def remove(self, realm: str, digests: Sequence[str], *, untouched_since: datetime) -> Sequence[str]:
        return await self._memory.remove(realm, digests, untouched_since=untouched_since)


class _Sealed:
    """Sealed values of another store, and what has become of them here; null for one that was removed."""

    def __init__(self, behind: SealedValues) -> None:
        self._behind = behind
        self._changed: dict[SealedKey, SealedValue | None] = {}

    async def put(self, value: SealedValue) -> None:
        known = await self.get(value.place)
        require_next(value, known.version if known else 0)
        self._changed[value.place] = value

    async def get(self, place: SealedKey) -> SealedValue | None:
        return self._changed[place] if place in self._changed else await self._behind.get(place)

    async def list(self, realm: str | None) -> Sequence[SealedValue]:
        found = {value.place: value for value in await self._behind.list(realm)}
        found |= {place: value for place, value in self._changed.items() if realm in {None, place.realm} and value}
        return [value for place, value in sorted(found.items()) if self._changed.get(place, value) is not None]

    async def reseal(self, old: SealedValue, sealed: str) -> bool:
        del old, sealed
        raise _unchangeable("seals values again")

    async def remove(self, place: SealedKey) -> bool:
        known = await self.get(place)
        self._changed[place] = None
        return known is not None


class _Conversations:
    """Conversations of another store, to be read."""

    def __init__(self, behind: ConversationStore) -> None:
        self._behind = behind

    async def add(self, conversation: Conversation) -> None:
        del conversation
        raise _unchangeable("keeps conversations")

    async def get(self, realm: str, conversation_id: str) -> Conversation | None:
        return await self._behind.get(realm, conversation_id)

    async def list(
        self,
        realm: str,
        wanted: ConversationFilter = ANY_CONVERSATION,
        *,
        before: str | None = None,
        limit: int = 50,
    ) -> Sequence[Conversation]:
        return await self._behind.list(realm, wanted, before=before, limit=limit)

    async def find(self, realm: str, query: StoreQuery) -> Sequence[Conversation]:
        return await self._behind.find(realm, query)

    async def count(self, realm: str, condition: Condition) -> int:
        return await self._behind.count(realm, condition)

    async def find_ids(self, realm: str, prefix: str, *, limit: int) -> Sequence[str]:
        return await self._behind.find_ids(realm, prefix, limit=limit)

    async def replace(self, conversation: Conversation) -> None:
        del conversation
        raise _unchangeable("keeps conversations")

    async def remove(self, realm: str, conversation_id: str, *, revision: int | None = None) -> bool:
        del realm, conversation_id, revision
        raise _unchangeable("keeps conversations")


def _unchangeable(what: str) -> PermissionDenied:
    return PermissionDenied(f"a shadow of a store never {what}; do it in the store itself")

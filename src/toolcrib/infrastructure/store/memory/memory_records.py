"""Approvals, conversations, counters, encrypted values and blobs of the store in memory."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from heapq import nsmallest
from typing import TypeVar

from toolcrib.contracts import Approval, Conversation, NotFound, RunEvent, Signal, digest
from toolcrib.infrastructure.queries.grammar import Condition
from toolcrib.infrastructure.queries.rows import Field, compile_test, sort_page
from toolcrib.infrastructure.store.ports.queried_fields import APPROVAL_FIELDS, CONVERSATION_FIELDS, StoreQuery
from toolcrib.infrastructure.store.ports.records import (
    ANY_CONVERSATION,
    ApprovalFilter,
    Charge,
    ConversationFilter,
    Reserved,
    SealedKey,
    SealedValue,
    exists,
    no_approval,
    no_conversation,
    require_next,
)
from toolcrib.infrastructure.store.ports.records import require_next_sealed as require_next_of_sealed
from toolcrib.infrastructure.store.ports.state_changes import (
    Answered,
    Withdrawn,
    answer_from_signal,
    approval_from_event,
    change_from_event,
)

T = TypeVar("T")


def beginning_with(prefix: str, ids: Iterable[str], limit: int) -> Sequence[str]:
    """The first ids that begin with a prefix, sorted."""
    return nsmallest(limit, (each for each in ids if each.startswith(prefix)))


def find_rows(rows: Iterable[T], fields: Mapping[str, Field[T]], query: StoreQuery) -> list[T]:
    """The rows of a page."""
    met = filter(compile_test(query.condition, fields), rows)
    return sort_page(met, query.order, fields, after=query.after, limit=query.limit)


def count_rows(rows: Iterable[T], fields: Mapping[str, Field[T]], condition: Condition) -> int:
    """How many rows meet a condition."""
    return sum(map(compile_test(condition, fields), rows))


class MemoryApprovals:
    """Approvals, in a dictionary that the journal of the same store keeps."""

    def __init__(self) -> None:
        self._rows: dict[str, dict[str, Approval]] = {}
        """By run, and by the signal that decides each."""

    async def get(self, realm: str, approval_id: str) -> Approval:
        found = next((row for row in self._of(realm) if row.approval_id == approval_id), None)
        if found is None:
            raise no_approval(approval_id)
        return found

    async def page(
        self, realm: str, which: ApprovalFilter, *, after: str | None = None, limit: int = 50
    ) -> Sequence[Approval]:
        last = _age(await self.get(realm, after)) if after is not None else None
        page = (
            row
            for row in self._of(realm)
            if which.status in {None, row.status}
            and which.tool in {None, row.tool}
            and which.run_id in {None, row.run_id, row.root_run_id}
            and (last is None or _age(row) > last)
        )
        return nsmallest(limit, page, key=_age)

    async def find(self, realm: str, query: StoreQuery) -> Sequence[Approval]:
        return find_rows(self._of(realm), APPROVAL_FIELDS, query)

    async def count(self, realm: str, condition: Condition) -> int:
        return count_rows(self._of(realm), APPROVAL_FIELDS, condition)

    async def find_ids(self, realm: str, prefix: str, *, limit: int) -> Sequence[str]:
        return beginning_with(prefix, (row.approval_id for row in self._of(realm)), limit)

    def follow(self, entry: RunEvent) -> None:
        """Take in an event."""
        if entry.event.type == "run_finished" and entry.run_id not in self._rows:
            return
        row = approval_from_event(entry)
        if row is not None:
            self._rows.setdefault(row.run_id, {}).setdefault(row.signal, row)
        change = change_from_event(entry)
        if change is not None:
            self._change(entry.run_id, change)

    def hear(self, run_id: str, signal: Signal) -> None:
        """Take in a signal that was left for a run."""
        answer = answer_from_signal(signal)
        if answer is not None:
            self._change(run_id, answer)

    def forget(self, run_id: str) -> None:
        """Forget the rows of a run that is forgotten."""
        self._rows.pop(run_id, None)

    def count_of(self, run_id: str) -> int:
        """How many rows a run has."""
        return len(self._rows.get(run_id, ()))

    def texts(self) -> Iterator[str]:
        """All that the rows say."""
        yield from (row.model_dump_json() for rows in self._rows.values() for row in rows.values())

    def _of(self, realm: str) -> list[Approval]:
        return [row for rows in self._rows.values() for row in rows.values() if row.realm == realm]

    def _change(self, run_id: str, change: Answered | Withdrawn) -> None:
        rows = self._rows.get(run_id, {})
        for signal, row in rows.items():
            if change.signal not in {None, signal}:
                continue
            if isinstance(change, Withdrawn):
                rows[signal] = row.model_copy(update={"status": "cancelled", "reason": change.reason})
            elif row.status == "waiting":
                rows[signal] = row.model_copy(
                    update={
                        "status": change.status,
                        "decided_by": change.by,
                        "decided_at": change.at,
                        "reason": change.reason,
                        "edited_input": change.edited_input,
                    }
                )


def _age(row: Approval) -> tuple[object, str]:
    return row.requested_at, row.approval_id


class MemoryConversations:
    """Conversations, in a dictionary."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str], Conversation] = {}

    async def add(self, conversation: Conversation) -> None:
        if any(known == conversation.conversation_id for _, known in self._rows):
            raise exists(conversation.conversation_id)
        self._rows[_key(conversation)] = conversation

    async def get(self, realm: str, conversation_id: str) -> Conversation | None:
        return self._rows.get((realm, conversation_id))

    async def list(
        self,
        realm: str,
        wanted: ConversationFilter = ANY_CONVERSATION,
        *,
        before: str | None = None,
        limit: int = 50,
    ) -> Sequence[Conversation]:
        last = self._rows.get((realm, before)) if before is not None else None
        if before is not None and last is None:
            raise no_conversation(before)
        found = (row for row in self._rows.values() if row.realm == realm and wanted.takes(row))
        page = sorted(
            (row for row in found if last is None or _conversations_age(row) < _conversations_age(last)),
            key=_conversations_age,
            reverse=True,
        )
        return page[:limit]

    async def find(self, realm: str, query: StoreQuery) -> Sequence[Conversation]:
        return find_rows(self._of(realm), CONVERSATION_FIELDS, query)

    async def count(self, realm: str, condition: Condition) -> int:
        return count_rows(self._of(realm), CONVERSATION_FIELDS, condition)

    def _of(self, realm: str) -> Iterator[Conversation]:
        return (row for row in self._rows.values() if row.realm == realm)

    async def find_ids(self, realm: str, prefix: str, *, limit: int) -> Sequence[str]:
        return beginning_with(prefix, (known for its_realm, known in self._rows if its_realm == realm), limit)

    async def replace(self, conversation: Conversation) -> None:
        known = self._rows.get(_key(conversation))
        require_next(conversation, known.revision if known else None)
        self._rows[_key(conversation)] = conversation

    async def remove(self, realm: str, conversation_id: str, *, revision: int | None = None) -> bool:
        known = self._rows.get((realm, conversation_id))
        if known is None or revision not in {None, known.revision}:
            return False
        del self._rows[realm, conversation_id]
        return True

    def texts(self) -> Iterator[str]:
        """All that the rows say."""
        yield from (row.model_dump_json() for row in self._rows.values())


def _key(conversation: Conversation) -> tuple[str, str]:
    return conversation.realm, conversation.conversation_id


def _conversations_age(conversation: Conversation) -> tuple[datetime, str]:
    return conversation.created_at, conversation.conversation_id


_SETTLED = ""
"""The ticket of what was spent."""


class MemoryCounters:
    """Counters, in a dictionary."""

    def __init__(self) -> None:
        self._entries: dict[str, dict[str, tuple[int, datetime]]] = {}
        """Amount and end of each ticket, by key."""

    async def reserve(self, ticket: str, charges: Sequence[Charge], *, now: datetime, until: datetime) -> Reserved:
        used = tuple(self._amount_used(charge.key, ticket, now) for charge in charges)
        pairs = enumerate(zip(used, charges, strict=True))
        refused = next((index for index, (before, each) in pairs if before + each.amount > each.limit), None)
        if refused is None:
            for charge in charges:
                self._entries.setdefault(charge.key, {})[ticket] = charge.amount, until
        return Reserved(used, refused)

    async def settle(self, ticket: str, charges: Sequence[Charge]) -> None:
        for charge in charges:
            entries = self._entries.setdefault(charge.key, {})
            entries.pop(ticket, None)
            before, _ = entries.get(_SETTLED, (0, None))
            entries[_SETTLED] = before + charge.amount, charge.expires_at

    async def purge(self, *, now: datetime) -> int:
        old = [
            (key, ticket)
            for key, entries in self._entries.items()
            for ticket, (_, ends) in entries.items()
            if ends <= now
        ]
        for key, ticket in old:
            del self._entries[key][ticket]
        self._entries = {key: entries for key, entries in self._entries.items() if entries}
        return len(old)

    def _amount_used(self, key: str, ticket: str, now: datetime) -> int:
        entries = self._entries.get(key, {}).items()
        return sum(amount for name, (amount, ends) in entries if name != ticket and ends > now)


class MemorySealedValues:
    """Sealed values, in a dictionary."""

    def __init__(self) -> None:
        self._values: dict[SealedKey, SealedValue] = {}

    async def put(self, value: SealedValue) -> None:
        known = self._values.get(value.place)
        require_next_of_sealed(value, known.version if known else 0)
        self._values[value.place] = value

    async def get(self, place: SealedKey) -> SealedValue | None:
        return self._values.get(place)

    async def list(self, realm: str | None) -> Sequence[SealedValue]:
        return [self._values[place] for place in sorted(self._values) if realm in {None, place.realm}]

    async def reseal(self, old: SealedValue, sealed: str) -> bool:
        if self._values.get(old.place) != old:
            return False
        self._values[old.place] = replace(old, sealed=sealed)
        return True

    async def remove(self, place: SealedKey) -> bool:
        return self._values.pop(place, None) is not None


class MemoryBlobs:
    """Blobs by realm and digest, in a dictionary.

    Args:
        now: Tells the time.
    """

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._data: dict[tuple[str, str], bytes] = {}
        self._put_at: dict[tuple[str, str], datetime] = {}

    async def put(self, data: bytes, *, realm: str, made_by: str, content_type: str = "application/json") -> str:
        del made_by, content_type
        name = digest(data)
        self._data[realm, name] = data
        self._put_at[realm, name] = self._now()
        return name

    async def get(self, realm: str, digest: str) -> bytes:
        try:
            return self._data[realm, digest]
        except KeyError:
            msg = f"realm {realm!r} has no blob {digest}"
            raise NotFound(msg) from None

    async def remove(self, realm: str, digests: Sequence[str], *, untouched_since: datetime) -> Sequence[str]:
        old = {name for owner, name, _ in self.put_before(untouched_since) if owner == realm}
        removed = [digest for digest in digests if digest in old]
        for name in removed:
            del self._data[realm, name], self._put_at[realm, name]
        return removed

    def put_before(self, moment: datetime) -> Iterator[tuple[str, str, int]]:
        """Realm, digest and size of each that was last put before a moment."""
        for (realm, name), at in sorted(self._put_at.items()):
            if at < moment:
                yield realm, name, len(self._data[realm, name])

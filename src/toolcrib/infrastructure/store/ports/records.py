"""Ports for conversations, approvals, counters and encrypted values.

A conversation's row changes only from the revision that its writer has read, so one of two concurrent changes is
refused. A store derives approvals from the journal, in the same transaction. An amount reserved in a counter counts
until it is settled or expires, so reservations of a dead process are released. Encrypted values are opaque to the
store.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple, Protocol

from msgspec import Struct

from toolcrib.contracts import Approval, ApprovalStatus, Conflict, Conversation, ConversationStatus, NotFound
from toolcrib.infrastructure.queries.grammar import Condition
from toolcrib.infrastructure.store.ports.queried_fields import StoreQuery


@dataclass(frozen=True, slots=True)
class ApprovalFilter:
    """Which approvals are read."""

    status: ApprovalStatus | None = None
    tool: str | None = None
    """A name without version."""
    run_id: str | None = None
    """Of the run that makes the call, or of the outermost one."""


class ApprovalStore(Protocol):
    """Approvals by id."""

    async def get(self, realm: str, approval_id: str) -> Approval:
        """One approval.

        Raises:
            NotFound: The realm has none of this id.
        """
        ...

    async def page(
        self, realm: str, which: ApprovalFilter, *, after: str | None = None, limit: int = 50
    ) -> Sequence[Approval]:
        """A page of approvals, oldest first. `after` is the last id of the page before.

        Raises:
            NotFound: The realm has no approval `after` which the page could begin.
        """
        ...

    async def find(self, realm: str, query: StoreQuery) -> Sequence[Approval]:
        """The approvals of a realm that meet a condition, in an order, from a place on.

        Raises:
            InvalidInput: The condition compares a field with what it cannot be.
        """
        ...

    async def count(self, realm: str, condition: Condition) -> int:
        """How many approvals of a realm meet a condition.

        Raises:
            InvalidInput: As `find` raises.
        """
        ...

    async def find_ids(self, realm: str, prefix: str, *, limit: int) -> Sequence[str]:
        """The first ids of the realm's approvals that begin with a prefix, sorted."""
        ...


def no_approval(approval_id: str) -> NotFound:
    """The error for an id that names no approval."""
    return NotFound(f"no approval {approval_id!r}; list the realm's approvals to see their ids")


class ConversationFilter(NamedTuple):
    """Which conversations are meant; null for any."""

    principal: str | None = None
    agent: str | None = None
    status: ConversationStatus | None = None

    def takes(self, conversation: Conversation) -> bool:
        """Whether a conversation is meant."""
        found = (conversation.principal, conversation.agent, conversation.status)
        return all(wanted in {None, known} for wanted, known in zip(self, found, strict=True))


ANY_CONVERSATION: Final = ConversationFilter()


class ConversationStore(Protocol):
    """Conversations by id."""

    async def add(self, conversation: Conversation) -> None:
        """Store a new one.

        Raises:
            Conflict: There is one of this id.
        """
        ...

    async def get(self, realm: str, conversation_id: str) -> Conversation | None:
        """The conversation, if the realm has it."""
        ...

    async def list(
        self,
        realm: str,
        wanted: ConversationFilter = ANY_CONVERSATION,
        *,
        before: str | None = None,
        limit: int = 50,
    ) -> Sequence[Conversation]:
        """A page of conversations, newest first; `before` is the last id of the page before.

        Raises:
            NotFound: The realm has no conversation `before`.
        """
        ...

    async def find(self, realm: str, query: StoreQuery) -> Sequence[Conversation]:
        """The conversations of a realm that meet a condition, in an order, from a place on.

        Raises:
            InvalidInput: The condition compares a field with what it cannot be.
        """
        ...

    async def count(self, realm: str, condition: Condition) -> int:
        """How many conversations of a realm meet a condition.

        Raises:
            InvalidInput: As `find` raises.
        """
        ...

    async def find_ids(self, realm: str, prefix: str, *, limit: int) -> Sequence[str]:
        """The first ids of the realm's conversations that begin with a prefix, sorted."""
        ...

    async def replace(self, conversation: Conversation) -> None:
        """Write the next revision of a conversation.

        Raises:
            Conflict: The revision before it is not the one that is stored: somebody else has changed it.
            NotFound: The realm has no such conversation (any more).
        """
        ...

    async def remove(self, realm: str, conversation_id: str, *, revision: int | None = None) -> bool:
        """Forget a conversation, at this revision only if one is given. Of several who do so at once, one gets true."""
        ...


def exists(conversation_id: str) -> Conflict:
    """The error for an id that is not new."""
    return Conflict(f"a conversation {conversation_id!r} already exists; use a new id")


def no_conversation(conversation_id: str) -> NotFound:
    """The error for an id that names no conversation."""
    return NotFound(f"there is no conversation {conversation_id!r}; list the conversations to see their ids")


def require_next(conversation: Conversation, stored: int | None) -> None:
    """Refuse a revision that does not follow the stored one; null stands for none.

    Raises:
        NotFound: There is none.
        Conflict: Names both.
    """
    if stored is None:
        raise no_conversation(conversation.conversation_id)
    if conversation.revision != stored + 1:
        msg = (
            f"conversation {conversation.conversation_id!r} has revision {stored} and this would be revision "
            f"{conversation.revision}: it has changed since it was read; read it again and repeat the change"
        )
        raise Conflict(msg)


class Charge(Struct, frozen=True):
    """An amount for one counter."""

    realm: str
    made_by: str
    key: str
    amount: int
    limit: int
    """The most that the counter may come to by a reservation."""
    expires_at: datetime
    """When the counter may be forgotten."""


class Reserved(Struct, frozen=True):
    """What became of a reservation."""

    used: tuple[int, ...]
    """What each counter had come to before, other reservations included."""
    refused: int | None = None
    """The first charge that did not fit, as an index; null if all did, and only then was anything reserved."""


class Counters(Protocol):
    """Counters by key."""

    async def reserve(self, ticket: str, charges: Sequence[Charge], *, now: datetime, until: datetime) -> Reserved:
        """Set amounts aside, all of them or none.

        Args:
            ticket: Names the reservation; one that has the same name is replaced.
            charges: For which counters; no key is there twice.
            now: The present.
            until: When the reservation is over if nobody settles it.

        Raises:
            Unavailable: The counters cannot be reached; perhaps it was reserved.
        """
        ...

    async def settle(self, ticket: str, charges: Sequence[Charge]) -> None:
        """Count amounts in the place of a reservation, whether or not its time is over. No limit is asked.

        Raises:
            Unavailable: The counters cannot be reached.
        """
        ...

    async def purge(self, *, now: datetime) -> int:
        """Forget what has expired; returns how many entries that were."""
        ...


class SealedKey(NamedTuple):
    """Where a sealed value is kept."""

    realm: str
    """Empty for what belongs to all realms."""
    scope: str
    """What kind of thing it is, and whose: `realm`, `user:ann`, `connection:ann`."""
    name: str


@dataclass(frozen=True, slots=True)
class SealedValue:
    """One version of a sealed value."""

    place: SealedKey
    version: int
    """1, 2, 3…; each change is a new one, which takes the place of the old one."""
    sealed: str = field(repr=False)
    made_by: str
    created_at: datetime


class SealedValues(Protocol):
    """Sealed values by place."""

    async def put(self, value: SealedValue) -> None:
        """Store a version.

        Raises:
            Conflict: The version before it is not the one that is stored: somebody else has changed the value.
        """
        ...

    async def get(self, place: SealedKey) -> SealedValue | None:
        """The value at a place."""
        ...

    async def list(self, realm: str | None) -> Sequence[SealedValue]:
        """All values of a realm, of every realm for null; by place."""
        ...

    async def reseal(self, old: SealedValue, sealed: str) -> bool:
        """Write the same version under another key; false if it has changed since it was read."""
        ...

    async def remove(self, place: SealedKey) -> bool:
        """Remove a value. Of those who remove it at the same time, one gets true."""
        ...


def require_next_sealed(value: SealedValue, stored: int) -> None:
    """Refuse a version that does not follow the stored one; 0 stands for none.

    Raises:
        Conflict: Names both.
    """
    if value.version != stored + 1:
        msg = (
            f"{value.place.name!r} of {value.place.scope} has version {stored} and this would be version "
            f"{value.version}: it has changed since it was read; read it again and repeat the change"
        )
        raise Conflict(msg)

"""Rows of conversations: whose each is, and how far it has come. What was said is in the journals of its turns.

The store decides nothing about turns. It keeps one promise on which everything else stands: a row changes only from
the revision that its author has read, so of two changes at the same time one is refused.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

from toolcrib.contracts import Conflict, Conversation, ConversationStatus, NotFound


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


class Conversations(Protocol):
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
    return Conflict(f"a conversation {conversation_id!r} exists; make a new id")


def no_conversation(conversation_id: str) -> NotFound:
    """The error for an id that names no conversation."""
    return NotFound(f"there is no conversation {conversation_id!r}; list the conversations for the ids there are")


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

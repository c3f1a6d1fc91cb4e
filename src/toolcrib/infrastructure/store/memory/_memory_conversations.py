"""Conversations in memory."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from toolcrib.contracts import Conversation
from toolcrib.infrastructure.store.ports.records import (
    ANY_CONVERSATION,
    ConversationFilter,
    exists,
    no_conversation,
    require_next,
)


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
        page = sorted((row for row in found if last is None or _age(row) < _age(last)), key=_age, reverse=True)
        return page[:limit]

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


def _age(conversation: Conversation) -> tuple[datetime, str]:
    return conversation.created_at, conversation.conversation_id

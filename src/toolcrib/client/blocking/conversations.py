"""The synchronous operations on conversations.

Written by `python -m tools.rest_client`.
"""

from collections.abc import Iterator
from typing import Literal

from toolcrib.client.answers import ConversationDetail, ConversationPage, Count
from toolcrib.client.groups import SyncApi
from toolcrib.client.operations import conversations as asynchronous
from toolcrib.contracts import Conversation, JsonObject


class ConversationsApi(SyncApi[asynchronous.AsyncConversationsApi]):
    """The operations on conversations."""

    def query(
        self,
        *,
        filter: str | None = None,
        sort: str | None = None,
        after: str | None = None,
        limit: int | None = None,
        idempotency_key: str | None = None,
    ) -> ConversationPage:
        """The conversations that a filter means, page by page."""
        return self._loop.run(
            self._api.query, filter=filter, sort=sort, after=after, limit=limit, idempotency_key=idempotency_key
        )

    def count(self, *, filter: str | None = None) -> Count:
        """How many conversations a filter means, of those that the caller may see."""
        return self._loop.run(self._api.count, filter=filter)

    def list(
        self,
        *,
        agent: str | None = None,
        status: Literal["active", "completed", "archived"] | None = None,
        everybody: bool | None = None,
        filter: str | None = None,
        sort: str | None = None,
        after: str | None = None,
        before: str | None = None,
        limit: int | None = None,
    ) -> ConversationPage:
        """The caller's conversations, newest first."""
        return self._loop.run(
            self._api.list,
            agent=agent,
            status=status,
            everybody=everybody,
            filter=filter,
            sort=sort,
            after=after,
            before=before,
            limit=limit,
        )

    def each(
        self,
        *,
        agent: str | None = None,
        status: Literal["active", "completed", "archived"] | None = None,
        everybody: bool | None = None,
        filter: str | None = None,
        sort: str | None = None,
        before: str | None = None,
        limit: int | None = None,
    ) -> Iterator[Conversation]:
        """The caller's conversations, newest first.

        All of them: the next page is read when it is needed.
        """
        return self._loop.iterate(
            self._api.each,
            agent=agent,
            status=status,
            everybody=everybody,
            filter=filter,
            sort=sort,
            before=before,
            limit=limit,
        )

    def get(self, conversation_id: str, *, after: int | None = None, limit: int | None = None) -> ConversationDetail:
        """A conversation with its turns."""
        return self._loop.run(self._api.get, conversation_id, after=after, limit=limit)

    def change(
        self,
        conversation_id: str,
        *,
        title: str | None = None,
        status: Literal["active", "completed", "archived"] | None = None,
        shared_context: JsonObject | None = None,
    ) -> Conversation:
        """Set the title, the status or the variables of one's own conversation."""
        return self._loop.run(
            self._api.change, conversation_id, title=title, status=status, shared_context=shared_context
        )

    def delete(self, conversation_id: str) -> None:
        """Delete a conversation; the runs of its turns stay in the journal, for audit."""
        return self._loop.run(self._api.delete, conversation_id)

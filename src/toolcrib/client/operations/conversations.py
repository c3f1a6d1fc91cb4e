"""The operations on conversations.

Written by `python -m tools.rest_client`.
"""

from collections.abc import AsyncGenerator
from typing import Literal

from toolcrib.client.answers import ConversationDetail, ConversationPage, Count
from toolcrib.client.groups import AsyncApi
from toolcrib.client.transport import ApiRequest, given
from toolcrib.contracts import Conversation, JsonObject


class AsyncConversationsApi(AsyncApi):
    """The operations on conversations."""

    async def query(
        self,
        *,
        filter: str | None = None,
        sort: str | None = None,
        after: str | None = None,
        limit: int | None = None,
        idempotency_key: str | None = None,
    ) -> ConversationPage:
        """The conversations that a filter means, page by page."""
        return await self._transport.send(
            ConversationPage,
            ApiRequest(
                method="POST",
                path="/api/v1/ai/conversations/query",
                body=given(filter=filter, sort=sort, after=after, limit=limit),
                headers={"Idempotency-Key": idempotency_key},
            ),
        )

    async def count(self, *, filter: str | None = None) -> Count:
        """How many conversations a filter means, of those that the caller may see."""
        return await self._transport.send(
            Count, ApiRequest(method="GET", path="/api/v1/ai/conversations/count", query=given(filter=filter))
        )

    async def list(
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
        return await self._transport.send(
            ConversationPage,
            ApiRequest(
                method="GET",
                path="/api/v1/ai/conversations",
                query=given(
                    agent=agent,
                    status=status,
                    everybody=everybody,
                    filter=filter,
                    sort=sort,
                    after=after,
                    before=before,
                    limit=limit,
                ),
            ),
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
    ) -> AsyncGenerator[Conversation]:
        """The caller's conversations, newest first.

        All of them: the next page is read when it is needed.
        """
        return self._transport.each(
            ConversationPage,
            ApiRequest(
                method="GET",
                path="/api/v1/ai/conversations",
                query=given(
                    agent=agent,
                    status=status,
                    everybody=everybody,
                    filter=filter,
                    sort=sort,
                    before=before,
                    limit=limit,
                ),
            ),
            "after",
        )

    async def get(
        self, conversation_id: str, *, after: int | None = None, limit: int | None = None
    ) -> ConversationDetail:
        """A conversation with its turns."""
        return await self._transport.send(
            ConversationDetail,
            ApiRequest(
                method="GET",
                path="/api/v1/ai/conversations/{conversation_id}",
                place={"conversation_id": conversation_id},
                query=given(after=after, limit=limit),
            ),
        )

    async def change(
        self,
        conversation_id: str,
        *,
        title: str | None = None,
        status: Literal["active", "completed", "archived"] | None = None,
        shared_context: JsonObject | None = None,
    ) -> Conversation:
        """Set the title, the status or the variables of one's own conversation."""
        return await self._transport.send(
            Conversation,
            ApiRequest(
                method="PATCH",
                path="/api/v1/ai/conversations/{conversation_id}",
                place={"conversation_id": conversation_id},
                body=given(title=title, status=status, shared_context=shared_context),
            ),
        )

    async def delete(self, conversation_id: str) -> None:
        """Delete a conversation; the runs of its turns stay in the journal, for audit."""
        await self._transport.send(
            None,
            ApiRequest(
                method="DELETE",
                path="/api/v1/ai/conversations/{conversation_id}",
                place={"conversation_id": conversation_id},
            ),
        )

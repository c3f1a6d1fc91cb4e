"""Routes over conversations: listed, read with their turns, named, closed, deleted. Messages are sent to agents."""

from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import ConfigDict, Field

from toolcrib.contracts import Contract, Conversation, ConversationStatus, ConversationTurn, JsonObject
from toolcrib.interfaces.server.http.context_part import Caller, House
from toolcrib.interfaces.server.http.parsing import JsonRoute

router = APIRouter(prefix="/ai/conversations", route_class=JsonRoute, tags=["conversations"])


class ConversationPage(Contract):
    """Conversations, newest first."""

    items: tuple[Conversation, ...]
    next: str | None
    """`before` of the next page."""


class ConversationDetail(Contract):
    """A conversation with some of its turns, in order."""

    conversation: Conversation
    turns: tuple[ConversationTurn, ...]
    next: int | None
    """`after` of the next page."""


class ConversationChange(Contract):
    """What of a conversation is to be different; what is null or missing stays."""

    model_config = ConfigDict(defer_build=False)

    title: str | None = Field(default=None, max_length=200)
    status: ConversationStatus | None = None
    shared_context: JsonObject | None = None


@router.get("")
async def list_conversations(
    *,
    crib: House,
    caller: Caller,
    agent: str | None = None,
    status: ConversationStatus | None = None,
    everybody: Annotated[bool, Query(description="Those of all principals of the realm.")] = False,
    before: str | None = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> ConversationPage:
    """The caller's conversations, newest first."""
    found = await crib.conversations.list(
        agent=agent, status=status, everybody=everybody, before=before, limit=limit + 1, principal=caller
    )
    more = found[limit - 1].conversation_id if len(found) > limit else None
    return ConversationPage(items=tuple(found[:limit]), next=more)


@router.get("/{conversation_id}")
async def get_conversation(
    conversation_id: str,
    crib: House,
    caller: Caller,
    after: Annotated[int, Query(ge=0, description="Only turns that come after this one.")] = 0,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> ConversationDetail:
    """A conversation with its turns."""
    found = await crib.conversations.get(conversation_id, principal=caller)
    turns = await crib.conversations.turns(conversation_id, after=after, limit=limit, principal=caller)
    more = after + limit if after + limit < found.turn_count else None
    return ConversationDetail(conversation=found, turns=tuple(turns), next=more)


@router.patch("/{conversation_id}")
async def change_conversation(
    conversation_id: str, body: ConversationChange, crib: House, caller: Caller
) -> Conversation:
    """Set the title, the status or the variables of one's own conversation."""
    return await crib.conversations.change(
        conversation_id, title=body.title, status=body.status, shared_context=body.shared_context, principal=caller
    )


@router.delete("/{conversation_id}", status_code=204)
async def delete_conversation(conversation_id: str, crib: House, caller: Caller) -> Response:
    """Delete a conversation; the runs of its turns stay in the journal, for audit."""
    await crib.conversations.delete(conversation_id, principal=caller)
    return Response(status_code=204)

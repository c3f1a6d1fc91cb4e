"""Conversations with agents, and their turns (004). A turn is a run, whose journal has the rest."""

from typing import Literal, TypeAlias

from pydantic import Field

from toolcrib.contracts._base import Contract, JsonObject, Timestamp
from toolcrib.contracts.runs import RunStatus

ConversationStatus: TypeAlias = Literal["active", "completed", "archived"]


class Conversation(Contract):
    """A conversation of one principal with one agent."""

    conversation_id: str
    realm: str
    agent: str
    """Name of the agent."""
    principal: str
    """Id of whose it is."""
    title: str = ""
    status: ConversationStatus = "active"
    turn_count: int = 0
    tokens: int = 0
    """Input and output tokens of all turns."""
    summary: str | None = None
    """What the turns that are no longer shown have come to."""
    shared_context: JsonObject = Field(default_factory=dict)
    """Variables that are carried across turns."""
    created_at: Timestamp
    updated_at: Timestamp


class ConversationTurn(Contract):
    """A message of the user and what the agent made of it."""

    conversation_id: str
    index: int = Field(ge=1)
    """1, 2, 3… without a gap."""
    run_id: str
    message: str
    response: str | None = None
    """Null as long as the run goes on."""
    status: RunStatus
    call_ids: tuple[str, ...] = ()
    """Of the calls that were made, in order."""
    tokens: int = 0
    duration_s: float = 0.0
    created_at: Timestamp

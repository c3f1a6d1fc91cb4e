"""Conversations with agents, and their turns (004).

A turn is a run: its request has the message, its journal what was said and called. A conversation says only whose it is
and how far it has come; it holds no copy of what was said.
"""

from typing import Literal, TypeAlias

from pydantic import Field

from toolcrib.contracts.base.base import Contract, JsonObject, Timestamp
from toolcrib.contracts.runs.runs import RunStatus

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
    ended_turns: int = 0
    """Turns that have ended and are counted below: all, or all but the last one."""
    tokens: int = 0
    """Input and output tokens of the turns that have ended."""
    summary: str | None = None
    """What the turns that are no longer shown to the model have come to."""
    summarized_turns: int = 0
    """How many turns, from the first on, the summary is of."""
    shared_context: JsonObject = Field(default_factory=dict)
    """Variables that are carried across turns."""
    created_at: Timestamp
    updated_at: Timestamp
    revision: int = Field(default=1, ge=1)
    """Grows by one with each change, so that of two changes at the same time one is refused."""


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

"""How a conversation changes: pure functions from one revision to the next, and what a new turn needs.

No store, no engine, no time of its own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from toolcrib.agents import message_of, variables_of
from toolcrib.contracts import (
    WAITING,
    CallFinished,
    Conflict,
    Conversation,
    ConversationTurn,
    InvalidInput,
    JsonObject,
    Run,
    RunEvent,
    RunRequest,
    canonical,
)
from toolcrib.core.runs import response_of

MOST_CONTEXT_BYTES: Final = 64 * 1024
_LONGEST_TITLE: Final = 60
_SENTENCE_ENDS: Final = (". ", "? ", "! ")


@dataclass(frozen=True, slots=True)
class OpenTurn:
    """A turn that a run may be created for, by whoever is first."""

    run_id: str
    """The id that the run must have."""
    index: int | None
    """The turn's place; null if the agent keeps no conversations."""
    conversation_id: str | None

    def bind(self, request: RunRequest) -> RunRequest:
        """The request of the run, as this turn of its conversation."""
        return request.model_copy(update={"conversation_id": self.conversation_id, "turn": self.index})


def title_of(message: str) -> str:
    """A title by rule: the first sentence of the first message, cut between words."""
    text = " ".join(message.split())
    ends = [end + 1 for mark in _SENTENCE_ENDS if (end := text.find(mark)) > 0]
    sentence = text[: min(ends)] if ends else text
    if len(sentence) <= _LONGEST_TITLE:
        return sentence.removesuffix(".")
    words = sentence[:_LONGEST_TITLE].rpartition(" ")[0]
    return f"{(words or sentence[:_LONGEST_TITLE]).rstrip(' ,;:-.')}…"


def check_context(variables: JsonObject) -> None:
    """Refuse variables that are more than a conversation carries.

    Raises:
        InvalidInput: They are no JSON, or too many.
    """
    size = len(canonical(variables))
    if size > MOST_CONTEXT_BYTES:
        msg = f"the context has {size} bytes of JSON, at most {MOST_CONTEXT_BYTES} are kept; put large data into a tool"
        raise InvalidInput(msg)


def changed(conversation: Conversation, at: datetime, changes: Mapping[str, Any]) -> Conversation:
    """The next revision."""
    moved = {"updated_at": at, "revision": conversation.revision + 1}
    return conversation.model_copy(update={**changes, **moved})


def with_turn_ended(conversation: Conversation, run: Run, at: datetime, summary: Mapping[str, Any]) -> Conversation:
    """The next revision, in which the last turn is counted and has left its variables.

    Args:
        conversation: Its last turn is not counted yet.
        run: The run of that turn, ended.
        at: Now.
        summary: What it has made of the turns that are no longer shown, as fields; empty if nothing.
    """
    return changed(
        conversation,
        at,
        {
            "ended_turns": conversation.turn_count,
            "tokens": conversation.tokens + run.usage.total_tokens,
            "shared_context": {**conversation.shared_context, **variables_of(run.request.input)},
            **summary,
        },
    )


def refuse_closed(conversation: Conversation) -> None:
    """Refuse another turn of a conversation that is over.

    Raises:
        Conflict: It is completed or archived.
    """
    if conversation.status != "active":
        msg = (
            f"conversation {conversation.conversation_id!r} is {conversation.status}; set its status to active to go "
            "on with it, or begin a new one"
        )
        raise Conflict(msg)


def under_way(conversation: Conversation, run: Run, waiting_for: tuple[str, ...]) -> Conflict:
    """The error for a message, or another change, while a turn goes on or waits."""
    turn = f"turn {conversation.turn_count} of conversation {conversation.conversation_id!r}"
    if run.status in WAITING:
        what = f"waits in run {run.run_id!r} ({run.status}) for {', '.join(waiting_for)}"
        return Conflict(f"{turn} {what}; answer that or cancel the run, and send this again")
    if run.ended:
        return Conflict(f"another message has become {turn}, in run {run.run_id!r}; send this again if it still holds")
    return Conflict(f"{turn} is under way in run {run.run_id!r} ({run.status}); wait for its end or cancel it")


def turn_of(run: Run, events: Sequence[RunEvent]) -> ConversationTurn:
    """A turn as its run tells it.

    Args:
        run: The run.
        events: Its journal.
    """
    calls = [entry.event.envelope for entry in events if isinstance(entry.event, CallFinished)]
    return ConversationTurn(
        conversation_id=run.request.conversation_id or "",
        index=run.request.turn or 1,
        run_id=run.run_id,
        message=message_of(run.request.input) or "",
        response=response_of(run.output),
        status=run.status,
        call_ids=tuple(envelope.call_id for envelope in calls),
        tokens=run.usage.total_tokens,
        duration_s=(events[-1].at - run.created_at).total_seconds() if events else 0.0,
        created_at=run.created_at,
    )

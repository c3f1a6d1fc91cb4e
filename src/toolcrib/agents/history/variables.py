"""An agent's initial knowledge: earlier messages and variables.

A `Recall` returns the earlier messages. It must return the same ones for a resumed run, so it records them
(`RunContext.once`).
"""

from collections.abc import Sequence
from typing import Protocol, cast

import orjson
from msgspec import Struct

from toolcrib.contracts import AgentImplementation, Attachment, Json, JsonObject
from toolcrib.core.runs import RunContext
from toolcrib.llm import Message, user
from toolcrib.llm.base.files import with_files


class RecalledContext(Struct, frozen=True):
    """What is remembered for one run."""

    messages: tuple[Message, ...] = ()
    """What was said before, oldest first; they stand before the user's message, and not again in the journal."""
    variables: JsonObject = {}
    """Variables of the conversation; those of the run's own input come before them."""


class ConversationStart(Struct, frozen=True):
    """What makes the tools that are offered in a conversation the same in all of its turns."""

    message: str | None = None
    """The first message, by which tools are chosen; null in the first turn, and in a run that is none."""
    found: tuple[str, ...] = ()
    """Names of the hidden tools that the model has found in the turns before, in order."""


class Recall(Protocol):
    """Remembers for agents."""

    async def __call__(self, context: RunContext, agent: AgentImplementation, room: int | None) -> RecalledContext:
        """What the agent of a run remembers. The same each time that a run asks.

        Args:
            context: The run.
            agent: Its agent.
            room: Tokens that may be remembered; null for any number.
        """
        ...

    async def conversation_start(self, context: RunContext) -> ConversationStart:
        """What the conversation of a run has so far that its offer of tools depends on."""
        ...


def opening(arguments: Json, recalled: RecalledContext, files: Sequence[Attachment] = ()) -> Message:
    """The user's message as the model is shown it, the variables before it and the files after it.

    Args:
        arguments: `message`, `context`, and whatever else the agent's parameters are: all others are variables too.
        recalled: What is remembered.
        files: What came with the message.
    """
    message = message_of(arguments)
    others = {name: value for name, value in _object(arguments).items() if name not in ("message", "context")}
    variables = {**recalled.variables, **others, **variables_of(arguments)}
    context_text = f"Context:\n{_dump(variables)}" if variables or message is None else ""
    said = user("\n\n".join(part for part in (context_text, message) if part))
    return with_files(said, files) if files else said


def message_of(arguments: Json) -> str | None:
    """What an agent is asked, in words."""
    message = _object(arguments).get("message")
    return message if isinstance(message, str) else None


def variables_of(arguments: Json) -> JsonObject:
    """The variables that an agent is told beside its message."""
    return _object(_object(arguments).get("context"))


def _object(value: Json) -> JsonObject:
    return cast("JsonObject", value) if isinstance(value, dict) else {}


def _dump(value: Json) -> str:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()

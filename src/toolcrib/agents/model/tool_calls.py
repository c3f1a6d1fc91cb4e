"""The tool calls of an answer, as far as they can be taken as they are.

A model's answer goes back to it with the outcomes of its calls, which are told apart by id. So ids are made unique, and
arguments that are far too long are left out of what goes back; what the model wrote stands in the journal as it was.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec
import orjson

from toolcrib.contracts import ErrorCode, Json, Reason, ToolError
from toolcrib.core.executor import error
from toolcrib.llm import Message, Part, ToolCall

MOST_CHARACTERS: Final = 1_000_000
"""Of the arguments of one call."""


class Calls(NamedTuple):
    """An answer with calls."""

    message: Message
    """As it goes back to the model."""
    made: Mapping[str, ToolCall]
    """By position, in the model's order."""
    refused: Mapping[str, ToolError]
    """Why some of them are not even judged, by position."""


def read_calls(message: Message, turn: int, *, parallel: bool) -> Calls:
    """The calls of an answer.

    Args:
        message: The answer.
        turn: Its number, for the positions: `t3.c1`, `t3.c2`…
        parallel: Whether it may hold several calls.
    """
    parts: list[Part] = []
    made: dict[str, ToolCall] = {}
    refused: dict[str, ToolError] = {}
    ids: set[str] = set()
    for part in message.parts:
        if not isinstance(part, ToolCall):
            parts.append(part)
            continue
        position = f"t{turn}.c{len(made) + 1}"
        call = part
        if not call.id or call.id in ids:
            call = msgspec.structs.replace(call, id=f"{call.id or 'call'}_{len(made) + 1}")
        ids.add(call.id)
        if len(call.args) > MOST_CHARACTERS:
            refused[position] = _too_long(call)
            call = msgspec.structs.replace(call, args="{}")
        elif made and not parallel:
            refused[position] = _one_at_a_time(call)
        made[position] = call
        parts.append(call)
    return Calls(msgspec.structs.replace(message, parts=tuple(parts)), made, refused)


def refused_key(position: str) -> str:
    """The key under which a run writes down that a call was not even judged."""
    return f"{position}.refused"


def arguments_of(call: ToolCall) -> Json:
    """The model's arguments as JSON; text that is none stays text, for the executor to refuse."""
    if not call.args.strip():
        return {}
    try:
        return orjson.loads(call.args)
    except orjson.JSONDecodeError:
        return call.args


def _too_long(call: ToolCall) -> ToolError:
    message = f"the arguments of {call.name!r} have {len(call.args)} characters, and {MOST_CHARACTERS} is the most"
    return error(ErrorCode.VALIDATION_ERROR, Reason.INVALID_ARGUMENTS_JSON, f"{message}; send less at once")


def _one_at_a_time(call: ToolCall) -> ToolError:
    message = f"{call.name!r} was not called: one call at a time is allowed, and this was not the first"
    return error(ErrorCode.POLICY_DENIED, Reason.TOOL_NOT_ALLOWED, f"{message}; call it in the next turn")

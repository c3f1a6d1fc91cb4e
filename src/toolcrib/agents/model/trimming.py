"""Results made short, so that a prompt fits the model's context: in old turns, and within a run that has grown long.

Only what a tool answered, and very long arguments, are ever shortened: what people and models have said stays whole.
What is short already stays as it is, byte for byte, and shortening twice is shortening once.
"""

from collections.abc import Sequence
from typing import Final

import msgspec
import orjson

from toolcrib.core.runs import shortened
from toolcrib.llm import Message, Part, ToolCall, ToolResult

_LONGEST_RESULT: Final = 500
"""Characters of a result that is left alone."""
_KEPT: Final = 300
_LONGEST_ARGUMENTS: Final = 1000
_CUT: Final = "… (the beginning of {size} characters; call the tool again if you need the rest)"


def trimmed(message: Message) -> Message:
    """The message with short results and arguments; the very same if they are short."""
    parts = tuple(_short(part) for part in message.parts)
    same = all(short is part for short, part in zip(parts, message.parts, strict=True))
    return message if same else msgspec.structs.replace(message, parts=parts)


def trimmed_results(messages: Sequence[Message], before: int) -> tuple[Message, ...]:
    """The messages, of which those before a place have short results."""
    return (*map(trimmed, messages[:before]), *messages[before:])


def _short(part: Part) -> Part:
    match part:
        case ToolResult() if len(part.text) > _LONGEST_RESULT:
            return msgspec.structs.replace(part, text=part.text[:_KEPT] + _CUT.format(size=len(part.text)))
        case ToolCall() if len(part.args) > _LONGEST_ARGUMENTS:
            # A seal is over the call as it was, and says nothing of this one.
            return msgspec.structs.replace(part, args=_short_arguments(part.args), signature=None)
        case _:
            return part


def _short_arguments(text: str) -> str:
    try:
        arguments = orjson.loads(text)
    except orjson.JSONDecodeError:
        return "{}"
    short = orjson.dumps(shortened(arguments, _LONGEST_ARGUMENTS)).decode()
    return short if len(short) <= _LONGEST_ARGUMENTS else "{}"

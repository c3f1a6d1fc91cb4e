"""A conversation with calls and results, as shown to a model that writes its calls as text.

The model's own text is shown byte for byte. Results are in fences longer than any run of backticks in them, so that a
result cannot end its fence.
"""

import re
from collections.abc import Iterator
from typing import Final, cast

import msgspec
import orjson
from msgspec import Struct

from toolcrib.contracts import Json, JsonObject
from toolcrib.llm.base.messages import Message, Opaque, Part, Text, ToolCall, ToolResult, in_words
from toolcrib.llm.text.examples import write_call
from toolcrib.llm.text.fences import TOOL
from toolcrib.llm.text.functions import FINAL
from toolcrib.llm.text.prompt import Toolkit

ORIGIN: Final = "text-protocol"
"""Who gets the blocks of an answer back."""
_BACKTICKS = re.compile(r"`+")
_ID = re.compile(r"text-([0-9]{1,9})")
_NOT_YET = (
    f"{FINAL}() was left out, because other calls stood beside it. Call it alone when you need no further result."
)


class _Written(Struct, frozen=True, omit_defaults=True):
    """What an `Opaque` part holds."""

    block: str
    is_final: bool = False


def to_opaque(block: str, *, is_final: bool) -> Opaque:
    """A block of an answer, to be sent back as it is.

    Args:
        block: Its text.
        is_final: Whether it says that the model is ready.
    """
    return Opaque(ORIGIN, msgspec.json.encode(_Written(block, is_final)).decode())


def is_ready(message: Message) -> bool:
    """Whether a model said in this message that it is ready, and nothing else."""
    return not message.calls and _is_final(message)


def as_text(messages: tuple[Message, ...], toolkit: Toolkit) -> tuple[Message, ...]:
    """The conversation in words.

    Args:
        messages: The conversation.
        toolkit: Knows the tools by the names that the model sees.
    """
    found: list[Message] = []
    before: Message | None = None
    for message in messages:
        found.append(
            _answer_as_text(message, toolkit)
            if message.role == "assistant"
            else _results_as_text(message, before, toolkit)
        )
        before = message
    return tuple(found)


def next_number(messages: tuple[Message, ...]) -> int:
    """The number of the next call: one more than the highest of the conversation."""
    ids = (_ID.fullmatch(call.id) for message in messages for call in message.calls)
    return 1 + max((int(found[1]) for found in ids if found), default=0)


def last_user(messages: tuple[Message, ...], *, after_final: bool) -> int | None:
    """Where the last message of the user is; the one that follows a model's being ready, if it said so and it is asked.

    Args:
        messages: The conversation.
        after_final: Whether that one is asked for. It stays the same while an answer is repaired.
    """
    users = [place for place, message in enumerate(messages) if message.role == "user"]
    answers = [place for place in users if place and is_ready(messages[place - 1])] if after_final else []
    return max(answers or users, default=None)


def with_words(messages: tuple[Message, ...], place: int, words: str) -> tuple[Message, ...]:
    """The conversation with more words at the end of a message."""
    message = messages[place]
    more = Message(message.role, (*message.parts, Text(f"\n\n{words}")))
    return (*messages[:place], more, *messages[place + 1 :])


def taking_turns(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """The conversation with what the user said in one breath as one message; templates of small models insist on it."""
    found: list[Message] = []
    for message in messages:
        if found and message.role == "user" == found[-1].role:
            found[-1] = Message("user", (*found[-1].parts, Text("\n\n"), *message.parts))
        else:
            found.append(message)
    return tuple(found)


def _is_final(message: Message) -> bool:
    return any(written.is_final for written in _blocks(message))


def _blocks(message: Message) -> Iterator[_Written]:
    for part in message.parts:
        if isinstance(part, Opaque) and part.origin == ORIGIN:
            yield msgspec.json.decode(part.raw, type=_Written)


def _answer_as_text(message: Message, toolkit: Toolkit) -> Message:
    """A model's message as it wrote it; calls of another protocol as it would write them here."""
    has_blocks = next(_blocks(message), None) is not None
    parts: list[Part] = []
    words: list[str] = []
    for part in message.parts:
        match part:
            case Opaque() if part.origin == ORIGIN:
                words.append(msgspec.json.decode(part.raw, type=_Written).block)
            case ToolCall():
                words += [] if has_blocks else [_block(part, toolkit)]
            case Text() if part.signature is None:
                words.append(part.text)
            case _:
                parts += in_words("".join(words))
                words = []
                parts.append(part)
    return Message("assistant", (*parts, *in_words("".join(words))))


def _results_as_text(message: Message, before: Message | None, toolkit: Toolkit) -> Message:
    if not any(isinstance(part, ToolResult) for part in message.parts):
        return message
    words = [
        _result(part, toolkit) if isinstance(part, ToolResult) else part.text
        for part in message.parts
        if isinstance(part, ToolResult | Text)
    ]
    if before is not None and before.calls and _is_final(before):
        words.append(_NOT_YET)
    return Message("user", (Text("\n\n".join(words)),))


def _result(result: ToolResult, toolkit: Toolkit) -> str:
    function = toolkit.find(result.name)
    name = result.name if function is None else function.shown
    longest = max((len(found) for found in _BACKTICKS.findall(result.text)), default=0)
    fence = "`" * max(3, longest + 1)
    number = _ID.fullmatch(result.id)
    which = f"Call {number[1]}, {name}," if number else name
    return f"{which} {'failed' if result.is_error else 'returned'}:\n{fence}result\n{result.text}\n{fence}"


def _block(call: ToolCall, toolkit: Toolkit) -> str:
    function, arguments = toolkit.find(call.name), _arguments(call.args)
    text = f"{call.name}({call.args})" if function is None or arguments is None else write_call(function, arguments)
    longest = max((len(found) for found in _BACKTICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"\n{fence}{TOOL}\nreturn {text};\n{fence}\n"


def _arguments(args: str) -> JsonObject | None:
    try:
        found: Json = orjson.loads(args or "{}")
    except orjson.JSONDecodeError:
        return None
    return cast("JsonObject", found) if isinstance(found, dict) else None

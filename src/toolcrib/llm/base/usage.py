"""Token counts where a provider gives none.

Four characters are one token. Good for limits and for tests, not for bills.
"""

from collections.abc import Iterable

from toolcrib.llm.base.messages import (
    NO_TOOLS,
    Message,
    Request,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    ToolSet,
    Usage,
)

_CHARACTERS_PER_TOKEN = 4


def estimated_usage(request: Request, answer: Message) -> Usage:
    """The tokens of a call, by the length of what was sent and received; marked as estimated."""
    sent = estimated_tokens(request.messages, system=request.system, tools=request.tools)
    return Usage(input=sent, output=_tokens(_size(answer)), estimated=True)


def estimated_tokens(messages: Iterable[Message], *, system: str = "", tools: ToolSet = NO_TOOLS) -> int:
    """The tokens that a prompt comes to, by its length."""
    return _tokens(len(system) + tools.size + sum(map(_size, messages)))


def _tokens(characters: int) -> int:
    return -(-characters // _CHARACTERS_PER_TOKEN)


def _size(message: Message) -> int:
    size = 0
    for part in message.parts:
        match part:
            case Text() | ToolResult():
                size += len(part.text)
            case Thinking():
                size += len(part.text) + len(part.signature or "")
            case ToolCall():
                size += len(part.name) + len(part.args)
            case _:
                size += len(part.raw)
    return size

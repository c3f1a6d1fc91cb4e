"""Token counts where a provider gives none.

Four characters are one token. Good for limits and for tests, not for bills.
"""

from toolcrib.llm.messages import Message, Request, Text, Thinking, ToolCall, ToolResult, Usage

_CHARACTERS_PER_TOKEN = 4


def estimated_usage(request: Request, answer: Message) -> Usage:
    """The tokens of a call, by the length of what was sent and received; marked as estimated."""
    sent = len(request.system) + request.tools.size + sum(map(_size, request.messages))
    return Usage(input=_tokens(sent), output=_tokens(_size(answer)), estimated=True)


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

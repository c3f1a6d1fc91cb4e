"""Conversations as the text that a ChatML model continues, from the body of a Chat Completions request.

    <|im_start|>user
    How are you?<|im_end|>
    <|im_start|>assistant

The marks themselves are taken out of what people and tools say, so that no text can pretend to be another speaker.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

STOP: Final = ("<|im_end|>", "<|im_start|>", "<|endoftext|>")
_MARKS: Final = re.compile(r"<\|(?:im_start|im_end|endoftext)\|>")


def prompt_of(messages: Sequence[Mapping[str, Any]]) -> str:
    """The text of a conversation, ready for the model's turn."""
    turns = [f"<|im_start|>{_role(message)}\n{_said(message)}<|im_end|>\n" for message in messages]
    return "".join([*turns, "<|im_start|>assistant\n"])


def _role(message: Mapping[str, Any]) -> str:
    role = str(message.get("role", "user"))
    return role if role in {"system", "assistant"} else "user"


def _said(message: Mapping[str, Any]) -> str:
    content = message.get("content") or ""
    if isinstance(content, list):
        parts = [cast("Mapping[str, Any]", part) for part in cast("list[Any]", content)]
        content = "\n".join(str(part.get("text", "")) for part in parts)
    return _MARKS.sub("", str(content))

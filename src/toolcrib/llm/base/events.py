"""What a model call tells while it runs. A call that does not stream is the same with only the last event, `Done`."""

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from msgspec import Struct

from toolcrib.llm.base.messages import Response, ToolCall, Usage


class TextDelta(Struct, frozen=True, tag="text_delta"):
    """More of the answer's text."""

    text: str


class ThinkingDelta(Struct, frozen=True, tag="thinking_delta"):
    """More of the model's shown reasoning."""

    text: str


class CallStart(Struct, frozen=True, tag="call_start"):
    """A tool call begins; `index` counts the calls of the answer from 0."""

    index: int
    id: str
    name: str


class CallDelta(Struct, frozen=True, tag="call_delta"):
    """More of a call's arguments, as JSON text."""

    index: int
    args: str


class CallEnd(Struct, frozen=True, tag="call_end"):
    """A call is complete."""

    index: int
    call: ToolCall


class UsageUpdate(Struct, frozen=True, tag="usage"):
    """The tokens so far; replaces earlier updates."""

    usage: Usage


class Done(Struct, frozen=True, tag="done"):
    """The whole answer; always the last event."""

    response: Response


Event: TypeAlias = TextDelta | ThinkingDelta | CallStart | CallDelta | CallEnd | UsageUpdate | Done
"""Anything that a model call can tell."""


def whole_calls(calls: Iterable[ToolCall]) -> Iterator[Event]:
    """The events of calls that are known only when the answer is whole."""
    for index, call in enumerate(calls):
        yield CallStart(index, call.id, call.name)
        yield CallDelta(index, call.args)
        yield CallEnd(index, call)

"""OpenAI Responses streams: events become ours at once; the response object in the last one is the answer.

Unknown events are skipped: what they announce stands in their item. Servers that leave the items out of the last event,
or send a call's arguments only when it is complete, are understood.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Raw, Struct

from toolcrib.contracts.base.errors import ModelError
from toolcrib.llm.base.errors import fault_of, provider_error
from toolcrib.llm.base.events import CallDelta, CallEnd, CallStart, Done, Event, TextDelta, ThinkingDelta, UsageUpdate
from toolcrib.llm.base.json_values import arr, count, load_object, obj, text
from toolcrib.llm.base.messages import ToolCall
from toolcrib.llm.wires.responses_answer import part_of, refuse_failed, response_of


class _ItemDone(Struct):
    item: Raw


class _Answer(Struct):
    output: list[Raw] = []


class _Ended(Struct):
    response: _Answer


_item_decoder = msgspec.json.Decoder(_ItemDone)
_ended_decoder = msgspec.json.Decoder(_Ended)
_ENDS = frozenset({"response.completed", "response.incomplete", "response.failed", "response.cancelled"})


class _Call:
    """A call whose arguments arrive."""

    __slots__ = ("number", "written")

    def __init__(self, number: int) -> None:
        self.number = number
        self.written = 0
        """Characters of the arguments so far."""


class ResponsesDecoder:
    """The `Decoder` of one stream."""

    def __init__(self, origin: str) -> None:
        self._origin = origin
        self._items: dict[int, bytes] = {}
        self._calls: dict[int, _Call] = {}
        self._said = 0
        self._done = False

    def feed(self, data: bytes) -> Sequence[Event]:
        """See `Decoder.feed`."""
        if self._done or data == b"[DONE]":
            return ()
        event = load_object(data, self._origin)
        kind = text(event.get("type"))
        if kind in _ENDS:
            return self._finish(event, data)
        if kind == "error" or (not kind and event.get("error")):
            raise provider_error(self._origin, fault_of(event.get("error") or event))
        index = count(event.get("output_index"))
        match kind:
            case "response.output_text.delta" | "response.refusal.delta":
                return self._text(text(event.get("delta")))
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                return _thinking(text(event.get("delta")))
            case "response.reasoning_summary_part.added":
                return _thinking("\n\n") if count(event.get("summary_index")) else ()
            case "response.output_item.added":
                return self._started(index, obj(event.get("item")))
            case "response.function_call_arguments.delta":
                return self._arguments(index, text(event.get("delta")))
            case "response.output_item.done":
                self._items[index] = bytes(_item_decoder.decode(data).item)
                return self._call_events(index, self._items[index])
            case _:
                return ()

    def close(self) -> Sequence[Event]:
        """See `Decoder.close`."""
        if self._done:
            return ()
        raise ModelError(
            "stream_cut",
            f"{self._origin} ended the stream in mid-answer, after {len(self._items)} complete items and "
            f"{self._said} characters of text, without a final event",
        )

    def _text(self, said: str) -> Sequence[Event]:
        self._said += len(said)
        return (TextDelta(said),) if said else ()

    def _started(self, index: int, item: dict[str, Any]) -> Sequence[Event]:
        name = text(item.get("name"))
        if item.get("type") != "function_call" or not name or index in self._calls:
            return ()
        call = self._calls[index] = _Call(len(self._calls))
        return (CallStart(call.number, text(item.get("call_id")) or text(item.get("id")) or f"call_{index}", name),)

    def _arguments(self, index: int, delta: str) -> Sequence[Event]:
        call = self._calls.get(index)
        if call is None or not delta:
            return ()
        call.written += len(delta)
        return (CallDelta(call.number, delta),)

    def _call_events(self, index: int, raw: bytes) -> Sequence[Event]:
        """What is left to tell of a complete item, if it is a call."""
        part = part_of(raw, index, self._origin)
        if not isinstance(part, ToolCall):
            return ()
        started = (
            ()
            if index in self._calls
            else self._started(index, {"type": "function_call", "call_id": part.id, "name": part.name})
        )
        call = self._calls[index]
        rest = part.args[call.written :]
        return (*started, *self._arguments(index, rest), CallEnd(call.number, part))

    def _finish(self, event: dict[str, Any], data: bytes) -> Sequence[Event]:
        self._done = True
        content = obj(event.get("response"))
        refuse_failed(content, self._origin)
        items = [self._items[index] for index in sorted(self._items)]
        events: list[Event] = []
        if arr(content.get("output")):
            items = [bytes(raw) for raw in _ended_decoder.decode(data).response.output]
            for index, raw in enumerate(items):
                if index not in self._items:
                    events += self._call_events(index, raw)
        response = response_of(content, items, self._origin)
        events += self._text(response.message.text[self._said :])
        if not response.usage.estimated:
            events.append(UsageUpdate(response.usage))
        return [*events, Done(response)]


def _thinking(thought: str) -> Sequence[Event]:
    return (ThinkingDelta(thought),) if thought else ()

"""Anthropic Messages streams: events become ours at once, and add up to blocks that are read like a whole answer's.

Unknown events are skipped, as the API's contract demands; unknown deltas of a block are merged into it field by
field, so that a block without a neutral shape arrives whole.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
import orjson
from msgspec import Raw, Struct

from toolcrib.contracts.base.errors import ModelError
from toolcrib.llm.base.errors import fault_of, provider_error
from toolcrib.llm.base.events import CallDelta, CallEnd, CallStart, Done, Event, TextDelta, ThinkingDelta, UsageUpdate
from toolcrib.llm.base.json_values import count, load_object, missing, obj, text
from toolcrib.llm.base.messages import Part, ToolCall
from toolcrib.llm.wires.anthropic_answer import part_of, response_of, usage_of


class _Start(Struct):
    content_block: Raw


_start_decoder = msgspec.json.Decoder(_Start)


class _Block:
    """A block under construction: as it started, and the pieces since."""

    __slots__ = ("call", "fields", "input", "raw", "said")

    def __init__(self, raw: bytes, fields: dict[str, Any], call: int | None) -> None:
        self.raw = raw
        self.fields = fields
        self.call = call
        self.said: dict[str, list[str]] = {}
        self.input: list[str] = []

    def say(self, field: str, piece: str) -> None:
        """More of a text field."""
        self.said.setdefault(field, []).append(piece)

    def merge(self, delta: dict[str, Any]) -> None:
        """A delta of any other kind."""
        for name, value in delta.items():
            if name == "citation":
                self.fields["citations"] = [*(self.fields.get("citations") or ()), value]
            elif isinstance(value, str):
                self.say(name, value)
            else:
                self.fields[name] = value
        self.raw = b""

    def whole(self) -> bytes:
        """The block as JSON; the very bytes that arrived, if nothing came after the start."""
        if self.raw and not self.said and not self.input:
            return self.raw
        for name, pieces in self.said.items():
            self.fields[name] = text(self.fields.get(name)) + "".join(pieces)
        if self.input:
            self.fields["input"] = orjson.Fragment("".join(self.input))
        return orjson.dumps(self.fields)


class AnthropicDecoder:
    """The `Decoder` of one stream."""

    def __init__(self, origin: str) -> None:
        self._origin = origin
        self._message: dict[str, Any] = {}
        self._usage: dict[str, Any] = {}
        self._open: dict[int, _Block] = {}
        self._parts: dict[int, Part] = {}
        self._calls = 0
        self._done = False

    def feed(self, data: bytes) -> Sequence[Event]:
        """See `Decoder.feed`."""
        if self._done:
            return ()
        event = load_object(data, self._origin)
        match event.get("type"):
            case "content_block_delta":
                return self._delta(event)
            case "content_block_start":
                return self._start(event, data)
            case "content_block_stop":
                return self._stop(count(event.get("index")))
            case "message_start":
                self._message = obj(event.get("message"))
                return self._counted(obj(self._message.get("usage")))
            case "message_delta":
                self._message.update(obj(event.get("delta")))
                return self._counted(obj(event.get("usage")))
            case "message_stop":
                return self._finish()
            case "error":
                raise provider_error(
                    self._origin, fault_of(event.get("error")), request_id=text(event.get("request_id"))
                )
            case _:
                return ()

    def close(self) -> Sequence[Event]:
        """See `Decoder.close`. A stream that gave its stop reason and closed its blocks is complete."""
        if self._done:
            return ()
        if self._message.get("stop_reason") and not self._open:
            return self._finish()
        raise ModelError(
            "stream_cut",
            f"{self._origin} ended the stream in mid-answer, after {len(self._parts)} complete blocks, "
            "without a stop reason",
        )

    def _start(self, event: dict[str, Any], data: bytes) -> Sequence[Event]:
        fields = obj(event.get("content_block"))
        if not fields:
            raise missing(self._origin, "content_block", event)
        is_call = fields.get("type") == "tool_use"
        block = _Block(bytes(_start_decoder.decode(data).content_block), fields, self._calls if is_call else None)
        index = count(event.get("index"))
        self._open[index] = block
        if block.call is not None:
            self._calls += 1
            return (CallStart(block.call, text(fields.get("id")) or f"call_{index}", text(fields.get("name"))),)
        said = text(fields.get("text"))
        return (TextDelta(said),) if said else ()

    def _delta(self, event: dict[str, Any]) -> Sequence[Event]:
        block = self._open.get(count(event.get("index")))
        if block is None:
            raise missing(self._origin, "content_block_start", event)
        delta = obj(event.get("delta"))
        match delta.get("type"):
            case "text_delta":
                said = text(delta.get("text"))
                block.say("text", said)
                return (TextDelta(said),)
            case "input_json_delta":
                piece = text(delta.get("partial_json"))
                block.input.append(piece)
                return (CallDelta(block.call, piece),) if block.call is not None and piece else ()
            case "thinking_delta":
                thought = text(delta.get("thinking"))
                block.say("thinking", thought)
                return (ThinkingDelta(thought),)
            case _:
                block.merge({name: value for name, value in delta.items() if name != "type"})
                return ()

    def _stop(self, index: int) -> Sequence[Event]:
        block = self._open.pop(index, None)
        if block is None:
            return ()
        part = self._part(block, index)
        self._parts[index] = part
        if block.call is not None and isinstance(part, ToolCall):
            return (CallEnd(block.call, part),)
        return ()

    def _part(self, block: _Block, index: int) -> Part:
        """The part of a finished block. Arguments that are no JSON stay the text that the model wrote."""
        written = "".join(block.input)
        if block.call is None or not written:
            block.input = [written] if written else []
            return part_of(block.whole(), index, self._origin)
        block.input = []
        call = part_of(block.whole(), index, self._origin)
        return msgspec.structs.replace(call, args=written) if isinstance(call, ToolCall) else call

    def _counted(self, usage: dict[str, Any]) -> Sequence[Event]:
        self._usage.update({name: value for name, value in usage.items() if value is not None})
        return (UsageUpdate(usage_of(self._usage)),) if usage else ()

    def _finish(self) -> Sequence[Event]:
        self._done = True
        events = [event for index in sorted(self._open) for event in self._stop(index)]
        if not self._message:
            raise missing(self._origin, "message_start", {})
        parts = tuple(self._parts[index] for index in sorted(self._parts))
        return [*events, Done(response_of({**self._message, "usage": self._usage}, parts))]

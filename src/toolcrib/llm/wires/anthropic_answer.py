"""What an Anthropic Messages answer means. Used for whole answers and, block by block, for streams.

A block that has no neutral shape (server tools and their results, text with citations, what comes next year) becomes an
`Opaque` part of the very bytes that arrived.
"""

from typing import Any

import msgspec
import orjson
from msgspec import Raw, Struct

from toolcrib.llm.base._signature import signed
from toolcrib.llm.base.errors import fault_of, provider_error
from toolcrib.llm.base.json_values import count, load_object, missing, obj, text
from toolcrib.llm.base.messages import Message, Opaque, Part, Response, Stop, Text, Thinking, ToolCall, Usage

_STOPS: dict[str, Stop] = {
    "end_turn": "end",
    "stop_sequence": "end",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
    "pause_turn": "pause",
}
_FIELDS: dict[str, frozenset[str]] = {
    "text": frozenset({"type", "text"}),
    "thinking": frozenset({"type", "thinking", "signature"}),
    "redacted_thinking": frozenset({"type", "data"}),
}
_TOOL_USE_FIELDS = frozenset({"type", "id", "name", "input"})
_DIRECT = {"type": "direct"}


class _Content(Struct):
    content: list[Raw]


class _ToolUse(Struct):
    input: Raw = Raw(b"{}")


_content_decoder = msgspec.json.Decoder(_Content)
_tool_use_decoder = msgspec.json.Decoder(_ToolUse)


def parse_answer(body: bytes, origin: str) -> Response:
    """The response in a body.

    Raises:
        ModelError: The body holds an error, or lacks what is needed.
    """
    content = load_object(body, origin)
    if content.get("error"):
        raise provider_error(origin, fault_of(content["error"]), request_id=text(content.get("request_id")))
    if not isinstance(content.get("content"), list):
        raise missing(origin, "content", content)
    blocks = _content_decoder.decode(body).content
    parts = tuple(part_of(bytes(raw), index, origin) for index, raw in enumerate(blocks))
    return response_of(content, parts)


def response_of(content: dict[str, Any], parts: tuple[Part, ...]) -> Response:
    """The response of a message object and its parts."""
    raw_stop = text(content.get("stop_reason"))
    stop = _STOPS.get(raw_stop, "other") if raw_stop else _stop_without_reason(parts)
    usage = usage_of(obj(content.get("usage")))
    return Response(
        Message("assistant", parts), stop, raw_stop, usage, text(content.get("model")), text(content.get("id"))
    )


def usage_of(usage: dict[str, Any]) -> Usage:
    """Our counts: the API counts cached tokens apart from the input, we count them in."""
    if not usage:
        return Usage(estimated=True)
    read, written = count(usage.get("cache_read_input_tokens")), count(usage.get("cache_creation_input_tokens"))
    return Usage(
        input=count(usage.get("input_tokens")) + read + written,
        output=count(usage.get("output_tokens")),
        cache_read=read,
        cache_write=written,
        reasoning=count(obj(usage.get("output_tokens_details")).get("thinking_tokens")),
    )


def part_of(raw: bytes, index: int, origin: str) -> Part:
    """The part that a block means.

    Raises:
        ModelError: `bad_response`, a tool call without a name.
    """
    block = obj(orjson.loads(raw))
    kind = text(block.get("type"))
    if kind == "tool_use":
        return _tool_call(raw, block, index, origin)
    fields = _FIELDS.get(kind)
    if fields is None or any(block[name] not in (None, []) for name in block.keys() - fields):
        return Opaque(origin, raw.decode(), text(block.get("text")))
    match kind:
        case "text":
            return Text(text(block.get("text")))
        case "thinking":
            signature = text(block.get("signature"))
            return Thinking(text(block.get("thinking")), signature or None, origin=origin)
        case _:
            return Thinking(signature=text(block.get("data")), redacted=True, origin=origin)


def _tool_call(raw: bytes, block: dict[str, Any], index: int, origin: str) -> ToolCall:
    name = text(block.get("name"))
    if not name:
        raise missing(origin, f"content[{index}].name", block)
    more = {key: block[key] for key in block.keys() - _TOOL_USE_FIELDS if block[key] not in (None, _DIRECT)}
    args = bytes(_tool_use_decoder.decode(raw).input).decode()
    return ToolCall(text(block.get("id")) or f"call_{index}", name, args, signed(origin, more))


def _stop_without_reason(parts: tuple[Part, ...]) -> Stop:
    return "tool_calls" if any(isinstance(part, ToolCall) for part in parts) else "end"

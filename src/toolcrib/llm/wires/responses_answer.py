"""What an OpenAI Responses answer means; for whole answers, and for the response object that ends a stream.

An answer is a list of items. A message of one plain text, a function call and a reasoning item have a neutral shape;
all others (refusals, text with citations, web searches, MCP calls, what comes next year) become an `Opaque` part of the
very bytes that arrived.
"""

from typing import Any

import msgspec
import orjson
from msgspec import Raw, Struct

from toolcrib.llm.base._signature import signed
from toolcrib.llm.base.errors import fault_of, provider_error
from toolcrib.llm.base.json_values import arr, count, json_text, load_object, missing, obj, text
from toolcrib.llm.base.messages import Message, Opaque, Part, Response, Stop, Text, Thinking, ToolCall, Usage

_CUT: dict[str, Stop] = {
    "max_output_tokens": "length",
    "max_tokens": "length",
    "content_filter": "content_filter",
}
_TEXTS = frozenset({"output_text", "text"})
_OF_MESSAGE = frozenset({"content", "role", "type"})
_OF_TEXT = frozenset({"text", "type"})
_OF_CALL = frozenset({"arguments", "call_id", "name", "type"})
_NOTHING: tuple[Any, ...] = (None, [], {}, "")


class _Body(Struct):
    output: list[Raw] = []


_decoder = msgspec.json.Decoder(_Body)


def parse_answer(body: bytes, origin: str) -> Response:
    """The response in a body.

    Raises:
        ModelError: The body holds an error, or lacks what is needed.
    """
    content = load_object(body, origin)
    refuse_failed(content, origin)
    if not isinstance(content.get("output"), list):
        raise missing(origin, "output", content)
    return response_of(content, [bytes(raw) for raw in _decoder.decode(body).output], origin)


def refuse_failed(content: dict[str, Any], origin: str) -> None:
    """Raise the error that a response object holds, if it holds one."""
    if content.get("error") or content.get("status") == "failed":
        raise provider_error(origin, fault_of(content.get("error") or {}), request_id=text(content.get("id")))


def response_of(content: dict[str, Any], items: list[bytes], origin: str) -> Response:
    """The response that a response object and its items mean."""
    parts = tuple(part_of(raw, index, origin) for index, raw in enumerate(items))
    message = Message("assistant", parts)
    status = text(content.get("status"))
    reason = text(obj(content.get("incomplete_details")).get("reason"))
    raw_stop = reason or status
    return Response(
        message,
        _stop(raw_stop, message, items),
        raw_stop,
        usage_of(obj(content.get("usage"))),
        text(content.get("model")),
        text(content.get("id")),
    )


def usage_of(usage: dict[str, Any]) -> Usage:
    """Our counts; marked as estimated if there are none."""
    if not usage:
        return Usage(estimated=True)
    read = obj(usage.get("input_tokens_details"))
    return Usage(
        input=count(usage.get("input_tokens")),
        output=count(usage.get("output_tokens")),
        cache_read=count(read.get("cached_tokens")),
        cache_write=count(read.get("cache_write_tokens")),
        reasoning=count(obj(usage.get("output_tokens_details")).get("reasoning_tokens")),
    )


def part_of(raw: bytes, index: int, origin: str) -> Part:
    """The part that an item means.

    Raises:
        ModelError: `bad_response`, a function call without a name.
    """
    item = obj(orjson.loads(raw))
    match item.get("type"):
        case "function_call":
            return _call(item, index, origin)
        case "reasoning":
            shown = _shown_reasoning(item)
            identity = text(item.get("id")) or None
            return Thinking(shown, raw.decode(), identity, redacted=not shown, origin=origin)
        case "message" | None:
            return _message(item, raw, origin)
        case _:
            return Opaque(origin, raw.decode())


def _message(item: dict[str, Any], raw: bytes, origin: str) -> Part:
    pieces = [obj(piece) for piece in arr(item.get("content"))]
    if isinstance(item.get("content"), str):
        pieces = [{"type": "text", "text": item["content"]}]
    if len(pieces) == 1 and _is_plain(pieces[0]):
        fields = {name: item[name] for name in item.keys() - _OF_MESSAGE if item[name] is not None}
        return Text(text(pieces[0].get("text")), signed(origin, fields))
    said = "".join(text(piece.get("text")) or text(piece.get("refusal")) for piece in pieces)
    return Opaque(origin, raw.decode(), said)


def _is_plain(piece: dict[str, Any]) -> bool:
    return piece.get("type") in _TEXTS and all(piece[name] in _NOTHING for name in piece.keys() - _OF_TEXT)


def _call(item: dict[str, Any], index: int, origin: str) -> ToolCall:
    name = text(item.get("name"))
    if not name:
        raise missing(origin, f"output[{index}].name", item)
    arguments = item.get("arguments")
    return ToolCall(
        text(item.get("call_id")) or text(item.get("id")) or f"call_{index}",
        name,
        "{}" if arguments in (None, "") else json_text(arguments),
        signed(origin, {field: item[field] for field in item.keys() - _OF_CALL if item[field] is not None}),
    )


def _shown_reasoning(item: dict[str, Any]) -> str:
    """The summary; open models give the reasoning itself."""
    summaries = [text(obj(piece).get("text")) for piece in arr(item.get("summary"))]
    return "\n\n".join(summaries) or "".join(text(obj(piece).get("text")) for piece in arr(item.get("content")))


def _stop(raw_stop: str, message: Message, items: list[bytes]) -> Stop:
    if raw_stop not in {"", "complete", "completed"}:
        return _CUT.get(raw_stop, "other")
    if message.calls:
        return "tool_calls"
    refused = any(
        isinstance(part, Opaque) and b'"refusal"' in raw for part, raw in zip(message.parts, items, strict=True)
    )
    return "refusal" if refused else "end"

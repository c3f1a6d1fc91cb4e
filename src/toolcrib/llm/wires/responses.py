"""OpenAI Responses: requests, answers and streams.

Nothing is stored at the provider (`store` is false): each request has the whole history, with encrypted reasoning.
Plain messages, function calls and reasoning have a neutral form; all other items become `Opaque` parts with their
original bytes. The last event of a stream has the whole answer. Unknown events are skipped, and servers that omit
items from the last event are supported. The API has no field for `is_error` of a tool result, so the result's text
says it.
https://platform.openai.com/docs/api-reference/responses
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import orjson
from msgspec import Raw, Struct

from toolcrib.contracts.base.errors import ModelError
from toolcrib.contracts.base.media import ModelInput, input_of
from toolcrib.llm.base.errors import fault_in, fault_of, provider_error
from toolcrib.llm.base.json_values import arr, count, json_text, load_object, missing, obj, text
from toolcrib.llm.base.messages import (
    CallDelta,
    CallEnd,
    CallStart,
    Done,
    Event,
    FilePart,
    Message,
    NamedTool,
    Opaque,
    Part,
    Request,
    Response,
    Stop,
    Text,
    TextChunk,
    Thinking,
    ThinkingChunk,
    TokenUsage,
    Tool,
    ToolCall,
    ToolResult,
    UsageUpdate,
    counted,
)
from toolcrib.llm.base.quirks import Quirks
from toolcrib.llm.base.strict import strict_schema
from toolcrib.llm.base.wire import RenderedToolSets, billed, fields_of, signature_of

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
        usage_of(obj(content.get("usage")), parts),
        text(content.get("model")),
        text(content.get("id")),
    )


def usage_of(usage: dict[str, Any], parts: tuple[Part, ...] = ()) -> TokenUsage:
    """Our counts, with the uses of the provider's tools among the parts; marked as estimated if there are none."""
    if not usage:
        return TokenUsage(estimated=True)
    read = obj(usage.get("input_tokens_details"))
    return TokenUsage(
        input=count(usage.get("input_tokens")),
        output=count(usage.get("output_tokens")),
        cache_read=count(read.get("cached_tokens")),
        cache_write=count(read.get("cache_write_tokens")),
        reasoning=count(obj(usage.get("output_tokens_details")).get("reasoning_tokens")),
        more=counted(**Counter(filter(None, map(_tool_used, parts)))),
        billed_usd=billed(usage),
    )


_BILLED_ITEMS = {
    "code_interpreter_call": "code_container",
    "file_search_call": "file_search",
    "image_generation_call": "image_generation",
    "web_search_call": "web_search",
}


def _tool_used(part: Part) -> str | None:
    """What of the provider's tools an item has used that is billed; to open a page that was found is free."""
    if not isinstance(part, Opaque) or part.text:
        return None
    item = obj(orjson.loads(part.raw))
    action = text(obj(item.get("action")).get("type"))
    return None if action in {"open_page", "find_in_page"} else _BILLED_ITEMS.get(text(item.get("type")))


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
            shown = _reasoning_text(item)
            identity = text(item.get("id")) or None
            return Thinking(shown, raw.decode(), identity, redacted=not shown, origin=origin)
        case "message" | None:
            return _message_of_item(item, raw, origin)
        case _:
            return Opaque(origin, raw.decode())


def _message_of_item(item: dict[str, Any], raw: bytes, origin: str) -> Part:
    pieces = [obj(piece) for piece in arr(item.get("content"))]
    if isinstance(item.get("content"), str):
        pieces = [{"type": "text", "text": item["content"]}]
    if len(pieces) == 1 and _is_plain(pieces[0]):
        fields = {name: item[name] for name in item.keys() - _OF_MESSAGE if item[name] is not None}
        return Text(text(pieces[0].get("text")), signature_of(origin, fields))
    words = "".join(text(piece.get("text")) or text(piece.get("refusal")) for piece in pieces)
    return Opaque(origin, raw.decode(), words)


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
        signature_of(origin, {field: item[field] for field in item.keys() - _OF_CALL if item[field] is not None}),
    )


def _reasoning_text(item: dict[str, Any]) -> str:
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
        self._length = 0
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
                return self._start_call(index, obj(event.get("item")))
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
            f"{self._length} characters of text, without a final event",
        )

    def _text(self, words: str) -> Sequence[Event]:
        self._length += len(words)
        return (TextChunk(words),) if words else ()

    def _start_call(self, index: int, item: dict[str, Any]) -> Sequence[Event]:
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
            else self._start_call(index, {"type": "function_call", "call_id": part.id, "name": part.name})
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
        events += self._text(response.message.text[self._length :])
        if not response.usage.estimated:
            events.append(UsageUpdate(response.usage))
        return [*events, Done(response)]


def _thinking(thought: str) -> Sequence[Event]:
    return (ThinkingChunk(thought),) if thought else ()


_PATH = "/responses"


class ResponsesWire:
    """The `Wire` of Responses.

    Args:
        origin: The endpoint's name, for errors and for what is sent back to its maker only.
    """

    inputs: frozenset[ModelInput] = frozenset({"image", "pdf"})

    def __init__(self, origin: str = "openai-responses") -> None:
        self.origin = origin
        self._tools = RenderedToolSets()

    def build(self, request: Request, quirks: Quirks, *, stream: bool) -> tuple[str, dict[str, Any]]:
        """See `Wire.build`."""
        body: dict[str, Any] = {"model": request.model, "input": self._input(request.messages), "store": False}
        if request.system:
            body["instructions"] = request.system
        if request.tools:
            body["tools"] = self._tools.get(request.tools, strict=quirks.strict_tools, render=_tool)
            if request.tool_choice != "auto":
                body["tool_choice"] = _tool_choice(request.tool_choice)
            if not request.parallel_tool_calls and quirks.sampling:  # reasoning models refuse the field
                body["parallel_tool_calls"] = False
        if wanted := _text_format(request, quirks):
            body["text"] = {"format": wanted}
        body.update(_settings(request, quirks))
        if stream:
            body["stream"] = True
        body.update(request.extra)
        return _PATH, body

    def headers(self, key: str | None) -> dict[str, str]:
        """See `Wire.headers`."""
        return {"authorization": f"Bearer {key}"} if key else {}

    def parse(self, body: bytes) -> Response:
        """See `Wire.parse`."""
        return parse_answer(body, self.origin)

    def decoder(self) -> ResponsesDecoder:
        """See `Wire.decoder`."""
        return ResponsesDecoder(self.origin)

    def error(self, status: int, headers: Mapping[str, str], body: bytes) -> ModelError:
        """See `Wire.error`."""
        return provider_error(self.origin, fault_in(body), status=status, headers=headers)

    def _input(self, messages: tuple[Message, ...]) -> list[Any]:
        return [
            item
            for message in messages
            for part in message.parts
            if (item := _item(part, message.role, self.origin)) is not None
        ]


def _settings(request: Request, quirks: Quirks) -> dict[str, Any]:
    settings: dict[str, Any] = {"include": ["reasoning.encrypted_content"]} if quirks.encrypted_reasoning else {}
    max_tokens = request.max_tokens or quirks.max_tokens_default
    if max_tokens is not None:
        settings["max_output_tokens"] = max_tokens
    if request.reasoning is not None and request.reasoning.effort is not None:
        settings["reasoning"] = {"effort": request.reasoning.effort}
    ignored = quirks.settings_to_drop(request)
    for name in ("temperature", "top_p"):
        value = getattr(request, name)
        if value is not None and name not in ignored:
            settings[name] = value
    return settings


def _item(part: Part, role: str, origin: str) -> Any:
    """A part as an item, or None if there is nothing that this provider may see."""
    match part:
        case Text():
            return _message(part, role, origin)
        case ToolCall():
            call = {"type": "function_call", "call_id": part.id, "name": part.name, "arguments": part.args}
            return call | fields_of(part.signature, origin)
        case ToolResult():
            words: dict[str, Any] = {"type": "input_text", "text": part.text}
            output = [words, *map(_file, part.files)] if part.files else part.text
            return {"type": "function_call_output", "call_id": part.id, "output": output}
        case FilePart():
            return {"role": "user", "content": [_file(part)]}
        case Thinking():
            return _reasoning(part, origin)
        case _:
            return _opaque(part, role, origin)


def _file(file: FilePart) -> dict[str, Any]:
    """https://developers.openai.com/api/reference/resources/responses, `ResponseInputContent`."""
    url = f"data:{file.media_type};base64,{file.data}"
    if input_of(file.media_type) == "image":
        return {"type": "input_image", "image_url": url, "detail": "auto"}
    return {"type": "input_file", "filename": file.name or "file.pdf", "file_data": url}


def _message(part: Text, role: str, origin: str) -> dict[str, Any] | None:
    fields = fields_of(part.signature, origin)
    if fields:
        piece: dict[str, Any] = {"type": "output_text", "text": part.text, "annotations": []}
        return {"type": "message", "role": role, "content": [piece], **fields}
    return {"role": role, "content": part.text} if part.text else None


def _opaque(part: Opaque, role: str, origin: str) -> Any:
    if part.origin == origin:
        return orjson.Fragment(part.raw)
    return {"role": role, "content": part.text} if part.text else None


def _reasoning(part: Thinking, origin: str) -> orjson.Fragment | None:
    """The item as it came, if it holds its reasoning; without storage its id alone means nothing."""
    if part.origin != origin or part.signature is None:
        return None
    item = obj(orjson.loads(part.signature))
    return orjson.Fragment(part.signature) if item.get("encrypted_content") or item.get("content") else None


def _tool(tool: Tool, /, *, strict: bool) -> dict[str, Any]:
    """A tool; `strict` is always said, because this API is strict where nothing is."""
    schema = strict_schema(tool.schema, "openai") if strict and tool.strict else None
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.schema if schema is None else schema,
        "strict": schema is not None,
    }


def _tool_choice(choice: str | NamedTool) -> Any:
    return {"type": "function", "name": choice.name} if isinstance(choice, NamedTool) else choice


def _text_format(request: Request, quirks: Quirks) -> dict[str, Any] | None:
    schema = request.output_schema
    if schema is None:
        return None
    if quirks.structured == "json_object":
        return {"type": "json_object"}
    if quirks.structured != "json_schema":
        return None
    strict = None if quirks.strict is None else strict_schema(schema, quirks.strict)
    return {
        "type": "json_schema",
        "name": request.output_name,
        "schema": schema if strict is None else strict,
        "strict": strict is not None,
    }

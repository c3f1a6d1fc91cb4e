"""Anthropic Messages: requests, answers and streams.

Written for API version 2023-06-01, which the provider keeps stable; later versions refuse sampling settings that our
requests may contain. Blocks without a neutral form (server tools, citations, future types) become `Opaque` parts with
their original bytes. A stream is assembled into blocks and then read like an answer. As the API requires, unknown
events are skipped and unknown deltas are merged into their block.
https://platform.claude.com/docs/en/api/messages
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import orjson
from msgspec import Raw, Struct

from toolcrib.contracts.base.errors import ModelError
from toolcrib.contracts.base.media import ModelInput, input_of
from toolcrib.llm.base.errors import ErrorBody, fault_of, provider_error
from toolcrib.llm.base.json_values import count, load_object, missing, obj, text
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
from toolcrib.llm.base.wire import RenderedToolSets, as_object, fields_of, signature_of

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
    usage = usage_of(obj(content.get("usage")), programs=sum(map(_runs_a_program, parts)))
    return Response(
        Message("assistant", parts), stop, raw_stop, usage, text(content.get("model")), text(content.get("id"))
    )


def usage_of(usage: dict[str, Any], *, programs: int = 0) -> TokenUsage:
    """Our counts: the API counts cached tokens apart from the input, we count them in.

    Args:
        usage: As the API has it.
        programs: How many the provider has run, where it does not count them.
    """
    if not usage:
        return TokenUsage(estimated=True)
    read, written = count(usage.get("cache_read_input_tokens")), count(usage.get("cache_creation_input_tokens"))
    tools = obj(usage.get("server_tool_use"))
    return TokenUsage(
        input=count(usage.get("input_tokens")) + read + written,
        output=count(usage.get("output_tokens")),
        cache_read=read,
        cache_write=written,
        reasoning=count(obj(usage.get("output_tokens_details")).get("thinking_tokens")),
        more=counted(
            web_search=count(tools.get("web_search_requests")),
            code_container=max(programs, count(tools.get("code_execution_requests"))),
            cache_write_1h=count(obj(usage.get("cache_creation")).get("ephemeral_1h_input_tokens")),
        ),
    )


_SERVER_TOOL = "server_tool_use"


def _runs_a_program(part: Part) -> bool:
    """Whether a block is the use of a tool with which the provider runs code."""
    return isinstance(part, Opaque) and _SERVER_TOOL in part.raw and "code_execution" in part.raw


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
    return ToolCall(text(block.get("id")) or f"call_{index}", name, args, signature_of(origin, more))


def _stop_without_reason(parts: tuple[Part, ...]) -> Stop:
    return "tool_calls" if any(isinstance(part, ToolCall) for part in parts) else "end"


class _Start(Struct):
    content_block: Raw


_start_decoder = msgspec.json.Decoder(_Start)


class _Block:
    """A block under construction: as it started, and the pieces since."""

    __slots__ = ("call", "fields", "input", "raw", "texts")

    def __init__(self, raw: bytes, fields: dict[str, Any], call: int | None) -> None:
        self.raw = raw
        self.fields = fields
        self.call = call
        self.texts: dict[str, list[str]] = {}
        self.input: list[str] = []

    def say(self, field: str, piece: str) -> None:
        """More of a text field."""
        self.texts.setdefault(field, []).append(piece)

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
        if self.raw and not self.texts and not self.input:
            return self.raw
        for name, pieces in self.texts.items():
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
                return self._add_usage(obj(self._message.get("usage")))
            case "message_delta":
                self._message.update(obj(event.get("delta")))
                return self._add_usage(obj(event.get("usage")))
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
        chunk = text(fields.get("text"))
        return (TextChunk(chunk),) if chunk else ()

    def _delta(self, event: dict[str, Any]) -> Sequence[Event]:
        block = self._open.get(count(event.get("index")))
        if block is None:
            raise missing(self._origin, "content_block_start", event)
        delta = obj(event.get("delta"))
        match delta.get("type"):
            case "text_delta":
                chunk = text(delta.get("text"))
                block.say("text", chunk)
                return (TextChunk(chunk),)
            case "input_json_delta":
                piece = text(delta.get("partial_json"))
                block.input.append(piece)
                return (CallDelta(block.call, piece),) if block.call is not None and piece else ()
            case "thinking_delta":
                thought = text(delta.get("thinking"))
                block.say("thinking", thought)
                return (ThinkingChunk(thought),)
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

    def _add_usage(self, usage: dict[str, Any]) -> Sequence[Event]:
        self._usage.update({name: value for name, value in usage.items() if value is not None})
        return (UsageUpdate(usage_of(self._usage)),) if usage else ()

    def _finish(self) -> Sequence[Event]:
        self._done = True
        events = [event for index in sorted(self._open) for event in self._stop(index)]
        if not self._message:
            raise missing(self._origin, "message_start", {})
        parts = tuple(self._parts[index] for index in sorted(self._parts))
        return [*events, Done(response_of({**self._message, "usage": self._usage}, parts))]


API_VERSION = "2023-06-01"

_PATH = "/v1/messages"
_MAX_TOKENS = 4096
_NOT_IN_IDS = re.compile(r"[^a-zA-Z0-9_-]")
_CACHED = {"type": "ephemeral"}
_TOOL_CHOICES = {"auto": "auto", "none": "none", "required": "any"}


class AnthropicWire:
    """The `Wire` of Anthropic Messages.

    Args:
        origin: The provider's name, for errors and for what is sent back to its maker only.
    """

    inputs: frozenset[ModelInput] = frozenset({"image", "pdf"})

    def __init__(self, origin: str = "anthropic") -> None:
        self.origin = origin
        self._tools = RenderedToolSets()

    def build(self, request: Request, quirks: Quirks, *, stream: bool) -> tuple[str, dict[str, Any]]:
        """See `Wire.build`. The API demands `max_tokens`; without a wish it is 4096."""
        body: dict[str, Any] = {
            "model": request.model,
            "max_tokens": request.max_tokens or quirks.max_tokens_default or _MAX_TOKENS,
            "messages": self._messages(request.messages),
        }
        if request.system:
            body["system"] = request.system
        if request.tools:
            body["tools"] = self._tools.get(request.tools, strict=quirks.strict_tools, render=_tool)
            if request.tool_choice != "auto" or not request.parallel_tool_calls:
                body["tool_choice"] = _tool_choice(request.tool_choice, parallel=request.parallel_tool_calls)
        if config := _output_config(request, quirks):
            body["output_config"] = config
        if request.reasoning is not None:
            body["thinking"] = _thinking_setting(request.reasoning.effort, request.reasoning.budget_tokens)
        if quirks.prompt_cache and request.prompt_cache and request.tools:
            _mark_for_cache(body)
        ignored = quirks.settings_to_drop(request)
        for name in ("temperature", "top_p"):
            value = getattr(request, name)
            if value is not None and name not in ignored:
                body[name] = value
        if stream:
            body["stream"] = True
        body.update(request.extra)
        return _PATH, body

    def headers(self, key: str | None) -> dict[str, str]:
        """See `Wire.headers`."""
        version = {"anthropic-version": API_VERSION}
        return {"x-api-key": key, **version} if key else version

    def parse(self, body: bytes) -> Response:
        """See `Wire.parse`."""
        return parse_answer(body, self.origin)

    def decoder(self) -> AnthropicDecoder:
        """See `Wire.decoder`."""
        return AnthropicDecoder(self.origin)

    def error(self, status: int, headers: Mapping[str, str], body: bytes) -> ModelError:
        """See `Wire.error`."""
        try:
            content = obj(orjson.loads(body))
        except orjson.JSONDecodeError:
            fault = ErrorBody(body.decode("utf-8", "replace"))
            return provider_error(self.origin, fault, status=status, headers=headers)
        fault = fault_of(content.get("error") or content)
        request_id = text(content.get("request_id"))
        return provider_error(self.origin, fault, status=status, headers=headers, request_id=request_id)

    def _messages(self, messages: tuple[Message, ...]) -> list[dict[str, Any]]:
        """One message per turn: neighbours of one role become one, a message that would be empty is left out."""
        rendered: list[dict[str, Any]] = []
        for message in messages:
            blocks = [block for part in message.parts if (block := _block(part, self.origin)) is not None]
            if rendered and rendered[-1]["role"] == message.role:
                rendered[-1]["content"] += blocks
            elif blocks:
                rendered.append({"role": message.role, "content": blocks})
        return rendered


def _mark_for_cache(body: dict[str, Any]) -> None:
    """End a cached prefix after the tools and the system prompt, and after the last two user turns.

    The next turn of the conversation reads up to the last mark; the one before it is what this turn itself reads,
    found however many results stand between them. A single question without tools has no next turn, and is not marked,
    because writing costs more than reading afresh. At most 4 marks are allowed.
    https://platform.claude.com/docs/en/build-with-claude/prompt-caching
    """
    if "system" in body:
        body["system"] = [{"type": "text", "text": body["system"], "cache_control": _CACHED}]
    turns = [message["content"] for message in body["messages"] if message["role"] == "user"]
    for blocks in turns[-2:]:
        if isinstance(blocks[-1], dict):
            blocks[-1]["cache_control"] = _CACHED


def _block(part: Part, origin: str) -> Any:
    """A part as a content block, or None if there is nothing that this provider may see."""
    match part:
        case Text():
            return {"type": "text", "text": part.text} if part.text else None
        case ToolCall():
            return _tool_use(part, origin)
        case ToolResult():
            return _tool_result(part)
        case FilePart():
            return _file(part)
        case Thinking():
            return _thinking(part) if part.origin == origin and part.signature else None
        case _:
            return _opaque(part, origin)


def _opaque(part: Opaque, origin: str) -> Any:
    if part.origin == origin:
        return orjson.Fragment(part.raw)
    return {"type": "text", "text": part.text} if part.text else None


def _tool_use(call: ToolCall, origin: str) -> dict[str, Any]:
    block = {"type": "tool_use", "id": _id(call.id), "name": call.name, "input": as_object(call.args)}
    return block | fields_of(call.signature, origin)


def _tool_result(result: ToolResult) -> dict[str, Any]:
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": _id(result.id), "content": result.text}
    if result.files:
        words = [{"type": "text", "text": result.text}] if result.text else []
        block["content"] = [*words, *map(_file, result.files)]
    if result.is_error:
        block["is_error"] = True
    return block


def _file(file: FilePart) -> dict[str, Any]:
    """An image, or a PDF file as a document.

    https://platform.claude.com/docs/en/build-with-claude/vision, .../pdf-support
    """
    source = {"type": "base64", "media_type": file.media_type, "data": file.data}
    if input_of(file.media_type) == "image":
        return {"type": "image", "source": source}
    return {"type": "document", "source": source, **({"title": file.name} if file.name else {})}


def _thinking(part: Thinking) -> dict[str, Any]:
    if part.redacted:
        return {"type": "redacted_thinking", "data": part.signature}
    return {"type": "thinking", "thinking": part.text, "signature": part.signature}


def _id(value: str) -> str:
    """Ids of other providers may hold characters that this API refuses."""
    return _NOT_IN_IDS.sub("_", value)


def _tool(tool: Tool, /, *, strict: bool) -> dict[str, Any]:
    rendered: dict[str, Any] = {"name": tool.name, "description": tool.description, "input_schema": tool.schema}
    if strict and tool.strict and (schema := strict_schema(tool.schema, "anthropic")) is not None:
        rendered["input_schema"] = schema
        rendered["strict"] = True
    return rendered


def _tool_choice(choice: str | NamedTool, *, parallel: bool) -> dict[str, Any]:
    named = isinstance(choice, NamedTool)
    chosen: dict[str, Any] = {"type": "tool", "name": choice.name} if named else {"type": _TOOL_CHOICES[choice]}
    return chosen if parallel or choice == "none" else {**chosen, "disable_parallel_tool_use": True}


def _output_config(request: Request, quirks: Quirks) -> dict[str, Any]:
    config: dict[str, Any] = {}
    if request.output_schema is not None and quirks.structured == "json_schema":
        schema = strict_schema(request.output_schema, "anthropic") or request.output_schema
        config["format"] = {"type": "json_schema", "schema": schema}
    if request.reasoning is not None and request.reasoning.effort not in (None, "none"):
        config["effort"] = request.reasoning.effort
    return config


def _thinking_setting(effort: str | None, budget_tokens: int | None) -> dict[str, Any]:
    if budget_tokens is not None:
        return {"type": "enabled", "budget_tokens": budget_tokens}
    return {"type": "disabled" if effort == "none" else "adaptive"}

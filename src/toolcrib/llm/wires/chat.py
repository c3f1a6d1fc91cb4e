"""OpenAI Chat Completions, and every server that speaks it: rendering and the `Wire` itself.

Not here: what an answer means (`chat_answer`), and streams (`chat_stream`). A tool result's `is_error` has no field
in this API; the result's text says it.
https://platform.openai.com/docs/api-reference/chat
"""

from collections.abc import Mapping
from typing import Any

import msgspec
import orjson

from toolcrib.contracts.base.errors import ModelError
from toolcrib.llm.base._signature import fields_of
from toolcrib.llm.base._toolsets import RenderedToolSets
from toolcrib.llm.base.errors import fault_in, provider_error
from toolcrib.llm.base.messages import (
    Message,
    NamedTool,
    Opaque,
    Request,
    Response,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolResult,
)
from toolcrib.llm.base.quirks import Quirks
from toolcrib.llm.base.strict import strict_schema
from toolcrib.llm.wires.chat_answer import parse_answer
from toolcrib.llm.wires.chat_stream import ChatDecoder

_PATH = "/chat/completions"
_fields_decoder = msgspec.json.Decoder(dict[str, msgspec.Raw])
_items_decoder = msgspec.json.Decoder(list[msgspec.Raw])


class ChatWire:
    """The `Wire` of Chat Completions.

    Args:
        origin: The endpoint's name (`openai`, `groq`, ...), for errors and for what is sent back to its maker only.
    """

    def __init__(self, origin: str = "openai") -> None:
        self.origin = origin
        self._tools = RenderedToolSets()

    def build(self, request: Request, quirks: Quirks, *, stream: bool) -> tuple[str, dict[str, Any]]:
        """See `Wire.build`."""
        body: dict[str, Any] = {"model": request.model, "messages": self._messages(request, quirks)}
        if request.tools:
            body["tools"] = self._tools.get(request.tools, strict=quirks.strict_tools, render=_tool)
            if request.tool_choice != "auto":
                body["tool_choice"] = _tool_choice(request.tool_choice)
            if not request.parallel_tool_calls and quirks.sampling:  # reasoning models refuse the field
                body["parallel_tool_calls"] = False
        if request.output_schema is not None:
            body.update(_response_format(request.output_name, request.output_schema, quirks))
        max_tokens = request.max_tokens or quirks.max_tokens_default
        if max_tokens is not None:
            body[quirks.max_tokens_field] = max_tokens
        _add_sampling(body, request, quirks)
        if stream:
            body["stream"] = True
            if quirks.stream_usage:
                body["stream_options"] = {"include_usage": True}
        body.update(request.extra)
        return _PATH, body

    def headers(self, key: str | None) -> dict[str, str]:
        """See `Wire.headers`."""
        return {"authorization": f"Bearer {key}"} if key else {}

    def parse(self, body: bytes) -> Response:
        """See `Wire.parse`."""
        return parse_answer(body, self.origin)

    def decoder(self) -> ChatDecoder:
        """See `Wire.decoder`."""
        return ChatDecoder(self.origin)

    def error(self, status: int, headers: Mapping[str, str], body: bytes) -> ModelError:
        """See `Wire.error`."""
        return provider_error(self.origin, fault_in(body), status=status, headers=headers)

    def _messages(self, request: Request, quirks: Quirks) -> list[dict[str, Any]]:
        rendered: list[dict[str, Any]] = []
        if request.system:
            rendered.append({"role": quirks.system_role, "content": request.system})
        for message in request.messages:
            if message.role == "user":
                _add_user(rendered, message)
            else:
                rendered.append(_assistant(message, self.origin, quirks))
        return rendered


def _tool(tool: Tool, /, *, strict: bool) -> dict[str, Any]:
    function: dict[str, Any] = {"name": tool.name, "description": tool.description, "parameters": tool.schema}
    if strict and tool.strict and (schema := strict_schema(tool.schema, "openai")) is not None:
        function["parameters"] = schema
        function["strict"] = True
    return {"type": "function", "function": function}


def _tool_choice(choice: str | NamedTool) -> Any:
    return {"type": "function", "function": {"name": choice.name}} if isinstance(choice, NamedTool) else choice


def _response_format(name: str, schema: dict[str, Any], quirks: Quirks) -> dict[str, Any]:
    if quirks.structured == "json_object":
        return {"response_format": {"type": "json_object"}}
    if quirks.structured != "json_schema":
        return {}
    wanted: dict[str, Any] = {"name": name, "schema": schema}
    if quirks.strict is not None:
        strict = strict_schema(schema, quirks.strict)
        wanted = {"name": name, "schema": strict or schema, "strict": strict is not None}
    return {"response_format": {"type": "json_schema", "json_schema": wanted}}


def _add_sampling(body: dict[str, Any], request: Request, quirks: Quirks) -> None:
    ignored = quirks.ignored(request)
    for name in ("temperature", "top_p", "frequency_penalty", "presence_penalty"):
        value = getattr(request, name)
        if value is not None and name not in ignored:
            body[name] = value
    if request.reasoning is not None and request.reasoning.effort is not None:
        body["reasoning_effort"] = request.reasoning.effort


def _add_user(rendered: list[dict[str, Any]], message: Message) -> None:
    """Results come first, because they must follow the calls; then all texts as one message."""
    texts: list[str] = []
    for part in message.parts:
        match part:
            case ToolResult():
                rendered.append({"role": "tool", "tool_call_id": part.id, "content": part.text})
            case Text() | Opaque():
                texts.append(part.text)
            case _:
                pass
    if texts:
        rendered.append({"role": "user", "content": "\n\n".join(texts)})


class _Assistant:
    """An assistant message under construction."""

    __slots__ = ("calls", "content", "fields")

    def __init__(self) -> None:
        self.content: list[str | dict[str, Any] | orjson.Fragment] = []
        """Texts, and pieces that are more than text, in order."""
        self.calls: list[dict[str, Any]] = []
        self.fields: dict[str, Any] = {}

    def think(self, field: str, text: str) -> None:
        """Reasoning that the endpoint takes back, in a field of its own or as a piece of the content."""
        if field == "content":
            self.content.append({"type": "thinking", "thinking": [{"type": "text", "text": text}]})
        else:
            self.fields[field] = self.fields.get(field, "") + text

    def replay(self, part: Opaque, accepted: frozenset[str]) -> None:
        """The content pieces and message fields that an opaque part stands for, or its text if none is accepted."""
        fields = _fields_decoder.decode(part.raw)
        pieces = _items_decoder.decode(fields.pop("content")) if "content" in fields else []
        known = {name: orjson.Fragment(bytes(raw)) for name, raw in fields.items() if name in accepted}
        self.content += [orjson.Fragment(bytes(raw)) for raw in pieces]
        self.fields.update(known)
        if not pieces and not known:
            self.say(part.text)

    def say(self, text: str) -> None:
        """Plain text."""
        if text:
            self.content.append(text)

    def rendered(self) -> dict[str, Any]:
        """The message. Without calls it must have content, even if it is empty."""
        message: dict[str, Any] = {"role": "assistant", "content": None, **self.fields}
        texts = [piece for piece in self.content if isinstance(piece, str)]
        if len(texts) < len(self.content):
            message["content"] = [{"type": "text", "text": it} if isinstance(it, str) else it for it in self.content]
        elif texts or not self.calls:
            message["content"] = "".join(texts)
        if self.calls:
            message["tool_calls"] = self.calls
        return message


def _assistant(message: Message, origin: str, quirks: Quirks) -> dict[str, Any]:
    result = _Assistant()
    for part in message.parts:
        match part:
            case Text():
                result.say(part.text)
            case ToolCall():
                result.calls.append(_call(part, fields_of(part.signature, origin)))
            case Thinking():
                if quirks.thinking_field and part.origin == origin and part.text:
                    result.think(quirks.thinking_field, part.text)
            case Opaque():
                if part.origin == origin:
                    result.replay(part, quirks.replay_fields)
                else:
                    result.say(part.text)
            case _:
                pass
    return result.rendered()


def _call(part: ToolCall, kept: dict[str, Any]) -> dict[str, Any]:
    """A call as it came: the fields that were kept of it hold what a custom tool was called with."""
    if "custom" in kept:
        return {"id": part.id, "type": "custom", **kept}
    return {"id": part.id, "type": "function", "function": {"name": part.name, "arguments": part.args}, **kept}

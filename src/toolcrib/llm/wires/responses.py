"""OpenAI Responses: rendering and the `Wire` itself.

Stateless: nothing is stored at the provider (`store` is false), the whole history goes with each request, and reasoning
goes with it in the encrypted form in which it came. Not here: what an answer means (`responses_answer`), and streams
(`responses_stream`). A tool result's `is_error` has no field in this API; the result's text says it.
https://platform.openai.com/docs/api-reference/responses
"""

from collections.abc import Mapping
from typing import Any

import orjson

from toolcrib.contracts.base.errors import ModelError
from toolcrib.llm.base._signature import fields_of
from toolcrib.llm.base._toolsets import RenderedToolSets
from toolcrib.llm.base.errors import fault_in, provider_error
from toolcrib.llm.base.json_values import obj
from toolcrib.llm.base.messages import (
    Message,
    NamedTool,
    Opaque,
    Part,
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
from toolcrib.llm.wires.responses_answer import parse_answer
from toolcrib.llm.wires.responses_stream import ResponsesDecoder

_PATH = "/responses"


class ResponsesWire:
    """The `Wire` of Responses.

    Args:
        origin: The endpoint's name, for errors and for what is sent back to its maker only.
    """

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
    ignored = quirks.ignored(request)
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
            return {"type": "function_call_output", "call_id": part.id, "output": part.text}
        case Thinking():
            return _reasoning(part, origin)
        case _:
            return _opaque(part, role, origin)


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

"""Anthropic Messages: rendering and the `Wire` itself.

Not here: what an answer means (`anthropic_answer`), and streams (`anthropic_stream`). Written against the API version
2023-06-01, which the provider keeps stable; later versions refuse the sampling settings that our requests may carry.
https://platform.claude.com/docs/en/api/messages
"""

import re
from collections.abc import Mapping
from typing import Any

import orjson

from toolcrib.contracts.base.errors import ModelError
from toolcrib.llm.base._arguments import as_object
from toolcrib.llm.base._signature import fields_of
from toolcrib.llm.base._toolsets import RenderedToolSets
from toolcrib.llm.base.errors import Fault, fault_of, provider_error
from toolcrib.llm.base.json_values import obj, text
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
from toolcrib.llm.wires.anthropic_answer import parse_answer
from toolcrib.llm.wires.anthropic_stream import AnthropicDecoder

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
        ignored = quirks.ignored(request)
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
            fault = Fault(body.decode("utf-8", "replace"))
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
    if result.is_error:
        block["is_error"] = True
    return block


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

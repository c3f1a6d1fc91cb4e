"""Gemini generateContent, of Google AI and of Vertex AI: rendering and the `Wire` itself.

Not here: what an answer means (`gemini_answer`), streams (`gemini_stream`), errors (`gemini_errors`), and the subset
of JSON Schema (`gemini_schema`). The base URL holds the API's version and, with Vertex, project and location.
https://ai.google.dev/api/generate-content
https://ai.google.dev/gemini-api/docs/thought-signatures
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import orjson

from toolcrib.contracts.base.errors import ModelError
from toolcrib.llm.base._arguments import as_object
from toolcrib.llm.base._signature import fields_of
from toolcrib.llm.base._toolsets import RenderedToolSets
from toolcrib.llm.base.errors import Fault, provider_error
from toolcrib.llm.base.json_values import obj
from toolcrib.llm.base.messages import (
    Message,
    NamedTool,
    Opaque,
    Part,
    Reasoning,
    Request,
    Response,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolResult,
)
from toolcrib.llm.base.quirks import Quirks
from toolcrib.llm.wires.gemini import BESIDE_CONTENT, parse_answer
from toolcrib.llm.wires.gemini_errors import fault_of
from toolcrib.llm.wires.gemini_schema import gemini_schema
from toolcrib.llm.wires.gemini_stream import GeminiDecoder

_MODES = {"auto": "AUTO", "none": "NONE", "required": "ANY"}
_SAMPLING = {
    "temperature": "temperature",
    "top_p": "topP",
    "frequency_penalty": "frequencyPenalty",
    "presence_penalty": "presencePenalty",
}
_BUDGETS = {"none": 0, "minimal": 1024, "low": 1024, "medium": 8192, "high": 24576}
"""Google's own translation, https://ai.google.dev/gemini-api/docs/openai#thinking"""
_UNBOUND_BUDGET = -1
_NO_SIGNATURE = "skip_thought_signature_validator"


class GeminiWire:
    """The `Wire` of Gemini generateContent.

    Args:
        origin: The provider's name, for errors and for what is sent back to its maker only.
    """

    def __init__(self, origin: str = "google") -> None:
        self.origin = origin
        self._tools = RenderedToolSets()

    def build(self, request: Request, quirks: Quirks, *, stream: bool) -> tuple[str, dict[str, Any]]:
        """See `Wire.build`. A model that is no plain name (`tunedModels/x`) is taken as the path that it is."""
        body: dict[str, Any] = {"contents": self._contents(request.messages, quirks)}
        if request.system:
            body["systemInstruction"] = {"parts": [{"text": request.system}]}
        if request.tools:
            tools = self._tools.get(request.tools, strict=False, render=_tool)
            body["tools"] = [{"functionDeclarations": tools}]
            if request.tool_choice != "auto":
                body["toolConfig"] = {"functionCallingConfig": _calling(request.tool_choice)}
        extra = dict(request.extra)
        if config := _generation_config(request, quirks) | obj(extra.pop("generationConfig", None)):
            body["generationConfig"] = config
        body.update(extra)
        name = quote(request.model)
        method = "streamGenerateContent?alt=sse" if stream else "generateContent"
        return f"/{name if '/' in name else f'models/{name}'}:{method}", body

    def headers(self, key: str | None) -> dict[str, str]:
        """See `Wire.headers`. The API would take the key in the URL too, where it ends up in logs."""
        return {"x-goog-api-key": key} if key else {}

    def parse(self, body: bytes) -> Response:
        """See `Wire.parse`."""
        return parse_answer(body, self.origin)

    def decoder(self) -> GeminiDecoder:
        """See `Wire.decoder`."""
        return GeminiDecoder(self.origin)

    def error(self, status: int, headers: Mapping[str, str], body: bytes) -> ModelError:
        """See `Wire.error`."""
        try:
            fault = fault_of(orjson.loads(body))
        except orjson.JSONDecodeError:
            fault = Fault(body.decode("utf-8", "replace"))
        return provider_error(self.origin, fault, status=status, headers=headers)

    def _contents(self, messages: tuple[Message, ...], quirks: Quirks) -> list[dict[str, Any]]:
        """One content per turn: neighbours of one role become one, a message that would be empty is left out."""
        contents: list[dict[str, Any]] = []
        for message in messages:
            role = "model" if message.role == "assistant" else "user"
            parts = [part for said in message.parts if (part := _part(said, self.origin)) is not None]
            if quirks.signed_calls:
                _sign_first_call(parts)
            if contents and contents[-1]["role"] == role:
                contents[-1]["parts"] += parts
            elif parts:
                contents.append({"role": role, "parts": parts})
        return contents


def _part(part: Part, origin: str) -> dict[str, Any] | orjson.Fragment | None:
    """A part as the API has it, or None if there is nothing that this provider may see."""
    match part:
        case Text():
            seal = fields_of(part.signature, origin)
            return {"text": part.text, **seal} if part.text or seal else None
        case ToolCall():
            return _function_call(part, origin)
        case ToolResult():
            response = {"error" if part.is_error else "output": part.text}
            return {"functionResponse": {"id": part.id, "name": part.name, "response": response}}
        case Thinking():
            return _thought(part) if part.origin == origin else None
        case _:
            return _opaque(part, origin)


def _function_call(call: ToolCall, origin: str) -> dict[str, Any]:
    more = fields_of(call.signature, origin)
    further = obj(more.pop("functionCall", None))
    return {"functionCall": {"id": call.id, "name": call.name, "args": as_object(call.args), **further}, **more}


def _sign_first_call(parts: list[dict[str, Any] | orjson.Fragment]) -> None:
    """Give calls that another model made, or that came unsigned, the mark that the API accepts instead.

    Of several calls in one turn it signs, and asks for, the first.
    """
    for part in parts:
        if isinstance(part, dict) and "functionCall" in part:
            part.setdefault("thoughtSignature", _NO_SIGNATURE)
            return


def _thought(part: Thinking) -> dict[str, Any]:
    thought: dict[str, Any] = {"text": part.text, "thought": True}
    return thought | ({"thoughtSignature": part.signature} if part.signature else {})


def _opaque(part: Opaque, origin: str) -> dict[str, Any] | orjson.Fragment | None:
    if part.origin != origin:
        return {"text": part.text} if part.text else None
    return None if part.raw.startswith(f'{{"{BESIDE_CONTENT}":') else orjson.Fragment(part.raw)


def _tool(tool: Tool, /, *, strict: bool) -> dict[str, Any]:
    del strict  # the API has no such mode
    return {"name": tool.name, "description": tool.description, "parametersJsonSchema": gemini_schema(tool.schema)}


def _calling(choice: str | NamedTool) -> dict[str, Any]:
    if isinstance(choice, NamedTool):
        return {"mode": "ANY", "allowedFunctionNames": [choice.name]}
    return {"mode": _MODES[choice]}


def _generation_config(request: Request, quirks: Quirks) -> dict[str, Any]:
    config: dict[str, Any] = {}
    if max_tokens := request.max_tokens or quirks.max_tokens_default:
        config["maxOutputTokens"] = max_tokens
    ignored = quirks.ignored(request)
    for name, field in _SAMPLING.items():
        value = getattr(request, name)
        if value is not None and name not in ignored:
            config[field] = value
    if request.output_schema is not None and quirks.structured in {"json_schema", "json_object"}:
        config["responseMimeType"] = "application/json"
        if quirks.structured == "json_schema":
            config["responseJsonSchema"] = gemini_schema(request.output_schema)
    if request.reasoning is not None:
        config["thinkingConfig"] = _thinking_config(request.reasoning, quirks)
    return config


def _thinking_config(reasoning: Reasoning, quirks: Quirks) -> dict[str, Any]:
    """The second generation takes a budget only; the third takes words, and cannot but think a little."""
    budget, effort = reasoning.budget_tokens, reasoning.effort
    if budget is None and effort is not None:
        if not quirks.effort_as_budget:
            return {"includeThoughts": effort != "none", "thinkingLevel": "minimal" if effort == "none" else effort}
        budget = _BUDGETS.get(effort, _UNBOUND_BUDGET)
    if budget is None:
        return {"includeThoughts": True}
    return {"includeThoughts": budget != 0, "thinkingBudget": budget}

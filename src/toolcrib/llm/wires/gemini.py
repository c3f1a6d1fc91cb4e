"""Gemini generateContent, at Google AI and Vertex AI: requests, schemas, answers, streams and errors.

A stream is a sequence of partial answers of the same form. Adjacent unsigned pieces of text or thought become one
part. Parts without a neutral form, and data of a candidate beside its content (grounding, citations), become `Opaque`
parts with their original bytes. Schemas are reduced to the keywords that the API accepts; arguments and answers are
validated against the whole schema later. The base URL has the API's version and, for Vertex, project and location.
https://ai.google.dev/api/generate-content
https://ai.google.dev/api/generate-content#FIELDS.response_json_schema
https://ai.google.dev/gemini-api/docs/thought-signatures
https://cloud.google.com/apis/design/errors#error_model
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, cast
from urllib.parse import quote

import msgspec
import orjson
from msgspec import Raw, Struct

from toolcrib.contracts.base.errors import ModelError
from toolcrib.contracts.base.media import ModelInput
from toolcrib.llm.base.errors import ErrorBody, provider_error
from toolcrib.llm.base.json_values import arr, count, load_object, missing, obj, text
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
    Reasoning,
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
from toolcrib.llm.base.wire import RenderedToolSets, as_object, fields_of, signature_of

_FORMATS = frozenset({"date", "date-time", "time"})
_OF_ONE = frozenset({"additionalProperties", "items", "not"})
_OF_MANY = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_BY_NAME = frozenset({"$defs", "properties"})
_TYPES: dict[type, str] = {bool: "boolean", str: "string", int: "integer", float: "number"}


def gemini_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema for a model of this API. Equal schemas are worked on once."""
    return orjson.loads(_gemini_json(orjson.dumps(schema)))


@lru_cache(maxsize=1024)
def _gemini_json(schema: bytes) -> bytes:
    return orjson.dumps(_walk(orjson.loads(schema)))


def _walk(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    schema = cast("dict[str, Any]", value)
    if "$ref" in schema:
        return {keyword: _inner(keyword, content) for keyword, content in schema.items() if keyword.startswith("$")}
    made = {keyword: _inner(keyword, content) for keyword, content in schema.items()}
    if "const" in made:
        _as_choice(made, made.pop("const"))
    if isinstance(made.get("format"), str) and made["format"] not in _FORMATS:
        described = f"{made.get('description', '')} (format: {made.pop('format')})"
        made["description"] = described.lstrip()
    return made


def _inner(keyword: str, content: Any) -> Any:
    if keyword in _OF_ONE:
        return _walk(content)
    if keyword in _OF_MANY and isinstance(content, list):
        return [_walk(branch) for branch in cast("list[Any]", content)]
    if keyword in _BY_NAME and isinstance(content, dict):
        return {name: _walk(branch) for name, branch in cast("dict[str, Any]", content).items()}
    return content


def _as_choice(schema: dict[str, Any], value: Any) -> None:
    """A constant as a choice of one; the API knows choices of texts and numbers only."""
    if type(value) in _TYPES:
        schema.setdefault("type", _TYPES[type(value)])
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        schema["enum"] = [value]


_REASON = "google.rpc.ErrorInfo"
_RETRY = "google.rpc.RetryInfo"
_QUOTA = "google.rpc.QuotaFailure"


def fault_of(body: Any) -> ErrorBody:
    """The fault in a body: `{"error": {...}}`, or an array of it, which streams answer with."""
    content = obj(next(iter(arr(body)), body))
    error = obj(content.get("error"))
    if not error:
        return ErrorBody(text(content.get("error")) or text(content.get("message")))
    details = {text(detail.get("@type")).rpartition("/")[2]: detail for detail in map(obj, arr(error.get("details")))}
    words = (text(obj(details.get(_REASON)).get("reason")), text(error.get("status")))
    return ErrorBody(
        text(error.get("message")),
        tuple(word for word in words if word),
        count(error.get("code")),
        retry_after_s=_seconds(text(obj(details.get(_RETRY)).get("retryDelay"))),
        kind="quota" if _is_daily(obj(details.get(_QUOTA))) else None,
    )


def _is_daily(quota: dict[str, Any]) -> bool:
    """Whether waiting for a minute does not help."""
    return any("PerDay" in text(obj(violation).get("quotaId")) for violation in arr(quota.get("violations")))


def _seconds(duration: str) -> float | None:
    """A duration of protocol buffers: `17s`, `1.5s`."""
    try:
        return float(duration.removesuffix("s"))
    except ValueError:
        return None


BESIDE_CONTENT = "candidate"
"""The key of an opaque part that stood beside the content; no part of the API has it."""

_STOPS: dict[str, Stop] = {
    "STOP": "end",
    "MAX_TOKENS": "length",
    "SAFETY": "content_filter",
    "RECITATION": "content_filter",
    "LANGUAGE": "content_filter",
    "BLOCKLIST": "content_filter",
    "PROHIBITED_CONTENT": "content_filter",
    "SPII": "content_filter",
    "MODEL_ARMOR": "content_filter",
    "ESCALATION": "content_filter",
    "IMAGE_SAFETY": "content_filter",
    "IMAGE_PROHIBITED_CONTENT": "content_filter",
    "IMAGE_RECITATION": "content_filter",
}
_NUMBERED_STOPS = {1: "STOP", 2: "MAX_TOKENS", 3: "SAFETY", 4: "RECITATION", 5: "OTHER"}
"""Vertex writes enumerations as numbers on request."""
_KNOWN_OF_CANDIDATE = frozenset({"avgLogprobs", "content", "finishReason", "index", "safetyRatings", "tokenCount"})
_OF_SAID = frozenset({"text", "thought", "thoughtSignature"})
_OF_CALL = frozenset({"args", "id", "name"})


class _Body(Struct):
    candidates: list[Raw]


class _Candidate(Struct):
    content: Raw


class _Content(Struct):
    parts: list[Raw]


class _Call(Struct):
    args: Raw = Raw(b"{}")


class _CallPart(Struct):
    function_call: _Call = msgspec.field(name="functionCall")


_body_decoder = msgspec.json.Decoder(_Body)
_candidate_decoder = msgspec.json.Decoder(_Candidate)
_content_decoder = msgspec.json.Decoder(_Content)
_call_decoder = msgspec.json.Decoder(_CallPart)


class GeminiAnswer:
    """An answer under construction.

    Args:
        origin: The provider's name.
    """

    def __init__(self, origin: str) -> None:
        self._origin = origin
        self._parts: list[Part] = []
        self._calls = 0
        self._beside: list[Opaque] = []
        self._usage: dict[str, Any] = {}
        self._model = ""
        self._id = ""
        self._begun = False
        self.raw_stop = ""
        """Why the model stopped, in the provider's word; empty until it did."""

    def add(self, data: bytes) -> Sequence[Event]:
        """Take in an answer, or the next piece of one.

        Raises:
            ModelError: It is an error, its prompt was blocked, or it is not what it should be.
        """
        chunk = load_object(data, self._origin)
        if chunk.get("error"):
            raise provider_error(self._origin, fault_of(chunk))
        self._model = self._model or text(chunk.get("modelVersion"))
        self._id = self._id or text(chunk.get("responseId"))
        events: list[Event] = []
        if candidates := arr(chunk.get("candidates")):
            self._begun = True
            self._take(obj(candidates[0]), data, events)
        else:
            self._refuse_blocked(obj(chunk.get("promptFeedback")))
        if usage := obj(chunk.get("usageMetadata")):
            self._usage.update(usage)
            events.append(UsageUpdate(usage_of(self._usage)))
        return events

    def response(self) -> Response:
        """The response that all pieces make.

        Raises:
            ModelError: `bad_response`, there was no candidate.
        """
        if not self._begun:
            raise missing(self._origin, "candidates", {})
        stop = _STOPS.get(self.raw_stop, "other") if self.raw_stop else "end"
        if stop == "end" and self._calls:
            stop = "tool_calls"
        message = Message("assistant", (*self._parts, *self._beside))
        usage = usage_of(self._usage, searches=self._searches())
        return Response(message, stop, self.raw_stop, usage, self._model, self._id)

    def _searches(self) -> int:
        """Searches that are billed: a prompt with any of them is, and since the third generation each of them."""
        found = [obj(obj(orjson.loads(part.raw)).get(BESIDE_CONTENT)).get("groundingMetadata") for part in self._beside]
        queries = {text(query) for each in found for query in arr(obj(each).get("webSearchQueries"))}
        return len(queries) if _BILLS_EACH_SEARCH.search(self._model) else min(len(queries), 1)

    def progress(self) -> str:
        """How far it came, for an error."""
        length = sum(len(part.text) for part in self._parts if isinstance(part, Text))
        return f"{length} characters of text and {self._calls} tool calls"

    def _refuse_blocked(self, feedback: dict[str, Any]) -> None:
        if reason := text(feedback.get("blockReason")):
            why = text(feedback.get("blockReasonMessage")) or "the prompt was blocked"
            raise provider_error(self._origin, ErrorBody(why, (reason,), kind="content_filter"), request_id=self._id)

    def _take(self, candidate: dict[str, Any], data: bytes, events: list[Event]) -> None:
        if isinstance(obj(candidate.get("content")).get("parts"), list):
            first = _body_decoder.decode(data).candidates[0]
            for raw in _content_decoder.decode(_candidate_decoder.decode(first).content).parts:
                self._part(bytes(raw), events)
        if reason := candidate.get("finishReason"):
            self.raw_stop = text(reason) or _NUMBERED_STOPS.get(count(reason)) or str(reason)
        beside = {
            name: value
            for name, value in candidate.items()
            if name not in _KNOWN_OF_CANDIDATE and value not in (None, [], {}, "")
        }
        if beside:
            kept = Opaque(self._origin, orjson.dumps({BESIDE_CONTENT: beside}).decode())
            self._beside += [kept] if kept not in self._beside else []

    def _part(self, raw: bytes, events: list[Event]) -> None:
        fields = obj(orjson.loads(raw))
        if isinstance(fields.get("functionCall"), dict):
            self._call(raw, fields, events)
        elif fields.keys() <= _OF_SAID and isinstance(fields.get("text"), str):
            self._add_text(fields, events)
        else:
            self._opaque(raw, text(fields.get("text")), events)

    def _call(self, raw: bytes, fields: dict[str, Any], events: list[Event]) -> None:
        call = obj(fields["functionCall"])
        name = text(call.get("name"))
        index = self._calls
        if not name:
            raise missing(self._origin, f"functionCall[{index}].name", call)
        # The API gives ids to calls since its third generation; ours are unique in a conversation.
        id_ = text(call.get("id")) or f"call_{self._id}_{index}"
        args = bytes(_call_decoder.decode(raw).function_call.args).decode() if call.get("args") is not None else "{}"
        more = {key: value for key, value in fields.items() if key != "functionCall"}
        if further := {key: call[key] for key in call.keys() - _OF_CALL}:
            more["functionCall"] = further
        made = ToolCall(id_, name, args, signature_of(self._origin, more))
        self._calls += 1
        self._parts.append(made)
        events += [CallStart(index, id_, name), CallDelta(index, args), CallEnd(index, made)]

    def _add_text(self, fields: dict[str, Any], events: list[Event]) -> None:
        """Text or a thought; it continues the last part of its kind, unless one of the two is signed."""
        words, signature = text(fields["text"]), text(fields.get("thoughtSignature"))
        last = self._parts[-1] if self._parts else None
        joins = not signature and isinstance(last, Text | Thinking) and last.signature is None
        if fields.get("thought"):
            if joins and isinstance(last, Thinking):
                self._parts[-1] = Thinking(last.text + words, origin=self._origin)
            else:
                self._parts.append(Thinking(words, signature or None, origin=self._origin))
            events += [ThinkingChunk(words)] if words else []
        elif words or signature:
            if joins and isinstance(last, Text):
                self._parts[-1] = Text(last.text + words)
            else:
                sealed = {"thoughtSignature": signature} if signature else {}
                self._parts.append(Text(words, signature_of(self._origin, sealed)))
            events += [TextChunk(words)] if words else []

    def _opaque(self, raw: bytes, words: str, events: list[Event]) -> None:
        self._parts.append(Opaque(self._origin, raw.decode(), words))
        events += [TextChunk(words)] if words else []


def usage_of(usage: dict[str, Any], *, searches: int = 0) -> TokenUsage:
    """Our counts: what tools of the provider added to the prompt is read too, and thoughts are written too.

    Args:
        usage: As the API has it.
        searches: Searches of the web that are billed, which the API does not count.
    """
    if not usage:
        return TokenUsage(estimated=True)
    thoughts = count(usage.get("thoughtsTokenCount"))
    return TokenUsage(
        input=count(usage.get("promptTokenCount")) + count(usage.get("toolUsePromptTokenCount")),
        output=count(usage.get("candidatesTokenCount")) + thoughts,
        cache_read=count(usage.get("cachedContentTokenCount")),
        reasoning=thoughts,
        more=counted(**_kinds_of_tokens(usage), web_search=searches),
    )


_MODALITIES: Final = {"AUDIO": "audio", "IMAGE": "image", "VIDEO": "video", 2: "image", 3: "video", 4: "audio"}
"""By name, and by number as some clients write them."""
_DETAILS: Final = {
    "promptTokensDetails": "input",
    "toolUsePromptTokensDetails": "input",
    "candidatesTokensDetails": "output",
    "cacheTokensDetails": "cache_read",
}
_BILLS_EACH_SEARCH: Final = re.compile(r"gemini-(?:[3-9]|[1-9]\d)")


def _kinds_of_tokens(usage: dict[str, Any]) -> Mapping[str, int]:
    """The tokens that are no text, by what they are and where they stand."""
    found: Counter[str] = Counter()
    for field, side in _DETAILS.items():
        for detail in map(obj, arr(usage.get(field))):
            if (kind := _MODALITIES.get(detail.get("modality", ""))) is not None:
                found[f"{kind}_{side}"] += count(detail.get("tokenCount"))
    return found


def parse_answer(body: bytes, origin: str) -> Response:
    """The response in a body; a stream that was not asked for as server-sent events is an array of its pieces.

    Raises:
        ModelError: As `Answer.add` and `Answer.response`.
    """
    answer = GeminiAnswer(origin)
    if body.lstrip().startswith(b"["):
        try:
            pieces = msgspec.json.decode(body, type=list[Raw])
        except msgspec.DecodeError as error:
            raise ModelError("stream_cut", f"{origin} ended its answer in the middle: {error}") from None
        for piece in pieces:
            answer.add(bytes(piece))
    else:
        answer.add(body)
    return answer.response()


class GeminiDecoder:
    """The `Decoder` of one stream.

    Args:
        origin: The provider's name.
    """

    def __init__(self, origin: str) -> None:
        self._origin = origin
        self._answer = GeminiAnswer(origin)

    def feed(self, data: bytes) -> Sequence[Event]:
        """See `Decoder.feed`."""
        return self._answer.add(data)

    def close(self) -> Sequence[Event]:
        """See `Decoder.close`. There is no end marker: a stream that gave its finish reason is complete."""
        if not self._answer.raw_stop:
            raise ModelError(
                "stream_cut",
                f"{self._origin} ended the stream in mid-answer, after {self._answer.progress()}, "
                "without a finish reason",
            )
        return (Done(self._answer.response()),)


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

    inputs: frozenset[ModelInput] = frozenset({"image", "pdf", "audio"})

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
            fault = ErrorBody(body.decode("utf-8", "replace"))
        return provider_error(self.origin, fault, status=status, headers=headers)

    def _contents(self, messages: tuple[Message, ...], quirks: Quirks) -> list[dict[str, Any]]:
        """One content per turn: neighbours of one role become one, a message that would be empty is left out."""
        contents: list[dict[str, Any]] = []
        for message in messages:
            role = "model" if message.role == "assistant" else "user"
            parts = [part for piece in message.parts if (part := _part(piece, self.origin)) is not None]
            if not quirks.files_in_results:
                _move_files(parts)
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
            more = {"parts": [*map(_file, part.files)]} if part.files else {}
            return {"functionResponse": {"id": part.id, "name": part.name, "response": response, **more}}
        case FilePart():
            return _file(part)
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


def _file(file: FilePart) -> dict[str, Any]:
    """https://ai.google.dev/api/caching#Blob; in a result since the third generation."""
    return {"inlineData": {"mimeType": file.media_type, "data": file.data}}


def _move_files(parts: list[dict[str, Any] | orjson.Fragment]) -> None:
    """Put the files of results behind the results, each after words that say whose it is."""
    moved: list[dict[str, Any]] = []
    for part in parts:
        response = obj(part.get("functionResponse")) if isinstance(part, dict) else {}
        files = response.pop("parts", None)
        if files is not None:
            moved += [{"text": f"Files that {response['name']} returned (call {response['id']}):"}, *files]
    parts += moved


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
    ignored = quirks.settings_to_drop(request)
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

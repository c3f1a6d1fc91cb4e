"""OpenAI Chat Completions, and compatible servers: requests, answers and streams.

Message fields without a neutral form (annotations, audio, reasoning details, refusals) become one `Opaque` part.
Streams are assembled into a message, leniently: a delta without `index`, several calls under one index, a whole call
in one delta, arguments as an object, a missing `[DONE]`, usage in any chunk. The API has no field for `is_error` of a
tool result, so the result's text says it.
https://platform.openai.com/docs/api-reference/chat
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import msgspec
import orjson
from msgspec import Meta, Struct

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
from toolcrib.llm.base.wire import BILLED, RenderedToolSets, billed, fields_of, signature_of

KNOWN_FIELDS = frozenset(
    {"role", "content", "reasoning_content", "reasoning", "tool_calls", "function_call", "refusal"}
)
"""The message fields that have a neutral shape."""

_CALL_FIELDS = frozenset({"function", "id", "index", "type"})
_THOUGHTS = frozenset({"reasoning_content", "reasoning", "reasoning_details"})
_PROVIDERS_TOOLS = frozenset({"annotations", "executed_tools"})
"""Message fields that tell of the provider's own tools."""
_USES = frozenset({"prompt_cache_hit_tokens", "num_search_queries", "server_tool_use", "num_sources_used"})
"""Fields of a usage that say, beside its details, more than how many tokens were read and written."""
_STOPS: dict[str, Stop] = {
    "stop": "end",
    "end_turn": "end",
    "eos": "end",
    "eos_token": "end",
    "stop_sequence": "end",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "content_filter",
    "refusal": "refusal",
}


class ChatAnswer(Struct):
    """One choice and what stands around it."""

    message: dict[str, Any]
    finish_reason: str
    usage: TokenUsage | None
    model: str
    id: str


_Number = Annotated[int, Meta(ge=0, le=2**53)]


class _Function(Struct, gc=False):
    name: Annotated[str, Meta(min_length=1)]
    arguments: str


class _WholeCall(Struct, forbid_unknown_fields=True, gc=False):
    function: _Function
    id: str | None = None
    index: Any = None
    type: Any = None


class _Words(Struct, forbid_unknown_fields=True, gc=False):
    """A message that is text, calls, or both. What is said to be nothing here has a meaning if it is something."""

    role: Any = None
    content: str | None = None
    tool_calls: list[_WholeCall] | None = None
    refusal: None = None
    reasoning_content: None = None
    reasoning: None = None
    function_call: None = None
    annotations: Annotated[list[Any], Meta(max_length=0)] | None = None
    audio: None = None


class _WordsChoice(Struct, gc=False):
    message: _Words
    finish_reason: str | None = None
    error: None = None


class _Read(Struct, gc=False):
    cached_tokens: _Number | None = None
    cache_write_tokens: _Number | None = None
    audio_tokens: Literal[0] | None = None


class _Written(Struct, gc=False):
    reasoning_tokens: _Number | None = None
    audio_tokens: Literal[0] | None = None
    image_tokens: Literal[0] | None = None


class _Counts(Struct, gc=False):
    """A usage in which nothing is billed apart."""

    prompt_tokens: _Number
    completion_tokens: _Number
    prompt_tokens_details: _Read | None = None
    completion_tokens_details: _Written | None = None
    cost: None = None
    cost_in_usd_ticks: None = None
    cost_details: None = None
    prompt_cache_hit_tokens: None = None
    num_search_queries: None = None
    server_tool_use: None = None
    num_sources_used: None = None


class _UsualAnswer(Struct, gc=False):
    """What most answers are; any other is no error, but is read by `parse_any`."""

    choices: Annotated[list[_WordsChoice], Meta(min_length=1)]
    usage: _Counts
    id: str | None = None
    model: str | None = None
    error: None = None


_usual_decoder = msgspec.json.Decoder(_UsualAnswer)


def parse_answer(body: bytes, origin: str) -> Response:
    """The response in a body: the same as by `parse_any`, of which this is the short way for what most answers are.

    Raises:
        ModelError: The body holds an error, or lacks what is needed.
    """
    try:
        if not body.isascii():
            body.decode()  # fields that nobody reads must be text too
        answer = _usual_decoder.decode(body)
    except (ValueError, RecursionError):
        return parse_any(body, origin)
    choice, usage, answer_id = answer.choices[0], answer.usage, answer.id or ""
    message, reason = choice.message, choice.finish_reason or ""
    parts: list[Part] = []
    if message.content:
        parts.append(Text(message.content))
    if message.tool_calls:
        for index, call in enumerate(message.tool_calls):
            function = call.function
            call_id = call.id or make_call_id(answer_id, index)
            parts.append(ToolCall(call_id, function.name, function.arguments))
    stop = _STOPS.get(reason, "other") if reason else "end"
    if stop == "end" and message.tool_calls:
        stop = "tool_calls"
    read, written = usage.prompt_tokens_details, usage.completion_tokens_details
    used = TokenUsage(
        usage.prompt_tokens,
        usage.completion_tokens,
        (read.cached_tokens or 0) if read is not None else 0,
        (read.cache_write_tokens or 0) if read is not None else 0,
        (written.reasoning_tokens or 0) if written is not None else 0,
    )
    return Response(Message("assistant", tuple(parts)), stop, reason, used, answer.model or "", answer_id)


def parse_any(body: bytes, origin: str) -> Response:
    """The response in a body, whatever its server makes of the format.

    Raises:
        ModelError: The body holds an error, or lacks what is needed.
    """
    content = load_object(body, origin)
    if content.get("error"):
        raise provider_error(origin, fault_of(content["error"]))
    choices = content.get("choices")
    if not choices or not isinstance(choices, list):
        raise missing(origin, "choices", content)
    choice = obj(arr(choices)[0])
    if choice.get("error"):
        raise provider_error(origin, fault_of(choice["error"]))
    message = choice.get("message")
    if not isinstance(message, dict) and choice.get("finish_reason") != "content_filter":
        raise missing(origin, "choices[0].message", choice)
    return response_of(
        ChatAnswer(
            message=obj(message),
            finish_reason=text(choice.get("finish_reason")),
            usage=usage_of(content),
            model=text(content.get("model")),
            id=text(content.get("id")),
        ),
        origin,
    )


def response_of(answer: ChatAnswer, origin: str) -> Response:
    """The response that an answer means."""
    message = answer.message
    names = message.keys()
    parts: list[Part] = []
    if not _THOUGHTS.isdisjoint(names) and (shown := thinking_text(message)):
        parts.append(Thinking(shown, origin=origin))
    content = message.get("content")
    if type(content) is str:
        if content:
            parts.append(Text(content))
    elif content:
        parts += _content(content, origin)
    if message.get("refusal") or not names <= KNOWN_FIELDS:
        parts += _opaque(message, origin)
    if message.get("tool_calls") or message.get("function_call"):
        parts += _calls(answer, origin)
    stop = _STOPS.get(answer.finish_reason, "other") if answer.finish_reason else "end"
    if stop == "end" and parts and type(parts[-1]) is ToolCall:
        stop = "tool_calls"
    if stop == "end" and message.get("refusal"):
        stop = "refusal"
    usage = answer.usage or TokenUsage(estimated=True)
    if not _PROVIDERS_TOOLS.isdisjoint(names):
        usage = _with_tools(usage, answer)
    return Response(Message("assistant", tuple(parts)), stop, answer.finish_reason, usage, answer.model, answer.id)


def usage_of(content: dict[str, Any]) -> TokenUsage | None:
    """The usage in an answer or a chunk of one; Groq's streams have it under `x_groq`."""
    usage = obj(content.get("usage")) or obj(obj(content.get("x_groq")).get("usage"))
    if not usage:
        return None
    sent, received = count(usage.get("prompt_tokens")), count(usage.get("completion_tokens"))
    usd = None if BILLED.isdisjoint(usage) else billed(usage)
    read, written = obj(usage.get("prompt_tokens_details")), obj(usage.get("completion_tokens_details"))
    if _USES.isdisjoint(usage) and not any(read.values()) and not any(written.values()):
        return TokenUsage(sent, received, billed_usd=usd)
    return TokenUsage(
        input=sent,
        output=received,
        cache_read=count(read.get("cached_tokens")) or count(usage.get("prompt_cache_hit_tokens")),
        cache_write=count(read.get("cache_write_tokens")),
        reasoning=count(written.get("reasoning_tokens")),
        more=counted(
            audio_input=count(read.get("audio_tokens")),
            audio_output=count(written.get("audio_tokens")),
            image_output=count(written.get("image_tokens")),
            web_search=count(usage.get("num_search_queries"))
            or count(obj(usage.get("server_tool_use")).get("web_search_requests")),
            server_tool=count(usage.get("num_sources_used")),
        ),
        billed_usd=usd,
    )


def _with_tools(usage: TokenUsage, answer: ChatAnswer) -> TokenUsage:
    """The usage with what the message tells of the provider's own tools, where the usage does not."""
    message, more = answer.message, dict(usage.more)
    if message.get("annotations") and "search" in answer.model and "web_search" not in more:
        more["web_search"] = 1
    if executed := arr(message.get("executed_tools")):
        more["server_tool"] = len(executed)
    return usage if more == usage.more else msgspec.structs.replace(usage, more=more)


def thinking_text(message: dict[str, Any]) -> str:
    """The reasoning in a message or a delta; servers that send several fields repeat one text in them."""
    shown = text(message.get("reasoning_content")) or text(message.get("reasoning"))
    if shown or "reasoning_details" not in message:
        return shown
    details = map(obj, arr(message["reasoning_details"]))
    return "".join(text(detail.get("text")) or text(detail.get("summary")) for detail in details)


def content_piece(piece: Any) -> tuple[str, str]:
    """Text and thinking text of one piece of a content array; both empty if it is neither."""
    fields = obj(piece)
    match fields.get("type"):
        case "text":
            return text(fields.get("text")), ""
        case "thinking":
            return "", "".join(text(obj(part).get("text")) for part in arr(fields.get("thinking")))
        case _:
            return "", ""


def make_call_id(answer_id: str, index: int) -> str:
    """The id of a call that came without one; unique in a conversation, and the same whole and streamed."""
    return f"call_{answer_id}_{index}" if answer_id else f"call_{index}"


def further_fields(call: dict[str, Any]) -> dict[str, Any]:
    """What a call, or a delta of one, holds beside its id and function."""
    return {name: call[name] for name in call.keys() - _CALL_FIELDS if call[name] is not None}


def _content(content: Any, origin: str) -> list[Part]:
    """The parts of a content that is an array of pieces."""
    parts: list[Part] = []
    for piece in arr(content):
        words, thought = content_piece(piece)
        if thought:
            parts.append(Thinking(thought, origin=origin))
        elif words:
            parts.append(Text(words))
        elif obj(piece).get("type") not in {"text", "thinking"}:
            fields = {"content": [piece]}
            parts.append(Opaque(origin, orjson.dumps(fields).decode(), text(obj(piece).get("refusal"))))
    return parts


def _opaque(message: dict[str, Any], origin: str) -> list[Part]:
    parts: list[Part] = []
    if refusal := text(message.get("refusal")):
        parts.append(Opaque(origin, orjson.dumps({"refusal": refusal}).decode(), refusal))
    fields = {name: value for name, value in message.items() if name not in KNOWN_FIELDS and not _says_nothing(value)}
    if fields:
        parts.append(Opaque(origin, orjson.dumps(fields).decode()))
    return parts


def _says_nothing(value: Any) -> bool:
    """Whether a field is there for its name only; some servers send every field, with zeros in its members."""
    return value in (None, [], {}, "") or (isinstance(value, dict) and not any(obj(value).values()))


def _calls(answer: ChatAnswer, origin: str) -> list[Part]:
    calls = [obj(call) for call in arr(answer.message.get("tool_calls"))]
    if not calls and any(obj(answer.message.get("function_call")).values()):
        calls = [{"function": answer.message["function_call"]}]
    parts: list[Part] = []
    for index, call in enumerate(calls):
        # A call of a custom tool has free text where a function has arguments.
        function = obj(call.get("function")) or obj(call.get("custom"))
        name = text(function.get("name"))
        if not name:
            raise missing(origin, f"choices[0].message.tool_calls[{index}].function.name", function or call)
        arguments = function.get("arguments", function.get("input"))
        args = "{}" if arguments is None else json_text(arguments)
        signature = None if call.keys() <= _CALL_FIELDS else signature_of(origin, further_fields(call))
        parts.append(ToolCall(text(call.get("id")) or make_call_id(answer.id, index), name, args, signature))
    return parts


class _Call:
    """A call under construction."""

    __slots__ = ("args", "further", "id", "name", "number")

    def __init__(self, number: int, id_: str) -> None:
        self.number = number
        self.id = id_
        self.name = ""
        self.args: list[str] = []
        self.further: dict[str, Any] = {}


class ChatDecoder:
    """The `Decoder` of one stream."""

    def __init__(self, origin: str) -> None:
        self._origin = origin
        self._text: list[str] = []
        self._thinking: list[str] = []
        self._refusal: list[str] = []
        self._pieces: list[Any] = []
        self._fields: dict[str, Any] = {}
        self._calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}
        self._finish_reason = ""
        self._usage: TokenUsage | None = None
        self._model = ""
        self._id = ""
        self._answered = False
        self._done = False

    def feed(self, data: bytes) -> Sequence[Event]:
        """See `Decoder.feed`."""
        if self._done:
            return ()
        if data == b"[DONE]":
            return self._finish()
        chunk = load_object(data, self._origin)
        if chunk.get("error"):
            raise provider_error(self._origin, fault_of(chunk["error"]))
        events: list[Event] = []
        if not self._id:
            self._id = text(chunk.get("id"))
        if not self._model:
            self._model = text(chunk.get("model"))
        choices = arr(chunk.get("choices"))
        if choices:
            self._choice(obj(choices[0]), events)
        usage = usage_of(chunk)
        if usage is not None:
            self._usage = usage
            events.append(UsageUpdate(usage))
        return events

    def close(self) -> Sequence[Event]:
        """See `Decoder.close`. A stream that gave its finish reason is complete without `[DONE]`."""
        if self._done:
            return ()
        if self._finish_reason:
            return self._finish()
        raise ModelError(
            "stream_cut",
            f"{self._origin} ended the stream in mid-answer, after {sum(map(len, self._text))} characters of text "
            f"and {len(self._calls)} tool calls, without a finish reason",
        )

    def _choice(self, choice: dict[str, Any], events: list[Event]) -> None:
        self._answered = True
        if choice.get("error"):
            raise provider_error(self._origin, fault_of(choice["error"]))
        reason = choice.get("finish_reason")
        if reason:
            self._finish_reason = text(reason)
        delta = obj(choice.get("delta") or choice.get("message"))
        thought = thinking_text(delta)
        if thought:
            self._thinking.append(thought)
            events.append(ThinkingChunk(thought))
        content = delta.get("content")
        if content:
            self._content(content, events)
        for call in arr(delta.get("tool_calls")):
            self._call_delta(obj(call), events)
        for name in delta.keys() - KNOWN_FIELDS:
            self._keep(name, delta[name])
        if any(obj(delta.get("function_call")).values()):
            self._call_delta({"index": 0, "function": delta["function_call"]}, events)
        if delta.get("refusal"):
            self._refusal.append(text(delta["refusal"]))
            events.append(TextChunk(text(delta["refusal"])))

    def _content(self, content: Any, events: list[Event]) -> None:
        if isinstance(content, str):
            self._text.append(content)
            events.append(TextChunk(content))
            return
        for piece in arr(content):
            words, thought = content_piece(piece)
            if words:
                self._text.append(words)
                events.append(TextChunk(words))
            elif thought:
                self._thinking.append(thought)
                events.append(ThinkingChunk(thought))
            elif obj(piece).get("type") not in {"text", "thinking"}:
                self._pieces.append(piece)

    def _keep(self, name: str, value: Any) -> None:
        """Collect a field without a neutral shape.

        Arrays grow, reasoning details are joined, else the last one stands.
        """
        if value in (None, [], {}, ""):
            return
        if isinstance(value, list):
            kept = self._fields.setdefault(name, [])
            for item in arr(value):
                if name != "reasoning_details" or not _join_detail(kept, obj(item)):
                    kept.append(item)
        else:
            self._fields[name] = value

    def _call_delta(self, delta: dict[str, Any], events: list[Event]) -> None:
        function = obj(delta.get("function"))
        call = self._call_of(delta.get("index"), text(delta.get("id")), text(function.get("name")))
        if not call.name and (name := text(function.get("name"))):
            call.name = name
            events.append(CallStart(call.number, call.id, name))
        call.further.update(further_fields(delta))
        arguments = function.get("arguments")
        if arguments:
            args = json_text(arguments)
            call.args.append(args)
            events.append(CallDelta(call.number, args))

    def _call_of(self, index: Any, id_: str, name: str) -> _Call:
        """The call that a delta continues, or a new one."""
        if isinstance(index, int):
            call = self._by_index.get(index)
            if call is not None and not (id_ and name and id_ != call.id):
                return call
        elif self._calls and (not id_ or id_ == self._calls[-1].id) and not (name and not id_):
            return self._calls[-1]
        number = len(self._calls)
        call = _Call(number, id_ or make_call_id(self._id, number))
        self._calls.append(call)
        if isinstance(index, int):
            self._by_index[index] = call
        return call

    def _finish(self) -> Sequence[Event]:
        self._done = True
        if not self._answered:
            raise ModelError("bad_response", f"{self._origin} streamed no 'choices'; check the model and base_url")
        message: dict[str, Any] = {**self._fields, "reasoning_content": "".join(self._thinking)}
        words = "".join(self._text)
        message["content"] = [{"type": "text", "text": words}, *self._pieces] if self._pieces else words
        message["refusal"] = "".join(self._refusal)
        message["tool_calls"] = [
            {**call.further, "id": call.id, "function": {"name": call.name, "arguments": "".join(call.args) or "{}"}}
            for call in self._calls
        ]
        answer = ChatAnswer(message, self._finish_reason, self._usage, self._model, self._id)
        response = response_of(answer, self._origin)
        ends = [CallEnd(number, call) for number, call in enumerate(response.message.calls)]
        return [*ends, Done(response)]


def _join_detail(kept: list[Any], item: dict[str, Any]) -> bool:
    """Whether a reasoning detail continued the last one (same type and index) and was joined to it."""
    last = obj(kept[-1]) if kept else {}
    if not last or last.get("type") != item.get("type") or last.get("index") != item.get("index"):
        return False
    for name, value in item.items():
        if name in {"text", "summary", "data"} and isinstance(value, str):
            last[name] = text(last.get(name)) + value
        elif value not in (None, ""):
            last[name] = value
    return True


_PATH = "/chat/completions"
_fields_decoder = msgspec.json.Decoder(dict[str, msgspec.Raw])
_items_decoder = msgspec.json.Decoder(list[msgspec.Raw])


class ChatWire:
    """The `Wire` of Chat Completions.

    Args:
        origin: The endpoint's name (`openai`, `groq`, ...), for errors and for what is sent back to its maker only.
    """

    inputs: frozenset[ModelInput] = frozenset({"image", "pdf", "audio"})

    def __init__(self, origin: str = "openai") -> None:
        self.origin = origin
        self._tools = RenderedToolSets()

    def build(self, request: Request, quirks: Quirks, *, stream: bool) -> tuple[str, dict[str, Any]]:
        """See `Wire.build`."""
        body: dict[str, Any] = {"model": request.model, "messages": self._messages(request, quirks)}
        if request.tools.tools:
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
        if request.extra:
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
    if quirks.sampling:
        if request.temperature is not None:
            body["temperature"] = request.temperature
        if request.top_p is not None:
            body["top_p"] = request.top_p
        if quirks.penalties and request.frequency_penalty is not None:
            body["frequency_penalty"] = request.frequency_penalty
        if quirks.penalties and request.presence_penalty is not None:
            body["presence_penalty"] = request.presence_penalty
    if request.reasoning is not None and request.reasoning.effort is not None:
        body["reasoning_effort"] = request.reasoning.effort


def _add_user(rendered: list[dict[str, Any]], message: Message) -> None:
    """Results come first, because they must follow the calls; then all texts as one message, with all files.

    A result can only be text, so its files stand in that message too.
    """
    texts: list[str] = []
    pieces: list[dict[str, Any]] = []
    for part in message.parts:
        if type(part) is ToolResult:
            rendered.append({"role": "tool", "tool_call_id": part.id, "content": part.text})
            if part.files:
                pieces += [_text_piece(f"Files that {part.name} returned (call {part.id}):"), *map(_file, part.files)]
        elif type(part) is Text or type(part) is Opaque:
            texts.append(part.text)
        elif type(part) is FilePart:
            pieces.append(_file(part))
    if pieces:
        words = [_text_piece("\n\n".join(texts))] if texts else []
        rendered.append({"role": "user", "content": [*words, *pieces]})
    elif texts:
        rendered.append({"role": "user", "content": "\n\n".join(texts)})


def _text_piece(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _file(file: FilePart) -> dict[str, Any]:
    """https://developers.openai.com/api/reference/resources/chat, `ChatCompletionContentPart`."""
    url = f"data:{file.media_type};base64,{file.data}"
    match input_of(file.media_type):
        case "image":
            return {"type": "image_url", "image_url": {"url": url}}
        case "audio":
            name = "mp3" if file.media_type == "audio/mpeg" else "wav"
            return {"type": "input_audio", "input_audio": {"data": file.data, "format": name}}
        case _:
            return {"type": "file", "file": {"filename": file.name or "file.pdf", "file_data": url}}


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

    def render(self) -> dict[str, Any]:
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
    """An assistant message; most have a text, calls or both, and nothing else."""
    texts: list[str] = []
    calls: list[dict[str, Any]] = []
    for part in message.parts:
        if type(part) is Text:
            texts.append(part.text)
        elif type(part) is ToolCall:
            calls.append(_call(part, origin))
        else:
            return _mixed_assistant(message, origin, quirks)
    content = "".join(texts)
    if not calls:
        return {"role": "assistant", "content": content}
    return {"role": "assistant", "content": content or None, "tool_calls": calls}


def _mixed_assistant(message: Message, origin: str, quirks: Quirks) -> dict[str, Any]:
    result = _Assistant()
    for part in message.parts:
        match part:
            case Text():
                result.say(part.text)
            case ToolCall():
                result.calls.append(_call(part, origin))
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
    return result.render()


def _call(part: ToolCall, origin: str) -> dict[str, Any]:
    """A call as it came: the fields that were kept of it hold what a custom tool was called with."""
    kept = fields_of(part.signature, origin) if part.signature is not None else None
    if kept and "custom" in kept:
        return {"id": part.id, "type": "custom", **kept}
    call = {"id": part.id, "type": "function", "function": {"name": part.name, "arguments": part.args}}
    return {**call, **kept} if kept else call

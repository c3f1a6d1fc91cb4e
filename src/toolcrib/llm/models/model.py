"""A model at one endpoint: its wire, transport, credential, quirks and prices.

A whole answer is the last event of a stream, `Done`; the same wire reads both. Nothing is retried here, and no
credential appears in an error or representation.
"""

import json
import re
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping
from contextlib import aclosing
from datetime import datetime
from functools import lru_cache
from typing import Any, Protocol

import msgspec
import orjson
from msgspec import Raw, Struct

from toolcrib.contracts import LLMConfig
from toolcrib.contracts.base.errors import InvalidSettings, ModelError
from toolcrib.llm.base.errors import redact_error
from toolcrib.llm.base.files import with_files_shown
from toolcrib.llm.base.json_values import arr, obj
from toolcrib.llm.base.messages import (
    NO_TOOLS,
    Done,
    Event,
    Message,
    NamedTool,
    Part,
    Request,
    Response,
    Text,
    TextChunk,
    TokenUsage,
    ToolCall,
    ToolResult,
    ToolSet,
    in_words,
    whole_calls,
)
from toolcrib.llm.base.prices import Cost, Prices, estimate_usage
from toolcrib.llm.base.quirks import Quirks
from toolcrib.llm.base.schema_signatures import signature
from toolcrib.llm.base.structured import StructuredAnswer
from toolcrib.llm.base.transport import SseParser, Transport
from toolcrib.llm.base.wire import Wire
from toolcrib.llm.text import TextTools

_HEAD = re.compile(r'\s*(?:```\w*\s*)?\{\s*"answer"\s*:\s*"')
_PIECE = re.compile(
    r'(?:[^"\\]'
    r'|\\["\\/bfnrt]'
    r"|\\u(?![dD][89a-fA-F])[0-9a-fA-F]{4}"
    r"|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})+"
)
"""Complete characters of a JSON string; an escape that is cut off, and half a surrogate pair, wait for the rest."""


class AnswerText:
    """The text of one answer as it grows."""

    def __init__(self) -> None:
        self._rest = ""
        self.found = False
        """Whether the answer has this form."""
        self.text = ""
        """The text so far."""

    def feed(self, written: str) -> str:
        """More of the answer's JSON; what it adds to the text."""
        self._rest += written
        if not self.found:
            head = _HEAD.match(self._rest)
            if head is None:
                return ""
            self.found = True
            self._rest = self._rest[head.end() :]
        piece = _PIECE.match(self._rest)
        if piece is None:
            return ""
        self._rest = self._rest[piece.end() :]
        added = str(json.loads(f'"{piece[0]}"', strict=False))
        self.text += added
        return added


_TEXT = b'{"type":"string"}'


class _Call(Struct):
    name: str
    arguments: Raw = Raw(b"{}")


class _Answer(Struct):
    calls: list[_Call] = []
    answer: Raw = Raw(b"")


_decoder = msgspec.json.Decoder(_Answer)


class SchemaTools:
    """How one request gets its tool calls.

    Args:
        request: What was asked.
        quirks: What the endpoint can.
    """

    def __init__(self, request: Request, quirks: Quirks) -> None:
        self._text: AnswerText | None = None
        self._turn = len(request.messages)
        self.request = request
        """The request to send."""
        if quirks.tool_calling == "native":
            return
        offered = request.tools if request.tool_choice != "none" else NO_TOOLS
        changed: dict[str, Any] = {
            "messages": tuple(_as_text(message, wrap=bool(offered)) for message in request.messages),
            "tools": NO_TOOLS,
            "tool_choice": "auto",
        }
        if offered:
            self._text = AnswerText()
            prompt, schema = _render_tools(offered, request.tool_choice, _answer_schema(request), quirks.schema_calls)
            changed["system"] = f"{request.system}\n\n{prompt}".lstrip()
            changed["output_schema"] = orjson.loads(schema)
        self.request = msgspec.structs.replace(request, **changed)

    def read(self, events: Iterable[Event]) -> Iterable[Event]:
        """The events as the caller shall see them."""
        return events if self._text is None else self._unwrap(events, self._text)

    def response(self, response: Response) -> Response:
        """The whole answer likewise."""
        return response if self._text is None else self._read(response)

    def _unwrap(self, events: Iterable[Event], answer: AnswerText) -> Iterator[Event]:
        for event in events:
            match event:
                case TextChunk():
                    if chunk := answer.feed(event.text):
                        yield TextChunk(chunk)
                case Done():
                    response = self._read(event.response)
                    if rest := response.message.text[len(answer.text) :]:
                        yield TextChunk(rest)
                    yield from whole_calls(response.message.calls)
                    yield Done(response)
                case _:
                    yield event

    def _read(self, response: Response) -> Response:
        """An answer of another form, which an endpoint without enforcement may give, is the answer as it stands."""
        texts = [part for part in response.message.parts if isinstance(part, Text)]
        found = self._parts("".join(part.text for part in texts))
        parts: list[Part] = []
        for part in response.message.parts:
            if not isinstance(part, Text):
                parts.append(part)
            elif part is texts[0]:
                parts += found
        message = Message("assistant", tuple(parts))
        stop = "tool_calls" if message.calls and response.stop == "end" else response.stop
        return msgspec.structs.replace(response, message=message, stop=stop)

    def _parts(self, written: str) -> tuple[Part, ...]:
        try:
            answer = _decoder.decode(_bare(written))
            given = bytes(answer.answer)
            value = orjson.loads(given) if given else ""
        except (msgspec.DecodeError, orjson.JSONDecodeError):
            cut = AnswerText()
            cut.feed(written)
            return in_words(cut.text if cut.found else written)
        if not answer.calls and not given:
            return in_words(written)
        calls = (
            ToolCall(f"call_{self._turn}_{index}", call.name, bytes(call.arguments).decode())
            for index, call in enumerate(answer.calls)
        )
        return (*in_words(value if isinstance(value, str) else given.decode()), *calls)


def _bare(written: str) -> str:
    """What stands in a fence, which models add unasked."""
    stripped = written.strip()
    if not stripped.startswith("```"):
        return stripped
    return stripped.removesuffix("```").partition("\n")[2]


def _answer_schema(request: Request) -> bytes | None:
    """The schema of the final answer; none if the model must call a tool."""
    if request.tool_choice != "auto":
        return None
    return _TEXT if request.output_schema is None else orjson.dumps(request.output_schema)


@lru_cache(maxsize=64)
def _render_tools(tools: ToolSet, choice: str | NamedTool, answer: bytes | None, most: int) -> tuple[str, bytes]:
    """The prompt, and the schema as JSON. What a tool's schema defines stands at the root, where references reach."""
    offered = [tool for tool in tools.tools if not isinstance(choice, NamedTool) or tool.name == choice.name]
    lines = [f"- {tool.name}{_arguments(tool.schema)}: {' '.join(tool.description.split())}" for tool in offered]
    definitions: dict[str, Any] = {}
    calls: list[dict[str, Any]] = []
    for tool in offered:
        reference = _add_definition(definitions, f"tool.{tool.name}", tool.schema)
        calls.append(_object({"name": {"const": tool.name}, "arguments": reference}))
    alternatives = [
        _object({"calls": {"type": "array", "items": {"anyOf": calls}, "minItems": 1, "maxItems": most}}),
    ]
    several = "; several calls only if none needs the result of another" if most > 1 else ""
    how = f'To use tools answer {{"calls": [{{"name": "...", "arguments": {{...}}}}]}}{several}.'
    if answer is not None:
        alternatives.append(_object({"answer": _add_definition(definitions, "answer", orjson.loads(answer))}))
        how += f' When you are done answer {{"answer": {signature(orjson.loads(answer))}}}.'
    prompt = "\n".join(("Tools:", *lines, how))
    return prompt, orjson.dumps({"anyOf": alternatives, "$defs": definitions})


def _arguments(schema: dict[str, Any]) -> str:
    return f"({signature(schema)})" if schema.get("properties") else "({})"


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _add_definition(definitions: dict[str, Any], name: str, schema: dict[str, Any]) -> dict[str, Any]:
    """Put a schema and its own definitions among these; the reference to it."""
    own = obj(schema.get("$defs"))
    for inner, content in own.items():
        definitions[f"{name}.{inner}"] = _move_references(content, name)
    definitions[name] = _move_references({key: value for key, value in schema.items() if key != "$defs"}, name)
    return {"$ref": f"#/$defs/{name}"}


def _move_references(value: Any, name: str) -> Any:
    """The same with its references leading to where the definitions are now."""
    if isinstance(value, list):
        return [_move_references(item, name) for item in arr(value)]
    if not isinstance(value, dict):
        return value
    return {
        key: _target(item, name) if key == "$ref" else _move_references(item, name) for key, item in obj(value).items()
    }


def _target(reference: Any, name: str) -> Any:
    if not isinstance(reference, str) or not reference.startswith("#"):
        return _move_references(reference, name)
    if reference.startswith("#/$defs/"):
        return f"#/$defs/{name}.{reference.removeprefix('#/$defs/')}"
    return f"#/$defs/{name}{reference[1:]}"


def _as_text(message: Message, *, wrap: bool) -> Message:
    """A message with its calls and results as the text that this protocol has for them."""
    if message.role == "user":
        return Message("user", tuple(shown for part in message.parts for shown in _without_result(part)))
    calls = [{"name": call.name, "arguments": _json(call.args)} for call in message.calls]
    kept: list[Part] = [part for part in message.parts if not isinstance(part, ToolCall)]
    if calls:
        kept.append(Text(orjson.dumps({"calls": calls}).decode()))
    elif wrap:
        kept = [Text(orjson.dumps({"answer": part.text}).decode()) if isinstance(part, Text) else part for part in kept]
    return Message("assistant", tuple(kept))


def _without_result(part: Part) -> Iterable[Part]:
    return (Text(_result(part)), *part.files) if isinstance(part, ToolResult) else (part,)


def _result(result: ToolResult) -> str:
    return f"{result.name} {'failed' if result.is_error else 'returned'}: {result.text}"


def _json(args: str) -> Any:
    try:
        orjson.loads(args or "{}")
    except orjson.JSONDecodeError:
        return args
    return orjson.Fragment(args or "{}")


class LanguageModel(Protocol):
    """What answers requests: `Model`, or `ScriptedModel` in tests."""

    name: str
    """`provider:model`, as it is shown and recorded."""

    async def request(self, request: Request) -> Response:
        """The whole answer.

        Raises:
            ModelError: The provider failed.
            InvalidSettings: The credential is missing.
            EgressDenied: The address may not be reached.
        """
        ...

    def stream(self, request: Request) -> AsyncGenerator[Event]:
        """The answer as it arrives, `Done` last; raises as `request`. Close it if you leave early."""
        ...

    def cost(self, usage: TokenUsage, at: datetime) -> Cost:
        """What a call at that moment costs."""
        ...


class ModelWithFallbacks:
    """A model with those that a run asks in its place.

    Outside of a run it is its first model. A run chooses among `candidates`, because each attempt is an event of its
    journal: see `ModelCalls`.

    Args:
        candidates: The models in the order in which they are asked; two at least.
    """

    def __init__(self, candidates: tuple[LanguageModel, ...]) -> None:
        self.candidates = candidates
        self.name = candidates[0].name

    def __repr__(self) -> str:
        return f"ModelWithFallbacks({self.candidates!r})"

    async def request(self, request: Request) -> Response:
        """See `LanguageModel.request`."""
        return await self.candidates[0].request(request)

    def stream(self, request: Request) -> AsyncGenerator[Event]:
        """See `LanguageModel.stream`."""
        return self.candidates[0].stream(request)

    def cost(self, usage: TokenUsage, at: datetime) -> Cost:
        """See `LanguageModel.cost`."""
        return self.candidates[0].cost(usage, at)


def open_candidates(llm: LLMConfig, open_one: Callable[[LLMConfig], LanguageModel]) -> ModelWithFallbacks:
    """The model of a configuration that names fallbacks."""
    return ModelWithFallbacks(tuple(open_one(each) for each in llm.candidates))


class Endpoint(Struct, frozen=True, kw_only=True):
    """Where a model is and how it is spoken to."""

    provider: str
    model: str
    base_url: str
    wire: Wire
    quirks: Quirks = Quirks()
    api_key_env: str | None = None
    """The usual environment variable of the key."""
    other_key_env: str | None = None
    """The one that is looked at if that is not set."""
    key_required: bool = True

    def key_in(self, environment: Mapping[str, str]) -> str | None:
        """The key that the endpoint's variables hold, if any."""
        for variable in (self.api_key_env, self.other_key_env):
            if variable and (key := environment.get(variable)):
                return key
        return None


class Model:
    """A model at a provider.

    Args:
        endpoint: Where it is.
        transport: How it is reached.
        key: Gives the credential; asked at each call, so that a rotated one is used at once.
        prices: The rates.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        transport: Transport,
        *,
        key: Callable[[], str | None] = lambda: None,
        prices: Prices | None = None,
    ) -> None:
        self.name = f"{endpoint.provider}:{endpoint.model}"
        self.endpoint = endpoint
        self._transport = transport
        self._is_native = endpoint.quirks.tool_calling == "native"
        """Whether a request for words and calls is sent as it is, and its answer taken as it came."""
        self._key = key
        self._prices = prices or Prices()

    def __repr__(self) -> str:
        return f"Model({self.name!r})"

    async def request(self, request: Request) -> Response:
        """See `LanguageModel.request`."""
        key, wire = self.credential(), self.endpoint.wire
        sent = request if request.model else msgspec.structs.replace(request, model=self.endpoint.model)
        if sent.files is not None:
            sent = with_files_shown(sent, self.endpoint.quirks)
        tools = answer = None
        if not self._is_native or sent.output_schema is not None:
            tools = self._tools(sent)
            answer = StructuredAnswer(tools.request, self.endpoint.quirks)
            sent = answer.request
        try:
            url, body, headers = self._render_request(sent, key, stream=False)
            answered = await self._transport.post(url, body, headers, sent.timeouts)
            if answered.status >= 300:
                raise wire.error(answered.status, answered.headers, answered.body)
            response = wire.parse(answered.body)
        except ModelError as error:
            raise redact_error(error, key) from None
        if tools is not None and answer is not None:
            response = tools.response(answer.response(response))
        return response if not response.usage.estimated else _with_usage(response, request)

    async def stream(self, request: Request) -> AsyncGenerator[Event]:
        """See `LanguageModel.stream`."""
        key = self.credential()
        sent = self._with_model(request)
        if sent.files is not None:
            sent = with_files_shown(sent, self.endpoint.quirks)
        tools = self._tools(sent)
        answer = StructuredAnswer(tools.request, self.endpoint.quirks)
        try:
            async with aclosing(self._stream_events(answer.request, key)) as batches:
                async for events in batches:
                    for event in tools.read(answer.read(events)):
                        yield Done(_with_usage(event.response, request)) if isinstance(event, Done) else event
        except ModelError as error:
            raise redact_error(error, key) from None

    def cost(self, usage: TokenUsage, at: datetime) -> Cost:
        """See `LanguageModel.cost`."""
        return self._prices.cost(usage, self.endpoint.provider, self.endpoint.model, at)

    def credential(self) -> str | None:
        """The key that a call would use.

        Raises:
            InvalidSettings: There is none and the endpoint needs one.
        """
        key = self._key()
        if key or not self.endpoint.key_required:
            return key or None
        variable = self.endpoint.api_key_env or "the API key"
        raise InvalidSettings(
            f"{variable} is not set, and {self.name} needs it; export it, or choose another model, "
            "for example a local one: ollama:NAME"
        )

    async def _stream_events(self, request: Request, key: str | None) -> AsyncGenerator[Iterable[Event]]:
        url, body, headers = self._render_request(request, key, stream=True)
        async with self._transport.stream(url, body, headers, request.timeouts) as stream:
            if stream.status >= 300:
                raise self.endpoint.wire.error(stream.status, stream.headers, await stream.read())
            if _is_whole(stream.headers.get("content-type", "")):
                yield (Done(self.endpoint.wire.parse(await stream.read())),)
                return
            parser, decoder = SseParser(), self.endpoint.wire.decoder()
            async for chunk in stream.chunks:
                for data in parser.feed(chunk):
                    yield decoder.feed(data)
            for data in parser.close():
                yield decoder.feed(data)
            yield decoder.close()

    def _render_request(self, request: Request, key: str | None, *, stream: bool) -> tuple[str, bytes, dict[str, str]]:
        path, body = self.endpoint.wire.build(request, self.endpoint.quirks, stream=stream)
        headers = {
            "content-type": "application/json",
            "accept": "text/event-stream" if stream else "application/json",
            **self.endpoint.wire.headers(key),
        }
        return self.endpoint.base_url + path, orjson.dumps(body), headers

    def _tools(self, request: Request) -> SchemaTools | TextTools:
        """How the request gets its tool calls."""
        quirks = self.endpoint.quirks
        return TextTools(request, quirks) if quirks.tool_calling == "text" else SchemaTools(request, quirks)

    def _with_model(self, request: Request) -> Request:
        return request if request.model else msgspec.structs.replace(request, model=self.endpoint.model)


def _with_usage(response: Response, request: Request) -> Response:
    """Usage that the provider did not give is estimated."""
    if not response.usage.estimated:
        return response
    return msgspec.structs.replace(response, usage=estimate_usage(request, response.message))


def _is_whole(content_type: str) -> bool:
    """Whether a server answers a request for a stream with a whole answer, or with a page."""
    return "json" in content_type or "html" in content_type

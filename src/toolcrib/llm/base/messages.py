"""Neutral conversations, stream events, and their storage format. Wires render them and parse answers into them.

Values are immutable. The model's own text is never changed: arguments stay the JSON text that the model wrote, and
unknown parts are kept as `Opaque`. Stored conversations and responses have a `schema_version`, and later versions read
all earlier ones. Arguments and opaque parts are stored as JSON text, so a store that reorders JSON cannot change them.
A call without streaming yields only the last event, `Done`. Nothing here knows a provider or does I/O.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any, Final, Literal, TypeAlias, TypeVar

import msgspec
from msgspec import Struct

from toolcrib.contracts import JsonObject, digest
from toolcrib.contracts.base.errors import InvalidInput, ModelError
from toolcrib.infrastructure.net import Timeouts


class Text(Struct, frozen=True, tag="text", omit_defaults=True, gc=False):
    """Plain text of either side."""

    text: str
    signature: str | None = None
    """What the provider wants back with the text, untouched."""


class Thinking(Struct, frozen=True, tag="thinking", omit_defaults=True, gc=False):
    """Reasoning that a model showed.

    It goes back to the provider that made it, unmodified and in order, and to no other.
    """

    text: str = ""
    signature: str | None = None
    """The provider's seal over the text, or the encrypted text itself if `redacted`."""
    id: str | None = None
    redacted: bool = False
    origin: str | None = None
    """Who made it (`Wire.origin`); another origin never sees it."""


class ToolCall(Struct, frozen=True, tag="tool_call", omit_defaults=True, gc=False):
    """A model asks for a tool."""

    id: str
    name: str
    args: str
    """The arguments as JSON text, exactly as the model wrote it; it may be cut off or malformed."""
    signature: str | None = None
    """What the provider wants back with the call, untouched."""


class FilePart(Struct, frozen=True, tag="file", omit_defaults=True, gc=False):
    """An image, a document or another file that a model is shown.

    It names bytes that are kept elsewhere. They are in `Request.files` when a request is made, and never in a journal.
    """

    digest: str
    """SHA-256 of the bytes, 64 hex characters."""
    media_type: str
    size: int
    """Bytes."""
    name: str = ""
    width: int = 0
    """Of an image, in pixels; 0 where it is not known."""
    height: int = 0
    data: str = ""
    """The bytes as base64, in a request that a wire is about to write, and nowhere else."""


class ToolResult(Struct, frozen=True, tag="tool_result", omit_defaults=True, gc=False):
    """What a tool answered."""

    id: str
    """The id of the `ToolCall` that it answers."""
    name: str
    text: str
    is_error: bool = False
    files: tuple[FilePart, ...] = ()
    """What it returned besides, that a model is shown."""


class Opaque(Struct, frozen=True, tag="opaque", omit_defaults=True, gc=False):
    """A provider's block that this layer has no shape for; it goes back to its origin byte for byte."""

    origin: str
    raw: str
    """The block as JSON text, exactly as it arrived."""
    text: str = ""
    """What the block says to a reader; other origins get this instead, if it is not empty."""


Part: TypeAlias = Text | Thinking | ToolCall | ToolResult | FilePart | Opaque
"""One piece of a message, in the order in which it was said."""


class Message(Struct, frozen=True, omit_defaults=True, gc=False):
    """One turn of one side. Tool results are parts of a user message."""

    role: Literal["user", "assistant"]
    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        """All that the message says to a reader, without thinking, calls and results."""
        text = ""
        for part in self.parts:
            if type(part) is Text or type(part) is Opaque:
                text = text + part.text if text else part.text
        return text

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The tool calls, in the model's order."""
        return tuple([part for part in self.parts if type(part) is ToolCall])


class GrowingSize:
    """The size of a conversation that grows, of which each message is measured once.

    Args:
        measure: The size of one message.
    """

    __slots__ = ("_measure", "_messages", "_size")

    def __init__(self, measure: Callable[[Message], int]) -> None:
        self._measure = measure
        self._messages: tuple[Message, ...] = ()
        self._size = 0

    def of(self, messages: tuple[Message, ...]) -> int:
        """The sizes of all messages together."""
        known = self._messages
        if messages is known:
            return self._size
        if messages[: len(known)] == known:  # the same objects as a rule, which costs no comparison of their texts
            new, size = messages[len(known) :], self._size
        else:
            new, size = messages, 0
        for message in new:
            size += self._measure(message)
        self._messages, self._size = messages, size
        return size


class ToolExample(Struct, frozen=True, omit_defaults=True):
    """One use of a tool, for models that learn to call it from the prompt."""

    arguments: dict[str, Any]
    scenario: str = ""


class Tool(Struct, frozen=True, omit_defaults=True):
    """A tool as a model sees it."""

    name: str
    description: str
    schema: dict[str, Any]
    """JSON Schema 2020-12 of the arguments, an object."""
    strict: bool = True
    """Whether the provider shall constrain the model to the schema, where both can."""
    examples: tuple[ToolExample, ...] = ()
    """For models that write their calls as text; no provider's API has a place for them."""
    returns: dict[str, Any] | None = None
    """JSON Schema of the result, if it is known; likewise."""


class ToolSet:
    """An immutable, ordered set of tools. Equal sets are equal and hash alike, so that a wire renders each only once.

    Args:
        tools: Copied, so that later changes to a schema do not reach the set.

    Raises:
        InvalidInput: Two tools have the same name.
    """

    __slots__ = ("_sorted", "encoded", "size", "tools")

    def __init__(self, tools: tuple[Tool, ...] | list[Tool] = ()) -> None:
        names = [tool.name for tool in tools]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise InvalidInput(f"a model was offered two tools named {twice[0]!r}; tool names in a set must be unique")
        self.encoded: Final = msgspec.json.encode(tools)
        """The set as JSON; equal sets have equal bytes."""
        self.size: Final = len(self.encoded)
        """Bytes of it."""
        self.tools: Final = msgspec.json.decode(self.encoded, type=tuple[Tool, ...])
        self._sorted: msgspec.Raw | None = None

    def __hash__(self) -> int:
        return hash(self.encoded)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, ToolSet) and self.encoded == other.encoded)

    def __len__(self) -> int:
        return len(self.tools)

    def to_hash(self) -> msgspec.Raw:
        """The set as the hash of a request has it, with the keys of its schemas sorted; encoded once."""
        if self._sorted is None:
            self._sorted = msgspec.Raw(_canonical.encode(self.tools))
        return self._sorted

    def __repr__(self) -> str:
        return f"ToolSet({', '.join(tool.name for tool in self.tools)})"


_canonical = msgspec.json.Encoder(order="deterministic")
NO_TOOLS = ToolSet()
"""The empty set."""


class TokenUsage(Struct, frozen=True, omit_defaults=True, gc=False):
    """Tokens of one model call."""

    input: int = 0
    """All tokens read, `cache_read` and `cache_write` included."""
    output: int = 0
    """All tokens written, `reasoning` included."""
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0
    estimated: bool = False
    """Whether the numbers are ours because the provider gave none."""
    more: Mapping[str, int] = {}
    """What has a price of its own, by the names in `PRICED_APART`: tokens that are in the counts above too, and uses of
    the provider's own tools. Only numbers above 0."""
    billed_usd: Decimal | None = None
    """What the provider says that it bills for the call, in US dollars; None where it says nothing."""

    def __add__(self, other: "TokenUsage") -> "TokenUsage":
        """The counts together; what was billed stands with each call."""
        more: Mapping[str, int] = self.more or other.more
        if self.more and other.more:
            more = {name: self.more.get(name, 0) + other.more.get(name, 0) for name in (*self.more, *other.more)}
        return TokenUsage(
            self.input + other.input,
            self.output + other.output,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
            self.reasoning + other.reasoning,
            self.estimated or other.estimated,
            more,
        )


PRICED_APART: Final[Mapping[str, str]] = {
    "audio_input": "input_audio_tokens",
    "audio_output": "output_audio_tokens",
    "audio_cache_read": "cache_audio_read_tokens",
    "image_input": "input_image_tokens",
    "image_output": "output_image_tokens",
    "image_cache_read": "cache_image_read_tokens",
    "video_input": "input_video_tokens",
    "video_output": "output_video_tokens",
    "video_cache_read": "cache_video_read_tokens",
    "cache_write_1h": "cache_write_1h_tokens",
    "web_search": "web_searches",
    "file_search": "storage_searches",
    "code_container": "code_executions",
    "image_generation": "",
    "server_tool": "",
}
"""What a provider bills apart from plain tokens, and the name of its count in `genai-prices`; empty where that has no
price for it. `code_container`: programs that the provider runs. `server_tool`: its other tools."""


def counted(**more: int) -> Mapping[str, int]:
    """Numbers for `TokenUsage.more`, without those that are 0."""
    return {name: number for name, number in more.items() if number > 0}


Stop: TypeAlias = Literal["end", "tool_calls", "length", "content_filter", "refusal", "pause", "other"]
"""Why a model stopped. `pause`: the provider wants the same history back to go on."""


class Response(Struct, frozen=True, omit_defaults=True, gc=False):
    """What one model call gave."""

    message: Message
    stop: Stop
    raw_stop: str
    """The provider's own word for `stop`, empty if it gave none."""
    usage: TokenUsage
    model: str
    """The model that answered, as the provider names it."""
    id: str
    """The provider's id of the answer, empty if it gave none."""
    problems: tuple[str, ...] = ()
    """What is wrong with calls that the model wrote, so that they are none: it is to be told."""
    wants_format: bool = False
    """The model says that it is ready: its answer is asked for in the format that is wanted."""
    answer: str = ""
    """The answer itself as JSON text, where the model has given it with that; empty if it has not."""


class NamedTool(Struct, frozen=True, gc=False):
    """A tool choice: this one and no other."""

    name: str


ToolChoice: TypeAlias = Literal["auto", "none", "required"] | NamedTool
"""Whether the model may, must not, or must call a tool."""


class Reasoning(Struct, frozen=True, gc=False):
    """How much a model shall think: a word that the provider knows, or a budget; a wire takes what its provider can."""

    effort: str | None = None
    """`none`, `minimal`, `low`, `medium`, `high`, ... as the provider defines them."""
    budget_tokens: int | None = None


MODEL_TIMEOUTS = Timeouts(connect_s=30.0, read_idle_s=300.0, total_s=300.0)
"""Generous: a busy event loop must not look like a dead provider, and a model may think before its first byte."""


class Request(Struct, frozen=True, kw_only=True, gc=False):
    """One model call. Whether its answer streams is decided where it is sent, not here."""

    messages: tuple[Message, ...]
    model: str = ""
    """The name of the model at its provider; empty means the one that the `Model` was opened for."""
    system: str = ""
    tools: ToolSet = NO_TOOLS
    tool_choice: ToolChoice = "auto"
    parallel_tool_calls: bool = True
    """Whether the model may call several tools in one answer; a wish that not every API knows."""
    output_schema: dict[str, Any] | None = None
    """JSON Schema of the answer's text; how it is enforced depends on the endpoint (`Quirks.structured`)."""
    output_name: str = "answer"
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    reasoning: Reasoning | None = None
    prompt_cache: bool = True
    """Whether the provider may be asked to keep the prompt of a conversation with tools for its next turn."""
    extra: dict[str, Any] = {}
    """Fields of the provider's request body, sent as they are; they win over everything above."""
    timeouts: Timeouts = MODEL_TIMEOUTS
    files: Mapping[str, bytes] | None = None
    """The bytes of the messages' files, by digest; null if there are none. What is missing is described in words."""


def in_words(text: str) -> tuple[Text, ...]:
    """A text as a part of a message; an empty one is none."""
    return (Text(text),) if text else ()


def user(text: str) -> Message:
    """A user's message of one text."""
    return Message("user", (Text(text),))


def assistant(text: str) -> Message:
    """A model's message of one text."""
    return Message("assistant", (Text(text),))


SCHEMA_VERSION = 1
"""The version that this release writes."""


class _StoredMessages(Struct, frozen=True, gc=False):
    schema_version: int
    messages: tuple[Message, ...]


class _StoredResponse(Struct, frozen=True, gc=False):
    schema_version: int
    response: Response


class _Version(Struct, frozen=True):
    schema_version: int = 0


_Stored = TypeVar("_Stored", _StoredMessages, _StoredResponse)
_HALF = re.compile(r"[\ud800-\udfff]")
_encoder = msgspec.json.Encoder()
_messages_decoder = msgspec.json.Decoder(_StoredMessages)
_response_decoder = msgspec.json.Decoder(_StoredResponse)
_version_decoder = msgspec.json.Decoder(_Version)


def encode_messages(messages: tuple[Message, ...]) -> bytes:
    """A conversation as stored bytes."""
    return _encoder.encode(_StoredMessages(SCHEMA_VERSION, messages))


def check_characters(response: Response, model: str) -> None:
    """Refuse an answer that no journal could keep: with half of a character that UTF-16 writes as a pair.

    Args:
        response: The answer.
        model: The model's name, for the message.

    Raises:
        ModelError: It holds one; kind `bad_response`.
    """
    if _is_ascii(response):
        return
    texts: list[Any] = [response.raw_stop, response.id, response.answer, *response.problems]
    for part in response.message.parts:
        texts += msgspec.structs.astuple(part)
    for text in texts:
        if type(text) is str and not text.isascii() and _HALF.search(text):
            raise ModelError(
                "bad_response", f"the answer of {model} contains an invalid character (an unpaired surrogate)"
            )


def _is_ascii(response: Response) -> bool:
    """Whether an answer is nothing but text and calls, all of it ASCII; of other answers it says no."""
    for part in response.message.parts:
        if type(part) is Text:
            plain = part.text.isascii()
        elif type(part) is ToolCall:
            plain = part.args.isascii() and part.name.isascii() and part.id.isascii()
        else:
            return False
        if not plain or part.signature is not None:
            return False
    return response.id.isascii() and response.raw_stop.isascii() and not (response.answer or response.problems)


def messages_as_json(messages: tuple[Message, ...]) -> JsonObject:
    """What `encode_messages` writes, as a JSON value."""
    return msgspec.to_builtins(_StoredMessages(SCHEMA_VERSION, messages))


def response_as_json(response: Response) -> JsonObject:
    """What `encode_response` writes, as a JSON value."""
    return msgspec.to_builtins(_StoredResponse(SCHEMA_VERSION, response))


def hash_request(model: str, request: Request) -> str:
    """The hash of all that a model is asked, whoever makes the connection: equal requests have equal ones.

    Args:
        model: Name of the model, as its provider is asked for it.
        request: What it is asked.
    """
    return "sha256:" + digest(_canonical.encode(_hashed_fields(model, request)))


def _hashed_fields(model: str, request: Request) -> dict[str, Any]:
    fields = msgspec.structs.asdict(request)
    del fields["timeouts"], fields["files"]  # whose digests stand in the messages
    fields["tools"] = request.tools.to_hash()
    fields["model"] = model
    return fields


class GrowingHash:
    """The hashes of the requests of one conversation, of which each message is encoded and hashed once.

    They are those of `hash_request`. A request with other settings than the last one starts a new one.
    """

    __slots__ = ("_after", "_known", "_model", "_settings", "_state")

    def __init__(self) -> None:
        self._model = ""
        self._settings: Request | None = None
        """The last request without its messages."""
        self._known: tuple[Message, ...] = ()
        """Its messages."""
        self._state = hashlib.sha256()
        """The hash up to them, themselves included."""
        self._after = b""
        """What follows them."""

    def of(self, model: str, request: Request) -> str:
        """See `hash_request`."""
        messages, settings, known = request.messages, msgspec.structs.replace(request, messages=()), self._known
        if settings != self._settings or model != self._model or messages[: len(known)] != known:
            self._begin(model, settings)
            known = ()
        if len(messages) > len(known):
            new = _canonical.encode(messages[len(known) :])[1:-1]
            self._state.update(b"," + new if known else new)
            self._known = messages
        state = self._state.copy()
        state.update(self._after)
        return "sha256:" + state.hexdigest()

    def _begin(self, model: str, settings: Request) -> None:
        whole = _canonical.encode(_hashed_fields(model, settings))
        first = {"extra": settings.extra, "frequency_penalty": settings.frequency_penalty}
        first["max_tokens"] = settings.max_tokens
        start = len(_canonical.encode(first)) + len(b',"messages":[') - 1
        state = hashlib.sha256(whole[:start])
        self._after = whole[start:]
        self._model, self._settings, self._known, self._state = model, settings, (), state


def decode_messages(data: bytes | str) -> tuple[Message, ...]:
    """The conversation that `encode_messages` wrote, in this or an earlier release.

    Raises:
        InvalidInput: The bytes are damaged or of a later version.
    """
    return _decode(_messages_decoder, data).messages


def encode_response(response: Response) -> bytes:
    """A response as stored bytes."""
    return _encoder.encode(_StoredResponse(SCHEMA_VERSION, response))


def decode_response(data: bytes | str) -> Response:
    """The response that `encode_response` wrote, in this or an earlier release.

    Raises:
        InvalidInput: The bytes are damaged or of a later version.
    """
    return _decode(_response_decoder, data).response


def _decode(decoder: "msgspec.json.Decoder[_Stored]", data: bytes | str) -> _Stored:
    try:
        stored = decoder.decode(data)
    except msgspec.DecodeError as error:
        _refuse_other_version(data)
        raise InvalidInput(f"stored model messages are damaged: {error}") from error
    if stored.schema_version != SCHEMA_VERSION:
        _refuse_other_version(data)
    return stored


def _refuse_other_version(data: bytes | str) -> None:
    try:
        version = _version_decoder.decode(data).schema_version
    except msgspec.DecodeError:
        return
    if version != SCHEMA_VERSION:
        raise InvalidInput(
            f"stored model messages have schema_version {version}, this release reads {SCHEMA_VERSION}; "
            "read them with the release that wrote them, or a later one"
        )


class TextChunk(Struct, frozen=True, tag="text_delta"):
    """More of the answer's text."""

    text: str


class ThinkingChunk(Struct, frozen=True, tag="thinking_delta"):
    """More of the model's shown reasoning."""

    text: str


class CallStart(Struct, frozen=True, tag="call_start"):
    """A tool call begins; `index` counts the calls of the answer from 0."""

    index: int
    id: str
    name: str


class CallDelta(Struct, frozen=True, tag="call_delta"):
    """More of a call's arguments, as JSON text."""

    index: int
    args: str


class CallEnd(Struct, frozen=True, tag="call_end"):
    """A call is complete."""

    index: int
    call: ToolCall


class UsageUpdate(Struct, frozen=True, tag="usage"):
    """The tokens so far; replaces earlier updates."""

    usage: TokenUsage


class Done(Struct, frozen=True, tag="done"):
    """The whole answer; always the last event."""

    response: Response


Event: TypeAlias = TextChunk | ThinkingChunk | CallStart | CallDelta | CallEnd | UsageUpdate | Done
"""Anything that a model call can tell."""


def whole_calls(calls: Iterable[ToolCall]) -> Iterator[Event]:
    """The events of calls that are known only when the answer is whole."""
    for index, call in enumerate(calls):
        yield CallStart(index, call.id, call.name)
        yield CallDelta(index, call.args)
        yield CallEnd(index, call)

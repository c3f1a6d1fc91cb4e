"""Bodies of requests in OpenAI's formats, and the messages in them as a common list.

Fields that are not here are ignored, because clients send many: the definition of the agent decides on its model,
temperature and limits. What would change the meaning of the answer and cannot be done is refused: files that are named
and not sent, more than one choice.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, NoReturn, TypeAlias, cast

from pydantic import BaseModel, ConfigDict, Field

from toolcrib.contracts import FileInput, InvalidInput, JsonObject
from toolcrib.interfaces.server.openai.content_files import KINDS as FILE_KINDS
from toolcrib.interfaces.server.openai.content_files import file_of_part

Content: TypeAlias = str | tuple[JsonObject, ...] | None
"""A text, or parts of content."""


class _Lenient(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True)


class StreamOptions(_Lenient):
    """Options of a stream."""

    include_usage: bool | None = None
    """Send a last chunk with the usage."""


class ChatMessage(_Lenient):
    """A message of a chat."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: Content = None
    tool_calls: tuple[JsonObject, ...] | None = None
    """Calls that the assistant asked the client for."""
    tool_call_id: str | None = None
    """The call that the message has the result of."""


class ChatBody(_Lenient):
    """`POST /v1/chat/completions`."""

    model: str = Field(min_length=1, max_length=300)
    """Name of the agent, or `name@range`."""
    messages: tuple[ChatMessage, ...] = Field(min_length=1)
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    n: int | None = None
    """Only 1."""
    tools: tuple[JsonObject, ...] | None = None
    """Only client tools of the agent."""
    functions: tuple[JsonObject, ...] | None = None
    """The older form of `tools`."""
    response_format: JsonObject | None = None

    def tool_names(self) -> list[str]:
        """Names of the functions that the client declares; the type of what is not a function."""
        declared = [cast("Mapping[str, Any]", tool.get("function") or tool) for tool in self.tools or ()]
        return [str(tool.get("name") or tool.get("type")) for tool in (*declared, *(self.functions or ()))]

    def answer_format(self) -> tuple[str, JsonObject]:
        """The type of the wanted answer, and its schema."""
        wanted = self.response_format or {}
        return str(wanted.get("type") or "text"), _object(_object(wanted.get("json_schema")).get("schema"))


class ResponsesBody(_Lenient):
    """`POST /v1/responses`."""

    model: str = Field(min_length=1, max_length=300)
    """Name of the agent, or `name@range`."""
    input: str | tuple[JsonObject, ...] = Field(min_length=1)
    instructions: str | None = None
    previous_response_id: str | None = Field(default=None, max_length=300)
    conversation: str | JsonObject | None = None
    """Id of a conversation, or `{"id": …}`."""
    store: bool | None = None
    """False begins no conversation."""
    stream: bool | None = None
    background: bool | None = None
    """Respond at once; `GET /v1/responses/{response_id}` has the answer later."""
    metadata: dict[str, str] | None = None
    tools: tuple[JsonObject, ...] | None = None
    """Only client tools of the agent."""
    text: JsonObject | None = None
    """`format` of the answer."""

    def tool_names(self) -> list[str]:
        """Names of the functions that the client declares; the type of what is not a function."""
        return [str(tool.get("name") or tool.get("type")) for tool in self.tools or ()]

    def answer_format(self) -> tuple[str, JsonObject]:
        """The type of the wanted answer, and its schema."""
        wanted = _object((self.text or {}).get("format"))
        return str(wanted.get("type") or "text"), _object(wanted.get("schema"))

    def conversation_id(self) -> str | None:
        """The conversation that the request names."""
        if isinstance(self.conversation, dict):
            return str(self.conversation.get("id") or "")
        return self.conversation


class Entry(NamedTuple):
    """A message, a call or a result of a call, of either API."""

    kind: Literal["instructions", "user", "assistant", "call", "result"]
    text: str
    call_id: str = ""
    """Of a result."""
    files: tuple[FileInput, ...] = ()
    """Of a message of the user."""


def refuse(message: str, path: str) -> NoReturn:
    """Refuse a field of a request.

    Args:
        message: What is wrong, and what to do.
        path: Of the field.

    Raises:
        InvalidInput: Always.
    """
    raise InvalidInput(message, [{"path": path, "problem": message}])


_KINDS: Final[Mapping[str, Literal["instructions", "user", "assistant"]]] = {
    "system": "instructions",
    "developer": "instructions",
    "user": "user",
    "assistant": "assistant",
}
_TEXTS: Final = {"text": "text", "input_text": "text", "output_text": "text", "refusal": "refusal"}
"""Where the text of a content part is."""


def entries_of_chat(body: ChatBody) -> list[Entry]:
    """The messages of a chat, in order.

    Raises:
        InvalidInput: There is content that is not text, or a result without the id of its call.
    """
    if body.n not in {None, 1}:
        refuse(
            f"n is {body.n}, and an agent gives one answer; leave n out, and send the request again for another", "n"
        )
    return [entry for place, message in enumerate(body.messages) for entry in _of_message(message, f"messages.{place}")]


def entries_of_input(body: ResponsesBody) -> list[Entry]:
    """The input of a response, in order, after the instructions.

    Raises:
        InvalidInput: There is content that is not text, or an item of an unknown type.
    """
    first = [Entry("instructions", body.instructions)] if body.instructions else []
    if isinstance(body.input, str):
        return [*first, Entry("user", body.input)]
    return [*first, *(entry for place, item in enumerate(body.input) for entry in _of_item(item, f"input.{place}"))]


def _of_message(message: ChatMessage, path: str) -> Iterator[Entry]:
    kind = "result" if message.role == "tool" else _KINDS[message.role]
    text, files = _content_of(message.content, f"{path}.content", takes_files=kind == "user")
    if kind == "result":
        if not message.tool_call_id:
            refuse("a message of a tool needs the tool_call_id of the call that it has the result of", path)
        yield Entry("result", text, message.tool_call_id)
        return
    calls = message.tool_calls or ()
    if text or not calls:
        yield Entry(kind, text, files=files)
    for call in calls:
        function = _object(call.get("function"))
        yield Entry("call", f"{function.get('name')}({function.get('arguments')})")


def _of_item(item: JsonObject, path: str) -> Iterator[Entry]:
    match item.get("type", "message"):
        case "message":
            role = str(item.get("role"))
            if role not in _KINDS:
                refuse(f"the role {role[:100]!r} is unknown; use one of: {', '.join(_KINDS)}", f"{path}.role")
            kind = _KINDS[role]
            text, files = _content_of(item.get("content"), f"{path}.content", takes_files=kind == "user")
            yield Entry(kind, text, files=files)
        case "function_call":
            yield Entry("call", f"{item.get('name')}({item.get('arguments')})")
        case "function_call_output":
            call_id = item.get("call_id")
            if not isinstance(call_id, str):
                refuse("a function_call_output needs the call_id of its call", f"{path}.call_id")
            yield Entry("result", _text_of(item.get("output"), f"{path}.output"), call_id)
        case "reasoning":
            return
        case other:
            refuse(
                f"an agent takes no item of type {str(other)[:100]!r}; send messages and function_call_output only",
                f"{path}.type",
            )


def _text_of(content: Any, path: str) -> str:
    return _content_of(content, path, takes_files=False)[0]


def _content_of(content: Any, path: str, *, takes_files: bool) -> tuple[str, tuple[FileInput, ...]]:
    """The text and the files of a content."""
    if content is None or isinstance(content, str):
        return content or "", ()
    if not isinstance(content, Sequence):
        refuse("the content is neither a text nor a list of parts", path)
    texts: list[str] = []
    files: list[FileInput] = []
    for place, each in enumerate(cast("Sequence[Any]", content)):
        part = _object(each)
        if takes_files and part.get("type") in FILE_KINDS:
            files.append(file_of_part(part, f"{path}.{place}"))
        else:
            texts.append(_text_of_part(part, f"{path}.{place}"))
    return "".join(texts), tuple(files)


def _text_of_part(part: JsonObject, path: str) -> str:
    kind = str(part.get("type"))
    text = part.get(_TEXTS.get(kind, ""))
    if isinstance(text, str):
        return text
    msg = f"this part of the content is of type {kind[:100]!r}; send text, and images and files in messages of the user"
    return refuse(msg, path)


def _object(value: Any) -> JsonObject:
    return cast("JsonObject", value) if isinstance(value, dict) else {}

"""Structured answers for APIs that cannot enforce a schema: rewrites the request, and reads the answer back.

With `json_schema`, the wire does everything. Otherwise the schema is added to the system prompt, or becomes a tool
that the model must call; the arguments of that call become the answer's text.
"""

from collections.abc import Iterable, Iterator

import msgspec
import orjson

from toolcrib.llm.base.messages import (
    CallDelta,
    CallEnd,
    CallStart,
    Done,
    Event,
    Message,
    NamedTool,
    Request,
    Response,
    Text,
    TextChunk,
    Tool,
    ToolCall,
    ToolSet,
)
from toolcrib.llm.base.quirks import Quirks, StructuredMode
from toolcrib.llm.base.strict import strict_schema


class StructuredAnswer:
    """How one request gets its structured answer.

    Args:
        request: What was asked.
        quirks: What the endpoint can.
    """

    def __init__(self, request: Request, quirks: Quirks) -> None:
        self._tool: str | None = None
        self._hidden: set[int] = set()
        self.request = request
        """The request to send."""
        if request.output_schema is None:
            return
        mode = structured_mode(request.output_schema, quirks, with_tools=bool(request.tools))
        if mode == "tool":
            self._tool = _free_name(request)
            self.request = _with_tool(request, self._tool)
        elif mode == "json_object":
            self.request = msgspec.structs.replace(request, system=_system_with_schema(request))
        elif mode == "prompt":
            self.request = msgspec.structs.replace(request, system=_system_with_schema(request), output_schema=None)

    def read(self, events: Iterable[Event]) -> Iterable[Event]:
        """The events as the caller shall see them."""
        return events if self._tool is None else self._unwrap(events, self._tool)

    def response(self, response: Response) -> Response:
        """The whole answer likewise."""
        return response if self._tool is None else _as_text(response, self._tool)

    def _unwrap(self, events: Iterable[Event], name: str) -> Iterator[Event]:
        for event in events:
            match event:
                case CallStart() if event.name == name:
                    self._hidden.add(event.index)
                case CallDelta() if event.index in self._hidden:
                    yield TextChunk(event.args)
                case CallEnd() if event.index in self._hidden:
                    pass
                case CallStart() | CallDelta() | CallEnd():
                    hidden_before = sum(index < event.index for index in self._hidden)
                    yield msgspec.structs.replace(event, index=event.index - hidden_before)
                case Done():
                    yield Done(_as_text(event.response, name))
                case _:
                    yield event


def structured_mode(schema: dict[str, object], quirks: Quirks, *, with_tools: bool) -> StructuredMode:
    """How an endpoint gives an answer that follows a schema.

    Anthropic's constraint takes its dialect only; a tool takes any schema.
    """
    if with_tools and quirks.structured_with_tools:
        return quirks.structured_with_tools
    beyond = quirks.strict == "anthropic" and strict_schema(schema, "anthropic") is None
    return "tool" if quirks.structured == "json_schema" and beyond else quirks.structured


def _free_name(request: Request) -> str:
    name = request.output_name
    names_in_use = {tool.name for tool in request.tools.tools}
    while name in names_in_use:
        name += "_"
    return name


def _with_tool(request: Request, name: str) -> Request:
    """The answer as a tool. A model that thinks must not be forced to a tool, so it is told instead."""
    tool = Tool(name, "Gives your final answer. Call it exactly once, when you are done.", request.output_schema or {})
    forced = "required" if request.tools and request.tool_choice != "none" else NamedTool(name)
    return msgspec.structs.replace(
        request,
        tools=ToolSet([*request.tools.tools, tool]),
        tool_choice="auto" if request.reasoning else forced,
        system=f"{request.system}\n\nGive your final answer by calling the tool `{name}`.".lstrip(),
        output_schema=None,
    )


def _system_with_schema(request: Request) -> str:
    schema = orjson.dumps(request.output_schema).decode()
    return f"{request.system}\n\nAnswer with one JSON value and nothing else. Its JSON Schema:\n{schema}".lstrip()


def _as_text(response: Response, name: str) -> Response:
    answers = {part for part in response.message.parts if isinstance(part, ToolCall) and part.name == name}
    if not answers:
        return response
    parts = tuple(
        Text(part.args) if isinstance(part, ToolCall) and part in answers else part for part in response.message.parts
    )
    message = Message("assistant", parts)
    stop = "end" if response.stop == "tool_calls" and not message.calls else response.stop
    return msgspec.structs.replace(response, message=message, stop=stop)

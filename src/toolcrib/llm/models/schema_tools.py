"""Tools for models that can only follow a schema: the tools of a request become one schema for its answer.

The model answers `{"calls": [{"name": …, "arguments": {…}}]}` or `{"answer": …}`; `StructuredAnswer` enforces the
schema. Callers see native tool calls and the plain answer, streamed or whole. The model sees earlier calls and results
as text.
"""

import json
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

import msgspec
import orjson
from msgspec import Raw, Struct

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
    ToolCall,
    ToolResult,
    ToolSet,
    in_words,
    whole_calls,
)
from toolcrib.llm.base.quirks import Quirks
from toolcrib.llm.base.signatures import signature

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
        self.said = ""
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
        self.said += added
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
                    if said := answer.feed(event.text):
                        yield TextChunk(said)
                case Done():
                    response = self._read(event.response)
                    if rest := response.message.text[len(answer.said) :]:
                        yield TextChunk(rest)
                    yield from whole_calls(response.message.calls)
                    yield Done(response)
                case _:
                    yield event

    def _read(self, response: Response) -> Response:
        """An answer of another form, which an endpoint without enforcement may give, is the answer as it stands."""
        said = [part for part in response.message.parts if isinstance(part, Text)]
        found = self._parts("".join(part.text for part in said))
        parts: list[Part] = []
        for part in response.message.parts:
            if not isinstance(part, Text):
                parts.append(part)
            elif part is said[0]:
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
            return in_words(cut.said if cut.found else written)
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
        parts = (Text(_result(part)) if isinstance(part, ToolResult) else part for part in message.parts)
        return Message("user", tuple(parts))
    calls = [{"name": call.name, "arguments": _json(call.args)} for call in message.calls]
    kept: list[Part] = [part for part in message.parts if not isinstance(part, ToolCall)]
    if calls:
        kept.append(Text(orjson.dumps({"calls": calls}).decode()))
    elif wrap:
        kept = [Text(orjson.dumps({"answer": part.text}).decode()) if isinstance(part, Text) else part for part in kept]
    return Message("assistant", tuple(kept))


def _result(result: ToolResult) -> str:
    return f"{result.name} {'failed' if result.is_error else 'returned'}: {result.text}"


def _json(args: str) -> Any:
    try:
        orjson.loads(args or "{}")
    except orjson.JSONDecodeError:
        return args
    return orjson.Fragment(args or "{}")

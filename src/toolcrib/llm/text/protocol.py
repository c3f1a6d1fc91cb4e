"""The text protocol as a rewriting of requests and answers, for models without tool calling.

The system prompt is the same in every request of a conversation, including the request for the final answer. Callers
see native tool calls. If a block is malformed, the response has a problem and no calls. The model finishes with
`finalResponse()`, whose argument, if it has one, is the answer; an answer without any call is final.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple, cast

import msgspec
import orjson
from msgspec import Struct

from toolcrib.contracts import Json, JsonObject
from toolcrib.llm.base.messages import (
    NO_TOOLS,
    Done,
    Event,
    FilePart,
    Message,
    NamedTool,
    Opaque,
    Part,
    Request,
    Response,
    Text,
    TextChunk,
    ToolCall,
    ToolResult,
    in_words,
    whole_calls,
)
from toolcrib.llm.base.quirks import Quirks
from toolcrib.llm.base.structured import structured_mode
from toolcrib.llm.text.calls import Block, WrittenCall, parse, problem_at
from toolcrib.llm.text.examples import write_call
from toolcrib.llm.text.fences import TOOL, Prose
from toolcrib.llm.text.functions import FINAL
from toolcrib.llm.text.literals import Malformed, Undefined
from toolcrib.llm.text.prompt import Toolkit, toolkit_of

ORIGIN: Final = "text-protocol"
"""Who gets the blocks of an answer back."""
_BACKTICKS = re.compile(r"`+")
_ID = re.compile(r"text-([0-9]{1,9})")
_NOT_YET = (
    f"{FINAL}() was left out, because other calls stood beside it. Call it alone when you need no further result."
)


class _Written(Struct, frozen=True, omit_defaults=True):
    """What an `Opaque` part holds."""

    block: str
    is_final: bool = False


def to_opaque(block: str, *, is_final: bool) -> Opaque:
    """A block of an answer, to be sent back as it is.

    Args:
        block: Its text.
        is_final: Whether it says that the model is ready.
    """
    return Opaque(ORIGIN, msgspec.json.encode(_Written(block, is_final)).decode())


def is_ready(message: Message) -> bool:
    """Whether a model said in this message that it is ready, and nothing else."""
    return not message.calls and _is_final(message)


def as_text(messages: tuple[Message, ...], toolkit: Toolkit) -> tuple[Message, ...]:
    """The conversation in words.

    Args:
        messages: The conversation.
        toolkit: Knows the tools by the names that the model sees.
    """
    found: list[Message] = []
    before: Message | None = None
    for message in messages:
        found.append(
            _answer_as_text(message, toolkit)
            if message.role == "assistant"
            else _results_as_text(message, before, toolkit)
        )
        before = message
    return tuple(found)


def next_number(messages: tuple[Message, ...]) -> int:
    """The number of the next call: one more than the highest of the conversation."""
    ids = (_ID.fullmatch(call.id) for message in messages for call in message.calls)
    return 1 + max((int(found[1]) for found in ids if found), default=0)


def last_user(messages: tuple[Message, ...], *, after_final: bool) -> int | None:
    """Where the last message of the user is; the one that follows a model's being ready, if it said so and it is asked.

    Args:
        messages: The conversation.
        after_final: Whether that one is asked for. It stays the same while an answer is repaired.
    """
    users = [place for place, message in enumerate(messages) if message.role == "user"]
    answers = [place for place in users if place and is_ready(messages[place - 1])] if after_final else []
    return max(answers or users, default=None)


def with_words(messages: tuple[Message, ...], place: int, words: str) -> tuple[Message, ...]:
    """The conversation with more words at the end of a message."""
    message = messages[place]
    more = Message(message.role, (*message.parts, Text(f"\n\n{words}")))
    return (*messages[:place], more, *messages[place + 1 :])


def taking_turns(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """The conversation with what the user said in one breath as one message; templates of small models insist on it."""
    found: list[Message] = []
    for message in messages:
        if found and message.role == "user" == found[-1].role:
            found[-1] = Message("user", (*found[-1].parts, Text("\n\n"), *message.parts))
        else:
            found.append(message)
    return tuple(found)


def _is_final(message: Message) -> bool:
    return any(written.is_final for written in _blocks(message))


def _blocks(message: Message) -> Iterator[_Written]:
    for part in message.parts:
        if isinstance(part, Opaque) and part.origin == ORIGIN:
            yield msgspec.json.decode(part.raw, type=_Written)


def _answer_as_text(message: Message, toolkit: Toolkit) -> Message:
    """A model's message as it wrote it; calls of another protocol as it would write them here."""
    has_blocks = next(_blocks(message), None) is not None
    parts: list[Part] = []
    words: list[str] = []
    for part in message.parts:
        match part:
            case Opaque() if part.origin == ORIGIN:
                words.append(msgspec.json.decode(part.raw, type=_Written).block)
            case ToolCall():
                words += [] if has_blocks else [_block(part, toolkit)]
            case Text() if part.signature is None:
                words.append(part.text)
            case _:
                parts += in_words("".join(words))
                words = []
                parts.append(part)
    return Message("assistant", (*parts, *in_words("".join(words))))


def _results_as_text(message: Message, before: Message | None, toolkit: Toolkit) -> Message:
    if not any(isinstance(part, ToolResult) for part in message.parts):
        return message
    words = [
        _result(part, toolkit) if isinstance(part, ToolResult) else part.text
        for part in message.parts
        if isinstance(part, ToolResult | Text)
    ]
    if before is not None and before.calls and _is_final(before):
        words.append(_NOT_YET)
    return Message("user", (Text("\n\n".join(words)), *_files(message)))


def _files(message: Message) -> Iterator[Part]:
    for part in message.parts:
        if isinstance(part, ToolResult):
            yield from part.files
        elif isinstance(part, FilePart):
            yield part


def _result(result: ToolResult, toolkit: Toolkit) -> str:
    function = toolkit.find(result.name)
    name = result.name if function is None else function.shown
    longest = max((len(found) for found in _BACKTICKS.findall(result.text)), default=0)
    fence = "`" * max(3, longest + 1)
    number = _ID.fullmatch(result.id)
    which = f"Call {number[1]}, {name}," if number else name
    return f"{which} {'failed' if result.is_error else 'returned'}:\n{fence}result\n{result.text}\n{fence}"


def _block(call: ToolCall, toolkit: Toolkit) -> str:
    function, arguments = toolkit.find(call.name), _arguments(call.args)
    text = f"{call.name}({call.args})" if function is None or arguments is None else write_call(function, arguments)
    longest = max((len(found) for found in _BACKTICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"\n{fence}{TOOL}\nreturn {text};\n{fence}\n"


def _arguments(args: str) -> JsonObject | None:
    try:
        found: Json = orjson.loads(args or "{}")
    except orjson.JSONDecodeError:
        return None
    return cast("JsonObject", found) if isinstance(found, dict) else None


MOST_CHARACTERS: Final = 1_000_000
"""Of one block; a longer one is refused, and only its beginning goes back to the model."""
_BEGINNING = 200
_FORMAT = "Answer now with one JSON value and nothing else; you may put it in a ```json fence. Its JSON Schema:\n"


class TextTools:
    """How one request gets its tool calls.

    Args:
        request: What was asked.
        quirks: What the endpoint can, and what becomes of malformed blocks.
    """

    def __init__(self, request: Request, quirks: Quirks) -> None:
        self._original = request
        self._skips = quirks.on_malformed == "skip"
        self._toolkit = toolkit_of(request.tools)
        self._prose = Prose()
        self._is_reading = bool(request.tools) and request.tool_choice != "none"
        self.request = self._with_tools(quirks) if request.tools else self._without_tools()
        """The request to send."""

    def read(self, events: Iterable[Event]) -> Iterable[Event]:
        """The events as the caller shall see them: blocks are no text, and calls come when the answer is whole."""
        return self._unwrap(events) if self._is_reading else events

    def response(self, response: Response) -> Response:
        """The whole answer likewise."""
        if not self._is_reading:
            return response
        text = "".join(part.text for part in response.message.parts if isinstance(part, Text))
        blocks = parse(text)
        reading = _Reading(self._toolkit, text, was_cut=response.stop == "length")
        found = [reading.block(block) for block in blocks]
        problems = tuple(reading.problems or self._not_called(found))
        if not blocks:
            return msgspec.structs.replace(response, problems=problems) if problems else response
        if problems and not self._skips:
            found = [block._replace(calls=()) for block in found]
        parts = self._parts(response.message.parts, _pieces(text, found, next_number(self._original.messages)))
        message = Message("assistant", parts)
        ready = not message.calls and not problems and any(block.is_final for block in found)
        stop = "tool_calls" if message.calls and response.stop == "end" else response.stop
        answer = next((block.answer for block in found if block.answer), "") if ready else ""
        return msgspec.structs.replace(
            response, message=message, stop=stop, problems=problems, wants_format=ready, answer=answer
        )

    # Asking -----------------------------------------------------------------------------------------------------------

    def _without_tools(self) -> Request:
        """Nothing is declared; earlier calls stand in the history as words all the same."""
        return msgspec.structs.replace(self._original, messages=as_text(self._original.messages, self._toolkit))

    def _with_tools(self, quirks: Quirks) -> Request:
        """An answer that holds calls cannot follow a schema, so a schema is asked for only where none may stand."""
        request = self._original
        schema = None if self._is_reading else request.output_schema
        messages = as_text(request.messages, self._toolkit)
        words = self._now() if self._is_reading else self._format(schema)
        place = last_user(request.messages, after_final=not self._is_reading)
        if words and place is not None:
            messages = with_words(messages, place, words)
        enforced = schema is not None and structured_mode(schema, quirks, with_tools=False) == "json_schema"
        return msgspec.structs.replace(
            request,
            messages=taking_turns(messages),
            system=f"{request.system}\n\n{self._toolkit.prompt}".lstrip(),
            tools=NO_TOOLS,
            tool_choice="auto",
            output_schema=schema if enforced else None,
        )

    def _format(self, schema: dict[str, Any] | None) -> str:
        if schema is None:
            return ""
        before = f"{FINAL}() gave the format. " if any(map(is_ready, self._original.messages)) else ""
        return f"{before}{_FORMAT}{orjson.dumps(schema).decode()}"

    def _now(self) -> str:
        """What a choice other than the model's own adds to the last message."""
        match self._original.tool_choice:
            case NamedTool(name):
                function = self._toolkit.find(name)
                return f"Call {name if function is None else function.shown} now."
            case "required":
                return "Call a function now."
            case _:
                return ""

    # Reading ----------------------------------------------------------------------------------------------------------

    def _not_called(self, found: Sequence["_Found"]) -> Iterator[str]:
        """The problem of an answer that lacks the call that was asked for."""
        choice = self._original.tool_choice
        called = {name for block in found for name, _ in block.calls}
        if isinstance(choice, NamedTool) and called != {choice.name}:
            yield f"only {choice.name} was to be called"
        elif choice == "required" and not called:
            yield "a call was asked for, and there is none"

    def _parts(self, parts: Sequence[Part], pieces: Iterable[Part]) -> tuple[Part, ...]:
        """The answer with its words, blocks and calls where its words were."""
        first = next(place for place, part in enumerate(parts) if isinstance(part, Text))
        others = [part for part in parts[first:] if not isinstance(part, Text)]
        return (*parts[:first], *pieces, *others)

    def _unwrap(self, events: Iterable[Event]) -> Iterator[Event]:
        for event in events:
            match event:
                case TextChunk():
                    if chunk := self._prose.feed(event.text):
                        yield TextChunk(chunk)
                case Done():
                    response = self.response(event.response)
                    if rest := response.message.text[self._prose.length :]:
                        yield TextChunk(rest)
                    yield from whole_calls(response.message.calls)
                    yield Done(response)
                case _:
                    yield event


class _Found(NamedTuple):
    """What a block comes to."""

    block: Block
    calls: tuple[tuple[str, str], ...] = ()
    """Tool names and arguments as JSON text."""
    is_final: bool = False
    answer: str = ""
    """What the model gives as its answer, as JSON text; empty if it gives nothing."""


class _Reading:
    """Reads the blocks of one answer."""

    def __init__(self, toolkit: Toolkit, text: str, *, was_cut: bool) -> None:
        self.problems: list[str] = []
        self._toolkit = toolkit
        self._text = text
        self._was_cut = was_cut

    def block(self, block: Block) -> _Found:
        """The calls of a block that can be made."""
        if block.problem is not None:
            self.problems.append(str(block.problem))
            return _Found(block)
        if block.end - block.start > MOST_CHARACTERS:
            self._refuse(block.start, f"this block has more than {MOST_CHARACTERS} characters")
            return _Found(block)
        if not block.is_closed and self._was_cut:
            self._refuse(block.start, "the answer was cut off before this block was ended")
            return _Found(block)
        calls = [self._call(call) for call in block.calls if call.name != FINAL]
        answers = [self._answer(call) for call in block.calls if call.name == FINAL]
        return _Found(block, tuple(filter(None, calls)), bool(answers), next(filter(None, answers), ""))

    def _answer(self, call: WrittenCall) -> str:
        """The argument of `finalResponse`, or its arguments by name as one object; empty if it has none."""
        given = [value for value in call.arguments if not isinstance(value, Undefined)]
        named = {name: value for name, value in call.named.items() if not isinstance(value, Undefined)}
        if len(given) + bool(named) > 1:
            self._refuse(call.start, f"{FINAL}() takes at most one argument, the whole answer")
            return ""
        values = [*given, named] if named else given
        return json.dumps(values[0], ensure_ascii=False) if values else ""

    def _call(self, call: WrittenCall) -> tuple[str, str] | None:
        function = self._toolkit.find(call.name)
        if function is None:
            close = " or ".join(map(repr, self._toolkit.closest(call.name)))
            hint = f"did you mean {close}?" if close else f"there are {', '.join([*self._toolkit.functions, FINAL])}"
            self._refuse(call.start, f"there is no function {call.name[:64]!r}; {hint}")
            return None
        try:
            arguments = function.arguments(call)
        except Malformed as malformed:
            self._refuse(malformed.position, str(malformed))
            return None
        return function.tool.name, json.dumps(arguments, ensure_ascii=False)

    def _refuse(self, position: int, message: str) -> None:
        self.problems.append(str(problem_at(self._text, position, message)))


def _pieces(text: str, found: Sequence[_Found], number: int) -> Iterator[Part]:
    """The words between the blocks, and each block before its calls."""
    position = 0
    for block, calls, ends, _ in found:
        yield from in_words(text[position : block.start])
        yield to_opaque(_as_kept(text[block.start : block.end]), is_final=ends)
        for name, args in calls:
            yield ToolCall(f"text-{number}", name, args)
            number += 1
        position = block.end
    yield from in_words(text[position:])


def _as_kept(block: str) -> str:
    return block if len(block) <= MOST_CHARACTERS else f"{block[:_BEGINNING]}… ({len(block)} characters)"

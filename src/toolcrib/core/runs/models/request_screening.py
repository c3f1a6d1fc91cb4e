"""The guard before a model request: its maximum usage, guardrails, and content filters.

Nothing is sent or spent here; `ModelCalls` reserves the estimate and records the decision.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
import orjson
from msgspec import Struct

from toolcrib.contracts import Filtered, GuardDecision, Guardrail, Json, JsonObject
from toolcrib.contracts.base.media import input_of, text_of
from toolcrib.core.policy import Screening, filters_of, screen, strictest
from toolcrib.llm import FilePart, Message, Opaque, Part, Request, Response, Text, Thinking, ToolCall, ToolResult
from toolcrib.llm import TokenUsage as ModelUsage
from toolcrib.llm.base.files import tokens_of_file
from toolcrib.llm.base.messages import GrowingSize

_BYTES_PER_TOKEN: Final = 3
_TOKENS_PER_BYTE: Final = 1 / _BYTES_PER_TOKEN
"""Many, because a reservation must not be too small."""
_TOKENS_PER_MESSAGE: Final = 4
_MARGIN: Final = 1.1
_ESCAPE: Final = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|.)", re.DOTALL)


class ModelCallScope(Struct, frozen=True, gc=False):
    """How a run stands when it asks a model: what its guardrails are told."""

    guardrails: tuple[Guardrail, ...] = ()
    realm: str = ""
    principal: str = ""
    tainted_by: str | None = None


NOBODY: Final = ModelCallScope()
"""A run without guardrails."""


class Estimate:
    """What requests use at most: by their length, and by what the answers so far have said of theirs."""

    def __init__(self) -> None:
        self._tokens_per_byte = _TOKENS_PER_BYTE
        self._messages = GrowingSize(_bytes)
        self._measured: tuple[Request | None, int] = None, 0
        """The last request and its size: an answer follows on the estimate for its request."""

    def most(self, request: Request, output_tokens: int) -> ModelUsage:
        """Tokens that a request takes at most, if its answer has so many."""
        read = self._size(request) * self._tokens_per_byte + _TOKENS_PER_MESSAGE * len(request.messages)
        return ModelUsage(input=int(read), output=output_tokens)

    def learn(self, request: Request, usage: ModelUsage) -> None:
        """Expect no less of the next request than an answer has said of this one."""
        if not usage.estimated:
            found = usage.input / (self._size(request) or 1) * _MARGIN
            self._tokens_per_byte = max(self._tokens_per_byte, found)

    def _size(self, request: Request) -> int:
        """Bytes of what a request says, without what its format adds."""
        measured, size = self._measured
        if measured is request:
            return size
        system, size = request.system, request.tools.size + self._messages.of(request.messages)
        if request.output_schema is not None:
            size += len(orjson.dumps(request.output_schema))
        size += len(system) if system.isascii() else len(system.encode())
        self._measured = request, size
        return size


def _bytes(message: Message) -> int:
    size = 0
    for part in message.parts:
        if type(part) is Text or type(part) is ToolResult:
            text = part.text
            if type(part) is ToolResult and part.files:
                size += _BYTES_PER_TOKEN * sum(map(tokens_of_file, part.files))
        elif type(part) is FilePart:
            size, text = size + _BYTES_PER_TOKEN * tokens_of_file(part), part.name
        elif type(part) is ToolCall:
            text = part.name + part.args
        elif type(part) is Thinking:
            text = part.text + (part.signature or "")
        else:
            text = part.raw if isinstance(part, Opaque) else ""
        size += len(text) if text.isascii() else len(text.encode())
    return size


class Screens:
    """Content filters on what one run sends to models and gets from them; each text is looked at once.

    A replay has its own, which finds what was found, and knows how long answers were allowed to be.
    """

    def __init__(self) -> None:
        self._rules: tuple[Guardrail, ...] = ()
        self._seen: dict[tuple[Filtered, str], Screening] = {}

    def request(
        self, rules: tuple[Guardrail, ...], system: str, messages: Sequence[Message]
    ) -> tuple[str, tuple[Message, ...], GuardDecision | None]:
        """System prompt and messages as they may be sent, and what was found; `deny` if they may not be."""
        if not rules or not filters_of(rules, "model_input"):
            return system, tuple(messages), None
        reader = _Reader(self, rules, "model_input")
        passed = reader.text(system)
        return passed, tuple(reader.message(message) for message in messages), reader.decision

    def files(
        self, rules: tuple[Guardrail, ...], files: Sequence[FilePart], data: Mapping[str, bytes]
    ) -> tuple[Mapping[str, bytes], GuardDecision | None]:
        """The bytes of files as they may be sent, and what was found: text files are read, and others are not."""
        if not rules or not filters_of(rules, "model_input"):
            return data, None
        reader = _Reader(self, rules, "model_input")
        passed = dict(data)
        for file in files:
            text = text_of(data.get(file.digest, b"")) if input_of(file.media_type) == "text" else None
            if text is not None:
                passed[file.digest] = reader.text(text).encode()
        return passed, reader.decision

    def response(self, rules: tuple[Guardrail, ...], response: Response) -> tuple[Response, GuardDecision | None]:
        """An answer as it may be taken, and what was found; of one that is withheld nothing is left but its usage."""
        if not rules or not filters_of(rules, "model_output"):
            return response, None
        reader = _Reader(self, rules, "model_output")
        message = reader.message(response.message)
        decision = reader.decision
        if decision is None:
            return response, None
        if decision.outcome == "deny":
            message = Message("assistant", ())
        return msgspec.structs.replace(response, message=message), decision

    def output_tokens(self, position: str, number: int) -> int | None:
        """To how many output tokens an attempt was narrowed when it was recorded.

        Returns:
            Null to decide it now; 0 if it was sent as it was.
        """
        del position, number
        return None

    def of(self, rules: tuple[Guardrail, ...], place: Filtered, text: str) -> Screening:
        """What filters make of a text."""
        if rules != self._rules:
            self._rules, self._seen = rules, {}
        key = place, text
        if key not in self._seen:
            self._seen[key] = _screen_text(rules, place, text)
        return self._seen[key]


class _Reader:
    """Reads through one prompt or answer, and remembers what was found."""

    def __init__(self, screens: Screens, rules: tuple[Guardrail, ...], place: Filtered) -> None:
        self._screens = screens
        self._rules = rules
        self._place: Filtered = place
        self._found: list[GuardDecision] = []

    @property
    def decision(self) -> GuardDecision | None:
        """The strictest of what was decided, with everything that was found."""
        strict = strictest(self._found)
        if strict is None:
            return None
        found: dict[str, int] = {}
        for decision in self._found:
            for kind, count in decision.inputs["found"].items():
                found[kind] = found.get(kind, 0) + count
        inputs: JsonObject = {**strict.inputs, "found": dict(sorted(found.items()))}
        return strict.model_copy(update={"inputs": inputs})

    def text(self, text: str) -> str:
        """The text as it may pass."""
        screening = self._screens.of(self._rules, self._place, text)
        if screening.decision is not None:
            self._found.append(screening.decision)
        return screening.value

    def message(self, message: Message) -> Message:
        """The message as it may pass; itself if nothing was found."""
        parts = tuple(kept for part in message.parts if (kept := self._part(part)) is not None)
        return message if parts == message.parts else msgspec.structs.replace(message, parts=parts)

    def _part(self, part: Part) -> Part | None:
        """What a provider has sealed cannot be changed: it is left out if something is found in it."""
        match part:
            case Text() | ToolResult():
                return msgspec.structs.replace(part, text=self.text(part.text))
            case ToolCall():
                return msgspec.structs.replace(part, args=self.text(part.args))
            case FilePart():
                return msgspec.structs.replace(part, name=self.text(part.name))
            case _:
                return part if self.text(part.text) == part.text else None


def _screen_text(rules: Sequence[Guardrail], place: Filtered, text: str) -> Screening:
    """A text that is JSON, or holds some, stays so: what its strings say is looked at, not how they are written."""
    value = _json(text)
    screening = screen(rules, place, value)
    if screening.decision is None:  # no JSON, or a key stands in it twice, of which the value has only one
        screening = screen(rules, place, _unescape(text))
        if value is not None:
            screening = msgspec.structs.replace(screening, value=value)
    if screening.decision is None or not screening.passes:
        return Screening(text, screening.decision)
    return screening if value is None else Screening(orjson.dumps(screening.value).decode(), screening.decision)


def _unescape(text: str) -> str:
    """The text with characters in place of their escapes in JSON, as far as JSON may have them as they are."""
    return _ESCAPE.sub(_character, text) if "\\u" in text else text


def _character(escape: re.Match[str]) -> str:
    character = chr(int(escape[1] or "0", 16))
    return character if character.isprintable() and character not in '"\\' else escape[0]


def _json(text: str) -> Json:
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None

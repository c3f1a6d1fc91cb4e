"""What a Gemini answer means, whole or in chunks: a stream is a sequence of partial answers of one shape.

Neighbouring pieces of text, and of thinking, become one part unless they are signed. A part that is more than that
(executed code, media, what comes next year) becomes an `Opaque` part of the very bytes that arrived; so does what a
candidate holds beside its content (grounding, citations), which the API does not take back.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
import orjson
from msgspec import Raw, Struct

from toolcrib.contracts.base.errors import ModelError
from toolcrib.llm.base._signature import signed
from toolcrib.llm.base.errors import Fault, provider_error
from toolcrib.llm.base.events import CallDelta, CallEnd, CallStart, Event, TextDelta, ThinkingDelta, UsageUpdate
from toolcrib.llm.base.json_values import arr, count, load_object, missing, obj, text
from toolcrib.llm.base.messages import Message, Opaque, Part, Response, Stop, Text, Thinking, ToolCall, Usage
from toolcrib.llm.wires.gemini_errors import fault_of

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


class Answer:
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
        return Response(message, stop, self.raw_stop, usage_of(self._usage), self._model, self._id)

    def progress(self) -> str:
        """How far it came, for an error."""
        said = sum(len(part.text) for part in self._parts if isinstance(part, Text))
        return f"{said} characters of text and {self._calls} tool calls"

    def _refuse_blocked(self, feedback: dict[str, Any]) -> None:
        if reason := text(feedback.get("blockReason")):
            why = text(feedback.get("blockReasonMessage")) or "the prompt was blocked"
            raise provider_error(self._origin, Fault(why, (reason,), kind="content_filter"), request_id=self._id)

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
            self._said(fields, events)
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
        made = ToolCall(id_, name, args, signed(self._origin, more))
        self._calls += 1
        self._parts.append(made)
        events += [CallStart(index, id_, name), CallDelta(index, args), CallEnd(index, made)]

    def _said(self, fields: dict[str, Any], events: list[Event]) -> None:
        """Text or a thought; it continues the last part of its kind, unless one of the two is signed."""
        said, signature = text(fields["text"]), text(fields.get("thoughtSignature"))
        last = self._parts[-1] if self._parts else None
        joins = not signature and isinstance(last, Text | Thinking) and last.signature is None
        if fields.get("thought"):
            if joins and isinstance(last, Thinking):
                self._parts[-1] = Thinking(last.text + said, origin=self._origin)
            else:
                self._parts.append(Thinking(said, signature or None, origin=self._origin))
            events += [ThinkingDelta(said)] if said else []
        elif said or signature:
            if joins and isinstance(last, Text):
                self._parts[-1] = Text(last.text + said)
            else:
                sealed = {"thoughtSignature": signature} if signature else {}
                self._parts.append(Text(said, signed(self._origin, sealed)))
            events += [TextDelta(said)] if said else []

    def _opaque(self, raw: bytes, said: str, events: list[Event]) -> None:
        self._parts.append(Opaque(self._origin, raw.decode(), said))
        events += [TextDelta(said)] if said else []


def usage_of(usage: dict[str, Any]) -> Usage:
    """Our counts: what tools of the provider added to the prompt is read too, and thoughts are written too."""
    if not usage:
        return Usage(estimated=True)
    thoughts = count(usage.get("thoughtsTokenCount"))
    return Usage(
        input=count(usage.get("promptTokenCount")) + count(usage.get("toolUsePromptTokenCount")),
        output=count(usage.get("candidatesTokenCount")) + thoughts,
        cache_read=count(usage.get("cachedContentTokenCount")),
        reasoning=thoughts,
    )


def parse_answer(body: bytes, origin: str) -> Response:
    """The response in a body; a stream that was not asked for as server-sent events is an array of its pieces.

    Raises:
        ModelError: As `Answer.add` and `Answer.response`.
    """
    answer = Answer(origin)
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

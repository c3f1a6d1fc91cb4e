"""Chat Completions streams: chunks become events at once, and add up to a message that is read like a whole answer.

Lenient where servers differ: a delta without `index`, several calls under one index, a whole call in one delta,
arguments as an object, a missing `[DONE]` after the finish reason, usage in any chunk.
"""

from collections.abc import Sequence
from typing import Any

from toolcrib.contracts.base.errors import ModelError
from toolcrib.llm.base.errors import fault_of, provider_error
from toolcrib.llm.base.events import CallDelta, CallEnd, CallStart, Done, Event, TextDelta, ThinkingDelta, UsageUpdate
from toolcrib.llm.base.json_values import arr, json_text, load_object, obj, text
from toolcrib.llm.base.messages import Usage
from toolcrib.llm.wires.chat_answer import (
    KNOWN_FIELDS,
    Answer,
    content_piece,
    further_fields,
    generated_id,
    response_of,
    thinking_text,
    usage_of,
)


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
        self._usage: Usage | None = None
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
            events.append(ThinkingDelta(thought))
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
            events.append(TextDelta(text(delta["refusal"])))

    def _content(self, content: Any, events: list[Event]) -> None:
        if isinstance(content, str):
            self._text.append(content)
            events.append(TextDelta(content))
            return
        for piece in arr(content):
            said, thought = content_piece(piece)
            if said:
                self._text.append(said)
                events.append(TextDelta(said))
            elif thought:
                self._thinking.append(thought)
                events.append(ThinkingDelta(thought))
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
                if name != "reasoning_details" or not _joined(kept, obj(item)):
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
        call = _Call(number, id_ or generated_id(self._id, number))
        self._calls.append(call)
        if isinstance(index, int):
            self._by_index[index] = call
        return call

    def _finish(self) -> Sequence[Event]:
        self._done = True
        if not self._answered:
            raise ModelError("bad_response", f"{self._origin} streamed no 'choices'; check the model and base_url")
        message: dict[str, Any] = {**self._fields, "reasoning_content": "".join(self._thinking)}
        said = "".join(self._text)
        message["content"] = [{"type": "text", "text": said}, *self._pieces] if self._pieces else said
        message["refusal"] = "".join(self._refusal)
        message["tool_calls"] = [
            {**call.further, "id": call.id, "function": {"name": call.name, "arguments": "".join(call.args) or "{}"}}
            for call in self._calls
        ]
        answer = Answer(message, self._finish_reason, self._usage, self._model, self._id)
        response = response_of(answer, self._origin)
        ends = [CallEnd(number, call) for number, call in enumerate(response.message.calls)]
        return [*ends, Done(response)]


def _joined(kept: list[Any], item: dict[str, Any]) -> bool:
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

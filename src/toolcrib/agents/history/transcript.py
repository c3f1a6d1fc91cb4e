"""The messages of an ended turn, read from its run's journal.

They are byte for byte the messages that were sent, so that the next prompt begins with them and providers can cache
it. Every call has a result: an open call is reported as open.
"""

import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeAlias, cast

import msgspec
import orjson
from msgspec import Struct

from toolcrib.agents.history.variables import RecalledContext, opening
from toolcrib.agents.model.context_window import room_key, trim_results
from toolcrib.agents.model.tool_calls import Calls, error_for_model, read_calls, refusal_key, text_for_model
from toolcrib.contracts import (
    CallFinished,
    Json,
    JsonObject,
    ModelFinished,
    ModelStarted,
    ProgressMade,
    RunEvent,
    RunFinished,
    RunStarted,
    ToolEnvelope,
)
from toolcrib.core.runs import clip_text, response_of
from toolcrib.llm import Message, Response, Text, Tool, ToolResult, assistant, decode_messages, decode_response
from toolcrib.llm import ToolCall as ModelToolCall

Kept: TypeAlias = Callable[[str], Awaitable[bytes]]
"""Reads what a run has kept under a digest."""

_ASKED: Final = re.compile(r"t(\d+)\.llm")
_LONGEST_NOTE: Final = 300
_OPEN: Final = "this call has no result: the turn ended before it had one"
_TOOLS: Final = msgspec.json.Decoder(list[Tool])


class _Exchange(Struct):
    """One answer of the model, and what was said to it before that stands nowhere else."""

    said: tuple[Message, ...] = ()
    tools: str | None = None
    answer: Response | None = None


class _Reading(Struct):
    """A journal, by what a transcript needs of it."""

    exchanges: dict[int, _Exchange] = msgspec.field(default_factory=dict[int, _Exchange])
    envelopes: dict[str, ToolEnvelope] = msgspec.field(default_factory=dict[str, ToolEnvelope])
    progress: dict[str, Json] = msgspec.field(default_factory=dict[str, Json])
    started: RunStarted | None = None
    finished: RunFinished | None = None


async def transcript(events: Sequence[RunEvent], kept: Kept) -> tuple[Message, ...]:
    """The messages of a turn, from the user's to the model's last, or to a note of why there is none.

    Args:
        events: The journal of the turn's run, which has ended.
        kept: Reads the tools that the model was offered.
    """
    reading = _read(events)
    messages: tuple[Message, ...] = ()
    for number, exchange in sorted(reading.exchanges.items()):
        messages = (*messages, *exchange.said)
        if exchange.answer is None:
            continue
        message = exchange.answer.message
        if message.calls:
            messages = (*messages, *await _messages_with_calls(number, message, exchange.tools, reading, kept))
        elif message.text.strip() or exchange.answer.problems or exchange.answer.stop == "pause":
            messages = (*messages, message)
    short = max((_count_short(reading, number) for number in reading.exchanges), default=0)
    return _with_ending(trim_results(messages, short) or _unsent(reading), reading.finished)


def _count_short(reading: _Reading, number: int) -> int:
    """How many messages had short results when the model was asked."""
    noted = reading.progress.get(room_key(number))
    return cast("JsonObject", noted)["messages"] if isinstance(noted, dict) else 0


def _read(events: Sequence[RunEvent]) -> _Reading:
    reading = _Reading()
    for entry in events:
        match entry.event:
            case RunStarted() as event:
                reading.started = event
            case RunFinished() as event:
                reading.finished = event
            case CallFinished() as event:
                reading.envelopes[event.position] = event.envelope
            case ProgressMade() as event:
                reading.progress[event.key] = event.data
            case ModelStarted() | ModelFinished() as event:
                _take(reading, event)
            case _:
                pass
    return reading


def _take(reading: _Reading, event: ModelStarted | ModelFinished) -> None:
    asked = _ASKED.fullmatch(event.position)
    if asked is None:
        return
    exchange = reading.exchanges.setdefault(int(asked[1]), _Exchange())
    if isinstance(event, ModelFinished):
        exchange.answer = decode_response(orjson.dumps(event.response))
        return
    exchange.tools = event.tools
    if event.messages is not None:
        exchange.said = decode_messages(orjson.dumps(event.messages))


async def _messages_with_calls(
    number: int, message: Message, tools: str | None, reading: _Reading, kept: Kept
) -> tuple[Message, ...]:
    """An answer with calls as it went back to the model, and their results."""
    calls = read_calls(message, number, parallel=True)
    if any(refusal_key(position) in reading.progress for position in calls.made.keys() - calls.refused.keys()):
        calls = read_calls(message, number, parallel=False)
    offered = await _tool_names(tools, calls, reading, kept)
    results = tuple(_result(position, call, calls, reading, offered) for position, call in calls.made.items())
    return calls.message, Message("user", results)


async def _tool_names(tools: str | None, calls: Calls, reading: _Reading, kept: Kept) -> list[str]:
    """Names of the tools that the model was offered, which only a refusal tells it again."""
    envelopes = [reading.envelopes[position] for position in calls.made if position in reading.envelopes]
    if tools is None or all(envelope.error is None for envelope in envelopes):
        return []
    return [tool.name for tool in _TOOLS.decode(await kept(tools))]


def _result(position: str, call: ModelToolCall, calls: Calls, reading: _Reading, offered: Sequence[str]) -> ToolResult:
    envelope, failure = reading.envelopes.get(position), calls.refused.get(position)
    if envelope is not None:
        text = text_for_model(envelope, called=call.name, offered=offered)
        return ToolResult(call.id, call.name, text, is_error=envelope.error is not None)
    if failure is not None:
        return ToolResult(call.id, call.name, _dump(error_for_model(failure)), is_error=True)
    if position in reading.progress:
        noted = cast("JsonObject", reading.progress[position])
        looked: JsonObject = noted.get("told", noted)  # older releases did not write down what the model was told
        return ToolResult(call.id, call.name, _dump(looked), is_error="error" in looked)
    return ToolResult(call.id, call.name, _dump({"error": "UNKNOWN", "message": _OPEN}), is_error=True)


def _unsent(reading: _Reading) -> tuple[Message, ...]:
    """The user's message of a turn that no model was asked in."""
    return (opening(reading.started.request.input, RecalledContext()),) if reading.started is not None else ()


def _with_ending(messages: tuple[Message, ...], finished: RunFinished | None) -> tuple[Message, ...]:
    """The messages, ended by the model's answer, or by what the run put out instead and why."""
    if not messages or finished is None:
        return messages
    *before, last = messages
    answered = last.role == "assistant" and not last.calls
    put_out = response_of(finished.output) or ""
    is_final = finished.status == "completed" and finished.stop_reason == "final_answer"
    if is_final:
        return messages if answered else (*messages, assistant(put_out or _dump(finished.output)))
    is_said = any(message.text.strip() == put_out for message in messages)
    note = "\n\n".join(filter(None, ("" if is_said else put_out, _note(finished))))
    if answered:
        return (*before, msgspec.structs.replace(last, parts=(*last.parts, Text(f"\n\n{note}"))))
    return (*messages, assistant(note))


def _note(finished: RunFinished) -> str:
    why = finished.stop_reason.replace("_", " ")
    if finished.error is not None:
        why = f"{why}: {clip_text(finished.error.message, _LONGEST_NOTE)}"
    return f"(This turn ended before its answer, {finished.status.replace('_', ' ')}, {why}.)"


def _dump(value: Json) -> str:
    return orjson.dumps(value).decode()

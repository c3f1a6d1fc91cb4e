"""The conversation of a run's own model calls, read from its journal as neutral messages."""

import re
from collections.abc import Iterable, Sequence
from typing import Final

import orjson

from toolcrib.contracts import CallFinished, ModelFinished, ModelStarted, ProgressMade, RunEvent, ToolEnvelope
from toolcrib.llm import Message, ToolCall, ToolResult, decode_messages, decode_response

_TURN: Final = re.compile(r"t(\d+)\.llm")


def system_prompt_of(events: Iterable[RunEvent]) -> str:
    """The system prompt of the last model call; empty if there was none."""
    prompts = [e.event.system for e in events if isinstance(e.event, ModelStarted) and e.event.system is not None]
    return prompts[-1] if prompts else ""


def messages_of(events: Sequence[RunEvent]) -> tuple[Message, ...]:
    """What models were told and answered, in order; results of calls are a user message after the answer with them.

    Args:
        events: Of the run, in order.
    """
    envelopes = {e.event.position: e.event.envelope for e in events if isinstance(e.event, CallFinished)}
    notes = {e.event.key: e.event.data for e in events if isinstance(e.event, ProgressMade)}
    messages: list[Message] = []
    asked: set[str] = set()
    for entry in events:
        match entry.event:
            case ModelStarted(position=position, messages=new) if position not in asked and new is not None:
                asked.add(position)
                messages += decode_messages(orjson.dumps(new))
            case ModelFinished(position=position, response=answer):
                message = decode_response(orjson.dumps(answer)).message
                messages.append(message)
                turn = _TURN.fullmatch(position)
                results = _results(message, turn[1], envelopes, notes) if turn is not None else ()
                if results:
                    messages.append(Message("user", results))
            case _:
                pass
    return tuple(messages)


def _results(
    message: Message, turn: str, envelopes: dict[str, ToolEnvelope], notes: dict[str, object]
) -> tuple[ToolResult, ...]:
    """The results of the calls of an answer; calls that have not ended have none."""
    calls = [part for part in message.parts if isinstance(part, ToolCall)]
    found: list[ToolResult] = []
    for number, call in enumerate(calls, start=1):
        position = f"t{turn}.c{number}"
        envelope, note = envelopes.get(position), notes.get(position, notes.get(f"{position}.refused"))
        if envelope is not None and envelope.error is not None:
            failure = {"error": envelope.error.code.value, "message": envelope.error.message}
            found.append(ToolResult(call.id, call.name, orjson.dumps(failure).decode(), is_error=True))
        elif envelope is not None:
            found.append(ToolResult(call.id, call.name, orjson.dumps(envelope.output).decode()))
        elif note is not None:
            found.append(ToolResult(call.id, call.name, orjson.dumps(note).decode(), is_error=True))
    return tuple(found)

"""What an agent puts out (001, section 3.1), read from its run's journal.

Pure: events in, outputs out. Every run has them, of whatever kind, however it ended and also while it goes on.
"""

from collections.abc import Iterable, Sequence
from typing import cast

import orjson

from toolcrib.contracts import (
    AgentOutputs,
    CallFinished,
    CallStarted,
    Json,
    JsonObject,
    RunFinished,
    RunKind,
    RunStarted,
    ToolEnvelope,
)
from toolcrib.core.runs.journal.history import Logged


def outputs_of(events: Sequence[Logged]) -> AgentOutputs:
    """The stable outputs of a run; a server adds the address of its trace.

    Args:
        events: From the first on, in order.
    """
    calls = calls_of(events)
    first, last = events[0].event, events[-1].event
    kind = first.request.kind if isinstance(first, RunStarted) else "tool"
    return AgentOutputs(
        response=answer_of(kind, last.output)[0] if isinstance(last, RunFinished) else "",
        tools_by_id={envelope.call_id: envelope for envelope in calls},
        tool_order=tuple(envelope.call_id for envelope in calls),
        last_tool=next((envelope for envelope in reversed(calls) if envelope.ok), None),
    )


def calls_of(events: Iterable[Logged]) -> Sequence[ToolEnvelope]:
    """The calls that have ended, in the order in which they began.

    A call begins with its intent: after it was approved, and for a client's tool before it is prepared. One that was
    never dispatched (denied, skipped, from the cache) has no intent, and begins where it ends.
    """
    places: dict[str, ToolEnvelope | None] = {}
    for entry in events:
        match entry.event:
            case CallStarted(position=position):
                places.setdefault(position, None)
            case CallFinished(position=position, envelope=envelope):
                places[position] = envelope
            case _:
                pass
    return [envelope for envelope in places.values() if envelope is not None]


def response_of(output: Json) -> str | None:
    """The words that an agent has put out; null if there are none."""
    response = _members(output).get("response")
    return response if isinstance(response, str) else None


def answer_of(kind: RunKind, output: Json) -> tuple[str, Json]:
    """The text of a run's output, and its structured part.

    An agent puts out `{"response": text, "output"?: value}`. The output of everything else is its structured part, and
    the text is its `summary`, or the whole as text.
    """
    members = _members(output)
    if kind == "agent" and "response" in members:
        return str(members["response"] or ""), members.get("output")
    if "summary" in members:
        return str(members["summary"] or ""), output
    if output is None:
        return "", None
    return str(output) if isinstance(output, str) else orjson.dumps(output).decode(), output


def _members(output: Json) -> JsonObject:
    return cast("JsonObject", output) if isinstance(output, dict) else {}

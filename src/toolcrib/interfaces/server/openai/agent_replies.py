"""What an assistant says, as it speaks and in the end, and ids of responses and calls.

A run that waits for a person is told as text that ends with a note that names the run. By this note a chat client,
which sends all messages each time, answers the question of a run without knowing of runs.

In a stream, each answer of the model is a segment of text: what it says before it calls tools, and its final answer. An
attempt that failed leaves its segment as it is, because OpenAI's streams cannot take text back; the next attempt is a
new segment.
"""

import re
from collections.abc import AsyncGenerator
from contextlib import aclosing
from math import inf
from typing import Final, Literal, NamedTuple, TypeAlias

import orjson

from toolcrib.contracts import AgentResponse, Json, JsonObject, OpenQuestion, StreamEvent, TextDelta, ToolEnvelope
from toolcrib.core.runs import BEGINNING
from toolcrib.crib import ActingCrib
from toolcrib.interfaces.server.http.streaming import KEEP_ALIVE_S

Finish: TypeAlias = Literal["stop", "length", "content_filter", "tool_calls", "error"]

_FAILED: Final = frozenset({"failed", "timed_out", "cancelled"})
_LIMITS: Final = frozenset({"max_iterations", "max_tool_calls", "max_cost", "max_tokens", "timeout"})
_NOTE: Final = re.compile(r"\[Run (?P<run_id>run_[0-9a-z]{1,64}) waits for [a-z ]+\.\]\s*\Z")
_RESPONSE: Final = re.compile(r"resp_(?P<run>[0-9a-z]{1,64})(?:_[0-9]{1,9})?")
_CALL: Final = re.compile(r"call_(?P<run>[0-9a-z]{1,64})_(?P<call>[0-9a-z]{1,64})")
_SHOWN: Final = frozenset({"tool_selection", "result_review", "error_recovery", "answer"})
"""Purposes of model requests whose text is for the user; that of others is JSON."""
KEEP_ALIVE: Final = ": keep-alive\n\n"
"""A comment between server-sent events."""


class BegunRun(NamedTuple):
    """A run that a request has begun, or has given what it waited for."""

    run_id: str
    events: int = 0
    """Events that it had before."""


class AgentReply(NamedTuple):
    """What the assistant says at the end of a request, and why it stops there."""

    text: str
    finish: Finish
    state: AgentResponse


def reply_of(state: AgentResponse) -> AgentReply:
    """The state of an execution as a reply.

    Args:
        state: Ended, waiting or queued.
    """
    if state.status in _FAILED:
        return AgentReply("", "error", state)
    if state.status == "completed":
        return AgentReply(state.response, "stop", state)
    if state.status == "incomplete":
        return AgentReply(_early_end(state), _early_finish(state), state)
    if state.tool_calls:
        return AgentReply("", "tool_calls", state)
    return AgentReply(_wait(state), "stop", state)


def outcome_of(state: AgentResponse) -> str:
    """What came of a run that has ended, for the agent: its reply, or why there is none."""
    reply = reply_of(state)
    if reply.finish != "error":
        return reply.text
    if state.error is None or state.status == "cancelled":
        return "The run was cancelled."
    return f"The run failed: {state.error.message}"


def waiting_run(text: str) -> str | None:
    """The run that a text of the assistant says to wait; null if it says so of none."""
    found = _NOTE.search(text)
    return None if found is None else found["run_id"]


def response_id(run_id: str, events: int = 0) -> str:
    """The id of a response.

    Args:
        run_id: Its run.
        events: Events of the run before, if an earlier response has begun it.
    """
    return f"resp_{run_id.removeprefix('run_')}" + (f"_{events}" if events else "")


def run_of_response(identifier: str) -> str | None:
    """The run of a response; null if it is not an id of a response."""
    found = _RESPONSE.fullmatch(identifier)
    return None if found is None else f"run_{found['run']}"


def client_call_id(call: ToolEnvelope, run_id: str) -> str:
    """The id of a call that waits for the client.

    Args:
        call: The call.
        run_id: The execution, if the envelope names no nested run.
    """
    return call_id_of(call.run_id or run_id, call.call_id)


def call_id_of(run_id: str, call_id: str) -> str:
    """The id by which a client knows a call of a run."""
    return f"call_{run_id.removeprefix('run_')}_{call_id}"


def run_and_call_of(identifier: str) -> tuple[str, str] | None:
    """The run and the `call_id` of a call; null if it is not an id of a call."""
    found = _CALL.fullmatch(identifier)
    return None if found is None else (f"run_{found['run']}", found["call"])


def facts_of(state: AgentResponse) -> JsonObject:
    """What Toolcrib knows of an execution and OpenAI's formats have no place for."""
    return {
        "run_id": state.run_id,
        "agent": state.agent,
        "conversation_id": state.conversation_id,
        "status": state.status,
        "stop_reason": state.stop_reason,
        "tokens": state.tokens,
        "cost_usd": None if state.cost_usd is None else float(state.cost_usd),
        "cost_unknown": state.cost_unknown,
        "warnings": list(state.warnings),
    }


def arguments_of(call: ToolEnvelope) -> str:
    """The arguments of a call as the JSON text that OpenAI's formats have."""
    return as_json(call.input)


def as_json(value: Json) -> str:
    """JSON as text."""
    return orjson.dumps(value).decode()


class SpokenPiece(NamedTuple):
    """Some text of a segment."""

    segment: int
    text: str


class SpokenText:
    """What was said so far.

    Args:
        shown: Whether text is told as it comes; an agent that answers as JSON says it at its end.
    """

    def __init__(self, *, shown: bool = True) -> None:
        self._shown = shown
        self.segments: list[str] = []
        self._current: tuple[str, int] | None = None

    def hear(self, event: StreamEvent) -> SpokenPiece | None:
        """The piece that a message of the stream adds; null if none."""
        if not isinstance(event, TextDelta) or event.purpose not in _SHOWN or not self._shown:
            return None
        if self._current != (event.position, event.number):
            self._current = (event.position, event.number)
            self.segments.append("")
        return self._add(event.text)

    def finish(self, text: str) -> SpokenPiece | None:
        """The piece that completes what is said in the end; null if all of it was said."""
        last = self.segments[-1] if self.segments else ""
        if text.strip() in {"", last.strip()}:
            return None
        if last and text.startswith(last):
            return self._add(text[len(last) :])
        self.segments.append("")
        return self._add(text)

    def _add(self, text: str) -> SpokenPiece:
        self.segments[-1] += text
        return SpokenPiece(len(self.segments) - 1, text)


async def listen(crib: ActingCrib, begun: BegunRun, spoken: SpokenText) -> AsyncGenerator[SpokenPiece | None]:
    """The pieces as they come, until the run has ended or waits; null if a sign of life is due, and in the beginning.

    Args:
        crib: Acts as the client's principal.
        begun: The run; this process drives it, also after the client has left.
        spoken: Takes what is said.
    """
    place, heard = str(begun.events) if begun.events else BEGINNING, -inf
    async with aclosing(crib.executions.follow_closely(begun.run_id, after=place, drive=True)) as news:
        async for message in news:
            piece = None if message is None else spoken.hear(message.event)
            if piece is not None or crib.clock.monotonic() - heard >= KEEP_ALIVE_S:
                heard = crib.clock.monotonic()
                yield piece


async def continue_after(
    first: SpokenPiece | None, rest: AsyncGenerator[SpokenPiece | None]
) -> AsyncGenerator[SpokenPiece | None]:
    """SpokenPieces of which the first was taken."""
    async with aclosing(rest):
        yield first
        async for piece in rest:
            yield piece


def _early_end(state: AgentResponse) -> str:
    why = f"The run ended early: {state.error.message if state.error else state.stop_reason}"
    done = "" if state.partial is None or state.response else f"Done until then: {_as_text(state.partial)}"
    return "\n\n".join(filter(None, (state.response, why, done)))


def _early_finish(state: AgentResponse) -> Finish:
    if state.stop_reason in _LIMITS:
        return "length"
    return "content_filter" if state.stop_reason == "policy" else "stop"


def _wait(state: AgentResponse) -> str:
    if state.question is not None:
        return f"{_question(state.question)}\n\n[Run {state.run_id} waits for your answer.]"
    if state.approvals:
        listed = "\n".join(
            f"{approval.name} waits for a person to approve it (approval {approval.approval_id})."
            for approval in state.approvals
        )
        return f"{listed}\n\n[Run {state.run_id} waits for an approval.]"
    told = " ".join((f"Run {state.run_id} is {state.status.replace('_', ' ')}.", *state.warnings))
    return f"{told}\n\n[Run {state.run_id} waits for a worker.]"


def _question(question: OpenQuestion) -> str:
    choices = "\n".join(f"- {choice.label}" for choice in question.choices)
    return "\n\n".join(filter(None, (question.question, "\n".join(question.assumptions), choices)))


def _as_text(value: Json) -> str:
    return value if isinstance(value, str) else as_json(value)

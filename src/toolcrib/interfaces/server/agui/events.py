"""Streams of runs as events of AG-UI.

A text message is one answer of the model; the next answer, or a call, ends it. What waits for a person ends the run of
the client with an interrupt, which its next request resolves.
"""

from collections.abc import Iterator
from typing import Any, Final

from ag_ui import core
from ag_ui.core import EventType

from toolcrib.contracts import (
    AgentResponse,
    Json,
    JsonObject,
    JsonSchema,
    OpenQuestion,
    StreamEvent,
    ThinkingDelta,
    ToolCallEnd,
    ToolCallStart,
)
from toolcrib.interfaces.server.openai.agent_replies import (
    SpokenPiece,
    SpokenText,
    arguments_of,
    as_json,
    call_id_of,
    client_call_id,
    facts_of,
    reply_of,
)

_APPROVAL_SCHEMA: Final[JsonSchema] = {
    "type": "object",
    "properties": {"approved": {"type": "boolean"}, "reason": {"type": "string"}},
    "required": ["approved"],
}


class EventWriter:
    """Writes the events of one request.

    Args:
        asked: The request.
        run_id: The run that answers it.
        spoken: Takes what is said.
    """

    def __init__(self, asked: core.RunAgentInput, run_id: str, spoken: SpokenText) -> None:
        self._asked = asked
        self._run_id = run_id
        self._spoken = spoken
        self._message: str | None = None
        self._thinking: str | None = None
        self._calls: set[str] = set()

    def begin(self) -> core.BaseEvent:
        """The first event; its `metadata` has the run's own id."""
        return core.RunStartedEvent(
            type=EventType.RUN_STARTED,
            thread_id=self._asked.thread_id,
            run_id=self._asked.run_id,
            metadata={"toolcrib": {"run_id": self._run_id}},
        )

    def hear(self, event: StreamEvent) -> Iterator[core.BaseEvent]:
        """The events that a message of the run's stream becomes."""
        match event:
            case ThinkingDelta():
                yield from self._think(event)
            case ToolCallStart():
                yield from self._close()
                yield from self._call(call_id_of(self._run_id, event.call_id), event.name, as_json(event.input))
            case ToolCallEnd(envelope=envelope) if call_id_of(self._run_id, envelope.call_id) in self._calls:
                yield from self._close()
                told: Json = envelope.output if envelope.error is None else {"error": envelope.error.message}
                yield core.ToolCallResultEvent(
                    type=EventType.TOOL_CALL_RESULT,
                    message_id=f"{self._run_id}-{envelope.call_id}",
                    tool_call_id=call_id_of(self._run_id, envelope.call_id),
                    content=told if isinstance(told, str) else as_json(told),
                    role="tool",
                    metadata={"toolcrib": {"status": envelope.status, "error": _code(envelope.error)}},
                )
            case _:
                piece = self._spoken.hear(event)
                if piece is not None:
                    yield from self._say(piece)

    def end(self, state: AgentResponse) -> Iterator[core.BaseEvent]:
        """What remains to be said, and how the run ended or for what it waits."""
        reply = reply_of(state)
        if state.status in {"failed", "timed_out"}:
            yield from self._close()
            message = state.error.message if state.error else f"the run ended: {state.status}"
            yield core.RunErrorEvent(
                type=EventType.RUN_ERROR, message=message, code=_code(state.error), metadata=_facts(state)
            )
            return
        interrupts = [*_interrupts(state)]
        piece = self._spoken.finish("" if interrupts else reply.text)
        if piece is not None:
            yield from self._say(piece)
        yield from self._close()
        pending: list[str] = []
        for call in state.tool_calls:
            pending.append(client_call_id(call, state.run_id))
            if pending[-1] not in self._calls:
                yield from self._call(pending[-1], call.name, arguments_of(call))
        yield core.RunFinishedEvent(
            type=EventType.RUN_FINISHED,
            thread_id=self._asked.thread_id,
            run_id=self._asked.run_id,
            result=state.output,
            outcome=_outcome(state, interrupts, pending),
            metadata=_facts(state),
        )

    def _say(self, piece: SpokenPiece) -> Iterator[core.BaseEvent]:
        message = f"{self._run_id}-m{piece.segment}"
        if self._message != message:
            yield from self._close()
            self._message = message
            yield core.TextMessageStartEvent(type=EventType.TEXT_MESSAGE_START, message_id=message, role="assistant")
        yield core.TextMessageContentEvent(type=EventType.TEXT_MESSAGE_CONTENT, message_id=message, delta=piece.text)

    def _think(self, event: ThinkingDelta) -> Iterator[core.BaseEvent]:
        message = f"{self._run_id}-r{event.number}"
        if self._thinking != message:
            yield from self._close()
            self._thinking = message
            yield core.ReasoningStartEvent(type=EventType.REASONING_START, message_id=message)
            yield core.ReasoningMessageStartEvent(
                type=EventType.REASONING_MESSAGE_START, message_id=message, role="reasoning"
            )
        yield core.ReasoningMessageContentEvent(
            type=EventType.REASONING_MESSAGE_CONTENT, message_id=message, delta=event.text
        )

    def _call(self, call_id: str, name: str, arguments: str) -> Iterator[core.BaseEvent]:
        self._calls.add(call_id)
        yield core.ToolCallStartEvent(type=EventType.TOOL_CALL_START, tool_call_id=call_id, tool_call_name=name)
        yield core.ToolCallArgsEvent(type=EventType.TOOL_CALL_ARGS, tool_call_id=call_id, delta=arguments)
        yield core.ToolCallEndEvent(type=EventType.TOOL_CALL_END, tool_call_id=call_id)

    def _close(self) -> Iterator[core.BaseEvent]:
        """End the message that is open."""
        if self._message is not None:
            yield core.TextMessageEndEvent(type=EventType.TEXT_MESSAGE_END, message_id=self._message)
        if self._thinking is not None:
            yield core.ReasoningMessageEndEvent(type=EventType.REASONING_MESSAGE_END, message_id=self._thinking)
            yield core.ReasoningEndEvent(type=EventType.REASONING_END, message_id=self._thinking)
        self._message = self._thinking = None


def _outcome(state: AgentResponse, interrupts: list[core.Interrupt], pending: list[str]) -> Any:
    if interrupts:
        return core.RunFinishedInterruptOutcome(type="interrupt", interrupts=interrupts)
    if state.status == "cancelled":
        return core.RunFinishedCancelledOutcome(type="cancelled")
    return core.RunFinishedSuccessOutcome(type="success", pending_tool_call_ids=pending or None)


def _interrupts(state: AgentResponse) -> Iterator[core.Interrupt]:
    if state.question is not None:
        question = state.question
        yield core.Interrupt(
            id=f"{state.run_id}/question",
            reason="question",
            message="\n\n".join(filter(None, (question.question, *question.assumptions))),
            response_schema=_answer_schema(question),
        )
    for approval in state.approvals:
        expires = None if approval.expires_at is None else approval.expires_at.isoformat()
        yield core.Interrupt(
            id=f"{state.run_id}/approval/{approval.approval_id}",
            reason="approval",
            message=approval.message or f"May {approval.name} be called?",
            tool_call_id=call_id_of(approval.run_id, approval.call_id),
            response_schema=_APPROVAL_SCHEMA,
            expires_at=expires,
            metadata={"toolcrib": {"tool": approval.name, "input": approval.input}},
        )


def _answer_schema(question: OpenQuestion) -> JsonSchema:
    if question.answer_schema is not None:
        return question.answer_schema
    choices = [{"const": choice.value, "title": choice.label} for choice in question.choices]
    return {"type": "string", "anyOf": [*choices, {"type": "string"}]} if choices else {"type": "string"}


def _code(error: Any) -> str | None:
    return None if error is None else str(error.code)


def _facts(state: AgentResponse) -> JsonObject:
    return {"toolcrib": facts_of(state)}

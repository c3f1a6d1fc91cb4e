"""Runs as tasks of A2A: state, messages, and the answer as an artifact."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

from a2a.types import Artifact, Message, Part, Role, Task, TaskState, TaskStatus

from toolcrib.contracts import AgentResponse, Json, JsonObject, OpenQuestion, Run, RunStatus
from toolcrib.contracts.runs.events import RunEvent, SignalAwaited, SignalReceived
from toolcrib.contracts.runs.executions import answer_signal
from toolcrib.core.runs import waiting_question
from toolcrib.interfaces.server.openai.agent_replies import reply_of
from toolcrib.kinds.a2a.message_parts import data_part, text_part

RESULT: Final = "result"
"""The artifact with the answer."""
STATES: Final[Mapping[RunStatus, TaskState]] = {
    "queued": TaskState.TASK_STATE_SUBMITTED,
    "running": TaskState.TASK_STATE_WORKING,
    "awaiting_approval": TaskState.TASK_STATE_INPUT_REQUIRED,
    "awaiting_client": TaskState.TASK_STATE_INPUT_REQUIRED,
    "awaiting_answer": TaskState.TASK_STATE_INPUT_REQUIRED,
    "completed": TaskState.TASK_STATE_COMPLETED,
    "incomplete": TaskState.TASK_STATE_FAILED,
    "failed": TaskState.TASK_STATE_FAILED,
    "timed_out": TaskState.TASK_STATE_FAILED,
    "cancelled": TaskState.TASK_STATE_CANCELED,
}
"""A run that the policy did not let begin is rejected."""
_ANSWER: Final = answer_signal("")


def task_of(run: Run, state: AgentResponse, history: Sequence[Message] = (), *, artifacts: bool = True) -> Task:
    """A run as a task.

    Args:
        run: The run.
        state: Its state, as the agent's caller sees it.
        history: The messages to show.
        artifacts: Whether to show the answer.
    """
    return Task(
        id=run.run_id,
        context_id=context_of(run),
        status=status_of(run, state),
        artifacts=[*artifacts_of(state)] if artifacts else [],
        history=history,
        metadata={"toolcrib": _facts(state)},
    )


def context_of(run: Run) -> str:
    """The context of a task: its conversation, or the run itself if it has none."""
    return run.request.conversation_id or run.run_id


def status_of(run: Run, state: AgentResponse) -> TaskStatus:
    """How a task stands, and what it waits for or why it ended, as a message."""
    parts = [*_status_parts(state)]
    message = Message(
        message_id=f"{run.run_id}-{run.events}",
        context_id=context_of(run),
        task_id=run.run_id,
        role=Role.ROLE_AGENT,
        parts=parts,
    )
    found = TaskStatus(state=task_state(run), message=message if parts else None)
    found.timestamp.FromDatetime(run.updated_at)
    return found


def task_state(run: Run) -> TaskState:
    """The state of a task."""
    refused = run.status == "failed" and run.stop_reason == "policy"
    return TaskState.TASK_STATE_REJECTED if refused else STATES[run.status]


def artifacts_of(state: AgentResponse) -> Iterator[Artifact]:
    """The answer of a run that has ended, or what it did until then."""
    parts = [*_answer_parts(state)]
    if parts:
        yield Artifact(artifact_id=RESULT, name=RESULT, parts=parts)


def history_of(run: Run, events: Sequence[RunEvent], most: int | None) -> Sequence[Message]:
    """What was said in a task by its client and asked by its agent, oldest first.

    Args:
        run: The run.
        events: Its journal.
        most: The newest so many; null for all.
    """
    given: Any = run.request.input
    text: Any = cast("JsonObject", given).get("message") if isinstance(given, dict) else None
    first = [Part(text=text)] if isinstance(text, str) else [data_part(given)]
    found = [_message(run, Role.ROLE_USER, 0, first)]
    for place, entry in enumerate(events):
        event = entry.event
        if isinstance(event, SignalAwaited) and event.name.startswith(_ANSWER):
            question = waiting_question(events[: place + 1], ())
            if question is not None:
                found.append(_message(run, Role.ROLE_AGENT, entry.number, [Part(text=_asked(question))]))
        elif isinstance(event, SignalReceived) and event.name.startswith(_ANSWER) and event.payload is not None:
            found.append(_message(run, Role.ROLE_USER, entry.number, [Part(text=str(event.payload["answer"]))]))
    return found if most is None else found[len(found) - min(most, len(found)) :]


def _facts(state: AgentResponse) -> JsonObject:
    """What Toolcrib knows of a task beyond the protocol."""
    return {
        "status": state.status,
        "stopReason": state.stop_reason,
        "tokens": state.tokens,
        "costUsd": None if state.cost_usd is None else float(state.cost_usd),
        "costUnknown": state.cost_unknown,
        "warnings": list(state.warnings),
    }


def _answer_parts(state: AgentResponse) -> Iterator[Part]:
    if state.status == "completed":
        structured = state.output if state.output not in (None, state.response) else None
        if structured is not None:
            yield data_part(structured)
        elif state.response:
            yield text_part(state.response)
    elif state.partial is not None:
        yield text_part(state.partial) if isinstance(state.partial, str) else data_part(state.partial)


def _status_parts(state: AgentResponse) -> Iterator[Part]:
    if state.question is not None:
        yield text_part(_asked(state.question))
        yield data_part({"question": _question(state.question)})
    if state.approvals:
        names = ", ".join(approval.name for approval in state.approvals)
        yield text_part(f"A person has to approve: {names}.")
        yield data_part({"approvals": [approval.model_dump(mode="json") for approval in state.approvals]})
    if state.tool_calls:
        names = ", ".join(call.name for call in state.tool_calls)
        yield text_part(f"These calls are the client's to make: {names}.")
        calls: list[Json] = [
            {"run_id": call.run_id or state.run_id, "call_id": call.call_id, "name": call.name, "input": call.input}
            for call in state.tool_calls
        ]
        yield data_part({"tool_calls": calls})
    if reply_of(state).finish == "error" or state.status == "incomplete":
        told = state.error.message if state.error else f"the run ended: {state.stop_reason or state.status}"
        yield text_part(told)
        if state.error is not None:
            yield data_part({"error": {"code": state.error.code, "reason": state.error.reason}})


def _asked(question: OpenQuestion) -> str:
    choices = "\n".join(f"- {choice.label}" for choice in question.choices)
    return "\n\n".join(filter(None, (question.question, *question.assumptions, choices)))


def _question(question: OpenQuestion) -> JsonObject:
    choices: list[Json] = [{"value": choice.value, "label": choice.label} for choice in question.choices]
    return {"text": question.question, "choices": choices, "answer_schema": question.answer_schema}


def _message(run: Run, role: Role, number: int, parts: Sequence[Part]) -> Message:
    return Message(
        message_id=f"{run.run_id}-{number}", context_id=context_of(run), task_id=run.run_id, role=role, parts=parts
    )

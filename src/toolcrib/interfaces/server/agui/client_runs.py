"""What a request of AG-UI asks of an agent, and the run that does it.

A client keeps the thread itself and sends all messages each time: the last one is the message of a fresh run, and those
before it are its context, as with chat completions. `resume` answers what a run waits for.
"""

from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from typing import Any, Final, cast

from ag_ui import core
from ag_ui.encoder import EventEncoder
from pydantic import ValidationError

from toolcrib.contracts import (
    AgentImplementation,
    AgentRequest,
    FileInput,
    InvalidInput,
    JsonObject,
    NotFound,
    ToolRevision,
)
from toolcrib.core.runs import BEGINNING
from toolcrib.crib import ActingCrib
from toolcrib.interfaces.server.agui.events import EventWriter
from toolcrib.interfaces.server.http.streaming import KEEP_ALIVE_S
from toolcrib.interfaces.server.openai.agent_replies import KEEP_ALIVE, BegunRun, SpokenText, as_json
from toolcrib.interfaces.server.openai.agent_tasks import begin_chat, outermost_run, task_of
from toolcrib.interfaces.server.openai.content_files import file_from
from toolcrib.interfaces.server.openai.request_bodies import Entry

CONTEXT: Final = "client_context"
"""Variable with what the client says of its application."""
STATE: Final = "client_state"
"""Variable with the state that the client shares."""
_KINDS: Final[dict[str, Any]] = {
    "user": "user",
    "assistant": "assistant",
    "system": "instructions",
    "developer": "instructions",
    "tool": "result",
}
"""Of messages; activities and reasoning are the client's own."""
_FILES: Final = frozenset({"image", "audio", "document"})
"""Types of parts that are files."""


def read_input(body: JsonObject) -> core.RunAgentInput:
    """The request.

    Raises:
        InvalidInput: It is not one of AG-UI; the message names the first field that is wrong.
    """
    try:
        return core.RunAgentInput.model_validate(body)
    except ValidationError as problem:
        first = problem.errors()[0]
        path = "/".join(str(part) for part in first["loc"])
        raise InvalidInput(f"{path}: {first['msg']}; send RunAgentInput as AG-UI has it") from None


async def begin(crib: ActingCrib, agent: ToolRevision, asked: core.RunAgentInput, *, self_approval: bool) -> BegunRun:
    """Begin a run for the last message, or give a waiting run what it waits for.

    Args:
        crib: Acts as the client's principal.
        agent: Whom it asks.
        asked: The request.
        self_approval: Whether the principal may decide on the calls of its own runs.

    Raises:
        InvalidInput: There is nothing to do, or an interrupt or a result fits no call.
        PermissionDenied: The principal may not decide on a call.
        Conflict: It was decided or answered before.
    """
    if asked.resume:
        return await _resume(crib, agent, asked.resume, self_approval=self_approval)
    task = task_of([*_entries(asked.messages)])
    context = dict(task.context)
    if asked.context:
        context[CONTEXT] = [{"description": each.description, "value": each.value} for each in asked.context]
    if asked.state:
        context[STATE] = asked.state
    return await begin_chat(crib, agent, task._replace(context=context))


async def stream(
    crib: ActingCrib, agent: ToolRevision, asked: core.RunAgentInput, begun: BegunRun
) -> AsyncGenerator[str]:
    """The events as lines, until the run has ended or waits; this process drives it, also after the client has left."""
    implementation, encode = agent.definition.implementation, EventEncoder().encode
    shown = isinstance(implementation, AgentImplementation) and implementation.answer_schema is None
    writer = EventWriter(asked, begun.run_id, SpokenText(shown=shown))
    yield encode(writer.begin())
    place, heard = str(begun.events) if begun.events else BEGINNING, crib.clock.monotonic()
    async with aclosing(crib.executions.follow_closely(begun.run_id, after=place, drive=True)) as news:
        async for message in news:
            for event in () if message is None else writer.hear(message.event):
                heard = crib.clock.monotonic()
                yield encode(event)
            if crib.clock.monotonic() - heard >= KEEP_ALIVE_S:
                heard = crib.clock.monotonic()
                yield KEEP_ALIVE
    for event in writer.end(await crib.executions.respond(begun.run_id)):
        yield encode(event)


def _entries(messages: Sequence[Any]) -> Iterator[Entry]:
    for place, message in enumerate(messages):
        kind = _KINDS.get(message.role)
        if kind is not None:
            text, files = _content(message.content, f"messages/{place}/content", takes_files=kind == "user")
            yield Entry(kind, text, getattr(message, "tool_call_id", ""), files)


def _content(content: Any, path: str, *, takes_files: bool) -> tuple[str, tuple[FileInput, ...]]:
    """The text and the files of a content."""
    if content is None or isinstance(content, str):
        return content or "", ()
    files: list[FileInput] = []
    for place, part in enumerate(content):
        if part.type == "text":
            continue
        if not takes_files or part.type not in _FILES:
            raise InvalidInput(
                f"{path}/{place} is of type {part.type!r}; agents read text, images, audio and documents"
            )
        source, where = part.source, f"{path}/{place}"
        if source.type not in {"data", "url"}:
            raise InvalidInput(f"{where} names a file of {source.type!r}; send its bytes as base64")
        files.append(file_from(source.value, where, name=None, media_type=source.mime_type))
    return "\n\n".join(part.text for part in content if part.type == "text"), tuple(files)


async def _resume(
    crib: ActingCrib, agent: ToolRevision, entries: Sequence[core.ResumeEntry], *, self_approval: bool
) -> BegunRun:
    """Answer what a run waits for; all entries are of one run."""
    run_ids = {entry.interrupt_id.partition("/")[0] for entry in entries}
    run = await outermost_run(crib, agent, next(iter(run_ids))) if len(run_ids) == 1 else None
    if run is None:
        shown = entries[0].interrupt_id[:200]
        raise InvalidInput(f"agent {agent.name!r} has no interrupt {shown!r}; resume those of one run, by their ids")
    for entry in entries:
        what = entry.interrupt_id.partition("/")[2]
        if what == "question" and entry.status == "resolved":
            answer = entry.payload if isinstance(entry.payload, str) else as_json(entry.payload)
            await crib.executions.submit(agent.name, AgentRequest(message=answer, run_id=run.run_id))
        elif what == "question":
            await crib.cancel(run.run_id)
        else:
            await _decide(crib, what.removeprefix("approval/"), entry, self_approval=self_approval)
    return BegunRun(run.run_id, run.events)


async def _decide(crib: ActingCrib, approval_id: str, entry: core.ResumeEntry, *, self_approval: bool) -> None:
    payload: Any = entry.payload
    given = cast("JsonObject", payload) if isinstance(payload, dict) else {"approved": payload}
    reason = given.get("reason")
    try:
        await crib.approvals.decide(
            approval_id,
            approve=entry.status == "resolved" and given.get("approved") is True,
            reason=reason if isinstance(reason, str) else None,
            allow_self=self_approval,
        )
    except NotFound:
        raise InvalidInput(f"there is no approval {approval_id[:100]!r} that waits; ask for the run's state") from None

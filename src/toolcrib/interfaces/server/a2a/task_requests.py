"""What the client of an agent asks of it: the methods of A2A over runs.

A client sees its own tasks with the agent of the address, and no others. Only a task that waits takes a message; a
message with a context and without a task begins the next task of the conversation.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, asynccontextmanager
from datetime import UTC
from typing import Any, Final, NamedTuple, NoReturn, TypeAlias

from a2a.server.context import ServerCallContext
from a2a.server.events.event_queue import Event
from a2a.server.request_handlers.request_handler import RequestHandler
from a2a.types import (
    AgentCard,
    Artifact,
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    ListTasksResponse,
    SendMessageConfiguration,
    SendMessageRequest,
    SubscribeToTaskRequest,
    Task,
    TaskArtifactUpdateEvent,
    TaskStatusUpdateEvent,
)
from a2a.utils.errors import (
    A2AError,
    ContentTypeNotSupportedError,
    ExtendedAgentCardNotConfiguredError,
    InternalError,
    InvalidParamsError,
    InvalidRequestError,
    PushNotificationNotSupportedError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnsupportedOperationError,
)
from a2a.utils.proto_utils import validate_proto_required_fields
from a2a.utils.task import validate_history_length, validate_page_size
from google.protobuf.message import Message as ProtoMessage

from toolcrib.contracts import (
    ENDED,
    WAITING,
    AgentResponse,
    InvalidInput,
    NotFound,
    PermissionDenied,
    Run,
    ToolcribError,
    ToolRevision,
)
from toolcrib.crib import ActingCrib
from toolcrib.interfaces.server.a2a.agent_card import answers_in_json
from toolcrib.interfaces.server.a2a.client_messages import deliver
from toolcrib.interfaces.server.a2a.task_views import (
    RESULT,
    STATES,
    artifacts_of,
    context_of,
    history_of,
    status_of,
    task_of,
    task_state,
)
from toolcrib.interfaces.server.openai.agent_replies import BegunRun, SpokenText, listen
from toolcrib.kinds.a2a.message_parts import JSON, TEXT, text_part

ASKED: Final = "toolcrib_asked"
"""Key of the state of a call under which its `AskedAgent` is."""
_NEWEST: Final = 1000
"""Tasks of an agent that a list shows at most."""
_PAGE: Final = 50
_AT_ONCE: Final = 200
_CANCEL_S: Final = 10.0
"""Seconds that a cancellation may take before it is answered with the task as it is."""
_LOOK_S: Final = 0.5
"""Seconds between looks at a task that waits."""
_OPEN: Final = frozenset(STATES[status] for status in STATES if status not in ENDED)
_Update: TypeAlias = TaskArtifactUpdateEvent | TaskStatusUpdateEvent
_NO_PUSH: Final = "push notifications are not supported; stream the task, or ask for it again"
_logger = logging.getLogger(__name__)


class AskedAgent(NamedTuple):
    """For whom a request is, and whose it is."""

    crib: ActingCrib
    agent: ToolRevision
    self_approval: bool
    """Whether the client may decide on the calls of its own runs."""


class TaskRequests(RequestHandler):
    """Answers the requests of the SDK's dispatchers."""

    async def on_message_send(self, params: SendMessageRequest, context: ServerCallContext) -> Task:
        """Give the agent a message, and wait until its task has ended or waits, unless the client does not want to."""
        async with _errors(params):
            asked, begun = await _begin(params, _asked(context))
            if not params.configuration.return_immediately:
                async with aclosing(listen(asked.crib, begun, SpokenText(shown=False))) as pieces:
                    async for _ in pieces:
                        pass
            return await _task(asked, begun.run_id, _most(params.configuration))

    async def on_message_send_stream(
        self, params: SendMessageRequest, context: ServerCallContext
    ) -> AsyncGenerator[Event]:
        """Give the agent a message, and follow its task."""
        async with _errors(params):
            asked, begun = await _begin(params, _asked(context))
            yield await _task(asked, begun.run_id, _most(params.configuration))
            async with aclosing(_follow(asked, begun)) as events:
                async for event in events:
                    yield event

    async def on_subscribe_to_task(
        self, params: SubscribeToTaskRequest, context: ServerCallContext
    ) -> AsyncGenerator[Event]:
        """Follow a task that has not ended."""
        async with _errors(params):
            asked = _asked(context)
            run = await _own_run(asked, params.id)
            if run.ended:
                msg = f"task {run.run_id} has ended; get it in place of following it"
                raise UnsupportedOperationError(message=msg)
            yield await _task(asked, run.run_id, None)
            ended = False
            while not ended:
                async with aclosing(_follow(asked, BegunRun(run.run_id, run.events))) as events:
                    async for event in events:
                        yield event
                        ended = isinstance(event, TaskStatusUpdateEvent) and event.status.state not in _OPEN
                if not ended:
                    run = await _when_resumed(asked, run.run_id)

    async def on_get_task(self, params: GetTaskRequest, context: ServerCallContext) -> Task:
        """A task as it is now."""
        async with _errors(params):
            validate_history_length(params)
            asked = _asked(context)
            run = await _own_run(asked, params.id)
            return await _task(asked, run.run_id, _most(params))

    async def on_list_tasks(self, params: ListTasksRequest, context: ServerCallContext) -> ListTasksResponse:
        """The client's newest tasks with the agent, the one that has changed last first."""
        async with _errors(params):
            validate_history_length(params)
            if params.HasField("page_size"):
                validate_page_size(params.page_size)
            asked, size = _asked(context), params.page_size or _PAGE
            wanted = [run for run in await _runs(asked) if _fits(run, params)]
            begin = _place_of(wanted, params.page_token)
            page, rest = wanted[begin : begin + size], wanted[begin + size :]
            most = params.history_length if params.HasField("history_length") else 0
            return ListTasksResponse(
                tasks=[await _task(asked, run.run_id, most, artifacts=params.include_artifacts) for run in page],
                next_page_token=page[-1].run_id if rest else "",
                page_size=size,
                total_size=len(wanted),
            )

    async def on_cancel_task(self, params: CancelTaskRequest, context: ServerCallContext) -> Task:
        """Cancel a task that has not ended."""
        async with _errors(params):
            asked = _asked(context)
            run = await _own_run(asked, params.id)
            if run.ended:
                raise TaskNotCancelableError(message=f"task {run.run_id} has ended: {run.status}")
            await asked.crib.cancel(run.run_id)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_CANCEL_S):
                    await _until_ended(asked, run.run_id)
            return await _task(asked, run.run_id, None)

    async def on_get_extended_agent_card(self, params: Any, context: ServerCallContext) -> AgentCard:
        """Refuse: the card of an address tells all that there is to tell."""
        del params, context
        raise ExtendedAgentCardNotConfiguredError

    async def on_create_task_push_notification_config(self, params: Any, context: ServerCallContext) -> NoReturn:
        """Refuse."""
        del params, context
        raise PushNotificationNotSupportedError(message=_NO_PUSH)

    async def on_get_task_push_notification_config(self, params: Any, context: ServerCallContext) -> NoReturn:
        """Refuse."""
        await self.on_create_task_push_notification_config(params, context)

    async def on_list_task_push_notification_configs(self, params: Any, context: ServerCallContext) -> NoReturn:
        """Refuse."""
        await self.on_create_task_push_notification_config(params, context)

    async def on_delete_task_push_notification_config(self, params: Any, context: ServerCallContext) -> NoReturn:
        """Refuse."""
        await self.on_create_task_push_notification_config(params, context)


async def _begin(params: SendMessageRequest, asked: AskedAgent) -> tuple[AskedAgent, BegunRun]:
    """Begin a task, or give one what it waits for."""
    wanted = params.configuration
    validate_history_length(wanted)
    if wanted.HasField("task_push_notification_config"):
        raise PushNotificationNotSupportedError(message=_NO_PUSH)
    modes = {JSON, TEXT} if answers_in_json(asked.agent) else {TEXT}
    accepted = set(wanted.accepted_output_modes)
    if accepted and not accepted & {*modes, "*/*", "text/*", "application/*"}:
        msg = f"agent {asked.agent.name!r} answers in {' or '.join(sorted(modes))}; accept one of them"
        raise ContentTypeNotSupportedError(message=msg)
    message = params.message
    run = await _own_run(asked, message.task_id) if message.task_id else None
    if run is not None and message.context_id not in {"", context_of(run)}:
        msg = f"task {run.run_id} is of context {context_of(run)!r}, not {message.context_id[:100]!r}; send its own"
        raise InvalidParamsError(message=msg)
    return asked, await deliver(asked.crib, asked.agent, message, run, self_approval=asked.self_approval)


async def _follow(asked: AskedAgent, begun: BegunRun) -> AsyncGenerator[_Update]:
    """The answer of a task as it comes, and how it ends or for what it waits."""
    spoken = SpokenText(shown=not answers_in_json(asked.agent))
    said: int | None = None
    run = await asked.crib.store.journal.run(begun.run_id)
    names: dict[str, Any] = {"task_id": run.run_id, "context_id": context_of(run)}
    async with aclosing(listen(asked.crib, begun, spoken)) as pieces:
        async for piece in pieces:
            if piece is not None:
                part = Artifact(artifact_id=RESULT, name=RESULT, parts=[text_part(piece.text)])
                yield TaskArtifactUpdateEvent(**names, artifact=part, append=piece.segment == said)
                said = piece.segment
    run, state = await _state(asked, begun.run_id)
    for artifact in artifacts_of(state):
        yield TaskArtifactUpdateEvent(**names, artifact=artifact, append=False, last_chunk=True)
    yield TaskStatusUpdateEvent(**names, status=status_of(run, state))


async def _when_resumed(asked: AskedAgent, run_id: str) -> Run:
    """A run as soon as it does not wait."""
    while True:
        run = await asked.crib.store.journal.run(run_id)
        if run.status not in WAITING:
            return run
        await asked.crib.clock.sleep(_LOOK_S)


async def _task(asked: AskedAgent, run_id: str, most: int | None, *, artifacts: bool = True) -> Task:
    run, state = await _state(asked, run_id)
    events = () if most == 0 else await asked.crib.store.journal.events(run_id)
    history = () if most == 0 else history_of(run, events, most)
    return task_of(run, state, history, artifacts=artifacts)


async def _state(asked: AskedAgent, run_id: str) -> tuple[Run, AgentResponse]:
    """A run and the state of its execution; of the same moment, if it has ended in between."""
    while True:
        run = await asked.crib.executions.run_for(run_id, await asked.crib.authorize(), "read")
        state = await asked.crib.executions.respond(run_id)
        if state.status == run.status:
            return run, state


async def _own_run(asked: AskedAgent, task_id: str) -> Run:
    """The run of a task.

    Raises:
        TaskNotFoundError: The agent has no such task of the client.
    """
    who = await asked.crib.authorize()
    try:
        run = await asked.crib.executions.run_for(task_id, who, "execute")
    except (NotFound, PermissionDenied, InvalidInput):
        run = None
    if run is None or not _is_task(run, asked):
        msg = f"agent {asked.agent.name!r} has no task {task_id[:100]!r} of this key; list the tasks"
        raise TaskNotFoundError(message=msg)
    return run


def _is_task(run: Run, asked: AskedAgent) -> bool:
    return run.request.tool_name == asked.agent.name and run.request.parent_run_id is None


async def _runs(asked: AskedAgent) -> Sequence[Run]:
    """The newest tasks of the client with the agent, the one that has changed last first."""
    found: list[Run] = []
    page: Sequence[Run] = ()
    while len(found) < _NEWEST and (not found or len(page) == _AT_ONCE):
        page = await asked.crib.store.journal.runs(
            asked.crib.principal.realm,
            tool=asked.agent.name,
            made_by=asked.crib.principal.id,
            before=found[-1].run_id if found else None,
            limit=_AT_ONCE,
        )
        if not page:
            break
        found.extend(page)
    return sorted(
        (run for run in found if _is_task(run, asked)), key=lambda run: (run.updated_at, run.run_id), reverse=True
    )


def _fits(run: Run, wanted: ListTasksRequest) -> bool:
    if wanted.context_id and context_of(run) != wanted.context_id:
        return False
    if wanted.status and task_state(run) != wanted.status:
        return False
    after = wanted.status_timestamp_after.ToDatetime(UTC) if wanted.HasField("status_timestamp_after") else None
    return after is None or run.updated_at >= after


def _place_of(runs: Sequence[Run], token: str) -> int:
    """Where the page after a token begins."""
    place = next((place for place, run in enumerate(runs) if run.run_id == token), None)
    if token and place is None:
        raise InvalidParamsError(message=f"there is no page {token[:100]!r}; begin without a page token")
    return 0 if place is None else place + 1


async def _until_ended(asked: AskedAgent, run_id: str) -> None:
    async with aclosing(asked.crib.executions.follow(run_id, drive=True)) as news:
        async for _ in news:
            pass


def _most(wanted: GetTaskRequest | SendMessageConfiguration) -> int | None:
    return wanted.history_length if wanted.HasField("history_length") else None


def _asked(context: ServerCallContext) -> AskedAgent:
    found: AskedAgent = context.state[ASKED]
    return found


@asynccontextmanager
async def _errors(params: ProtoMessage) -> AsyncGenerator[None]:
    """A request that has all that it needs, and our errors as those of A2A; unexpected ones tell the client nothing."""
    try:
        validate_proto_required_fields(params)
        yield
    except A2AError:
        raise
    except PermissionDenied as problem:
        raise InvalidRequestError(message=str(problem)) from problem
    except (InvalidInput, NotFound) as problem:
        raise InvalidParamsError(message=str(problem)) from problem
    except ToolcribError as problem:
        raise UnsupportedOperationError(message=str(problem)) from problem
    except Exception as problem:  # the edge of the door
        _logger.exception("a request of A2A failed")
        raise InternalError(message="the server has failed; its log says why") from problem

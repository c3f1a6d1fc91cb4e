"""Asks an agent of another system, and waits until its task has ended or needs input.

The SDK's client does the protocol; its only way out is our HTTP session, which adds the credentials. A task is asked
for again until it does not work any more. When the call's time is over, the agent is told to cancel the task.
"""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

import httpx
from a2a.client import A2AClientError, Client, ClientConfig, ClientFactory
from a2a.types import (
    AgentCard,
    AgentInterface,
    CancelTaskRequest,
    GetTaskRequest,
    Message,
    Part,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    Task,
    TaskState,
)
from a2a.utils.errors import A2AError, ContentTypeNotSupportedError, InvalidParamsError, TaskNotFoundError
from google.protobuf.json_format import ParseError

from toolcrib.contracts import (
    Attachment,
    EgressDenied,
    ErrorCode,
    InvalidInput,
    JsonObject,
    ProviderDefinition,
    Reason,
    ToolDefinition,
)
from toolcrib.contracts.base.media import attachment_of
from toolcrib.core.executor import BlobSink, CallFailed, Clock, Dispatch, Outcome, error
from toolcrib.core.providers import Credentials, ProviderAccess
from toolcrib.core.providers.request_errors import count_request, network_failure, request_limit_s
from toolcrib.infrastructure.net import HttpResponse, HttpSession, NetworkError, Timeouts
from toolcrib.kinds.a2a.message_parts import data_of, data_part, text_part, words_of
from toolcrib.kinds.a2a.shape import A2aImplementation
from toolcrib.kinds.http.runtime.failures import status_failure

_FIRST_LOOK_S: Final = 0.2
_LAST_LOOK_S: Final = 5.0
"""Seconds between looks at a task: the first and the longest."""
_CANCEL_S: Final = 5.0
_OURS: Final = frozenset({"host", "content-length", "transfer-encoding", "connection", "accept-encoding", "user-agent"})
_OPEN: Final = frozenset({TaskState.TASK_STATE_SUBMITTED, TaskState.TASK_STATE_WORKING})
_FAILED: Final[Mapping[TaskState, str]] = {
    TaskState.TASK_STATE_FAILED: "has failed",
    TaskState.TASK_STATE_REJECTED: "was rejected",
    TaskState.TASK_STATE_CANCELED: "was cancelled",
}
_UNREADABLE: Final = (AttributeError, KeyError, ParseError, TypeError, ValueError)
"""What the SDK's client raises of answers that are not of the protocol."""
_CORRECTABLE: Final = (ContentTypeNotSupportedError, InvalidParamsError, TaskNotFoundError)
"""Errors that another message can avoid."""


async def ask_agent(
    dispatch: Dispatch, implementation: A2aImplementation, way: "AgentTransport", *, blob_sink: BlobSink, clock: Clock
) -> Outcome:
    """Send an agent the message of a call, and wait for what comes of it.

    Args:
        dispatch: The call.
        implementation: The agent.
        way: Sends the requests.
        blob_sink: Keeps files of the answer.
        clock: Time.

    Raises:
        CallFailed: The agent could not be asked, or its task did not complete.
    """
    async with httpx.AsyncClient(transport=way, timeout=None, trust_env=False) as http:  # noqa: S113 - it has its own
        try:
            answer = await _Asking(dispatch, _client(implementation, way.provider, http), clock).ask()
        except (A2AError, A2AClientError) as problem:
            raise _protocol_failure(dispatch.tool.definition, problem) from problem
        except _UNREADABLE as problem:
            raise _bad_answer(dispatch.tool.definition, f"its agent's answer is not of A2A: {problem!r}") from problem
    return await _AnswerReader(dispatch, blob_sink).outcome(answer, way.secrets)


def _client(implementation: A2aImplementation, provider: ProviderDefinition, http: httpx.AsyncClient) -> Client:
    way = AgentInterface(
        url=provider.address,
        protocol_binding=implementation.binding,
        protocol_version=implementation.protocol_version,
    )
    card = AgentCard(name=implementation.agent, supported_interfaces=[way])
    config = ClientConfig(
        httpx_client=http, streaming=False, polling=True, supported_protocol_bindings=[implementation.binding]
    )
    return ClientFactory(config).create(card)


class _Asking:
    """One message, and the task that it begins or continues."""

    def __init__(self, dispatch: Dispatch, client: Client, clock: Clock) -> None:
        self._dispatch = dispatch
        self._client = client
        self._clock = clock

    async def ask(self) -> Task | Message:
        """Send the message, and wait for what comes of it."""
        answers = [each async for each in self._client.send_message(_request(self._dispatch))]
        answer = answers[-1] if answers else None
        if answer is None or answer.WhichOneof("payload") not in {"task", "message"}:
            raise _bad_answer(self._dispatch.tool.definition, "its answer has neither a task nor a message")
        return await self._ended(answer.task) if answer.HasField("task") else answer.message

    async def _ended(self, task: Task) -> Task:
        look_s = _FIRST_LOOK_S
        try:
            while task.status.state in _OPEN:
                await self._clock.sleep(look_s)
                look_s = min(look_s * 1.5, _LAST_LOOK_S)
                task = await self._client.get_task(GetTaskRequest(id=task.id))
        except asyncio.CancelledError:
            await asyncio.shield(self._cancel(task.id))
            raise
        return task

    async def _cancel(self, task_id: str) -> None:
        with suppress(Exception):  # the call is over; what the agent still does is its own
            async with asyncio.timeout(_CANCEL_S):
                await self._client.cancel_task(CancelTaskRequest(id=task_id))


class _AnswerReader:
    """Reads what an agent has answered."""

    def __init__(self, dispatch: Dispatch, blob_sink: BlobSink) -> None:
        self._dispatch = dispatch
        self._blob_sink = blob_sink
        self._attachments: list[Attachment] = []

    async def outcome(self, answer: Task | Message, secrets: tuple[str, ...]) -> Outcome:
        """The outcome of the call.

        Raises:
            CallFailed: The task did not complete.
        """
        tool = self._dispatch.tool.definition
        state, parts = "completed", list(answer.parts) if isinstance(answer, Message) else []
        if isinstance(answer, Task):
            said = [*answer.status.message.parts]
            status = answer.status.state
            if status == TaskState.TASK_STATE_AUTH_REQUIRED:
                message = (
                    f"tool {tool.name!r}: its agent needs an authentication that the task asks for; {words_of(said)}"
                )
                raise CallFailed(error(ErrorCode.AUTH_REQUIRED, Reason.RECONNECT_REQUIRED, message), secrets=secrets)
            if status in _FAILED:
                why = f"tool {tool.name!r}: its task {_FAILED[status]}"
                message = ": ".join(filter(None, [why, words_of(said)]))
                raise CallFailed(
                    error(ErrorCode.PROVIDER_ERROR, Reason.TOOL_FAILED, message, explanation=words_of(said) or None),
                    secrets=secrets,
                    tainted=True,
                )
            waits = status == TaskState.TASK_STATE_INPUT_REQUIRED
            state = "input_required" if waits else "completed"
            results = [part for artifact in answer.artifacts for part in artifact.parts]
            parts = said if waits or not results else results
        output: JsonObject = {
            "state": state,
            "text": words_of(parts),
            "data": data_of(parts),
            "files": [await self._file(part) for part in parts if part.WhichOneof("content") in {"raw", "url"}],
            "task_id": (answer.id if isinstance(answer, Task) else answer.task_id) or None,
            "context_id": answer.context_id or None,
        }
        return Outcome(output, attachments=tuple(self._attachments), secrets=secrets, tainted=True)

    async def _file(self, part: Part) -> JsonObject:
        described: JsonObject = {"name": part.filename or None, "media_type": part.media_type or None}
        if part.WhichOneof("content") == "url":
            return {**described, "url": part.url}
        tool = self._dispatch.tool
        made_by = self._dispatch.context.principal.id
        content_type = part.media_type or "application/octet-stream"
        await self._blob_sink.put(part.raw, realm=tool.realm, made_by=made_by, content_type=content_type)
        kept = attachment_of(part.raw, content_type, kind="blob", name=part.filename or None)
        self._attachments.append(kept)
        return {**described, "url": kept.url, "bytes": len(part.raw)}


class AgentTransport(httpx.AsyncBaseTransport):
    """Sends the requests of the SDK's client with the credentials of the provider, under the egress policy."""

    def __init__(
        self,
        dispatch: Dispatch,
        provider: ProviderDefinition,
        session: HttpSession,
        providers: ProviderAccess,
        clock: Clock,
    ) -> None:
        self._dispatch = dispatch
        self.provider = provider
        self._session = session
        self._providers = providers
        self._clock = clock
        self.secrets: tuple[str, ...] = ()
        """Of all credentials that were used so far."""
        self.is_answered = False
        """Whether there was a response to a request."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Ask once, and once more with a new token if a fetched one was refused.

        Raises:
            CallFailed: The budget, the policy, the network or the other side refused.
        """
        credentials = await self._credentials(request)
        response = await self._send(request, credentials)
        if response.status == 401 and self._providers.forget(credentials):
            response = await self._send(request, await self._credentials(request))
        kind = response.headers.get("content-type", "")
        if response.status in {401, 403, 429} or (response.status >= 300 and "json" not in kind):
            raise status_failure(self._dispatch.tool.definition, response, self._clock.now())
        return httpx.Response(response.status, headers={"content-type": kind}, content=response.body, request=request)

    async def _credentials(self, request: httpx.Request) -> Credentials:
        principal = self._dispatch.context.principal
        found = await self._providers.credentials(self.provider, str(request.url), principal, None)
        self.secrets = tuple(dict.fromkeys((*self.secrets, *found.secrets)))
        return found

    async def _send(self, request: httpx.Request, credentials: Credentials) -> HttpResponse:
        tool = self._dispatch.tool.definition
        count_request(self._dispatch)
        sent = {name.lower(): value for name, value in self.provider.headers.items()}
        sent |= {name.lower(): value for name, value in request.headers.items() if name.lower() not in _OURS}
        if credentials.cookies:
            sent["cookie"] = "; ".join(f"{name}={value}" for name, value in credentials.cookies.items())
        try:
            response = await self._session.request(
                request.method,
                str(request.url.copy_merge_params(dict(credentials.query))) if credentials.query else str(request.url),
                headers=sent | credentials.headers,
                body=await request.aread() or None,
                timeout=Timeouts(total_s=request_limit_s(tool, self.provider)),
                follow_redirects=False,
            )
        except (EgressDenied, NetworkError, InvalidInput) as problem:
            raise network_failure(tool, problem) from None
        self.is_answered = True
        return response


def _request(dispatch: Dispatch) -> SendMessageRequest:
    given = dispatch.input
    parts = [text_part(given["message"])]
    if given.get("data"):
        parts.append(data_part(given["data"]))
    message = Message(
        message_id=dispatch.idempotency_key,
        role=Role.ROLE_USER,
        parts=parts,
        task_id=given.get("task_id") or "",
        context_id=given.get("context_id") or "",
    )
    return SendMessageRequest(message=message, configuration=SendMessageConfiguration(return_immediately=True))


def _bad_answer(tool: ToolDefinition, why: str) -> CallFailed:
    return CallFailed(error(ErrorCode.PROVIDER_ERROR, Reason.BAD_RESPONSE, f"tool {tool.name!r}: {why}"), sent=True)


def _protocol_failure(tool: ToolDefinition, problem: A2AError | A2AClientError) -> CallFailed:
    """The failure that an error of the protocol means."""
    if isinstance(problem, _CORRECTABLE):
        failure = error(ErrorCode.VALIDATION_ERROR, Reason.INPUT_SCHEMA_MISMATCH, f"tool {tool.name!r}: {problem}")
        return CallFailed(failure, effect="none", sent=True, tainted=True)
    return _bad_answer(tool, f"its agent answers with an error: {problem}")

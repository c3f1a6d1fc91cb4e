"""The official A2A client of the Python SDK against a served agent."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx
from a2a.client import Client, ClientConfig, create_client
from a2a.types import (
    Message,
    Part,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    StreamResponse,
    Task,
    TaskState,
)
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.struct_pb2 import Value

from tests.unit.openai_endpoint.served import Endpoint


def address(served: Endpoint, agent: str = "clerk") -> str:
    """Where an agent answers."""
    return f"{served.base_url.removesuffix('/v1')}/a2a/{agent}"


@asynccontextmanager
async def a2a_client(
    served: Endpoint,
    agent: str = "clerk",
    *,
    key: str = "owner",
    binding: str = "JSONRPC",
    streaming: bool = True,
    at_once: bool = False,
) -> AsyncGenerator[Client]:
    """A client that has read the agent's card."""
    headers = {"Authorization": f"Bearer {key}"}
    async with httpx.AsyncClient(headers=headers, timeout=30, trust_env=False) as http:
        config = ClientConfig(
            httpx_client=http, supported_protocol_bindings=[binding], streaming=streaming, polling=at_once
        )
        yield await create_client(address(served, agent), config)


def said(
    text: str = "", *, data: Any = None, task: str = "", context: str = "", **configuration: Any
) -> SendMessageRequest:
    """A message of the client."""
    parts = [Part(text=text)] if text else []
    if data is not None:
        parts.append(Part(data=ParseDict(data, Value())))
    message = Message(message_id="m1", role=Role.ROLE_USER, parts=parts, task_id=task, context_id=context)
    return SendMessageRequest(message=message, configuration=SendMessageConfiguration(**configuration))


async def send(client: Client, request: SendMessageRequest) -> list[StreamResponse]:
    """All that the client is told."""
    return [event async for event in client.send_message(request)]


async def task_from(client: Client, request: SendMessageRequest) -> Task:
    """The task that a client that does not stream is told."""
    [event] = await send(client, request)
    return event.task


def state_of(task: Any) -> str:
    """The state, in short."""
    return TaskState.Name(task.status.state).removeprefix("TASK_STATE_").lower()


def texts_of(parts: Sequence[Part]) -> list[str]:
    """The texts of parts."""
    return [part.text for part in parts if part.WhichOneof("content") == "text"]


def data_of(parts: Sequence[Part]) -> list[Any]:
    """The data of parts."""
    return [MessageToDict(part.data) for part in parts if part.WhichOneof("content") == "data"]

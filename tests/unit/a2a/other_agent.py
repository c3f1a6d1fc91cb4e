"""An agent made with the SDK, as others have them: it does what the message says."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    Message,
    Part,
    Role,
    Task,
    TaskState,
    TaskStatus,
)
from starlette.applications import Starlette
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from tests.unit.mcp_server.served import on_a_port
from toolcrib.kinds.a2a.message_parts import data_part

PICTURE: Final = b"\x89PNG\r\n\x1a\n"
_ENDS: Final[Mapping[str, TaskState]] = {
    "fail": TaskState.TASK_STATE_FAILED,
    "reject": TaskState.TASK_STATE_REJECTED,
    "sign in": TaskState.TASK_STATE_AUTH_REQUIRED,
}


class OtherAgent(AgentExecutor):
    """What it has done is in `asked` and `cancelled`."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.cancelled: list[str] = []

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Do what the message says."""
        words = context.get_user_input()
        self.asked.append(words)
        if words == "just say it":
            answer = Message(message_id="a1", role=Role.ROLE_AGENT, parts=[Part(text="Said.")], context_id="c1")
            await event_queue.enqueue_event(answer)
            return
        task_id, context_id = str(context.task_id), str(context.context_id)
        if context.current_task is None:
            status = TaskStatus(state=TaskState.TASK_STATE_SUBMITTED)
            await event_queue.enqueue_event(Task(id=task_id, context_id=context_id, status=status))
        updater = TaskUpdater(event_queue, task_id, context_id)
        await updater.start_work()
        if words == "wait":
            await asyncio.sleep(3600)
        if words == "ask":
            await updater.requires_input(updater.new_agent_message([Part(text="Which size?")]))
            return
        if words in _ENDS:
            await updater.update_status(_ENDS[words], updater.new_agent_message([Part(text=f"I {words}.")]))
            return
        parts = [Part(text=f"Done: {words}"), data_part({"count": 3, "share": 0.5})]
        if words == "draw":
            parts += [
                Part(raw=PICTURE, filename="a.png", media_type="image/png"),
                Part(raw=b"%PDF", filename="a.pdf"),
                Part(url="https://example.org/b.png", media_type="image/png"),
            ]
        await updater.add_artifact(parts, name="result")
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Note that the task was cancelled."""
        self.cancelled.append(str(context.task_id))
        await TaskUpdater(event_queue, str(context.task_id), str(context.context_id)).cancel()


class AgentServer:
    """Where an agent answers.

    Args:
        agent: What it does.
        url: Its address.
    """

    def __init__(self, agent: OtherAgent, url: str) -> None:
        self.agent = agent
        self.url = url
        self.keys: list[str] = []
        """What clients have shown, in order."""
        self.interfaces: list[tuple[str, str, str]] = [(url, "JSONRPC", "1.0")]
        """Address, binding and version of each way to it."""
        self.refusal: Response | None = None
        """Answers everything but the card."""

    @property
    def port(self) -> int:
        """Of the server."""
        return int(self.url.rpartition(":")[2])

    async def card(self, card: AgentCard) -> AgentCard:
        """The card, with the ways that a test wants."""
        ways = [
            AgentInterface(url=url, protocol_binding=binding, protocol_version=version)
            for url, binding, version in self.interfaces
        ]
        return AgentCard(
            name=card.name,
            description="Does what is said.",
            version="2.1",
            capabilities=AgentCapabilities(streaming=True),
            supported_interfaces=ways,
            skills=[AgentSkill(id="draw", name="Draw", description="Draws a picture.", tags=["art"])],
        )

    async def guard(self, request: Request, call_next: Any) -> Response:
        """Note the key, and refuse if a test wants so."""
        self.keys.append(request.headers.get("authorization", ""))
        if self.refusal is not None and not request.url.path.endswith("agent-card.json"):
            return self.refusal
        return await call_next(request)


@asynccontextmanager
async def other_agent() -> AsyncGenerator[AgentServer]:
    """A served agent."""
    agent, card = OtherAgent(), AgentCard(name="painter")
    handler = DefaultRequestHandler(agent_executor=agent, task_store=InMemoryTaskStore(), agent_card=card)
    app = Starlette()
    async with on_a_port(app) as url:
        server = AgentServer(agent, url.removesuffix("/mcp"))
        card.MergeFrom(await server.card(card))
        app.router.routes += [
            *create_agent_card_routes(card, card_modifier=server.card),
            *create_jsonrpc_routes(handler, "/", enable_v0_3_compat=True),
            *create_rest_routes(handler, enable_v0_3_compat=True),
        ]
        app.add_middleware(BaseHTTPMiddleware, dispatch=server.guard)
        yield server


def refusal(status: int, **headers: str) -> Response:
    """A response without a body of the protocol."""
    return PlainTextResponse("no", status, headers=headers)

"""A server in this process: an application over a memory store, and HTTP clients that speak to it without a network."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from time import monotonic
from typing import Any

import httpx2
from fastapi import FastAPI
from starlette.types import Message, Receive, Scope, Send

from tests.twins import make_definition
from toolcrib import Crib, DefinitionOptions, ScriptedModel, tool
from toolcrib.contracts import OWNER, Json, JsonObject, Principal, ToolDefinition, Unauthenticated
from toolcrib.infrastructure.net import EgressPolicy
from toolcrib.infrastructure.store import Store
from toolcrib.interfaces.server import create_app
from toolcrib.kinds.http.shape import HttpImplementation
from toolcrib.llm import LanguageModel

OPERATIONS = Path(__file__).parents[3] / "docs" / "operations.txt"
STRANGER = Principal(id="stranger", realm="elsewhere")
READER = Principal(id="reader", grants=("ai://tools/utility/search/execute",))
BOSS = Principal(id="boss")
COLLEAGUE = Principal(id="colleague", grants=("ai://agents/*/execute", "ai://tools/*/*/execute"))
PRINCIPALS = {"owner": OWNER, "stranger": STRANGER, "reader": READER, "boss": BOSS, "colleague": COLLEAGUE}
"""Who a bearer token stands for, in tests that are not about keys."""

PLAN = """{
  "reading": [
    {"words": "find", "use": "request"},
    {"words": "Acme's", "use": "condition", "value": "Acme"},
    {"words": "deals", "use": "request"}
  ],
  "reasoning": "look first",
  "search": {"input": {"company": "Acme"}}
}"""


class QuickClock:
    """Real time, except that nobody sleeps for long."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(min(seconds, 0.001))


@tool(side_effects="reads", tags=("crm",))
async def search(company: str) -> list[dict[str, str]]:
    """Find deals."""
    if company == "Broken":
        raise ValueError("the CRM is down")
    return [{"name": company}]


@tool(side_effects="writes", requires_confirmation=True)
async def update(stage: str) -> dict[str, str]:
    """Change deals."""
    return {"stage": stage}


@tool(side_effects="reads", runs_on="client")
async def pick(question: str) -> dict[str, str]:
    """Let the person at the client choose."""
    return {"question": question}


@dataclass(frozen=True)
class Server:
    """The application, its crib, and a client with the owner's key."""

    app: FastAPI
    crib: Crib
    client: httpx2.AsyncClient

    def client_of(self, token: str | None) -> httpx2.AsyncClient:
        """A client with another bearer token, or none."""
        return _client(self.app, token)

    async def post(self, path: str, body: Json = None, status: int = 200) -> Any:
        """POST, hold the status against what is expected, and return the JSON."""
        return checked(await self.client.post(f"/api/v1{path}", json={} if body is None else body), status)

    async def get(self, path: str, query: Mapping[str, str | int] | None = None, status: int = 200) -> Any:
        """GET, as `post`."""
        return checked(await self.client.get(f"/api/v1{path}", params=query or {}), status)

    async def decide(self, run_id: str, position: str, decision: JsonObject, status: int = 202) -> Any:
        """Decide on a waiting call as somebody who has no part in the run."""
        boss = self.client_of("boss")
        return checked(await boss.post(f"/api/v1/executions/{run_id}/approvals/{position}", json=decision), status)

    async def finished(self, run_id: str) -> JsonObject:
        """Wait until the run has ended or waits, and read it."""
        await self.client.get(f"/api/v1/executions/{run_id}/events/stream")
        return await self.get(f"/executions/{run_id}")


def checked(response: httpx2.Response, status: int) -> Any:
    """The JSON of an answer whose status is as expected."""
    assert response.status_code == status, response.text
    return response.json() if response.content else None


def http_tool(name: str, url: str = "https://api.example.com/deals", **fields: Any) -> ToolDefinition:
    """A tool that a client may create."""
    return make_definition(name, implementation=HttpImplementation(method="GET", url=url), **fields)


def body_of(definition: ToolDefinition) -> JsonObject:
    """A definition as it is sent."""
    return definition.model_dump(mode="json")


async def authenticate(token: str) -> Principal:
    """Tokens are names."""
    if token not in PRINCIPALS:
        raise Unauthenticated("unknown token; send the name of a principal")
    return PRINCIPALS[token]


@asynccontextmanager
async def serving(
    store: str | Store = "memory://",
    *,
    environment: Mapping[str, str] | None = None,
    released: tuple[str, ...] = ("TOOLCRIB_SECRET_*",),
    driven: bool = True,
    make_crib: Callable[..., Crib] = Crib,
) -> AsyncGenerator[Server]:
    """A server with three Python tools and an agentic one of each mode.

    Args:
        store: Where its crib keeps everything.
        environment: The process's variables.
        released: What definitions may read of them.
        driven: Whether the application's life goes on in the background, which drives runs.
        make_crib: Makes the crib.
    """
    models: dict[str, LanguageModel] = {
        "scripted:plan": ScriptedModel(lambda request: PLAN if request.output_name == "plan" else '{"summary": "one"}'),
        "scripted:free": ScriptedModel(lambda _: "nothing to do"),
    }
    crib = make_crib(
        store,
        clock=QuickClock(),
        egress=EgressPolicy(),
        environment=environment or {},
        definitions=DefinitionOptions(released=released),
        models=models,
    )
    crib.add(search, update, pick)
    crib.agentic_tool("deals", mode="deterministic", model="scripted:plan", steps=["search"])
    crib.agentic_tool("assistant", mode="agentic", model="scripted:free", tools=["search"])
    app = create_app(crib, authenticate)
    async with app.router.lifespan_context(app) if driven else crib, _client(app, "owner") as client:
        yield Server(app, crib, client)


def _client(app: FastAPI, token: str | None) -> httpx2.AsyncClient:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    transport = httpx2.ASGITransport(_Documented(app))
    return httpx2.AsyncClient(transport=transport, base_url="http://crib", headers=headers)


class _Documented:
    """The application, held to `docs/operations.txt`: it gives no status that the OpenAPI document does not have."""

    def __init__(self, app: FastAPI) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def check(message: Message) -> None:
            route = scope.get("route")
            if message["type"] == "http.response.start" and getattr(route, "include_in_schema", False):
                operation = f"{scope['method']} {scope['route'].path_format}"
                documented = documented_statuses().get(operation, ("405",))  # else a method that the path does not take
                assert str(message["status"]) in documented, (operation, message["status"])
            await send(message)

        await self._app(scope, receive, check)


@cache
def documented_statuses() -> Mapping[str, tuple[str, ...]]:
    """The statuses of each operation, by method and path."""
    lines = (line.split() for line in OPERATIONS.read_text(encoding="utf-8").splitlines())
    return {f"{method} {path}": tuple(statuses) for _, method, path, *statuses in lines}

"""A GraphQL server of Ariadne over HTTP on this machine, and a crib that has its tools."""

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from ariadne import MutationType, QueryType, UnionType, make_executable_schema
from ariadne.asgi import GraphQL
from graphql import GraphQLError, print_schema
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from toolcrib import Crib, EgressPolicy
from toolcrib.contracts import ProviderAuth
from toolcrib.core.providers import ImportedApi
from toolcrib.kinds.graphql.importer.importer import import_graphql
from toolcrib.kinds.graphql.importer.schema import read_schema

SDL = """
scalar DateTime @specifiedBy(url: "https://scalars.graphql.org/andimarek/date-time")
enum Stage { OPEN WON LOST @deprecated(reason: "never said") }
union Party = Person | Company
interface Named { id: ID!, name: String! }
type Person implements Named { id: ID!, name: String!, secret: String!, born: DateTime }
type Company implements Named { id: ID!, name: String!, parent: Company, size: Int }
"A deal that may be won."
type Deal {
  id: ID!
  name: String
  stage: Stage!
  amount: Float
  owner: Party
  notes: [String!]
  risky: String
  createdAt: DateTime
}
input NewDeal { name: String!, stage: Stage = OPEN, amount: Float, tags: [String!]! = [], parent: NewDeal }
type Query {
  "The deal with an id."
  deal(id: ID!): Deal
  deals(stage: Stage, first: Int! = 10): [Deal!]!
  echo(text: String!): String!
  party(id: ID!): Party
  slow(seconds: Float!): String
}
type Mutation {
  "Make a deal."
  createDeal(input: NewDeal!, key: String): Deal
  refuse(code: String, wait: Float): Deal
  spoil(id: ID!): Person!
}
type Subscription { changed: Deal }
"""

DEAL: dict[str, Any] = {
    "id": "1",
    "name": "Acme",
    "stage": "WON",
    "amount": 2.5,
    "owner": {"kind": "Person", "id": "p1", "name": "Ada", "secret": "x", "born": "1815-12-10T00:00:00Z"},
    "notes": ["a"],
    "risky": "fine",
    "createdAt": "2026-01-31T12:00:00Z",
}


@dataclass
class Api:
    """What the server does, and what it was asked."""

    deals: list[dict[str, Any]] = field(default_factory=lambda: [dict(DEAL)])
    headers: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    urls: list[str] = field(default_factory=list[str])
    bodies: list[Any] = field(default_factory=list[Any])
    token: str | None = None
    """What `authorization` has to be."""
    answer: Response | None = None
    """Sent instead of everything."""
    introspection: bool = True
    introspection_error: str | None = None
    """A word that the server does not know in an introspection query."""
    path: str = "/graphql"
    created: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def schema(self) -> Any:
        """The executable schema."""
        query: Any = QueryType()
        mutation: Any = MutationType()
        query.set_field("deal", self._deal)
        query.set_field("deals", self._deals)
        query.set_field("echo", _echo)
        query.set_field("party", _party)
        query.set_field("slow", self._slow)
        mutation.set_field("createDeal", self._create)
        mutation.set_field("refuse", self._refuse)
        mutation.set_field("spoil", _spoil)
        return make_executable_schema(SDL, query, mutation, UnionType("Party", _kind_of))

    def _deal(self, *_: Any, **given: str) -> Any:
        return next((deal for deal in self.deals if deal["id"] == given["id"]), None)

    def _deals(self, *_: Any, first: int, stage: str | None = None) -> Any:
        return [deal for deal in self.deals if stage in {None, deal["stage"]}][:first]

    async def _slow(self, *_: Any, seconds: float) -> str:
        await asyncio.sleep(seconds)
        return "at last"

    def _create(self, *_: Any, key: str | None = None, **given: dict[str, Any]) -> Any:
        self.created.append({**given["input"], "key": key})
        return {"id": str(len(self.created)), **given["input"]}

    def _refuse(self, *_: Any, code: str | None = None, wait: float | None = None) -> Any:
        extensions: dict[str, Any] = {"code": code} if code else {}
        if wait is not None:
            extensions["retryAfter"] = wait
        raise GraphQLError("no, thanks", extensions=extensions)


def _kind_of(value: dict[str, Any], *_: Any) -> str:
    return value["kind"]


def _echo(*_: Any, text: str) -> str:
    return text


def _party(*_: Any, **given: str) -> Any:
    return {"kind": "Company", "id": given["id"], "name": "Acme", "size": 3}


def _spoil(*_: Any, **given: str) -> Any:
    return {"id": given["id"], "name": None, "secret": None}


class _Front:
    """What stands before the server: it looks at requests, and may answer itself."""

    def __init__(self, api: Api, app: ASGIApp) -> None:
        self._api = api
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        body = await request.body()
        api = self._api
        api.headers.append(dict(request.headers))
        api.urls.append(str(request.url))
        text = body.decode()
        api.bodies.append(text)
        answer = api.answer
        if answer is None and request.url.path != api.path:
            answer = Response("nothing here", 404)
        if answer is None and api.token is not None and request.headers.get("authorization") != api.token:
            answer = Response(
                f'{{"errors": [{{"message": "who is {request.headers.get("authorization")}?"}}]}}',
                401,
                media_type="application/json",
            )
        if answer is None and api.introspection_error is not None and api.introspection_error in text:
            answer = Response('{"errors": [{"message": "unknown field"}]}', 400, media_type="application/json")
        if answer is not None:
            await answer(scope, receive, send)
            return

        async def again() -> Any:
            return {"type": "http.request", "body": body, "more_body": False}

        await self._app(scope, again, send)


class _Started(uvicorn.Server):
    """A server that says when it listens."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """As uvicorn's."""
        await super().startup(sockets)
        self.listening.set()


@asynccontextmanager
async def serving_app(app: ASGIApp) -> AsyncGenerator[int]:
    """An application at a port of this machine."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        config = uvicorn.Config(app, log_config=None, lifespan="off", timeout_graceful_shutdown=1)
        http = _Started(config)
        task = asyncio.create_task(http.serve(sockets=[listening]))
        await http.listening.wait()
        try:
            yield int(listening.getsockname()[1])
        finally:
            http.should_exit = True
            await task


@asynccontextmanager
async def api_server(api: Api) -> AsyncGenerator[int]:
    """The server; yields its port."""
    app = GraphQL(api.schema(), introspection=api.introspection, logger="tests.graphql")
    async with serving_app(_Front(api, app)) as port:
        yield port


def local(port: int, *more: int) -> EgressPolicy:
    """A policy that lets the server be reached."""
    return EgressPolicy(allow=tuple(f"127.0.0.1:{each}" for each in (port, *more)))


def crm_import(port: int, auth: ProviderAuth | None = None) -> ImportedApi:
    """The server's tools, from its SDL."""
    schema = read_schema(print_schema(Api().schema())).schema
    return import_graphql(schema, name="crm", base_url=f"http://127.0.0.1:{port}/graphql", auth=auth)


async def adopt(crib: Crib, imported: ImportedApi) -> None:
    """Save what was imported."""
    await crib.save_provider(imported.provider)
    for tool in imported.tools:
        await crib.save(tool)

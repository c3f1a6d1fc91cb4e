"""A service that HTTP tools call: a server in this process that records what arrives and answers as it is told."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from urllib.parse import parse_qsl

import orjson
from aiohttp import web

from tests.twins import DictSecrets, ManualClock, make_access, make_context, make_tool
from tests.unit.net.servers import serving
from toolcrib.contracts import BearerAuth, JsonObject, Limits, NoAuth, ProviderAuth, ProviderDefinition, ToolRevision
from toolcrib.core.executor import BlobSink, CallFailed, Dispatch, Outcome
from toolcrib.infrastructure.net import EgressPolicy, HttpSession
from toolcrib.infrastructure.store import MemoryStore
from toolcrib.kinds.http.runtime import HttpRuntime
from toolcrib.kinds.http.shape import HttpImplementation, HttpParameter

TOKEN = "token-0123456789"
SECRETS = {"${env:TOKEN}": TOKEN, "${env:BROKEN}": "a\r\nx-evil: 1"}
BEARER = BearerAuth(token="${env:TOKEN}")


@dataclass(frozen=True)
class Seen:
    """A request as it arrived."""

    method: str
    path: str
    """Undecoded, without the query."""
    query: list[tuple[str, str]]
    raw_query: str
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes

    @property
    def json(self) -> Any:
        return orjson.loads(self.body)


Answering: TypeAlias = Callable[[Seen], web.StreamResponse | Awaitable[web.StreamResponse]]


@dataclass
class Service:
    """A running service, and a runtime that can reach it."""

    port: int
    runtime: HttpRuntime
    clock: ManualClock
    providers: dict[tuple[str, str], ProviderDefinition]
    store: MemoryStore
    seen: list[Seen] = field(default_factory=list[Seen])
    limits: Limits = field(default_factory=Limits)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def provide(self, **changes: Any) -> None:
        """Change the provider."""
        self.providers["default", "svc"] = self.providers["default", "svc"].model_copy(update=changes)

    def tool(self, path: str = "/", method: Any = "GET", **changes: Any) -> ToolRevision:
        """A tool of this service; what is no field of a tool is one of its implementation."""
        fields: dict[str, Any] = {"method": method, "url": self.url + path, "provider": "svc"}
        fields |= {name: changes.pop(name) for name in set(changes) & set(HttpImplementation.model_fields)}
        implementation = HttpImplementation(**fields)
        return make_tool("deals", implementation=implementation, **changes)

    async def run(self, tool: ToolRevision, arguments: JsonObject | None = None) -> Outcome:
        """Run a call."""
        dispatch = Dispatch(
            tool=tool,
            input=arguments or {},
            auth={},
            idempotency_key="run_1/t1.c1",
            position="t1.c1",
            attempt=1,
            context=make_context(limits=self.limits),
        )
        return await self.runtime.run(dispatch)

    async def failure(self, tool: ToolRevision, arguments: JsonObject | None = None) -> CallFailed:
        """Run a call that must fail."""
        try:
            outcome = await self.run(tool, arguments)
        except CallFailed as failed:
            return failed
        raise AssertionError(f"the call succeeded with {outcome.output!r}")

    async def sent(self, tool: ToolRevision, arguments: JsonObject | None = None) -> Seen:
        """Run a call and return its only request."""
        self.seen.clear()
        await self.run(tool, arguments)
        (seen,) = self.seen
        return seen


@asynccontextmanager
async def service(
    answer: Answering | None = None,
    *,
    auth: ProviderAuth | None = None,
    headers: dict[str, str] | None = None,
    secrets: dict[str, str] | None = None,
    attic: BlobSink | None = None,
    max_bytes: int = 10 * 2**20,
    ports: tuple[int, ...] = (),
) -> AsyncGenerator[Service]:
    """A service that answers every request with `answer`, or with null; `ports` may be called besides its own."""
    found: list[Service] = []

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        path, _, query = request.raw_path.partition("?")
        seen = Seen(
            request.method,
            path,
            parse_qsl(query, keep_blank_values=True),
            query,
            {name.lower(): value for name, value in request.headers.items()},
            await request.read(),
        )
        found[0].seen.append(seen)
        answered = web.json_response(None) if answer is None else answer(seen)
        return answered if isinstance(answered, web.StreamResponse) else await answered

    async with serving(handle) as port:
        url = f"http://127.0.0.1:{port}"
        known = {
            ("default", "svc"): ProviderDefinition(
                name="svc", base_url=url, auth=auth or NoAuth(), headers=headers or {}
            )
        }
        policy = EgressPolicy(allow=tuple(f"127.0.0.1:{n}" for n in (port, *ports)), max_bytes=max_bytes)
        clock, store = ManualClock(), MemoryStore()
        async with HttpSession(policy) as session:
            known_secrets = DictSecrets(SECRETS | (secrets or {}))
            access = make_access(
                session, clock, known_secrets, lambda realm, name: found[0].providers.get((realm, name))
            )
            runtime = HttpRuntime(session, access, blob_sink=attic or store.blobs, clock=clock)
            found.append(Service(port, runtime, clock, known, store))
            yield found[0]


def parameter(name: str, place: Any = "query", **more: Any) -> HttpParameter:
    """A parameter whose argument has its name, in the default style of its place."""
    style = more.pop("style", "form" if place in {"query", "cookie"} else "simple")
    return HttpParameter(name=name, argument=name, place=place, style=style, **{"explode": style == "form"} | more)

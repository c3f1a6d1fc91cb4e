"""The HTTP edge: log, admit, parse, run, answer.

Every request passes the same stations: it is logged, its errors are turned into explained JSON, its token is checked
and its rate counted, and then exactly one operation of `routes.py` runs. Operations know nothing of HTTP.
"""

import json
import logging
import math
from collections.abc import Iterable
from typing import Final, cast

from aiohttp import web
from aiohttp.typedefs import Handler

from examples.crm.checks import parse_json
from examples.crm.clock import Clock
from examples.crm.document import load_document
from examples.crm.errors import (
    CrmError,
    InternalError,
    MethodNotAllowedError,
    NotFoundError,
    RateLimitedError,
    TooLargeError,
    UnauthorizedError,
)
from examples.crm.exchange import Call, Reply
from examples.crm.idempotency import once
from examples.crm.ratelimit import Rate, RateLimiter
from examples.crm.requestlog import logged
from examples.crm.routes import ROUTES, Route
from examples.crm.store import Store
from examples.crm.values import Json, format_timestamp

MAX_BODY: Final = 1024 * 1024

DOCUMENT_PATH: Final = "/openapi.json"

_logger = logging.getLogger(__name__)


def create_app(store: Store, *, rate: Rate, clock: Clock | None = None) -> web.Application:
    """The CRM over an open store, which stays the caller's to close."""
    edge = _Edge(store, rate, clock or Clock())
    app = web.Application(middlewares=[edge.log, edge.explain, edge.admit], client_max_size=MAX_BODY)
    app.router.add_route("GET", DOCUMENT_PATH, _serve_document, name="get_openapi_document")
    for route in ROUTES:
        app.router.add_route(route.method, route.path, edge.handler(route), name=route.operation_id)
    return app


class _Edge:
    """The stations; one object for the life of the application."""

    def __init__(self, store: Store, rate: Rate, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._limiter = RateLimiter(rate, clock.monotonic)

    @web.middleware
    async def log(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Note the request before anything else happens, and the status at the end."""
        body = await _read(request)
        with logged(
            self._store.connection,
            method=request.method,
            path=request.rel_url.raw_path,
            operation=request.match_info.route.name,
            idempotency_key=request.headers.get("Idempotency-Key"),
            body=body,
        ) as outcome:
            response = _refused(_too_large()) if body is None else await handler(request)
            outcome.status = response.status
            outcome.replayed = "Idempotent-Replayed" in response.headers
        return response

    @web.middleware
    async def explain(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Turn every way of failing into the error document."""
        try:
            return await handler(request)
        except CrmError as error:
            return _refused(error)
        except web.HTTPNotFound:
            return _refused(_no_such_route(request))
        except web.HTTPMethodNotAllowed as error:
            return _refused(_no_such_method(request, error.allowed_methods))
        except Exception:
            _logger.exception("%s failed", _where(request))
            return _refused(InternalError())

    @web.middleware
    async def admit(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Let a known token pass as often as its rate allows; the document is open to everybody."""
        if request.path == DOCUMENT_PATH:
            return await handler(request)
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token.isascii() or not self._store.knows_token(token):
            raise UnauthorizedError
        wait = self._limiter.take(token)
        if wait > 0:
            seconds = max(1, math.ceil(wait))
            raise RateLimitedError(
                f"too many requests for this token; try again in {seconds} s",
                headers={"Retry-After": str(seconds)},
            )
        return await handler(request)

    def handler(self, route: Route) -> Handler:
        """The aiohttp handler of a route."""

        async def handle(request: web.Request) -> web.StreamResponse:
            call = await self._call(request)
            if not route.writes:
                return _answered(route.operation(self._store.connection, call))
            with self._store.transaction() as connection:
                reply = once(connection, call, route.operation)
            return _answered(reply)

        return handle

    async def _call(self, request: web.Request) -> Call:
        has_body = request.method in {"POST", "PATCH"}
        return Call(
            method=request.method,
            path=request.rel_url.raw_path,
            object_id=request.match_info.get("object_id", ""),
            body=parse_json(await request.read()) if has_body else None,
            if_match=request.headers.get("If-Match"),
            idempotency_key=request.headers.get("Idempotency-Key"),
            now=format_timestamp(self._clock.utc()),
        )


async def _serve_document(request: web.Request) -> web.StreamResponse:
    return _json(200, cast("Json", load_document(str(request.url.origin()))))


async def _read(request: web.Request) -> bytes | None:
    """The body, which aiohttp keeps for later readers; None if it is over the cap."""
    try:
        return await request.read()
    except web.HTTPRequestEntityTooLarge:
        return None


def _answered(reply: Reply) -> web.Response:
    headers: dict[str, str] = {}
    if reply.revision is not None:
        headers["ETag"] = f'"{reply.revision}"'
    if reply.replayed:
        headers["Idempotent-Replayed"] = "true"
    if reply.body is None:
        return web.Response(status=reply.status, headers=headers)
    return _json(reply.status, reply.body, headers)


def _refused(error: CrmError) -> web.Response:
    return _json(error.status, error.as_json(), error.headers)


def _json(status: int, body: Json, headers: dict[str, str] | None = None) -> web.Response:
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    return web.Response(status=status, text=text, headers=headers, content_type="application/json")


def _too_large() -> CrmError:
    return TooLargeError(f"the body is over {MAX_BODY} bytes; send less in one request")


def _no_such_route(request: web.Request) -> CrmError:
    return NotFoundError(f"{_where(request)} does not exist; {DOCUMENT_PATH} lists what does")


def _no_such_method(request: web.Request, methods: Iterable[str]) -> CrmError:
    allowed = ", ".join(sorted(methods))
    message = f"{_where(request)} does not exist; the path allows {allowed}"
    return MethodNotAllowedError(message, headers={"Allow": allowed})


def _where(request: web.Request) -> str:
    return f"{request.method} {request.rel_url.raw_path}"

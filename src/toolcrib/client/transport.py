"""Requests of the client: JSON, pages and server-sent events, sent again where that is safe.

Every POST has an idempotency key, so that it can be sent again after a cut connection and starts no second run. A
stream that is cut is followed from the last message on.
"""

import asyncio
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final, TypeVar, cast
from urllib.parse import quote

import aiohttp
import orjson
from pydantic import TypeAdapter
from pydantic_core import to_jsonable_python

from toolcrib.client.problems import ServerProblem, ServerUnreachable
from toolcrib.contracts import InvalidInput, JsonObject

T = TypeVar("T")

_RETRIED: Final = frozenset({502, 503, 504})
_IN_USE: Final = "idempotency_conflict"
_REPEATABLE: Final = frozenset({"GET", "PUT", "DELETE", "POST"})
_PAUSE_S: Final = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientOptions:
    """Where the server is, and how patient the client is."""

    url: str
    """Of the server: `http://127.0.0.1:8700`."""
    api_key: str
    timeout_s: float = 300.0
    """Seconds for one request, of which a run that is waited for has a part; streams have no limit."""
    connect_timeout_s: float = 10.0
    retries: int = 2
    """How often a request is sent again after a cut connection, or if the server is not available."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiRequest:
    """One request, as an operation describes it."""

    method: str
    path: str
    """With parameters in braces."""
    place: Mapping[str, str] | None = None
    """The parameters of the path."""
    query: Mapping[str, Any] | None = None
    body: Any = None
    headers: Mapping[str, Any] | None = None


class Transport:
    """Sends requests to one server.

    Args:
        options: Where the server is.
        sleep: Lets time pass between attempts.
    """

    def __init__(self, options: ClientOptions, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        if not options.url.startswith(("http://", "https://")):
            msg = f"url is {options.url!r}; give the server's address, such as 'http://127.0.0.1:8700'"
            raise InvalidInput(msg)
        self.options = options
        self._sleep = sleep
        self._session: aiohttp.ClientSession | None = None

    async def send(self, kind: Any, request: ApiRequest) -> Any:
        """Send a request, and read its answer as a type.

        Raises:
            ServerProblem: The server refused it, or failed.
            ServerUnreachable: No answer came.
        """
        payload, content_type = await self._exchange(request)
        if kind is bytes:
            return payload
        if kind is None or not payload:
            return None
        if "json" not in content_type:
            return payload.decode()
        return _adapter(kind).validate_json(payload, extra="ignore")

    async def each(self, kind: Any, request: ApiRequest, cursor: str, limit: int | None = None) -> AsyncGenerator[Any]:
        """The items of all pages, page by page as they are needed."""
        query = dict(request.query or {})
        if limit is not None:
            query["limit"] = limit
        while True:
            page = await self.send(kind, replace(request, query=query))
            for item in page.items:
                yield item
            if page.next is None:
                return
            query[cursor] = page.next

    async def stream(self, kind: Any, request: ApiRequest) -> AsyncGenerator[Any]:
        """The messages of a stream; a cut connection is followed by another that continues after the last message."""
        adapter, place, failures = _adapter(kind), None, 0
        current = self._keyed(request)
        while True:
            last = None
            try:
                async with aclosing(self._messages(current, place)) as messages:
                    async for number, name, data, location in messages:
                        if location is not None and current.method == "POST":  # the run goes on: follow it there
                            current = ApiRequest(method="GET", path=location)
                        place, last, failures = number or place, name, 0
                        yield adapter.validate_json(data, extra="ignore")
                if last in {"done", "error", None}:
                    return
            except (aiohttp.ClientError, TimeoutError) as failure:
                failures += 1
                if failures > self.options.retries:
                    raise _unreachable(self.options.url, failure) from failure
                await self._sleep(_PAUSE_S * 2**failures)

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    def with_options(self, **options: Any) -> "Transport":
        """A transport with other options, and connections of its own."""
        return Transport(replace(self.options, **options), self._sleep)

    # Inside -----------------------------------------------------------------------------------------------------------

    async def _exchange(self, request: ApiRequest) -> tuple[bytes, str]:
        keyed = self._keyed(request)
        for attempt in range(self.options.retries + 1):
            is_last = attempt == self.options.retries or keyed.method not in _REPEATABLE
            try:
                async with self._open(keyed, self.options.timeout_s) as response:
                    payload = await response.read()
                    if response.status < 400:
                        return payload, response.content_type
                    problem = _problem(response.status, payload)
                    if is_last or not (response.status in _RETRIED or problem.code == _IN_USE):
                        raise problem
            except (aiohttp.ClientError, TimeoutError) as failure:
                if is_last:
                    raise _unreachable(self.options.url, failure) from failure
            await self._sleep(_PAUSE_S * 2**attempt)
        raise AssertionError  # the last attempt returns or raises

    async def _messages(
        self, request: ApiRequest, place: str | None
    ) -> AsyncGenerator[tuple[str | None, str, bytes, str | None]]:
        headers = {**(request.headers or {}), "Accept": "text/event-stream"}
        if place is not None:
            headers["Last-Event-ID"] = place
        async with self._open(replace(request, headers=headers), None) as response:
            if response.status >= 400:
                raise _problem(response.status, await response.read())
            location = response.headers.get("Location")
            async for number, name, data in _events(response.content):
                yield number, name, data, location

    def _open(self, request: ApiRequest, timeout_s: float | None) -> Any:
        if self._session is None:
            self._session = aiohttp.ClientSession(headers={"Authorization": f"Bearer {self.options.api_key}"})
        path = request.path
        for name, value in (request.place or {}).items():
            path = path.replace(f"{{{name}}}", quote(value, safe="@=^~!<>,*"))
        headers = {name: _header(value) for name, value in (request.headers or {}).items() if value is not None}
        data = None
        if request.body is not None:
            data, headers["Content-Type"] = orjson.dumps(to_jsonable_python(request.body)), "application/json"
        return self._session.request(
            request.method,
            self.options.url.rstrip("/") + path,
            params=[pair for name, value in (request.query or {}).items() for pair in _parameters(name, value)],
            data=data,
            headers=headers,
            timeout=aiohttp.ClientTimeout(total=timeout_s, sock_connect=self.options.connect_timeout_s),
            allow_redirects=False,
        )

    def _keyed(self, request: ApiRequest) -> ApiRequest:
        if request.method != "POST" or (request.headers or {}).get("Idempotency-Key") is not None:
            return request
        return replace(request, headers={**(request.headers or {}), "Idempotency-Key": str(uuid.uuid4())})


def given(**fields: Any) -> JsonObject:
    """What was given of the fields of a body or query: nothing that is null."""
    return {name: value for name, value in fields.items() if value is not None}


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def _header(value: Any) -> str:
    return f'"{value}"' if isinstance(value, int) else str(value)


def _parameters(name: str, value: Any) -> list[tuple[str, str]]:
    if value is None:
        return []
    if isinstance(value, bool):
        return [(name, "true" if value else "false")]
    if isinstance(value, list | tuple):
        return [(name, str(each)) for each in cast("list[Any]", value)]
    return [(name, str(value))]


def _problem(status: int, payload: bytes) -> ServerProblem:
    try:
        found = orjson.loads(payload)
    except orjson.JSONDecodeError:
        found = {}
    return ServerProblem(status, cast("JsonObject", found) if isinstance(found, dict) else {})


def _unreachable(url: str, failure: Exception) -> ServerUnreachable:
    what = "no answer in time" if isinstance(failure, TimeoutError) else str(failure) or type(failure).__name__
    return ServerUnreachable(f"{url} does not answer: {what}; check the address, and that `toolcrib up` runs")


async def _events(lines: AsyncIterator[bytes]) -> AsyncGenerator[tuple[str | None, str, bytes]]:
    """Id, name and data of each message (WHATWG HTML, section 9.2)."""
    number: str | None = None
    name, data = "message", list[bytes]()
    async for line in lines:
        field, _, value = line.rstrip(b"\r\n").partition(b":")
        value = value.removeprefix(b" ")
        if not line.strip():
            if data:
                yield number, name, b"\n".join(data)
            name, data = "message", []
        elif field == b"id":
            number = value.decode()
        elif field == b"event":
            name = value.decode()
        elif field == b"data":
            data.append(value)

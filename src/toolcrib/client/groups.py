"""What the generated clients and groups of operations have in common."""

import os
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from toolcrib.client.transport import ApiRequest, ClientOptions, Transport, given
from toolcrib.contracts import InvalidSettings, Json
from toolcrib.sync.event_loop import EventLoopThread

ApiT_co = TypeVar("ApiT_co", covariant=True)


class AsyncApi:
    """A group of operations.

    Args:
        transport: Sends requests.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport


class SyncApi(Generic[ApiT_co]):
    """A group of operations that waits for the answers of another.

    Args:
        api: The asynchronous group.
        loop: Where its requests are made.
    """

    def __init__(self, api: ApiT_co, loop: EventLoopThread) -> None:
        self._api = api
        self._loop = loop


def _transport(url: str | None, api_key: str | None, timeout_s: float, retries: int) -> Transport:
    url, api_key = url or os.environ.get("TOOLCRIB_URL"), api_key or os.environ.get("TOOLCRIB_API_KEY")
    if not url or not api_key:
        missing = "url (or TOOLCRIB_URL)" if not url else "api_key (or TOOLCRIB_API_KEY)"
        raise InvalidSettings(f"a client needs {missing}; `toolcrib up` prints both")
    return Transport(ClientOptions(url=url, api_key=api_key, timeout_s=timeout_s, retries=retries))


class AsyncBase:
    """An asynchronous client."""

    def __init__(
        self, url: str | None = None, *, api_key: str | None = None, timeout_s: float = 300.0, retries: int = 2
    ) -> None:
        self._transport = _transport(url, api_key, timeout_s, retries)

    @classmethod
    def around(cls, transport: Transport) -> Self:
        """A client that sends its requests by a transport."""
        made = cls(transport.options.url, api_key=transport.options.api_key)
        made.__dict__["_transport"] = transport
        return made

    async def request(
        self, method: str, path: str, *, query: Mapping[str, Json] | None = None, body: Any = None
    ) -> Json:
        """Send any request: for what has no method here.

        Raises:
            ServerProblem: The server refused it, or failed.
            ServerUnreachable: No answer came.
        """
        answer: Json = await self._transport.send(Any, ApiRequest(method=method, path=path, query=query, body=body))
        return answer

    def with_options(self, *, timeout_s: float | None = None, retries: int | None = None) -> Self:
        """The same client with other options, and connections of its own, which it closes.

        Args:
            timeout_s: Seconds for one request.
            retries: How often a request is sent again.
        """
        return self.around(self._transport.with_options(**given(timeout_s=timeout_s, retries=retries)))

    async def close(self) -> None:
        """Close the connections."""
        await self._transport.close()

    async def __aenter__(self) -> Self:
        """Nothing is opened before the first request."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connections."""
        await self.close()


class SyncBase:
    """A synchronous client."""

    def __init__(
        self, url: str | None = None, *, api_key: str | None = None, timeout_s: float = 300.0, retries: int = 2
    ) -> None:
        self._transport = _transport(url, api_key, timeout_s, retries)
        self._loop = EventLoopThread()
        self._loop.closes(self._transport.close)

    def request(self, method: str, path: str, *, query: Mapping[str, Json] | None = None, body: Any = None) -> Json:
        """Send any request: for what has no method here.

        Raises:
            ServerProblem: The server refused it, or failed.
            ServerUnreachable: No answer came.
        """
        request = ApiRequest(method=method, path=path, query=query, body=body)
        answer: Json = self._loop.run(self._transport.send, Any, request)
        return answer

    def close(self) -> None:
        """Close the connections."""
        self._loop.close()

    def __enter__(self) -> Self:
        """Nothing is opened before the first request."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connections."""
        self.close()

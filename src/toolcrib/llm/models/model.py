"""A model at one endpoint: its wire, transport, credential, quirks and prices.

A whole answer is the last event of a stream, `Done`; the same wire reads both. Nothing is retried here, and no
credential appears in an error or representation.
"""

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import aclosing
from datetime import datetime
from typing import Protocol

import msgspec
import orjson
from msgspec import Struct

from toolcrib.contracts.base.errors import InvalidSettings, ModelError
from toolcrib.llm.base.errors import redact_error
from toolcrib.llm.base.messages import Done, Event, Request, Response, TokenUsage
from toolcrib.llm.base.prices import Cost, Prices, estimate_usage
from toolcrib.llm.base.quirks import Quirks
from toolcrib.llm.base.structured import StructuredAnswer
from toolcrib.llm.base.transport import SseParser, Transport
from toolcrib.llm.base.wire import Wire
from toolcrib.llm.models.schema_tools import SchemaTools
from toolcrib.llm.text import TextTools


class LanguageModel(Protocol):
    """What answers requests: `Model`, or `ScriptedModel` in tests."""

    name: str
    """`provider:model`, as it is shown and recorded."""

    async def request(self, request: Request) -> Response:
        """The whole answer.

        Raises:
            ModelError: The provider failed.
            InvalidSettings: The credential is missing.
            EgressDenied: The address may not be reached.
        """
        ...

    def stream(self, request: Request) -> AsyncGenerator[Event]:
        """The answer as it arrives, `Done` last; raises as `request`. Close it if you leave early."""
        ...

    def cost(self, usage: TokenUsage, at: datetime) -> Cost:
        """What a call at that moment costs."""
        ...


class Endpoint(Struct, frozen=True, kw_only=True):
    """Where a model is and how it is spoken to."""

    provider: str
    model: str
    base_url: str
    wire: Wire
    quirks: Quirks = Quirks()
    api_key_env: str | None = None
    """The usual environment variable of the key."""
    other_key_env: str | None = None
    """The one that is looked at if that is not set."""
    key_required: bool = True

    def key_in(self, environment: Mapping[str, str]) -> str | None:
        """The key that the endpoint's variables hold, if any."""
        for variable in (self.api_key_env, self.other_key_env):
            if variable and (key := environment.get(variable)):
                return key
        return None


class Model:
    """A model at a provider.

    Args:
        endpoint: Where it is.
        transport: How it is reached.
        key: Gives the credential; asked at each call, so that a rotated one is used at once.
        prices: The rates.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        transport: Transport,
        *,
        key: Callable[[], str | None] = lambda: None,
        prices: Prices | None = None,
    ) -> None:
        self.name = f"{endpoint.provider}:{endpoint.model}"
        self.endpoint = endpoint
        self._transport = transport
        self._key = key
        self._prices = prices or Prices()

    def __repr__(self) -> str:
        return f"Model({self.name!r})"

    async def request(self, request: Request) -> Response:
        """See `LanguageModel.request`."""
        key = self.credential()
        tools = self._tools(request)
        answer = StructuredAnswer(tools.request, self.endpoint.quirks)
        try:
            response = await self._whole(answer.request, key)
        except ModelError as error:
            raise redact_error(error, key) from None
        return _with_usage(tools.response(answer.response(response)), request)

    async def stream(self, request: Request) -> AsyncGenerator[Event]:
        """See `LanguageModel.stream`."""
        key = self.credential()
        tools = self._tools(request)
        answer = StructuredAnswer(tools.request, self.endpoint.quirks)
        try:
            async with aclosing(self._stream_events(answer.request, key)) as batches:
                async for events in batches:
                    for event in tools.read(answer.read(events)):
                        yield Done(_with_usage(event.response, request)) if isinstance(event, Done) else event
        except ModelError as error:
            raise redact_error(error, key) from None

    def cost(self, usage: TokenUsage, at: datetime) -> Cost:
        """See `LanguageModel.cost`."""
        return self._prices.cost(usage, self.endpoint.provider, self.endpoint.model, at)

    def credential(self) -> str | None:
        """The key that a call would use.

        Raises:
            InvalidSettings: There is none and the endpoint needs one.
        """
        key = self._key()
        if key or not self.endpoint.key_required:
            return key or None
        variable = self.endpoint.api_key_env or "the API key"
        raise InvalidSettings(
            f"{variable} is not set, and {self.name} needs it; export it, or choose another model, "
            "for example a local one: ollama:NAME"
        )

    async def _whole(self, request: Request, key: str | None) -> Response:
        url, body, headers = self._render_request(request, key, stream=False)
        response = await self._transport.post(url, body, headers, request.timeouts)
        if response.status >= 300:
            raise self.endpoint.wire.error(response.status, response.headers, response.body)
        return self.endpoint.wire.parse(response.body)

    async def _stream_events(self, request: Request, key: str | None) -> AsyncGenerator[Iterable[Event]]:
        url, body, headers = self._render_request(request, key, stream=True)
        async with self._transport.stream(url, body, headers, request.timeouts) as stream:
            if stream.status >= 300:
                raise self.endpoint.wire.error(stream.status, stream.headers, await stream.read())
            if _is_whole(stream.headers.get("content-type", "")):
                yield (Done(self.endpoint.wire.parse(await stream.read())),)
                return
            parser, decoder = SseParser(), self.endpoint.wire.decoder()
            async for chunk in stream.chunks:
                for data in parser.feed(chunk):
                    yield decoder.feed(data)
            for data in parser.close():
                yield decoder.feed(data)
            yield decoder.close()

    def _render_request(self, request: Request, key: str | None, *, stream: bool) -> tuple[str, bytes, dict[str, str]]:
        path, body = self.endpoint.wire.build(request, self.endpoint.quirks, stream=stream)
        headers = {
            "content-type": "application/json",
            "accept": "text/event-stream" if stream else "application/json",
            **self.endpoint.wire.headers(key),
        }
        return self.endpoint.base_url + path, orjson.dumps(body), headers

    def _tools(self, request: Request) -> SchemaTools | TextTools:
        """How the request gets its tool calls."""
        named, quirks = self._with_model(request), self.endpoint.quirks
        return TextTools(named, quirks) if quirks.tool_calling == "text" else SchemaTools(named, quirks)

    def _with_model(self, request: Request) -> Request:
        return request if request.model else msgspec.structs.replace(request, model=self.endpoint.model)


def _with_usage(response: Response, request: Request) -> Response:
    """Usage that the provider did not give is estimated."""
    if not response.usage.estimated:
        return response
    return msgspec.structs.replace(response, usage=estimate_usage(request, response.message))


def _is_whole(content_type: str) -> bool:
    """Whether a server answers a request for a stream with a whole answer, or with a page."""
    return "json" in content_type or "html" in content_type

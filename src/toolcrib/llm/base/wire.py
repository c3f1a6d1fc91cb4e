"""The port of a provider's wire format: pure functions between neutral values and bytes.

No I/O, no clock, no credentials kept. A wire may hold a cache of rendered tool sets and nothing else, so one instance
serves any number of concurrent calls. Implementations are in `wires`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from toolcrib.contracts.base.errors import ModelError
from toolcrib.llm.base.events import Event
from toolcrib.llm.base.messages import Request, Response
from toolcrib.llm.base.quirks import Quirks


class Decoder(Protocol):
    """Turns one stream's events into ours."""

    def feed(self, data: bytes) -> Sequence[Event]:
        """What the payload of one server-sent event tells.

        Raises:
            ModelError: The payload is an error of the provider, or is not what it should be.
        """
        ...

    def close(self) -> Sequence[Event]:
        """The stream ended: what is left to tell, `Done` included if it was not told yet.

        Raises:
            ModelError: `stream_cut`, the answer is not complete.
        """
        ...


class Wire(Protocol):
    """One provider API."""

    @property
    def origin(self) -> str:
        """Who makes the thinking and opaque parts that this wire parses; they are sent back to the same origin only."""
        ...

    def build(self, request: Request, quirks: Quirks, *, stream: bool) -> tuple[str, dict[str, Any]]:
        """The path (to be joined to the base URL) and the body.

        The body may hold `orjson.Fragment` values, so only orjson can encode it.
        """
        ...

    def headers(self, key: str | None) -> dict[str, str]:
        """Headers that authenticate and name the API's version."""
        ...

    def parse(self, body: bytes) -> Response:
        """The answer to a call that did not stream.

        Raises:
            ModelError: `bad_response`, naming the field that is missing; or the error that the body holds.
        """
        ...

    def decoder(self) -> Decoder:
        """A fresh decoder for one stream."""
        ...

    def error(self, status: int, headers: Mapping[str, str], body: bytes) -> ModelError:
        """What an answer with an error status means."""
        ...

"""A service with one JSON request and one JSON answer, described by the operator.

The functions that build the body and read the answer are parameters, because templates and paths belong to other
layers. It has no tools (see `SchemaTools`), and a stream has one event.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import orjson
from msgspec import Struct

from toolcrib.contracts import Json, JsonObject
from toolcrib.contracts.base.errors import ModelError
from toolcrib.contracts.base.media import ModelInput
from toolcrib.llm.base.errors import fault_in, provider_error
from toolcrib.llm.base.messages import Event, Message, Request, Response, Text, TokenUsage
from toolcrib.llm.base.quirks import Quirks


class PlainForm(Struct, frozen=True, kw_only=True):
    """What a service's requests and answers look like."""

    path: str
    body: Callable[[JsonObject], JsonObject]
    """Makes the body of what is to be said."""
    headers: Callable[[str | None], dict[str, str]]
    """Makes the headers of the key."""
    text: Callable[[Json], Json]
    """Finds the text in an answer; null if there is none."""
    tokens: Callable[[Json], tuple[Json, Json]]
    """Finds the tokens read and written; null if they are not told."""


class PlainWire:
    """The `Wire` of a described service.

    Args:
        origin: The service's name.
        form: What its requests and answers look like.
    """

    inputs: frozenset[ModelInput] = frozenset()

    def __init__(self, origin: str, form: PlainForm) -> None:
        self.origin = origin
        self._form = form

    def build(self, request: Request, quirks: Quirks, *, stream: bool) -> tuple[str, dict[str, Any]]:
        """See `Wire.build`."""
        del quirks, stream
        values: JsonObject = {
            "model": request.model,
            "system": request.system or "",
            "prompt": _transcript(request.messages),
            "messages": [{"role": message.role, "text": message.text} for message in request.messages],
            "schema": request.output_schema,
            "temperature": request.temperature,
            "max_tokens": request.max_tokens,
        }
        return self._form.path, self._form.body(values)

    def headers(self, key: str | None) -> dict[str, str]:
        """See `Wire.headers`."""
        return {"accept": "application/json", **self._form.headers(key)}

    def parse(self, body: bytes) -> Response:
        """See `Wire.parse`."""
        try:
            answer: Json = orjson.loads(body)
        except orjson.JSONDecodeError as problem:
            raise ModelError("bad_response", f"{self.origin} answered with no JSON: {problem}") from None
        text = self._form.text(answer)
        if text is None:
            raise ModelError("bad_response", f"{self.origin} answered without a text where its description says it is")
        words = text if isinstance(text, str) else orjson.dumps(text).decode()
        read, written = self._form.tokens(answer)
        has_usage = isinstance(read, int) and isinstance(written, int)
        return Response(
            message=Message("assistant", (Text(words),)),
            stop="end",
            raw_stop="",
            usage=TokenUsage(read, written) if has_usage else TokenUsage(estimated=True),
            model="",
            id="",
        )

    def decoder(self) -> "NoStream":
        """See `Wire.decoder`."""
        return NoStream(self.origin)

    def error(self, status: int, headers: Mapping[str, str], body: bytes) -> ModelError:
        """See `Wire.error`."""
        return provider_error(self.origin, fault_in(body), status=status, headers=headers)


class NoStream:
    """The `Decoder` of a service that does not stream: what is no JSON is no answer."""

    def __init__(self, origin: str) -> None:
        self._origin = origin

    def feed(self, data: bytes) -> Sequence[Event]:
        """See `Decoder.feed`."""
        del data
        self._refuse()

    def close(self) -> Sequence[Event]:
        """See `Decoder.close`."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise ModelError("bad_response", f"{self._origin} answered with no JSON; its content type must say JSON")


def _transcript(messages: Sequence[Message]) -> str:
    """The conversation as one text; a single message is itself."""
    if len(messages) == 1:
        return messages[0].text
    return "\n\n".join(f"{message.role}: {message.text}" for message in messages)

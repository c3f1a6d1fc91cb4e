"""The port of a wire format: pure functions between neutral values and bytes, and what several wires share.

A wire does no I/O and keeps no credentials. It may only cache rendered tool sets, so one instance serves concurrent
calls. The implementations are in `wires`.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Protocol

import orjson

from toolcrib.contracts.base.errors import ModelError
from toolcrib.contracts.base.media import ModelInput
from toolcrib.llm.base.json_values import amount, obj
from toolcrib.llm.base.messages import Event, Request, Response, Tool, ToolSet
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

    @property
    def inputs(self) -> frozenset[ModelInput]:
        """What the API can take besides text; which of it a model can read is in `Quirks.inputs`."""
        ...

    def build(self, request: Request, quirks: Quirks, *, stream: bool) -> tuple[str, dict[str, Any]]:
        """The path (to be joined to the base URL) and the body.

        The body may hold `orjson.Fragment` values, so only orjson can encode it. Files of the request have their bytes.
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


def as_object(args: str) -> Any:
    """The arguments as an object, spliced in as they were written.

    What is none is shown to the model as the text that it wrote.
    """
    try:
        value = orjson.loads(args or "{}")
    except orjson.JSONDecodeError:
        return {"invalid_json": args}
    return orjson.Fragment(args or "{}") if isinstance(value, dict) else {"not_an_object": value}


def signature_of(origin: str, fields: dict[str, Any]) -> str | None:
    """The signature that holds these fields, if there are any."""
    return orjson.dumps({origin: fields}).decode() if fields else None


def fields_of(signature: str | None, origin: str) -> dict[str, Any]:
    """The fields in a signature, if it is of this origin."""
    if signature is None:
        return {}
    try:
        return obj(obj(orjson.loads(signature)).get(origin))
    except orjson.JSONDecodeError:
        return {}


def billed(usage: dict[str, Any]) -> Decimal | None:
    """What the provider says in its usage that it bills for the call, in US dollars.

    `cost` is a number (OpenRouter, gateways that follow it) or has a `total_cost` (Perplexity); who brings a key of
    their own to OpenRouter pays the provider behind it too. xAI counts ticks. A bare 0 says nothing: gateways that
    know no price write it.
    """
    ticks = amount(usage.get("cost_in_usd_ticks"))
    if ticks is not None:
        return ticks / _TICKS_PER_USD
    total = amount(obj(usage.get("cost")).get("total_cost", usage.get("cost")))
    details = usage.get("cost_details")
    if total is None or not (total or details):
        return None
    upstream = amount(obj(details).get("upstream_inference_cost")) if usage.get("is_byok") is True else None
    return total + (upstream or 0)


BILLED = frozenset({"cost", "cost_in_usd_ticks", "cost_details"})
"""The fields of a usage that `billed` reads."""
_TICKS_PER_USD = 10**10
_CAPACITY = 64


class RenderTool(Protocol):
    """Renders one tool for one wire."""

    def __call__(self, tool: Tool, /, *, strict: bool) -> dict[str, Any]:
        """The tool as the wire has it; `strict` says whether the endpoint knows strict mode."""
        ...


class RenderedToolSets:
    """A bounded cache from a tool set and a variant to its JSON; the least recently rendered goes first."""

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: dict[tuple[bytes, bool], orjson.Fragment] = {}

    def get(self, tools: ToolSet, *, strict: bool, render: RenderTool) -> orjson.Fragment:
        """The set's JSON, rendered when it is new."""
        key = (tools.encoded, strict)
        fragment = self._kept.get(key)
        if fragment is None:
            if len(self._kept) >= _CAPACITY:
                del self._kept[next(iter(self._kept))]
            fragment = orjson.Fragment(orjson.dumps([render(tool, strict=strict) for tool in tools.tools]))
            self._kept[key] = fragment
        return fragment

"""Turns a runtime's result into an envelope's output, and reuses cached results.

The output is converted to JSON, redacted, mapped, validated and truncated. The effect has already happened, so an
outcome is discarded only if it is unusable. A missing cache counts as a miss, and a failure to store a result does not
fail the call. Of equal calls at the same time in one process, one is made and the others wait for its result; if that
cannot be kept, each of them is made after all.
"""

import asyncio
import contextlib
from datetime import timedelta
from decimal import Decimal, InvalidOperation
from typing import NamedTuple, cast

import orjson

from toolcrib.contracts import (
    DELEGATES,
    Attachment,
    ErrorCode,
    InvalidExpression,
    InvalidInput,
    Json,
    JsonObject,
    Reason,
    ToolDefinition,
    ToolEnvelope,
    ToolRevision,
    Unavailable,
    cache_key,
)
from toolcrib.core.executor.concurrency import OngoingCall
from toolcrib.core.executor.envelope import EnvelopeBuilder, error, plain
from toolcrib.core.executor.ports import BlobSink, CallFailed, Clock, Results
from toolcrib.core.executor.retries import time_limit
from toolcrib.core.expressions.jsonpath import select, select_one
from toolcrib.core.policy import is_untrusted
from toolcrib.core.registry import SchemaValidator
from toolcrib.infrastructure.secrets import Redactor

_LEAST = 100
"""Bytes of a member that are worth keeping."""


class FittedOutput(NamedTuple):
    """What of an output fits into the envelope."""

    output: Json
    truncated: bool = False
    attachments: tuple[Attachment, ...] = ()
    """Names the whole."""
    warning: str | None = None
    """Why the whole is lost, if it is."""


def take(tool: ToolDefinition, output: Json, redactor: Redactor) -> Json:
    """A runtime's or a client's output as plain JSON without secrets.

    Raises:
        CallFailed: It is not JSON.
    """
    try:
        return redactor.json(plain(output))
    except InvalidInput as problem:
        message = f"tool {tool.name!r} ran, but its output is not JSON: {problem}"
        raise CallFailed(error(ErrorCode.PROVIDER_ERROR, Reason.BAD_RESPONSE, message)) from problem


def select_output(tool: ToolDefinition, output: Json) -> Json:
    """Apply the tool's response mapping: one match is the output itself, several are a list, none is null.

    Raises:
        CallFailed: The path cannot be applied.
    """
    if tool.select is None:
        return output
    try:
        found = select(tool.select, output)
    except InvalidExpression as problem:
        message = f"tool {tool.name!r} ran, but its response mapping failed: {problem}"
        raise CallFailed(error(ErrorCode.PROVIDER_ERROR, Reason.BAD_RESPONSE, message)) from problem
    return found[0] if len(found) == 1 else found or None


def cost_from_output(tool: ToolDefinition, output: Json) -> Decimal | None:
    """What a call cost, in US dollars, as its output says it; null if it says nothing that is an amount."""
    if tool.cost_from is None:
        return None
    try:
        amount = select_one(tool.cost_from, output)
        cost = Decimal(str(amount)) if isinstance(amount, int | float | str) else Decimal("NaN")
    except (InvalidExpression, InvalidOperation):
        return None
    return cost if cost.is_finite() and cost >= 0 else None


def check_output(
    tool: ToolDefinition, schema: SchemaValidator | None, output: Json, metadata: JsonObject
) -> JsonObject:
    """Hold the output against the tool's schema.

    What our own tools promise must hold. What an imported document promises about a foreign system often does not:
    there a mismatch is a warning in the metadata.

    Returns:
        The metadata, with a warning if there is one.

    Raises:
        CallFailed: The output of a tool that was not imported does not match.
    """
    problems = schema.problems(output) if schema is not None else ()
    if not problems:
        return metadata
    message = f"tool {tool.name!r} ran, but its output does not match its output_schema: {problems[0]}"
    if tool.source == "imported":
        return with_warning(metadata, message)
    found = [problem.as_json() for problem in problems]
    raise CallFailed(error(ErrorCode.PROVIDER_ERROR, Reason.OUTPUT_SCHEMA_MISMATCH, message, problems=found))


def with_warning(metadata: JsonObject, warning: str) -> JsonObject:
    """The metadata with one warning more."""
    earlier = metadata.get("warnings", [])
    return {**metadata, "warnings": [*(earlier if isinstance(earlier, list) else [earlier]), warning]}


async def fit(output: Json, limit: int, blob_sink: BlobSink, *, realm: str, made_by: str) -> FittedOutput:
    """Cut an output that is larger than the limit, and keep the whole of it as a blob.

    Args:
        output: JSON.
        limit: Most bytes of its JSON text.
        blob_sink: Where the whole goes.
        realm: Owner of the blob.
        made_by: Who made the call.
    """
    data = orjson.dumps(output)
    if len(data) <= limit:
        return FittedOutput(output)
    cut = _cut(output, data, limit)
    try:
        digest = await blob_sink.put(data, realm=realm, made_by=made_by)
    except Unavailable as problem:
        return FittedOutput(
            cut, truncated=True, warning=f"the whole output ({len(data)} bytes) could not be kept: {problem}"
        )
    whole = Attachment(kind="blob", url=f"blob:sha256:{digest}", content_type="application/json", bytes=len(data))
    return FittedOutput(cut, truncated=True, attachments=(whole,))


def _cut(output: Json, data: bytes, limit: int) -> Json:
    """As many leading items of a list as fit; an object with its largest member cut; else the beginning of the text."""
    if isinstance(output, dict) and (shorter := _shorter(cast("JsonObject", output), len(data), limit)) is not None:
        return shorter
    if isinstance(output, list):
        kept: list[Json] = []
        size = 2
        for item in cast("list[Json]", output):
            size += len(orjson.dumps(item)) + 1
            if size > limit:
                break
            kept.append(item)
        if kept:
            return kept
    text = output.encode() if isinstance(output, str) else data
    return _beginning(text, limit)


def _shorter(output: JsonObject, size: int, limit: int) -> JsonObject | None:
    """An object that is still one: the member that takes most of it gets what the others leave; null if that is little.

    Args:
        output: The object.
        size: Bytes of its JSON text.
        limit: Most bytes.
    """
    sizes = {name: len(orjson.dumps(member)) for name, member in output.items()}
    name = max(sizes, key=lambda each: sizes[each], default="")
    left = limit - (size - sizes.get(name, 0))
    if left < _LEAST:
        return None
    return {**output, name: _cut(output[name], orjson.dumps(output[name]), left)}


def _beginning(text: bytes, limit: int) -> str:
    """As much of a text as is at most `limit` bytes long in JSON, where quotes and controls take more than one."""
    size = limit - 2
    while size > 0:
        beginning = text[:size].decode(errors="ignore")
        length = len(orjson.dumps(beginning))
        if length <= limit:
            return beginning
        size = min(size * limit // length, size - 1)
    return ""


_KEPT = {"output", "http_status", "metadata", "attachments", "tainted"}


class EnvelopeCache:
    """Keeps envelopes for equal calls, as far as their tools allow it.

    Args:
        results: Where they are kept.
        clock: Time, for how long.
        shares: Whether a call waits for an equal one that is being made; not in a replay, which knows what came of it.
    """

    def __init__(self, results: Results, clock: Clock, *, shares: bool = True) -> None:
        self._results = results
        self._clock = clock
        self._shares = shares
        self._ongoing: dict[str, OngoingCall] = {}

    def key(self, builder: EnvelopeBuilder, tool: ToolRevision) -> str | None:
        """What equal calls have in common; null if the tool's results are not kept."""
        definition = tool.definition
        if definition.cache == "none" or definition.side_effects == "writes":
            return None
        # What is read may depend on whose credentials read it, its provider's included; what is computed does not.
        pure = definition.side_effects == "none" and not definition.secrets and definition.provider is None
        scope = "" if pure else builder.context.principal.id
        return cache_key(tool.realm, scope, tool.name, tool.content_hash, builder.arguments)

    async def recall(self, key: str | None, builder: EnvelopeBuilder, tool: ToolRevision) -> JsonObject | None:
        """What was kept, or is by an equal call that is being made; null if nothing is."""
        if key is None:
            return None
        definition = tool.definition
        if self._shares and definition.runs_on == "server" and definition.implementation.kind not in DELEGATES:
            ongoing = self._ongoing.get(key)
            if ongoing is None:
                ongoing = builder.ongoing = self._ongoing[key] = OngoingCall(key)
            else:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(time_limit(definition, builder.call).seconds):
                        await ongoing.over.wait()
                if ongoing.kept is not None:
                    return ongoing.kept
        with contextlib.suppress(Unavailable):
            return await self._results.get(key, now=self._clock.now())
        return None

    def end(self, ongoing: OngoingCall) -> None:
        """Let equal calls go on: this one is over, however it has ended."""
        self._ongoing.pop(ongoing.key, None)
        ongoing.over.set()

    async def keep(
        self, key: str | None, builder: EnvelopeBuilder, tool: ToolRevision, envelope: ToolEnvelope
    ) -> ToolEnvelope:
        """The envelope, which is kept for equal calls if it may be: of any run, so only as the tool brought it."""
        is_whole = not envelope.truncated and "trouble" not in (envelope.metadata.get("paging") or {})
        if key is None or not envelope.ok or not is_whole or not builder.as_it_was:
            return envelope
        lifetime = tool.definition.cache_ttl_s
        expires = None if lifetime is None else self._clock.now() + timedelta(seconds=lifetime)
        value = envelope.model_dump(mode="json", include=_KEPT)
        made_by = builder.context.principal.id
        if builder.ongoing is not None:
            builder.ongoing.kept = value
        with contextlib.suppress(Unavailable):
            await self._results.put(key, value, realm=tool.realm, made_by=made_by, expires_at=expires)
        return envelope


def seal_cached(builder: EnvelopeBuilder, tool: ToolRevision, stored: JsonObject) -> ToolEnvelope:
    """The envelope of a call whose result was kept."""
    builder.tainted = stored.get("tainted", is_untrusted(tool.definition))
    return builder.build(
        "success",
        output=stored["output"],
        http_status=stored["http_status"],
        metadata=stored["metadata"],
        attachments=tuple(Attachment.model_validate(item) for item in stored["attachments"]),
        cached=True,
    )

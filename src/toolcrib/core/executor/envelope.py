"""Builds the envelope of a call, also of a denied one.

Every envelope is completed here: values are JSON, text is Unicode, secrets are redacted, timings add up. Values come
from callers, functions and other systems, so nothing is assumed about them.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Literal, TypeAlias, cast

import orjson

from toolcrib.contracts import (
    Attachment,
    CallStatus,
    ErrorCode,
    GuardDecision,
    InvalidInput,
    Json,
    JsonObject,
    Reason,
    Timings,
    ToolEnvelope,
    ToolError,
    ToolRevision,
    canonical,
    hash_call,
    idempotency_key,
)
from toolcrib.core.executor.concurrency import OngoingCall
from toolcrib.core.executor.ports import CallContext, CallFailed, CallRequest, Clock
from toolcrib.core.policy import CapReservation
from toolcrib.infrastructure.secrets import Redactor

MAX_DEPTH = 100
"""Levels of nesting. Whoever writes an envelope down gives up at 254 (orjson), and an event adds a few of its own."""


def plain(value: Json) -> Json:
    """A copy of a value that is nothing but JSON, so that whoever keeps the original cannot change it.

    Moments, UUIDs, enums and dataclasses become what JSON has for them; a number that is not finite becomes null, as in
    ECMAScript's `JSON.stringify`.

    Raises:
        InvalidInput: The value is not JSON, has an integer beyond 64 bits, or is nested too deep.
    """
    return plain_with_text(value)[0]


def plain_with_text(value: Json) -> tuple[Json, bytes]:
    """The copy that `plain` makes, and the JSON text that it was read from; raises what that does."""
    try:
        text = orjson.dumps(value)
    except orjson.JSONEncodeError as problem:
        raise InvalidInput(str(problem)) from None
    copy = orjson.loads(text)
    if len(text) > 2 * MAX_DEPTH and text.count(b"[") + text.count(b"{") > MAX_DEPTH and _is_deep(copy):
        raise InvalidInput(f"nested more than {MAX_DEPTH} levels deep")
    return copy, text


def legible(text: str) -> str:
    """The text with `?` in place of lone surrogates, which no encoding can carry."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _is_deep(value: Json) -> bool:
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [inner for outer in level for inner in _inside(outer) if isinstance(inner, dict | list)]
        if not level:
            return False
    return True


def _inside(value: Json) -> Iterable[Json]:
    if isinstance(value, dict):
        return cast("JsonObject", value).values()
    return cast("list[Json]", value) if isinstance(value, list) else ()


Span: TypeAlias = Literal["queue", "validate", "policy", "wait", "execute", "serialize"]

_NOTHING = Redactor(())
_MOST_CHARACTERS = 2_000
"""Of an error's message: a model reads it."""


def error(code: ErrorCode, reason: Reason, message: str, **details: Json) -> ToolError:
    """A `ToolError` with its reason in the details."""
    return ToolError(code=code, message=legible(message), details={"reason": reason.value, **details})


class EnvelopeBuilder:
    """Collects what the pipeline learns, and makes the envelope of it at the end, whatever the end is.

    Args:
        call: As it was asked for.
        context: Of the call.
        clock: Time.
        moments: When the call began, and the monotonic time of its last lap; null for now.
        accepted: Its validated arguments and their JSON text; null if they are still to be looked at.
    """

    __slots__ = (
        "_canonical", "_clock", "_hidden", "_id", "_last", "_monotonic", "_spans", "_started", "acted",
        "approved_input", "as_it_was", "attempts", "call", "capped", "context", "cost_usd", "handed_over", "input",
        "name", "not_json", "ongoing", "redactor", "tainted", "text", "tool", "wasted",
    )  # fmt: skip

    def __init__(
        self,
        call: CallRequest,
        context: CallContext,
        clock: Clock,
        moments: tuple[datetime, float] | None = None,
        accepted: tuple[JsonObject, bytes] | None = None,
    ) -> None:
        self.call = call
        self.name = legible(call.name)
        self.context = context
        self.tool: ToolRevision | None = None
        self.input: Json
        self.text: bytes
        """The arguments as JSON text."""
        self._canonical: bytes | None
        self.not_json: str | None = None
        """Why the arguments are not JSON, if they are not."""
        self.approved_input: Json = None
        self.attempts = 0
        self.cost_usd: Decimal | None = None
        self.tainted = False
        """Whether what it brings holds what outsiders can write."""
        self.acted = False
        """Whether the tool has done what it was asked, whatever becomes of what it brought."""
        self.as_it_was = True
        """Whether what it brings is what the tool brought: no guardrail has changed it."""
        self.handed_over = False
        """Whether a client performs it."""
        self.capped: CapReservation | None = None
        """What was reserved under the caps on what many runs spend."""
        self.ongoing: OngoingCall | None = None
        """What equal calls wait for, if its result may be theirs too."""
        self.redactor = _NOTHING
        self.wasted: list[CallFailed] = []
        """How the attempts failed that were not the last."""
        self._hidden: tuple[str, ...] = ()
        self._clock = clock
        self._monotonic = clock.monotonic
        self._started, self._last = (clock.now(), self._monotonic()) if moments is None else moments
        self._spans: dict[str, float] = {}
        self._id: str | None = None
        if accepted is None:
            self.set_arguments(call.input)
        else:
            self.accept(*accepted)

    @property
    def arguments(self) -> bytes:
        """The arguments in canonical form."""
        if self._canonical is None:
            self._canonical = canonical(self.input)
        return self._canonical

    @property
    def call_id(self) -> str:
        """The id of the call; fixed by the first use, so an approval that edits arguments keeps it."""
        if self._id is None:
            version = self.tool.version if self.tool else ""
            self._id = hash_call(self.name, version, self.arguments, self.call.scope + self.call.position)
        return self._id

    @property
    def idempotency_key(self) -> str:
        """What systems are sent that accept one: the same on every attempt."""
        return self.call.idempotency_key or idempotency_key(self.context.run_id, self.call.position)

    def set_arguments(self, arguments: Json) -> None:
        """Take arguments as somebody gave them. Of what is no JSON only text is kept."""
        self._canonical = None
        try:
            self.input, self.text = plain_with_text(arguments)
            self.not_json = None
        except InvalidInput as problem:
            self.input = legible(arguments) if isinstance(arguments, str) else None
            self.text, self.not_json = orjson.dumps(self.input), str(problem)

    def accept(self, arguments: JsonObject, text: bytes) -> None:
        """Take the validated arguments, defaults filled in, and their JSON text."""
        self.input, self.text = arguments, text
        self._canonical = None

    def go_on(self, call_id: str, spans: dict[str, float]) -> None:
        """Go on with a call whose plan has made its id, and spent so many seconds."""
        self._id, self._spans = call_id, spans

    def copy_arguments(self) -> JsonObject:
        """The arguments once more, for somebody who may change them."""
        return orjson.loads(self.text)

    def continue_prepared(self, prepared: ToolEnvelope) -> None:
        """Go on where the call was handed to a client: with the id and the start that it had; since then it waits."""
        self._id = prepared.call_id
        self._started = prepared.t_start
        self._spans = prepared.timings.model_dump(by_alias=True)
        waited_s = (self._clock.now() - prepared.t_end).total_seconds()
        self._last = self._clock.monotonic() - max(0.0, waited_s)
        self.set_arguments(prepared.input)
        self.approved_input = prepared.approved_input
        self.attempts = prepared.attempts

    def add_secrets(self, secrets: tuple[str, ...]) -> None:
        """Keep these values, too, out of the envelope."""
        if secrets:
            self._hidden += secrets
            self.redactor = Redactor(self._hidden)

    def add_failed_attempt(self, failure: CallFailed) -> None:
        """Count what a failed attempt has used that is not the last: it is the call's too."""
        self.wasted.append(failure)

    def lap(self, span: Span) -> None:
        """All time since the last call of this belongs to the span."""
        now = self._monotonic()
        self._spans[span] = self._spans.get(span, 0.0) + now - self._last
        self._last = now

    @property
    def since_lap(self) -> float:
        """Seconds since the last lap."""
        return self._monotonic() - self._last

    def build(
        self,
        status: CallStatus,
        *,
        output: Json = None,
        partial: Json = None,
        error: ToolError | None = None,
        http_status: int | None = None,
        metadata: JsonObject | None = None,
        attachments: tuple[Attachment, ...] = (),
        cached: bool = False,
        truncated: bool = False,
        for_client: bool = False,
    ) -> ToolEnvelope:
        """The envelope, of what is given and known. The output is plain and without secrets; the rest is made so."""
        self.lap("serialize")
        definition = self.tool.definition if self.tool else None
        context, cost, all_metadata = self.context, self._cost, self._with_wasted(metadata or {})
        values: JsonObject = {
            "call_id": self.call_id,
            "name": self.name,
            "version": definition.version if definition else "",
            "position": self.call.position,
            "status": status,
            "input": self.input,
            "output": output,
            "partial": partial,
            "error": self.redact_error(error) if error else None,
            "t_start": self._started,
            "t_end": self._clock.now(),
            "cached": cached,
            "reused": None,
            "truncated": truncated,
            "attachments": self._redact_attachments(attachments) if attachments else (),
            "http_status": http_status,
            "metadata": self._clean(all_metadata) if all_metadata else {},
            "requires_client_execution": for_client or self.handed_over,
            "approved_input": self.approved_input,
            "run_id": context.run_id,
            "conversation_id": context.conversation_id,
            "session_id": context.session_id,
            "attempts": self.attempts,
            "timings": _timings(self._spans),
            "cost_usd": cost,
            "side_effects": definition.side_effects if definition else "none",
            "content_hash": self.tool.content_hash if self.tool else None,
            "tainted": self.tainted,
        }
        if error is None and http_status is None and cost is None and not attachments:
            return ToolEnvelope(**values)
        return ToolEnvelope.model_validate(values)  # what runtimes have said of the call is held to the contract

    def redact_error(self, failure: ToolError) -> ToolError:
        """An error as it may be told: without secrets, and not too long."""
        message = self.redactor.text(legible(failure.message)) or f"{self.name!r} failed, and nobody said why"
        if len(message) > _MOST_CHARACTERS:
            message = f"{message[:_MOST_CHARACTERS]}… ({len(message)} characters)"
        details = None if failure.details is None else self._clean(failure.details)
        return failure.model_copy(update={"message": message, "details": details})

    @property
    def _cost(self) -> Decimal | None:
        if not self.wasted:
            return self.cost_usd
        costs = [self.cost_usd, *(failure.cost_usd for failure in self.wasted)]
        known = [cost for cost in costs if cost is not None]
        return sum(known, Decimal(0)) if known else None

    def _with_wasted(self, metadata: JsonObject) -> JsonObject:
        """What is said of a nested run, with what those of the failed attempts had used."""
        if not self.wasted:
            return metadata
        nested = [facts for facts in (metadata, *(failure.metadata for failure in self.wasted)) if "run_id" in facts]
        if not nested:
            return metadata
        used: JsonObject = {name: sum(facts.get(name, 0) for facts in nested) for name in ("tool_calls", "tokens")}
        if any("cost_unknown" in facts for facts in nested):
            used["cost_unknown"] = True
        if lost := [Decimal(facts["cut_off_usd"]) for facts in nested if "cut_off_usd" in facts]:
            used["cut_off_usd"] = str(sum(lost, Decimal(0)))
        return {"run_id": nested[-1]["run_id"], **metadata, **used}

    def _redact_attachments(self, attachments: tuple[Attachment, ...]) -> tuple[Attachment, ...]:
        text = self.redactor.text
        return tuple(
            item.model_copy(update={"url": text(item.url), "name": None if item.name is None else text(item.name)})
            for item in attachments
        )

    def _clean(self, companion: JsonObject) -> JsonObject:
        """An object that accompanies the output; what in it is not JSON is left out, and named."""
        try:
            return self.redactor.json(plain(companion))
        except InvalidInput:
            return self.redactor.json(dict(_plain_entries(companion)))


def _plain_entries(companion: JsonObject) -> Iterable[tuple[str, Json]]:
    for key, value in companion.items():
        try:
            yield legible(str(key)), plain(value)
        except InvalidInput as problem:
            yield legible(str(key)), f"(left out: {problem})"


def _timings(spans: Mapping[str, float]) -> Timings:
    return Timings(**{"validate_" if span == "validate" else span: seconds for span, seconds in spans.items()})


class Denied(CallFailed):
    """The call was refused before anything ran."""


def denial(decision: GuardDecision) -> Denied:
    """What a denial of the guard raises."""
    reason = decision.reason or Reason.TOOL_NOT_ALLOWED
    message = decision.message or decision.rule
    return Denied(error(ErrorCode.POLICY_DENIED, reason, message, rule=decision.rule, inputs=decision.inputs))

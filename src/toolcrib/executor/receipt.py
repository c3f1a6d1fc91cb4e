"""The envelope in the making: what is known of a call so far, and where its time went."""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Literal, TypeAlias

from toolcrib.contracts import (
    Attachment,
    CallStatus,
    Json,
    JsonObject,
    Reason,
    Timings,
    ToolEnvelope,
    ToolError,
    ToolRevision,
    canonical,
    hash_call,
)
from toolcrib.contracts.errors import ErrorCode, InvalidInput
from toolcrib.executor.ports import CallContext, Clock, ToolCall

Span: TypeAlias = Literal["queue", "validate", "policy", "wait", "execute", "serialize"]


def error(code: ErrorCode, reason: Reason, message: str, **details: Json) -> ToolError:
    """A `ToolError` with its reason in the details."""
    return ToolError(code=code, message=message, details={"reason": reason.value, **details})


class Receipt:
    """Collects what the pipeline learns, and makes the envelope of it at the end, whatever the end is."""

    def __init__(self, call: ToolCall, context: CallContext, clock: Clock) -> None:
        self.call = call
        self.context = context
        self.tool: ToolRevision | None = None
        self.input: Json = call.input
        self.approved_input: Json = None
        self.attempts = 0
        self._clock = clock
        self._started: datetime = clock.now()
        self._last = clock.monotonic()
        self._spans: dict[str, float] = {}
        self._canonical: bytes | None = None
        self._id: str | None = None

    @property
    def arguments(self) -> bytes:
        """The arguments in canonical form; raw ones if they are no JSON."""
        if self._canonical is None:
            try:
                self._canonical = canonical(self.input)
            except InvalidInput:
                self._canonical = repr(self.input).encode(errors="replace")
        return self._canonical

    @property
    def call_id(self) -> str:
        """The id of the call; fixed by the first use, so an approval that edits arguments keeps it."""
        if self._id is None:
            version = self.tool.version if self.tool else ""
            self._id = hash_call(self.call.name, version, self.arguments, self.call.position)
        return self._id

    def accept(self, arguments: JsonObject) -> None:
        """Take the validated arguments, defaults filled in."""
        self.input = arguments
        self._canonical = None

    def spent(self, span: Span) -> None:
        """All time since the last call of this belongs to the span."""
        now = self._clock.monotonic()
        self._spans[span] = self._spans.get(span, 0.0) + now - self._last
        self._last = now

    def seal(
        self,
        status: CallStatus,
        *,
        output: Json = None,
        error: ToolError | None = None,
        http_status: int | None = None,
        metadata: JsonObject | None = None,
        attachments: tuple[Attachment, ...] = (),
        cost_usd: Decimal | None = None,
        cached: bool = False,
        truncated: bool = False,
        for_client: bool = False,
    ) -> ToolEnvelope:
        """The envelope. What is not given is known already."""
        self.spent("serialize")
        definition = self.tool.definition if self.tool else None
        call_id = self.call_id
        return ToolEnvelope(
            call_id=call_id,
            name=self.call.name,
            version=self.tool.version if self.tool else "",
            position=self.call.position,
            status=status,
            input=self.input,
            approved_input=self.approved_input,
            output=output,
            error=error,
            t_start=self._started,
            t_end=self._clock.now(),
            cached=cached,
            truncated=truncated,
            attachments=attachments,
            http_status=http_status,
            metadata=metadata or {},
            requires_client_execution=for_client,
            run_id=self.context.run_id,
            conversation_id=self.context.conversation_id,
            session_id=self.context.session_id,
            attempts=self.attempts,
            timings=_timings(self._spans),
            cost_usd=cost_usd,
            side_effects=definition.side_effects if definition else "none",
            content_hash=self.tool.content_hash if self.tool else None,
        )


def _timings(spans: Mapping[str, float]) -> Timings:
    return Timings.model_validate(spans)

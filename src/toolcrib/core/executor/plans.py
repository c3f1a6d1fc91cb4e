"""What is decided once per revision of a tool: its compiled schemas, and the plan of an ordinary call of it.

A call is ordinary if nothing forbids it and no optional stage of the pipeline has anything to do: nobody is asked,
nothing is limited, paid, secret, cached, filtered, handed to a client, skipped or repeated. A plan finds that out and
does what is left, with the results that the pipeline has. It refuses nothing: every other call goes through the
pipeline from its first stage, which says why in its own words. What depends on the policy of a run are a few
comparisons for each call, fewer than it would take to look a plan up by its policy.
"""

from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable
from datetime import datetime
from types import NoneType, coroutine
from typing import Any, Final, NamedTuple, TypeVar, cast

import orjson
from msgspec import Struct

from toolcrib.contracts import (
    EFFECTS,
    CallStarted,
    GuardDecision,
    InvalidInput,
    Json,
    JsonObject,
    Principal,
    SideEffects,
    Timings,
    ToolEnvelope,
    ToolRevision,
    canonical,
    hash_call,
    idempotency_key,
)
from toolcrib.core.executor.envelope import MAX_DEPTH, EnvelopeBuilder, plain_with_text
from toolcrib.core.executor.ports import CallContext, CallRequest, Clock, Outcome
from toolcrib.core.policy import is_in_service, is_untrusted, permits
from toolcrib.core.registry import SchemaValidator, compile_schema

_MOST = 4096
"""Revisions that are remembered; when there are more, all are compiled anew."""


class ToolSchemas(NamedTuple):
    """What one definition promises."""

    input: SchemaValidator
    output: SchemaValidator | None


class CompiledSchemas:
    """Compiles once per definition; making a key of the schema itself would cost more than the validation."""

    def __init__(self) -> None:
        self._known: dict[str, ToolSchemas] = {}

    def of(self, tool: ToolRevision) -> ToolSchemas:
        """The schemas of a revision.

        Raises:
            InvalidDefinition: One of them is not a schema.
        """
        known = self._known.get(tool.content_hash)
        if known is None:
            promised = tool.definition.output_schema
            output = None if promised is None else compile_schema(promised)
            known = ToolSchemas(compile_schema(tool.definition.input_schema), output)
            if len(self._known) >= _MOST:
                self._known.clear()
            self._known[tool.content_hash] = known
        return known


_RANKS: Final = {effects: rank for rank, effects in enumerate(EFFECTS)}
_SINGLE: Final[frozenset[object]] = frozenset({str, int, bool, NoneType})
"""Types of what JSON text has as a single value, and any encoder writes canonically; fractions are looked at."""
_HELD: Final[frozenset[object]] = frozenset({str, bool, NoneType})
"""Types of defaults that a call can share."""
UNUSUAL: Final = object()
"""In the place of an output that needs the stages of the pipeline."""
_MOST_INTEGER: Final = 2**53
_ELSEWHERE: Final = frozenset({"$ref", "properties"})
"""Keywords of a property's schema that may lead to further defaults."""


class OrdinaryCall(Struct):
    """What is known of an ordinary call that may be made, and the seconds that it took to find out."""

    call: CallRequest
    context: CallContext
    started: datetime
    input: JsonObject
    """The valid arguments, with defaults."""
    text: bytes
    """The arguments as JSON text."""
    is_flat: bool
    """Whether all arguments are single values."""
    call_id: str
    idempotency_key: str
    queue_s: float
    policy_s: float
    validate_s: float
    last: float
    """When the last of these had passed."""

    def copy_arguments(self) -> JsonObject:
        """The arguments once more, for somebody who may change them."""
        return self.input.copy() if self.is_flat else orjson.loads(self.text)

    def builder(self, tool: ToolRevision, clock: Clock) -> EnvelopeBuilder:
        """What goes on with the call when it does not end as most calls do."""
        moments, accepted = (self.started, self.last), (self.input, self.text)
        builder = EnvelopeBuilder(self.call, self.context, clock, moments, accepted)
        builder.tool = tool
        builder.go_on(self.call_id, {"queue": self.queue_s, "policy": self.policy_s, "validate": self.validate_s})
        return builder


class CallPlan:
    """What ordinary calls of one revision need.

    Args:
        tool: The revision, for which `has_ordinary_calls` holds.
        schemas: Its schemas.
    """

    __slots__ = (
        "_defaults", "_effects", "_fits", "_has_mapping", "_hash", "_input", "_limit", "_name",
        "_permitted", "_promise", "_rank", "_realm", "_uri", "_version", "alone", "output", "tool", "untrusted",
    )  # fmt: skip

    def __init__(self, tool: ToolRevision, schemas: ToolSchemas) -> None:
        definition = tool.definition
        self.tool = tool
        self.alone = definition.sequential
        self.untrusted = is_untrusted(definition)
        self.output = schemas.output
        self._input = schemas.input
        self._fits = schemas.input.is_valid
        self._defaults = _single_defaults(schemas.input)
        self._promise = None if schemas.output is None else schemas.output.is_valid
        self._name = definition.name
        self._version = definition.version
        self._hash = tool.content_hash
        self._realm = tool.realm
        self._uri = definition.security()
        self._permitted: Principal | None = None
        """Who was found to be permitted last: most calls of a run are its principal's."""
        self._effects: SideEffects = definition.side_effects
        self._rank = _RANKS[definition.side_effects]
        self._limit = definition.max_output_bytes
        self._has_mapping = definition.select is not None

    def allows(self, call: CallRequest, context: CallContext, principal: Principal) -> bool:
        """Whether a call is ordinary so far, before its arguments are looked at.

        Args:
            call: The call.
            context: Of the call.
            principal: Who calls, with the grants that it has now.
        """
        policy, name, position = context.policy, self._name, call.position
        if (
            context.attempt > 1
            or policy.guardrails
            or (policy.allowed is not None and name not in policy.allowed)
            or name in policy.confirm
            or name in policy.narrowed
            or self._rank > _RANKS[policy.side_effects]
            or (context.dry_run and self._effects == "writes")
            or call.name != name
        ):
            return False
        if principal is not self._permitted:
            if principal.realm != self._realm or not permits(principal.grants, self._uri):
                return False
            self._permitted = principal
        return (
            context.budget.has_tool_call(position)
            and context.journal.find_client_call(position) is None
            and context.journal.find_failed_call(position) is None
        )

    def accept(
        self, call: CallRequest, context: CallContext, given: Json, moments: tuple[datetime, float, float, float],
        monotonic: Callable[[], float],
    ) -> OrdinaryCall | None:  # fmt: skip
        """A call that is allowed, if its arguments are valid; else null.

        Args:
            call: The call.
            context: Of the call.
            given: Its arguments as somebody gave them.
            moments: When it was asked for, twice; when its turn came; and when it was allowed.
            monotonic: Time of the last three.
        """
        values: JsonObject
        try:
            values, text = plain_with_text(given)
            if type(values) is not dict:
                return None
            if self._defaults is None:
                values, text = plain_with_text(self._input.with_defaults(values))
            else:
                for name, default in self._defaults.items():
                    if name not in values:
                        values[name], text = default, b""
            if not self._fits(values):
                return None
            if not text:  # it has defaults now
                text = orjson.dumps(values)
            is_flat, form = canonical_form(values, text)
        except InvalidInput:
            return None
        position = call.position
        identity = hash_call(self._name, self._version, form, call.scope + position)
        key = call.idempotency_key or idempotency_key(context.run_id, position)
        started, began, queued, judged = moments
        now = monotonic()
        return OrdinaryCall(
            call, context, started, values, text, is_flat, identity, key,
            queued - began, judged - queued, now - judged, now,
        )  # fmt: skip

    def intent(self, made: OrdinaryCall) -> CallStarted:
        """The intent of a call, with the guard's decision on it."""
        facts: JsonObject = {"side_effects": self._effects, **made.context.budget.facts()}
        return CallStarted(
            position=made.call.position,
            call_id=made.call_id,
            name=self._name,
            version=self._version,
            content_hash=self._hash,
            side_effects=self._effects,
            input=made.input,
            idempotency_key=made.idempotency_key,
            decision=GuardDecision(outcome="allow", rule="allowed", inputs=facts),
        )

    def output_of(self, outcome: Outcome) -> Json:
        """What a success has brought, if it is only an output, which is small and as promised; else `UNUSUAL`."""
        if self._has_mapping or outcome.secrets or outcome.cost_usd is not None:
            return UNUSUAL
        brought = outcome.output
        try:
            text = orjson.dumps(brought)
        except orjson.JSONEncodeError:
            return UNUSUAL
        if len(text) > self._limit or (len(text) > 2 * MAX_DEPTH and text.count(b"[") + text.count(b"{") > MAX_DEPTH):
            return UNUSUAL
        output = brought if type(brought) is str else orjson.loads(text)
        if self._promise is not None and not self._promise(output):
            return UNUSUAL
        return output

    def envelope(self, made: OrdinaryCall, outcome: Outcome, clock: Clock, executed: float) -> ToolEnvelope | None:
        """The envelope of a first attempt that never waited, if there is nothing more to say of it; else null.

        Args:
            made: The call; its last moment is when the attempt began.
            outcome: What the attempt has brought.
            clock: Time.
            executed: When the attempt had ended.
        """
        if outcome.metadata or outcome.attachments or outcome.http_status is not None:
            return None
        output = self.output_of(outcome)
        if output is UNUSUAL:
            return None
        call, context = made.call, made.context
        timings = Timings(
            queue=made.queue_s,
            validate_=made.validate_s,
            policy=made.policy_s,
            execute=executed - made.last,
            serialize=clock.monotonic() - executed,
        )
        return ToolEnvelope(
            call_id=made.call_id,
            name=self._name,
            version=self._version,
            position=call.position,
            status="success",
            input=made.input,
            output=output,
            t_start=made.started,
            t_end=clock.now(),
            run_id=context.run_id,
            conversation_id=context.conversation_id,
            session_id=context.session_id,
            attempts=1,
            timings=timings,
            side_effects=self._effects,
            content_hash=self._hash,
            tainted=self.untrusted or outcome.tainted,
        )

    def envelope_later(self, builder: EnvelopeBuilder, outcome: Outcome) -> ToolEnvelope | None:
        """The envelope of an attempt that has waited; null if its result needs the stages of the pipeline."""
        output = self.output_of(outcome)
        if output is UNUSUAL:
            return None
        builder.tainted |= outcome.tainted
        return builder.build(
            "success",
            output=output,
            http_status=outcome.http_status,
            metadata=outcome.metadata,
            attachments=outcome.attachments,
        )


def _single_defaults(schema: SchemaValidator) -> JsonObject | None:
    """The defaults that a schema fills in, by name; null if one of them is in another object, or no single value."""
    if not schema.has_defaults:
        return {}
    found: JsonObject = {}
    if "$ref" in schema.schema:
        return None
    for name, part in schema.schema.get("properties", {}).items():
        keywords = cast("JsonObject", part if isinstance(part, dict) else {})
        if not _ELSEWHERE.isdisjoint(keywords):
            return None
        if "default" in keywords:
            found[name] = default = keywords["default"]
            kind = cast("object", type(default))
            if kind not in _HELD and not (kind is int and abs(default) < _MOST_INTEGER):
                return None
    return found


def canonical_form(arguments: JsonObject, text: bytes) -> tuple[bool, bytes]:
    """Whether arguments are single values that every encoder writes alike, and their canonical form.

    Args:
        arguments: What was read from JSON text.
        text: JSON text of the same.
    """
    parts: Iterable[object] = arguments.values()
    for part in parts:
        if type(part) in _SINGLE or (type(part) is float and 1e-3 < part < 1e15 and not part.is_integer()):
            continue
        return False, canonical(arguments)
    if text.isascii():
        return True, orjson.dumps(arguments, option=orjson.OPT_SORT_KEYS)
    return True, canonical(arguments)


class CallPlans:
    """Plans by revision: two with one content, of two realms or two states of the life cycle, have two."""

    def __init__(self) -> None:
        self.schemas = CompiledSchemas()
        self._known: dict[int, tuple[ToolRevision, CallPlan | None]] = {}

    def of(self, tool: ToolRevision) -> CallPlan | None:
        """The plan of a revision; null if no call of it is ordinary."""
        known = self._known.get(id(tool))  # which nothing else has while the revision is kept
        if known is None:
            if len(self._known) >= _MOST:
                self._known.clear()
            known = self._known[id(tool)] = tool, self._make(tool)
        return known[1]

    def _make(self, tool: ToolRevision) -> CallPlan | None:
        if not has_ordinary_calls(tool):
            return None
        try:
            return CallPlan(tool, self.schemas.of(tool))
        except InvalidInput:
            return None


def has_ordinary_calls(tool: ToolRevision) -> bool:
    """Whether no stage that a call may need is needed by all calls of a tool."""
    definition = tool.definition
    return (
        is_in_service(tool)
        and definition.runs_on == "server"
        and not (definition.requires_confirmation or definition.secrets)
        and definition.rate_limit is None
        and definition.cost_usd_per_call is None
        and definition.cost_from is None
        and (definition.cache == "none" or definition.side_effects == "writes")
    )


T = TypeVar("T")


def _rest(work: Coroutine[Any, Any, T], awaited: Any) -> Generator[Any, Any, T]:
    try:
        yield awaited
    except GeneratorExit:
        work.close()
        raise
    except BaseException as interruption:  # noqa: BLE001 - as `await` does: who waits is told, and says what comes of it
        caught = interruption
    else:
        return (yield from work.__await__())
    try:
        awaited = work.throw(caught)
    except StopIteration as end:
        return end.value
    return (yield from _rest(work, awaited))


def resume(work: Coroutine[Any, Any, T], awaited: Any) -> Awaitable[T]:
    """Await the rest of a coroutine that was begun with `send` and now waits for something.

    Args:
        work: The coroutine.
        awaited: What it has said that it waits for.
    """
    return _resumed(work, awaited)


_resumed = coroutine(_rest)


async def fail(crash: BaseException) -> Any:
    """Raise what has been raised before, to whoever awaits it."""
    raise crash

"""What is decided once per revision of a tool: its compiled schemas, and the plan of an ordinary call of it.

A call is ordinary if nothing forbids it and no optional stage of the pipeline has anything to do: nobody is asked,
nothing is limited, paid, secret, cached, filtered, handed to a client, skipped or repeated. A plan finds that out and
does what is left, with the results that the pipeline has. It refuses nothing: every other call goes through the
pipeline from its first stage, which says why in its own words. What depends on the policy of a run are a few
comparisons for each call, fewer than it would take to look a plan up by its policy.
"""

from collections.abc import Awaitable, Coroutine, Generator
from types import coroutine
from typing import Any, Final, NamedTuple, TypeVar

import orjson

from toolcrib.contracts import (
    EFFECTS,
    GuardDecision,
    InvalidInput,
    JsonObject,
    Principal,
    ToolEnvelope,
    ToolRevision,
)
from toolcrib.core.executor.envelope import MAX_DEPTH, EnvelopeBuilder, assemble, plain_with_text
from toolcrib.core.executor.ports import CallContext, Outcome
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
_DECIDED: Final = {"outcome", "rule", "inputs"}


class CallPlan:
    """What ordinary calls of one revision need.

    Args:
        tool: The revision, for which `has_ordinary_calls` holds.
        schemas: Its schemas.
    """

    __slots__ = (
        "_fits", "_has_mapping", "_input", "_limit", "_name", "_promise", "_rank", "_uri", "output", "tool",
        "untrusted",
    )  # fmt: skip

    def __init__(self, tool: ToolRevision, schemas: ToolSchemas) -> None:
        definition = tool.definition
        self.tool = tool
        self.untrusted = is_untrusted(definition)
        self.output = schemas.output
        self._input = schemas.input
        self._fits = schemas.input.is_valid
        self._promise = None if schemas.output is None else schemas.output.is_valid
        self._name = definition.name
        self._uri = definition.security()
        self._rank = _RANKS[definition.side_effects]
        self._limit = definition.max_output_bytes
        self._has_mapping = definition.select is not None

    def decide(self, builder: EnvelopeBuilder, principal: Principal) -> GuardDecision | None:
        """The guard's decision on an ordinary call, whose arguments are valid and accepted; null for any other call.

        Args:
            builder: Of the call, whose input is as it was asked for.
            principal: Who calls, with the grants that it has now.
        """
        context, position = builder.context, builder.call.position
        budget = context.budget
        if (
            not self._is_ordinary(context)
            or principal.realm != self.tool.realm
            or not permits(principal.grants, self._uri)
            or not budget.has_tool_call(position)
            or context.journal.find_client_call(position) is not None
            or context.journal.find_failed_call(position) is not None
        ):
            return None
        inputs: JsonObject = {"side_effects": EFFECTS[self._rank], **budget.facts()}
        builder.lap("policy")
        if not self._accept(builder):
            return None
        builder.lap("validate")
        values: JsonObject = {
            "outcome": "allow",
            "rule": "allowed",
            "reason": None,
            "message": None,
            "inputs": inputs,
            "expires_s": None,
        }
        return assemble(GuardDecision, values, _DECIDED.copy())

    def _is_ordinary(self, context: CallContext) -> bool:
        policy, name = context.policy, self._name
        if policy.guardrails or context.attempt > 1 or name in policy.confirm or name in policy.narrowed:
            return False
        if policy.allowed is not None and name not in policy.allowed:
            return False
        return self._rank <= _RANKS[policy.side_effects] and not (context.dry_run and self._rank == _RANKS["writes"])

    def _accept(self, builder: EnvelopeBuilder) -> bool:
        """Whether the arguments are valid; then the builder has them, with defaults."""
        arguments: JsonObject = builder.input
        text = builder.text
        if type(arguments) is not dict:
            return False
        if self._input.has_defaults:
            try:
                arguments, text = plain_with_text(self._input.with_defaults(arguments))
            except InvalidInput:
                return False
        if not self._fits(arguments):
            return False
        builder.accept(arguments, text)
        return True

    def envelope(self, builder: EnvelopeBuilder, outcome: Outcome) -> ToolEnvelope | None:
        """The envelope of a success that is only an output, which is small and as promised; null for any other."""
        if self._has_mapping or outcome.secrets or outcome.cost_usd is not None:
            return None
        try:
            text = orjson.dumps(outcome.output)
        except orjson.JSONEncodeError:
            return None
        if len(text) > self._limit or text.count(b"[") + text.count(b"{") > MAX_DEPTH:
            return None
        output = orjson.loads(text)
        if self._promise is not None and not self._promise(output):
            return None
        builder.tainted |= outcome.tainted
        return builder.build(
            "success",
            output=output,
            http_status=outcome.http_status,
            metadata=outcome.metadata,
            attachments=outcome.attachments,
        )


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

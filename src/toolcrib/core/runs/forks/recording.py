"""Recorded results that a fork can reuse, and a model that repeats the answers of a run.

A call is the same if tool, revision and arguments are; a model request, if all of it is. A result recorded several
times is reused as often, first from the same position, then in order. Pure.
"""

from collections.abc import Iterable, Mapping
from typing import TypeAlias, TypeVar, cast

import orjson

from toolcrib.contracts import (
    InvalidInput,
    Json,
    JsonObject,
    ModelError,
    ModelFailed,
    ModelFinished,
    ModelStarted,
    RunEvent,
    SignalReceived,
)
from toolcrib.contracts.runs.forks import Fork
from toolcrib.contracts.runs.recordings import Recorded, RecordedAnswer, RecordedCall, RecordedFailure
from toolcrib.core.executor import CallRequest
from toolcrib.core.policy import CallPolicy, screen
from toolcrib.core.registry import compile_schema
from toolcrib.core.runs.journal.history import wait_key
from toolcrib.llm import Response, ScriptedModel, decode_response

_Answer: TypeAlias = RecordedAnswer | RecordedFailure
_TakenRecord = TypeVar("_TakenRecord", RecordedCall, _Answer)


class Recording:
    """What there is of another run.

    Args:
        facts: As they are kept with the fork.
        fork: What the fork was asked.
        taken: Numbers of the other run's events that the fork has taken already.
    """

    def __init__(self, facts: Recorded, fork: Fork, used_events: Iterable[int]) -> None:
        self.facts = facts
        self.fork = fork
        self._used_events = set(used_events)
        self._calls: dict[str, list[RecordedCall]] = {}
        for call in facts.calls:
            self._calls.setdefault(call.envelope.name, []).append(call)
        self._answers: dict[str, list[_Answer]] = {}
        for answer in (*facts.answers, *facts.failures):
            self._answers.setdefault(answer.request_hash, []).append(answer)
        self._signals = {wait_key(event.name, event.position): event for event in facts.signals}
        self._schemas = {hashed: compile_schema(schema) for hashed, schema in facts.schemas.items()}

    def call(self, call: CallRequest, policy: CallPolicy) -> RecordedCall | None:
        """The same call, which is taken now; null if there is none.

        Args:
            call: The call.
            policy: Of the fork: it may say which revision is called, and replace parts of arguments.
        """
        wanted = call.version or policy.versions.get(call.name)
        arguments = screen(policy.guardrails, "tool_input", call.input).value
        same = [
            known
            for known in self._calls.get(call.name, ())
            if wanted in (None, known.envelope.content_hash) and self._has_asked(known, arguments)
        ]
        return self._take(same, {known.event: known.envelope.position for known in same}, call.position)

    def answer(self, position: str, request_hash: str) -> _Answer | None:
        """The outcome of the same request, which is taken now; null if there is none."""
        same = self._answers.get(request_hash, [])
        return self._take(same, {known.event: known.end.position for known in same}, position)

    def has_found(self, key: str) -> bool:
        """Whether something was found out under a key, and not by a call.

        A call is taken by itself, so that what it has brought is known too.
        """
        is_call = any(call.envelope.position == key for call in self.facts.calls)
        return key in self.facts.found and not is_call

    def get_found(self, key: str) -> Json:
        """What was found out."""
        return self.facts.found[key]

    def signal(self, name: str) -> SignalReceived | None:
        """What came of a wait, by its key."""
        return self._signals.get(name)

    def nested_fork(self, position: str, tool: str) -> Fork | None:
        """What a nested run of a call is a fork of; null if there was none."""
        known = self.facts.nested.get(position)
        if known is None or known.tool != tool:
            return None
        return Fork(run_id=known.run_id, at=known.at, allow_writes=self.fork.allow_writes, anew=self.fork.anew)

    def _take(self, same: list[_TakenRecord], places: Mapping[int, str], position: str) -> _TakenRecord | None:
        left = [known for known in same if known.event not in self._used_events]
        chosen = next((known for known in left if places[known.event] == position), left[0] if left else None)
        if chosen is not None:
            self._used_events.add(chosen.event)
        return chosen

    def _has_asked(self, known: RecordedCall, arguments: Json) -> bool:
        """Whether a recorded call had these arguments, with the defaults that its tool had then."""
        if known.asked == arguments:
            return True
        schema = self._schemas.get(known.envelope.content_hash or "")
        if schema is None or not isinstance(arguments, dict):
            return False
        return known.asked == schema.with_defaults(cast("JsonObject", arguments))


def recorded_model(events: Iterable[RunEvent]) -> ScriptedModel:
    """A model that answers what the model of a run answered, in the order in which it was asked.

    Args:
        events: Of one run; or of several, such as the turns of a conversation, one after the other.

    Raises:
        InvalidInput: A model call has neither an answer nor a final failure.

    Example:
        first = await deals("Update all Acme Corp deals to Negotiation")
        model = recorded_model(first.events)
        again = Crib("memory://", models={"anthropic:claude-sonnet-4": model})  # makes the same plan
    """
    outcomes: dict[tuple[str, str], Response | ModelError | None] = {}
    for entry in events:
        match entry.event:
            case ModelStarted(position=position):
                outcomes.setdefault((entry.run_id, position), None)
            case ModelFinished() as event:
                outcomes[entry.run_id, event.position] = decode_response(orjson.dumps(event.response))
            case ModelFailed(retry_in_s=None) as event:
                outcomes[entry.run_id, event.position] = ModelError(event.kind, event.message, status=event.status)
            case _:
                pass
    answers: list[Response | ModelError] = []
    for (run_id, position), outcome in outcomes.items():
        if outcome is None:
            msg = f"run {run_id} has no answer to its model call {position!r}; resume it until it has ended"
            raise InvalidInput(msg)
        answers.append(outcome)
    return ScriptedModel(answers, name="recorded")

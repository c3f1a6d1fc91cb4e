"""What a run knows of other runs: of the one that it continues, and of the one that it is a fork of.

A call is the same if position, tool and arguments are, whatever the tool's version: an effect is not repeated because
its tool was changed. Reused results are in the run's own journal, marked with their origin. Pure.
"""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import TypeAlias, cast

from toolcrib.contracts import (
    CallFinished,
    CallStarted,
    Guardrail,
    Json,
    JsonObject,
    Run,
    SignalReceived,
    ToolEnvelope,
)
from toolcrib.contracts.runs.forks import Fork
from toolcrib.contracts.workflows import EarlierCall, Rerun, Takeover
from toolcrib.core.executor import CallRequest
from toolcrib.core.policy import CallPolicy, screen
from toolcrib.core.registry import compile_schema
from toolcrib.core.runs.context.ports import Nested
from toolcrib.core.runs.forks.fork import copy_envelope
from toolcrib.core.runs.forks.recording import Recording
from toolcrib.core.runs.interrupts.recovery import first_try, in_doubt
from toolcrib.core.runs.journal.history import History
from toolcrib.core.runs.journal.log import RunLog

Judge: TypeAlias = Callable[[CallStarted, datetime], Awaitable[ToolEnvelope | None]]
"""The envelope of a call that was started at a moment and must not be repeated, or null if it may be."""


class ReusedCalls:
    """What a run knows of the calls of another one.

    Args:
        facts: As they are kept with the run.
        rerun: What the run was asked.
    """

    def __init__(self, facts: Takeover, rerun: Rerun) -> None:
        self.facts = facts
        self.steps = {
            name: settled.model_copy(update={"reused": settled.reused or facts.run_id})
            for name, settled in facts.steps.items()
        }
        """The steps that stand as they are, by name."""
        self._rerun = rerun
        self._schemas = {hashed: compile_schema(schema) for hashed, schema in facts.schemas.items()}
        self._tries: dict[str, list[str]] = {}
        """Positions of further tries of a call, by that of the first, the last one first."""
        for position in reversed(facts.calls):
            if first_try(position) != position:
                self._tries.setdefault(first_try(position), []).append(position)

    def same(self, position: str, name: str, arguments: Json) -> EarlierCall | None:
        """The call at a position, if it was of the same tool with the same arguments."""
        earlier = self.facts.calls.get(position)
        if earlier is None or earlier.envelope.name != name:
            return None
        return earlier if self._with_defaults(earlier, arguments) == earlier.asked else None

    def outcome(self, call: CallRequest, guardrails: Sequence[Guardrail]) -> ToolEnvelope | None:
        """The envelope of the same call if it has succeeded, in whichever try.

        Args:
            call: The call.
            guardrails: Of the run: their content filters may replace parts of its arguments.
        """
        arguments = screen(guardrails, "tool_input", call.input).value
        for position in (call.position, *self._tries.get(call.position, ())):
            earlier = self.same(position, call.name, arguments)
            if earlier is not None and earlier.envelope.ok:
                return self.reuse_envelope(earlier.envelope, call.position)
        return None

    def find_call(self, call: CallRequest, guardrails: Sequence[Guardrail]) -> EarlierCall | None:
        """The same call."""
        return self.same(call.position, call.name, screen(guardrails, "tool_input", call.input).value)

    async def decide_repeat(
        self, call: CallRequest, guardrails: Sequence[Guardrail], judge: Judge
    ) -> ToolEnvelope | str | None:
        """The key of the same call, or an envelope if it must not be made again; null if there was none.

        It must not if any try of it is in doubt: all of them have the same key, and are one call for whoever can tell.

        Args:
            call: The call.
            guardrails: As of `outcome`.
            judge: Tells what becomes of a call in doubt.
        """
        earlier = self.find_call(call, guardrails)
        if earlier is None or earlier.intent is None:
            return None
        tries = (self.facts.calls[position] for position in self._tries.get(call.position, ()))
        for each in (earlier, *tries):
            if each.intent is not None and self.in_doubt(each):
                verdict = await judge(each.intent, each.envelope.t_start)
                if verdict is not None:
                    return self.apply_verdict(each, verdict, call.position)
        return earlier.intent.idempotency_key

    def reuse_envelope(self, envelope: ToolEnvelope, position: str) -> ToolEnvelope:
        """An envelope as this run has it, which has neither called nor paid."""
        made_in = envelope.reused or self.facts.run_id
        own = {"position": position, "reused": made_in, "attempts": 0, "cost_usd": None}
        return envelope.model_copy(update=own)

    def in_doubt(self, earlier: EarlierCall) -> bool:
        """Whether a call that failed has taken effect or may have, and must not simply be made once more."""
        return not self._rerun.repeat_unknown and in_doubt(earlier.envelope.side_effects, earlier.envelope.error)

    def apply_verdict(self, earlier: EarlierCall, verdict: ToolEnvelope, position: str) -> ToolEnvelope:
        """What is said of a call in doubt that is not made again."""
        envelope = self.reuse_envelope(verdict.model_copy(update={"reused": earlier.envelope.reused}), position)
        if verdict.error is None:
            return envelope
        message = (
            f"{verdict.name!r} was called at {verdict.position!r} in run {envelope.reused}, and whether it took effect "
            "is unknown; it writes and is not idempotent, so it was not repeated. Check it, settle it, and resume; or "
            "resume with repeat_unknown if it shall be called once more"
        )
        return envelope.model_copy(update={"error": verdict.error.model_copy(update={"message": message})})

    def rerun_of(self, nested: Nested) -> Rerun | None:
        """What a nested run of a workflow takes up: the nested run of the same call, in its last try."""
        if nested.instead_of is not None or nested.tool.definition.run_kind != "workflow":
            return None
        for position in (*self._tries.get(nested.position, ()), nested.position):
            earlier = self.same(position, nested.tool.name, nested.arguments)
            if earlier is not None and earlier.child_run_id is not None:
                return Rerun(run_id=earlier.child_run_id, repeat_unknown=self._rerun.repeat_unknown)
        return None

    def _with_defaults(self, earlier: EarlierCall, arguments: Json) -> Json:
        """The arguments with the defaults that the tool had then."""
        schema = self._schemas.get(earlier.envelope.content_hash or "")
        if schema is None or not isinstance(arguments, dict):
            return arguments
        return schema.with_defaults(cast("JsonObject", arguments))


class PriorRuns:
    """What a run knows of others.

    Args:
        run: The run.
        log: The writing end of its journal.
        history: What its journal knows.
    """

    def __init__(self, run: Run, log: RunLog, history: History) -> None:
        self.taken_over: ReusedCalls | None = None
        """What it knows of the calls of the run that it takes up, if it takes up one."""
        self.recording: Recording | None = None
        """What it may take of the run that it is a fork of, if it is one."""
        self._run = run
        self._log = log
        self._history = history

    @property
    def known(self) -> bool:
        """Whether there is a run of which it may take something."""
        return self.taken_over is not None or self.recording is not None

    def outcome(self, call: CallRequest, policy: CallPolicy, passes: Callable[[], bool]) -> ToolEnvelope | None:
        """What the same call has brought in another run, if it needs not be made; from now on the journal has it.

        Args:
            call: The call.
            policy: Of the run.
            passes: Tells whether the call may be made here without asking anybody: it matters if the rules are others.
        """
        if call.position in self._history.intents:
            return None
        judged_anew = self.recording is not None and self.recording.fork.changes.policy is not None
        if judged_anew and not passes():
            return None
        found = self._find_reused(call, policy) or self._find_recorded(call, policy)
        if found is not None:
            self._history.envelopes[call.position] = found.envelope
            self._log.add(found)
        return None if found is None else found.envelope

    def key_of(self, call: CallRequest, policy: CallPolicy) -> str | None:
        """The idempotency key that the same call had in the run that is taken up; a fork never uses it again."""
        earlier = None if self._keys is None else self._keys.find_call(call, policy.guardrails)
        return None if earlier is None or earlier.intent is None else earlier.intent.idempotency_key

    async def decide_repeat(self, call: CallRequest, policy: CallPolicy, judge: Judge) -> ToolEnvelope | str | None:
        """As `ReusedCalls.decide_repeat`; null in a fork, whose calls are its own."""
        return None if self._keys is None else await self._keys.decide_repeat(call, policy.guardrails, judge)

    async def find_or_make(self, key: str, make: Callable[[], Awaitable[Json]]) -> Json:
        """What the other run has found out under a key, if the fork may take it; else what there is to be found now."""
        recording = self.recording
        return recording.get_found(key) if recording is not None and recording.has_found(key) else await make()

    @property
    def progress(self) -> JsonObject:
        """What the other run told after the event at which it was cut, by key, in that order."""
        return {} if self.recording is None else self.recording.facts.found

    @property
    def seed(self) -> str:
        """What chance is made of: the run's id, in a fork that of the run at the beginning of all forks."""
        return self._run.run_id if self.recording is None else self.recording.facts.seed

    def signal(self, key: str) -> SignalReceived | None:
        """What came of a wait in the other run."""
        return None if self.recording is None else self.recording.signal(key)

    def rerun_of(self, nested: Nested) -> Rerun | None:
        """The run that a nested one takes up."""
        return None if self._keys is None else self._keys.rerun_of(nested)

    def fork_of(self, nested: Nested) -> Fork | None:
        """The run that a nested one is a fork of."""
        if nested.attempt > 1 or nested.instead_of is not None:
            return None
        return self.fork_at(nested.position, nested.tool.name)

    def fork_at(self, position: str, tool: str) -> Fork | None:
        """The run that a nested one of a call of a tool is a fork of."""
        return None if self.recording is None else self.recording.nested_fork(position, tool)

    @property
    def _keys(self) -> ReusedCalls | None:
        """What may be called once more under the key that it had: nothing in a fork."""
        return self.taken_over if self.recording is None else None

    def _find_reused(self, call: CallRequest, policy: CallPolicy) -> CallFinished | None:
        envelope = None if self.taken_over is None else self.taken_over.outcome(call, policy.guardrails)
        if envelope is None or envelope.content_hash in self._run.request.replaced:
            return None
        own = envelope.model_copy(update={"run_id": self._run.run_id})
        return CallFinished(position=call.position, envelope=own)

    def _find_recorded(self, call: CallRequest, policy: CallPolicy) -> CallFinished | None:
        recording = self.recording
        found = None if recording is None else recording.call(call, policy)
        if recording is None or found is None:
            return None
        envelope = copy_envelope(found.envelope, by=self._run.run_id, made_in=recording.facts.run_id)
        own = envelope.model_copy(update={"position": call.position})
        return CallFinished(position=call.position, envelope=own, taken_from=found.event)

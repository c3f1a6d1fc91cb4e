"""What one run knows of others: of the one that it takes up, and of the one that it is a fork of.

What is taken over from either stands in the run's own journal, as a call that the run has not made itself.
"""

from collections.abc import Awaitable, Callable

from toolcrib.contracts import CallFinished, Json, JsonObject, Run, SignalReceived, ToolEnvelope
from toolcrib.contracts.runs.forks import Fork
from toolcrib.contracts.workflows import Rerun
from toolcrib.core.executor import ToolCall
from toolcrib.core.policy import CallPolicy
from toolcrib.core.runs.context.ports import Nested
from toolcrib.core.runs.context.prior_runs import Judge, TakenOver
from toolcrib.core.runs.forks.fork import taken
from toolcrib.core.runs.forks.recording import Recording
from toolcrib.core.runs.journal.history import History
from toolcrib.core.runs.journal.log_part import RunLog


class Elsewhere:
    """What a run knows of others.

    Args:
        run: The run.
        log: The writing end of its journal.
        history: What its journal knows.
    """

    def __init__(self, run: Run, log: RunLog, history: History) -> None:
        self.taken_over: TakenOver | None = None
        """What it knows of the calls of the run that it takes up, if it takes up one."""
        self.recording: Recording | None = None
        """What it may take of the run that it is a fork of, if it is one."""
        self._run = run
        self._log = log
        self._history = history

    def outcome(self, call: ToolCall, policy: CallPolicy, passes: Callable[[], bool]) -> ToolEnvelope | None:
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
        found = self._taken_over(call, policy) or self._recorded(call, policy)
        if found is not None:
            self._history.envelopes[call.position] = found.envelope
            self._log.add(found)
        return None if found is None else found.envelope

    def key_of(self, call: ToolCall, policy: CallPolicy) -> str | None:
        """The idempotency key that the same call had in the run that is taken up; a fork never uses it again."""
        earlier = None if self._keys is None else self._keys.known(call, policy.guardrails)
        return None if earlier is None or earlier.intent is None else earlier.intent.idempotency_key

    async def made_before(self, call: ToolCall, policy: CallPolicy, judge: Judge) -> ToolEnvelope | str | None:
        """As `TakenOver.made_before`; null in a fork, whose calls are its own."""
        return None if self._keys is None else await self._keys.made_before(call, policy.guardrails, judge)

    async def found(self, key: str, make: Callable[[], Awaitable[Json]]) -> Json:
        """What the other run has found out under a key, if the fork may take it; else what there is to be found now."""
        recording = self.recording
        return recording.found(key) if recording is not None and recording.has_found(key) else await make()

    @property
    def told(self) -> JsonObject:
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
        return self.nested_at(nested.position, nested.tool.name)

    def nested_at(self, position: str, tool: str) -> Fork | None:
        """The run that a nested one of a call of a tool is a fork of."""
        return None if self.recording is None else self.recording.nested(position, tool)

    @property
    def _keys(self) -> TakenOver | None:
        """What may be called once more under the key that it had: nothing in a fork."""
        return self.taken_over if self.recording is None else None

    def _taken_over(self, call: ToolCall, policy: CallPolicy) -> CallFinished | None:
        envelope = None if self.taken_over is None else self.taken_over.outcome(call, policy.guardrails)
        if envelope is None or envelope.content_hash in self._run.request.replaced:
            return None
        own = envelope.model_copy(update={"run_id": self._run.run_id})
        return CallFinished(position=call.position, envelope=own)

    def _recorded(self, call: ToolCall, policy: CallPolicy) -> CallFinished | None:
        recording = self.recording
        found = None if recording is None else recording.call(call, policy)
        if recording is None or found is None:
            return None
        envelope = taken(found.envelope, by=self._run.run_id, made_in=recording.facts.run_id)
        own = envelope.model_copy(update={"position": call.position})
        return CallFinished(position=call.position, envelope=own, taken_from=found.event)

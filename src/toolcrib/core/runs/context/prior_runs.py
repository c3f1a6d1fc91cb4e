"""Calls of the run that this one takes up: which is the same, what came of it, and whether it may be made once more.

A call is the same if position, tool and arguments are, whatever version the tool has now: what has taken effect once is
not repeated because the tool was mended. Pure; what is known is handed in.
"""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import TypeAlias, cast

from toolcrib.contracts import CallStarted, Guardrail, Json, JsonObject, ToolEnvelope
from toolcrib.contracts.workflows import EarlierCall, Rerun, Takeover
from toolcrib.core.executor import ToolCall
from toolcrib.core.policy import screen
from toolcrib.core.registry import compile_schema
from toolcrib.core.runs.context.ports import Nested
from toolcrib.core.runs.interrupts.settling import first_try, in_doubt

Judge: TypeAlias = Callable[[CallStarted, datetime], Awaitable[ToolEnvelope | None]]
"""The envelope of a call that was started at a moment and must not be repeated, or null if it may be."""


class TakenOver:
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
        return earlier if self._filled(earlier, arguments) == earlier.asked else None

    def outcome(self, call: ToolCall, guardrails: Sequence[Guardrail]) -> ToolEnvelope | None:
        """The envelope of the same call if it has succeeded, in whichever try.

        Args:
            call: The call.
            guardrails: Of the run: their content filters may replace parts of its arguments.
        """
        arguments = screen(guardrails, "tool_input", call.input).value
        for position in (call.position, *self._tries.get(call.position, ())):
            earlier = self.same(position, call.name, arguments)
            if earlier is not None and earlier.envelope.ok:
                return self.taken(earlier.envelope, call.position)
        return None

    def known(self, call: ToolCall, guardrails: Sequence[Guardrail]) -> EarlierCall | None:
        """The same call."""
        return self.same(call.position, call.name, screen(guardrails, "tool_input", call.input).value)

    async def made_before(
        self, call: ToolCall, guardrails: Sequence[Guardrail], judge: Judge
    ) -> ToolEnvelope | str | None:
        """The key of the same call, or an envelope if it must not be made again; null if there was none.

        It must not if any try of it is in doubt: all of them have the same key, and are one call for whoever can tell.

        Args:
            call: The call.
            guardrails: As of `outcome`.
            judge: Tells what becomes of a call in doubt.
        """
        earlier = self.known(call, guardrails)
        if earlier is None or earlier.intent is None:
            return None
        tries = (self.facts.calls[position] for position in self._tries.get(call.position, ()))
        for each in (earlier, *tries):
            if each.intent is not None and self.in_doubt(each):
                verdict = await judge(each.intent, each.envelope.t_start)
                if verdict is not None:
                    return self.judged(each, verdict, call.position)
        return earlier.intent.idempotency_key

    def taken(self, envelope: ToolEnvelope, position: str) -> ToolEnvelope:
        """An envelope as this run has it, which has neither called nor paid."""
        made_in = envelope.reused or self.facts.run_id
        own = {"position": position, "reused": made_in, "attempts": 0, "cost_usd": None}
        return envelope.model_copy(update=own)

    def in_doubt(self, earlier: EarlierCall) -> bool:
        """Whether a call that failed has taken effect or may have, and must not simply be made once more."""
        return not self._rerun.repeat_unknown and in_doubt(earlier.envelope.side_effects, earlier.envelope.error)

    def judged(self, earlier: EarlierCall, verdict: ToolEnvelope, position: str) -> ToolEnvelope:
        """What is said of a call in doubt that is not made again."""
        taken = self.taken(verdict.model_copy(update={"reused": earlier.envelope.reused}), position)
        if verdict.error is None:
            return taken
        told = (
            f"{verdict.name!r} was called at {verdict.position!r} in run {taken.reused}, and whether it took effect is "
            "unknown; it writes and is not idempotent, so it was not repeated. Check it, settle it, and resume; or "
            "resume with repeat_unknown if it shall be called once more"
        )
        return taken.model_copy(update={"error": verdict.error.model_copy(update={"message": told})})

    def rerun_of(self, nested: Nested) -> Rerun | None:
        """What a nested run of a workflow takes up: the nested run of the same call, in its last try."""
        if nested.instead_of is not None or nested.tool.definition.run_kind != "workflow":
            return None
        for position in (*self._tries.get(nested.position, ()), nested.position):
            earlier = self.same(position, nested.tool.name, nested.arguments)
            if earlier is not None and earlier.child_run_id is not None:
                return Rerun(run_id=earlier.child_run_id, repeat_unknown=self._rerun.repeat_unknown)
        return None

    def _filled(self, earlier: EarlierCall, arguments: Json) -> Json:
        """The arguments with the defaults that the tool had then."""
        schema = self._schemas.get(earlier.envelope.content_hash or "")
        if schema is None or not isinstance(arguments, dict):
            return arguments
        return schema.with_defaults(cast("JsonObject", arguments))

"""How a run ended, with its events at hand: what the Python API returns."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property

from toolcrib.contracts import (
    AgentOutputs,
    CallFinished,
    Json,
    OpenQuestion,
    RunEvent,
    RunFinished,
    RunResult,
    ToolEnvelope,
    ToolError,
    Trace,
)
from toolcrib.core.runs.interrupts.signals import waiting_question
from toolcrib.core.runs.views.outputs import outputs_of
from toolcrib.core.runs.views.trace_part import trace_of
from toolcrib.infrastructure.store import Entry


def result_of(run_id: str, finish: RunFinished) -> RunResult:
    """How a run ended, as its last event tells it."""
    return RunResult(run_id=run_id, **{name: getattr(finish, name) for name in _OUTCOME})


_OUTCOME = tuple(RunResult.model_fields.keys() - {"run_id"})


@dataclass(frozen=True)
class Result:
    """A run that ended or waits."""

    summary: RunResult
    log: Sequence[Entry] = field(repr=False)

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self.summary.run_id

    @property
    def ok(self) -> bool:
        """Whether the run completed."""
        return self.summary.status == "completed"

    @property
    def output(self) -> Json:
        """The answer; what was reached if a limit ended the run."""
        return self.summary.output

    @property
    def error(self) -> ToolError | None:
        """Why the run failed."""
        return self.summary.error

    @property
    def cost_usd(self) -> Decimal | None:
        """US dollars; null means unknown."""
        return self.summary.cost_usd

    @property
    def envelopes(self) -> Sequence[ToolEnvelope]:
        """The envelopes of the run's calls, in the order in which they ended."""
        return [entry.event.envelope for entry in self.log if isinstance(entry.event, CallFinished)]

    @cached_property
    def question(self) -> OpenQuestion | None:
        """What it asks; `crib.questions.answer` answers it, and `of_run` there also tells what nested runs ask."""
        return waiting_question([entry.shown() for entry in self.log], ())

    @cached_property
    def outputs(self) -> AgentOutputs:
        """What an agent puts out, which every run has."""
        return outputs_of(self.log)

    @cached_property
    def events(self) -> Sequence[RunEvent]:
        """The events of the run, in order."""
        return tuple(entry.shown() for entry in self.log)

    @cached_property
    def trace(self) -> Trace:
        """What happened, step by step; `Crib.trace` also has nested runs."""
        return trace_of(self.events)

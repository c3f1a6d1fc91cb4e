"""Evaluations: a dataset of tasks, the candidates to compare, and the results.

A candidate is a version of an agent or another tool, with its own model, another model, or scripted turns.
"""

from decimal import Decimal
from typing import Annotated, Literal, Self, TypeAlias

from pydantic import Field, model_validator

from toolcrib.contracts.base.base import Contract, Json, JsonObject, JsonSchema, Usd
from toolcrib.contracts.runs.runs import RunStatus, StopReason
from toolcrib.contracts.tools.agent_definitions import AgentDefinition
from toolcrib.contracts.tools.tools import ToolDefinition

SCRIPTED = "scripted"
"""The model of a candidate that answers from scripts."""


class ExactCheck(Contract):
    """The answer is this value."""

    kind: Literal["exact"] = "exact"
    value: Json


class ContainsCheck(Contract):
    """The answer has this text in it."""

    kind: Literal["contains"] = "contains"
    text: str = Field(min_length=1)
    ignore_case: bool = True


class PathCheck(Contract):
    """The part of the output that a JSONPath selects is this value."""

    kind: Literal["path"] = "path"
    path: str
    equals: Json


class SchemaCheck(Contract):
    """The answer fits a JSON Schema."""

    kind: Literal["schema"] = "schema"
    fits: JsonSchema


class CalledCheck(Contract):
    """A tool was called; denied calls do not count."""

    kind: Literal["called"] = "called"
    tool: str
    input: JsonObject = Field(default_factory=dict)
    """Arguments that the call must have had, among others."""
    times: int | None = Field(default=None, ge=0)
    """At least once if null."""


class NotCalledCheck(Contract):
    """A tool was not called."""

    kind: Literal["not_called"] = "not_called"
    tool: str


class ToolOutputCheck(Contract):
    """The output of the last successful call of a tool."""

    kind: Literal["tool_output"] = "tool_output"
    tool: str
    path: str = "$"
    """JSONPath inside the output."""
    equals: Json


class CostCheck(Contract):
    """The run cost less than this; a cost that is not known is not less."""

    kind: Literal["cost_below"] = "cost_below"
    usd: Usd = Field(gt=0)


class JudgeCheck(Contract):
    """An agent judges the answer: `{"score": 0 to 1, "reason": text}`, or `yes` or `no`."""

    kind: Literal["judge"] = "judge"
    agent: str
    """`name` or `name@range`."""
    question: str
    """What the judge has to assess."""
    at_least: float = Field(default=0.5, ge=0, le=1)


EvaluationCheck: TypeAlias = Annotated[
    ExactCheck
    | ContainsCheck
    | PathCheck
    | SchemaCheck
    | CalledCheck
    | NotCalledCheck
    | ToolOutputCheck
    | CostCheck
    | JudgeCheck,
    Field(discriminator="kind"),
]


class EvaluationCall(Contract):
    """A call of a tool."""

    tool: str
    input: JsonObject = Field(default_factory=dict)


class ScriptedTurn(Contract):
    """One answer of a scripted model: text, calls, or both."""

    text: str = ""
    calls: tuple[EvaluationCall, ...] = ()


class EvaluationTask(Contract):
    """A task, and the checks that its result must pass."""

    id: str = Field(min_length=1)
    input: str | JsonObject
    """The message of an agent, the task of an agentic tool; or the whole input of any tool."""
    context: JsonObject = Field(default_factory=dict)
    """Facts for an agent, in addition to the message."""
    setup: tuple[EvaluationCall, ...] = ()
    """Calls that are made before each run of the task."""
    script: tuple[ScriptedTurn, ...] = ()
    """What a scripted model answers."""
    checks: tuple[EvaluationCheck, ...] = Field(min_length=1)
    """All must hold, and the run must have completed."""


class EvaluationCandidate(Contract):
    """What the dataset is run with."""

    tool: str
    """`name` or `name@range` of an agent, an agentic tool or any other."""
    model: str | None = None
    """`provider:model` in place of the definition's; `scripted` for the tasks' scripts."""
    scripts: dict[str, tuple[ScriptedTurn, ...]] = Field(default_factory=dict)
    """Scripts by task, in place of the tasks' own."""

    @property
    def label(self) -> str:
        """Its name in comparisons."""
        return self.tool if self.model is None else f"{self.tool} with {self.model}"


class EvaluationDataset(Contract):
    """Tasks, and what they need."""

    name: str = Field(min_length=1)
    description: str = ""
    tools: tuple[ToolDefinition, ...] = ()
    """Saved before the first task."""
    agents: tuple[AgentDefinition, ...] = ()
    """Saved after the tools."""
    candidates: tuple[EvaluationCandidate, ...] = ()
    """Used if the caller names no others."""
    tasks: tuple[EvaluationTask, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        ids = [task.id for task in self.tasks]
        twice = next((one for one in ids if ids.count(one) > 1), None)
        if twice is not None:
            msg = f"two tasks have the id {twice!r}; give each its own"
            raise ValueError(msg)
        return self


class CheckOutcome(Contract):
    """Whether a check passed."""

    kind: str
    passed: bool
    reason: str = ""
    """Why not; of a judge, always."""


class EvaluationOutcome(Contract):
    """One run of one task by one candidate."""

    task: str
    candidate: str
    """Its label."""
    attempt: int
    run_id: str | None = None
    """Null if no run was made because the setup failed."""
    status: RunStatus | None = None
    stop_reason: StopReason | None = None
    passed: bool
    checks: tuple[CheckOutcome, ...] = ()
    answer: Json = None
    error: str | None = None
    cost_usd: Usd | None = None
    """Null if it is not known."""
    tokens: int = 0
    steps: int = 0
    """Answers of the model."""
    tool_calls: int = 0
    duration_s: float = 0.0


class EvaluationFigures(Contract):
    """The figures of several runs."""

    runs: int
    passed: int
    cost_usd: Usd | None
    """Of all runs; null if unknown for all."""
    cost_unknown: bool
    """The cost of at least one run is unknown: `cost_usd` is a lower bound."""
    tokens: int
    """Of all runs, like the next two."""
    steps: int
    tool_calls: int
    p50_s: float
    """Seconds of a run that half of them do not exceed."""
    p95_s: float

    @property
    def success(self) -> Decimal:
        """The share of the runs that passed, between 0 and 1."""
        return Decimal(self.passed) / self.runs


class CandidateResult(Contract):
    """The results of one candidate."""

    candidate: str
    total: EvaluationFigures
    tasks: dict[str, EvaluationFigures]
    """By task, in the order of the dataset."""


class EvaluationChange(Contract):
    """A task that a candidate passes more or less often than the base does."""

    kind: Literal["regression", "improvement"]
    task: str
    candidate: str
    passed: int
    base_passed: int
    runs: int


class Evaluation(Contract):
    """The candidates side by side."""

    dataset: str
    base: str
    """Label of the candidate that the others are compared with."""
    candidates: tuple[CandidateResult, ...]
    changes: tuple[EvaluationChange, ...]
    """By candidate, then by task."""
    outcomes: tuple[EvaluationOutcome, ...]
    """By candidate, task and attempt."""

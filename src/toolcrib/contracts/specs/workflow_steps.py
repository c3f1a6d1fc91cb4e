"""The parts of a workflow: steps over tools, waits, approvals, conditions, and the vocabulary of steps.

A workflow is a tool of kind `workflow`: it is stored, versioned, permitted, called and journaled like every other
tool. Expressions (`${…}`) can read `input`, the outputs of steps by name, `steps.NAME` (the state of a step), and in
some places `item`, `index`, `output` and `error`. The names that they read determine the edges of the graph. The
vocabulary gives names to tools and conditions that many workflows use.

Example:
    await crib.steps.save(StepRegistration(name="deals.find", tool="search_deals"))
    await crib.conditions.save(ConditionBinding(name="is_acme", parameters=("name",), expression="${name == 'Acme'}"))
    find = WorkflowStep(name="found", handler_ref="deals.find", input={"company": "Acme"})
    await crib.workflows.publish(WorkflowDefinition(name="list_acme", steps=(find,)))
"""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import AliasChoices, Field, field_validator

from toolcrib.contracts.base.base import Contract, Json, JsonObject, RetryPolicy
from toolcrib.contracts.base.envelope import PinnedHandle
from toolcrib.contracts.base.errors import ErrorCode
from toolcrib.contracts.base.implementations import Implementation
from toolcrib.contracts.providers.providers import NAME_PATTERN
from toolcrib.contracts.specs.agents import AgenticStatus
from toolcrib.contracts.specs.guardrails import Guardrail
from toolcrib.contracts.specs.models_and_limits import LONGEST_CALL_S, Limits

StepName: TypeAlias = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=100)]
"""A name that expressions can read."""


class StepRegistration(Contract):
    """A name for a tool, with mappings that hold where a step gives none. A step names it as its `handler_ref`."""

    name: str = Field(pattern=NAME_PATTERN)
    """Unique per realm."""
    tool: str = Field(validation_alias=AliasChoices("tool", "tool_ref", "toolRef"))
    """`name` or `name@range`."""
    description: str = ""
    input_mapping: JsonObject = Field(
        default_factory=dict, validation_alias=AliasChoices("input_mapping", "inputMapping")
    )
    """Arguments that a step need not give, with `${…}` as in the step."""
    output_mapping: JsonObject = Field(
        default_factory=dict, validation_alias=AliasChoices("output_mapping", "outputMapping")
    )
    """What a step without an `output` puts out, with `${…}` over `output`; empty for what the tool has put out."""
    enabled: bool = True


class ConditionBinding(Contract):
    """A name for a condition. A step names it as `{"ref": NAME, "input": {…}}`."""

    name: str = Field(pattern=NAME_PATTERN)
    """Unique per realm."""
    description: str = ""
    parameters: tuple[StepName, ...] = ()
    """Names that the expression reads, and that each use gives values; nothing else can be read."""
    expression: str
    """`${…}` over the parameters."""
    enabled: bool = True


Join: TypeAlias = Literal["all", "any", "always"]
"""When a step runs whose dependencies have come to their ends: all of them well (one that its own condition has left
out counts as well; of those that are known by one name, one is enough); at least one succeeded; in any case."""
Derived: TypeAlias = Literal["side_effects", "output_schema"]
ItemFailure: TypeAlias = Literal["fail", "continue"]
OnError: TypeAlias = "Literal['fail', 'continue'] | GoTo"
StepKind: TypeAlias = Literal["tool", "agent", "workflow", "handler", "wait", "approval", "value"]

SCOPE: Final = frozenset({"input", "steps", "item", "index", "output", "error"})
"""Names that expressions read and no step can have."""

AGENT_HANDLERS: Final = frozenset({"ai.invoke_agent", "quantum.ai.invokeAgent"})
"""Handlers that ask an agent: `input` has `agent_ref`, `prompt`, and `context`, whose names the prompt reads."""

AGENTIC_HANDLERS: Final = frozenset({"agentic.plan", "agentic.step", "agentic.format"})
"""Handlers that do a part of the deterministic agentic tool that `input` has as `tool`."""

BUILT_IN_HANDLERS: Final = AGENT_HANDLERS | AGENTIC_HANDLERS
"""Handlers that come with the crib; no `StepRegistration` has such a name."""

WORKFLOW_LIMITS: Final = Limits.model_construct(
    max_tool_calls=100_000,
    timeout_s=LONGEST_CALL_S,
    max_parallel_calls=16,
    max_requests=1_000_000,
)
"""What a run of a workflow may spend unless it says something else: dollars and tokens as everywhere."""


_FIELDS: Final[Mapping[StepKind, str]] = {
    "tool": "tool",
    "agent": "agent",
    "workflow": "workflow",
    "handler": "handler_ref",
    "wait": "wait",
    "approval": "approval",
}
"""The field that makes a step what it is."""


class GoTo(Contract):
    """On a failure, run another step, which sees it as `error`; it runs only if a step goes to it."""

    go_to: StepName = Field(validation_alias=AliasChoices("go_to", "goTo"))


class ForEach(Contract):
    """Run a step once for each element of a list; its output is the list of outputs, in order."""

    items: str
    """`${…}` that gives the list; the step reads its element as `item` and the place of it as `index`."""
    max_concurrency: int = Field(default=8, ge=1, le=1000)
    """Elements that are worked on at once."""
    on_item_error: ItemFailure = "fail"
    """`fail`: no other element is begun, and the step fails. `continue`: the output of the element is null, and the
    step has status `partial`."""


class StepRetry(RetryPolicy):
    """How often a step is tried again after its tool has failed, retries of the tool's own included."""

    codes: tuple[ErrorCode, ...] = ()
    """Codes after which it is; empty for all but those that would come again: invalid arguments, a denial, missing
    credentials, and an effect that is not known."""


MAX_WAIT_S: Final = 31_536_000.0
"""Seconds of the longest wait: a year."""

_EVENT: Final = "event:"


def event_signal(name: str) -> str:
    """The name under which the journal has a signal that a step waits for.

    It is of its own kind, so that who may send one can neither decide on a call with it nor answer for a client.
    """
    return f"{_EVENT}{name}"


class Wait(Contract):
    """Let time pass, or wait for a signal from outside. A waiting run uses no memory."""

    seconds: float | str | None = None
    """Or `${…}`."""
    until: str | None = None
    """A moment of RFC 3339, or `${…}` that gives one."""
    signal: StepName | None = None
    """Name of what comes from outside; its payload is the step's output."""
    timeout_s: float | None = Field(default=None, gt=0, le=MAX_WAIT_S)
    """For `signal`: seconds after which the step fails; null for never."""


class StepApproval(Contract):
    """A person decides. Approved, the step puts out `show`, as the person edited it; rejected, it fails."""

    message: str
    """What is asked, with `${…}`."""
    show: JsonObject = Field(default_factory=dict)
    """What the person sees and may change, with `${…}`."""
    expires_s: float | None = Field(default=None, gt=0, le=MAX_WAIT_S)
    """Seconds after which it counts as rejected; null for never."""


class ConditionUse(Contract):
    """A condition by its name."""

    ref: str
    """Name of a `ConditionBinding`."""
    input: JsonObject = Field(default_factory=dict)
    """Its parameters, with `${…}`."""


class WorkflowStep(Contract):
    """One node of the graph.

    What it does is one of `tool`, `agent`, `workflow`, `handler_ref`, `wait` and `approval`. A step with none of them
    makes a value of its `output`.
    """

    name: StepName
    """Unique in the workflow; expressions, edges and the journal name it."""
    title: str | None = None
    description: str = ""

    tool: str | None = None
    """`name` or `name@range` of a tool of any kind."""
    agent: str | None = None
    """The same of an agent; `input` is what it is asked: `message`, `context`."""
    workflow: str | None = None
    """The same of a workflow, which runs as a nested run."""
    handler_ref: str | None = Field(default=None, validation_alias=AliasChoices("handler_ref", "handlerRef"))
    """Name in the workflow vocabulary: a `StepRegistration`, or one that comes with the crib (`ai.invoke_agent`)."""
    wait: Wait | None = None
    approval: StepApproval | None = None

    input: JsonObject = Field(default_factory=dict)
    """Arguments: JSON with `${…}` in its strings."""
    output: Json = None
    """What later steps read, with `${…}` over `output`; null for what the tool has put out."""
    save_as: StepName | None = Field(default=None, validation_alias=AliasChoices("save_as", "saveAs"))
    """Name under which expressions read it, if not its own."""

    depends_on: tuple[StepName, ...] = Field(default=(), validation_alias=AliasChoices("depends_on", "dependsOn"))
    """Steps that come before it, besides those that its expressions read."""
    join: Join = "all"
    condition: str | ConditionUse | None = None
    """`${…}`: if it does not hold, the step is skipped, and its output is null."""
    for_each: ForEach | None = Field(default=None, validation_alias=AliasChoices("for_each", "forEach"))
    retry: StepRetry = StepRetry.model_construct()
    timeout_s: float | None = Field(default=None, gt=0, le=LONGEST_CALL_S)
    """Seconds of one try, waiting for people excluded; the tool's own if null."""
    on_error: OnError = Field(default="fail", validation_alias=AliasChoices("on_error", "onError"))
    """`fail`: nothing else is begun, and the run fails. `continue`: its output is null, and what depends on it runs."""
    pins: tuple[PinnedHandle, ...] = ()
    """Of an agent's node, besides those of the agent: `${NAME.handles.PIN}`."""
    principal_ref: str | None = None
    """Service account that makes its calls; the run's principal if null."""

    @field_validator("for_each", mode="before")
    @classmethod
    def _short(cls, given: Any) -> Any:
        """The list alone is enough."""
        return {"items": given} if isinstance(given, str) else given

    @property
    def kind(self) -> StepKind:
        """What it does."""
        for kind, field in _FIELDS.items():
            if getattr(self, field) is not None:
                return kind
        return "value"

    def callee(self, handlers: Mapping[str, StepRegistration]) -> str | None:
        """The tool that it calls, as the definition names it; null if it calls none.

        Args:
            handlers: The registrations by name.
        """
        if self.handler_ref is None:
            return self.tool or self.agent or self.workflow
        if self.handler_ref in AGENT_HANDLERS:
            named = self.input.get("agent_ref", self.input.get("agentRef"))
            return named if isinstance(named, str) else None
        if self.handler_ref in AGENTIC_HANDLERS:
            named = self.input.get("tool")
            return named if isinstance(named, str) else None
        registered = handlers.get(self.handler_ref)
        return None if registered is None else registered.tool

    @property
    def known_as(self) -> str:
        """The name under which expressions read its output."""
        return self.save_as or self.name

    @property
    def goes_to(self) -> str | None:
        """The step that runs if it fails."""
        return self.on_error.go_to if isinstance(self.on_error, GoTo) else None


class WorkflowParts(Contract):
    """What a workflow is made of."""

    status: AgenticStatus = "active"
    steps: Annotated[tuple[WorkflowStep, ...], Field(min_length=1, max_length=5000)]
    output: Json = None
    """What it puts out, with `${…}`; null for the outputs of the steps that nothing depends on, by name."""
    limits: Limits = WORKFLOW_LIMITS
    guardrails: tuple[Guardrail, ...] = ()
    """Rules for all of its calls, those of nested runs included."""


class WorkflowImplementation(Implementation, WorkflowParts):
    """A workflow as what its tool is made of, with what it was checked against when it was published."""

    kind: Literal["workflow"] = "workflow"
    bound: dict[str, str] = Field(default_factory=dict)
    """Content hashes of the tools that its steps name, by reference. A run takes a newer one only if nothing about it
    can break the graph."""
    handlers: dict[str, StepRegistration] = Field(default_factory=dict)
    """The registrations that its steps name, as they were."""
    conditions: dict[str, ConditionBinding] = Field(default_factory=dict)
    """The conditions that its steps name, as they were."""
    derived: tuple[Derived, ...] = ()
    """Fields of the definition that its author has left to publishing."""

    @property
    def callees(self) -> tuple[str, ...]:
        """The tools that its steps call, each once, in their order."""
        named = (step.callee(self.handlers) for step in self.steps)
        return tuple(dict.fromkeys(ref for ref in named if ref is not None))

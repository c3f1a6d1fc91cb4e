"""The definition of a workflow as an author writes it: one flat document; and a call of an agent as a step of its own.

The document is stored as a tool of kind `workflow`. Only this module divides its fields between the tool and the
implementation; the conversion is lossless in both directions, except for what publishing adds.

Example:
    steps = ({"name": "deals", "tool": "search_deals", "input": {"company": "Acme"}},)
    await crib.workflows.publish(WorkflowDefinition(name="list_acme", steps=steps))
"""

from typing import Any, Final, Self

from pydantic import Field

from toolcrib.contracts.base.base import Contract, JsonObject, JsonSchema
from toolcrib.contracts.base.envelope import SideEffects
from toolcrib.contracts.base.errors import InvalidDefinition
from toolcrib.contracts.specs.models_and_limits import LONGEST_CALL_S
from toolcrib.contracts.specs.workflow_steps import StepName, WorkflowImplementation, WorkflowParts
from toolcrib.contracts.tools.agent_definitions import CallRules, Identity
from toolcrib.contracts.tools.tools import ToolDefinition

WORKFLOW_CATEGORY: Final = "workflow"


class WorkflowDefinition(WorkflowParts, CallRules, Identity):
    """Everything that an author says about a workflow."""

    category: str = WORKFLOW_CATEGORY
    input_schema: JsonSchema = Field(default_factory=lambda: {"type": "object"})
    output_schema: JsonSchema | None = None
    side_effects: SideEffects | None = None
    """The most that its steps may do; what their tools do if null."""

    def document(self) -> JsonObject:
        """What differs from the defaults, as people write and read it: what it is called and takes, then its steps."""
        fields = self.model_dump(mode="json", exclude_defaults=True)
        parts, rules = WorkflowParts.model_fields, CallRules.model_fields
        return {name: fields[name] for name in sorted(fields, key=lambda name: (name in parts, name in rules))}

    def tool(self) -> ToolDefinition:
        """The workflow as a tool. Without `side_effects` it counts as writing, until it is published."""
        inside: dict[str, Any] = {name: getattr(self, name) for name in WorkflowParts.model_fields}
        around: dict[str, Any] = {name: getattr(self, name) for name in _AROUND}
        if self.side_effects is not None:
            around["side_effects"] = self.side_effects
        return ToolDefinition(
            **around,
            timeout_s=min(self.limits.timeout_s, LONGEST_CALL_S),
            implementation=WorkflowImplementation(**inside),
        )

    @classmethod
    def of(cls, definition: ToolDefinition) -> Self:
        """The workflow that a tool is.

        Raises:
            InvalidDefinition: The tool is no workflow.
        """
        inside = definition.implementation
        if not isinstance(inside, WorkflowImplementation):
            msg = f"tool {definition.name!r} is of kind {inside.kind!r}, not a workflow"
            raise InvalidDefinition(msg)
        around: dict[str, Any] = {name: getattr(definition, name) for name in _AROUND - set(inside.derived)}
        if "side_effects" in definition.model_fields_set - set(inside.derived):
            around["side_effects"] = definition.side_effects
        return cls(
            **around,
            **{name: getattr(inside, name) for name in WorkflowParts.model_fields},
        )


_AROUND: Final = WorkflowDefinition.model_fields.keys() - WorkflowParts.model_fields.keys() - {"side_effects"}
"""What the tool says itself. Its time-out follows from the limits."""


class PastCall(Contract):
    """Which call is meant: by its id, by its place, or by the handle that it has filled."""

    run_id: str
    """The agent's run, or the run of the workflow in which the agent was asked."""
    node: StepName | None = None
    """The step that has asked the agent; needed with the workflow's run if several have."""
    call_id: str | None = None
    position: str | None = None
    """Of the call in the agent's run: `t1.c2`."""
    pin: str | None = None
    """A handle of the step or of its agent: the call that has filled it, if no other is named. What reads the handle
    will read the new step; without one, what reads any handle that the call has filled."""


class Materialized(Contract):
    """What materializing a call has changed. It is one revision of the workflow's draft, and nothing else."""

    definition: WorkflowDefinition
    """As the draft has it now."""
    step: str
    """The new step."""
    node: str
    """The step that has asked the agent; it stays as it was, with its handles."""
    tool: str
    """`name@version` of the call."""
    call_id: str
    run_id: str
    """The agent's run."""
    rewired: tuple[str, ...] = ()
    """JSON pointers into the definition: the expressions that read the new step instead of a handle."""
    left: tuple[str, ...] = ()
    """JSON pointers to where the handles are read as a whole, or at a computed place: that was not touched."""
    warnings: tuple[str, ...] = ()
    note: str
    """What was done, as the draft says it."""
    draft_revision: int = Field(ge=1)
    before_revision: int | None = None
    """The revision of the draft that was changed; null if there was none, and the published workflow was."""

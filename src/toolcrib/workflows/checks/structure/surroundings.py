"""What a definition is held against: the tools, the vocabulary and the accounts of a realm."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from toolcrib.contracts import ToolRevision
from toolcrib.contracts.workflows import (
    ConditionBinding,
    ConditionUse,
    StepRegistration,
    WorkflowDefinition,
    WorkflowImplementation,
    WorkflowParts,
)
from toolcrib.core.policy import Accounts
from toolcrib.core.registry import Named, Registry, lock_of

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What there is in a realm at this moment."""

    realm: str
    registry: Registry
    steps: Named[StepRegistration]
    conditions: Named[ConditionBinding]
    accounts: Accounts
    instead: Mapping[str, ToolRevision] = field(default_factory=dict[str, ToolRevision])
    """What references shall mean in place of what they mean now: a proposed revision, or the one that runs take."""

    def bind(self, definition: WorkflowDefinition) -> WorkflowImplementation:
        """A workflow with what it names, as that is now; what there is not is left out."""
        handlers = {step.handler_ref for step in definition.steps if step.handler_ref is not None}
        conditions = {step.condition.ref for step in definition.steps if isinstance(step.condition, ConditionUse)}
        parts = {name: getattr(definition, name) for name in WorkflowParts.model_fields}
        named = WorkflowImplementation(
            **parts,
            handlers=_found({name: self.steps.find(self.realm, name) for name in sorted(handlers)}),
            conditions=_found({name: self.conditions.find(self.realm, name) for name in sorted(conditions)}),
        )
        return named.model_copy(update={"bound": lock_of(named.callees, self.registry, self.realm)})

    def tool(self, ref: str) -> ToolRevision | None:
        """The tool that a reference means, or null."""
        return self.instead.get(ref) or self.registry.named(self.realm, ref)

    def callees(self, implementation: WorkflowImplementation) -> Mapping[str, ToolRevision]:
        """The tools that it calls, by reference; those that there are."""
        return _found({ref: self.tool(ref) for ref in implementation.callees})


def _found(among: Mapping[str, _T | None]) -> dict[str, _T]:
    return {name: one for name, one in among.items() if one is not None}

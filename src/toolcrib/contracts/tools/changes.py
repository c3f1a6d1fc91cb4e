"""The differences between two definitions of a tool, classified by their effect on callers; the drift of bound tools.

Each difference has a class, and the worst one is the class of the change. The rules are in
`core.registry.changes.classification`. Drift is what has changed in an agentic tool's tools since its prompt was made.
"""

from typing import Final, Literal, TypeAlias

from toolcrib.contracts.base.base import Contract

ChangeClass: TypeAlias = Literal["description_only", "additive", "narrowing", "breaking", "effect_changing"]
"""description_only: only texts differ. additive: every call that worked still works, with an output as promised.
narrowing: some calls are refused that worked, or less is promised of their output. breaking: calls that worked fail, or
their output cannot be read as before. effect_changing: the same call does something else, somewhere else, or under
other conditions."""

CHANGE_CLASSES: Final[tuple[ChangeClass, ...]] = (
    "description_only",
    "additive",
    "narrowing",
    "breaking",
    "effect_changing",
)
"""From harmless to dangerous."""

HARMFUL: Final[frozenset[ChangeClass]] = frozenset({"narrowing", "breaking", "effect_changing"})
"""Classes that are never adopted from another system without a person."""

ChangePart: TypeAlias = Literal["text", "input", "output", "effect"]
ChangeKind: TypeAlias = Literal["added", "removed", "required", "changed"]


class Difference(Contract):
    """One thing that is different."""

    part: ChangePart
    change_class: ChangeClass
    kind: ChangeKind = "changed"
    """What happened to the place."""
    place: str
    """Dotted path of the property, `filter.stage[]` for the items of a list; or the name of the definition's field."""
    message: str
    """The difference in words."""


class ToolChange(Contract):
    """Everything that is different between two definitions of one tool."""

    tool: str
    before: str
    """Content hash."""
    after: str
    """Content hash."""
    differences: tuple[Difference, ...] = ()

    @property
    def worst(self) -> ChangeClass | None:
        """The class of the whole change; null if there is none."""
        classes = {found.change_class for found in self.differences}
        return next((known for known in reversed(CHANGE_CLASSES) if known in classes), None)

    @property
    def is_harmful(self) -> bool:
        """Whether those who call the tool have to look."""
        return self.worst in HARMFUL


DriftKind: TypeAlias = Literal["added", "removed", "changed", "missing"]


class DriftChange(Contract):
    """One difference."""

    subject: str
    """The tool, or `reference_data.NAME`."""
    kind: DriftKind
    """`missing`: the whole subject is not there any more."""
    place: str | None = None
    """Dotted path of the property, `filter.stage[]` for the items of a list; null for the whole subject."""
    message: str
    """The difference in words."""
    change_class: ChangeClass = "breaking"
    """How much it matters to calls of the tool."""


class DriftReport(Contract):
    """An agentic tool compared with its tools as they are now."""

    tool: str
    """`name@version` of the agentic tool."""
    content_hash: str
    drifted: bool
    changes: tuple[DriftChange, ...] = ()

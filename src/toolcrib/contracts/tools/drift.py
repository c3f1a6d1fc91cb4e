"""What has changed in the tools of an agentic tool since its prompt was made."""

from typing import Literal, TypeAlias

from toolcrib.contracts.base.base import Contract
from toolcrib.contracts.tools.changes import ChangeClass

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
    """An agentic tool held against its tools as they are now."""

    tool: str
    """`name@version` of the agentic tool."""
    content_hash: str
    drifted: bool
    changes: tuple[DriftChange, ...] = ()

"""Whom a tool concerns: what is bound to it, directly or through others, and the runs that have pinned it."""

from typing import Literal, TypeAlias

from toolcrib.contracts.base.base import Contract
from toolcrib.contracts.runs.runs import RunStatus
from toolcrib.contracts.tools.changes import ToolChange
from toolcrib.contracts.tools.tools import LifeCycle
from toolcrib.contracts.workflows.graphs import GraphEdge

Verdict: TypeAlias = Literal["unaffected", "may_break", "breaks"]
"""What a proposed change does to a dependent: nothing that can be seen, what cannot be told, or certain harm."""


class Dependent(Contract):
    """A definition that is bound to the tool."""

    name: str
    """`name@version` of a tool; the name of a provider."""
    kind: str
    """Kind of its implementation; `provider` for one whose reference data the tool reads."""
    reference: str
    """How the definition names what it is bound to: `name`, `name@range`, a pattern, `group:…`."""
    satisfied: bool
    """Whether the reference takes this version of the tool; if not, it is bound to another one or to none."""
    path: tuple[str, ...]
    """Names from the dependent to the tool: two if it is bound directly."""
    verdict: Verdict | None = None
    """What the proposed change does to it; null if none is proposed. To a workflow that is held: what it would do once
    that is published again."""
    held: bool = False
    """Of a workflow: its runs go on with the revision that it was published with, whatever the change does."""
    reasons: tuple[str, ...] = ()
    """Of a workflow, why it is so judged."""
    edges: tuple[GraphEdge, ...] = ()
    """Of a workflow, the edges that the change breaks."""

    @property
    def direct(self) -> bool:
        """Whether it names the tool itself."""
        return len(self.path) == 2


class PinnedRun(Contract):
    """A run that has not ended and goes on with a certain revision of the tool."""

    run_id: str
    tool: str
    """`name@version` of what it runs."""
    status: RunStatus
    content_hash: str
    """The revision that it has pinned."""


class ImpactReport(Contract):
    """Everything that a change of a tool concerns."""

    tool: str
    """`name@version`."""
    content_hash: str
    status: LifeCycle
    dependents: tuple[Dependent, ...] = ()
    """Direct ones first, then by name."""
    runs: tuple[PinnedRun, ...] = ()
    """Oldest first."""
    proposed: ToolChange | None = None
    """The change that the verdicts are about."""

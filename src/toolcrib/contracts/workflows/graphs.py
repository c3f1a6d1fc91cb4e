"""The graph of a workflow with its problems, the impact of changes to a tool, drafts, and publications.

A graph shows broken parts and marks them as problems. An impact report lists what is bound to a tool, directly or not,
and the runs that have pinned it.
"""

from typing import Literal, TypeAlias

from pydantic import Field

from toolcrib.contracts.base.base import Contract, JsonObject, Timestamp
from toolcrib.contracts.base.envelope import SideEffects
from toolcrib.contracts.runs.runs import RunStatus
from toolcrib.contracts.specs.workflow_steps import StepKind
from toolcrib.contracts.tools.changes import ToolChange
from toolcrib.contracts.tools.tools import LifeCycle, ToolRevision
from toolcrib.contracts.workflows.workflow_definitions import WorkflowDefinition

EdgeKind: TypeAlias = Literal["order", "data", "error"]
"""`depends_on`; an expression that reads an output; `go_to`."""
GraphState: TypeAlias = Literal["ok", "held", "broken"]
"""ok: as it was published, or nothing has changed that could break it. held: a tool that it is bound to has changed in
a way that could, so runs keep the revision that it was published with. broken: it cannot work; a run that reaches
it fails."""


class WorkflowProblem(Contract):
    """One error of a definition: its place, and how to correct it."""

    path: str
    """JSON pointer into the `WorkflowDefinition`: `/steps/2/input/order_id`."""
    message: str
    suggestion: str | None = None
    is_error: bool = True
    """False for a warning."""
    step: str | None = None
    reference: str | None = None
    """What an expression reads, if that is what is wrong; null if it is the place as a whole."""

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" + (f"; {self.suggestion}" if self.suggestion else "")


class GraphNode(Contract):
    """A step."""

    name: str
    kind: StepKind
    title: str | None = None
    reference: str | None = None
    """What it calls, as the definition has it."""
    tool: str | None = None
    """`name@version` that a run would call now; null if there is none."""
    content_hash: str | None = None
    side_effects: SideEffects | None = None
    """The most that it does; null if it calls nothing that is there."""
    account: str | None = None
    """Service account that makes its calls; null for who starts the run."""
    handles: tuple[str, ...] = ()
    """Names of its outputs: of an agent's node always the same, and its pins."""
    state: GraphState = "ok"
    reason: str | None = None
    """Why it is held, or why it is broken and what to do; if it is ok, what has changed nevertheless."""


class GraphEdge(Contract):
    """One step comes before another one, and why."""

    source: str
    """A step, or `input`."""
    target: str
    """A step, or `output`."""
    kind: EdgeKind
    reference: str | None = None
    """What the expression reads: `validate.errors`."""
    path: str
    """JSON pointer of where the definition says so."""
    state: GraphState = "ok"
    reason: str | None = None


class WorkflowGraph(Contract):
    """All nodes and edges of a definition, also if a tool that it is bound to is missing."""

    workflow: str
    """`name@version`."""
    content_hash: str | None = None
    side_effects: SideEffects | None = None
    """The maximum side effects of a run; null if not yet known."""
    nodes: tuple[GraphNode, ...] = ()
    edges: tuple[GraphEdge, ...] = ()
    problems: tuple[WorkflowProblem, ...] = ()

    @property
    def state(self) -> GraphState:
        """The worst of all states."""
        states = {part.state for part in (*self.nodes, *self.edges)}
        return "broken" if "broken" in states else "held" if "held" in states else "ok"


Verdict: TypeAlias = Literal["unaffected", "may_break", "breaks"]
"""The effect of a proposed change on a dependent: none, unknown, or certain failure."""


class Dependent(Contract):
    """A definition that is bound to the tool."""

    name: str
    """`name@version` of a tool; the name of a provider."""
    kind: str
    """Kind of its implementation; `provider` for one whose reference data the tool reads."""
    reference: str
    """How the definition names what it is bound to: `name`, `name@range`, a pattern, `group:…`."""
    satisfied: bool
    """Whether the reference accepts this version of the tool; if not, it is bound to another one or to none."""
    path: tuple[str, ...]
    """Names from the dependent to the tool: two if it is bound directly."""
    verdict: Verdict | None = None
    """What the proposed change does to it; null if none is proposed. To a workflow that is held: what it would do once
    that is published again."""
    held: bool = False
    """Of a workflow: its runs keep the revision that it was published with, whatever the change does."""
    reasons: tuple[str, ...] = ()
    """Of a workflow: the reason for this result."""
    edges: tuple[GraphEdge, ...] = ()
    """Of a workflow, the edges that the change breaks."""

    @property
    def direct(self) -> bool:
        """Whether it names the tool itself."""
        return len(self.path) == 2


class PinnedRun(Contract):
    """A run that has not ended and uses a certain revision of the tool."""

    run_id: str
    tool: str
    """`name@version` of its tool."""
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


class WorkflowDraft(Contract):
    """A definition that is stored beside the published one of the same name."""

    definition: WorkflowDefinition
    note: str = ""
    """A note of its author for the person who publishes it."""
    authored_by: str | None = None
    """The agent that has written it; null for a person."""
    run_id: str | None = None
    """The run in which it was written."""
    tainted_by: str | None = None
    """What that run had read before that outsiders can write, the first of it; null if nothing."""
    revision: int = Field(ge=1)
    """1, 2, 3… per name and realm."""
    made_by: str
    """Id of the principal who has saved it."""
    created_at: Timestamp
    problems: tuple[WorkflowProblem, ...] = ()
    """Of the moment in which it was saved or read, and not stored."""


class Publication(Contract):
    """What publishing a workflow did."""

    tool: ToolRevision
    impact: ImpactReport | None = None
    """Whom the new revision concerns; null if there was nothing of its name before."""
    problems: tuple[WorkflowProblem, ...] = ()
    """Warnings; errors are reported before publishing."""


class MaterializePreview(Contract):
    """What materializing a call would change. Nothing was written."""

    definition: JsonObject
    """The draft as it would be; it is no valid definition if there are errors among the problems."""
    step: str
    """The new step."""
    node: str
    """The step that has asked the agent."""
    tool: str
    """`name@version` of the call."""
    call_id: str
    run_id: str
    """The agent's run."""
    rewired: tuple[str, ...] = ()
    """JSON pointers into the definition: the expressions that would read the new step instead of a handle."""
    left: tuple[str, ...] = ()
    """JSON pointers to where the handles are read as a whole, or at a computed place: that would not be touched."""
    warnings: tuple[str, ...] = ()
    note: str
    """What would be done, as the draft would say it."""
    diff: str
    """Unified diff from the draft, or the published workflow if there is none, in YAML."""
    problems: tuple[WorkflowProblem, ...] = ()
    """All that is wrong with the draft as it would be; materializing is refused if there are errors among them."""
    before_revision: int | None = None
    """The revision of the draft that would be changed; null if there is none."""

"""A workflow as a graph, and what is wrong with it: nothing here is ever dropped, what is broken is marked."""

from typing import Literal, TypeAlias

from toolcrib.contracts.base.base import Contract
from toolcrib.contracts.base.envelope import SideEffects
from toolcrib.contracts.specs.workflow_steps import StepKind

EdgeKind: TypeAlias = Literal["order", "data", "error"]
"""`depends_on`; an expression that reads an output; `go_to`."""
GraphState: TypeAlias = Literal["ok", "held", "broken"]
"""ok: as it was published, or nothing has changed that could break it. held: what it is bound to has changed since in a
way that could, so runs go on with the revision that it was published with. broken: it cannot work any more, and a run
that comes to it fails."""


class WorkflowProblem(Contract):
    """One thing that is wrong with a definition, where, and what to write instead."""

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
    """Why it is held, or broken and what to do; of one that is ok, what has changed all the same."""


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
    """All nodes and edges of a definition, whatever has become of what it is bound to."""

    workflow: str
    """`name@version`."""
    content_hash: str | None = None
    side_effects: SideEffects | None = None
    """The most that a run does; null if nobody could tell yet."""
    nodes: tuple[GraphNode, ...] = ()
    edges: tuple[GraphEdge, ...] = ()
    problems: tuple[WorkflowProblem, ...] = ()

    @property
    def state(self) -> GraphState:
        """The worst of all states."""
        states = {part.state for part in (*self.nodes, *self.edges)}
        return "broken" if "broken" in states else "held" if "held" in states else "ok"

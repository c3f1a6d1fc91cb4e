"""What a dry run cannot know: the outputs of calls that it did not make, and what would be made of them."""

from typing import Final

from toolcrib.contracts.workflows import SettledStep
from toolcrib.workflows.values.graph import Edge, Plan
from toolcrib.workflows.values.scope_part import Scope

DRY_RUN: Final = "dry run: "
"""Begins the reason of every step that is skipped because this is a dry run."""


class DryRun:
    """Knows which outputs a dry run has no value for.

    Args:
        plan: The graph of the workflow.
        scope: What has become of the steps.
    """

    def __init__(self, plan: Plan, scope: Scope) -> None:
        self._scope = scope
        self._without: set[str] = set()
        """Steps that would have put out something."""
        self._reads: dict[str, list[Edge]] = {}
        for edge in plan.edges:
            if edge.kind == "data" and not _is_about(edge):
                self._reads.setdefault(edge.target, []).append(edge)

    def settle(self, settled: SettledStep) -> None:
        """A step has ended; if it was skipped because this is a dry run, its output is not known."""
        if settled.status == "skipped" and settled.output is None and (settled.reason or "").startswith(DRY_RUN):
            self._without.add(settled.step)

    def lacking(self, target: str) -> str | None:
        """Why a step, or `output`, has no value here: it reads the output of a call that was not made.

        Steps that are known by one name stand in for each other: one that has put out something is enough.
        """
        for edge in self._reads.get(target, ()):
            if edge.source in self._without and not any(
                self._scope.has_output(other.source)
                for other in self._reads[target]
                if other.reference == edge.reference
            ):
                return f"{DRY_RUN}needs the output of {edge.source}"
        return None


def _is_about(edge: Edge) -> bool:
    """Whether an edge reads what has become of a step, and not its output."""
    path = (edge.reference or "").split(".")
    return path[0] == "steps" and len(path) > 2 and path[2] != "output"

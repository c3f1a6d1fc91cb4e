"""A run with the runs that are nested in it, as the journal has them: what any of them waits for, it waits for."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from toolcrib.contracts import ApprovalRequested, OpenQuestion, Run, RunEvent, Signal, ToolEnvelope
from toolcrib.core.runs.interrupts.signals import waiting_approvals, waiting_handoffs, waiting_question
from toolcrib.core.runs.journal.history import History
from toolcrib.infrastructure.store import Journal


class Branch(NamedTuple):
    """One run of a tree."""

    run: Run
    events: Sequence[RunEvent]
    signals: Mapping[str, Signal]


async def read_tree(journal: Journal, run_id: str, *, ended: bool = False) -> Sequence[Branch]:
    """The run first, and each run before those that it calls.

    Args:
        journal: Has the runs.
        run_id: The run at the root.
        ended: Read also nested runs whose call has ended, for which nobody waits any more.

    Raises:
        NotFound: No such run.
    """
    run = await journal.run(run_id)
    events = await journal.events(run_id)
    tree = [Branch(run, events, await journal.signals(run_id))]
    if run.ended and not ended:
        return tree
    history = History(events)
    for child in history.children.values():
        # A child that was only announced before a crash is created when the call is made again.
        if (ended or child.position not in history.envelopes) and await journal.events(child.child_run_id, limit=1):
            tree += await read_tree(journal, child.child_run_id, ended=ended)
    return tree


def handed_over(tree: Iterable[Branch]) -> Sequence[ToolEnvelope]:
    """Prepared calls that wait for a client."""
    open_runs = (branch for branch in tree if not branch.run.ended)
    return [envelope for branch in open_runs for envelope in waiting_handoffs(branch.events, branch.signals)]


def open_question(tree: Iterable[Branch]) -> OpenQuestion | None:
    """What is asked of whoever started the outermost run; null if nothing."""
    open_runs = (branch for branch in tree if not branch.run.ended)
    asked = (waiting_question(branch.events, branch.signals) for branch in open_runs)
    return next((question for question in asked if question is not None), None)


def to_approve(tree: Iterable[Branch]) -> Sequence[tuple[str, ApprovalRequested]]:
    """Calls that wait for a person, each with the id of its run."""
    open_runs = (branch for branch in tree if not branch.run.ended)
    return [
        (branch.run.run_id, request)
        for branch in open_runs
        for request in waiting_approvals(branch.events, branch.signals)
    ]

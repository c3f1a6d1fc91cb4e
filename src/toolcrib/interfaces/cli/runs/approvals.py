"""`toolcrib approval`: the inbox of calls that wait for an approval. `toolcrib run settle`: settle unknown outcomes."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from toolcrib.interfaces.cli.render.rows import print_rows
from toolcrib.interfaces.cli.support.commands import Table, prints, shows
from toolcrib.interfaces.cli.support.groups import CommandApp, command
from toolcrib.interfaces.cli.support.inputs import json_object, json_value
from toolcrib.interfaces.cli.support.session import (
    DEFAULT_STORE,
    Filter,
    IdOf,
    RunId,
    Sort,
    Store,
    approval_ids,
    run_ids,
    tool_names,
    with_crib,
)

if TYPE_CHECKING:
    from toolcrib.contracts import Approval, ApprovalStatus, ApprovalView
    from toolcrib.contracts.runs.trace import Settlement
    from toolcrib.crib import ActingCrib, Crib

app = CommandApp("List and decide on calls that wait for a person.")

ApprovalId = Annotated[
    str,
    typer.Argument(
        metavar="ID",
        help="The approval's id, its first characters, or latest.",
        show_default=False,
        autocompletion=approval_ids,
    ),
    IdOf("approval"),
]
Status = Annotated[
    Literal["waiting", "approved", "edited", "rejected", "expired", "cancelled", "all"],
    typer.Option("--status", help="Which ones."),
]
Tool = Annotated[
    str | None,
    typer.Option("--tool", metavar="NAME", help="Calls of this tool only.", autocompletion=tool_names),
]
OfRun = Annotated[
    str | None,
    typer.Option(
        "--run", metavar="ID", help="Calls of this run and its nested runs; or latest.", autocompletion=run_ids
    ),
    IdOf("run"),
]
Limit = Annotated[int, typer.Option("--limit", min=1, max=1000, help="At most so many.")]
Why = Annotated[str | None, typer.Option("--reason", metavar="TEXT", help="Why, for the record.")]
Edit = Annotated[
    str | None, typer.Option("--edit", metavar="JSON", help="Other arguments to call with, as a JSON object.")
]
Happened = Annotated[
    bool, typer.Option("--happened/--not", help="It took effect; or it did not, and is made once more.")
]
Output = Annotated[str | None, typer.Option("--output", metavar="JSON", help="Its output, if it took effect.")]
Who = Annotated[
    str | None,
    typer.Option("--as", metavar="ID", help="Who decides; must have no part in the run. The operator if not given."),
]


_APPROVALS: "Table[Approval]" = Table(
    {
        "Id": lambda each: each.approval_id,
        "Tool": lambda each: f"{each.tool}@{each.version}",
        "Status": lambda each: each.status,
        "Requested by": lambda each: each.requested_by,
        "At (UTC)": lambda each: each.requested_at,
        "Expires (UTC)": lambda each: each.expires_at or "never",
        "Asks": lambda each: each.message,
    }
)


@command(app, "list", example="toolcrib approval list --status all")
@shows(_APPROVALS)
async def list_approvals(
    crib: "Crib",
    *,
    status: Status = "waiting",
    tool: Tool = None,
    run_id: OfRun = None,
    filter: Filter = None,
    sort: Sort = None,
    limit: Limit = 50,
) -> "Sequence[Approval]":
    """List approvals, the oldest first."""
    wanted: ApprovalStatus | None = None if status == "all" else status
    page = await crib.approvals.page(status=wanted, tool=tool, run_id=run_id, filter=filter, sort=sort, limit=limit)
    return page.items


def _facts(found: "ApprovalView") -> list[tuple[str, str]]:
    approval, preview = found.approval, found.preview
    facts: dict[str, Any] = {
        "Tool": f"{approval.tool}@{approval.version}",
        "Step": approval.step,
        "Asks": approval.message,
        "Inside of": " > ".join(approval.callers),
        "Side effects": approval.side_effects,
        "Arguments": json.dumps(approval.input, ensure_ascii=False),
        "Request": f"{preview.method} {preview.url}" if preview and preview.url else None,
        "Entity": f"{preview.operation} {preview.entity}" if preview and preview.entity else None,
        "Rows": json.dumps(preview.filter, ensure_ascii=False) if preview and preview.filter else None,
        "Requested by": approval.requested_by,
        "Acting": approval.acting,
        "Run": approval.run_id,
        "Outermost run": approval.root_run_id,
        "Status": approval.status,
        "Decided by": approval.decided_by,
        "Reason": approval.reason,
    }
    return [(name, str(value)) for name, value in facts.items() if value]


def _print_approval(found: "ApprovalView") -> None:
    print_rows(("What", "Value"), _facts(found))


@command(app, "show", example="toolcrib approval show latest")
@shows(_print_approval)
async def show(crib: "Crib", approval_id: ApprovalId) -> "ApprovalView":
    """Show an approval, and what the call would do."""
    return await crib.approvals.get(approval_id)


_DECIDED: Final = "{found.status} {found.approval_id}; resume the run with: toolcrib run resume {found.root_run_id}"


@command(app, "approve", example='toolcrib approval approve latest --reason "As agreed"')
@prints(_DECIDED)
def approve(
    approval_id: ApprovalId, reason: Why = None, edit: Edit = None, who: Who = None, store: Store = DEFAULT_STORE
) -> "Approval":
    """Approve a call, as it is or with other arguments."""
    edited = None if edit is None else json_object(edit, "--edit")
    return _decide(store, approval_id, who, approve=True, reason=reason, edited_input=edited)


@command(app, "reject", example='toolcrib approval reject latest --reason "Too expensive"')
@prints(_DECIDED)
def reject(approval_id: ApprovalId, reason: Why = None, who: Who = None, store: Store = DEFAULT_STORE) -> "Approval":
    """Reject a call."""
    return _decide(store, approval_id, who, approve=False, reason=reason)


@command(app, "settle", example="toolcrib approval settle latest --happened")
@prints(_DECIDED)
def settle(
    approval_id: ApprovalId,
    *,
    happened: Happened,
    output: Output = None,
    reason: Why = None,
    who: Who = None,
    store: Store = DEFAULT_STORE,
) -> "Approval":
    """Record whether an interrupted call took effect.

    The run waits for it. Use `reject` if nothing is known.
    """
    result = None if output is None else json_value(output, "--output")
    return _decide(store, approval_id, who, approve=True, reason=reason, happened=happened, output=result)


def _decide(store: str | None, approval_id: str, who: str | None, **answer: Any) -> "Approval":
    async def decide(crib: "Crib") -> "Approval":
        meant = await crib.ids.find("approval", approval_id)
        return await _acting(crib, who).approvals.decide(meant, **answer)

    return with_crib(store, decide)


def _acting(crib: "Crib", who: str | None) -> "ActingCrib":
    """The crib as a user of its realm; as the application itself if no user is named."""
    return crib if who is None else crib.acting_as(crib.principal.model_copy(update={"id": who}))


Position = Annotated[
    str,
    typer.Argument(metavar="POSITION", help="Position of the call, as run trace --json has it.", show_default=False),
]


def _print_settled(found: "Settlement") -> None:
    then = "stands with that output" if found.happened else "may be made once more"
    print(f"settled; the process that resumes the run uses it, and the call {then}")


@shows(_print_settled)
async def settle_run(
    crib: "Crib",
    run_id: RunId,
    position: Position,
    *,
    happened: Happened,
    output: Output = None,
    reason: Why = None,
    who: Who = None,
) -> "Settlement":
    """Record whether a call of an ended run took effect.

    The first answer counts. A call that a run waits for is settled with `toolcrib approval settle`.
    """
    result = None if output is None else json_value(output, "--output")
    return await _acting(crib, who).settlements.settle(
        run_id, position, happened=happened, output=result, reason=reason
    )

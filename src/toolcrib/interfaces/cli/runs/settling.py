"""`toolcrib run settle`: say afterwards whether a call took effect."""

from typing import TYPE_CHECKING, Annotated

import typer

from toolcrib.interfaces.cli.runs.approvals import Happened, Output, Who, Why
from toolcrib.interfaces.cli.support.objects import json_value
from toolcrib.interfaces.cli.support.options import DEFAULT_STORE, RunId, Store
from toolcrib.interfaces.cli.support.session_part import with_crib

if TYPE_CHECKING:
    from toolcrib.contracts.runs.settlements import Settlement
    from toolcrib.crib import Crib

Position = Annotated[str, typer.Argument(metavar="POSITION", help="Position of the call, as run trace --json has it.")]


def settle(
    run_id: RunId,
    position: Position,
    *,
    happened: Happened,
    output: Output = None,
    reason: Why = None,
    who: Who = None,
    store: Store = DEFAULT_STORE,
) -> None:
    """Say of a call of a run that has ended whether it took effect, if nobody knew. The first answer counts."""
    told = None if output is None else json_value(output, "--output")

    async def leave(crib: "Crib") -> "Settlement":
        principal = None if who is None else crib.principal.model_copy(update={"id": who})
        return await crib.settlements.settle(
            run_id, position, happened=happened, output=told, reason=reason, principal=principal
        )

    with_crib(store, leave)
    then = "stands with that output" if happened else "may be made once more"
    print(f"settled {position} of {run_id}: whoever takes up the run goes by it, and the call {then}")

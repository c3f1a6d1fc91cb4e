"""What an import kept, changed and dropped, short enough for a terminal; `--json` tells all of it."""

import sys
from collections.abc import Iterable
from typing import Final

from rich.table import Table

from toolcrib.cli.console import console, plain
from toolcrib.contracts import Loss, LossReport

_MOST_OPERATIONS: Final = 30
_MOST_LOSSES: Final = 5
_MOST_PLACES: Final = 2


def print_losses(report: LossReport) -> None:
    """A table of the losses that matter on stderr, and how many more there are."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("Operation", "Effect", "Part", "Why", "Where"):
        table.add_column(column, overflow="fold")
    shown = _add(table, "the document", report.losses)
    concerned = [found for found in report.operations if any(loss.matters for loss in report.of(found))]
    for operation in concerned[:_MOST_OPERATIONS]:
        shown += _add(table, operation.operation, report.of(operation))
    err = console(sys.stderr)
    if shown:
        err.print(table)
    if len(concerned) > _MOST_OPERATIONS:
        err.print(f"and {len(concerned) - _MOST_OPERATIONS} more operations")
    every = list(report.all())
    matter = sum(loss.matters for loss in every)
    err.print(f"{matter} losses matter to calls, {len(every) - matter} are decoration; --json tells all of them")


def _add(table: Table, operation: str, losses: Iterable[Loss]) -> int:
    found = [loss for loss in losses if loss.matters]
    for index, loss in enumerate(found[:_MOST_LOSSES]):
        places = " ".join(loss.places[:_MOST_PLACES]) + (" …" if len(loss.places) > _MOST_PLACES else "")
        cells = (operation if index == 0 else "", loss.effect, loss.what, loss.why, places)
        table.add_row(*map(plain, cells))
    if len(found) > _MOST_LOSSES:
        table.add_row("", "", plain(f"and {len(found) - _MOST_LOSSES} more"), "", "")
    return len(found)

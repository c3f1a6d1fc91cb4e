"""What an import kept, changed and dropped, short enough for a terminal; `--json` tells all of it."""

import json
import re
import sys
from collections.abc import Iterable
from typing import Final

from rich.table import Table

from toolcrib.contracts import Loss, LossReport, ProviderDefinition
from toolcrib.core.providers import ImportedApi
from toolcrib.interfaces.cli.render.console import console, plain
from toolcrib.interfaces.cli.render.tables import print_outcome

_MOST_OPERATIONS: Final = 30
_MOST_LOSSES: Final = 5
_MOST_PLACES: Final = 2
_REFERENCE: Final = re.compile(r"\$\{env:([^}]*)\}")


def print_import(imported: ImportedApi, *, as_json: bool) -> None:
    """What an import has made, what it lost, and what was not taken over; as JSON, its whole report and outcome."""
    outcome = imported.outcome
    if as_json:
        told = {"outcome": None if outcome is None else outcome.model_dump(mode="json")}
        print(json.dumps({**imported.report.model_dump(mode="json"), **told}, indent=2, ensure_ascii=False))
        return
    for tool in imported.tools:
        print(f"{tool.name} ({tool.side_effects})")
    print_losses(imported.report)
    if outcome is not None:
        print_outcome(outcome)
    print_credentials(imported.provider)
    print(f"imported {counted(len(imported.tools), 'tool', 'tools')} of provider {imported.provider.name!r}")


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
    said = counted(matter, "loss matters", "losses matter")
    err.print(f"{said} to calls, {len(every) - matter} without effect; --json tells all of them")


def print_credentials(provider: ProviderDefinition) -> None:
    """The variables that hold what the provider asks for, on stderr: without them its tools are refused."""
    for scheme, auth in (provider.schemes or {"authentication": provider.auth}).items():
        names = dict.fromkeys(_REFERENCE.findall(auth.model_dump_json()))
        if names:
            console(sys.stderr).print(plain(f"{scheme} reads {' and '.join(names)} from the environment"))


def counted(number: int, one: str, several: str) -> str:
    """A number with its noun: `1 tool`, `2 tools`."""
    return f"{number} {one if number == 1 else several}"


def _add(table: Table, operation: str, losses: Iterable[Loss]) -> int:
    found = [loss for loss in losses if loss.matters]
    for index, loss in enumerate(found[:_MOST_LOSSES]):
        places = " ".join(loss.places[:_MOST_PLACES]) + (" …" if len(loss.places) > _MOST_PLACES else "")
        cells = (operation if index == 0 else "", loss.effect, loss.what, loss.why, places)
        table.add_row(*map(plain, cells))
    if len(found) > _MOST_LOSSES:
        table.add_row("", "", plain(f"and {len(found) - _MOST_LOSSES} more"), "", "")
    return len(found)

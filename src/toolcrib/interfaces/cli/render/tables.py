"""Tables of tools, runs, settings and changes, and summaries of imports. `--json` prints all details."""

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final, cast

from toolcrib.interfaces.cli.render.console import console, cost, plain
from toolcrib.interfaces.cli.render.rows import print_rows

if TYPE_CHECKING:
    from rich.table import Table

    from toolcrib.contracts import (
        Dependent,
        ImpactReport,
        ImportOutcome,
        Json,
        JsonObject,
        Loss,
        LossReport,
        PromptRevision,
        ProviderDefinition,
        ReferenceReading,
        ReferenceSnapshot,
        Run,
        ToolChange,
        ToolReview,
        ToolRevision,
    )
    from toolcrib.core.providers import ImportedApi
    from toolcrib.infrastructure.sandbox import SandboxProbe


def print_tools(tools: "Sequence[ToolRevision]") -> None:
    """One row for each tool."""
    columns = ("Name", "Version", "Kind", "Side effects", "Status", "Description")
    rows: list[tuple[str, ...]] = []
    for tool in tools:
        definition = tool.definition
        what = definition.title or definition.description.partition("\n")[0]
        kind, effects = definition.implementation.kind, definition.side_effects
        rows.append((tool.name, tool.version, kind, effects, tool.status, what))
    print_rows(columns, rows, gives_way=True)


def print_runs(runs: "Sequence[Run]") -> None:
    """One row for each run."""
    rows: list[tuple[str, ...]] = []
    for run in runs:
        spent = cost(run.cost_usd, unknown=run.cost_unknown) if run.ended else ""
        rows.append((run.run_id, run.request.tool, run.status, run.stop_reason or "", _time(run.created_at), spent))
    print_rows(("Run", "Tool", "Status", "Stop reason", "Started (UTC)", "Cost"), rows)


def print_settings(settings: "Mapping[str, JsonObject]", secrets: Mapping[str, bool]) -> None:
    """One row for each setting, and one for each secret of the product itself."""
    rows: list[tuple[str, ...]] = []
    for key, facts in settings.items():
        value = facts["value"]
        values = cast("list[Json]", value) if isinstance(value, list) else [] if value is None else [value]
        shown = ", ".join(map(str, values))
        rows.append((key, shown or "none", str(facts["origin"]), str(facts["variable"])))
    for name, is_set in secrets.items():
        rows.append(("(secret)", "set, not shown" if is_set else "not set", "environment", name))
    print_rows(("Setting", "Value", "From", "Variable"), rows)


def print_references(found: "Sequence[ReferenceSnapshot]") -> None:
    """One row for each list of a provider."""
    rows: list[tuple[str, ...]] = []
    for snapshot in found:
        read = _time(snapshot.fetched_at) if snapshot.fetched_at else "never"
        age = "" if snapshot.age_s is None else f"{snapshot.age_s:.0f} s"
        values = str(snapshot.size) if snapshot.id else ""
        good = f"{snapshot.max_age_s:.0f} s" if snapshot.max_age_s else "one run"
        rows.append((snapshot.provider, snapshot.name, values, (snapshot.id or "")[:12], read, age, good))
    print_rows(("Provider", "List", "Values", "Snapshot", "Read (UTC)", "Age", "Good for"), rows)


def print_readings(found: "Sequence[ReferenceReading]") -> None:
    """One row for each reading of a list."""
    rows = [
        (
            reading.id[:12],
            str(reading.size),
            _time(reading.first_at),
            _time(reading.fetched_at),
            "no" if reading.refused else "yes",
        )
        for reading in found
    ]
    print_rows(("Snapshot", "Values", "First read (UTC)", "Last read (UTC)", "Used"), rows)


def print_revisions(revisions: "Sequence[PromptRevision]") -> None:
    """One row for each revision of an agentic tool."""
    rows: list[tuple[str, ...]] = []
    for entry in revisions:
        state = " ".join(filter(None, ("changed" if entry.changed else "", "current" if entry.current else "")))
        rows.append((str(entry.revision), entry.version, entry.made_by, _time(entry.created_at), state))
    print_rows(("Revision", "Version", "By", "At (UTC)", "Prompt"), rows)


def print_probes(probes: "Sequence[SandboxProbe]") -> None:
    """One row for each way to run code."""
    rows: list[tuple[str, ...]] = []
    for probe in probes:
        usable = "yes" if probe.problem is None else f"no: {probe.problem}"
        rows.append((probe.dialect, probe.backend, probe.isolation, f"{probe.seconds:.2f} s", usable))
    print_rows(("Code", "Runs in", "Isolation", "Cold start", "Usable"), rows)


def _time(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S}"


def print_impact(report: "ImpactReport") -> None:
    """Dependents and runs of a tool, one row each."""
    out = console()
    columns = ("Bound", "Kind", "As", "Fits", "Through", *(["Proposed change"] if report.proposed else []))
    rows: list[tuple[str, ...]] = []
    for each in report.dependents:
        through = " → ".join(each.path[1:-1])
        verdict = [_verdict(each)] if report.proposed else []
        rows.append((each.name, each.kind, each.reference, "yes" if each.satisfied else "no", through, *verdict))
    if rows:
        print_rows(columns, rows)
    else:
        out.print(plain(f"nothing is bound to {report.tool}"))
    for each in report.dependents:
        for reason in each.reasons:
            out.print(plain(f"{each.name}: {reason}"))
    for run in report.runs:
        same = "this revision" if run.content_hash == report.content_hash else "another revision"
        out.print(plain(f"run {run.run_id} of {run.tool} is {run.status.replace('_', ' ')} with {same}"))


def print_review(review: "ToolReview") -> None:
    """The changes that a provider made to a tool, the worst last, and what to do."""
    out = console()
    if review.proposal is None:
        out.print(plain(f"no change of {review.tool} waits for a person"))
        return
    print_differences(review.proposal.change)
    out.print(plain(review.diff))
    if review.changed_by_person:
        out.print(plain("a person has changed the tool; accepting replaces that"))
    out.print(plain(f"{review.tool} is {review.status}; decide: toolcrib tool accept|reject {review.tool}"))


def print_differences(change: "ToolChange") -> None:
    """What a change of a tool changes, one row each."""
    rows = [
        (found.change_class.replace("_", " "), found.part, found.place, found.message) for found in change.differences
    ]
    print_rows(("Class", "Part", "Place", "Difference"), rows)


def print_outcome(outcome: "ImportOutcome") -> None:
    """The changes of tools in a repeated import, without unchanged tools."""
    changes = [found for found in outcome.tools if found.adoption not in {"new", "unchanged"}]
    if changes:
        print_rows(("Tool", "Change", "Why"), [(found.tool, found.adoption, found.message) for found in changes])
    for warning in outcome.warnings:
        console().print(plain(f"Warning: {warning}", "yellow"), soft_wrap=True)


def _verdict(dependent: "Dependent") -> str:
    """What a proposed change does to a dependent."""
    found = (dependent.verdict or "").replace("_", " ")
    return f"{found} when published again; held until then" if dependent.held else found


_MOST_OPERATIONS: Final = 30
_MOST_LOSSES: Final = 5
_MOST_PLACES: Final = 2
_REFERENCE: Final = re.compile(r"\$\{env:([^}]*)\}")


def import_document(imported: "ImportedApi") -> "JsonObject":
    """What an import has made and what it lost, as JSON: its whole report and outcome."""
    outcome = imported.outcome
    entry = {"outcome": None if outcome is None else outcome.model_dump(mode="json")}
    return {**imported.report.model_dump(mode="json"), **entry}


def print_import(imported: "ImportedApi") -> None:
    """What an import has made, lost and not adopted."""
    for tool in imported.tools:
        print(f"{tool.name} ({tool.side_effects})")
    print_losses(imported.report)
    if imported.outcome is not None:
        print_outcome(imported.outcome)
    print_credentials(imported.provider)
    stored = len(imported.tools) if imported.outcome is None else len(imported.outcome.stored)
    others = len(imported.tools) - stored
    rest = f"; {others} not taken over, as the table says" if others else ""
    print(f"imported {pluralize(stored, 'tool', 'tools')} of provider {imported.provider.name!r}{rest}")


def print_losses(report: "LossReport") -> None:
    """A table of the losses that matter on stderr, and how many more there are."""
    from rich.table import Table

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
    dropped = pluralize(len(every), "detail", "details")
    affects = "none affects calls" if not matter else pluralize(matter, "affects calls", "affect calls")
    err.print(f"imported; {dropped} dropped, {affects}; --json lists them" if every else "imported; nothing dropped")


def print_credentials(provider: "ProviderDefinition") -> None:
    """The variables that hold what the provider asks for, on stderr: without them its tools are refused."""
    for scheme, auth in (provider.schemes or {"authentication": provider.auth}).items():
        names = dict.fromkeys(_REFERENCE.findall(auth.model_dump_json()))
        if names:
            console(sys.stderr).print(plain(f"{scheme} reads {' and '.join(names)} from the environment"))


def pluralize(number: int, one: str, several: str) -> str:
    """A number with its noun: `1 tool`, `2 tools`."""
    return f"{number} {one if number == 1 else several}"


def _add(table: "Table", operation: str, losses: "Iterable[Loss]") -> int:
    found = [loss for loss in losses if loss.matters]
    for index, loss in enumerate(found[:_MOST_LOSSES]):
        places = " ".join(loss.places[:_MOST_PLACES]) + (" …" if len(loss.places) > _MOST_PLACES else "")
        cells = (operation if index == 0 else "", loss.effect, loss.what, loss.why, places)
        table.add_row(*map(plain, cells))
    if len(found) > _MOST_LOSSES:
        table.add_row("", "", plain(f"and {len(found) - _MOST_LOSSES} more"), "", "")
    return len(found)

"""Tables of tools, runs, settings and changes, and summaries of imports. `--json` prints all details."""

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, cast

from toolcrib.interfaces.cli.render.console import console, cost, plain

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
    table = _table("Name", "Version", "Kind", "Side effects", "Status")
    table.add_column("Description")  # may be wrapped, so it is the one that gives way; its cells stay on their line
    for tool in tools:
        definition = tool.definition
        what = plain(definition.title or definition.description.partition("\n")[0])
        what.no_wrap, what.overflow = True, "ellipsis"
        cells = (tool.name, tool.version, definition.implementation.kind, definition.side_effects, tool.status)
        table.add_row(*map(plain, cells), what)
    console().print(table)


def print_runs(runs: "Sequence[Run]") -> None:
    """One row for each run."""
    table = _table("Run", "Tool", "Status", "Stop reason", "Started (UTC)", "Cost")
    for run in runs:
        started = run.created_at.strftime("%Y-%m-%d %H:%M:%S")
        spent = cost(run.cost_usd, unknown=run.cost_unknown) if run.ended else ""
        cells = (run.run_id, run.request.tool, run.status, run.stop_reason or "", started, spent)
        table.add_row(*map(plain, cells))
    console().print(table)


def print_settings(settings: "Mapping[str, JsonObject]", secrets: Mapping[str, bool]) -> None:
    """One row for each setting, and one for each secret of the product itself."""
    table = _table("Setting", "Value", "From", "Variable")
    for key, facts in settings.items():
        value = facts["value"]
        values = cast("list[Json]", value) if isinstance(value, list) else [] if value is None else [value]
        shown = ", ".join(map(str, values))
        table.add_row(*map(plain, (key, shown or "none", facts["origin"], facts["variable"])))
    for name, is_set in secrets.items():
        table.add_row(*map(plain, ("(secret)", "set, not shown" if is_set else "not set", "environment", name)))
    console().print(table)


def print_references(found: "Sequence[ReferenceSnapshot]") -> None:
    """One row for each list of a provider."""
    table = _table("Provider", "List", "Values", "Snapshot", "Read (UTC)", "Age", "Good for")
    for snapshot in found:
        read = snapshot.fetched_at.strftime("%Y-%m-%d %H:%M:%S") if snapshot.fetched_at else "never"
        age = "" if snapshot.age_s is None else f"{snapshot.age_s:.0f} s"
        values = str(snapshot.size) if snapshot.id else ""
        good = f"{snapshot.max_age_s:.0f} s" if snapshot.max_age_s else "one run"
        cells = (snapshot.provider, snapshot.name, values, (snapshot.id or "")[:12], read, age, good)
        table.add_row(*map(plain, cells))
    console().print(table)


def print_readings(found: "Sequence[ReferenceReading]") -> None:
    """One row for each reading of a list."""
    table = _table("Snapshot", "Values", "First read (UTC)", "Last read (UTC)", "Used")
    for reading in found:
        times = (at.strftime("%Y-%m-%d %H:%M:%S") for at in (reading.first_at, reading.fetched_at))
        cells = (reading.id[:12], str(reading.size), *times, "no" if reading.refused else "yes")
        table.add_row(*map(plain, cells))
    console().print(table)


def print_revisions(revisions: "Sequence[PromptRevision]") -> None:
    """One row for each revision of an agentic tool."""
    table = _table("Revision", "Version", "By", "At (UTC)", "Prompt")
    for entry in revisions:
        at = entry.created_at.strftime("%Y-%m-%d %H:%M:%S")
        state = " ".join(filter(None, ("changed" if entry.changed else "", "current" if entry.current else "")))
        table.add_row(*map(plain, (str(entry.revision), entry.version, entry.made_by, at, state)))
    console().print(table)


def print_probes(probes: "Sequence[SandboxProbe]") -> None:
    """One row for each way to run code."""
    table = _table("Code", "Runs in", "Isolation", "Cold start", "Usable")
    for probe in probes:
        usable = "yes" if probe.problem is None else f"no: {probe.problem}"
        table.add_row(*map(plain, (probe.dialect, probe.backend, probe.isolation, f"{probe.seconds:.2f} s", usable)))
    console().print(table)


def print_rows(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A small table of text; long values of the last column are wrapped, so that nothing is cut off."""
    table = _table(*columns)
    table.columns[-1].no_wrap, table.columns[-1].overflow = False, "fold"
    for row in rows:
        table.add_row(*map(plain, row))
    console().print(table)


def print_impact(report: "ImpactReport") -> None:
    """Dependents and runs of a tool, one row each."""
    out = console()
    table = _table("Bound", "Kind", "As", "Fits", "Through", *(["Proposed change"] if report.proposed else []))
    for each in report.dependents:
        through = " → ".join(each.path[1:-1])
        verdict = [_verdict(each)] if report.proposed else []
        cells = (each.name, each.kind, each.reference, "yes" if each.satisfied else "no", through, *verdict)
        table.add_row(*map(plain, cells))
    if report.dependents:
        out.print(table)
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
    table = _table("Class", "Part", "Place", "Difference")
    table.columns[-1].no_wrap, table.columns[-1].overflow = False, "fold"
    for found in change.differences:
        table.add_row(*map(plain, (found.change_class.replace("_", " "), found.part, found.place, found.message)))
    console().print(table)


def print_outcome(outcome: "ImportOutcome") -> None:
    """The changes of tools in a repeated import, without unchanged tools."""
    table = _table("Tool", "", "Why")
    changes = [found for found in outcome.tools if found.adoption not in {"new", "unchanged"}]
    for found in changes:
        table.add_row(*map(plain, (found.tool, found.adoption, found.message)))
    if changes:
        console().print(table)
    for warning in outcome.warnings:
        console().print(plain(f"Warning: {warning}", "yellow"))


def _verdict(dependent: "Dependent") -> str:
    """What a proposed change does to a dependent."""
    found = (dependent.verdict or "").replace("_", " ")
    return f"{found} when published again; held until then" if dependent.held else found


def _table(*columns: str) -> "Table":
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, no_wrap=True, overflow="ellipsis")
    return table


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

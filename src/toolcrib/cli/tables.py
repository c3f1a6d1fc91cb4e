"""Lists of tools, runs and settings as tables."""

from collections.abc import Mapping, Sequence
from typing import cast

from rich.table import Table

from toolcrib.cli.console import console, money, plain
from toolcrib.contracts import Json, JsonObject, PromptRevision, ReferenceReading, ReferenceSnapshot, Run, ToolRevision
from toolcrib.sandbox import Probe


def print_tools(tools: Sequence[ToolRevision]) -> None:
    """One row for each tool."""
    table = _table("Name", "Version", "Kind", "Side effects", "Status", "Description")
    for tool in tools:
        definition = tool.definition
        what = definition.title or definition.description.partition("\n")[0]
        cells = (tool.name, tool.version, definition.implementation.kind, definition.side_effects, tool.status, what)
        table.add_row(*map(plain, cells))
    console().print(table)


def print_runs(runs: Sequence[Run]) -> None:
    """One row for each run."""
    table = _table("Run", "Tool", "Status", "Stop reason", "Started (UTC)", "Cost")
    for run in runs:
        started = run.created_at.strftime("%Y-%m-%d %H:%M:%S")
        cost = money(run.cost_usd) if run.ended else ""
        cells = (run.run_id, run.request.tool, run.status, run.stop_reason or "", started, cost)
        table.add_row(*map(plain, cells))
    console().print(table)


def print_settings(settings: Mapping[str, JsonObject], secrets: Mapping[str, bool]) -> None:
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


def print_references(found: Sequence[ReferenceSnapshot]) -> None:
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


def print_readings(found: Sequence[ReferenceReading]) -> None:
    """One row for each reading of a list."""
    table = _table("Snapshot", "Values", "First read (UTC)", "Last read (UTC)", "Used")
    for reading in found:
        times = (at.strftime("%Y-%m-%d %H:%M:%S") for at in (reading.first_at, reading.fetched_at))
        cells = (reading.id[:12], str(reading.size), *times, "no" if reading.refused else "yes")
        table.add_row(*map(plain, cells))
    console().print(table)


def print_revisions(revisions: Sequence[PromptRevision]) -> None:
    """One row for each revision of an agentic tool."""
    table = _table("Revision", "Version", "By", "At (UTC)", "Prompt")
    for entry in revisions:
        at = entry.created_at.strftime("%Y-%m-%d %H:%M:%S")
        state = " ".join(filter(None, ("changed" if entry.changed else "", "current" if entry.current else "")))
        table.add_row(*map(plain, (str(entry.revision), entry.version, entry.made_by, at, state)))
    console().print(table)


def print_probes(probes: Sequence[Probe]) -> None:
    """One row for each way to run code."""
    table = _table("Code", "Runs in", "Isolation", "Cold start", "Usable")
    for probe in probes:
        usable = "yes" if probe.problem is None else f"no: {probe.problem}"
        table.add_row(*map(plain, (probe.dialect, probe.backend, probe.isolation, f"{probe.seconds:.2f} s", usable)))
    console().print(table)


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, no_wrap=True, overflow="ellipsis")
    return table

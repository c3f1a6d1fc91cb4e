"""Comparisons as tables: two runs (figures, first difference, all differences), and the candidates of an evaluation."""

import json
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, cast

from toolcrib.interfaces.cli.render.console import console, cost, plain
from toolcrib.interfaces.cli.render.rows import print_rows

if TYPE_CHECKING:
    from toolcrib.contracts import CandidateResult, Evaluation, EvaluationFigures, Json, JsonObject
    from toolcrib.contracts.runs.comparisons import CallDiff, RunDiff, RunFacts, ValueDiff

_MOST_FAILURES = 20
"""Maximum number of failed runs that are listed one by one."""


def print_evaluation(report: "Evaluation") -> None:
    """Two tables, the changes, and why runs failed."""
    columns = ("Candidate", "Passed", "Cost", "Tokens", "Steps", "Tool calls", "p50", "p95")
    print_rows(columns, [_total(result) for result in report.candidates])
    labels = [result.candidate for result in report.candidates]
    tasks = list(report.candidates[0].tasks)
    print_rows(
        ("Task", *labels), [(task, *(_cell(report, result, task) for result in report.candidates)) for task in tasks]
    )
    for change in report.changes:
        mark = "worse" if change.kind == "regression" else "better"
        numbers = f"{change.passed}/{change.runs}, {report.base} {change.base_passed}/{change.runs}"
        console().print(plain(f"{mark}: {change.task}: {change.candidate} {numbers}"))
    _print_failures(report)


def _total(result: "CandidateResult") -> tuple[str, ...]:
    total = result.total
    return (
        result.candidate,
        f"{total.passed}/{total.runs} ({total.success:.0%})",
        _cost(total),
        f"{total.tokens:,}",
        str(total.steps),
        str(total.tool_calls),
        _seconds(total.p50_s),
        _seconds(total.p95_s),
    )


def _cell(report: "Evaluation", result: "CandidateResult", task: str) -> str:
    """What a candidate came to at a task, with a mark where it differs from the base."""
    figures = result.tasks[task]
    kinds = {change.kind for change in report.changes if (change.task, change.candidate) == (task, result.candidate)}
    mark = "- " if "regression" in kinds else "+ " if "improvement" in kinds else ""
    passed = f"{mark}{figures.passed}/{figures.runs}"
    return f"{passed}, {_cost(figures)}, {figures.steps} steps, {_seconds(figures.p50_s)}"


def _print_failures(report: "Evaluation") -> None:
    failed = [outcome for outcome in report.outcomes if not outcome.passed]
    for outcome in failed[:_MOST_FAILURES]:
        reasons = [outcome.error, *(f"{check.kind}: {check.reason}" for check in outcome.checks if not check.passed)]
        where = f"{outcome.task}, {outcome.candidate}, {outcome.run_id or 'no run'}"
        console().print(plain(f"failed: {where}: {'; '.join(filter(None, reasons))}"))
    if len(failed) > _MOST_FAILURES:
        console().print(plain(f"and {len(failed) - _MOST_FAILURES} more that failed; --json has all"))


def _cost(figures: "EvaluationFigures") -> str:
    if figures.cost_usd is None:
        return "unknown"
    return cost(Decimal(figures.cost_usd), unknown=figures.cost_unknown)


def _seconds(seconds: float) -> str:
    return f"{seconds:.2f} s"


_LONGEST = 120
"""Characters of a value; with `--json` it is whole."""


def print_diff(found: "RunDiff") -> None:
    """A summary first, and then all differences."""
    rows = zip(_NUMBERS, _numbers(found.before), _numbers(found.after), strict=True)
    print_rows(("", found.before.run_id, found.after.run_id), list(rows))
    for sentence in _changes(found):
        console().print(plain(sentence))
    console().print(plain(_parting(found)))
    _print("Input", ("Where", "Before", "After"), map(_value, found.input))
    _print("Output", ("Where", "Before", "After"), map(_value, found.output))
    _print("Calls", ("Call", "What", "Before", "After"), map(_call, found.calls))
    answers = ((each.position, _short(each.before), _short(each.after)) for each in found.answers)
    _print("Answers", ("Answer", "Before", "After"), answers)
    decisions = ((each.position, each.kind, each.before or "", each.after or "") for each in found.decisions)
    _print("Decisions", ("Call", "Whose", "Before", "After"), decisions)


_NUMBERS = ("Status", "Ended by", "Models", "Calls of models", "Calls of tools", "Taken over", "Tokens", "Cost", "Time")


def _numbers(facts: "RunFacts") -> tuple[str, ...]:
    return (
        facts.status.replace("_", " "),
        (facts.stop_reason or "").replace("_", " "),
        ", ".join(facts.models),
        str(facts.model_calls),
        str(facts.tool_calls),
        str(facts.taken),
        f"{facts.tokens:,}",
        cost(facts.cost_usd, unknown=facts.cost_unknown),
        f"{facts.seconds:.2f} s",
    )


def _changes(found: "RunDiff") -> Iterator[str]:
    """What the second run changes, if it is a fork."""
    fork, before, after = found.after.fork, found.before, found.after
    if fork is None:
        return
    told = fork.changes.model_dump(mode="json", exclude_defaults=True)
    changed = [f"{name} {_short(value)}" for name, value in _leaves(told)]
    if before.content_hash != after.content_hash:
        changed.append(f"revision {before.tool} to {after.tool}")
    if before.models != after.models:
        changed.append(f"model {', '.join(before.models) or 'none'} to {', '.join(after.models) or 'none'}")
    changed += ["input (below)"] if found.input else []
    changed += ["calls that write are made"] if fork.allow_writes else []
    changed += ["nothing is taken over after the event"] if fork.anew else []
    what = "; ".join(changed) or "nothing"
    yield f"{after.run_id} is a fork of {fork.run_id} at event {fork.at}. It changes: {what}."


def _leaves(value: "JsonObject", path: str = "") -> "Iterator[tuple[str, Json]]":
    for name, part in value.items():
        place = f"{path}.{name}" if path else name
        if isinstance(part, dict) and part:
            yield from _leaves(cast("JsonObject", part), place)
        else:
            yield place, part


def _parting(found: "RunDiff") -> str:
    parting = found.parting
    if parting is None:
        return "They went the same way."
    where = "at their ends" if parting.position is None else f"at {parting.position}"
    events = ", ".join(
        f"event {number} of {facts.run_id}"
        for number, facts in ((parting.before, found.before), (parting.after, found.after))
        if number is not None
    )
    return f"They part {where}: {events}."


def _print(title: str, columns: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> None:
    listed = list(rows)
    if listed:
        console().print(plain(f"\n{title}", "bold"))
        print_rows(columns, listed)


def _value(diff: "ValueDiff") -> tuple[str, ...]:
    return diff.path or "all of it", _short(diff.before), _short(diff.after)


def _call(diff: "CallDiff") -> tuple[str, ...]:
    before, after = diff.statuses
    what = diff.change.replace("_", " ")
    where = "; ".join(f"{each.path}: {_short(each.before)} -> {_short(each.after)}" for each in diff.arguments[:3])
    return (
        diff.position,
        f"{what}: {where}" if where else what,
        f"{diff.before} {before}" if diff.before else "",
        f"{diff.after} {after}" if diff.after else "",
    )


def _short(value: "Json") -> str:
    text = "" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"

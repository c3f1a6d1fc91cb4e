"""The candidates of an evaluation side by side: in total, by task, and where they differ."""

from decimal import Decimal

from toolcrib.contracts import CandidateResult, Evaluation, EvaluationFigures
from toolcrib.interfaces.cli.render.console import console, money, plain
from toolcrib.interfaces.cli.render.tables import print_rows

_MOST_FAILURES = 20
"""Failed runs that are told one by one."""


def print_evaluation(report: Evaluation) -> None:
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
        told = f"{change.passed}/{change.runs}, {report.base} {change.base_passed}/{change.runs}"
        console().print(plain(f"{mark}: {change.task}: {change.candidate} {told}"))
    _print_failures(report)


def _total(result: CandidateResult) -> tuple[str, ...]:
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


def _cell(report: Evaluation, result: CandidateResult, task: str) -> str:
    """What a candidate came to at a task, with a mark where it differs from the base."""
    figures = result.tasks[task]
    kinds = {change.kind for change in report.changes if (change.task, change.candidate) == (task, result.candidate)}
    mark = "- " if "regression" in kinds else "+ " if "improvement" in kinds else ""
    passed = f"{mark}{figures.passed}/{figures.runs}"
    return f"{passed}, {_cost(figures)}, {figures.steps} steps, {_seconds(figures.p50_s)}"


def _print_failures(report: Evaluation) -> None:
    failed = [outcome for outcome in report.outcomes if not outcome.passed]
    for outcome in failed[:_MOST_FAILURES]:
        reasons = [outcome.error, *(f"{check.kind}: {check.reason}" for check in outcome.checks if not check.passed)]
        where = f"{outcome.task}, {outcome.candidate}, {outcome.run_id or 'no run'}"
        console().print(plain(f"failed: {where}: {'; '.join(filter(None, reasons))}"))
    if len(failed) > _MOST_FAILURES:
        console().print(plain(f"and {len(failed) - _MOST_FAILURES} more that failed; --json FILE has them all"))


def _cost(figures: EvaluationFigures) -> str:
    if figures.cost_usd is None:
        return "unknown"
    return f"{money(Decimal(figures.cost_usd))}{' or more' if figures.cost_unknown else ''}"


def _seconds(seconds: float) -> str:
    return f"{seconds:.2f} s"

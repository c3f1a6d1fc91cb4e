"""`toolcrib eval`: the example dataset, what is printed and written, and the exit status."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from toolcrib.contracts import CandidateResult, Evaluation, EvaluationFigures, EvaluationOutcome
from toolcrib.interfaces.cli.app import app
from toolcrib.interfaces.cli.render.comparisons import print_evaluation

EXAMPLE = Path(__file__).parents[3] / "examples" / "evals" / "orders.yaml"


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["eval", *arguments], env={"TOOLCRIB_STORE": "memory://"}, catch_exceptions=False)


@pytest.mark.requirement("evaluations.command", "evaluations.comparison")
def test_the_example_is_compared_side_by_side_and_the_regression_is_told(tmp_path: Path):
    found = run(str(EXAMPLE), "--output", str(tmp_path / "report.json"))

    assert found.exit_code == 0
    assert "4/4 (100%)" in found.stdout
    assert "3/4 (75%)" in found.stdout
    told = " ".join(found.stdout.split())
    assert "worse: refund: order-desk@1.1.0 with scripted 0/1, order-desk@1.0.0 with scripted 1/1" in told
    assert "called: 'refund_order' was called 0 times" in told
    written = Evaluation.model_validate(json.loads((tmp_path / "report.json").read_text(encoding="utf-8")))
    assert [one.task for one in written.outcomes[:4]] == ["status", "total", "unknown", "refund"]


@pytest.mark.requirement("evaluations.command")
def test_the_exit_status_tells_whether_the_bars_hold():
    both = run(str(EXAMPLE), "--fail-under", "0.9", "--no-worse-than", "order-desk@1.0.0")
    one = run(str(EXAMPLE), "--agent", "order-desk@1.0.0", "--model", "scripted", "--fail-under", "1", "--repeat", "2")
    none = run(str(EXAMPLE), "--no-worse-than", "order-desk@1.1.0", "--dry-run")

    assert both.exit_code == 1
    assert "order-desk@1.1.0 with scripted passed 3 of 4, less than 90%" in both.stderr
    assert "order-desk@1.1.0 with scripted is worse than order-desk@1.0.0 with scripted at refund" in both.stderr
    assert (one.exit_code, "8/8 (100%)" in one.stdout) == (0, True)
    assert (none.exit_code, "better: refund" in none.stdout) == (0, True)


@pytest.mark.requirement("evaluations.command", "evaluations.refused")
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1]", "is not a definition; write fields as name: value"),
        ("name: [", "not YAML"),
        ("name: x\ntasks: []", "tasks: Tuple should have at least 1 item"),
    ],
)
def test_what_is_no_dataset_is_refused_in_one_line(tmp_path: Path, text: str, message: str):
    file = tmp_path / "tasks.yaml"
    file.write_text(text, encoding="utf-8")

    found = run(str(file))

    assert found.exit_code in {1, 2}
    assert message in found.stderr
    assert len(found.stderr.strip().splitlines()) == 1


@pytest.mark.requirement("evaluations.command", "evaluations.refused")
def test_a_report_that_cannot_be_written_is_refused_before_anything_runs(tmp_path: Path):
    found = run(str(EXAMPLE), "--output", str(tmp_path / "nowhere" / "report.json"))

    assert found.exit_code == 2
    assert found.stdout == ""
    assert "report.json cannot be written: " in found.stderr


@pytest.mark.requirement("evaluations.comparison")
def test_an_unknown_cost_and_many_failures_are_shown_as_such(capsys: pytest.CaptureFixture[str]):
    def figures(cost: Decimal | None, *, unknown: bool) -> EvaluationFigures:
        return EvaluationFigures(
            runs=25, passed=0, cost_usd=cost, cost_unknown=unknown, tokens=0, steps=0, tool_calls=0, p50_s=0, p95_s=0
        )

    none, some = figures(None, unknown=True), figures(Decimal("0.5"), unknown=True)
    outcomes = [
        EvaluationOutcome(task="t", candidate="a", attempt=attempt, passed=False, error="no") for attempt in range(25)
    ]
    print_evaluation(
        Evaluation(
            dataset="d",
            base="a",
            candidates=(
                CandidateResult(candidate="a", total=none, tasks={"t": none}),
                CandidateResult(candidate="b", total=some, tasks={"t": some}),
            ),
            changes=(),
            outcomes=tuple(outcomes),
        )
    )

    shown = capsys.readouterr().out
    assert "unknown" in shown
    assert "$0.5 or more" in shown
    assert "failed: t, a, no run: no" in shown
    assert "and 5 more that failed; --json has all" in shown

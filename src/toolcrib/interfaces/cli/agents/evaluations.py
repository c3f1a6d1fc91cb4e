"""`toolcrib eval`: run a dataset with several versions of an agent or tool, and compare them."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolcrib.interfaces.cli.support.commands import print_json
from toolcrib.interfaces.cli.support.inputs import object_in, require_writable, to_contract
from toolcrib.interfaces.cli.support.session import DEFAULT_STORE, AsJson, Store, with_crib

if TYPE_CHECKING:
    from toolcrib.contracts import Evaluation, EvaluationCandidate, EvaluationDataset
    from toolcrib.crib import Crib

Dataset = Annotated[Path, typer.Argument(metavar="DATASET.yaml", help="The tasks, as YAML or JSON.")]
Candidates = Annotated[
    list[str] | None,
    typer.Option(
        "--agent",
        metavar="NAME[@VERSION]",
        help="An agent, an agentic tool or any other; may be repeated. The dataset's candidates if none is named.",
        show_default=False,
    ),
]
Models = Annotated[
    list[str] | None,
    typer.Option(
        "--model",
        metavar="REF",
        help="provider:model in place of each agent's own, or scripted; may be repeated.",
        show_default=False,
    ),
]
Repeat = Annotated[int, typer.Option(min=1, max=1000, help="How often each task is run.")]
AtOnce = Annotated[int, typer.Option(min=1, max=100, help="Runs at the same time.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Skip every call that would write.")]
Output = Annotated[
    Path | None,
    typer.Option(
        "-o", "--output", metavar="FILE", help="Write every outcome into a file, as JSON.", show_default=False
    ),
]
FailUnder = Annotated[
    float | None,
    typer.Option(min=0, max=1, help="Exit status 1 if a candidate passes less than this part.", show_default=False),
]
NoWorseThan = Annotated[
    str | None,
    typer.Option(
        metavar="NAME[@VERSION]",
        help="Exit status 1 if another candidate passes a task less often than this one.",
        show_default=False,
    ),
]


def evaluate(
    dataset: Dataset,
    *,
    agent: Candidates = None,
    model: Models = None,
    repeat: Repeat = 1,
    at_once: AtOnce = 4,
    dry_run: DryRun = False,
    output: Output = None,
    fail_under: FailUnder = None,
    no_worse_than: NoWorseThan = None,
    store: Store = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Run a dataset with several agents or tools, and compare."""
    from toolcrib.interfaces.cli.render.comparisons import print_evaluation
    from toolcrib.interfaces.cli.render.progress import progress

    tasks = _read(dataset)
    if output is not None:
        require_writable(output)  # before the runs are paid for
    candidates = _candidates(tasks, agent or (), model or ())

    async def work(crib: "Crib") -> "Evaluation":
        runs = len(tasks.tasks) * len(candidates or tasks.candidates) * repeat
        with progress(f"Evaluating {tasks.name}", total=runs, every=10) as done:
            return await crib.evaluate(
                tasks,
                candidates,
                repeat=repeat,
                dry_run=dry_run,
                at_once=at_once,
                base=no_worse_than,
                done=done,
            )

    report = with_crib(store, work, new=True)
    if output is not None:
        output.write_text(report.model_dump_json(indent=2) + "\n", encoding="utf-8")
    if as_json:
        print_json(report)
    else:
        print_evaluation(report)
    problems = _problems(report, fail_under, no_worse_than)
    for problem in problems:
        print(problem, file=sys.stderr)
    if problems:
        raise typer.Exit(1)


def _read(file: Path) -> "EvaluationDataset":
    from toolcrib.contracts import EvaluationDataset

    return to_contract(EvaluationDataset, object_in(file), f"dataset {file}")


def _candidates(
    dataset: "EvaluationDataset", agents: Sequence[str], models: Sequence[str]
) -> "list[EvaluationCandidate]":
    """Every agent with every model; the dataset's own candidates, with other models if some are named."""
    from toolcrib.contracts import EvaluationCandidate

    named = [EvaluationCandidate(tool=agent) for agent in agents] or list(dataset.candidates)
    if not models:
        return named
    tools = dict.fromkeys(one.tool for one in named)
    return [EvaluationCandidate(tool=tool, model=model) for tool in tools for model in models]


def _problems(report: "Evaluation", fail_under: float | None, no_worse_than: str | None) -> list[str]:
    problems = [
        f"{result.candidate} passed {result.total.passed} of {result.total.runs}, less than {fail_under:.0%}"
        for result in report.candidates
        if fail_under is not None and result.total.success < fail_under
    ]
    if no_worse_than is not None:
        worse = [change for change in report.changes if change.kind == "regression"]
        problems += [f"{change.candidate} is worse than {report.base} at {change.task}" for change in worse]
    return problems

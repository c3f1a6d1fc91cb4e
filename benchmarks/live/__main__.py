"""`python -m benchmarks.live`: tasks for a real model, judged; prints success, wrong writes, tokens and time.

Outcomes are kept line by line, so that a run which was stopped goes on where it was.
"""

import argparse
import asyncio
import json
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.corpus import wilson
from benchmarks.live.crm import crm_tasks, run_crm
from benchmarks.live.outcome import Outcome, Task
from toolcrib.llm import LanguageModel


def main() -> None:
    options = _options()
    tasks = [task for task in crm_tasks() if _wanted(task, options)]
    asyncio.run(_run(tasks, options))
    _report(_kept(options.results), options.results)


def _options() -> Any:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.live", description=__doc__)
    parser.add_argument("--model", default="local:qwen2.5-coder-1.5b", help="provider:model")
    parser.add_argument("--base-url", help="address of the model's server")
    parser.add_argument("--tasks", type=int, help="run only so many tasks")
    parser.add_argument("--seeds", type=int, default=3, help="how often each task is run")
    parser.add_argument("--only", help="comma-separated beginnings of task ids")
    parser.add_argument("--held-out", choices=("with", "without", "only"), default="with")
    parser.add_argument("--results", type=Path, default=Path("live-results.jsonl"))
    options = parser.parse_args()
    options.left = options.tasks
    return options


def _wanted(task: Task, options: Any) -> bool:
    if options.held_out != "with" and task.held_out != (options.held_out == "only"):
        return False
    return not options.only or task.id.startswith(tuple(options.only.split(",")))


async def _run(tasks: list[Task], options: Any) -> None:
    done = {(outcome["task"], outcome["seed"]) for outcome in _kept(options.results)}
    model = open_model_of(options.model, options.base_url)
    with tempfile.TemporaryDirectory(prefix="toolcrib-live-") as folder:
        for seed in range(1, options.seeds + 1):
            for task in tasks[: options.tasks]:
                if (task.id, seed) not in done:
                    outcome = await run_crm(task, model, seed=seed, folder=Path(folder))
                    _keep(outcome, options.results)


def open_model_of(reference: str, base_url: str | None) -> LanguageModel:
    """The model, with its own way out."""
    from toolcrib.infrastructure.net import EgressPolicy, HttpSession
    from toolcrib.llm import HttpTransport, open_model

    return open_model(reference, HttpTransport(HttpSession(EgressPolicy())), base_url=base_url)


def _keep(outcome: Outcome, results: Path) -> None:
    with results.open("a") as file:
        file.write(json.dumps(outcome.as_json(), ensure_ascii=False) + "\n")
    sign = "ok  " if outcome.success else "FAIL"
    print(
        f"{sign} {outcome.task}/{outcome.seed} {outcome.seconds:5.0f} s {outcome.model_calls} calls  {outcome.problem}",
        flush=True,
    )


def _kept(results: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []


def _report(outcomes: list[dict[str, Any]], results: Path) -> None:
    print("\nkind        runs  success (95 %)       wrong writes (95 %)  tokens in    out  calls      s")
    kinds = sorted({outcome["kind"] for outcome in outcomes})
    for name, chosen in (
        *((kind, [one for one in outcomes if one["kind"] == kind]) for kind in kinds),
        ("all", outcomes),
    ):
        count = len(chosen) or 1
        mean = {
            key: sum(one[key] for one in chosen) / count
            for key in ("input_tokens", "output_tokens", "model_calls", "seconds")
        }
        right = _share(sum(one["success"] for one in chosen), count)
        wrong = _share(sum(one["wrong_writes"] > 0 for one in chosen), count)
        print(
            f"{name:10} {len(chosen):5}  {right:19}  {wrong:19} {mean['input_tokens']:10.0f} "
            f"{mean['output_tokens']:6.0f} {mean['model_calls']:6.1f} {mean['seconds']:6.1f}"
        )
    print(f"\nEvery run: {results}")


def _share(hits: int, count: int) -> str:
    low, high = wilson(hits, count)
    return f"{hits} = {hits / count:.0%} ({low:.0%} to {high:.0%})"


if __name__ == "__main__":
    main()

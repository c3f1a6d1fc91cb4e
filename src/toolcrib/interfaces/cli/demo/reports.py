"""The output of the demos: as text, and as one JSON document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

from rich.text import Text

from examples.crm.demo import Outcome
from examples.crm.verify import StageVerdict
from toolcrib.contracts import Json, Trace
from toolcrib.interfaces.cli.render.console import console, plain
from toolcrib.interfaces.cli.render.documents import DemoReport
from toolcrib.interfaces.cli.render.tree import draw

if TYPE_CHECKING:  # they need the extra `research`
    from examples.research.demo import Outcome as OutcomeOfResearch_report
    from examples.research.verify import Verdict


@dataclass(frozen=True, slots=True)
class Files:
    """Where the demonstration's data is; null for what is gone afterwards."""

    folder: Path
    db: Path | None
    """The CRM's database."""
    store: str | None
    """The journal."""

    def with_paths(self, store: str | None, db: Path | None) -> Self:
        """What stays if the folder goes: only what was named."""
        return replace(self, store=store, db=db)


def announce(model: str, *, scripted: str | None, command: str) -> None:
    """Say what is used as model, before anything runs.

    Args:
        model: The model that is used.
        scripted: What the demonstration's own model is made of; null for a real model.
        command: The demonstration's command.
    """
    screen = console()
    if scripted:
        screen.print(plain(f"Model: {model}, {scripted}. No model is asked and no API key is read."))
        screen.print(
            f"       With a real one: {command} --model anthropic:claude-sonnet-4 (and ANTHROPIC_API_KEY set),\n"
            f"       or a local one: {command} --model ollama:qwen3. TOOLCRIB_MODEL says the same."
        )
    else:
        screen.print(plain(f"Model: {model}"))
    screen.print()


def show(outcome: Outcome, files: Files) -> None:
    """The trace, the verdict on the data, and where to look further."""
    screen = console()
    screen.print(draw(outcome.trace))
    screen.print()
    screen.print(Text("Check of the CRM's database, whatever the run reported:", style="bold"))
    if outcome.verdict is None:
        screen.print(plain(f"✗ not checked: {outcome.problem}", "red"))
    else:
        screen.print(plain(_counts(outcome.verdict)))
        screen.print(_sentence(outcome.verdict))
    screen.print()
    for line in _further(outcome, files):
        screen.print(plain(line), soft_wrap=True)


def document(outcome: Outcome, files: Files) -> DemoReport:
    """The same as data."""
    verified = outcome.verdict.as_json() if outcome.verdict else {"all_and_only": False, "problem": outcome.problem}
    return run_document(
        outcome.trace,
        success=outcome.ok,
        model=outcome.model,
        verified=verified,
        store=files.store,
        crm_db=None if files.db is None else str(files.db),
    )


def run_document(trace: Trace, *, success: bool, model: str, **more: Json) -> DemoReport:
    """A run as one document: `success`, `data`, `partial` and `error` if there are any, and `meta` with all else."""
    fields = trace.model_dump(mode="json")
    meta = {
        "run_id": fields["run_id"],
        "agentic_tool": fields["tool"],
        "mode": fields["mode"],
        "model": model,
        "status": fields["status"],
        "stop_reason": fields["stop_reason"],
        "total_cost": fields["cost"],
        "total_tokens": fields["tokens"],
        "duration_ms": fields["duration_ms"],
        "warnings": fields["warnings"],
        "trace": {"steps": fields["steps"]},
        **more,
    }
    given = {"success": success, "data": fields["output"], "meta": meta}
    return DemoReport.model_validate(given | {name: fields[name] for name in ("partial", "error")})


def _counts(verdict: StageVerdict) -> str:
    return (
        f"  {verdict.total} deals of {verdict.company}: {verdict.already_in_stage} were in {verdict.stage} before, "
        f"{verdict.in_stage} are now\n"
        f"  {verdict.changed} changed their stage, {verdict.changed_twice} of them more than once; "
        f"{verdict.changed_beyond_stage} changed in anything else\n"
        f"  {verdict.changed_others} deals of others changed"
    )


def _sentence(verdict: StageVerdict) -> Text:
    if verdict.all_and_only:
        return plain(f"✓ all deals of {verdict.company}, and only they, are in {verdict.stage}", "green")
    wrong = {
        f"deals of {verdict.company} are not in {verdict.stage}": len(verdict.missing),
        "changed more than once": verdict.changed_twice,
        "changed in more than the stage": verdict.changed_beyond_stage,
        "deals of others changed": verdict.changed_others,
    }
    return plain("✗ not right: " + ", ".join(f"{count} {what}" for what, count in wrong.items() if count), "red")


def _further(outcome: Outcome, files: Files) -> list[str]:
    run_id = outcome.result.run_id
    if files.store is None:
        return [f"The run {run_id} was kept only as long as it took; keep it with: toolcrib demo crm --keep"]
    lines = [f"Look at the run again: toolcrib run trace {run_id} --store {files.store}"]
    return lines if files.db is None else [*lines, f"The CRM's database: {files.db}"]


def show_research(outcome: OutcomeOfResearch_report, store: str | None) -> None:
    """The trace, the verdict on the answer, and next steps; the store is null if it was deleted."""
    screen, verdict = console(), outcome.verdict
    screen.print(draw(outcome.trace))
    screen.print()
    screen.print(Text("Check of the answer by the web's own facts and its log of requests:", style="bold"))
    for url in verdict.sources:
        screen.print(plain(f"  {'not read' if url in verdict.not_read else 'read'}: {url}"), soft_wrap=True)
    screen.print(_research_sentence(verdict))
    screen.print()
    run_id = outcome.result.run_id
    further = (
        f"The run {run_id} was kept only as long as it took; keep it with: toolcrib demo research --keep"
        if store is None
        else f"Look at the run again: toolcrib run trace {run_id} --store {store}"
    )
    screen.print(plain(further), soft_wrap=True)


def research_document(outcome: OutcomeOfResearch_report, store: str | None) -> DemoReport:
    """The same as data."""
    verified = outcome.verdict.as_json()
    return run_document(outcome.trace, success=outcome.ok, model=outcome.model, verified=verified, store=store)


def _research_sentence(verdict: Verdict) -> Text:
    if verdict.right:
        facts = "the facts are right" if verdict.facts_known else "no facts are known to check it by"
        return plain(f"✓ {facts}, every source was read, and no page's orders were followed", "green")
    faults: dict[str, Sequence[str]] = {
        "not said": verdict.missing,
        "said as if it were true": verdict.unmarked,
        "named and not read": verdict.not_read,
        "not named as source": verdict.not_named,
        "orders of a page that were followed": verdict.trapped,
        "sources": () if verdict.sources else ("none is named",),
    }
    return plain("✗ not right: " + "; ".join(f"{what}: {', '.join(of)}" for what, of in faults.items() if of), "red")

"""What the research demonstration prints: for people, and as one JSON document."""

from collections.abc import Sequence

from rich.text import Text

from examples.research.demo import Outcome
from examples.research.verify import Verdict
from toolcrib.contracts import JsonObject
from toolcrib.interfaces.cli.demo.reports import answered
from toolcrib.interfaces.cli.render.console import console, plain
from toolcrib.interfaces.cli.render.tree import draw


def show(outcome: Outcome, store: str | None) -> None:
    """The trace, the verdict on the answer, and where to look further; the store is null if it is gone."""
    screen, verdict = console(), outcome.verdict
    screen.print(draw(outcome.trace))
    screen.print()
    screen.print(Text("Check of the answer by the web's own facts and its log of requests:", style="bold"))
    for url in verdict.sources:
        screen.print(plain(f"  {'not read' if url in verdict.not_read else 'read'}: {url}"), soft_wrap=True)
    screen.print(_sentence(verdict))
    screen.print()
    run_id = outcome.result.run_id
    further = (
        f"The run {run_id} was kept only as long as it took; keep it with: toolcrib demo research --keep"
        if store is None
        else f"Look at the run again: toolcrib run trace {run_id} --store {store}"
    )
    screen.print(plain(further), soft_wrap=True)


def document(outcome: Outcome, store: str | None) -> JsonObject:
    """The same as data."""
    verified = outcome.verdict.as_json()
    return answered(outcome.trace, success=outcome.ok, model=outcome.model, verified=verified, store=store)


def _sentence(verdict: Verdict) -> Text:
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

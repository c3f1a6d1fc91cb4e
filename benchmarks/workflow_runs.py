"""What the engine of workflows costs beyond the tools: CPU of a step, memory of a large fan-out, work of an expression.

A step's cost is the CPU of a workflow of 1,000 steps, less that of the same calls made one after the other by a program
of its own, in rounds that take turns. Memory is the peak of this process above what it was before. A run is resumed
when half of its 10,000 elements are done. Expressions are evaluated at sizes that double: linear work takes twice as
long.

    python -m benchmarks.workflow_runs --rounds 5
"""

import argparse
import asyncio
import gc
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import process_time

from benchmarks.measure import cpu_ms, peak_rss_mb
from toolcrib import Crib, tool
from toolcrib.contracts import OWNER, Json, JsonObject, Run, RunRequest, ToolRevision
from toolcrib.contracts.workflows import WorkflowDefinition
from toolcrib.core.engines import EngineSettings, LocalEngine, SystemClock, new_run_id
from toolcrib.core.executor import CallRequest
from toolcrib.core.expressions import compile_expression
from toolcrib.core.runs import Program, RunContext, RunEnd

STEPS = 1_000
ITEMS = 10_000
BAR_MS = 1.0
GROWTH_MB = 100.0
"""What a fan-out of 10,000 may take."""
LINEAR = 3.0
"""The most that twice the size may cost, noise included."""


@tool(side_effects="reads")
async def look(key: str) -> dict[str, str]:
    """Something small."""
    return {"found": key}


def shapes() -> Mapping[str, list[JsonObject]]:
    """Graphs of 1,000 steps: one after the other, all at once, and 25 layers of 40 that read each other."""
    chain: list[JsonObject] = [_step(n, [f"s{n - 1}"] if n else []) for n in range(STEPS)]
    wide: list[JsonObject] = [_step(n, []) for n in range(STEPS)]
    layered: list[JsonObject] = [
        _step(n, [f"s{n - n % 40 - 1}", f"s{n - 40}"] if n >= 40 else []) for n in range(STEPS)
    ]
    return {"chain": chain, "wide": wide, "layered": layered}


def _step(number: int, before: list[str]) -> JsonObject:
    read = f"${{{before[-1]}.found}}" if before else "x"
    return {"name": f"s{number}", "tool": "look", "input": {"key": read}, "depends_on": before[:-1]}


def fan_out(*, waits: bool) -> WorkflowDefinition:
    """One step for each element of the input; in two halves, if it waits between them."""
    over: JsonObject = {"tool": "look", "input": {"key": "${item}"}}
    steps: list[JsonObject] = [{"name": "first", "for_each": {"items": "${input.keys}", "max_concurrency": 50}, **over}]
    if waits:
        steps.append({"name": "go", "wait": {"signal": "go"}, "depends_on": ["first"]})
        steps.append({**steps[0], "name": "second", "depends_on": ["go"]})
    return WorkflowDefinition.model_validate(
        {"name": "halves" if waits else "fan", "steps": steps, "output": {"done": "${first.length}"}}
    )


def direct(called: ToolRevision) -> Program:
    """The same calls without a workflow."""

    async def program(context: RunContext, _: ToolRevision) -> RunEnd:
        for number in range(STEPS):
            await context.call(CallRequest(f"s{number}", called.name, {"key": "x"}, called.content_hash))
        return RunEnd()

    return program


async def able(_: Run) -> None:
    """This process can do all that its runs need."""


async def cpu_of_steps(store: str, rounds: int) -> dict[str, float]:
    """Milliseconds of a step beyond its call, by shape."""
    async with Crib(store) as crib:
        crib.add(look)
        for name, steps in shapes().items():
            await crib.save(WorkflowDefinition.model_validate({"name": name, "steps": steps}).tool())
        called, chain = (crib.registry.require(crib.principal.realm, name) for name in ("look", "chain"))
        engine = LocalEngine(
            store=crib.store,
            registry=crib.registry,
            executor=crib.executor,
            programs={"workflow": direct(called)},
            clock=SystemClock(),
            new_run_id=new_run_id,
            settings=EngineSettings(owner="benchmark"),
            check_able=able,
        )
        request = RunRequest(
            kind="workflow", tool=chain.ref, content_hash=chain.content_hash, input={}, principal=OWNER
        )
        found: dict[str, list[float]] = {name: [] for name in shapes()}
        for number in range(rounds + 1):
            before = cpu_ms()
            await engine.start(request)
            calls = cpu_ms() - before
            for name, took in found.items():
                before = cpu_ms()
                result = await crib.invoke(name, {})
                if not result.ok:
                    raise RuntimeError(result.error)
                if number:  # what is loaded and compiled by the first runs is not what a step costs
                    took.append((cpu_ms() - before - calls) / STEPS)
        await engine.close()
    return {name: round(median(took), 3) for name, took in found.items()}


async def memory_of_items(folder: Path) -> dict[str, float]:
    """MiB at the peak above what was there before, for a tenth of the elements and for all."""
    found: dict[str, float] = {}
    async with Crib(f"sqlite:///{folder}/memory.db") as crib:
        crib.add(look)
        await crib.save(fan_out(waits=False).tool())
        await crib.invoke("fan", {"keys": ["x"] * 100})
        for items in (ITEMS // 10, ITEMS):
            gc.collect()
            before = peak_rss_mb()
            keys: Json = [str(number) for number in range(items)]
            result = await crib.invoke("fan", {"keys": keys})
            if not result.ok:
                raise RuntimeError(result.error)
            found[f"{items}_items_mb"] = round(peak_rss_mb() - before, 1)
    return found


async def cost_of_resuming(folder: Path) -> dict[str, float]:
    """Milliseconds of CPU for each element that is done when a run of 10,000 is taken up in the middle."""
    async with Crib(f"sqlite:///{folder}/resume.db") as crib:
        crib.add(look)
        await crib.save(fan_out(waits=True).tool())
        keys: Json = [str(number) for number in range(ITEMS // 2)]
        before = cpu_ms()
        instance = await crib.instances.start("halves", {"keys": keys})
        first = cpu_ms() - before
        await crib.instances.signal(instance.run_id, "go", {})
        before = cpu_ms()
        ended = await crib.instances.resume(instance.run_id)
        second = cpu_ms() - before
        if ended.status != "completed":
            raise RuntimeError(ended.error)
    return {"first_half_ms": round(first), "resumed_ms_per_done_item": round((second - first) / (ITEMS // 2), 3)}


EXPRESSIONS: Mapping[str, Callable[[int], tuple[str, JsonObject]]] = {
    "projection": lambda n: ("xs[*].a", {"xs": [{"a": 1}] * (n * 20)}),
    "nested brackets": lambda n: ("(" * (n // 50) + "x" + ")" * (n // 50), {"x": 1}),
    "chain of fields": lambda n: ("x" + ".a" * (n // 10), {"x": _deep(n // 10)}),
    "chain of operators": lambda n: (" + ".join(["x"] * (n // 10)), {"x": 1}),
    "long text": lambda n: ("'" + "a" * (n // 2) + "'", {}),
}


def _deep(levels: int) -> Json:
    made: Json = 1
    for _ in range(levels):
        made = {"a": made}
    return made


def growth_of_expressions(size: int = 500, repeats: int = 200) -> dict[str, float]:
    """What twice the size costs, as a factor: of compiling and evaluating together."""
    return {
        name: round(_cost(make(2 * size), repeats) / _cost(make(size), repeats), 2)
        for name, make in EXPRESSIONS.items()
    }


def _cost(given: tuple[str, JsonObject], repeats: int) -> float:
    source, scope = given
    took: list[float] = []
    for _ in range(repeats):
        compile_expression.cache_clear()
        before = process_time()
        compile_expression(source).evaluate(scope)
        took.append(process_time() - before)
    return min(took)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        items = asyncio.run(memory_of_items(Path(folder)))
        steps = {
            "memory": asyncio.run(cpu_of_steps("memory://", options.rounds)),
            "sqlite": asyncio.run(cpu_of_steps(f"sqlite:///{folder}/steps.db", options.rounds)),
        }
        resumed = asyncio.run(cost_of_resuming(Path(folder)))
    growth = growth_of_expressions()
    print(json.dumps({"ms_per_step": steps, **items, **resumed, "growth": growth}, indent=2))
    worst = max(cost for shape in steps.values() for cost in shape.values())
    print(f"a step beyond its call: {worst:.2f} ms CPU at most; bar {BAR_MS:g} ms: {_verdict(worst < BAR_MS)}")
    grown = items[f"{ITEMS}_items_mb"]
    print(f"a fan-out of {ITEMS:,}: {grown:.0f} MiB; bar {GROWTH_MB:g} MiB: {_verdict(grown < GROWTH_MB)}")
    steepest = max(growth.values())
    print(f"twice the expression: {steepest:g}x at most; bar {LINEAR:g}x: {_verdict(steepest < LINEAR)}")


def _verdict(met: bool) -> str:
    return "met" if met else "missed"


if __name__ == "__main__":
    main()

"""Every kind of change against every graph: who is concerned is named before, nothing is dropped, nothing is silent."""

import asyncio
from dataclasses import dataclass

import pytest

from tests.contract.graphs import world
from tests.contract.graphs.changes import CHANGES, Change
from tests.contract.graphs.playing import Outcome, play
from tests.contract.graphs.workflows import GRAPHS, publish_all
from toolcrib import Crib
from toolcrib.contracts import Dependent
from toolcrib.contracts.workflows import WorkflowGraph

pytestmark = pytest.mark.requirement("workflow_impact.proof")


@dataclass(frozen=True)
class Before:
    """How all graphs stood and ended before any change."""

    graphs: dict[str, WorkflowGraph]
    outcomes: dict[str, Outcome]


async def look() -> Before:
    """Publish, draw and run all graphs."""
    async with world.crib() as crib:
        await world.furnish(crib)
        await publish_all(crib)
        return Before(
            {graph.name: await crib.workflows.graph(graph.name) for graph in GRAPHS},
            {graph.name: await play(crib, graph.name) for graph in GRAPHS},
        )


@pytest.fixture(scope="module")
def before() -> Before:
    return asyncio.run(look())


def drawn(graph: WorkflowGraph) -> tuple[list[str], list[tuple[str, str, str, str | None, str]]]:
    """What there is in a graph, whatever has become of it."""
    edges = [(edge.source, edge.target, edge.kind, edge.reference, edge.path) for edge in graph.edges]
    return [node.name for node in graph.nodes], edges


def named(dependents: tuple[Dependent, ...]) -> dict[str, Dependent]:
    """The workflows among dependents, by name."""
    return {each.path[0]: each for each in dependents if each.kind == "workflow"}


def silent(before: Outcome, after: Outcome, graph: WorkflowGraph, target: str) -> str | None:
    """Why a run is a silent breakage; null if it is none."""
    if after.is_like(before) or any(target in warning for warning in after.warnings):
        return None
    if after.status == "completed":
        return f"another result, and nothing said: {before.output} and then {after.output}"
    if after.error is None:
        return "it failed without an error"
    step = (after.error.details or {}).get("step")
    broken = {node.name for node in graph.nodes if node.state == "broken"}
    if step not in broken:
        return f"it failed at {step!r}, which is not marked: {after.error.message}"
    return None if target in after.error.message else f"the error does not name {target!r}: {after.error.message}"


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.name)
async def test_a_change_names_the_graphs_that_it_concerns_drops_nothing_and_is_never_silent(
    change: Change, before: Before
):
    async with world.crib() as crib:
        await world.furnish(crib)
        await publish_all(crib)
        concerned = {graph.name for graph in GRAPHS if change.target in graph.uses}
        foreseen = named(tuple(await change.foresee(crib)))
        assert foreseen.keys() == concerned

        await change.make(crib)

        for graph in GRAPHS:
            if graph.name == change.target and change.name.startswith("workflow: "):
                continue
            now = await crib.workflows.graph(graph.name)
            assert drawn(now) == drawn(before.graphs[graph.name])
            assert all(part.reason for part in (*now.nodes, *now.edges) if part.state != "ok")
            if graph.name not in concerned:
                assert now == before.graphs[graph.name]
            elif change.is_proposed and now.state != "ok":
                verdict = foreseen[graph.name]
                assert verdict.verdict != "unaffected", graph.name
                assert verdict.held == (now.state == "held"), graph.name
                assert verdict.reasons, graph.name
            outcome = await play(crib, graph.name)
            told = silent(before.outcomes[graph.name], outcome, now, change.target)
            assert told is None, f"{graph.name}: {told}"


@pytest.mark.parametrize(
    "name", ["field: it is made of something else", "kind: it is a composite", "output: a property is gone"]
)
async def test_without_the_lock_the_same_changes_are_silent_breakages(name: str, before: Before):
    change = next(change for change in CHANGES if change.name == name)
    async with world.crib() as crib:
        await world.furnish(crib)
        await publish_all(crib)
        for graph in GRAPHS:
            await unlock(crib, graph.name)

        await change.make(crib)

        silences = [
            graph.name
            for graph in GRAPHS
            if silent(
                before.outcomes[graph.name],
                await play(crib, graph.name),
                await crib.workflows.graph(graph.name),
                change.target,
            )
        ]
        assert len(silences) >= 10


async def unlock(crib: Crib, name: str) -> None:
    """Save a workflow once more as if nothing had written down what it was checked against."""
    tool = (await crib.workflows.get(name)).definition
    implementation = tool.implementation.model_copy(update={"bound": {}})
    unlocked = tool.model_copy(update={"implementation": implementation})
    await crib.registry.save(unlocked, realm="default", made_by="test", at=crib.clock.now())


def test_there_are_more_than_fifty_kinds_of_change_and_twenty_graphs_that_use_the_tool():
    assert len({change.name for change in CHANGES}) == len(CHANGES) >= 50
    assert len([graph for graph in GRAPHS if "stock" in graph.uses]) >= 20
    assert [graph.name for graph in GRAPHS if not graph.uses] == ["toolless"]

"""Any workflow, killed at any event, any number of times: it ends as an undisturbed run, and does nothing twice."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.property.workflow_world import Crash, World
from toolcrib.contracts import CallFinished, CallStarted, Json, JsonObject, ProgressMade, Run, RunFinished
from toolcrib.contracts.workflows import WorkflowDefinition
from toolcrib.infrastructure.store import MemoryStore, Store, open_store

INPUT: Final[JsonObject] = {"items": [1, 2, 3], "yes": True, "no": False}
NESTED: Final = WorkflowDefinition(
    name="nested",
    steps=(  # pyright: ignore[reportArgumentType] - as JSON
        {"name": "first", "tool": "pays", "input": {"given": "${input.given}"}},
        {"name": "asked", "approval": {"message": "go on?"}, "on_error": "continue"},
        {"name": "last", "tool": "keyed", "input": {"first": "${first}", "asked": "${asked}"}},
    ),
)


def step_kinds(name: str) -> st.SearchStrategy[JsonObject]:
    """What a step does."""
    calls = st.fixed_dictionaries({"tool": st.sampled_from(["computes", "keyed", "pays"])})
    return st.one_of(
        calls,
        calls,
        calls,
        st.just({"output": {"made": name}}),
        st.just({"wait": {"seconds": 6}}),
        st.just({"wait": {"signal": f"of_{name}"}}),
        st.just({"approval": {"message": f"{name}?"}}),
        st.just({"workflow": "nested"}),
    )


@st.composite
def steps(draw: st.DrawFn, number: int, before: Sequence[str], failing: dict[str, int]) -> list[JsonObject]:
    """A step with edges to earlier ones, and the step that it goes to when it fails."""
    name = f"s{number}"
    step: JsonObject = {"name": name, **draw(step_kinds(name))}
    needs = draw(st.lists(st.sampled_from(before), unique=True, max_size=3)) if before else []
    read = [need for need in needs if draw(st.booleans())]
    step["depends_on"] = [need for need in needs if need not in read]
    data = {need: f"${{{need}}}" for need in read}
    if "tool" in step:
        step["input"] = data
    elif "workflow" in step:
        step["input"] = {"given": [*data.values()]}
    elif "output" in step:
        step["output"] = {**step["output"], **data}
    step["join"] = draw(st.sampled_from(["all", "all", "any", "always"]))
    conditions = ["${input.yes}", "${input.no}", *(f"${{steps.{need}.status == 'succeeded'}}" for need in needs)]
    if draw(st.integers(0, 3)) == 0:
        step["condition"] = draw(st.sampled_from(conditions))
    if "tool" in step:
        _make_failing(draw, name, step, failing)
    on_error = draw(st.sampled_from(["fail", "continue", "continue", "go_to"]))
    if on_error != "go_to":
        return [{**step, "on_error": on_error}]
    handler = {"name": f"h{number}", "tool": "keyed", "input": {"why": "${error.code}"}}
    return [{**step, "on_error": {"go_to": f"h{number}"}}, handler]


def _make_failing(draw: st.DrawFn, name: str, step: JsonObject, failing: dict[str, int]) -> None:
    """Tries, elements, and how many of the tries fail."""
    retries = draw(st.integers(0, 2))
    step["retry"] = {"count": retries, "base_s": 0.5}
    failing[name] = draw(st.sampled_from([0, 0, 1, 2, 3]))
    if draw(st.integers(0, 2)) == 0:
        step["for_each"] = {
            "items": "${input.items}",
            "max_concurrency": draw(st.integers(1, 3)),
            "on_item_error": draw(st.sampled_from(["fail", "continue"])),
        }
        step["input"] = {**step["input"], "item": "${item}"}


@st.composite
def workflows(draw: st.DrawFn) -> tuple[WorkflowDefinition, dict[str, int]]:
    """A graph, and how many tries of its steps fail."""
    failing: dict[str, int] = {}
    made: list[JsonObject] = []
    for number in range(draw(st.integers(1, 6))):
        made += draw(steps(number, [step["name"] for step in made], failing))
    return WorkflowDefinition(name="any_graph", steps=made), failing  # pyright: ignore[reportArgumentType] - as JSON


crashes = st.lists(st.builds(Crash, events=st.integers(1, 25), keeps=st.booleans()), max_size=5)
EXAMPLES: Final = settings(
    deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


def any_schedule(test: Callable[..., None]) -> Callable[..., None]:
    """Any graph, any failures, any crashes; people who answer at once or when the run waits."""
    return given(workflow=workflows(), crashes=crashes, lively=st.booleans())(test)


@pytest.mark.requirement("workflow_running.any_crash")
@settings(EXAMPLES, max_examples=120)
@any_schedule
def test_a_workflow_ends_as_undisturbed_wherever_its_processes_die(
    workflow: tuple[WorkflowDefinition, dict[str, int]], crashes: Sequence[Crash], lively: bool
):
    asyncio.run(check(workflow, crashes, MemoryStore(), lively=lively))


@pytest.mark.requirement("workflow_running.any_crash")
@settings(EXAMPLES, max_examples=8)
@any_schedule
def test_it_does_so_on_sqlite_too(
    workflow: tuple[WorkflowDefinition, dict[str, int]], crashes: Sequence[Crash], lively: bool
):
    with TemporaryDirectory() as folder:
        asyncio.run(check(workflow, crashes, open_store(f"sqlite:///{Path(folder) / 'crib.db'}"), lively=lively))


@pytest.mark.soak
@pytest.mark.requirement("workflow_running.any_crash")
@settings(EXAMPLES, max_examples=10_000, derandomize=False)
@any_schedule
def test_it_does_so_in_ten_thousand_schedules(
    workflow: tuple[WorkflowDefinition, dict[str, int]], crashes: Sequence[Crash], lively: bool
):
    asyncio.run(check(workflow, crashes, MemoryStore(), lively=lively))


async def check(
    workflow: tuple[WorkflowDefinition, dict[str, int]], crashes: Sequence[Crash], store: Store, *, lively: bool
) -> None:
    definition, failing = workflow
    calm = World((NESTED, definition), failing)
    expected = await calm.live(INPUT)

    await store.open()
    try:
        world = World((NESTED, definition), failing, store, lively=lively)
        ended = await world.live(INPUT, crashes)
        for run in await store.journal.runs(ended.realm, limit=1000):
            await check_journal(store, run)
        assert max(world.effects.values(), default=1) == 1
        assert {key: count for key, count in calm.effects.items() if count > 1} == {}
        assert await outcome(store, ended) == await outcome(calm.store, expected)
        if ended.status == "completed":
            assert await settled_steps(store, ended) == await settled_steps(calm.store, expected)
            if not stops_early(definition, failing):
                assert world.done == calm.done
    finally:
        await store.close()


async def outcome(store: Store, run: Run) -> tuple[str, Json]:
    """How a run has ended; of one that has failed, which steps had ended before depends on the time they took."""
    last = (await store.journal.events(run.run_id))[-1].event
    assert isinstance(last, RunFinished)
    return last.status, last.output if last.status == "completed" else None


def stops_early(definition: WorkflowDefinition, failing: dict[str, int]) -> bool:
    """Whether which elements of a step are begun depends on how long others take."""
    return any(
        step.for_each is not None
        and step.for_each.on_item_error == "fail"
        and failing.get(step.name, 0) > step.retry.count
        for step in definition.steps
    )


async def settled_steps(store: Store, run: Run) -> dict[str, Json]:
    """What became of each step."""
    events = [entry.event for entry in await store.journal.events(run.run_id)]
    told = {event.key: event.data for event in events if isinstance(event, ProgressMade)}
    return {key: cast("JsonObject", data).get("status") for key, data in told.items() if isinstance(data, dict)}


async def check_journal(store: Store, run: Run) -> None:
    """Every run of the family has ended, and its journal has no gap, and nothing twice that happens once."""
    entries = await store.journal.events(run.run_id)
    assert [entry.number for entry in entries] == list(range(1, len(entries) + 1))
    events = [entry.event for entry in entries]
    assert run.ended
    assert isinstance(events[-1], RunFinished)
    calls = [event for event in events if isinstance(event, CallStarted) and ".reconcile" not in event.position]
    once = Counter(
        [("ended", event.position) for event in events if isinstance(event, CallFinished)]
        + [("told", event.key) for event in events if isinstance(event, ProgressMade)]
        + [(f"tried {event.attempt}", event.position) for event in calls]
    )
    assert {key: count for key, count in once.items() if count > 1} == {}

"""Costs that must not grow: of adding and importing tools, and with the catalogue, the run and the store."""

import sys
from collections.abc import Callable, Sequence

import pytest

from benchmarks.growth import (
    WAITING,
    WAITING_BAR_KB,
    AnyTool,
    add_calls,
    call_calls,
    call_calls_after,
    definitions,
    functions,
    import_calls,
    step_calls,
    stores,
    waiting_kb,
)
from benchmarks.mcp_listing import page_calls

FUNCTION_CALLS, DEFINITION_CALLS, OPERATION_CALLS = 281, 264, 1402
"""Python calls per tool that is added, and per operation that is imported; what is saved, is to be written here too."""
GROWTH = {"memory": 1.01, "SQLite": 1.05}
"""Times a count: a store forgets its oldest runs once it has many, and SQLite's thread wakes the loop when it does."""

pytestmark = pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the counts are those of Python 3.11")


@pytest.mark.requirement("benchmarks.catalogue_costs")
@pytest.mark.parametrize(("make", "most"), [(functions, FUNCTION_CALLS), (definitions, DEFINITION_CALLS)])
async def test_adding_a_tool_makes_no_more_calls_than_recorded(make: Callable[[int], Sequence[AnyTool]], most: int):
    made = await add_calls(make(201))
    assert most * 0.97 <= made <= most, f"{made} calls per tool, {most} recorded"


@pytest.mark.requirement("benchmarks.catalogue_costs")
async def test_importing_an_operation_makes_no_more_calls_than_recorded():
    made = await import_calls(30)
    assert OPERATION_CALLS * 0.97 <= made <= OPERATION_CALLS, f"{made} calls per operation, {OPERATION_CALLS} recorded"


@pytest.mark.requirement("benchmarks.flat")
@pytest.mark.parametrize(("kind", "many"), [("memory", 2_000), ("SQLite", 200)])
async def test_a_call_costs_the_same_among_many_tools(kind: str, many: int):
    async with stores() as urls:
        few, found = await call_calls(urls[kind](), 10), await call_calls(urls[kind](), many)
    assert found <= few * GROWTH[kind]


@pytest.mark.requirement("benchmarks.flat")
async def test_a_page_of_tools_for_an_mcp_client_costs_the_same_among_many_tools():
    assert await page_calls(2_000) <= await page_calls(250) * 1.01


@pytest.mark.requirement("benchmarks.flat")
@pytest.mark.parametrize(("kind", "many"), [("memory", 250), ("SQLite", 50)])
async def test_a_step_costs_the_same_after_many_events(kind: str, many: int):
    """Each step makes two events."""
    async with stores() as urls:
        first, later = await step_calls(urls[kind](), 10), await step_calls(urls[kind](), many)
    assert later <= first * GROWTH[kind]


@pytest.mark.requirement("benchmarks.flat")
@pytest.mark.parametrize(("kind", "many"), [("memory", 500), ("SQLite", 200)])
async def test_a_call_costs_the_same_beside_many_stored_runs(kind: str, many: int):
    async with stores() as urls:
        alone, beside = await call_calls_after(urls[kind](), 0), await call_calls_after(urls[kind](), many)
    assert beside <= alone * GROWTH[kind]


@pytest.mark.requirement("benchmarks.waiting")
@pytest.mark.parametrize("name", WAITING)
@pytest.mark.parametrize("kind", ["memory", "SQLite"])
async def test_a_run_that_waits_takes_little_memory(kind: str, name: str):
    async with stores() as urls:
        assert await waiting_kb(urls[kind](), 60, name) < WAITING_BAR_KB

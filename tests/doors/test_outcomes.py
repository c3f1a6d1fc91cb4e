"""docs/outcomes.md: the same call leads to the same envelopes at each interface, and is told as the page says."""

import asyncio
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from tests.doors.interfaces import INTERFACES, Interface, Seen
from tests.doors.world import CASES, Case, World, answered, served_world
from toolcrib.contracts import CallFinished
from toolcrib.core.runs import Result

_PAGE = Path(__file__).parents[2] / "docs" / "outcomes.md"
_OWN = {"retry_after_s", "call_id", "run_id", "session_id", "conversation_id", "t_start", "t_end", "timings"}
"""What differs between two calls."""

_UNASKED = {"agent awaits answer", "agent answered"}
_AS_TOOLS = {"command line", "LangChain", "pydantic-ai", "OpenAI Agents"}
"""Interfaces that call an agent as a tool, within the run of a call: what it would ask is not asked."""

_FOR_AGENTS = {"OpenAI endpoint", "A2A", "AG-UI"}
"""Interfaces that have no tools."""

_WITHOUT_A_RUN = {"not permitted", "not visible", "unknown tool", "agent not permitted", "agent not visible"}
_COST_IN_THE_JOURNAL = {"OpenAI Agents"}
_COST = 0.0011
"""Of the agent that completes, in US dollars."""

Table = dict[str, dict[str, str]]


def tables() -> tuple[Table, Table]:
    """What comes of each call, and how each interface tells it."""
    blocks: list[list[list[str]]] = [[]]
    for line in _PAGE.read_text().splitlines():
        if line.startswith("|"):
            blocks[-1].append([cell.strip() for cell in line.strip("|").split("|")])
        elif blocks[-1]:
            blocks.append([])
    filled = [block for block in blocks if block]
    ends, told = ({row[0]: dict(zip(head, row, strict=True)) for row in rows} for head, _, *rows in filled[:2])
    return ends, told


ENDS, TOLD = tables()


def stripped(value: Any) -> Any:
    """An envelope without what differs between two calls, also in envelopes inside of it."""
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return {key: stripped(each) for key, each in fields.items() if key not in _OWN}
    return [stripped(each) for each in cast("list[Any]", value)] if isinstance(value, list) else value


def envelopes_of(result: Result) -> Any:
    return [
        stripped(msgspec.to_builtins(entry.event.envelope))
        for entry in result.log
        if isinstance(entry.event, CallFinished)
    ]


def end_of(result: Result) -> tuple[str, str, str, str]:
    error = result.error
    reason = str(((error.details or {}) if error else {}).get("reason", ""))
    return str(result.status), str(result.stop_reason or ""), str(error.code) if error else "", reason


async def ended(world: World, case: Case, interface: Interface) -> tuple[Seen, Result | None]:
    """What an interface tells of a call, and the run that it led to, when people have done their part."""
    before = await world.newest()
    seen = await _called(world, case, interface)
    run_id = await world.newest()
    if run_id is None or run_id == before:
        return seen, None
    if case.sequel is not None:
        return seen, await case.sequel(world, run_id)
    return seen, await world.crib.executions.result(run_id)


async def _called(world: World, case: Case, interface: Interface) -> Seen:
    if not case.cancelled:
        return await interface(world, case)
    world.begun.clear()
    calling = asyncio.ensure_future(interface(world, case))
    waiting = asyncio.ensure_future(world.begun.wait())
    await asyncio.wait({calling, waiting}, return_when=asyncio.FIRST_COMPLETED)  # an agent's interface has no tools
    if waiting.done():
        await world.crib.cancel(str(await world.newest()))
    waiting.cancel()
    return await calling


@pytest.mark.requirement("doors.outcomes")
def test_the_page_has_every_case_and_every_interface():
    assert TOLD.keys() == {name for name, case in CASES.items() if case.sequel is None}
    assert ENDS.keys() == CASES.keys() - _WITHOUT_A_RUN
    assert {column for column, _ in INTERFACES.values()} == TOLD["completed"].keys() - {"call"}


@pytest.mark.requirement("doors.outcomes", "doors.envelopes", "doors.costs", "doors.approvals")
@pytest.mark.parametrize("name", INTERFACES)
async def test_each_call_has_the_same_envelope_and_is_told_as_the_page_says(name: str, tmp_path: Path) -> None:
    column, interface = INTERFACES[name]
    found: dict[str, Seen] = {}
    cases = {title: case for title, case in CASES.items() if name not in _AS_TOOLS or title not in _UNASKED}
    async with served_world(tmp_path) as world:
        await world.crib.invoke("paid", {})  # which uses up its budget
        if name in _AS_TOOLS:
            found["agent awaits answer"], unasked = await ended(world, CASES["agent awaits answer"], interface)
            assert unasked is not None
            assert end_of(unasked) == ("completed", "final_answer", "", "")
        for title, case in cases.items():
            _, reference = await ended(world, case, INTERFACES["Python"][1])
            found[title], result = await ended(world, case, interface)
            if result is not None and reference is not None:
                assert envelopes_of(result) == envelopes_of(reference), title
                assert end_of(result) == end_of(reference), title
                assert result.cost_usd == reference.cost_usd, title
                assert world.decided[-1:] == world.decided[-2:-1] or case.sequel in {None, answered}, title
            if name in _FOR_AGENTS and found[title].outcome.endswith("not_found"):
                assert result is None, title
            elif title in ENDS:
                assert result is not None, title
                assert end_of(result) == tuple(ENDS[title].values())[1:], title
            elif name != "Python":
                assert result is None, title

    assert {title: found[title].outcome for title in TOLD} == {title: row[column] for title, row in TOLD.items()}
    cost = found["agent completed"].cost
    assert (cost is not None and float(cost)) == (column not in _COST_IN_THE_JOURNAL and _COST), cost

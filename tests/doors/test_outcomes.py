"""docs/outcomes.md: the same call leads to the same envelopes at each interface, and is told as the page says."""

from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from tests.doors.interfaces import INTERFACES, Interface
from tests.doors.world import CASES, Case, World, served_world
from toolcrib.contracts import CallFinished
from toolcrib.core.runs import Result

_PAGE = Path(__file__).parents[2] / "docs" / "outcomes.md"
_OWN = {"retry_after_s", "call_id", "run_id", "session_id", "conversation_id", "t_start", "t_end", "timings"}
"""What differs between two calls."""

_FOR_AGENTS = {"OpenAI endpoint", "A2A", "AG-UI"}
"""Interfaces that have no tools."""

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
    ends, told = ({row[0]: dict(zip(head, row, strict=True)) for row in rows} for head, _, *rows in filled)
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


async def ended(world: World, case: Case, interface: Interface) -> tuple[str, Result | None]:
    """What an interface tells of a call, and the run that it led to, when a person has decided on it."""
    before = await world.newest()
    told = await interface(world, case)
    run_id = await world.newest()
    if run_id is None or run_id == before:
        return told, None
    if case.decision is not None:
        return told, await world.decide(run_id, case.decision)
    return told, await world.crib.executions.result(run_id)


@pytest.mark.requirement("doors.outcomes")
def test_the_page_has_every_case_and_every_interface():
    assert TOLD.keys() == {name for name, case in CASES.items() if case.decision is None}
    assert ENDS.keys() == CASES.keys() - {"not permitted", "not visible", "unknown tool"}
    assert {column for column, _ in INTERFACES.values()} == TOLD["completed"].keys() - {"call"}


@pytest.mark.requirement("doors.outcomes", "doors.envelopes")
@pytest.mark.parametrize("name", INTERFACES)
async def test_each_call_has_the_same_envelope_and_is_told_as_the_page_says(name: str, tmp_path: Path) -> None:
    column, interface = INTERFACES[name]
    found: dict[str, str] = {}
    async with served_world(tmp_path) as world:
        await world.crib.invoke("paid", {})  # which uses up its budget
        for title, case in CASES.items():
            _, reference = await ended(world, case, INTERFACES["Python"][1])
            found[title], result = await ended(world, case, interface)
            if result is not None and reference is not None:
                assert envelopes_of(result) == envelopes_of(reference), title
                assert end_of(result) == end_of(reference), title
            if name in _FOR_AGENTS and found[title].endswith("not_found"):
                assert result is None, title
            elif title in ENDS:
                assert result is not None, title
                assert end_of(result) == tuple(ENDS[title].values())[1:], title
            elif name != "Python":
                assert result is None, title

    assert {title: found[title] for title in TOLD} == {title: row[column] for title, row in TOLD.items()}

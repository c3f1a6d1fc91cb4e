"""Kill -9 at every event of the demonstration: the CRM gets to the same state, and nothing is done twice."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest
import pytest_asyncio

from tests.chaos.crashing import CrashPoint
from tests.chaos.crm import Place, crm, populate, resume, state, update_deals, updates
from tests.chaos.journals import check_log, crashes, journals
from tests.chaos.processes import KILLED, Child

pytestmark = [pytest.mark.chaos, pytest.mark.slow]


@dataclass(frozen=True)
class Undisturbed:
    """What a run that nothing happens to leaves behind."""

    folder: Path
    summary: dict[str, Any]
    state: Any
    sent: list[str]
    events: int


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    folder = tmp_path_factory.mktemp("crm")
    populate(folder / "template")
    async with crm(folder / "template", folder / "undisturbed") as place:
        summary = await Child(place.folder / "result.json", update_deals, place).result()
        (events,) = await journals(place.folder)
        return Undisturbed(folder, told(summary), state(place), [body for body, _ in updates(place)], len(events))


@pytest.mark.requirement("chaos.crm_every_event", "chaos.trace")
@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_process_killed_at_any_event_is_resumed_to_the_same_end(
    undisturbed: Undisturbed, when: Literal["before", "after"]
):
    first = 2 if when == "before" else 1
    points = [CrashPoint(when, number) for number in range(first, undisturbed.events + 1)]
    turns = asyncio.Semaphore(2)

    async def attempt(point: CrashPoint) -> None:
        folder = undisturbed.folder / f"{point.when}-{point.event}"
        async with turns, crm(undisturbed.folder / "template", folder) as place:
            await crash_and_resume(place, point, undisturbed)

    outcomes = await asyncio.gather(*map(attempt, points), return_exceptions=True)
    failures = {point: str(found) for point, found in zip(points, outcomes, strict=True) if found is not None}
    assert failures == {}


async def crash_and_resume(place: Place, point: CrashPoint, undisturbed: Undisturbed) -> None:
    assert await Child(place.folder / "none.json", update_deals, place, point).ended() == KILLED
    (left,) = await journals(place.folder)
    assert len(left) == (point.event if point.when == "after" else point.event - 1)

    summary = await Child(place.folder / "result.json", resume, place, left[0].run_id).result()

    (events,) = await journals(place.folder)
    check_log(events)
    assert crashes(events) == (1 if len(left) < undisturbed.events else 0)
    assert told(summary) == undisturbed.summary
    assert state(place) == undisturbed.state
    sent = set(updates(place))
    assert sorted(body for body, _ in sent) == sorted(undisturbed.sent), "a body was sent under two keys"
    assert len({key for _, key in sent if key}) == len(undisturbed.sent)


def told(summary: dict[str, Any]) -> dict[str, Any]:
    """What must not depend on crashes: a model call whose process died may have been billed, so it counts."""
    return {name: value for name, value in summary.items() if name not in {"run_id", "usage", "tokens", "cut_off"}}

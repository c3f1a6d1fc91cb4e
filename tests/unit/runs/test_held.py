"""Where a handle was filled before: which runs are looked at, and how many."""

from collections.abc import Mapping, Sequence

import pytest

from tests.twins import AT
from tests.unit.runs.journals import done, journal
from tests.unit.store.samples import REQUEST
from toolcrib.contracts import NotFound, PinnedHandle, PinSelector, Run, RunEvent, RunStatus, Signal
from toolcrib.core.runs import HandleOwner, calls_held, find_last_runs, step_at

pytestmark = pytest.mark.requirement("workflow_agents.stale")

FOUND = PinnedHandle(name="found", selector=PinSelector(tool="look_up"))
PAID = PinnedHandle(name="paid", selector=PinSelector(tool="pay"))
PLACE = HandleOwner("default", "owner", "clerk", "flow", "ask", "r9999")


class Ended:
    """Runs that have ended, newest last; each is of a step and has filled handles with what it called.

    Args:
        runs: Position of the call of the workflow that began the run, and what it called.
    """

    def __init__(self, *runs: tuple[str, Sequence[str]]) -> None:
        self._runs = {f"r{number:04}": run for number, run in enumerate(runs)}
        self.read: list[str] = []
        """Whose events were read."""

    async def run(self, run_id: str) -> Run:
        """One of them."""
        if run_id not in self._runs:
            raise NotFound(run_id)
        told = {"parent_position": self._runs[run_id][0], "callers": {"sha256:1": "flow@1.0.0"}}
        request = REQUEST.model_copy(update=told)
        return Run(
            run_id=run_id,
            realm="default",
            made_by="owner",
            status="completed",
            request=request,
            created_at=AT,
            updated_at=AT,
        )

    async def runs(
        self,
        realm: str,
        *,
        tool: str | None = None,
        made_by: str | None = None,
        status: RunStatus | None = None,
        before: str | None = None,
        limit: int = 50,
    ) -> Sequence[Run]:
        """A page of them, newest first."""
        assert (realm, tool, made_by, status) == ("default", "clerk", "owner", "completed")
        older = [run_id for run_id in reversed(self._runs) if before is None or run_id < before]
        return [await self.run(run_id) for run_id in older[:limit]]

    async def signals(self, run_id: str) -> Mapping[str, Signal]:
        """Nothing is told to them."""
        return {}

    async def events(self, run_id: str, *, after: int = 0, limit: int | None = None) -> Sequence[RunEvent]:
        """All events of one."""
        assert (after, limit) == (0, None)
        self.read.append(run_id)
        return journal(*(done(f"c{n}", name) for n, name in enumerate(self._runs[run_id][1])))


async def test_each_handle_was_filled_last_by_a_run_of_its_own():
    past = Ended(("ask", ["pay"]), ("ask", ["look_up", "pay"]), ("ask[3].try2", ["look_up"]), ("ask", []))

    held = await find_last_runs(past, PLACE, [FOUND, PAID])

    assert held == {"found": "r0002", "paid": "r0001"}
    assert past.read == ["r0003", "r0002", "r0001"]
    assert {name: call.name for name, call in (await calls_held(past, [FOUND, PAID], held)).items()} == {
        "found": "look_up",
        "paid": "pay",
    }


async def test_what_no_run_has_filled_is_held_nowhere():
    past = Ended(("ask", ["pay"]))

    assert await find_last_runs(past, PLACE, [FOUND]) == {}
    assert await calls_held(past, [FOUND], {}) == {}
    assert await calls_held(past, [FOUND], {"found": "r0000"}) == {}


async def test_runs_of_another_step_or_of_another_caller_are_passed_over():
    past = Ended(("ask", ["look_up"]), ("other", ["look_up"]))

    assert await find_last_runs(past, PLACE, [FOUND]) == {"found": "r0000"}
    assert await find_last_runs(past, PLACE._replace(caller="else"), [FOUND]) == {}
    assert await find_last_runs(past, PLACE._replace(step=None), [FOUND]) == {"found": "r0001"}


async def test_a_step_that_is_called_seldom_is_found_behind_many_other_runs():
    past = Ended(("ask", ["look_up"]), *[("other", ["look_up"])] * 250)

    assert await find_last_runs(past, PLACE, [FOUND]) == {"found": "r0000"}


async def test_only_so_many_runs_are_looked_at():
    past = Ended(("ask", ["look_up"]), *[("ask", ["pay"])] * 20)

    assert await find_last_runs(past, PLACE, [FOUND]) == {}
    assert len(past.read) == 20


async def test_only_so_many_runs_of_other_places_are_passed_over():
    assert await find_last_runs(Ended(("ask", ["look_up"]), *[("other", ["pay"])] * 1000), PLACE, [FOUND]) == {}


@pytest.mark.parametrize("position", ["ask", "ask[17]", "ask.try2", "ask[3].try4"])
def test_a_step_is_told_from_the_positions_of_its_calls(position: str):
    assert step_at(position) == "ask"

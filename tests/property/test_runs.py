"""Any program, killed at any call, any number of times: it comes to the end of an undisturbed run, or says why not."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.twins import make_definition
from tests.unit.runs.house import LEASE_S, House, ask, settled
from toolcrib.contracts import CallFinished, CallStarted, Json, Reason, RunFinished, RunResumed, ToolDefinition
from toolcrib.core.engines import DriveResult
from toolcrib.core.executor import Dispatch, Outcome
from toolcrib.core.runs import RunContext

Kind: TypeAlias = Literal["computes", "reads", "sets", "keyed", "sends", "pays"]
Plan: TypeAlias = Sequence[Sequence[Kind] | Literal["nap"]]
"""Turns: calls at the same time, or a sleep."""

TOOLS: dict[Kind, ToolDefinition] = {
    "computes": make_definition("computes", side_effects="none"),
    "reads": make_definition("reads", side_effects="reads"),
    "sets": make_definition("sets", side_effects="writes", idempotent=True),
    "keyed": make_definition("keyed", side_effects="writes", idempotency_key="header:Idempotency-Key"),
    "sends": make_definition("sends", side_effects="writes"),
    "pays": make_definition("pays", side_effects="writes").model_copy(update={"reconcile": "finds"}),
}
NAP_S = 100.0


@dataclass(frozen=True)
class Crash:
    """The end of a process: at its call of this number, before or after the effect."""

    call: int
    has_effect: bool


@dataclass
class World:
    """What happens outside of all processes."""

    plan: Plan
    effects: Counter[str] = field(default_factory=Counter[str])
    """By idempotency key."""
    processes: int = 0

    async def program(self, context: RunContext) -> Json:
        outputs: list[Json] = []
        for number, turn in enumerate(self.plan):
            if turn == "nap":
                await context.sleep(str(number), NAP_S)
                continue
            calls = [context.call(ask(f"t{number}.c{index}", kind)) for index, kind in enumerate(turn)]
            outputs += [
                found.output or str(found.error and found.error.reason) for found in await context.wait_all(calls)
            ]
            await context.emit(str(number), "turn", number)
        return outputs

    async def drive(self, house: House, run_id: str, crash: Crash | None) -> DriveResult | None:
        """One process's attempt; null if it died."""
        self.processes += 1
        calls = 0
        died = asyncio.Event()

        async def behave(dispatch: Dispatch) -> Outcome:
            nonlocal calls
            if dispatch.tool.name == "finds":
                found = self.effects[dispatch.input["idempotency_key"]] > 0
                return Outcome({"found": found, "output": "pays"})
            calls += 1
            dies = crash is not None and calls == crash.call
            if not dies or (crash is not None and crash.has_effect):
                self.effects[dispatch.idempotency_key] += 1
            if dies or died.is_set():
                died.set()
                await asyncio.get_running_loop().create_future()
            await asyncio.sleep(0)
            return Outcome(dispatch.tool.name)

        house.dispatcher.behaviour = behave
        driving = asyncio.create_task(house.engine.resume(run_id))
        death = asyncio.create_task(died.wait())
        await asyncio.wait([driving, death], return_when=asyncio.FIRST_COMPLETED)
        death.cancel()
        if not died.is_set():
            return await driving
        driving.cancel()
        await asyncio.wait([driving])
        await house.clock.pass_time(LEASE_S + 1)
        return None

    async def live(self, crashes: Sequence[Crash]) -> tuple[House, str]:
        """Start the run, and let one process after the other go on with it until it has ended."""
        first = House(self.program)
        for definition in (*TOOLS.values(), make_definition("finds")):
            await first.save(definition)
        run_id = await first.engine.create(await first.request())
        remaining = list(crashes)
        while True:
            house = House(self.program, other=first, owner=f"process {self.processes}")
            driven = await self.drive(house, run_id, remaining.pop(0) if remaining else None)
            if driven is not None and driven.result.status == "completed":
                await settled()
                return house, run_id
            await house.clock.pass_time(NAP_S)


turns = st.lists(st.sampled_from(sorted(TOOLS)), min_size=1, max_size=3) | st.just("nap")
plans = st.lists(turns, min_size=1, max_size=4)
crashes = st.lists(st.builds(Crash, call=st.integers(1, 4), has_effect=st.booleans()), max_size=4)


@pytest.mark.requirement("runs.any_crash")
@settings(max_examples=150, deadline=None)
@given(plan=plans, crashes=crashes)
def test_a_run_comes_to_its_end_and_nothing_is_done_twice_that_may_not_be(plan: Plan, crashes: Sequence[Crash]):
    asyncio.run(check(plan, crashes))


async def check(plan: Plan, crashes: Sequence[Crash]) -> None:
    world = World(plan)
    house, run_id = await world.live(crashes)

    entries = await house.store.journal.events(run_id)
    assert [entry.number for entry in entries] == list(range(1, len(entries) + 1))
    events = [entry.event for entry in entries]
    ended = events[-1]
    assert isinstance(ended, RunFinished)
    finished = [event.position for event in events if isinstance(event, CallFinished)]
    assert len(set(finished)) == len(finished)
    wanted = {f"t{t}.c{c}": kind for t, turn in enumerate(plan) if turn != "nap" for c, kind in enumerate(turn)}
    envelopes = await house.envelopes(run_id)
    assert set(wanted) <= set(envelopes)
    assert ended.tool_calls == len(wanted)
    assert sum(isinstance(event, RunResumed) and event.cause == "crash" for event in events) <= len(crashes)

    outputs: list[Json] = []
    for position, kind in wanted.items():
        envelope, count = envelopes[position], world.effects[f"{run_id}/{position}"]
        keys = {
            event.idempotency_key for event in events if isinstance(event, CallStarted) and event.position == position
        }
        assert keys == {f"{run_id}/{position}"}
        if envelope.ok:
            assert count >= 1
            outputs.append(kind)
        else:
            assert kind == "sends"
            assert envelope.error is not None
            assert envelope.error.reason is Reason.OUTCOME_UNKNOWN
            outputs.append("outcome_unknown")
        if kind in {"sends", "pays"}:
            assert count <= 1
    assert ended.output == outputs
    if not crashes:
        assert "outcome_unknown" not in outputs
        assert set(world.effects.values()) <= {1}

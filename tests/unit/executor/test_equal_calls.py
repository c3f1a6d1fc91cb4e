"""Equal cacheable calls at the same time: one is made, and the others have its result."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.servers.postgres import PostgresServer
from tests.twins import Rig, make_context, make_tool
from tests.unit.agents.crm import MODEL, asks
from toolcrib import Crib, Limits, ScriptedModel, tool
from toolcrib.contracts import CallFinished, ErrorCode, Reason, ToolEnvelope
from toolcrib.core.executor import CallFailed, CallRequest, Dispatch, Outcome, error

pytestmark = pytest.mark.requirement("executor.single_flight")

NAME = make_tool().name


class World:
    """A tool that takes a moment, and fails as often as it is told to."""

    def __init__(self, *, failures: int = 0) -> None:
        self.failures = failures
        self.made: list[str] = []
        self.go_on = asyncio.Event()

    async def __call__(self, dispatch: Dispatch) -> Outcome:
        self.made.append(dispatch.position)
        await self.go_on.wait()
        if len(self.made) <= self.failures:
            raise CallFailed(error(ErrorCode.PROVIDER_ERROR, Reason.TOOL_FAILED, "no"))
        return Outcome({"found": 7})


def rig_of(world: World, **fields: Any) -> Rig:
    values: dict[str, Any] = {"cache": "forever", "side_effects": "reads", **fields}
    return Rig(make_tool(**values), behaviour=world)


async def together(rig: Rig, world: World, *inputs: dict[str, Any]) -> list[ToolEnvelope]:
    """Calls with these arguments at the same time, in one run."""
    context = make_context(limits=Limits(max_tool_calls=50))
    calls = [
        asyncio.create_task(rig.executor.execute(CallRequest(f"c{number}", NAME, given), context))
        for number, given in enumerate(inputs)
    ]
    for _ in range(20):
        await asyncio.sleep(0)
    world.go_on.set()
    return list(await asyncio.gather(*calls))


async def test_equal_cacheable_calls_at_once_are_made_once():
    world = World()
    envelopes = await together(rig_of(world), world, {"id": 1}, {"id": 1}, {"id": 2}, {"id": 1})

    assert world.made == ["c0", "c2"]
    assert [one.cached for one in envelopes] == [False, True, False, True]
    assert [one.output for one in envelopes] == [{"found": 7}] * 4
    assert [one.position for one in envelopes] == ["c0", "c1", "c2", "c3"]


async def test_equal_calls_that_may_not_be_kept_are_all_made():
    world = World()
    envelopes = await together(rig_of(world, cache="none"), world, {"id": 1}, {"id": 1})

    assert world.made == ["c0", "c1"]
    assert not any(one.cached for one in envelopes)


async def test_after_a_failure_the_others_are_made_at_the_same_time():
    world = World(failures=1)
    envelopes = await together(rig_of(world), world, {"id": 1}, {"id": 1}, {"id": 1})

    assert world.made == ["c0", "c1", "c2"]
    assert [one.status for one in envelopes] == ["error", "success", "success"]
    assert not any(one.cached for one in envelopes)


async def test_a_call_that_waits_for_another_one_does_not_wait_longer_than_it_may_take_itself():
    world = World()
    rig = rig_of(world, timeout_s=0.05)
    first = asyncio.create_task(rig.executor.execute(CallRequest("c0", NAME, {"id": 1}), make_context()))
    await asyncio.sleep(0.02)
    second = await rig.executor.execute(CallRequest("c1", NAME, {"id": 1}, timeout_s=0.01), make_context())

    assert second.error is not None
    assert second.error.reason is Reason.TOOL_TIMEOUT
    assert world.made == ["c0", "c1"]
    await first


async def test_who_is_cancelled_while_it_is_made_leaves_it_to_the_others():
    world = World()
    rig = rig_of(world)
    calls = [
        asyncio.create_task(rig.executor.execute(CallRequest(place, NAME, {"id": 1}), make_context()))
        for place in ("c0", "c1")
    ]
    await asyncio.sleep(0.01)
    calls[0].cancel()
    await asyncio.sleep(0.01)
    world.go_on.set()

    assert (await calls[1]).output == {"found": 7}
    assert world.made == ["c0", "c1"]


@pytest.mark.parametrize("store", ["memory", "sqlite", "postgres"])
async def test_equal_calls_of_a_turn_are_made_once_on_any_store_and_replay_the_same(
    tmp_path: Path, request: pytest.FixtureRequest, store: str
):
    url = {"memory": "memory://", "sqlite": f"sqlite:///{tmp_path}/crib.db"}.get(store)
    if url is None:
        server: PostgresServer = request.getfixturevalue("postgres")
        url = server.database()
    made: list[int] = []

    @tool(side_effects="reads", cache="forever")
    async def look(number: int) -> dict[str, int]:
        """Look something up."""
        made.append(number)
        await asyncio.sleep(0.05)
        return {"found": number}

    @tool(side_effects="reads")
    async def other(number: int) -> int:
        """Do something else."""
        return number

    turn = asks(*[(name, {"number": 1}) for name in ("look", "look", "other", "look", "other")])
    async with Crib(url, models={MODEL: ScriptedModel([turn, "Done."])}) as crib:
        crib.add(look, other)
        crib.agentic_tool("clerk", mode="agentic", model=MODEL, tools=["look", "other"])
        ended = await crib.invoke("clerk", {"task": "go"})
        found = await crib.replay(ended.run_id)

    envelopes = [event.event.envelope for event in ended.events if isinstance(event.event, CallFinished)]
    looked = [one for one in envelopes if one.name == "look"]
    assert made == [1]
    assert sorted(one.cached for one in looked) == [False, True, True]
    assert [one.output for one in looked] == [{"found": 1}] * 3
    assert (ended.summary.tool_calls, found.same, found.divergence) == (3, True, None)

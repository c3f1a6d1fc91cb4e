"""Reference data for many runs: snapshots with an id and an age, and what stands in for a sync that fails."""

import asyncio
from typing import Any

import pytest

from tests.unit.agents.crm import MODEL, Crm, asks, positions
from tests.unit.runs_trace.house import StillClock
from toolcrib import AgenticContext, Crib, ReferenceSource, ScriptedModel, tool
from toolcrib.contracts import (
    InvalidDefinition,
    NoAuth,
    NotFound,
    Principal,
    ProgressMade,
    ProgressStep,
    ProviderData,
    ProviderDefinition,
    ReferenceSnapshot,
)
from toolcrib.core.runs import Result
from toolcrib.infrastructure.store import MemoryStore
from toolcrib.llm import Message

HOUR = 3600.0
STAGES = ReferenceSource(name="stages", tool="list_stages", applies_to=("stage",), max_age_s=HOUR)


class House:
    """A crib over the CRM, whose stages are declared by a provider, and how often they were listed."""

    def __init__(self, *, source: ReferenceSource = STAGES, store: MemoryStore | None = None) -> None:
        self.crm = Crm(1)
        self.clock = StillClock()
        self.listed = 0
        self.fails = False
        self.begun = asyncio.Event()
        """A listing has begun."""
        self.open = asyncio.Event()
        """Lets a listing end."""
        self.open.set()
        self.says: list[Message | str] = []
        """What the model says before it has nothing more to do."""
        self.model = ScriptedModel(lambda _: self.says.pop(0) if self.says else "Nothing to do.")
        self.crib = Crib(store or MemoryStore(), models={MODEL: self.model}, clock=self.clock)
        house = self

        @tool(side_effects="reads")
        async def list_stages() -> list[dict[str, Any]]:
            house.listed += 1
            house.begun.set()
            await house.open.wait()
            if house.fails:
                raise RuntimeError("no connection")
            return house.crm.stages

        self.crib.add(*self.crm.tools[:2], list_stages)
        self.provider = ProviderDefinition(
            name="crm", base_url="https://crm.example", auth=NoAuth(), reference_data=(source,)
        )

    async def ready(self) -> "House":
        await self.crib.save_provider(self.provider)
        name = self.provider.reference_data[0].name
        context = AgenticContext(provider_data=(ProviderData(provider="crm", data_types=(name,)),))
        self.agent = self.crib.agentic_tool(
            "agent",
            mode="agentic",
            model=MODEL,
            tools=["update_deals"],
            context=context,
            system_prompt=f"{{{{reference_data.{name}}}}}",
        )
        return self

    async def run(self) -> Result:
        return await self.agent("Look.")


def used(result: Result) -> list[Any]:
    """What a run wrote down of the lists that it uses."""
    return [
        entry.event.data
        for entry in result.events
        if isinstance(entry.event, ProgressMade) and entry.event.kind == "reference_data"
    ]


@pytest.mark.requirement("agentic.reference_providers", "agentic.reference_sync")
async def test_a_list_of_a_provider_is_read_by_the_first_run_and_used_by_the_next():
    house = await House().ready()

    first = await house.run()
    house.clock.advance(600)
    second = await house.run()

    assert house.listed == 1
    assert (positions(first), positions(second)) == (["reference.stages"], [])
    [fresh], [old] = used(first), used(second)
    assert fresh["id"] == old["id"]
    assert (fresh["age_s"], old["age_s"]) == (0.0, 600.0)
    values = "3001 = Qualified; 3002 = Proposal; 3003 = Negotiation"
    assert house.model.requests[0].system == values
    assert house.model.requests[1].system == f"{values} (as of 2026-01-31 12:00 UTC, snapshot {old['id'][:12]})"
    assert house.model.requests[1].tools.tools[0].schema["properties"]["stage"]["enum"] == ["3001", "3002", "3003"]
    [step] = [step for step in second.trace.steps if isinstance(step, ProgressStep)]
    assert (step.kind, step.data["name"], step.data["age_s"]) == ("reference_data", "stages", 600.0)


@pytest.mark.requirement("agentic.reference_sync")
async def test_a_list_that_is_too_old_is_read_again_and_the_same_values_have_the_same_id():
    house = await House().ready()

    first = await house.run()
    house.clock.advance(HOUR + 1)
    second = await house.run()
    house.crm.stages = [*house.crm.stages, {"id": "3004", "label": "Won"}]
    house.clock.advance(HOUR + 1)
    third = await house.run()

    assert house.listed == 3
    assert used(first)[0]["id"] == used(second)[0]["id"] != used(third)[0]["id"]
    assert "3004 = Won" in house.model.requests[2].system


@pytest.mark.requirement("agentic.reference_sync")
async def test_runs_that_begin_together_read_a_list_once():
    house = await House().ready()
    await house.crib.authorize()
    house.open.clear()

    runs = [asyncio.create_task(house.run()) for _ in range(5)]
    await house.begun.wait()
    house.open.set()
    results = await asyncio.gather(*runs)

    assert house.listed == 1
    assert len({used(result)[0]["id"] for result in results}) == 1


@pytest.mark.requirement("agentic.reference_fallback")
async def test_a_list_that_cannot_be_read_is_replaced_by_its_last_snapshot_with_a_warning():
    house = await House().ready()
    await house.run()
    house.fails = True
    house.clock.advance(HOUR + 1)

    result = await house.run()

    assert result.ok
    [warning] = result.summary.warnings
    assert "reference data 'stages' could not be read" in warning
    assert "no connection" in warning
    assert warning.endswith("the values used are those of 2026-01-31T12:00:00.000000Z")
    assert used(result)[0]["age_s"] == HOUR + 1


@pytest.mark.requirement("agentic.reference_fallback")
async def test_without_any_snapshot_a_list_that_cannot_be_read_ends_the_run():
    house = await House().ready()
    house.fails = True

    result = await house.run()

    assert result.summary.status == "failed"
    assert result.summary.error is not None
    assert "reference data 'stages' could not be read" in result.summary.error.message
    assert house.model.requests == []


@pytest.mark.requirement("agentic.reference_fallback", "agentic.reference_sync")
async def test_a_snapshot_is_nothing_for_a_principal_who_may_not_read_the_list():
    house = await House().ready()
    await house.run()
    grants = ("ai://tools/agentic/*", "ai://tools/utility/update_deals/execute")
    other = Principal(id="user:guest", grants=grants)

    result = await house.crib.acting_as(other).invoke("agent", {"task": "Look."})

    assert result.summary.status == "failed"
    assert result.summary.error is not None
    assert "has no grant for 'ai://tools/utility/list_stages/execute'" in result.summary.error.message
    assert house.listed == 1


@pytest.mark.requirement("agentic.reference_sync")
async def test_a_list_of_the_tool_s_own_is_kept_as_long_as_it_says():
    crm = Crm(1)
    kept = AgenticContext(reference_data=(STAGES,))
    model = ScriptedModel(lambda _: "Nothing to do.")
    async with Crib("memory://", models={MODEL: model}) as crib:
        crib.add(*crm.tools)
        for name in ("one", "two"):
            crib.agentic_tool(name, mode="agentic", model=MODEL, tools=["update_deals"], context=kept)
        first = await crib.invoke("one", {"task": "x"})
        second = await crib.invoke("two", {"task": "x"})

    assert (positions(first), positions(second)) == (["reference.stages"], [])


@pytest.mark.requirement("agentic.reference_replay")
async def test_a_run_that_goes_on_after_a_wait_sees_the_list_that_it_began_with():
    @tool(side_effects="writes", requires_confirmation=True)
    def move(stage: str) -> str:
        return stage

    house = await House().ready()
    house.crib.add(move)
    context = AgenticContext(provider_data=(ProviderData(provider="crm", data_types=("stages",)),))
    house.says = [asks(("move", {"stage": "3003"})), "Moved."]
    house.crib.agentic_tool(
        "mover", mode="agentic", model=MODEL, tools=["move"], context=context, system_prompt="{{reference_data}}"
    )
    waiting = await house.crib.invoke("mover", {"task": "x"})
    house.crm.stages = [{"id": "1", "label": "Other"}]
    await house.crib.reference_data.sync("crm")
    await house.crib.save_provider(house.provider.model_copy(update={"reference_data": ()}))
    await house.crib.decide(waiting.run_id, "t1.c1", approve=True)
    result = await house.crib.resume(waiting.run_id)

    assert result.ok
    assert len(used(result)) == 1
    assert house.model.requests[0].system == house.model.requests[1].system
    assert house.model.requests[1].tools.tools[0].schema["properties"]["stage"]["enum"] == ["3001", "3002", "3003"]


@pytest.mark.requirement("agentic.reference_providers")
@pytest.mark.parametrize(
    ("data", "said"),
    [
        (ProviderData(provider="crn", data_types=("stages",)), "there is no provider 'crn'"),
        (
            ProviderData(provider="crm", data_types=("users",)),
            "declares no reference data 'users'; it declares: stages",
        ),
    ],
    ids=["provider", "list"],
)
async def test_a_list_that_nobody_declares_is_refused_when_the_tool_is_saved(data: ProviderData, said: str):
    house = await House().ready()
    house.crib.agentic_tool(
        "lost", mode="agentic", model=MODEL, tools=["update_deals"], context=AgenticContext(provider_data=(data,))
    )

    with pytest.raises(NotFound, match=said):
        await house.crib.open()


@pytest.mark.requirement("agentic.reference_providers")
async def test_a_list_that_is_not_declared_any_more_ends_the_run_and_says_which_there_are():
    house = await House().ready()
    await house.crib.open()
    other = STAGES.model_copy(update={"name": "phases"})
    await house.crib.save_provider(house.provider.model_copy(update={"reference_data": (other,)}))

    result = await house.run()

    assert result.summary.error is not None
    assert "declares no reference data 'stages'; it declares: phases" in result.summary.error.message


@pytest.mark.requirement("agentic.reference_providers")
async def test_values_that_a_provider_writes_down_need_no_tool():
    fixed = ReferenceSource(name="stages", values=("won", "open"), applies_to=("stage",))
    house = await House(source=fixed).ready()

    result = await house.run()

    assert (result.ok, positions(result), house.model.requests[0].system) == (True, [], "won; open")


# From outside ---------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("agentic.reference_sync")
async def test_lists_are_synced_and_listed_from_outside():
    house = await House().ready()
    never = ReferenceSnapshot(provider="crm", name="stages", tool="list_stages", max_age_s=HOUR)
    assert await house.crib.reference_data.list() == [never]

    [synced] = await house.crib.reference_data.sync("crm", "stages")
    house.clock.advance(60)
    [listed] = await house.crib.reference_data.list("crm")
    again = await house.run()

    assert (synced.size, synced.age_s, synced.error) == (3, 0.0, None)
    assert listed == synced.model_copy(update={"age_s": 60.0})
    assert (house.listed, used(again)[0]["id"]) == (1, synced.id)


@pytest.mark.requirement("agentic.reference_fallback")
async def test_a_sync_that_fails_says_why_and_names_the_snapshot_before():
    house = await House().ready()
    [before] = await house.crib.reference_data.sync()
    house.fails = True

    [after] = await house.crib.reference_data.sync("crm")

    assert after.id == before.id
    assert after.error is not None
    assert "no connection" in after.error


@pytest.mark.requirement("agentic.reference_sync")
async def test_a_sync_of_what_nobody_declares_is_refused():
    house = await House().ready()

    with pytest.raises(NotFound, match="there is no provider 'x' in realm 'default'; available: crm"):
        await house.crib.reference_data.sync("x")
    with pytest.raises(NotFound, match="declares no reference data 'y'"):
        await house.crib.reference_data.sync("crm", "y")


@pytest.mark.requirement("agentic.reference_sync")
async def test_a_sync_that_waits_for_a_person_says_which_run_to_decide():
    @tool(side_effects="reads", requires_confirmation=True)
    def list_users() -> list[str]:
        return ["a"]

    house = await House(source=ReferenceSource(name="users", tool="list_users")).ready()
    house.crib.add(list_users)

    [waiting] = await house.crib.reference_data.sync("crm")

    assert waiting.error is not None
    assert "is awaiting approval; decide it and sync again" in waiting.error


@pytest.mark.requirement("agentic.reference_sync", "agents.authoring")
async def test_a_list_that_a_model_would_make_is_refused():
    house = await House().ready()
    made_up = AgenticContext(reference_data=(ReferenceSource(name="stages", tool="agent"),))
    house.crib.agentic_tool("other", mode="agentic", model=MODEL, tools=["update_deals"], context=made_up)

    with pytest.raises(InvalidDefinition, match="'stages' is listed by a model; name a tool without one"):
        await house.crib.open()


@pytest.mark.requirement("agentic.reference_sync")
async def test_the_lists_of_a_provider_that_is_not_there_are_not_listed():
    house = await House().ready()

    with pytest.raises(NotFound, match="there is no provider 'x'"):
        await house.crib.reference_data.list("x")

"""Adding tools to a crib, and finding them again."""

import asyncio
import gc
from contextlib import nullcontext
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.twins import make_definition
from toolcrib import Crib, LLMConfig, Principal, ScriptedModel, tool
from toolcrib.agents import agentic_definition
from toolcrib.contracts import InvalidDefinition, InvalidInput, NotFound, Reason
from toolcrib.crib.container.catalogue import Catalogue
from toolcrib.kinds.http.shape import HttpImplementation

ANN = Principal(id="ann", realm="acme", grants=("ai://*",))
ELSEWHERE = HttpImplementation(method="GET", url="https://example.org/looks")
"""What every process could call."""


@tool(side_effects="reads", cost_usd_per_call=Decimal("0.01"))
async def decorated(n: int) -> int:
    """One more."""
    return n + 1


def plain(ref: str, arguments: str = "") -> str:
    """Repeat."""
    return ref + arguments


@pytest.mark.requirement("crib.add", "crib.call")
async def test_decorated_and_plain_functions_are_called_through_the_crib():
    async with Crib("memory://") as crib:
        crib.add(decorated, plain)

        one = await crib.call("decorated", {"n": 1})
        two = await crib.call("plain", ref="a", arguments="b")

    assert (one.output, one.side_effects, one.cost_usd) == (2, "reads", Decimal("0.01"))
    assert (two.output, two.side_effects) == ("ab", "writes")


@pytest.mark.requirement("crib.add", "agent.facade")
async def test_an_agent_takes_functions_as_tools_and_agents_as_delegates():
    async with Crib("memory://", models={"scripted:m": ScriptedModel(["Done."])}) as crib:
        expert = crib.agent("expert", model="scripted:m")
        desk = crib.agent("desk", model="scripted:m", tools=[decorated, plain], delegates=[expert])
        answer = await desk("Go.")
        shown = await crib.agents.tools("desk")

    assert answer.output == "Done."
    assert [found.tool for found in shown] == ["decorated@1.0.0", "plain@1.0.0", "expert@1.0.0"]


@pytest.mark.requirement("agent.facade")
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"toolz": ["x"]}, "agent 'desk': toolz: Extra inputs are not permitted"),
        ({"memory": "long"}, "agent 'desk': memory: Input should be a valid dictionary or instance of AgentMemory"),
        ({"delegates": [3]}, "agent 'desk': delegates.0: Input should be a valid string"),
    ],
)
async def test_an_option_of_an_agent_that_cannot_be_read_is_one_line(options: dict[str, Any], said: str):
    async with Crib("memory://", models={"scripted:m": ScriptedModel([])}) as crib:
        with pytest.raises(InvalidDefinition) as refusal:
            crib.agent("desk", model="scripted:m", **options)

    assert str(refusal.value) == said


@pytest.mark.requirement("crib.add")
async def test_a_definition_without_its_function_says_so_when_it_is_called():
    async with Crib("memory://") as crib:
        crib.add(make_definition("look_up"))
        envelope = await crib.call("look_up")

    assert envelope.error is not None
    assert "is a Python function that this process has not added" in envelope.error.message


@pytest.mark.requirement("crib.add")
async def test_tools_may_be_added_at_any_time():
    async with Crib("memory://") as crib:
        crib.add(decorated)
        assert (await crib.call("decorated", n=1)).output == 2
        crib.add(plain)
        assert (await crib.call("plain", {"ref": "a"})).output == "a"


@pytest.mark.requirement("crib.add")
async def test_nobody_calls_a_tool_before_it_is_saved(tmp_path: Path):
    async with Crib(f"sqlite:///{tmp_path / 'crib.db'}") as crib:
        crib.add(decorated)
        envelopes = await asyncio.gather(*(crib.call("decorated", n=n) for n in range(4)))

    assert [envelope.output for envelope in envelopes] == [1, 2, 3, 4]


@pytest.mark.requirement("crib.refused_additions")
async def test_what_cannot_be_added_is_refused_at_once_and_nothing_of_it_is_added():
    not_callable: Any = 3
    async with Crib("memory://") as crib:
        for wrong, said in (
            (not_callable, "expected a function, got int: 3"),
            (make_definition("wrong", version="one"), "'one'"),
            (tool(category="a/b")(plain), "category 'a/b'"),
        ):
            with pytest.raises(InvalidDefinition, match=said):
                crib.add(decorated, wrong)

        assert (await crib.listing.page()).items == []


@pytest.mark.requirement("crib.refused_additions")
@pytest.mark.parametrize("place", ["memory://", "sqlite:///{folder}/crib.db"])
async def test_what_cannot_be_saved_is_told_by_its_own_calls_and_disturbs_no_other(
    place: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    models = {"scripted:m": ScriptedModel(["ok"])}
    async with Crib(place.format(folder=tmp_path), models=models) as crib:
        early = crib.agentic_tool("early", mode="agentic", model="scripted:m", tools=["decorated"])
        crib.add(decorated)

        assert (await crib.call("decorated", n=1)).output == 2
        assert "'early' was added and cannot be saved" in caplog.text
        for _ in range(2):
            with pytest.raises(NotFound, match="no tool 'decorated'"):
                await early("go")
        with pytest.raises(NotFound, match="no tool 'decorated'"):
            await crib.open()
        await crib.open()  # it is told once

        again = crib.agentic_tool("early", mode="agentic", model="scripted:m", tools=["decorated"])
        assert (await again("go")).ok


@pytest.mark.requirement("crib.add")
async def test_saving_the_same_definition_again_changes_nothing():
    async with Crib("memory://") as crib:
        first = await crib.save(decorated.definition)
        again = await crib.save(decorated.definition)
        changed = await crib.save(decorated.definition.model_copy(update={"description": "Two more."}))

    assert (first.revision, again.revision, changed.revision) == (1, 1, 2)
    assert first.content_hash == again.content_hash != changed.content_hash


@pytest.mark.requirement("crib.invoke")
async def test_an_unknown_tool_is_the_only_thing_that_raises():
    async with Crib("memory://") as crib:
        crib.add(decorated)
        with pytest.raises(NotFound, match="no tool 'decoratd' in realm 'default'; did you mean 'decorated'"):
            await crib.call("decoratd")


@pytest.mark.requirement("crib.realms")
async def test_a_tool_belongs_to_the_realm_of_who_saved_it():
    async with Crib("memory://") as crib:
        await crib.acting_as(ANN).save(make_definition("theirs"))

        found = await crib.acting_as(ANN).invoke("theirs", {})
        assert found.summary.error is not None
        assert found.summary.error.reason is Reason.RUNTIME_MISSING
        with pytest.raises(NotFound):
            await crib.invoke("theirs", {})


@pytest.mark.requirement("crib.realms", "crib.reopen")
async def test_a_realm_is_read_when_somebody_acts_in_it(tmp_path: Path):
    url = f"sqlite:///{tmp_path / 'crib.db'}"
    async with Crib(url, models={"scripted:m": ScriptedModel(["hello"])}) as crib:
        crib.add(decorated)
        await crib.acting_as(ANN).save(make_definition("looks", implementation=ELSEWHERE))
        agent = agentic_definition("agent", mode="agentic", llm=LLMConfig(model="scripted:m"), tools=["looks"])
        await crib.acting_as(ANN).save(agent)
        waiting = await crib.acting_as(ANN).submit("agent", {"task": "go"})

    async with Crib(url, models={"scripted:m": ScriptedModel(["hello"])}) as crib:
        [result] = await crib.recover()

    assert (result.run_id, result.output) == (waiting, {"summary": "hello"})


@pytest.mark.requirement("crib.close")
async def test_a_crib_may_be_closed_twice_and_before_it_was_opened():
    crib = Crib("memory://")
    await crib.close()
    await crib.close()

    async with Crib("memory://") as opened:
        opened.add(decorated)
        await opened.call("decorated", n=1)
    await opened.close()


@pytest.mark.requirement("crib.add")
def test_a_crib_can_be_made_without_an_event_loop():
    crib = Crib("memory://")
    crib.add(decorated)
    asyncio.run(crib.close())


@pytest.mark.requirement("crib.add")
@pytest.mark.parametrize(("count", "wrong", "runs"), [(3, False, True), (1_001, False, False), (1_001, True, False)])
async def test_the_garbage_collector_waits_while_many_tools_are_saved(
    count: int, wrong: bool, runs: bool, monkeypatch: pytest.MonkeyPatch
):
    saved: list[bool] = []

    async def note(_catalogue: Catalogue, _added: object, _owner: Principal) -> None:
        saved.append(gc.isenabled())
        if wrong:
            raise InvalidDefinition("it is no tool")

    monkeypatch.setattr(Catalogue, "_save_added", note)
    crib = Crib("memory://")
    crib.add(*[decorated] * count)
    await crib.listing.page()
    with pytest.raises(InvalidDefinition) if wrong else nullcontext():
        await crib.open()
    await crib.close()

    assert saved == [runs] * count
    assert gc.isenabled()


@pytest.mark.requirement("crib.one_loop")
def test_a_second_event_loop_is_refused_with_what_to_do(tmp_path: Path):
    crib = Crib(f"sqlite:///{tmp_path / 'crib.db'}")
    crib.add(decorated)
    asyncio.run(crib.open())

    with pytest.raises(InvalidInput, match=r"loop that has ended; make all calls in one asyncio\.run"):
        asyncio.run(crib.submit("decorated", {"n": 1}))

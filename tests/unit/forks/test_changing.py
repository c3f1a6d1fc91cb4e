"""Forks with changes: what they touch runs, what they cannot touch comes from the recording."""

from typing import Any

import pytest

from tests.unit.agents.crm import Crm, asks
from tests.unit.forks.forking import made_itself
from toolcrib import Crib, LLMConfig, ScriptedModel, tool
from toolcrib.contracts import (
    AgentDefinition,
    CallFinished,
    CallStarted,
    InvalidInput,
    JsonObject,
    NotFound,
    ToolDefinition,
    ToolEnvelope,
)

SEARCH = asks(("search_deals", {"company": "Acme"}))
OTHER = asks(("search_deals", {"company": "Beta"}))
UPDATE = asks(("update_deals", {"ids": ["d0"], "stage": "3001"}))
MOVE = asks(("update_deals", {"ids": ["d1"], "stage": "3002"}))


def agent(name: str, **fields: Any) -> ToolDefinition:
    """An agent with a scripted model."""
    llm = LLMConfig(model="scripted:m")
    tools = ("search_deals", "update_deals")
    return AgentDefinition.model_validate({"name": name, "llm": llm, "tools": tools, **fields}).tool()


async def envelopes(crib: Crib, run_id: str) -> dict[str, ToolEnvelope]:
    """What the calls of a run came to, by position."""
    events = await crib.store.journal.events(run_id)
    return {entry.event.position: entry.event.envelope for entry in events if isinstance(entry.event, CallFinished)}


@pytest.mark.requirement("forks.taken", "forks.changes", "forks.writes")
async def test_another_model_is_asked_and_what_it_calls_alike_is_not_called_again():
    crm, other = Crm(2), ScriptedModel([SEARCH, OTHER, MOVE, "Other."], name="o")
    models = {"scripted:m": ScriptedModel([SEARCH, UPDATE, "Ok."]), "scripted:o": other}
    async with Crib("memory://", models=dict(models)) as crib:
        crib.add(*crm.tools)
        await crib.save(agent("a"))
        first = await crib.invoke("a", {"message": "go"})
        searched, updated = list(crm.searches), list(crm.updates)

        fork = await crib.fork(first.run_id, changes={"model": "scripted:o"})

        assert (fork.status, fork.output) == ("completed", {"response": "Other."})
        assert crm.searches == [*searched, "Beta"]
        assert crm.updates == updated
        calls = await envelopes(crib, fork.run_id)
        assert (calls["t1.c1"].reused, calls["t2.c1"].reused) == (first.run_id, None)
        assert (calls["t3.c1"].status, calls["t3.c1"].metadata) == ("skipped", {"dry_run": True})
        assert (await crib.replay(fork.run_id)).divergence is None


@pytest.mark.requirement("forks.writes")
async def test_a_fork_that_may_write_writes_what_is_new_under_a_key_of_its_own():
    crm = Crm(2)
    models = {
        "scripted:m": ScriptedModel([UPDATE, "Ok."]),
        "scripted:o": ScriptedModel([UPDATE, MOVE, "Other."], name="o"),
    }
    async with Crib("memory://", models=dict(models)) as crib:
        crib.add(*crm.tools)
        await crib.save(agent("a"))
        first = await crib.invoke("a", {"message": "go"})

        fork = await crib.fork(first.run_id, changes={"model": "scripted:o"}, allow_writes=True)

        assert fork.output == {"response": "Other."}
        assert crm.updates == [(["d0"], "3001"), (["d1"], "3002")]
        keys = [
            entry.event.idempotency_key
            for run_id in (first.run_id, fork.run_id)
            for entry in await crib.store.journal.events(run_id)
            if isinstance(entry.event, CallStarted)
        ]
        assert len(set(keys)) == len(keys) == 2


@pytest.mark.requirement("forks.known", "forks.changes")
async def test_a_change_counts_from_the_cut_on():
    crm, other = Crm(2), ScriptedModel(["Other."], name="o")
    models = {"scripted:m": ScriptedModel([SEARCH, OTHER, "Ok."]), "scripted:o": other}
    async with Crib("memory://", models=dict(models)) as crib:
        crib.add(*crm.tools)
        await crib.save(agent("a", system_prompt="Be good."))
        first = await crib.invoke("a", {"message": "go"})

        changes: JsonObject = {"model": "scripted:o", "prompt": "Be brief.", "temperature": 0.5}
        fork = await crib.fork(first.run_id, at="turn:3", changes=changes)

        assert fork.output == {"response": "Other."}
        [asked] = other.requests
        assert (asked.system, asked.temperature, len(asked.messages)) == ("Be brief.", 0.5, 5)
        assert await made_itself(crib, fork.run_id) == ["t3.llm"]
        assert (await crib.replay(fork.run_id)).divergence is None


@pytest.mark.requirement("forks.changes", "forks.taken")
async def test_another_version_of_a_tool_is_called_and_other_tools_are_not():
    called: list[str] = []

    def look(version: str) -> Any:
        @tool(side_effects="reads", version=version)
        async def look(item: str) -> str:
            """Look at an item."""
            called.append(f"{version} {item}")
            return version

        return look

    script = [asks(("look", {"item": "i"}), ("search_deals", {"company": "Acme"})), "Ok."]
    models = {"scripted:m": ScriptedModel([*script, "Again."])}
    crm = Crm(1)
    async with Crib("memory://", models=dict(models)) as crib:
        crib.add(*crm.tools, look("1.0.0"))
        await crib.save(agent("a", tools=("look", "search_*")))
        first = await crib.invoke("a", {"message": "go"})
        crib.add(look("2.0.0"))

        fork = await crib.fork(first.run_id, at="turn:2", changes={"tool:look": "2.0.0"})
        assert called == ["1.0.0 i"]
        assert fork.output == {"response": "Ok."}

        fork = await crib.fork(first.run_id, at=4, changes={"tool:look": "2.0.0"})
        assert fork.output == {"response": "Again."}
        assert called == ["1.0.0 i", "2.0.0 i"]
        assert crm.searches == ["Acme"]
        with pytest.raises(NotFound, match=r"'3\.0\.0'; available: 1\.0\.0, 2\.0\.0"):
            await crib.fork(first.run_id, changes={"tool:look": "3.0.0"})


@pytest.mark.requirement("forks.changes")
async def test_what_is_refused_is_told_with_what_there_is():
    async with Crib("memory://", models={"scripted:m": ScriptedModel(["Ok."])}) as crib:
        crib.add(*Crm(1).tools)
        await crib.save(agent("a"))
        first = await crib.invoke("a", {"message": "go"})
        refused: list[tuple[JsonObject, str]] = [
            ({"modle": "x"}, "did you mean 'model'"),
            ({"temperature": "hot"}, "not valid: llm.temperature: Input should be a valid number"),
            ({"policy": {"guardrails": 1}}, "'policy' is not valid: guardrails: Input should be a valid"),
            ({"policy": {"limit": {}}}, "did you mean 'limits'"),
            ({"policy": {"limits": {"max_iterations": 0}}}, "max_iterations"),
            ({"policy": []}, "JSON object"),
            ({"prompt": 3}, "is a text"),
            ({"temperature": 7}, "temperature"),
        ]
        for changes, told in refused:
            with pytest.raises(InvalidInput, match=told):
                await crib.fork(first.run_id, changes=changes)
        with pytest.raises(InvalidInput, match="events 1 to"):
            await crib.fork(first.run_id, at=99)
        with pytest.raises(InvalidInput, match="change the input at event 1"):
            await crib.fork(first.run_id, at=3, changes={"input.message": "stay"})
        with pytest.raises(InvalidInput, match="step:NAME or turn:N"):
            await crib.fork(first.run_id, at="somewhere")
        with pytest.raises(NotFound, match=r"no tool 'search_deal' .*; did you mean 'search_deals'"):
            await crib.fork(first.run_id, changes={"tool:search_deal": "1.0.0"})
        with pytest.raises(NotFound, match="turn:7"):
            await crib.fork(first.run_id, at="turn:7")

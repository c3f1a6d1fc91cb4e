"""Who may fork what: a fork never does more than whoever makes it may."""

from typing import Any

import pytest

from tests.unit.agents.crm import Crm, asks
from tests.unit.forks.test_changing import envelopes
from tests.unit.workflows.shop import read_mail
from toolcrib import Crib, LLMConfig, ScriptedModel
from toolcrib.contracts import (
    AgentDefinition,
    JsonObject,
    NotFound,
    PermissionDenied,
    Principal,
    ToolDefinition,
    UntrustedContent,
)

pytestmark = pytest.mark.requirement("forks.rights")

SEARCH = asks(("search_deals", {"company": "Acme"}))
OTHER = asks(("search_deals", {"company": "Beta"}))
READS, ASKS = "ai://runs/*/read", "ai://agents/a/execute"


def agent(name: str, **fields: Any) -> ToolDefinition:
    """An agent with a scripted model."""
    llm = LLMConfig(model="scripted:m")
    return AgentDefinition.model_validate({"name": name, "llm": llm, "tools": ("search_deals",), **fields}).tool()


async def test_who_may_not_read_the_run_or_not_execute_its_tool_makes_no_fork():
    async with Crib("memory://", models={"scripted:m": ScriptedModel(["Ok."])}) as crib:
        await crib.save(agent("a", tools=()))
        first = await crib.invoke("a", {"message": "go"})

        with pytest.raises(PermissionDenied, match="ai://runs/a/read"):
            await crib.acting_as(Principal(id="eve", grants=(ASKS,))).fork(first.run_id)
        with pytest.raises(NotFound):
            await crib.acting_as(Principal(id="eve", realm="elsewhere", grants=("ai://*",))).fork(first.run_id)
        refused = await crib.acting_as(Principal(id="eve", grants=(READS,))).fork(first.run_id)

        assert (refused.status, refused.stop_reason) == ("failed", "policy")
        assert refused.error is not None
        assert refused.error.reason == "permission_missing"


async def test_a_fork_calls_with_the_rights_of_whoever_makes_it_and_belongs_to_them():
    crm = Crm(1)
    models = {"scripted:m": ScriptedModel([SEARCH, "Ok.", OTHER, "Refused."])}
    async with Crib("memory://", models=dict(models)) as crib:
        crib.add(*crm.tools)
        await crib.save(agent("a"))
        first = await crib.invoke("a", {"message": "go"})
        eve = Principal(id="eve", grants=(READS, ASKS))

        fork = await crib.acting_as(eve).fork(first.run_id, at="turn:2", anew=True)

        assert (fork.made_by, fork.output) == ("eve", {"response": "Refused."})
        calls = await envelopes(crib, fork.run_id)
        assert (calls["t1.c1"].reused, calls["t2.c1"].status) == (first.run_id, "denied")
        assert crm.searches == ["Acme"]


@pytest.mark.parametrize(
    "changes",
    [{"model": "scripted:m"}, {"prompt": "Do."}, {"temperature": 0}, {"policy": {}}, {"tool:search_deals": "1.0.0"}],
)
async def test_who_may_not_write_the_definition_forks_a_run_unchanged_only(changes: JsonObject):
    async with Crib("memory://", models={"scripted:m": ScriptedModel([SEARCH, "Ok.", "Input."])}) as crib:
        crib.add(*Crm(1).tools)
        await crib.save(agent("a"))
        first = await crib.invoke("a", {"message": "go"})
        eve = Principal(id="eve", grants=(READS, ASKS))

        with pytest.raises(PermissionDenied, match="ai://agents/a/write"):
            await crib.acting_as(eve).fork(first.run_id, changes=changes)

        assert (await crib.acting_as(eve).fork(first.run_id)).output == {"response": "Ok."}
        other = await crib.acting_as(eve).fork(first.run_id, changes={"input.message": "stay"})
        assert other.output == {"response": "Input."}


async def test_what_outsiders_wrote_before_the_cut_is_remembered():
    update = asks(("update_deals", {"ids": ["d0"], "stage": "3001"}))
    script = [asks(("read_mail", {})), "Ok.", update, "Denied."]
    async with Crib("memory://", models={"scripted:m": ScriptedModel(script)}) as crib:
        crib.add(*Crm(1).tools, read_mail)
        rules = (UntrustedContent(action="deny"),)
        await crib.save(agent("a", tools=("read_mail", "update_deals"), guardrails=rules))
        first = await crib.invoke("a", {"message": "go"})

        fork = await crib.fork(first.run_id, at="turn:2", anew=True, allow_writes=True)

        assert fork.output == {"response": "Denied."}
        assert (await envelopes(crib, fork.run_id))["t2.c1"].status == "denied"

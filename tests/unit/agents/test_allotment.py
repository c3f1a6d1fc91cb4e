"""Many tools: by pattern and group, folded where they are too many, found when they are needed."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.unit.agents.crm import MODEL, asks, told
from toolcrib import AgenticStep, AllocatedTool, Crib, FunctionTool, ScriptedModel, tool
from toolcrib.agents.toolset.tool_search import MOST_OFFERED
from toolcrib.contracts import NotFound, ProgressMade, ToolDefinition
from toolcrib.core.runs import Result
from toolcrib.llm import Request


def made(name: str, *, category: str = "shop", tags: tuple[str, ...] = (), about: str = "") -> FunctionTool[..., Any]:
    """A tool that says its name."""

    @tool(name=name, side_effects="reads", category=category, tags=tags, description=about or f"Does {name}.")
    def run() -> str:
        return name

    return run


def offered(request: Request) -> list[str]:
    return [one.name for one in request.tools.tools]


MANY = [
    made(f"shop.{noun}_{verb}", tags=(noun,), about=f"{verb.title()} a {noun}.")
    for noun in ("customer", "invoice", "refund", "product", "coupon", "payout", "dispute", "plan", "price")
    for verb in ("create", "read", "list", "change", "delete")
]


async def run(
    crib: Crib, *tools: str | AllocatedTool, add: Sequence[FunctionTool[..., Any] | ToolDefinition] = (), **more: Any
) -> Result:
    crib.add(*add)
    agent = crib.agentic_tool("agent", mode="agentic", model=MODEL, tools=tools, **more)
    return await agent("x")


@pytest.mark.requirement("agentic.patterns")
@pytest.mark.parametrize(
    ("ref", "names"),
    [
        ("a.*", ["a_one", "a_two"]),
        ("*.one", ["a_one", "b_one"]),
        ("group:shop", ["a_one", "b_one"]),
        ("group:shop/first", ["a_one"]),
        ("group:shop/second", ["a_one", "b_one"]),
        ("*", ["a_one", "a_two", "b_one"]),
    ],
)
async def test_a_pattern_or_a_group_means_all_tools_that_fit(ref: str, names: list[str]):
    tools = [
        made("a.one", tags=("first", "second")),
        made("a.two", category="other", tags=("first",)),
        made("b.one", tags=("second",)),
    ]
    model = ScriptedModel(["Done."])
    async with Crib("memory://", models={MODEL: model}) as crib:
        result = await run(crib, ref, add=tools)

    assert result.ok
    assert offered(model.requests[0]) == names


@pytest.mark.requirement("agentic.patterns")
@pytest.mark.parametrize("ref", ["c.*", "group:nowhere"])
async def test_a_pattern_that_means_nothing_is_refused_when_it_is_saved(ref: str):
    async with Crib("memory://", models={MODEL: ScriptedModel([])}) as crib:
        with pytest.raises(NotFound, match="means no tool of realm 'default'"):
            await run(crib, ref, add=[made("a.one")])


@pytest.mark.requirement("agentic.patterns")
async def test_a_tool_that_is_named_keeps_its_own_priority_and_stands_once():
    model = ScriptedModel(["Done."])
    async with Crib("memory://", models={MODEL: model}) as crib:
        await run(crib, "a.*", AllocatedTool(tool="a.two", priority=3), add=[made("a.one"), made("a.two")])

    assert offered(model.requests[0]) == ["a_two", "a_one"]


@pytest.mark.requirement("agentic.patterns")
async def test_a_run_keeps_the_tools_that_there_were_when_it_began():
    @tool(name="a.ask", side_effects="writes", requires_confirmation=True)
    def ask() -> str:
        return "asked"

    model = ScriptedModel([asks(("a_ask", {})), asks(("a_new", {})), "Done."])
    async with Crib("memory://", models={MODEL: model}) as crib:
        waiting = await run(crib, "a.*", add=[ask])
        await crib.save(made("a.new").definition)
        await crib.decide(waiting.run_id, "t1.c1", approve=True)
        result = await crib.resume(waiting.run_id)

    assert offered(model.requests[1]) == ["a_ask"]
    assert [envelope.status for envelope in result.envelopes] == ["success", "denied"]


@pytest.mark.requirement("agentic.folding")
async def test_an_allotment_that_is_too_large_is_folded_and_what_is_found_can_be_called():
    model = ScriptedModel(
        [asks(("find_tools", {"query": "list refunds"})), asks(("shop_refund_list", {})), "No refunds."]
    )
    async with Crib("memory://", models={MODEL: model}) as crib:
        result = await run(crib, "shop.*", add=MANY, system_prompt="{{available_tools}}")

    assert result.ok
    assert len(MANY) > MOST_OFFERED
    assert offered(model.requests[0]) == ["find_tools"]
    assert "45 more tools can be found with find_tools" in model.requests[0].system
    assert "shop/refund (5)" in model.requests[0].system
    found = orjson.loads(told(model.requests[1])[0])
    assert found["tools"][0] == {"name": "shop_refund_list", "description": "List a refund."}
    assert offered(model.requests[1])[0] == "find_tools"
    assert "shop_refund_list" in offered(model.requests[1])
    assert [(envelope.name, envelope.status) for envelope in result.envelopes] == [("shop.refund_list", "success")]
    [look] = [
        entry.event
        for entry in result.events
        if isinstance(entry.event, ProgressMade) and entry.event.kind == "tools_found"
    ]
    assert (look.key, look.data["query"]) == ("t1.c1", "list refunds")


@pytest.mark.requirement("agentic.folding")
async def test_tools_with_a_priority_stay_offered_and_a_group_narrows_what_is_found():
    model = ScriptedModel([asks(("find_tools", {"query": "list", "group": "shop/coupon"})), "Done."])
    async with Crib("memory://", models={MODEL: model}) as crib:
        await run(crib, "shop.*", AllocatedTool(tool="shop.plan_list", priority=1), add=MANY)

    assert offered(model.requests[0]) == ["shop_plan_list", "find_tools"]
    found = orjson.loads(told(model.requests[1])[0])
    assert [one["name"] for one in found["tools"]] == ["shop_coupon_list"]


@pytest.mark.requirement("agentic.folding")
async def test_only_allotted_tools_are_ever_found():
    model = ScriptedModel(
        [asks(("find_tools", {"query": "secret vault"})), asks(("secret_vault", {})), "Nothing there."]
    )
    async with Crib("memory://", models={MODEL: model}) as crib:
        result = await run(crib, "shop.*", add=[*MANY, made("secret.vault")])

    assert orjson.loads(told(model.requests[1])[0])["tools"] == []
    assert [envelope.status for envelope in result.envelopes] == ["denied"]
    assert "you may call: find_tools" in told(model.requests[2])[0]


@pytest.mark.requirement("agentic.folding", "agentic.refusals")
async def test_a_look_that_is_not_valid_is_refused_like_a_call():
    model = ScriptedModel([asks(("find_tools", {"group": "x"}))] * 5)
    async with Crib("memory://", models={MODEL: model}) as crib:
        result = await run(crib, "shop.*", add=MANY)

    assert result.summary.status == "failed"
    assert len(model.requests) == 3
    assert "the arguments of 'find_tools' are not valid" in told(model.requests[1])[0]


@pytest.mark.requirement("agentic.folding")
async def test_a_run_that_goes_on_after_a_wait_has_found_what_it_had_found():
    @tool(name="shop.refund_approve", side_effects="writes", requires_confirmation=True, category="shop")
    def approve() -> str:
        """Approve a refund."""
        return "approved"

    model = ScriptedModel([asks(("find_tools", {"query": "approve"})), asks(("shop_refund_approve", {})), "Approved."])
    async with Crib("memory://", models={MODEL: model}) as crib:
        waiting = await run(crib, "shop.*", add=[*MANY, approve])
        await crib.save(made("shop.approve_other", about="Approve anything.").definition)
        await crib.decide(waiting.run_id, "t2.c1", approve=True)
        result = await crib.resume(waiting.run_id)

    assert result.ok
    assert offered(model.requests[2]) == ["find_tools", "shop_refund_approve"]


@pytest.mark.requirement("agentic.folding")
async def test_a_few_tools_with_very_large_schemas_are_folded_too():
    wide: dict[str, Any] = {f"field_{number}": {"type": "string", "description": "x" * 100} for number in range(200)}
    definition = made("a.wide").definition
    large = definition.model_copy(update={"input_schema": {"type": "object", "properties": wide}})
    twin = large.model_copy(update={"name": "a.twin"})
    model = ScriptedModel(["Done."])
    async with Crib("memory://", models={MODEL: model}) as crib:
        await run(crib, AllocatedTool(tool="a.wide", priority=1), "a.twin", add=[large, twin])

    assert offered(model.requests[0]) == ["a_wide", "find_tools"]


@pytest.mark.requirement("agentic.folding")
async def test_a_sequence_is_never_folded():
    steps = [AgenticStep(id=f"s{number}", tool=one.definition.name) for number, one in enumerate(MANY)]
    plan: Any = {"reasoning": "", **{step.id: {"skip": step.id != "s40"} for step in steps}}
    model = ScriptedModel([orjson.dumps(plan).decode(), '{"summary": "One."}'])
    async with Crib("memory://", models={MODEL: model}) as crib:
        crib.add(*MANY)
        result = await crib.agentic_tool("agent", mode="deterministic", model=MODEL, steps=steps)("x")

    assert result.output == {"summary": "One."}
    assert [envelope.name for envelope in result.envelopes] == [MANY[40].definition.name]


@pytest.mark.requirement("agents.pinned_tools")
async def test_a_tool_that_was_removed_ends_the_runs_that_need_it_with_its_name():
    model = ScriptedModel([])
    async with Crib("memory://", models={MODEL: model}) as crib:
        crib.add(made("a.one"), made("a.two"))
        agent = crib.agentic_tool("agent", mode="agentic", model=MODEL, tools=["a.one"])
        await crib.open()
        await crib.registry.remove(crib.principal.realm, "a.one")

        result = await agent("x")

    assert result.summary.status == "failed"
    assert result.summary.error is not None
    assert "no tool 'a.one' in realm 'default'; did you mean 'a.two'?" in result.summary.error.message


def prepared(crib: Crib) -> set[int]:
    """What is known of how runs are prepared."""
    derived = crib.registry.index(crib.principal.realm).derived
    return {id(found) for key, found in derived.items() if isinstance(key, tuple) and "agentic" in key}


@pytest.mark.requirement("agentic.prepared_once")
@pytest.mark.parametrize("store", ["memory://", "sqlite"])
async def test_a_run_is_prepared_once_until_a_tool_changes(store: str, tmp_path: Path):
    model = ScriptedModel(["Done."] * 6)
    address = store if "://" in store else f"sqlite:///{tmp_path}/crib.db"
    async with Crib(address, models={MODEL: model}) as crib:
        crib.add(made("look"), made("list", about="Lists all."))
        agent = crib.agentic_tool("agent", mode="agentic", model=MODEL, tools=["look", "list"])
        await agent("x")  # which reads what the crib itself has saved
        await agent("x")
        first = prepared(crib)
        second = await agent("y")
        again = prepared(crib)
        crib.add(made("list", about="Lists some."))
        third = await agent("z")
        await crib.registry.set_status(crib.principal.realm, "look", "blocked")
        blocked = await agent("z")
        await crib.registry.set_status(crib.principal.realm, "look", "active")
        back = await agent("z")

    assert (len(first), again) == (1, first)
    assert (second.warnings, third.warnings) == ((), ())
    told = [{one.name: one.description.splitlines()[0] for one in asked.tools.tools} for asked in model.requests]
    before = {"look": "Does look.", "list": "Lists all."}
    after = before | {"list": "Lists some."}
    assert told == [before, before, before, after, {"list": "Lists some."}, after]
    assert [warning for warning in blocked.warnings if "out of service" in warning]
    assert back.warnings == ()


@pytest.mark.requirement("agentic.prepared_once")
async def test_runs_of_one_tool_share_what_is_prepared_and_nothing_of_their_own():
    model = ScriptedModel(lambda request: request.messages[-1].text.upper())
    async with Crib("memory://", models={MODEL: model}) as crib:
        crib.add(made("look"))
        agent = crib.agentic_tool(
            "agent", mode="agentic", model=MODEL, tools=["look"], system_prompt="Do {{user_task}}."
        )
        found = await asyncio.gather(*(agent(f"task {number}") for number in range(5)))

    assert [result.output for result in found] == [{"summary": f"TASK {number}"} for number in range(5)]
    assert sorted(asked.system for asked in model.requests) == [f"Do task {number}." for number in range(5)]

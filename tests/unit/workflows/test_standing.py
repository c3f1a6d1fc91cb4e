"""What the lock of a published workflow takes, holds and refuses, and how its graph tells that."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from tests.contract.graphs import world
from tests.contract.graphs.playing import play
from tests.contract.graphs.workflows import INPUT, call, graph, publish_all
from tests.contract.graphs.world import LEFT, STOCK, composite, tool
from toolcrib import Crib
from toolcrib.contracts import NotFound, ToolcribError
from toolcrib.contracts.workflows import ConditionBinding, StepRegistration, WorkflowDefinition, WorkflowGraph
from toolcrib.core.registry import lock_of, pins_of

pytestmark = pytest.mark.requirement("workflow_impact.lock")

RENAMED = {**STOCK, "properties": {"code": {"type": "string"}}, "required": ["code"]}
MORE = {**LEFT, "properties": {**LEFT["properties"], "site": {"type": "string"}}}


@pytest.fixture
async def crib() -> AsyncGenerator[Crib]:
    async with world.crib() as opened:
        await world.furnish(opened)
        await publish_all(opened)
        yield opened


async def stands(crib: Crib, name: str, step: str = "s") -> tuple[str, str | None]:
    """State and reason of a node."""
    drawn = await crib.workflows.graph(name)
    node = next(node for node in drawn.nodes if node.name == step)
    return node.state, node.reason


def states(drawn: WorkflowGraph) -> dict[str, str]:
    """States of the edges, by their ends."""
    return {f"{edge.source} {edge.target}": edge.state for edge in drawn.edges}


async def test_publishing_writes_down_what_is_called_and_what_that_calls_in_its_turn(crib: Crib):
    bound = {
        name: (await crib.workflows.get(name)).definition.implementation.model_dump()["bound"].keys()
        for name in ("single", "composed_twice", "fallen_back", "sub_two", "agent_node")
    }
    assert bound == {
        "single": {"stock"},
        "composed_twice": {"stock", "lookup", "outer_lookup"},
        "fallen_back": {"stock", "shaky"},
        "sub_two": {"sub"},
        "agent_node": {"scout", "stock"},
    }


@pytest.mark.parametrize(
    ("fields", "state"),
    [
        ({"description": "Other words."}, "ok"),
        ({"timeout_s": 90.0}, "ok"),
        ({"output_schema": MORE}, "ok"),
        ({"requires_confirmation": True}, "ok"),
        ({"version": "1.2.0"}, "ok"),
        ({"input_schema": RENAMED}, "held"),
        ({"side_effects": "writes"}, "held"),
        ({"version": "2.0.0"}, "held"),
        ({"version": "2.0.0", "input_schema": RENAMED, "requires_confirmation": True}, "held"),
        ({"enabled": False}, "broken"),
        ({"version": "2.0.0", "enabled": False}, "broken"),
        ({"available_as": ("tool",)}, "broken"),
        ({"input_schema": RENAMED, "requires_confirmation": True}, "broken"),
    ],
)
async def test_a_newer_revision_is_taken_held_back_or_breaks_by_what_is_different(
    crib: Crib, fields: dict[str, Any], state: str
):
    before = (await crib.workflows.graph("single")).nodes[0]
    saved = await crib.save(tool("stock", **fields))
    node = (await crib.workflows.graph("single")).nodes[0]
    assert node.state == state
    taken = {"ok": saved.content_hash, "held": before.content_hash, "broken": None}
    assert node.content_hash == taken[state]


async def test_a_held_step_says_what_has_changed_and_until_when_and_so_does_each_run(crib: Crib):
    await crib.save(tool("stock", input_schema=RENAMED))
    state, reason = await stands(crib, "single")
    first = "input sku was removed; input count was removed; input unit was removed; and 2 more"
    changed = f"tool 'stock' has changed ({first})"
    assert state == "held"
    assert reason == f"{changed}: revision 1 of version 1.0.0 is used until the workflow is published again"
    assert (await play(crib, "single")).warnings == (reason,)
    assert (await play(crib, "sub")).warnings == (f"workflow 'single': {reason}",)

    await crib.workflows.publish(graph("single", "stock", {**call("s"), "input": {"code": "a"}}).definition)
    assert await stands(crib, "single") == ("ok", None)
    assert (await play(crib, "single")).warnings == ()


async def test_rules_of_use_hold_as_they_are_now_and_a_run_tells_that_they_are_others(crib: Crib):
    await crib.save(tool("stock", requires_confirmation=True))
    begun = await crib.invoke("single", INPUT)
    assert begun.summary.status == "awaiting_approval"
    ended = await play(crib, "single")
    assert ended.status == "completed"
    told = (
        "tool 'stock' has changed since the workflow was published (effect requires_confirmation was false and is true)"
    )
    assert ended.warnings == (told,)
    assert await stands(crib, "single") == ("ok", told)


@pytest.mark.requirement("workflow_impact.graph")
async def test_a_tool_that_is_gone_breaks_its_node_and_edges_and_a_run_fails_where_it_comes_to_it(crib: Crib):
    await crib.registry.remove("default", "stock")
    drawn = await crib.workflows.graph("join")
    assert {node.name: node.state for node in drawn.nodes} == {"s": "broken", "p": "ok", "b": "ok"}
    assert states(drawn) == {"s b": "broken", "p b": "ok"}
    ended = await play(crib, "join")
    assert ended.error is not None
    assert ended.error.details == {"reason": "tool_not_found", "tool": "stock", "step": "s"}
    assert "there is no tool 'stock' any more; add it again, or publish the workflow without it" in ended.error.message
    with pytest.raises(NotFound):
        await crib.workflows.graph("stock")


@pytest.mark.parametrize(
    ("fields", "state"), [({}, "ok"), ({"description": "Other words."}, "ok"), ({"config": {"url": "b"}}, "broken")]
)
async def test_a_tool_that_was_removed_is_never_run_as_it_was(crib: Crib, fields: dict[str, Any], state: str):
    await crib.registry.remove("default", "stock")
    await crib.save(tool("stock", **fields))
    found, reason = await stands(crib, "single")
    ended = await play(crib, "single")
    assert found == state
    assert ended.status == ("incomplete" if state == "broken" else "completed")
    if state == "broken":
        assert reason is not None
        assert "was removed and made anew" in reason
        assert ended.error is not None
        assert ended.error.details == {"reason": "tool_drifted", "tool": "stock", "step": "s"}


async def test_a_blocked_version_is_denied_unless_a_newer_one_is_harmless(crib: Crib):
    await crib.save(tool("stock", version="1.1.0"))
    await crib.lifecycle.block("stock@1.0.0", message="Wrong.")
    assert await stands(crib, "single") == ("ok", None)
    await crib.lifecycle.block("stock@1.1.0", message="Wrong too.", replacement="price")
    assert await stands(crib, "single") == ("broken", "tool 'stock@1.1.0' is blocked: Wrong too; use 'price' instead")
    await crib.save(tool("stock", version="2.0.0"))
    state, reason = await stands(crib, "single")
    assert state == "broken"
    assert reason is not None
    assert reason.startswith("tool 'stock' has changed (its version 1.0.0 became 2.0.0, which need not be compatible)")
    assert "tool 'stock@1.0.0' is blocked: Wrong; bring it back" in reason
    failed = (await play(crib, "single")).error
    assert failed is not None
    assert failed.reason == "tool_drifted"
    assert "publish the workflow again" in failed.message


async def test_what_a_composite_and_a_fallback_call_is_locked_too(crib: Crib):
    before = {name: await play(crib, name) for name in ("composed_twice", "fallen_back")}
    await crib.save(tool("stock", config={"url": "https://elsewhere.test"}))
    for name, outcome in before.items():
        after = await play(crib, name)
        assert after.output == outcome.output
        assert len(after.warnings) == 1
    state, reason = await stands(crib, "composed_twice", "c")
    assert state == "held"
    assert reason is not None
    assert reason.startswith("outer_lookup calls lookup calls stock: tool 'stock' has changed")


async def test_a_composite_whose_operation_is_gone_breaks_the_step_that_calls_it(crib: Crib):
    await crib.registry.remove("default", "stock")
    assert (await stands(crib, "composed", "c"))[0] == "broken"
    failed = (await play(crib, "composed")).error
    assert failed is not None
    assert failed.details == {"reason": "tool_not_found", "tool": "stock", "step": "c"}


async def test_what_a_model_calls_is_not_held_back_but_told(crib: Crib):
    await crib.save(tool("stock", config={"url": "https://elsewhere.test"}))
    ended = await play(crib, "agent_node")
    assert ended.status == "completed"
    assert len(ended.warnings) == 1
    assert ended.warnings[0].endswith("and models are offered it as it is now")
    assert await stands(crib, "agent_node", "a") == ("ok", ended.warnings[0])


async def test_what_a_model_calls_need_not_be_a_step(crib: Crib):
    await crib.save(tool("stock", available_as=("tool",)))
    changed = "tool 'stock' has changed, and models are offered it as it is now"
    assert await stands(crib, "agent_node", "a") == ("ok", changed)

    await crib.workflows.publish(WorkflowDefinition.of((await crib.workflows.get("agent_node")).definition))
    assert (await play(crib, "agent_node")).warnings == ()
    assert await stands(crib, "agent_node", "a") == ("ok", None)


async def test_the_node_of_an_agent_says_which_of_its_tools_is_gone(crib: Crib):
    await crib.registry.remove(crib.principal.realm, "stock")
    state, reason = await stands(crib, "agent_node", "a")
    assert (state, reason) == (
        "ok",
        "there is no tool 'stock' any more; add it again, or publish the workflow without it",
    )


@pytest.mark.requirement("workflow_impact.graph")
async def test_a_workflow_inside_has_its_own_lock_and_shows_its_state_outside(crib: Crib):
    await crib.save(tool("stock", input_schema=RENAMED))
    state, reason = await stands(crib, "sub_two", "w")
    assert state == "held"
    assert reason is not None
    assert reason.startswith("step 'w' of 'sub': step 's' of 'single': tool 'stock' has changed")


async def test_names_of_the_vocabulary_mean_what_they_meant_until_it_is_published_again(crib: Crib):
    await crib.steps.save(StepRegistration(name="shop.stock", tool="price", input_mapping={"sku": "a"}))
    await crib.conditions.remove("enough")
    until = "what it was when the workflow was published is used until it is published again"
    assert await stands(crib, "handler") == ("held", f"workflow step 'shop.stock' has changed: {until}")
    assert await stands(crib, "bound_condition", "b") == ("held", f"condition 'enough' is gone: {until}")
    await crib.conditions.save(ConditionBinding(name="enough", parameters=("n",), expression="${n > 0}"))
    assert await stands(crib, "bound_condition", "b") == ("ok", None)


async def test_a_step_without_a_tool_is_held_by_its_condition(crib: Crib):
    steps = (call("s"), {"name": "v", "output": 1, "condition": {"ref": "enough", "input": {"n": "${s.total}"}}})
    await crib.workflows.publish(graph("valued", "stock enough", *steps).definition)
    await crib.conditions.remove("enough")
    assert (await stands(crib, "valued", "v"))[0] == "held"


async def test_a_run_that_goes_on_after_a_change_does_what_it_began(crib: Crib):
    before = await play(crib, "approved")
    begun = await crib.invoke("approved", INPUT)
    assert begun.summary.status == "awaiting_approval"
    await crib.save(tool("stock", config={"url": "b"}))
    await crib.lifecycle.block("stock")
    await crib.decide(begun.run_id, "ask", approve=True)
    assert (await crib.resume(begun.run_id)).summary.output == before.output


@pytest.mark.requirement("workflow_impact.graph")
async def test_a_definition_that_is_not_published_is_drawn_as_it_is_checked(crib: Crib):
    unknown = graph("new", "", call("s", "stack")).definition
    drawn = await crib.workflows.check(unknown)
    assert [node.name for node in drawn.nodes] == ["s"]
    assert any("stack" in problem.message for problem in drawn.problems)


async def test_a_workflow_that_was_saved_without_a_lock_takes_what_there_is(crib: Crib):
    published = await crib.workflows.get("composed")
    implementation = published.definition.implementation.model_copy(update={"bound": {}})
    unlocked = published.model_copy(
        update={"definition": published.definition.model_copy(update={"implementation": implementation})}
    )
    changed = await crib.save(tool("stock", input_schema=RENAMED))
    assert pins_of(published, crib.registry)["stock"] != changed.content_hash
    assert pins_of(unlocked, crib.registry).keys() == {"lookup"}


async def test_the_lock_of_nothing_is_empty_and_patterns_and_what_is_not_there_are_left_out(crib: Crib):
    assert lock_of((), crib.registry, "default") == {}
    assert lock_of(("nothing", "crm_*", "group:x"), crib.registry, "default") == {}


async def test_another_process_compares_with_what_was_removed_before_it_was_opened(tmp_path: Path):
    url = f"sqlite:///{tmp_path / 'crib.db'}"
    async with world.crib(url) as first:
        await world.furnish(first)
        await publish_all(first)
        await first.registry.remove("default", "stock")
        await first.save(tool("stock", description="Other words."))
    async with world.crib(url) as second:
        await second.open()
        assert await stands(second, "single") == ("ok", None)
        assert (await play(second, "single")).status == "completed"


async def test_a_bound_revision_that_nobody_knows_breaks_the_step(crib: Crib):
    single = await crib.workflows.get("single")
    implementation = single.definition.implementation.model_copy(update={"bound": {"stock": "sha256:lost"}})
    lost = single.definition.model_copy(update={"implementation": implementation})
    await crib.registry.save(lost, realm="default", made_by="test", at=crib.clock.now())
    reason = "what tool 'stock' was is not known any more; look at it, and publish the workflow again"
    assert await stands(crib, "single") == ("broken", reason)
    failed = (await play(crib, "single")).error
    assert failed is not None
    assert failed.reason == "tool_drifted"


async def test_a_function_that_this_program_has_in_another_form_only_breaks_the_step_that_calls_it(crib: Crib):
    crib.registry.runs_here = lambda found: found.definition.input_schema == RENAMED
    await crib.save(tool("stock", input_schema=RENAMED))
    state, reason = await stands(crib, "single")
    assert state == "broken"
    assert reason is not None
    assert "the function of 'stock@1.0.0' is not in this program" in reason
    failed = (await play(crib, "single")).error
    assert failed is not None
    assert failed.reason == "tool_drifted"


async def test_what_is_compared_once_is_not_compared_again(crib: Crib):
    before = crib.registry.require("default", "stock")
    after = await crib.save(tool("stock", input_schema=RENAMED))
    assert crib.registry.change(before, after) is crib.registry.change(before, after)


async def test_only_workflows_have_a_graph(crib: Crib):
    with pytest.raises(ToolcribError):
        await crib.workflows.graph("lookup")
    await crib.save(composite("other", "price"))
    assert (await crib.workflows.graph("unrelated")).state == "ok"

"""Whom a change concerns, told before and after: dependents with verdicts and edges, and warnings for who changes."""

from collections.abc import AsyncGenerator, Sequence
from typing import Any

import pytest

from tests.contract.graphs import world
from tests.contract.graphs.workflows import call, graph, publish_all
from tests.contract.graphs.world import LEFT, STOCK, agent, composite, tool
from toolcrib import Crib
from toolcrib.contracts import Dependent, JsonObject, ProviderDefinition, ToolDefinition
from toolcrib.core.registry import concerns

pytestmark = pytest.mark.requirement("workflow_impact.reports")

RENAMED = {**STOCK, "properties": {"code": {"type": "string"}}, "required": ["code"]}
FEWER = {
    **LEFT,
    "properties": {name: part for name, part in LEFT["properties"].items() if name != "total"},
    "required": ["by", "lines", "hint"],
    "additionalProperties": False,
}


@pytest.fixture
async def crib() -> AsyncGenerator[Crib]:
    async with world.crib() as opened:
        await world.furnish(opened)
        await publish_all(opened)
        yield opened


async def foreseen(crib: Crib, proposed: ToolDefinition) -> dict[str, Dependent]:
    """Dependents of what would become of a tool, by name."""
    found = (await crib.lifecycle.impact(proposed.name, proposed=proposed)).dependents
    return {each.path[0]: each for each in found}


def shown(edges: Sequence[Any]) -> list[str]:
    """Edges by their places."""
    return sorted(edge.path for edge in edges)


async def test_a_change_that_breaks_the_definition_names_the_edges_that_it_would_break(crib: Crib):
    found = await foreseen(crib, tool("stock", output_schema=FEWER))
    assert found["chain"].verdict == "breaks"
    assert found["chain"].held
    assert shown(found["chain"].edges) == ["/steps/1/output"]
    assert all(edge.state == "broken" and edge.reason for edge in found["chain"].edges)
    assert any("total" in reason for reason in found["chain"].reasons)
    assert found["single"].verdict == "may_break"
    assert found["single"].edges == ()


async def test_of_several_edges_at_one_place_all_that_break_are_named_and_no_other(crib: Crib):
    told = {"name": "told", "output": "${s.total} by ${s.by}, ${s.hint}"}
    await crib.workflows.publish(graph("telling", "stock", call("s"), told).definition)
    kept = {"lines": LEFT["properties"]["lines"], "hint": LEFT["properties"]["hint"]}
    fewest = {**LEFT, "properties": kept, "required": list(kept), "additionalProperties": False}

    broken = (await foreseen(crib, tool("stock", output_schema=fewest)))["telling"].edges

    assert [(edge.path, edge.reference) for edge in broken] == [
        ("/steps/1/output", "s.by"),
        ("/steps/1/output", "s.total"),
    ]


async def test_arguments_that_are_not_taken_any_more_break_every_workflow_that_gives_them(crib: Crib):
    found = await foreseen(crib, tool("stock", input_schema={**RENAMED, "additionalProperties": False}))
    assert (found["single"].verdict, found["single"].held) == ("breaks", True)
    assert (found["sub"].verdict, found["sub"].held) == ("breaks", True)
    assert (found["agent_node"].verdict, found["agent_node"].held) == ("may_break", False)


async def test_a_harmless_change_concerns_everybody_and_affects_nobody(crib: Crib):
    found = await foreseen(crib, tool("stock", description="Other words."))
    assert {each.verdict for each in found.values() if each.kind == "workflow"} == {"unaffected"}
    assert not any(each.held or each.edges or each.reasons for each in found.values())


async def test_a_version_that_a_reference_does_not_take_leaves_its_workflow_alone(crib: Crib):
    found = await foreseen(crib, tool("stock", version="2.0.0", input_schema=RENAMED))
    assert found["ranged"].verdict == "unaffected"
    assert found["exact"].verdict == "unaffected"
    assert found["chain"].held


async def test_disabling_a_tool_breaks_the_edges_around_its_steps(crib: Crib):
    found = await foreseen(crib, tool("stock", enabled=False))
    assert (found["join"].verdict, found["join"].held) == ("breaks", False)
    assert shown(found["join"].edges) == ["/steps/2/depends_on/0", "/steps/2/input/sku"]
    assert (found["sub_two"].verdict, found["sub_two"].edges) == ("breaks", ())


async def test_publishing_a_workflow_tells_whom_that_concerns(crib: Crib):
    done = await crib.workflows.publish(graph("single", "price", call("s", "price")).definition)
    assert done.impact is not None
    assert {(each.path, each.held) for each in done.impact.dependents} == {
        (("sub", "single"), True),
        (("sub_two", "sub", "single"), True),
    }
    first = await crib.workflows.publish(graph("first", "price", call("s", "price")).definition)
    assert first.impact is None


async def test_a_workflow_without_a_lock_is_judged_by_whether_it_fits(crib: Crib):
    chain = (await crib.workflows.get("chain")).definition
    implementation = chain.implementation.model_copy(update={"bound": {}})
    unlocked = chain.model_copy(update={"implementation": implementation})
    await crib.registry.save(unlocked, realm="default", made_by="test", at=crib.clock.now())
    found = (await foreseen(crib, tool("stock", output_schema=FEWER)))["chain"]
    assert (found.verdict, found.held) == ("breaks", False)
    assert shown(found.edges) == ["/steps/1/output"]


@pytest.mark.parametrize(
    ("name", "kind", "users"),
    [
        ("shop.stock", "workflow_step", {"handler@1.0.0": True}),
        ("enough", "condition", {"bound_condition@1.0.0": True}),
        ("crm", "provider", {"deals@1.0.0": False, "sold@1.0.0": False, "outer@1.0.0": False}),
        ("nothing", "provider", {}),
    ],
)
async def test_what_is_no_tool_tells_its_users_too(crib: Crib, name: str, kind: Any, users: dict[str, bool]):
    await crib.save_provider(ProviderDefinition(name="crm", base_url="https://crm.test"))
    implementation: Any = {"kind": "http", "method": "GET", "url": "/deals", "provider": "crm"}
    await crib.save(ToolDefinition(name="deals", side_effects="reads", implementation=implementation))
    await crib.workflows.publish(graph("sold", "deals", {"name": "d", "tool": "deals"}).definition)
    below: JsonObject = {"name": "w", "workflow": "sold", "input": {"sku": "a", "skus": []}}
    await crib.workflows.publish(graph("outer", "deals sold", below).definition)
    found = await crib.lifecycle.impact_of_name(name, kind=kind)
    assert {each.name: each.held for each in found} == users


async def test_who_saves_a_tool_is_told_which_workflows_are_held(crib: Crib):
    assert (await crib.save(tool("stock", description="Other words."))).warnings == ()
    held, offered = (await crib.save(tool("stock", input_schema=RENAMED))).warnings
    assert held.startswith("tool 'stock' is used as it was in 17 workflows, until it is published again: ")
    assert held.endswith(" and 7 more")
    assert offered == "tool 'stock' is used as it is now in 1 workflow, whose runs tell what is new: agent_node"


async def test_who_changes_the_life_of_a_tool_is_told_which_workflows_break(crib: Crib):
    blocked = await crib.lifecycle.block("price")
    assert blocked.warnings == (
        "tool 'price' does not work any more in 4 workflows, look at the graph: chain, join, unrelated, unrelated_sub",
        "tool 'price' is used as it is now in 1 workflow, whose runs tell what is new: unrelated_agent",
    )
    assert (await crib.lifecycle.activate("price")).warnings == ()
    await crib.registry.remove("default", "price")
    assert concerns(blocked, crib.registry)[0].startswith("tool 'price' does not work any more in 5 workflows")


async def test_a_change_of_a_composite_and_of_an_agent_is_told_as_well(crib: Crib):
    (held,) = (await crib.save(composite("lookup", "price"))).warnings
    assert held.endswith("until it is published again: composed, composed_twice")
    (held,) = (await crib.save(agent("scout", "price"))).warnings
    assert held.endswith("until it is published again: agent_and_tool, agent_node")


async def test_an_import_tells_what_it_has_done_to_workflows(crib: Crib):
    def document(**schema: Any) -> dict[str, Any]:
        parameter = {"in": "query", "name": "stage", "schema": {"type": "string", **schema}}
        get = {"operationId": "deals", "parameters": [parameter], "responses": {"200": {"description": "ok"}}}
        api = {"openapi": "3.1.0", "info": {"title": "C", "version": "1"}, "servers": [{"url": "https://crm.test"}]}
        return {**api, "paths": {"/deals": {"get": get}}}

    imported = await crib.imports.openapi(document(), name="crm")
    name = imported.tools[0].name
    await crib.workflows.publish(graph("sold", name, {"name": "d", "tool": name}).definition)
    again = await crib.imports.openapi(document(enum=["won"]), name="crm")
    assert again.outcome is not None
    assert again.outcome.warnings == ()
    warning = (await crib.invoke("sold", {"sku": "a", "skus": []})).summary.warnings[0]
    assert warning.startswith(f"tool '{name}@1.0.0' runs as before: provider 'crm' offers it changed, narrowing")
    accepted = await crib.lifecycle.accept(name)
    assert accepted.warnings == (f"tool {name!r} is used as it was in 1 workflow, until it is published again: sold",)

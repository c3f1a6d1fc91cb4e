"""A call that an agent has made becomes a step of its own: what it is, what reads it, and how it is taken back."""

import json
from typing import Any

import pytest

from tests.unit.executions.house import MODEL, Desk, agent, turn
from tests.unit.workflows.asking import DOES_NOT, LOOKS, asks, opened, pin, pinned, run, workflow
from toolcrib import Crib, ScriptedModel, tool
from toolcrib.contracts import Json, JsonObject, PermissionDenied, Principal, ServiceAccount, ToolEnvelope
from toolcrib.contracts.workflows import Materialized, WorkflowDefinition, WorkflowStep
from toolcrib.core.runs import calls_of
from toolcrib.crib import ActingCrib
from toolcrib.llm import Message, ToolCall

FOUND = pin("found")
THEN: JsonObject = {"name": "then", "output": "Look: ${ask.handles.found}"}


async def calls_in(crib: Crib, run_id: str | None) -> list[ToolEnvelope]:
    """The calls of a run."""
    return list(calls_of(await crib.store.journal.events(run_id or "")))


async def first_call(crib: Crib, **fields: Any) -> ToolEnvelope:
    """Run the workflow; the first call that its agent makes."""
    instance = await run(crib, **fields)
    return (await calls_in(crib, instance.steps[0].agent_runs[0]))[0]


async def made(crib: ActingCrib, call: ToolEnvelope, *, step: str = "looked", **fields: Any) -> Materialized:
    """Make a step of the call."""
    return await crib.workflows.materialize("flow", run_id=call.run_id or "", call_id=call.call_id, step=step, **fields)


def step_of(definition: WorkflowDefinition, name: str = "looked") -> WorkflowStep:
    """One step."""
    return next(step for step in definition.steps if step.name == name)


@pytest.mark.requirement("workflow_agents.materialize")
async def test_a_call_becomes_a_step_with_its_exact_input_and_version_and_what_read_the_handle_reads_the_step():
    async with await opened(workflow(asks(pins=[FOUND]), THEN), *LOOKS) as crib:
        call = await first_call(crib)

        change = await made(crib, call)

    step = step_of(change.definition)
    assert (step.tool, step.input, step.depends_on) == ("look@1.0.0", {"item": "hat"}, ())
    assert step_of(change.definition, "then").output == "Look: ${looked}"
    assert step_of(change.definition, "ask").pins == workflow(asks(pins=[FOUND])).steps[0].pins
    assert (change.step, change.node, change.tool, change.call_id) == ("looked", "ask", "look@1.0.0", call.call_id)
    assert (change.rewired, change.left, change.warnings) == (("/steps/1/output",), (), ())
    assert (change.run_id, change.draft_revision, change.before_revision) == (call.run_id, 1, None)


@pytest.mark.requirement("workflow_agents.materialize")
async def test_the_step_does_exactly_what_the_call_did():
    desk, both = Desk(), (turn(("look", "${hat} \\${x}")), "A hat.", "Nothing.")
    async with await opened(workflow(asks(pins=[FOUND]), THEN), *both, desk=desk) as crib:
        before = await run(crib)
        (call,) = await calls_in(crib, before.steps[0].agent_runs[0])
        await made(crib, call)
        published = await crib.workflows.publish("flow")
        after = await run(crib)
        (again,) = [found for found in await calls_in(crib, after.run_id) if found.name == "look"]
        graph = await crib.workflows.graph("flow")

    assert desk.done == [("look", "${hat} \\${x}")] * 2
    assert (again.name, again.version, again.input) == (call.name, call.version, call.input)
    assert (again.content_hash, again.output) == (call.content_hash, call.output)
    assert after.output == {**(before.output or {})}
    assert (graph.state, published.problems) == ("ok", ())
    assert ("looked", "then") in {(edge.source, edge.target) for edge in graph.edges}
    assert next(node.handles for node in graph.nodes if node.name == "ask")[-1] == "handles.found"


@pytest.mark.requirement("workflow_agents.materialize")
async def test_the_workflow_puts_out_what_it_put_out_also_if_it_does_not_say_what():
    async with await opened(workflow(asks(pins=[FOUND]), THEN), *LOOKS, *DOES_NOT) as crib:
        before = await run(crib)
        await crib.workflows.materialize("flow", run_id=before.run_id, pin="found", step="looked")
        await crib.workflows.publish("flow")

        assert (await run(crib)).output == before.output == {"then": "Look: hat is here"}


@pytest.mark.requirement("workflow_agents.materialize")
async def test_every_expression_that_reads_the_handle_is_rewired_and_no_other():
    reads = "${ask.handles.found}"
    agent_step = {"handler_ref": "ai.invoke_agent"}
    shared = {"agent_ref": "clerk", "prompt": "${ask.handles.found}", "context": {"ask": {"handles": {"found": reads}}}}
    definition = workflow(
        asks(pins=[FOUND, pin("other")], output=None),
        {"name": "plain", "tool": "look", "input": {"item": "${ask.handles['found']} and ${ask.handles.other}"}},
        {"name": "each", "output": "${item}", "for_each": "${[ask.handles.found]}"},
        {"name": "cond", "output": 1, "condition": "${ask?.handles?.found != null}"},
        {"name": "asked", "approval": {"message": reads, "show": {"it": [reads]}}, "condition": "${1 > 2}"},
        {"name": "waits", "wait": {"seconds": "${ask.handles.found.length}"}, "condition": "${1 > 2}"},
        {"name": "whole", "output": "${ask.handles}", "condition": "${1 > 2}"},
        {"name": "near", **agent_step, "input": shared, "condition": "${1 > 2}"},
        output={"a": [reads], "b": "${ask.response}", "c": r"\${ask.handles.found}"},
    )
    answers = (turn(("look", "hat")), "A hat.")
    async with await opened(definition, *answers) as crib:
        instance = await run(crib)
        change = await crib.workflows.materialize("flow", run_id=instance.run_id, pin="found", step="looked")

    now = change.definition
    assert change.rewired == (
        "/steps/1/input/item",
        "/steps/2/for_each/items",
        "/steps/3/condition",
        "/steps/4/approval/message",
        "/steps/4/approval/show/it/0",
        "/steps/5/wait/seconds",
        "/steps/7/input/context/ask/handles/found",
        "/output/a/0",
    )
    assert change.left == ("/steps/6/output",)
    assert step_of(now, "plain").input == {"item": "${looked} and ${ask.handles.other}"}
    assert step_of(now, "cond").condition == "${looked != null}"
    assert step_of(now, "near").input["prompt"] == "${ask.handles.found}"
    assert now.output == {"a": ["${looked}"], "b": "${ask.response}", "c": r"\${ask.handles.found}"}


@pytest.mark.requirement("workflow_agents.materialize")
async def test_what_the_node_makes_of_its_own_handle_reads_the_step_too():
    own = workflow(asks(pins=[FOUND], output={"it": "${output.handles.found}", "words": "${output.response}"}))
    async with await opened(own, *LOOKS, *DOES_NOT) as crib:
        change = await made(crib, await first_call(crib))
        await crib.workflows.publish("flow")
        after = await run(crib)

    assert change.rewired == ("/steps/0/output/it",)
    assert after.output == {"ask": {"it": "hat is here", "words": "Nothing."}}


@pytest.mark.requirement("workflow_agents.materialize")
async def test_the_step_stands_where_the_agent_stands():
    schema = {"type": "object", "properties": {"ask": {"type": "boolean"}}}
    node = asks(
        pins=[FOUND], depends_on=["first"], join="always", condition="${input.ask && second > 1}", on_error="continue"
    )
    steps = (node, {"name": "first", "output": 1}, {"name": "second", "output": 2}, THEN)
    async with await opened(workflow(*steps, input_schema=schema), *LOOKS) as crib:
        change = await made(crib, await first_call(crib, input={"ask": True}))

    step = step_of(change.definition)
    assert step.depends_on == ("first", "second")
    assert (step.join, step.condition, step.on_error) == ("always", "${input.ask && second > 1}", "continue")


@pytest.mark.requirement("workflow_agents.materialize")
async def test_beside_a_node_that_another_step_goes_to_the_step_follows_the_node():
    steps = ({"name": "first", "tool": "fail", "input": {"item": "x"}, "on_error": {"go_to": "ask"}},)
    flow = workflow(*steps, asks(pins=[FOUND]), THEN)
    async with await opened(flow, *LOOKS, *DOES_NOT) as crib:
        before = await run(crib)
        change = await crib.workflows.materialize("flow", run_id=before.run_id, pin="found", step="looked")
        await crib.workflows.publish("flow")
        after = await run(crib)

    assert step_of(change.definition).depends_on == ("ask",)
    assert after.output == before.output


@pytest.mark.requirement("workflow_agents.materialize")
@pytest.mark.parametrize("how", ["call_id", "position", "pin", "pin-beside", "workflow-run"])
async def test_the_call_is_named_in_any_way(how: str):
    answers = (turn(("look", "coat")), turn(("look", "hat")), "Both.")
    async with await opened(workflow(asks(pins=[FOUND]), THEN), *answers) as crib:
        instance = await run(crib)
        agent_run = instance.steps[0].agent_runs[0] or ""
        coat, hat = await calls_in(crib, agent_run)
        ways: dict[str, Any] = {
            "call_id": {"run_id": agent_run, "call_id": hat.call_id},
            "position": {"run_id": agent_run, "position": hat.position},
            "pin": {"run_id": agent_run, "pin": "found"},
            "pin-beside": {"run_id": agent_run, "call_id": coat.call_id, "pin": "found"},
            "workflow-run": {"run_id": instance.run_id, "node": "ask", "call_id": hat.call_id},
        }
        change = await crib.workflows.materialize("flow", step="looked", **ways[how])

    assert step_of(change.definition).input == {"item": "coat" if how == "pin-beside" else "hat"}
    assert change.rewired == ("/steps/1/output",)


@pytest.mark.requirement("workflow_agents.materialize")
async def test_a_call_that_fills_no_handle_becomes_a_step_that_nothing_reads_yet():
    answers = (turn(("look", "coat")), turn(("look", "hat")), "Both.")
    async with await opened(workflow(asks(pins=[FOUND]), THEN), *answers) as crib:
        change = await made(crib, await first_call(crib))

    assert (step_of(change.definition).input, change.rewired) == ({"item": "coat"}, ())


@pytest.mark.requirement("workflow_agents.materialize")
async def test_arguments_that_a_person_has_edited_are_those_of_the_step_and_a_write_warns():
    flow = workflow(asks(pins=[pin("paid", "pay")]), {"name": "then", "output": "${ask.handles.paid}"})
    async with await opened(flow, turn(("pay", "hat")), "Paid.") as crib:
        waiting = await run(crib)
        (asked,) = (await crib.approvals.page()).items
        await crib.approvals.decide(asked.approval_id, approve=True, edited_input={"item": "coat"})
        done = await crib.instances.resume(waiting.run_id)
        change = await crib.workflows.materialize("flow", run_id=done.run_id, pin="paid", step="looked")

    assert step_of(change.definition).input == {"item": "coat"}
    assert ["may still call it itself" in warning for warning in change.warnings] == [True]


@pytest.mark.requirement("workflow_agents.materialize")
@pytest.mark.parametrize("whose", ["agent", "step"])
async def test_the_step_acts_as_the_account_that_the_call_was_made_as(whose: str):
    clerk = agent(tools=("look",), pins=[pinned("found")], principal_ref="bot" if whose == "agent" else None)
    flow = workflow(asks(principal_ref="bot" if whose == "step" else None), THEN)
    async with Crib("memory://") as first:
        store = first.store
        await first.accounts.save(ServiceAccount(name="bot", grants=("ai://*",)))
        async with await opened(flow, *LOOKS, *DOES_NOT, clerk=clerk, store=store) as crib:
            change = await made(crib, await first_call(crib))
            await crib.workflows.publish("flow")
            after = await run(crib)

    assert step_of(change.definition).principal_ref == "bot"
    assert after.output == {"then": "Look: hat is here"}


@pytest.mark.requirement("workflow_agents.materialize")
async def test_a_call_of_a_run_that_took_the_agent_over_is_found_too():
    async with await opened(workflow(asks(pins=[FOUND]), THEN), *LOOKS) as crib:
        first = await run(crib)
        again = await crib.instances.rerun(first.run_id, "then")

        change = await crib.workflows.materialize("flow", run_id=again.run_id, pin="found", step="looked")

    assert change.run_id == first.steps[0].agent_runs[0]


@pytest.mark.requirement("workflow_agents.undo")
async def test_a_change_of_the_published_workflow_is_a_draft_that_one_call_takes_back():
    async with await opened(workflow(asks(pins=[FOUND]), THEN), *LOOKS) as crib:
        before = await crib.workflows.get("flow")
        await made(crib, await first_call(crib))
        during = await crib.workflows.get("flow")

        assert await crib.workflows.undo("flow") is None

        assert list(await crib.workflows.drafts()) == []
        assert (await crib.workflows.get("flow")).content_hash == before.content_hash
        assert during.content_hash == before.content_hash


@pytest.mark.requirement("workflow_agents.undo")
async def test_a_change_of_a_draft_is_taken_back_to_the_draft_as_it_was():
    flow = workflow(asks(pins=[FOUND]), THEN)
    async with await opened(flow, *LOOKS) as crib:
        call = await first_call(crib)
        mine = flow.model_copy(update={"description": "Mine."})
        before = await crib.workflows.draft(mine, note="For Ann.", authored_by="writer", tainted_by="mail at c1")
        change = await made(crib, call)
        changed = await crib.workflows.get_draft("flow")

        undone = await crib.workflows.undo("flow")

    assert (change.before_revision, change.draft_revision) == (before.revision, before.revision + 1)
    assert (changed.note, changed.authored_by) == (f"For Ann.\n{change.note}", "writer")
    assert changed.tainted_by == "mail at c1"
    assert undone is not None
    assert undone.definition.tool().content_hash() == before.definition.tool().content_hash()
    assert (undone.definition, undone.note) == (before.definition, before.note)


@pytest.mark.requirement("workflow_agents.undo")
async def test_a_change_that_was_published_is_reverted_to_the_same_content():
    async with await opened(workflow(asks(pins=[FOUND]), THEN), *LOOKS) as crib:
        before = await crib.workflows.get("flow")
        await made(crib, await first_call(crib))
        published = (await crib.workflows.publish("flow")).tool
        reverted = (await crib.workflows.revert("flow", before.revision)).tool

    assert published.content_hash != before.content_hash
    assert (reverted.content_hash, reverted.definition) == (before.content_hash, before.definition)


@pytest.mark.requirement("workflow_agents.materialize_refusals")
async def test_a_call_of_somebody_elses_run_is_no_material():
    stranger = Principal(id="eve", grants=("ai://workflows/*",))
    async with await opened(workflow(asks(pins=[FOUND]), THEN), *LOOKS) as crib:
        call = await first_call(crib)
        with pytest.raises(PermissionDenied, match="is another's"):
            await made(crib.acting_as(stranger), call)


@pytest.mark.requirement("workflow_agents.materialize")
async def test_arguments_of_any_shape_stay_what_they_are():
    odd: Json = {"${a}": [r"\\${b}", {"c": "${input.x}"}, 1.5, None, True], "plain": "x"}
    taken: list[Json] = []

    @tool(side_effects="reads")
    async def gather(what: dict[str, Any]) -> str:
        """Gathers."""
        taken.append(what)
        return "ok"

    asked = Message("assistant", (ToolCall("m1", "gather", json.dumps({"what": odd})),))
    async with Crib("memory://", models={MODEL: ScriptedModel([asked, "Done.", "Nothing."])}) as crib:
        crib.add(gather)
        await crib.save(agent(tools=("gather",)))
        await crib.workflows.publish(workflow(asks()))
        await made(crib, await first_call(crib))
        await crib.workflows.publish("flow")
        await run(crib)

    assert taken == [odd, odd]

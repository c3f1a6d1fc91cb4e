"""What expressions read of a step that asks an agent, whatever has become of it."""

from typing import Any

import orjson
import pytest

from tests.unit.executions.house import MODEL, Desk, agent, turn
from tests.unit.workflows.asking import LOOKS, asks, opened, pin, pinned, read, run, workflow
from toolcrib import Crib, ScriptedModel, tool
from toolcrib.contracts import JsonObject
from toolcrib.infrastructure.store import MemoryStore

STABLE = {"response", "output", "tools_by_id", "tool_order", "last_tool", "traces_url", "handles"}
TWO_CALLS = (turn(("look", "hat")), turn(("fail", "coat")), "A hat.")
WHOLE = {"name": "then", "output": "${ask}"}


async def seen(*steps: JsonObject, answers: Any = LOOKS, **options: Any) -> Any:
    """What the step `then` of a workflow has read of a step `ask`."""
    return await read(workflow(*steps, output="${then}"), *answers, **options)


@pytest.mark.requirement("workflow_agents.stable_outputs")
async def test_a_node_has_all_outputs_of_its_agent():
    found = await seen(asks(pins=[pin("paid", "pay")]), WHOLE, answers=TWO_CALLS, clerk=agent(pins=[pinned("found")]))

    assert set(found) == STABLE
    assert (found["response"], found["output"], found["traces_url"]) == ("A hat.", None, None)
    assert [found["tools_by_id"][call_id]["name"] for call_id in found["tool_order"]] == ["look", "fail"]
    assert set(found["tools_by_id"]) == set(found["tool_order"])
    assert found["last_tool"] == found["tools_by_id"][found["tool_order"][0]]
    assert found["last_tool"]["output"] == "hat is here"
    assert found["handles"] == {"found": "hat is here", "paid": None}


@pytest.mark.requirement("workflow_agents.stable_outputs")
async def test_a_structured_answer_is_the_output_beside_the_response():
    schema = {"type": "object", "properties": {"size": {"type": "integer"}}, "required": ["size"]}
    sizes = agent(tools=(), response_format="structured", response_schema=schema)
    then = {"name": "then", "output": ["${ask.output.size}", "${ask.tool_order}", "${ask.last_tool}"]}

    assert await seen(asks(), then, answers=['{"size": 3}'], clerk=sizes) == [3, [], None]


@pytest.mark.requirement("workflow_agents.stable_outputs")
async def test_a_handler_that_asks_an_agent_and_a_plain_tool_step_are_nodes_too():
    invoked = {"name": "ask", "handler_ref": "ai.invoke_agent", "input": {"agent_ref": "clerk", "prompt": "go"}}
    called = {"name": "ask", "tool": "clerk", "input": {"message": "go"}}

    for step in (invoked, called):
        assert set(await seen(step, WHOLE)) == STABLE


@pytest.mark.requirement("workflow_agents.stable_outputs")
async def test_a_node_that_was_left_out_has_all_outputs_and_they_are_empty():
    found = await seen(asks(condition="${1 > 2}", pins=[pin("found")]), WHOLE)

    assert set(found) == STABLE
    assert (found["response"], found["output"], found["tools_by_id"], found["handles"]) == (
        "",
        None,
        {},
        {"found": None},
    )


@pytest.mark.requirement("workflow_agents.stable_outputs")
async def test_a_node_that_failed_has_the_calls_that_its_agent_had_made():
    endless = agent(tools=("look",), limits={"max_iterations": 1}, pins=[pinned("paid", "pay", on_missing="error")])

    found = await seen(asks(on_error="continue"), WHOLE, clerk=endless, answers=(turn(("look", "hat")), "A hat."))

    assert set(found) >= STABLE
    assert [call["output"] for call in found["tools_by_id"].values()] == ["hat is here"]
    assert found["handles"] == {"paid": None}


@pytest.mark.requirement("workflow_agents.stable_outputs")
async def test_what_an_agentic_tool_puts_out_stands_beside_its_stable_outputs():
    step = {"name": "ask", "tool": "finder", "input": {"task": "find"}, "pins": [pin("found")]}
    async with Crib("memory://", models={MODEL: ScriptedModel(list(LOOKS))}) as crib:
        crib.add(*Desk().tools)
        crib.agentic_tool("finder", mode="agentic", model=MODEL, tools=["look"])
        await crib.workflows.publish(workflow(step, WHOLE, output="${then}"))
        found: Any = (await run(crib)).output

    assert found["summary"] == found["response"] == found["output"]["summary"] == "A hat."
    assert (found["handles"], len(found["tool_order"])) == ({"found": "hat is here"}, 1)


@pytest.mark.requirement("workflow_agents.stable_outputs")
async def test_what_an_agentic_tool_puts_out_that_has_no_members_stays_as_it_is():
    step = {"name": "ask", "tool": "finder", "input": {"task": "find"}}
    async with Crib("memory://", models={MODEL: ScriptedModel(list(LOOKS))}) as crib:
        crib.add(*Desk().tools)
        finder = crib.agentic_tool("finder", mode="agentic", model=MODEL, tools=["look"])
        await crib.save(finder.definition.model_copy(update={"select": "$.summary", "output_schema": None}))
        await crib.workflows.publish(workflow(step, WHOLE, output="${then}"))

        assert (await run(crib)).output == "A hat."


@pytest.mark.requirement("workflow_agents.stable_outputs")
async def test_the_output_that_a_node_makes_of_its_own_reads_all_of_them():
    made = {"words": "${output.response}", "found": "${output.handles.found}", "calls": "${output.tool_order.length}"}

    found = await seen(asks(pins=[pin("found")], output=made), WHOLE)

    assert found == {"words": "A hat.", "found": "hat is here", "calls": 1}


@pytest.mark.requirement("workflow_agents.lasting", "workflow_agents.stable_outputs")
async def test_a_fan_out_has_the_outputs_of_every_element():
    each = {"items": "${input.names}", "max_concurrency": 1, "on_item_error": "continue"}
    strict = agent(tools=("look",), pins=[pinned("found", on_missing="error")])
    definition = workflow(
        asks(for_each=each),
        {"name": "then", "output": ["${ask[*].handles.found}", "${ask[*].response}", "${ask[2].tool_order.length}"]},
        input_schema={"type": "object", "properties": {"names": {"type": "array"}}},
        output="${then}",
    )
    answers = (*LOOKS, "Nothing.", turn(("look", "coat")), "A coat.")
    async with await opened(definition, *answers, clerk=strict) as crib:
        instance = await run(crib, input={"names": ["a", "b", "c"]})

    assert instance.output == [["hat is here", None, "coat is here"], ["A hat.", "Nothing.", "A coat."], 1]
    assert [each is not None for each in instance.steps[0].agent_runs] == [True, True, True]


@pytest.mark.requirement("workflow_agents.not_copied")
async def test_the_journal_of_the_workflow_has_nothing_of_the_calls_but_the_run_that_made_them():
    definition = workflow(asks(pins=[pin("found")]), {"name": "then", "output": "${ask.handles.found.length}"})
    async with await opened(definition, *LOOKS) as crib:
        instance = await run(crib)
        log = await crib.store.journal.events(instance.run_id)

    assert instance.output == {"then": len("hat is here")}
    assert b"hat is here" not in orjson.dumps([entry.model_dump(mode="json") for entry in log])
    assert instance.steps[0].agent_runs == instance.steps[0].child_run_ids


class Watched(MemoryStore):
    """A store that knows whose events were read."""

    def __init__(self) -> None:
        super().__init__()
        self.read: list[str] = []
        events = self.journal.events

        async def watched(run_id: str, *, after: int = 0, limit: int | None = None) -> Any:
            self.read.append(run_id)
            return await events(run_id, after=after, limit=limit)

        self.journal.events = watched


@pytest.mark.requirement("workflow_agents.not_copied")
@pytest.mark.parametrize(
    ("source", "is_read"),
    [("${ask.response}", False), ("${ask.output}", False), ("${ask.tool_order}", True), ("${ask[input.key]}", True)],
)
async def test_the_journal_of_an_agent_is_read_only_if_an_expression_asks_for_its_calls(source: str, is_read: bool):
    store = Watched()
    schema = {"type": "object", "properties": {"key": {"type": "string"}}}
    definition = workflow(asks(), {"name": "then", "output": source}, input_schema=schema)
    async with await opened(definition, *LOOKS, store=store) as crib:
        waited = await crib.instances.start("flow", {"key": "tool_order"})
        during = list(store.read)

    (agent_run,) = waited.steps[0].agent_runs
    assert (agent_run in during) is is_read


@pytest.mark.requirement("workflow_agents.lasting")
async def test_a_node_has_the_same_outputs_after_a_wait_in_another_process_in_a_replay_and_in_runs_that_take_it_over():
    store = MemoryStore()
    definition = workflow(
        asks(pins=[pin("found"), pin("paid", "pay", on_missing="stale_last_success")]),
        {"name": "wait", "approval": {"message": "Go on?"}, "depends_on": ["ask"]},
        {"name": "then", "output": ["${ask.handles}", "${ask.tools_by_id}"], "depends_on": ["wait"]},
    )
    first = await opened(definition, *LOOKS, store=store)
    waiting = await run(first)
    (asked,) = (await first.approvals.page()).items
    await first.approvals.decide(asked.approval_id, approve=True)
    silent = Crib(store, models={MODEL: ScriptedModel([])})

    resumed = await silent.instances.resume(waiting.run_id)
    again = await silent.instances.rerun(resumed.run_id, "then")
    once_more = await silent.instances.rerun(again.run_id, "then")

    assert waiting.status == "awaiting_approval"
    outputs: Any = resumed.output
    assert outputs["then"][0] == {"found": "hat is here", "paid": None}
    assert [call["name"] for call in outputs["then"][1].values()] == ["look"]
    assert resumed.output == again.output == once_more.output
    assert once_more.steps[0].agent_runs == resumed.steps[0].agent_runs
    assert [(await silent.replay(one.run_id)).same for one in (resumed, again, once_more)] == [True] * 3


@pytest.mark.requirement("workflow_agents.lasting")
async def test_an_agent_is_not_asked_again_if_a_later_step_has_failed_and_its_calls_are_still_there():
    broken = [True]

    @tool(side_effects="reads", name="fail")
    async def fails_once(item: str) -> str:
        """Fails the first time."""
        if broken.pop() if broken else False:
            raise RuntimeError(item)
        return f"sent {item}"

    definition = workflow(
        asks(pins=[pin("found")]),
        {"name": "then", "tool": "fail", "input": {"item": "${ask.handles.found}"}},
        output=["${then}", "${ask.tool_order.length}"],
    )
    async with await opened(definition, *LOOKS) as crib:
        crib.add(fails_once)
        await crib.workflows.publish(definition.model_copy(update={"version": "1.1.0"}))
        failed = await run(crib)
        resumed = await crib.instances.resume(failed.run_id)
        replayed = await crib.replay(resumed.run_id)

    assert (failed.status, resumed.status, replayed.same) == ("failed", "completed", True)
    assert resumed.output == ["sent hat is here", 1]
    assert resumed.steps[0].agent_runs == failed.steps[0].agent_runs

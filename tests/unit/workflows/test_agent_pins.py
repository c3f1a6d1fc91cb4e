"""Pins of a step that asks an agent: what fills them, what if nothing does, and that nothing takes them away."""

from typing import Any

import pytest

from tests.unit.executions.house import agent, open_crib, turn
from tests.unit.workflows.asking import DOES_NOT, LOOKS, asks, opened, pin, pinned, read, run, workflow
from toolcrib import Crib, tool
from toolcrib.contracts import InvalidDefinition, JsonObject, Principal, RunFinished
from toolcrib.contracts.workflows import WorkflowDefinition

HANDLES = {"name": "then", "output": "${ask.handles}"}


def holding(*pins: JsonObject, **fields: Any) -> WorkflowDefinition:
    """A workflow that asks an agent and puts out what the pins hold."""
    return workflow(asks(pins=pins, **fields), HANDLES, output="${then}")


@pytest.mark.requirement("workflow_agents.pins")
async def test_the_pins_of_a_step_stand_beside_those_of_its_agent_and_before_those_of_the_same_name():
    clerk = agent(pins=[pinned("first"), pinned("both", "pay")])
    answers = (turn(("look", "hat")), turn(("look", "coat")), "Both.")
    own = holding(pin("first", strategy="first_success"), pin("last"), pin("both"))

    assert await read(own, *answers, clerk=clerk) == {
        "first": "hat is here",
        "last": "coat is here",
        "both": "coat is here",
    }


@pytest.mark.requirement("workflow_agents.pins")
async def test_a_pin_can_name_one_call_by_its_id():
    async with await opened(holding(pin("any")), *LOOKS, *LOOKS) as crib:
        found: Any = await crib.store.journal.events((await run(crib)).steps[0].agent_runs[0] or "")
        call_id = next(entry.event.envelope.call_id for entry in found if entry.event.type == "call_finished")
        named = (pin("it", strategy="by_call_id", call_id=call_id), pin("none", strategy="by_call_id", call_id="ffff"))
        await crib.workflows.publish(holding(*named))

        assert (await run(crib)).output == {"it": "hat is here", "none": None}


@pytest.mark.requirement("workflow_agents.pins")
async def test_a_handle_that_must_not_be_empty_fails_the_step():
    async with await opened(holding(pin("found"), pin("paid", "pay", on_missing="error")), *LOOKS) as crib:
        instance = await run(crib)

    ask, then = instance.steps
    assert (instance.status, ask.status, then.status) == ("failed", "failed", "cut_off")
    assert ask.error is not None
    assert (ask.error.code, ask.error.reason) == ("VALIDATION_ERROR", "handle_missing")
    assert "'paid' has no call of 'pay'" in ask.error.message
    assert ask.child_run_ids == ask.agent_runs


@pytest.mark.requirement("workflow_agents.pins")
async def test_a_handle_that_must_not_be_empty_and_is_not_fails_nothing():
    assert await read(holding(pin("found", on_missing="error")), *LOOKS) == {"found": "hat is here"}


@pytest.mark.requirement("workflow_agents.pins")
async def test_what_a_step_does_on_an_error_it_does_if_a_handle_is_missing():
    missing = pin("paid", "pay", on_missing="error")
    help_ = {"name": "help", "output": "${error.details.handles}"}
    goes = workflow(asks(pins=[missing], on_error={"go_to": "help"}), help_, output="${help}")

    assert await read(goes, *LOOKS) == ["paid"]
    assert await read(holding(pin("found"), missing, on_error="continue"), *LOOKS) == {
        "found": "hat is here",
        "paid": None,
    }


@pytest.mark.requirement("workflow_agents.pins")
async def test_pins_that_cannot_be_told_apart_are_not_published():
    async with await open_crib() as crib:
        with pytest.raises(InvalidDefinition, match="two pinned handles of the name 'found'"):
            await crib.workflows.publish(holding(pin("found"), pin("found", "pay")))


KEPT = pin("found", on_missing="stale_last_success")


@pytest.mark.requirement("workflow_agents.stale")
async def test_a_handle_keeps_what_the_last_successful_run_of_the_step_had():
    answers = (turn(("look", "coat")), "A coat.", *LOOKS, *DOES_NOT, turn(("fail", "x")), "No.")
    async with await opened(holding(KEPT), *answers) as crib:
        held = [(await run(crib)).output for _ in range(4)]

    assert held == [{"found": "coat is here"}, *[{"found": "hat is here"}] * 3]


@pytest.mark.requirement("workflow_agents.stale")
async def test_two_steps_that_ask_the_same_agent_do_not_mix():
    two = workflow(
        asks("ask", pins=[KEPT]),
        asks("other", pins=[KEPT], depends_on=["ask"]),
        {"name": "then", "output": ["${ask.handles.found}", "${other.handles.found}"]},
        output="${then}",
    )
    answers = (*LOOKS, *DOES_NOT, *DOES_NOT, turn(("look", "coat")), "A coat.", *DOES_NOT, *DOES_NOT)
    async with await opened(two, *answers) as crib:
        held = [(await run(crib)).output for _ in range(3)]

    assert held == [["hat is here", None], ["hat is here", "coat is here"], ["hat is here", "coat is here"]]


@pytest.mark.requirement("workflow_agents.stale")
async def test_nothing_is_kept_from_another_workflow_or_from_outside_of_one():
    async with await opened(holding(KEPT), *LOOKS, *LOOKS, *DOES_NOT) as crib:
        await crib.workflows.publish(holding(KEPT).model_copy(update={"name": "other"}))
        await run(crib, "other")
        await crib.invoke("clerk", {"message": "go"})

        assert (await run(crib)).output == {"found": None}


@pytest.mark.requirement("workflow_agents.stale")
@pytest.mark.parametrize("who", [Principal(id="ann"), Principal(id="owner", realm="elsewhere")], ids=["name", "realm"])
async def test_nothing_is_kept_from_another_principal_or_realm(who: Principal):
    who = who.model_copy(update={"grants": ("ai://*",)})
    async with await opened(holding(KEPT), *LOOKS, *DOES_NOT) as crib:
        assert (await run(crib)).output == {"found": "hat is here"}
        if who.realm == "elsewhere":
            await crib.acting_as(who).save(agent(tools=[]))
            await crib.acting_as(who).workflows.publish(holding(KEPT))

        assert (await run(crib.acting_as(who))).output == {"found": None}


@pytest.mark.requirement("workflow_agents.stale")
async def test_the_elements_of_a_list_look_back_at_earlier_runs_and_not_at_each_other():
    each = {"items": "${input.names}", "max_concurrency": 1}
    flow = workflow(
        asks(pins=[KEPT], for_each=each),
        {"name": "then", "output": "${ask[*].handles.found}"},
        input_schema={"type": "object", "properties": {"names": {"type": "array"}}},
        output="${then}",
    )
    answers = (*LOOKS, *DOES_NOT, *DOES_NOT, *DOES_NOT)
    async with await opened(flow, *answers) as crib:
        held = [(await run(crib, input={"names": ["a", "b"]})).output for _ in range(2)]

    assert held == [["hat is here", None], ["hat is here", "hat is here"]]


@pytest.mark.requirement("workflow_agents.stale")
async def test_what_a_step_has_kept_once_does_not_change_while_its_run_waits():
    waits = {"name": "wait", "approval": {"message": "Go on?"}, "depends_on": ["ask"]}
    late = {**HANDLES, "depends_on": ["wait"]}
    flow = workflow(asks(pins=[KEPT]), waits, late, output="${then}")
    async with await opened(flow, *DOES_NOT, *LOOKS) as crib:
        waiting = await run(crib)
        await run(crib)
        asked = (await crib.approvals.page(run_id=waiting.run_id)).items[0]
        await crib.approvals.decide(asked.approval_id, approve=True)

        resumed = await crib.instances.resume(waiting.run_id)
        again = await crib.instances.rerun(resumed.run_id, "then")

    assert (resumed.output, again.output) == ({"found": None}, {"found": None})


@pytest.mark.requirement("workflow_agents.stale")
async def test_a_step_that_was_left_out_keeps_its_handle_too():
    schema = {"type": "object", "properties": {"skip": {"type": "boolean"}}}
    flow = workflow(
        asks(pins=[KEPT], condition="${!input.skip}"),
        {**HANDLES, "join": "always"},
        input_schema=schema,
        output="${then}",
    )
    async with await opened(flow, *LOOKS) as crib:
        held = [(await run(crib, input={"skip": skip})).output for skip in (False, True)]

    assert held == [{"found": "hat is here"}] * 2


@pytest.mark.requirement("workflow_agents.never_breaks")
@pytest.mark.parametrize("how", ["disabled", "blocked", "removed", "excluded", "never-there"])
async def test_a_handle_of_a_step_stays_whatever_becomes_of_its_tool(how: str):
    tool = "ghost" if how == "never-there" else "look"
    async with await opened(holding(pin("found", tool)), *LOOKS, *DOES_NOT) as crib:
        before = await crib.workflows.graph("flow")
        await take_out(crib, how)
        after = await crib.workflows.graph("flow")
        instance = await run(crib)

    assert (instance.status, instance.output) == ("completed", {"found": None})
    assert before.nodes[0].handles == (
        *("response", "tools_by_id", "tool_order", "last_tool", "traces_url", "output"),
        "handles.found",
    )
    assert [node.handles for node in after.nodes] == [node.handles for node in before.nodes]
    assert [(edge.source, edge.target, edge.reference) for edge in after.edges] == [
        (edge.source, edge.target, edge.reference) for edge in before.edges
    ]


async def take_out(crib: Crib, how: str) -> None:
    """Let `look` be there no more."""
    look = crib.registry.require("default", "look").definition
    match how:
        case "disabled":
            await crib.save(look.model_copy(update={"enabled": False}))
        case "blocked":
            await crib.lifecycle.block("look", message="broken")
        case "removed":
            await crib.registry.remove("default", "look")
        case "excluded":
            await crib.save(agent(tools=("look", "pay"), excluded_tools=("look",)))
            await crib.workflows.publish(holding(pin("found")))  # else its runs go on with the agent as it was
        case _:
            pass


@pytest.mark.requirement("workflow_agents.never_breaks")
async def test_a_handle_that_an_expression_reads_is_there_also_if_the_agent_itself_is_gone():
    steps = (asks(on_error="continue", pins=[pin("own")]), {"name": "then", "output": "${ask.handles.found}"})
    flow = workflow(*steps, output=["${then}", "${ask.handles.own}", "${ask.response}"])
    async with await opened(flow, clerk=agent(pins=[pinned("found")])) as crib:
        await crib.lifecycle.block("clerk", message="gone")
        instance = await run(crib)

    assert (instance.status, instance.output) == ("completed", [None, None, ""])


@pytest.mark.requirement("workflow_agents.never_breaks")
async def test_an_agent_that_is_deprecated_is_told_when_its_workflow_is_published():
    async with await opened(holding(pin("found")), *LOOKS) as crib:
        await crib.lifecycle.deprecate("clerk", message="Old.")
        published = await crib.workflows.publish(holding(pin("found")).model_copy(update={"version": "1.1.0"}))
        instance = await run(crib)

    assert any("clerk" in problem.message and not problem.is_error for problem in published.problems)
    assert any("clerk" in warning for warning in instance.warnings)


@pytest.mark.requirement("workflow_agents.stale")
async def test_a_run_that_keeps_what_outsiders_can_write_has_read_it():
    @tool(side_effects="reads", untrusted=True)
    async def look(item: str) -> str:
        """Looks into the mail."""
        return f"mail of {item}"

    async with await opened(holding(KEPT), *LOOKS, *DOES_NOT) as crib:
        crib.add(look)
        await crib.workflows.publish(holding(KEPT).model_copy(update={"version": "1.1.0"}))
        runs = [await run(crib) for _ in range(2)]
        ends = [(await crib.store.journal.events(one.run_id))[-1].event for one in runs]

    assert [one.output for one in runs] == [{"found": "mail of hat"}] * 2
    assert [isinstance(end, RunFinished) and end.tainted for end in ends] == [True, True]


@pytest.mark.requirement("workflow_agents.never_breaks")
async def test_a_draft_shows_the_handles_of_its_nodes_too_whether_their_agents_are_there_or_not():
    async with await open_crib(definition=agent(pins=[pinned("own")])) as crib:
        steps = (asks(pins=[pin("mine")]), {"name": "ghost", "agent": "nobody", "pins": [pin("left")]}, HANDLES)
        shown = await crib.workflows.check(workflow(*steps))

    assert [node.handles[6:] for node in shown.nodes] == [("handles.own", "handles.mine"), ("handles.left",), ()]

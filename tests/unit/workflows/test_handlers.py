"""The vocabulary in a run: names of tools and of conditions, mappings, and an agent that is asked as 004 writes it."""

from typing import Any

import pytest

from tests.unit.workflows.flows import error_of, run, steps_of
from toolcrib import Crib, tool
from toolcrib.contracts import AgentDefinition, JsonObject, LLMConfig, Reason
from toolcrib.contracts.workflows import ConditionBinding, StepRegistration, WorkflowStep
from toolcrib.llm import ScriptedModel

pytestmark = pytest.mark.requirement("workflow_steps.vocabulary")

EVALUATE: JsonObject = {
    "name": "evaluate_exception",
    "handlerRef": "quantum.ai.invokeAgent",
    "input": {
        "agentRef": "exception-handling-agent",
        "prompt": "Order ${orderId} failed validation: ${validationErrors}. Determine resolution.",
        "context": {
            "orderId": "${input.orderId}",
            "validationErrors": "${validate.errors}",
        },
    },
    "dependsOn": ["validate_orders"],
    "condition": "${validate.errors.length > 0}",
}
"""The example of 004, as it stands there."""

VALIDATE: JsonObject = {
    "name": "validate_orders",
    "save_as": "validate",
    "tool": "validate",
    "input": {"order": "${input.orderId}"},
}


@tool(side_effects="reads")
async def validate(order: str, strict: bool = False) -> JsonObject:
    """What is wrong with an order."""
    return {"errors": ["no stock", "no address"] if order == "A7" else [], "strict": strict}


async def example(order: str, step: JsonObject = EVALUATE) -> tuple[Any, list[str]]:
    asked: list[str] = []

    def answer(request: Any) -> str:
        asked.append(request.messages[-1].text)
        return "Wait for stock."

    agent = AgentDefinition(
        name="exception-handling-agent", llm=LLMConfig(model="scripted:m"), system_prompt="Resolve exceptions."
    )
    async with Crib("memory://", models={"scripted:m": ScriptedModel(answer)}) as crib:
        crib.add(validate)
        await crib.save(agent.tool())
        return await run(crib, VALIDATE, step, given={"orderId": order}), asked


async def test_the_example_of_the_specification_runs_word_for_word():
    instance, asked = await example("A7")

    assert instance.status == "completed"
    assert len(asked) == 1
    assert 'Order A7 failed validation: ["no stock","no address"]. Determine resolution.' in asked[0]
    assert steps_of(instance)["evaluate_exception"].output["response"] == "Wait for stock."


async def test_it_asks_nobody_when_there_is_no_exception():
    instance, asked = await example("A8")

    assert asked == []
    step = steps_of(instance)["evaluate_exception"]
    assert (step.status, step.reason) == ("skipped", "its condition does not hold: ${validate.errors.length > 0}")


async def test_its_names_are_ours_too():
    ours = {
        "name": "evaluate_exception",
        "handler_ref": "ai.invoke_agent",
        "input": {"agent_ref": "exception-handling-agent", "prompt": "Order ${orderId}", "context": {"orderId": 1}},
        "depends_on": ["validate_orders"],
    }
    instance, asked = await example("A7", ours)

    assert instance.status == "completed"
    assert "Order 1" in asked[0]
    assert WorkflowStep.model_validate(EVALUATE).depends_on == ("validate_orders",)


async def test_a_prompt_without_a_context_reads_what_the_step_reads():
    plain = {**EVALUATE, "input": {"agentRef": "exception-handling-agent", "prompt": "Order ${input.orderId}"}}
    _, asked = await example("A7", plain)

    assert asked == ["Order A7"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"prompt": "?"}, "has the handler 'quantum.ai.invokeAgent' and names no agent; give input/agent_ref"),
        (
            {"agentRef": "exception-handling-agent", "prompt": "?", "context": "${input.orderId}"},
            "cannot use its input/context: it must be an object, and is string; give it names",
        ),
    ],
)
@pytest.mark.requirement("workflow_steps.messages")
async def test_an_agent_that_cannot_be_asked_fails_the_step(given: JsonObject, message: str):
    instance, asked = await example("A7", {**EVALUATE, "input": given})

    assert asked == []
    assert f"step 'evaluate_exception' {message}" in error_of(instance, "evaluate_exception").message


# Registrations --------------------------------------------------------------------------------------------------------

CHECK = StepRegistration(
    name="orders.check",
    tool="validate",
    input_mapping={"order": "${input.order}", "strict": True},
    output_mapping={"found": "${output.errors.length}", "strict": "${output.strict}"},
)


async def checked(step: JsonObject, registered: StepRegistration | None = CHECK) -> Any:
    handlers = {} if registered is None else {registered.name: registered}
    async with Crib("memory://") as crib:
        crib.add(validate)
        step = {"name": "check", "handler_ref": "orders.check", **step}
        return await run(crib, step, given={"order": "A7"}, handlers=handlers)


async def test_a_handler_gives_what_the_step_does_not():
    assert (await checked({})).output == {"check": {"found": 2, "strict": True}}


async def test_what_the_step_gives_goes_before():
    step = {"input": {"order": "A8", "strict": False}, "output": "${output.errors}"}

    assert (await checked(step)).output == {"check": []}


async def test_a_handler_without_mappings_is_a_name_of_a_tool():
    bare = StepRegistration(name="orders.check", tool="validate")
    instance = await checked({"input": {"order": "A8"}}, bare)

    assert instance.output == {"check": {"errors": [], "strict": False}}


async def test_a_handler_that_is_disabled_or_not_there_fails_the_step():
    disabled = await checked({}, CHECK.model_copy(update={"enabled": False}))
    gone = await checked({}, None)

    assert error_of(disabled, "check").reason is Reason.TOOL_DISABLED
    assert "step 'check' names the handler 'orders.check', which is disabled" in error_of(disabled, "check").message
    assert error_of(gone, "check").reason is Reason.NOT_FOUND
    assert "which the workflow was not published with; publish it again" in error_of(gone, "check").message


# Conditions -----------------------------------------------------------------------------------------------------------

LARGE = ConditionBinding(name="orders.large", parameters=("total",), expression="${total > 100}")


async def asked_for(use: JsonObject, bound: ConditionBinding | None = LARGE) -> Any:
    conditions = {} if bound is None else {bound.name: bound}
    async with Crib("memory://") as crib:
        step = {"name": "step", "output": "large", "condition": {"ref": "orders.large", **use}}
        return await run(crib, step, given={"total": 120, "less": 20}, conditions=conditions)


async def test_a_condition_holds_for_what_it_is_given():
    large = await asked_for({"input": {"total": "${input.total}"}})
    small = await asked_for({"input": {"total": "${input.less}"}})

    assert large.output == {"step": "large"}
    assert steps_of(small)["step"].reason == "its condition does not hold: orders.large"


@pytest.mark.parametrize("use", [{"input": {"total": "${input.gone}"}}, {"input": {}}], ids=["given", "not given"])
async def test_a_condition_without_a_value_fails_the_step(use: JsonObject):
    instance = await asked_for(use)

    assert "step 'step' has no value for its condition 'orders.large': " in error_of(instance, "step").message


async def test_a_condition_that_is_disabled_or_not_there_fails_the_step():
    use = {"input": {"total": "${input.total}"}}
    disabled = await asked_for(use, LARGE.model_copy(update={"enabled": False}))
    gone = await asked_for(use, None)

    assert "step 'step' names the condition 'orders.large', which is disabled" in error_of(disabled, "step").message
    assert "which the workflow was not published with" in error_of(gone, "step").message

"""What a step is, what it names, and the arguments that it gives."""

from typing import Any

import pytest

from tests.unit.workflows.checked import described, house, problems, told
from toolcrib.contracts import JsonObject, ServiceAccount
from toolcrib.contracts.workflows import ConditionBinding, StepRegistration
from toolcrib.kinds.composite.shape import CompositeImplementation, CompositeRoute

SAY = {"tool": "say", "input": {"text": "x"}}


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ({}, "/steps/0: step 's' does nothing; give it one of"),
        ({**SAY, "wait": {"seconds": 1}}, "/steps/0: step 's' has tool and wait, but a step does only one thing"),
        ({"wait": {}}, "/steps/0/wait: a wait with nothing has no single end"),
        ({"wait": {"seconds": 1, "signal": "go"}}, "/steps/0/wait: a wait with seconds and signal has no single end"),
        ({"wait": {"seconds": "soon"}}, "/steps/0/wait/seconds: seconds is the text 'soon'; write a number"),
        ({"wait": {"seconds": -1}}, "/steps/0/wait/seconds: seconds is -1, and must be from 0 to"),
        ({"wait": {"until": "tomorrow"}}, "/steps/0/wait/until: until is 'tomorrow', which is not a time"),
        (
            {"wait": {"until": "2026-01-31T12:00:00"}},
            "/steps/0/wait/until: until is '2026-01-31T12:00:00', which",
        ),
        ({"wait": {"seconds": 1, "timeout_s": 2}}, "/steps/0/wait/timeout_s: timeout_s applies to a signal"),
        ({"wait": {"signal": "go"}, "for_each": "${input.xs}"}, "/steps/0/for_each: every element would wait for"),
        ({"output": 1, "retry": {"count": 2}}, "/steps/0/retry: retry has no effect in a step without a call"),
        ({"output": 1, "timeout_s": 2}, "/steps/0/timeout_s: timeout_s has no effect"),
        ({"wait": {"seconds": 1}, "input": {"a": 1}}, "/steps/0/input: input has no effect"),
        ({"approval": {"message": "?"}, "principal_ref": "bot"}, "/steps/0/principal_ref: principal_ref has no effect"),
        ({**SAY, "pins": [{"name": "p", "selector": {"tool": "say"}}]}, "/steps/0/pins: pins name calls of a model"),
        ({**SAY, "join": "any"}, "warning /steps/0/join: join is 'any', and the step depends on no other step"),
    ],
)
@pytest.mark.requirement("workflow_checks.one_thing")
async def test_a_step_that_is_no_one_thing_or_says_what_does_nothing_is_told(step: JsonObject, said: str):
    found = await told({"name": "s", **step})

    assert any(line.startswith(said) for line in found), found


@pytest.mark.parametrize(
    "step",
    [
        {"wait": {"seconds": "${input.s}"}},
        {"wait": {"until": "2026-01-31T12:00:00Z"}},
        {"wait": {"signal": "go", "timeout_s": 5}},
        {"approval": {"message": "Well?", "show": {"a": 1}}, "for_each": "${input.xs}"},
        {"output": "${item}", "for_each": "${input.xs}"},
        {"agent": "desk", "input": {"message": "?"}, "pins": [{"name": "p", "selector": {"tool": "say"}}]},
    ],
)
@pytest.mark.requirement("workflow_checks.one_thing")
async def test_a_step_that_is_one_thing_is_fine(step: JsonObject):
    assert await told({"name": "s", **step}) == []


@pytest.mark.requirement("workflow_checks.one_thing")
async def test_pins_that_cannot_be_told_apart_are_told():
    pin = {"name": "p", "selector": {"tool": "say"}}

    (line,) = await told({"name": "s", "agent": "desk", "input": {"message": "?"}, "pins": [pin, pin]})

    assert line.startswith("/steps/0/pins: agent 's' has two pinned handles of the name 'p'")


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ({"tool": "sya"}, "/steps/0/tool: no tool 'sya' in realm 'default'; did you mean 'say'?"),
        ({"tool": "say@2.0.0"}, "/steps/0/tool: no tool 'say@2.0.0' in realm 'default'; available: say@1.0.0"),
        ({"tool": "s*"}, "/steps/0/tool: 's*' can match several tools, and a step calls one; name it"),
        ({"agent": "sya"}, "/steps/0/agent: no agent 'sya' in realm 'default'; available: desk"),
        ({"agent": "desk@2.0.0"}, "/steps/0/agent: no tool 'desk@2.0.0' in realm 'default'; available: desk@1.0.0"),
        ({"workflow": "sya"}, "/steps/0/workflow: no workflow 'sya' in realm 'default'; there is none"),
        ({"agent": "say"}, "/steps/0/agent: 'say' is of kind 'python', not agent"),
        ({"workflow": "say"}, "/steps/0/workflow: 'say' is of kind 'python', not workflow"),
        ({"handler_ref": "orders.x"}, "/steps/0/handler_ref: there is no workflow step 'orders.x'"),
        (
            {"handler_ref": "ai.invoke_agnt"},
            "/steps/0/handler_ref: there is no workflow step 'ai.invoke_agnt'; did",
        ),
        ({**SAY, "condition": {"ref": "big"}}, "/steps/0/condition/ref: there is no condition 'big'"),
        ({**SAY, "principal_ref": "bot"}, "/steps/0/principal_ref: there is no service account 'bot'"),
    ],
)
@pytest.mark.requirement("workflow_checks.callees")
async def test_what_a_step_names_and_there_is_not_is_told_with_what_there_is(step: JsonObject, said: str):
    found = await told({"name": "s", **step})

    assert any(line.startswith(said) for line in found), found


@pytest.mark.requirement("workflow_checks.callees")
async def test_a_tool_that_no_step_may_use_is_told():
    async with house() as crib:
        crib.add(
            described("quiet", {}, available_as=("tool",)),
            described("off", {}, enabled=False),
            described("gone", {}),
            described("old", {}),
        )
        await crib.lifecycle.block("gone", message="Leaked.", replacement="say")
        await crib.lifecycle.deprecate("old", replacement="say")

        found = await told(*({"name": name, "tool": name} for name in ("quiet", "off", "gone", "old")), crib=crib)

    assert found == [
        (
            "/steps/0/tool: tool 'quiet' is not available as a workflow's step; "
            "add 'workflow_step' to its available_as, or name another one"
        ),
        "/steps/1/tool: tool 'off@1.0.0' is disabled or a draft; enable it, or name another one",
        "/steps/2/tool: tool 'gone@1.0.0' is blocked: Leaked.; use 'say' instead",
        "warning /steps/3/tool: tool 'old@1.0.0' is deprecated; use 'say' instead",
    ]


@pytest.mark.requirement("workflow_checks.callees")
async def test_words_of_the_vocabulary_that_are_disabled_are_told():
    async with house() as crib:
        await crib.steps.save(StepRegistration(name="talk", tool="say", enabled=False))
        await crib.conditions.save(
            ConditionBinding(name="big", parameters=("n",), expression="${n > 3}", enabled=False)
        )
        await crib.accounts.save(ServiceAccount(name="bot", enabled=False))
        step = {"name": "s", "handler_ref": "talk", "condition": {"ref": "big", "input": {"n": 1}}}

        found = await told({**step, "input": {"text": "x"}, "principal_ref": "bot"}, crib=crib)

    assert found == [
        "/steps/0/handler_ref: workflow step 'talk' is disabled; enable it, or name its tool",
        "/steps/0/condition/ref: condition 'big' is disabled; enable it, or write its expression",
        "/steps/0/principal_ref: service account 'bot' is disabled; enable it, or leave principal_ref out",
    ]


@pytest.mark.requirement("workflow_checks.arguments")
async def test_arguments_that_are_missing_or_unknown_are_told_where_they_stand():
    assert await told({"name": "s", "tool": "say", "input": {"txt": "x"}}) == [
        "/steps/0/input/txt: 'say' does not take 'txt'; it takes text",
        "/steps/0/input: 'say' needs 'text', which is not given; add it",
    ]


@pytest.mark.requirement("workflow_checks.arguments")
async def test_the_parameters_of_a_condition_are_held_against_what_is_given():
    async with house() as crib:
        await crib.conditions.save(ConditionBinding(name="big", parameters=("n",), expression="${n > 3}"))

        found = await told({"name": "s", **SAY, "condition": {"ref": "big", "input": {"m": 1}}}, crib=crib)

    assert found == [
        "/steps/0/condition/input: condition 'big' reads 'n', which is not given; add it",
        "/steps/0/condition/input/m: condition 'big' does not read 'm'; available: n",
    ]


@pytest.mark.requirement("workflow_checks.arguments", "workflow_checks.vocabulary")
async def test_a_registration_gives_what_a_step_does_not():
    async with house() as crib:
        await crib.steps.save(
            StepRegistration(name="talk", tool="say", input_mapping={"text": "${input.x}"}, output_mapping={"a": 1})
        )
        steps = [{"name": "s", "handler_ref": "talk"}, {"name": "t", "output": "${s.b}"}]

        found = await told(*steps, crib=crib)

    assert found == ["/steps/1/output: ${s.b} reads 'b', which its source does not have; available: a"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"agent_ref": "${input.who}", "prompt": "?"}, "/steps/0/input/agent_ref: agent_ref must name an agent by its"),
        ({"prompt": "?"}, "/steps/0/input/agent_ref: agent_ref must name an agent"),
        ({"agentRef": "desk"}, "/steps/0/input: the agent is asked nothing"),
        ({"agentRef": "dsk", "prompt": "?"}, "/steps/0/input/agentRef: no agent 'dsk'"),
        ({"agentRef": "say", "prompt": "?"}, "/steps/0/input/agentRef: 'say' is of kind 'python', not agent"),
        ({"agentRef": "desk", "prompt": "?", "ctx": {}}, "/steps/0/input/ctx: a step that asks an agent does not take"),
    ],
)
@pytest.mark.requirement("workflow_checks.callees")
async def test_a_step_that_asks_an_agent_names_it_and_asks_something(given: JsonObject, said: str):
    found = await told({"name": "s", "handler_ref": "ai.invoke_agent", "input": given})

    assert any(line.startswith(said) for line in found), found


@pytest.mark.requirement("workflow_checks.output")
async def test_a_workflow_that_says_that_it_does_less_than_its_steps_is_told():
    assert await told({"name": "s", "tool": "pay", "input": {"amount": 1}}, side_effects="reads") == [
        "/side_effects: side_effects is 'reads', and 'pay' in step 's' writes; say 'writes', or leave it out",
    ]


@pytest.mark.requirement("workflow_checks.documents", "workflow_checks.all_at_once")
async def test_a_document_that_is_no_definition_is_told_field_by_field():
    steps: list[JsonObject] = [
        {"name": "a b", "tol": "x", "wait": {"seconds": []}, "for_each": {}, "on_error": {"goto": "x"}}
    ]
    found = await told(*steps, stepz=1)

    assert "/steps/0/tol: there is no field 'tol' here; did you mean 'tool'?" in found
    assert "/stepz: there is no field 'stepz' here; did you mean 'steps'?" in found
    assert "/steps/0/for_each/items: Field required; add it" in found
    assert "/steps/0/on_error/goto: there is no field 'goto' here; did you mean 'go_to'?" in found
    assert any(line.startswith("/steps/0/wait/seconds: ") for line in found)
    assert any(line.startswith("/steps/0/name: ") and line.endswith("; write 'a_b'") for line in found)
    assert not any(line.startswith("/steps: ") for line in found)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"retry": 3}, 'retry: retry is 3, and must be a mapping of fields; write {"count": 2}'),
        ({"retry": {"count": 11}}, "retry/count: count is 11, and must be 10 or less"),
        ({"retry": {"cuont": 1}}, "retry/cuont: there is no field 'cuont' here; did you mean 'count'?"),
        ({"wait": [30]}, "wait: wait is a list, and must be a mapping of fields; write {"),
        ({"approval": "x" * 101}, "approval: approval is a text of 101 characters, and must be a mapping"),
        ({"timeout_s": 0}, "timeout_s: timeout_s is 0, and must be more than 0"),
        ({"timeout_s": "soon"}, "timeout_s: timeout_s is 'soon', and must be a number"),
        ({"depends_on": {}}, "depends_on: depends_on is a mapping, and must be a list"),
        ({"name": "a b"}, "name: name is 'a b', and must be like ^[A-Za-z_][A-Za-z0-9_]*$; write 'a_b'"),
        ({"name": "n" * 101}, "name: name is a text of 101 characters, and must be a text of 100 characters or less"),
        ({"on_error": "ignore"}, "on_error: on_error is 'ignore', and must be 'fail' or 'continue' or a mapping of"),
    ],
)
@pytest.mark.requirement("workflow_checks.documents")
async def test_a_value_that_cannot_stand_there_is_told_with_what_can(fields: JsonObject, said: str):
    (line,) = await told({"name": "s", **SAY, **fields})

    assert line.startswith(f"/steps/0/{said}")


@pytest.mark.requirement("workflow_checks.documents")
async def test_a_definition_without_steps_is_told_that_it_needs_one():
    assert await told() == ["/steps: steps is an empty list, and must be a list of 1 or more"]


@pytest.mark.requirement("workflow_checks.all_at_once")
async def test_what_is_wrong_with_the_whole_is_told_too():
    found = await problems({"name": "s", **SAY}, input_schema={"type": "nonsense"})

    assert [(problem.path, problem.is_error) for problem in found] == [("", True)]
    assert "input_schema is not a JSON Schema" in found[0].message


@pytest.mark.parametrize("schema", [{"type": 5}, {"properties": 5}, {"anyOf": [5]}, {"required": 5}, {"enum": 5}])
@pytest.mark.requirement("workflow_checks.all_at_once")
async def test_a_schema_that_is_none_is_told_beside_everything_else(schema: JsonObject):
    step = {"name": "s", "tool": "say", "input": {"text": "${input.a.b}"}, "depends_on": ["t"]}

    found = await told(step, input_schema=schema, output_schema=schema)

    assert found[0].startswith("/steps/0/depends_on/0: there is no step 't'")
    assert any(each.startswith(": input_schema ") for each in found)
    assert any(each.startswith(": output_schema is not a JSON Schema") for each in found)


@pytest.mark.requirement("workflow_checks.callees")
async def test_a_tool_that_calls_what_is_not_there_any_more_is_told_before_a_run_comes_to_it():
    route = CompositeRoute(id="only", tool="say", input={"text": "${input.text}"})
    async with house() as crib:
        front = described("front", {"text": {"type": "string"}})
        await crib.save(front.model_copy(update={"implementation": CompositeImplementation(routes=(route,))}))
        await crib.lifecycle.block("say", message="No more.")

        found = await told({"name": "s", **SAY, "tool": "front"}, crib=crib)

    assert len(found) == 1
    assert found[0].startswith("warning /steps/0/tool: front calls say: ")


@pytest.mark.parametrize("value", [float("inf"), "\ud800", {1: 2}, b"x"])
@pytest.mark.requirement("workflow_checks.documents")
async def test_a_document_that_is_not_json_is_told_and_raises_nothing(value: Any):
    found = await problems({"name": "s", "output": [value]})

    assert [(problem.path, problem.is_error) for problem in found] == [("", True)]


@pytest.mark.requirement("workflow_checks.itself")
async def test_a_workflow_that_calls_itself_through_another_one_is_refused_with_the_way():
    async with house() as crib:
        await crib.workflows.publish({"name": "flow", "steps": [{"name": "s", **SAY}]})
        await crib.workflows.publish({"name": "outer", "steps": [{"name": "s", "workflow": "flow"}]})

        found = await told({"name": "s", "workflow": "outer"}, crib=crib)

    assert found == [
        ": tool 'flow' would call itself: flow -> outer -> flow; take one of these calls out",
    ]

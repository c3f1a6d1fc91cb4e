"""What expressions may read where they stand, and what is not there to be read."""

import pytest

from tests.unit.workflows.checked import described, house, told
from toolcrib.contracts import JsonObject, JsonSchema

GET = {"name": "order", "tool": "get_order", "input": {"id": "x"}}
INPUT: JsonSchema = {
    "type": "object",
    "properties": {"id": {"type": "string"}, "more": {"type": "object"}},
    "required": ["id", "more"],
}


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (
            {"output": "${ordr}"},
            "/steps/1/output: ${ordr} reads 'ordr', which does not exist; did you",
        ),
        (
            {"output": "${item}"},
            "/steps/1/output: ${item} reads 'item', which is not available here: only a step with a",
        ),
        ({"output": "${index + 1}"}, "/steps/1/output: ${index + 1} reads 'index', which is not available here"),
        (
            {"output": "${output}"},
            "/steps/1/output: ${output} reads 'output', which is not available here: only the output",
        ),
        ({"output": "${error.code}"}, "/steps/1/output: ${error.code} reads 'error', which is not available here"),
        ({"output": "${s}"}, "/steps/1/output: ${s} reads the output of the step itself"),
        (
            {"output": "${steps.s.status}"},
            "/steps/1/output: ${steps.s.status} reads the result of the step",
        ),
        ({"output": "${steps}"}, "/steps/1/output: ${steps} reads steps without a name; write steps.NAME"),
        ({"output": 1, "condition": "${item > 1}"}, "/steps/1/condition: ${item > 1} reads 'item'"),
        ({"output": 1, "for_each": "${item}"}, "/steps/1/for_each/items: ${item} reads 'item'"),
        ({"approval": {"message": "${ordr}?"}}, "/steps/1/approval/message: ${ordr} reads 'ordr'"),
        ({"approval": {"message": "?", "show": {"a": ["${ordr}"]}}}, "/steps/1/approval/show/a/0: ${ordr} reads"),
        ({"wait": {"seconds": "${ordr}"}}, "/steps/1/wait/seconds: ${ordr} reads 'ordr'"),
    ],
)
@pytest.mark.requirement("workflow_checks.scopes")
async def test_what_cannot_be_read_here_is_told(step: JsonObject, said: str):
    found = await told(GET, {"name": "s", **step})

    assert any(line.startswith(said) for line in found), found


@pytest.mark.requirement("workflow_checks.scopes")
async def test_names_are_read_where_there_is_something_under_them():
    found = await told(
        {**GET, "on_error": {"go_to": "lost"}},
        {"name": "each", "for_each": "${order.lines}", "tool": "anything", "input": {"value": "${item.sku}${index}"}},
        {"name": "lost", "condition": "${error.code == 'TIMEOUT'}", "output": "${error.message} ${error.step}"},
        {"name": "own", "tool": "anything", "input": {}, "output": "${output.x}"},
    )

    assert found == []


@pytest.mark.requirement("workflow_checks.scopes")
async def test_a_step_that_is_saved_as_something_else_is_read_as_that():
    assert await told({**GET, "save_as": "o"}, {"name": "s", "output": "${order.id}"}) == [
        "/steps/1/output: ${order.id} reads 'order', which does not exist; read it as 'o'",
    ]


@pytest.mark.requirement("workflow_checks.scopes")
async def test_the_prompt_of_an_agent_reads_its_context_and_nothing_else_does():
    asks = {"agentRef": "desk", "prompt": "${who} ${whom}", "context": {"who": "${input.id}"}}

    found = await told({"name": "s", "handler_ref": "ai.invoke_agent", "input": asks})

    assert found == [
        "/steps/0/input/prompt: ${whom} reads 'whom', which does not exist; available: input, s",
    ]


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("${order.}", "/steps/1/output: in '${order.}'"),
        ("${order", "/steps/1/output: '${' at column 1 is never closed"),
        ("${nope(1)}", "/steps/1/output: in '${nope(1)}'"),
        ("${" + "1+" * 1000 + "1}", "/steps/1/output: '${' at column 1 is never closed by '}' within 2,000 characters"),
        ({"a": {"b/c": ["${1 +}"]}}, "/steps/1/output/a/b~1c/0: in '${1 +}'"),
    ],
)
@pytest.mark.requirement("workflow_checks.expressions")
async def test_an_expression_that_does_not_compile_is_told_with_its_place(output: object, said: str):
    found = await told(GET, {"name": "s", "output": output})

    assert any(line.startswith(said) for line in found), found


@pytest.mark.requirement("workflow_checks.expressions")
async def test_a_structure_that_is_too_deep_is_told():
    deep: object = 1
    for _ in range(120):
        deep = [deep]

    (line,) = await told({"name": "s", "output": deep})

    assert "structure is nested deeper than 100 levels; flatten it" in line


@pytest.mark.parametrize("condition", ["yes", "${input.id} and more", "a ${input.id}"])
@pytest.mark.requirement("workflow_checks.expressions")
async def test_a_condition_is_one_expression_and_nothing_else(condition: str):
    assert await told({"name": "s", "output": 1, "condition": condition}) == [
        f"/steps/0/condition: {condition!r} is not one expression; write it as ${{…}}, and nothing else",
    ]


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("order.totl", "reads 'totl', which its source does not have; did you mean 'total'?"),
        ("order['totl']", "reads 'totl', which its source does not have; did you mean 'total'?"),
        ("order.lines.sku", "reads 'sku' of an array, which has no fields; read it from each element: [*].sku"),
        ("order.lines[0].sk", "reads 'sk', which its source does not have; did you mean 'sku'?"),
        ("order.lines[*].sk", "reads 'sk', which its source does not have; did you mean 'sku'?"),
        ("order.lines.first().sk", "did you mean 'sku'?"),
        ("order.total.cents", "reads 'cents' of an integer, which has no fields"),
        ("order.total[0]", "reads an element of an integer, which has no elements"),
        ("order.id[*]", "reads every element of a string, which has no elements"),
        ("(order ?? input).more.x", None),
        ("steps.order.output.totl", "reads 'totl'"),
        ("steps.order.state", "reads 'state', which its source does not have"),
        ("input.idd", "did you mean 'id'?"),
        ("input.more.any.thing", None),
        ("order.lines.length + order.id.length", None),
        ("order.lines[0].sku.length", None),
        ("order.lines[input.id].sku", None),
        ("{a: order.totl}", "reads 'totl'"),
        ("[1, order.totl]", "reads 'totl'"),
        ("!order.totl", "reads 'totl'"),
        ("-order.totl", "reads 'totl'"),
        ("order.id == 'x' ? order.totl : 1", "reads 'totl'"),
        ("json(order.totl)", "reads 'totl'"),
        ("order.total > 1 && order.totl", "reads 'totl'"),
        ("{a: 1}.b", "reads 'b', which its source does not have; available: a"),
        ("order.note.default('x').x", "reads 'x' of a string"),
    ],
)
@pytest.mark.requirement("workflow_checks.paths")
async def test_a_path_is_held_against_what_the_schemas_say(expression: str, said: str | None):
    found = await told(GET, {"name": "s", "output": f"${{{expression}}}"}, input_schema=INPUT)

    if said is None:
        assert found == []
    else:
        assert len(found) == 1
        assert found[0].startswith("/steps/1/output: ${")
        assert said in found[0]


@pytest.mark.parametrize(
    ("fields", "is_told"),
    [
        ({"output": "${input.days}"}, True),
        ({"output": "${input.days ?? 7}"}, True),
        ({"output": "${input?.days ?? 7}"}, False),
        ({"output": "${input.limit}"}, False),
        ({"output": "${input}"}, False),
        ({"output": "${'days' in input ? input.days : 7}"}, False),
        ({"output": "${input.days}", "condition": "${'days' in input}"}, False),
        ({"output": "${input.days}", "condition": "${'input' != 'days'}"}, True),
        ({"output": 1, "condition": "${input.days > 7}"}, True),
    ],
)
@pytest.mark.requirement("workflow_checks.left_out")
async def test_reading_what_a_caller_need_not_give_is_a_warning_unless_it_has_a_default(
    fields: JsonObject, is_told: bool
):
    taken: JsonSchema = {
        "type": "object",
        "properties": {"days": {"type": "integer"}, "limit": {"type": "integer", "default": 9}},
    }

    found = await told({"name": "s", **fields}, input_schema=taken)

    assert len(found) == is_told
    assert all("has no value if 'days' is not given; write input?.days, or give it a default" in line for line in found)


@pytest.mark.requirement("workflow_checks.scopes")
async def test_a_condition_on_an_element_is_told_what_to_do_instead():
    (line,) = await told({"name": "s", "for_each": "${[1, 2]}", "condition": "${item > 1}", "output": "${item}"})

    assert line.startswith("/steps/0/condition: ${item > 1} reads 'item', which is not available here")
    assert line.endswith("run a workflow for_each of them, with the condition in its step")


@pytest.mark.requirement("workflow_checks.callees")
async def test_what_a_step_calls_is_no_expression():
    (line,) = await told({"name": "s", "tool": "${input.id}"}, input_schema=INPUT)

    assert line.startswith("/steps/0/tool: '${input.id}' is an expression, but the graph is fixed before it")


@pytest.mark.requirement("workflow_checks.paths")
async def test_a_path_that_is_optional_and_never_there_is_a_warning():
    (line,) = await told(GET, {"name": "s", "output": "${order?.totl}"})

    assert line.startswith("warning /steps/1/output: ${order?.totl} reads 'totl'")

    (line,) = await told(GET, {"name": "s", "output": "${order.total?.cents}"})

    assert line.startswith("warning /steps/1/output: ${order.total?.cents} reads 'cents' of an integer")


ROOMY: list[tuple[JsonSchema | None, str | None]] = [
    (None, None),
    ({"type": "object"}, None),
    ({"type": "object", "properties": {"a": {}}, "additionalProperties": True}, None),
    ({"type": "object", "properties": {"a": {}}, "patternProperties": {"^b": {}}}, None),
    ({"type": "object", "properties": {"a": {}}}, "available: a"),
    ({"anyOf": [{"properties": {"a": {}}, "type": "object"}, {"type": "object"}]}, None),
    ({"anyOf": [{"properties": {"a": {}}, "type": "object"}, {"type": "null"}]}, "available: a"),
    ({"allOf": [{"properties": {"a": {}}}, {"properties": {"c": {}}}], "type": "object"}, "available: a, c"),
    ({"$ref": "#/$defs/x", "$defs": {"x": {"type": "object", "properties": {"a": {}}}}}, "available: a"),
    ({"anyOf": [{"$ref": "#"}, {"type": "object", "properties": {"a": {}}}]}, None),
    ({"type": "string"}, "which has no fields"),
]


@pytest.mark.parametrize(("gives", "said"), ROOMY)
@pytest.mark.requirement("workflow_checks.paths")
async def test_a_schema_that_leaves_room_for_others_says_nothing(gives: JsonObject | None, said: str | None):
    async with house() as crib:
        crib.add(described("make", {}, gives))

        found = await told({"name": "m", "tool": "make"}, {"name": "s", "output": "${m.b}"}, crib=crib)

    assert found == [] if said is None else said in found[0]


@pytest.mark.requirement("workflow_checks.paths")
async def test_the_outputs_of_every_kind_of_step_are_known():
    steps = [
        {"name": "all", "for_each": "${input.ids}", "tool": "get_order", "input": {"id": "${item}"}},
        {"name": "asked", "agent": "desk", "input": {"message": "?"}, "pins": [_pin("p")]},
        {"name": "decided", "approval": {"message": "?", "show": {"usd": 1}}},
        {"name": "slept", "wait": {"seconds": 1}},
        {"name": "told", "wait": {"signal": "go"}},
        {"name": "made", "output": {"a": ["${all}"]}},
    ]
    read = ["all.id", "all[0].idd", "asked.reponse", "asked.handles.q", "decided.eur", "slept.x", "told.x.y", "made.b"]

    found = await told(*steps, {"name": "s", "output": [f"${{{one}}}" for one in read]})

    places = [line.partition(": ")[0].removeprefix("/steps/6/output/") for line in found]
    assert places == ["0", "1", "2", "3", "4", "5", "7"]
    assert "did you mean 'response'?" in found[2]
    assert "available: p" in found[3]


@pytest.mark.requirement("workflow_checks.paths")
async def test_an_agentic_tool_of_which_nothing_is_known_may_put_out_anything():
    async with house() as crib:
        crib.agentic_tool("finder", mode="agentic", model="scripted:m", tools=["say"])

        found = await told(
            {"name": "f", "tool": "finder", "input": {"task": "?"}}, {"name": "s", "output": "${f.any}"}, crib=crib
        )

    assert found == []


@pytest.mark.requirement("workflow_checks.left_out")
async def test_reading_a_step_that_may_be_left_out_is_a_warning():
    maybe = {**GET, "condition": "${input.id}"}

    assert await told(maybe, {"name": "s", "output": "${order.total}"}) == [
        ("warning /steps/1/output: ${order.total} has no value if step 'order' is left out; write ?. to get null then"),
    ]


@pytest.mark.parametrize(
    "reader",
    [
        {"output": "${order?.total}"},
        {"output": "${order ? order.total : 0}"},
        {"output": "${order && order.total}"},
        {"output": "${order.total}", "condition": "${order}"},
        {"output": "${order.total}", "condition": "${steps.order.status == 'succeeded'}"},
        {"output": "${order.total}", "condition": "${input.id}"},
    ],
)
@pytest.mark.requirement("workflow_checks.left_out")
async def test_who_has_looked_before_is_not_warned(reader: JsonObject):
    assert await told({**GET, "condition": "${input.id}"}, {"name": "s", **reader}) == []


@pytest.mark.requirement("workflow_checks.left_out")
async def test_a_step_whose_failure_is_forgiven_and_one_that_nobody_goes_to_may_have_put_out_nothing():
    found = await told(
        {**GET, "on_error": "continue"},
        {"name": "a", "tool": "anything", "input": {}, "on_error": {"go_to": "b"}},
        {"name": "b", "output": {"x": 1}},
        {"name": "after", "output": "${b.x}"},
        output={"total": "${order.total}", "x": "${b.x}"},
    )

    assert found == [
        "warning /output/total: ${order.total} has no value if step 'order' fails; write ?. to get null then",
        "warning /output/x: ${b.x} has no value if no step goes to 'b'; write ?. to get null then",
    ]


@pytest.mark.requirement("workflow_checks.left_out")
async def test_an_agent_that_was_not_asked_has_its_stable_outputs_all_the_same():
    asks = {"name": "ask", "agent": "desk", "input": {"message": "?"}, "condition": "${input.id}"}

    found = await told(asks, {"name": "s", "output": ["${ask.response}", "${ask.output.x}"]})

    assert found == [
        "warning /steps/1/output/1: ${ask.output.x} has no value if step 'ask' is left out; write ?. to get null then",
    ]


def _pin(name: str) -> JsonObject:
    return {"name": name, "selector": {"tool": "say"}}

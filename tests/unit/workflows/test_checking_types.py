"""Values against what they are given to: wrong is only what fits in no case."""

import pytest

from tests.unit.workflows.checked import described, house, told
from toolcrib.contracts import Json, JsonSchema
from toolcrib.contracts.workflows import ConditionBinding

GET = {"name": "order", "tool": "get_order", "input": {"id": "x"}}
TEXT: JsonSchema = {"type": "string"}


async def given(wanted: JsonSchema, value: Json) -> list[str]:
    """What is told of a step that gives this to a tool that wants that."""
    async with house() as crib:
        crib.add(described("take", {"it": wanted}))
        step = {"name": "s", "tool": "take", "input": {"it": value}}
        return list(await told(GET, step, crib=crib))


@pytest.mark.parametrize(
    ("wanted", "value", "said"),
    [
        (TEXT, "${order.lines}", "is an array, and argument 'it' of 'take' accepts a string; take one element"),
        (TEXT, "${order.total}", "is an integer, and argument"),
        (TEXT, "${order}", "is an object, and argument 'it' of 'take' accepts a string; read one of its fields"),
        ({"type": "integer"}, "${order.id}", "accepts an integer; make a number of it: ${number(…)}"),
        ({"type": "array"}, "${order.id}", "accepts an array; put it into a list: [${…}]"),
        ({"type": "array"}, "${order}", "is an object, and"),
        ({"type": "boolean"}, "${order.total}", "accepts a boolean"),
        ({"enum": ["old", "lost"]}, "${order.state}", 'is one of "new", "paid", and'),
        ({"const": 5}, "${order.id}", "is a string"),
        ({"anyOf": [{"type": "integer"}, {"type": "array"}]}, "${order.id}", "accepts an array or an integer"),
        ({"type": "object", "required": ["address"]}, "${order}", "is an object with"),
        ({"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}, "${order}", "is an object"),
        (TEXT, 5, "the value is an integer, and"),
        (TEXT, None, "the value is null, and"),
        (TEXT, {"a": 1}, "the value is an object, and"),
        ({"enum": ["a", "b"]}, "c", 'is "c", and'),
        ({"type": "integer"}, "a ${order.id}", "is a string"),
        ({"type": "integer"}, "${order.id + '!'}", "is a string"),
        ({"type": "boolean"}, "${order.total - 1}", "is a number"),
        (TEXT, "${order.id == 'x'}", "is a boolean"),
        (TEXT, "${{a: 1}}", "is an object"),
        (TEXT, "${[1]}", "is an array"),
        (TEXT, "${order.lines.length}", "is an integer"),
        (TEXT, "${order.id.split(',')}", "is an array"),
        ({"type": "object", "properties": {"a": {}}, "additionalProperties": False}, {"b": 1}, "is an object with b"),
        ({"type": "object", "properties": {"a": TEXT}, "required": ["a"]}, {"a": 1}, "is an object with a"),
    ],
)
@pytest.mark.requirement("workflow_checks.types", "workflow_checks.arguments")
async def test_a_value_that_fits_in_no_case_is_told(wanted: JsonSchema, value: Json, said: str):
    (line,) = await given(wanted, value)

    assert line.startswith("/steps/1/input/it: ")
    assert said in line


@pytest.mark.parametrize(
    ("wanted", "value"),
    [
        ({}, "${order}"),
        (TEXT, "${order.id}"),
        (TEXT, "${order.lines[0].sku}"),
        (TEXT, "${order.id ?? 1}"),
        (TEXT, "${order.note ?? 'none'}"),
        (TEXT, "${input.any}"),
        ({"type": "number"}, "${order.total}"),
        ({"type": "integer"}, "${order.total / 2}"),
        ({"type": "object", "required": ["id"]}, "${order}"),
        ({"type": "object", "properties": {"id": TEXT}}, "${order}"),
        ({"enum": ["paid", "lost"]}, "${order.state}"),
        ({"type": "array", "items": {"type": "object"}}, "${order.lines}"),
        ({"type": "string"}, "${order.total > 1 ? order.id : 5}"),
        ({"type": "array"}, "${order.lines[*].sku}"),
        ({"not": {"type": "string"}}, "${order.id}"),
    ],
)
@pytest.mark.requirement("workflow_checks.types")
async def test_a_value_that_may_fit_is_fine(wanted: JsonSchema, value: Json):
    assert await given(wanted, value) == []


@pytest.mark.parametrize(
    ("wanted", "value", "said"),
    [
        (TEXT, "${order.note}", "${order.note} may be null, and argument 'it' of 'take' does not accept null; write"),
        (TEXT, "${order?.id}", "${order?.id} may be null, and"),
        ({"type": "array", "items": TEXT}, "${order.lines}", "an element of ${order.lines} is an object, and"),
        ({"type": "array", "items": TEXT}, [1], "an element of the value is an integer"),
    ],
)
@pytest.mark.requirement("workflow_checks.types")
async def test_a_value_that_may_be_null_or_an_element_that_never_fits_is_a_warning(
    wanted: JsonSchema, value: Json, said: str
):
    (line,) = await given(wanted, value)

    assert line.startswith("warning /steps/1/input/it: ")
    assert said in line


@pytest.mark.requirement("workflow_checks.types", "workflow_checks.left_out")
async def test_elements_that_may_have_failed_may_be_null():
    each = {"items": "${order.lines}", "on_item_error": "continue"}
    steps = [
        GET,
        {"name": "ids", "for_each": each, "output": "${item.sku}"},
        {"name": "s", "tool": "say", "input": {"text": "${ids[0]}"}},
    ]

    (line,) = await told(*steps)

    assert line.startswith("warning /steps/2/input/text: ${ids[0]} may be null")


@pytest.mark.parametrize(("items", "said"), [("${order.id}", "is not a list"), ("${order}", "is not a list")])
@pytest.mark.requirement("workflow_checks.types")
async def test_what_a_step_runs_for_each_of_is_a_list(items: str, said: str):
    (line,) = await told(GET, {"name": "s", "for_each": items, "output": "${index}"})

    assert line == f"/steps/1/for_each/items: {items} {said}; name a list, or write [value]"


@pytest.mark.parametrize(
    ("output", "schema", "said"),
    [
        ({"a": "${order.total}"}, {"type": "object", "properties": {"a": TEXT}, "required": ["a"]}, "/output: "),
        ("${order.id}", {"type": "object"}, "/output: the output is a string, and output_schema accepts an object"),
        ("${order.id}", TEXT, None),
        (None, {"type": "object", "required": ["order"]}, None),
        (None, {"type": "object", "required": ["other"]}, "/output: the output is an object with order, and"),
    ],
)
@pytest.mark.requirement("workflow_checks.output")
async def test_the_output_of_a_workflow_is_held_against_what_it_says(
    output: Json, schema: JsonSchema, said: str | None
):
    found = await told(GET, output=output, output_schema=schema)

    assert found == [] if said is None else found[0].startswith(said)


@pytest.mark.requirement("workflow_checks.types", "workflow_checks.vocabulary")
async def test_what_a_condition_is_given_is_held_against_what_it_reads():
    async with house() as crib:
        await crib.conditions.save(ConditionBinding(name="big", parameters=("o",), expression="${o.totl > 3}"))
        step = {"name": "s", "output": 1, "condition": {"ref": "big", "input": {"o": "${order}"}}}

        (line,) = await told(GET, step, crib=crib)

    assert line.startswith("/steps/1/condition/ref: ${o.totl > 3} reads 'totl'")

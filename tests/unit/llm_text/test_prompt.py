"""What a model is told of its tools."""

from typing import Any

import pytest

from tests.unit.llm_text.reading import block
from toolcrib.core.registry import compile_schema
from toolcrib.llm import Tool, ToolExample, ToolSet
from toolcrib.llm.text import parse, toolkit_of
from toolcrib.llm.text.examples import examples_of
from toolcrib.llm.text.functions import ToolFunction
from toolcrib.llm.text.typescript import Types

pytestmark = pytest.mark.requirement("text.prompt")

SEARCH = Tool(
    "search-deals",
    "Deals by company. */ run()\nNewest first.",
    {
        "type": "object",
        "properties": {
            "limit": {"type": "integer", "default": 20, "description": "Most."},
            "company": {"type": "string", "description": "Part of\nthe name."},
            "stage": {"enum": ["lead", "won"]},
        },
        "required": ["company"],
    },
    examples=(
        ToolExample({"company": "Acme", "limit": 5}, "Five of Acme"),
        ToolExample({"company": "*/ x"}),
        ToolExample({"company": "x" * 500}),
    ),
    returns={
        "type": "array",
        "items": {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]},
    },
)
NOW = Tool("now", "", {"type": "object", "properties": {}, "additionalProperties": False})
DECLARED = """\
/**
 * now
 * @example return now();
 */
declare function now(): any;

/**
 * Deals by company. * / run()
 * Newest first.
 * @param company Part of the name.
 * @param limit Most. Default: 20.
 * @example Five of Acme: return search_deals("Acme", 5);
 * @example return search_deals("*\\/ x");
 * @example return search_deals("example");
 */
declare function search_deals(company: string, limit?: number, stage?: "lead" | "won"): {id: string}[];
"""


def test_tools_are_declared_in_typescript_sorted_by_name() -> None:
    prompt = toolkit_of(ToolSet([SEARCH, NOW])).prompt
    assert DECLARED in prompt
    assert "declare function finalResponse(): void;" in prompt
    assert "```tool\nreturn now();\n```" in prompt


def test_the_same_tools_are_the_same_bytes_in_any_order() -> None:
    one, other = toolkit_of(ToolSet([SEARCH, NOW])), toolkit_of(ToolSet([NOW, SEARCH]))
    assert one.prompt == other.prompt
    assert toolkit_of(ToolSet([SEARCH, NOW])) is one


TYPES: list[tuple[dict[str, Any], str]] = [
    ({"type": "integer"}, "number"),
    ({"type": ["string", "null"]}, "string | null"),
    ({"type": "string", "format": "date"}, "string"),
    ({"const": "a"}, '"a"'),
    ({"enum": [1, None, "ä"]}, '1 | null | "ä"'),
    ({"enum": []}, "never"),
    ({"anyOf": [{"type": "string"}, {"type": "number"}, {"type": "integer"}]}, "string | number"),
    ({"allOf": [{"type": "object"}, {"properties": {"a": {}}}]}, "object & {a?: any}"),
    ({"type": "array", "items": {"type": ["string", "number"]}}, "(string | number)[]"),
    ({"type": "array"}, "any[]"),
    (
        {
            "properties": {"a-b": {"type": "boolean", "description": "Yes */ no", "default": True}},
            "required": ["a-b"],
        },
        '{"a-b": boolean /* Yes * / no Default: true. */}',
    ),
    ({}, "any"),
    ({"type": "blob"}, "any"),
    ({"$ref": "#/$defs/Stage"}, '"lead"'),
    ({"$ref": "#/$defs/Nowhere"}, "any"),
    ({"$ref": "#/$defs/Loop"}, "any"),
]


@pytest.mark.parametrize(("schema", "expected"), TYPES, ids=str)
def test_a_schema_becomes_a_type(schema: dict[str, Any], expected: str) -> None:
    root = {"$defs": {"Stage": {"enum": ["lead"]}, "Loop": {"$ref": "#/$defs/Loop"}}}
    assert Types(root).type_of(schema) == expected


def test_a_type_that_holds_itself_ends() -> None:
    tree: dict[str, Any] = {"$defs": {"T": {"properties": {"t": {"$ref": "#/$defs/T"}}}}, "$ref": "#/$defs/T"}
    assert Types(tree).type_of(tree) == "{t?: {t?: {t?: {t?: {t?: any}}}}}"


def test_a_union_of_very_many_that_hold_each_other_is_a_type_all_the_same() -> None:
    names = [f"T{number}" for number in range(60)]
    union = {"anyOf": [{"type": "array", "items": {"$ref": f"#/$defs/{name}"}} for name in names]}
    types = Types({"$defs": dict.fromkeys(names, union)})
    assert len(types.type_of({"$ref": "#/$defs/T0"})) < 5_000
    assert not types.takes_object({"$ref": "#/$defs/T0"})


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ({"type": "object"}, True),
        ({}, True),
        ({"type": ["string", "object"]}, True),
        ({"type": "string"}, False),
        ({"enum": ["a"]}, False),
        ({"enum": [{"a": 1}]}, True),
        ({"const": {}}, True),
        ({"$ref": "#/$defs/Loop"}, False),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, False),
        ({"oneOf": [{"type": "string"}, {"type": "object"}]}, True),
    ],
)
def test_a_parameter_admits_an_object_or_not(part: dict[str, Any], *, expected: bool) -> None:
    root: dict[str, Any] = {"$defs": {"Loop": {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/Loop"}]}}}
    assert Types(root).takes_object(part) is expected


def test_a_result_with_a_long_type_is_an_object() -> None:
    returns = {"properties": {f"name{number}": {"type": "string"} for number in range(50)}}
    prompt = toolkit_of(ToolSet([Tool("f", "", {"type": "object"}, returns=returns)])).prompt
    assert "declare function f(values?: object): object;" in prompt


DERIVED: list[dict[str, Any]] = [
    {"type": "string"},
    {"type": "string", "maxLength": 8},
    {"type": "string", "format": "email"},
    {"type": "string", "format": "uuid"},
    {"type": "string", "examples": ["x"]},
    {"type": "integer", "minimum": 10},
    {"type": "integer", "maximum": -3},
    {"type": "number", "minimum": 1, "maximum": 1},
    {"type": "number", "minimum": 0, "maximum": 100},
    {"type": "boolean"},
    {"enum": [3, 5]},
    {"const": "only"},
    {"type": "array", "items": {"type": "string"}, "minItems": 1},
    {"type": "object", "properties": {"a": {"type": "integer"}, "b": {}}, "required": ["a"]},
    {"anyOf": [{"type": "integer"}, {"type": "null"}]},
    {"type": ["string", "null"]},
    {"type": "integer", "default": 7},
]
UNKNOWN: list[dict[str, Any]] = [
    {"type": "string", "pattern": "^[A-Z]{3}$"},
    {"type": "string", "format": "ipv6"},
    {"type": "string", "minLength": 100},
    {"type": "integer", "multipleOf": 7},
    {"type": "number", "exclusiveMinimum": 0},
    {"type": "array", "items": {"type": "string"}, "minItems": 3},
    {"type": "object", "minProperties": 2},
    {"type": "null"},
    {"type": "array", "items": {"type": "string"}, "maxItems": 0},
    {"type": "string", "not": {"const": "example"}},
    {"allOf": [{"type": "string"}, {"minLength": 50}]},
    {"type": "object", "required": ["a"]},
    {},
    {"type": "array", "items": {"type": "array", "items": {"type": "array", "items": {"type": "array", "items": {}}}}},
]


@pytest.mark.parametrize("part", DERIVED, ids=str)
def test_a_derived_example_meets_the_schema(part: dict[str, Any]) -> None:
    schema = {"type": "object", "properties": {"x": part, "y": {"type": "string"}}, "required": ["x"]}
    function = ToolFunction(Tool("f", "", schema), "f")
    examples = examples_of(function)
    assert 2 <= len(examples) <= 3
    for example in examples:
        assert not compile_schema(schema).problems(example.arguments)


@pytest.mark.parametrize("part", UNKNOWN, ids=str)
def test_no_example_is_derived_where_a_schema_does_not_tell_a_value(part: dict[str, Any]) -> None:
    schema = {"type": "object", "properties": {"x": part}, "required": ["x"]}
    assert examples_of(ToolFunction(Tool("f", "", schema), "f")) == ()


@pytest.mark.parametrize(
    "more",
    [
        {"required": ["x", "y"]},
        {"oneOf": [{"required": ["x"]}, {"required": ["z"]}]},
        {"if": {"required": ["x"]}, "then": {"required": ["z"]}},
        {"maxProperties": 0},
    ],
)
def test_no_example_is_derived_where_arguments_depend_on_each_other(more: dict[str, Any]) -> None:
    schema = {"type": "object", "properties": {"x": {"type": "string"}, "z": {"type": "string"}}, **more}
    assert examples_of(ToolFunction(Tool("f", "", schema), "f")) == ()


def test_a_tool_with_several_parameters_has_three_different_examples_that_can_be_read() -> None:
    function = ToolFunction(two_optional(), "f")
    examples = examples_of(function)
    assert len({str(example.arguments) for example in examples}) == 3
    [found] = parse(block("\n".join(f"return {line};" for line in _lines(function))))
    assert [function.arguments(call) for call in found.calls] == [example.arguments for example in examples]


def two_optional() -> Tool:
    return Tool("f", "", {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "boolean"}}})


def _lines(function: ToolFunction) -> list[str]:
    prompt = toolkit_of(ToolSet([function.tool])).prompt
    return [line.partition("return ")[2].rstrip(";") for line in prompt.splitlines() if "@example" in line]

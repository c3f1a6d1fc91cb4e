"""Schema validation: what is refused, and what the messages tell a model to do."""

from collections.abc import Iterator
from typing import Any, cast

import pytest

from toolcrib.contracts import InvalidDefinition, InvalidInput, JsonSchema, resolve_pointer
from toolcrib.core.registry import LABELS, SchemaProblem, SchemaValidator, compile_schema
from toolcrib.core.registry.schema.validation import MOST_EVALUATIONS

STAGES: dict[str, Any] = {
    "enum": ["s1", "s2", "s3"],
    LABELS: {"s1": "Negotiation", "s2": "Closed won", "s3": "Closed lost"},
}
ALL_STAGES = "'s1' (Negotiation), 's2' (Closed won), 's3' (Closed lost)"


def problems(schema: dict[str, Any], value: object) -> list[str]:
    return [str(problem) for problem in compile_schema(schema).problems(value)]


@pytest.mark.requirement("registry.validation")
def test_a_value_that_meets_its_schema_has_no_problems():
    schema = compile_schema({"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}}})

    assert schema.is_valid({"a": 1})
    assert schema.problems({"a": 1}) == ()
    assert not schema.is_valid({"a": "1"})


@pytest.mark.requirement("registry.validation")
def test_every_problem_has_the_json_pointer_of_its_place():
    schema = {"properties": {"a/b": {"properties": {"c~": {"items": {"type": "integer"}}}}}}

    (problem,) = compile_schema(schema).problems({"a/b": {"c~": [1, "x"]}})

    assert problem == SchemaProblem("/a~1b/c~0/1", '"x" is not of type "integer"')
    assert problem.as_json() == {"path": "/a~1b/c~0/1", "problem": '"x" is not of type "integer"'}
    assert str(problem) == '/a~1b/c~0/1: "x" is not of type "integer"'
    assert str(SchemaProblem("", "wrong")) == "input: wrong"


@pytest.mark.requirement("registry.validation")
def test_at_most_twenty_problems_are_named():
    assert len(problems({"items": {"type": "integer"}}, ["x"] * 100)) == 20


@pytest.mark.requirement("registry.messages")
@pytest.mark.parametrize(
    ("schema", "value", "message"),
    [
        (STAGES, "negotiaton", "'negotiaton' is not one of the 3 valid values; nearest: 's1' (Negotiation)"),
        (STAGES, "CLOSED", "nearest: 's2' (Closed won), 's3' (Closed lost)"),
        (STAGES, "s4", "nearest: 's3' (Closed lost), 's2' (Closed won), 's1' (Negotiation)"),
        (STAGES, "zzz", "valid: " + ALL_STAGES),
        (STAGES, None, "null is not one of the 3 valid values; valid: " + ALL_STAGES),
        ({"enum": [10, 200]}, 201, "201 is not one of the 2 valid values; nearest: 200"),
        ({"enum": [1, None, True, [2]]}, "zzz", "'zzz' is not one of the 4 valid values; valid: 1, null, true, [2]"),
        ({"enum": list(range(100, 200))}, "z", "valid: " + ", ".join(str(n) for n in range(100, 112))),
    ],
)
def test_a_value_outside_of_an_enum_is_answered_with_the_nearest_ones_and_their_labels(
    schema: dict[str, Any], value: object, message: str
):
    (found,) = problems(schema, value)

    assert found.endswith(message)


@pytest.mark.requirement("registry.messages")
@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"stage": STAGES}},
        {"properties": {"stage": {"$ref": "#/$defs/Stage"}}, "$defs": {"Stage": STAGES}},
        {"properties": {"stage": {"anyOf": [STAGES, {"type": "null"}]}}},
        {"properties": {"stage": {"allOf": [{"type": "string"}, STAGES]}}},
    ],
)
def test_labels_are_found_behind_references_and_alternatives(schema: dict[str, Any]):
    assert problems(schema, {"stage": "negotiation"}) == [
        "/stage: 'negotiation' is not one of the 3 valid values; nearest: 's1' (Negotiation)"
    ]


@pytest.mark.requirement("registry.messages")
@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"stag": 1}, "input: 'stag' is not a property here; known: stage"),
        ({"x": 1}, "input: 'x' is not a property here; known: amount, stage"),
        ({"a_1": 1, "x_1": 1, "zzz": 2}, "input: 'a_1' is not a property here; known: amount, stage"),
    ],
)
def test_an_unexpected_property_is_answered_with_the_nearest_known_ones(value: dict[str, int], message: str):
    schema: dict[str, Any] = {
        "properties": {"stage": {}, "amount": {}},
        "patternProperties": {"^x_": {}},
        "additionalProperties": False,
    }

    assert problems(schema, value) == [message]


@pytest.mark.requirement("registry.messages")
@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"additionalProperties": False}, "input: no property is known here; send {}"),
        ({"properties": {}, "additionalProperties": False}, "input: 'a' is not a property here; known: none"),
        ({"properties": {"a": False}}, "/a: this is not allowed here; leave it out"),
    ],
)
def test_an_object_that_takes_nothing_says_so(schema: dict[str, Any], message: str):
    assert problems(schema, {"a": 1}) == [message]


@pytest.mark.requirement("registry.messages")
def test_each_missing_property_is_named():
    assert problems({"required": ["a", "b"]}, {}) == [
        'input: "a" is a required property',
        'input: "b" is a required property',
    ]


@pytest.mark.requirement("registry.messages")
@pytest.mark.parametrize(
    ("schema", "value", "message"),
    [
        (
            {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            "x",
            'input: "x" is not of type "integer"; or "x" is not of type "null"',
        ),
        (
            {"properties": {"d": {"oneOf": [{"type": "null"}, {"required": ["id"]}, {"required": ["name"]}]}}},
            {"d": {}},
            '/d: "id" is a required property; or "name" is a required property',
        ),
        (
            {"anyOf": [{"properties": {"n": {"type": "integer"}}}, {"type": "string"}]},
            {"n": "x"},
            'input: /n: "x" is not of type "integer"',
        ),
        (
            {"oneOf": [{"type": "integer"}, {"minimum": 1}]},
            3,
            "input: 3 is valid under more than one of the schemas listed in the 'oneOf' keyword",
        ),
    ],
)
def test_alternatives_are_named_except_those_of_another_type(schema: dict[str, Any], value: object, message: str):
    assert problems(schema, value) == [message]


@pytest.mark.requirement("registry.messages")
def test_a_long_value_loses_its_middle_and_not_what_is_wrong_with_it():
    (found,) = problems({"type": "integer"}, "x" * 5000)

    assert len(found) < 320
    assert found.endswith('is not of type "integer"')


@pytest.mark.requirement("registry.defaults")
def test_absent_properties_get_their_defaults_at_every_depth():
    schema = {
        "properties": {
            "limit": {"type": "integer", "default": 10},
            "note": {"default": None},
            "page": {"properties": {"size": {"default": 50}, "number": {}}},
            "sort": {"$ref": "#/$defs/a~1b"},
            "odd": True,
            "plain": {},
        },
        "$defs": {"a/b": {"properties": {"by": {"default": "name"}}}},
    }

    filled = compile_schema(schema).with_defaults({"limit": 5, "page": {"number": 2}, "sort": {}, "odd": {}})

    assert filled == {
        "limit": 5,
        "note": None,
        "page": {"number": 2, "size": 50},
        "sort": {"by": "name"},
        "odd": {},
    }


@pytest.mark.requirement("registry.defaults")
@pytest.mark.parametrize(
    ("reference", "filled"),
    [
        ("#/allOf/1", {"a": {"n": 1}}),
        ("#/$defs/yes", {"a": {}}),
        ("#/$defs/two%20words", {"a": {}}),
        ("#named", {"a": {}}),
    ],
)
def test_defaults_are_found_behind_a_plain_pointer_only(reference: str, filled: dict[str, Any]):
    schema = {
        "properties": {"a": {"$ref": reference}},
        "allOf": [True, {"properties": {"n": {"default": 1}}}],
        "$defs": {"yes": True, "two words": {"properties": {"n": {"default": 2}}}, "b": {"$anchor": "named"}},
    }
    value: dict[str, Any] = {"a": {}}

    assert compile_schema(schema).with_defaults(value) == filled


@pytest.mark.requirement("registry.defaults")
def test_a_value_of_another_type_is_left_for_validation_to_refuse():
    schema = {"properties": {"page": {"properties": {"size": {"default": 50}}}}}

    assert compile_schema(schema).with_defaults({"page": 3}) == {"page": 3}


@pytest.mark.requirement("registry.defaults")
def test_a_schema_without_defaults_gives_the_object_itself():
    value = {"a": 1}

    assert compile_schema({"allOf": [{"properties": {"a": {}}}]}).with_defaults(value) is value


@pytest.mark.requirement("registry.defaults")
def test_calls_do_not_share_a_default_and_the_given_object_stays_as_it_is():
    schema = compile_schema({"properties": {"tags": {"default": ["new"]}}})
    given: dict[str, Any] = {}

    schema.with_defaults(given)["tags"].append("changed")

    assert given == {}
    assert schema.with_defaults({}) == {"tags": ["new"]}


@pytest.mark.requirement("registry.defaults")
def test_a_recursive_schema_fills_only_what_is_there():
    schema = compile_schema(
        {
            "$ref": "#/$defs/Node",
            "$defs": {
                "Node": {"properties": {"next": {"$ref": "#/$defs/Node"}, "n": {"default": 0}}},
                "Loop": {"$ref": "#/$defs/Loop"},
            },
        }
    )

    assert schema.with_defaults({"next": {"next": {"n": 1}}}) == {"n": 0, "next": {"n": 0, "next": {"n": 1}}}


@pytest.mark.requirement("registry.schema_refused")
@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"type": "objec"}, "at /type: "),
        ({"properties": {"a": {"minimum": "x"}}}, 'at /properties/a/minimum: "x" is not of type "number"'),
        ({"$ref": "#/$defs/none"}, "at /: Pointer '/$defs/none' does not exist; put what $ref names into $defs"),
        ({"pattern": "("}, "at /pattern: pattern '(' is not a regular expression"),
    ],
)
def test_a_document_that_is_no_schema_is_refused_with_the_place(schema: dict[str, Any], message: str):
    with pytest.raises(InvalidDefinition) as caught:
        compile_schema(schema)

    assert str(caught.value).startswith(message)


@pytest.mark.requirement("registry.schema_refused")
def test_a_schema_that_is_no_json_is_refused():
    with pytest.raises(InvalidInput):
        compile_schema({"minimum": float("nan")})


@pytest.mark.requirement("registry.offline")
@pytest.mark.parametrize(
    "reference",
    [
        "https://example.com/schema.json",
        "http://169.254.169.254/latest",
        "file:///etc/passwd",
        "/etc/passwd",
        "other.json",
        "urn:uuid:ee564b8a-7a87-4125-8c96-e9f123d6766f",
    ],
)
@pytest.mark.parametrize("keyword", ["$ref", "$dynamicRef"])
def test_a_reference_to_something_outside_is_refused_when_the_schema_is_compiled(keyword: str, reference: str):
    with pytest.raises(InvalidDefinition, match=r"put what \$ref names into \$defs of the same schema"):
        SchemaValidator({"properties": {"a": {keyword: reference}}})


@pytest.mark.requirement("registry.offline")
def test_a_reference_is_not_followed_because_the_schema_names_a_base():
    with pytest.raises(InvalidDefinition):
        compile_schema({"$id": "https://example.com/base/", "properties": {"a": {"$ref": "other.json"}}})


@pytest.mark.requirement("registry.linear_patterns")
@pytest.mark.parametrize("pattern", ["^(a+)+$", "^(a|a)*$", "(x+x+)+y", "^([a-z]+)*[0-9]$"])
def test_a_pattern_that_would_take_exponential_time_elsewhere_is_answered_at_once(pattern: str):
    value = "a" * 200_000 + "!" + "x" * 200_000

    assert not compile_schema({"pattern": pattern}).is_valid(value)


@pytest.mark.requirement("registry.linear_patterns")
@pytest.mark.parametrize(
    ("schema", "place"),
    [
        ({"properties": {"a": {"pattern": "(?=a)b"}}}, "at /properties/a/pattern: pattern '(?=a)b'"),
        ({"pattern": "(?<!a)b"}, "at /pattern: pattern '(?<!a)b'"),
        ({"pattern": r"(a)\1"}, r"at /pattern: pattern '(a)\\1'"),
        ({"pattern": "(a{1000}){1000}"}, "at /pattern: pattern '(a{1000}){1000}'"),
        ({"patternProperties": {"(?!a)b": {}}}, "at /patternProperties/(?!a)b: pattern '(?!a)b'"),
    ],
)
def test_what_a_linear_engine_cannot_match_is_refused_with_what_to_leave_out(schema: dict[str, Any], place: str):
    with pytest.raises(InvalidDefinition) as caught:
        compile_schema(schema)

    assert str(caught.value) == (
        f"{place} is not a regular expression that matches in linear time; "
        "write it without look-around, back-references and large counted repetitions"
    )


@pytest.mark.requirement("registry.validation")
def test_a_schema_is_compiled_once_whatever_the_order_of_its_keys():
    assert compile_schema({"type": "object", "title": "A"}) is compile_schema({"title": "A", "type": "object"})


def _evaluations(schema: JsonSchema) -> int:
    """The most that one place composes, without any short cut."""

    def of(node: Any) -> int:
        if not isinstance(node, dict):
            return 0
        found = cast("JsonSchema", node)
        lists = [part for keyword in ("allOf", "anyOf", "oneOf") for part in found.get(keyword, ())]
        singles = [found[keyword] for keyword in ("if", "then", "else", "not") if keyword in found]
        referred = [resolve_pointer(schema, found["$ref"])] if "$ref" in found else []
        return 1 + sum(map(of, [*lists, *singles, *found.get("dependentSchemas", {}).values(), *referred]))

    def everywhere(node: Any) -> Iterator[int]:
        yield of(node)
        inside = list(cast("JsonSchema", node).values()) if isinstance(node, dict) else node
        for part in cast("list[Any]", inside) if isinstance(inside, list) else ():
            yield from everywhere(part)

    return max(everywhere(schema))


@pytest.mark.requirement("registry.composition_count")
@pytest.mark.parametrize("deep", [0, 3, 9, 12, 13, 14])
@pytest.mark.parametrize("keyword", ["allOf", "anyOf", "oneOf", "dependentSchemas", "if", "$ref"])
def test_whatever_is_composed_is_counted(keyword: str, deep: int):
    level: JsonSchema = {"type": "string"}
    definitions: JsonSchema = {"end": level}
    for number in range(deep):
        part: JsonSchema
        match keyword:
            case "dependentSchemas":
                part = {keyword: {"a": level, "b": level}}
            case "if":
                part = {"if": level, "then": level}
            case "$ref":
                definitions[f"d{number}"] = level
                part = {"allOf": [{"$ref": f"#/$defs/d{number}"}, {"$ref": f"#/$defs/d{number}"}]}
            case _:
                part = {keyword: [level, level]}
        level = part
    schema: JsonSchema = {"type": "object", "properties": {"a": level}, "$defs": definitions}
    if _evaluations(schema) <= MOST_EVALUATIONS:
        SchemaValidator(schema)
    else:
        with pytest.raises(InvalidDefinition, match="one value would be checked against more than 20000 schemas"):
            SchemaValidator(schema)

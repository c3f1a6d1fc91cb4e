"""What becomes of a schema: tools, the schemas of their arguments and answers, their operations, and the report."""

from typing import Any

import pytest
from graphql import (
    GraphQLArgument,
    GraphQLField,
    GraphQLObjectType,
    GraphQLSchema,
    GraphQLString,
    build_schema,
    introspection_from_schema,
)

from tests.unit.graphql.server import SDL
from toolcrib.contracts import BearerAuth, InvalidDefinition, JsonSchema, Loss, ToolDefinition
from toolcrib.core.providers import ImportedApi
from toolcrib.core.providers.imports import Losses
from toolcrib.core.registry import compile_schema
from toolcrib.kinds.graphql.importer import inputs, selections
from toolcrib.kinds.graphql.importer.importer import import_graphql
from toolcrib.kinds.graphql.importer.inputs import InputSchemas
from toolcrib.kinds.graphql.importer.schema import read_schema
from toolcrib.kinds.graphql.importer.selections import SelectionLimits
from toolcrib.kinds.graphql.shape import GraphqlImplementation


def imported(sdl: str, **options: Any) -> ImportedApi:
    """What becomes of an SDL."""
    return import_graphql(read_schema(sdl).schema, name="api", base_url="https://api.example/graphql", **options)


def one(sdl: str, name: str = "a", **options: Any) -> ToolDefinition:
    """The tool of this name."""
    return next(tool for tool in imported(sdl, **options).tools if tool.name == name)


def properties(sdl: str, name: str = "a") -> JsonSchema:
    """The arguments of a tool."""
    return one(sdl, name).input_schema["properties"]


def document(tool: ToolDefinition) -> str:
    """The operation of a tool in one line."""
    assert isinstance(tool.implementation, GraphqlImplementation)
    return " ".join(tool.implementation.document.split())


def losses(api: ImportedApi, operation: str) -> dict[str, Loss]:
    """What an operation lost, by reason."""
    found = next(each for each in api.report.operations if each.operation == operation)
    return {loss.why: loss for loss in found.losses}


# Tools ----------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("graphql.import_schema")
def test_queries_read_and_mutations_write() -> None:
    api = imported(SDL, auth=BearerAuth(token="${env:T}"), source="GraphQL SDL")
    by_name = {tool.name: tool for tool in api.tools}
    assert list(by_name) == ["deal", "deals", "echo", "party", "slow", "create_deal", "refuse", "spoil"]
    assert (by_name["deal"].side_effects, by_name["deal"].idempotent, by_name["deal"].retry.count) == ("reads", True, 3)
    written = by_name["create_deal"]
    assert (written.side_effects, written.idempotent, written.retry.count) == ("writes", False, 0)
    assert (written.source, written.category, written.tags) == ("imported", "api", ("mutations",))
    assert written.description == "Make a deal."
    assert by_name["slow"].description == "The query slow of api."
    assert written.implementation == GraphqlImplementation(
        provider="api",
        document=written.implementation.document,  # type: ignore[union-attr]
        operation_name="CreateDeal",
        operation="mutation",
        root_field="createDeal",
        output_key="createDeal",
    )
    assert [(group.name, group.tools) for group in api.groups] == [("queries", 5), ("mutations", 3)]
    assert api.provider.base_url == "https://api.example/graphql"
    assert api.provider.auth == BearerAuth(token="${env:T}")
    assert api.provider.metadata["import"]["left_out"] == 1
    assert api.report.format == "GraphQL SDL"


@pytest.mark.requirement("graphql.import_schema")
def test_descriptions_are_plain_and_long_ones_are_kept_beside_short_ones() -> None:
    tool = one('type Query { "<b>All</b>  of [it](http://x) ' + "word " * 200 + '" a: Int @deprecated(reason: "old") }')
    assert tool.description.startswith("Deprecated: old All of it word")
    assert len(tool.description) <= 500
    assert tool.long_description is not None
    assert len(tool.long_description) > 1_000


@pytest.mark.requirement("graphql.import_schema", "graphql.import_again")
def test_names_are_in_snake_case_unique_and_stay() -> None:
    sdl = (
        "type Query { user: Int, getHTTPInfo2: Int, _x: Int, get_http_info2: Int, "
        + "a" * 80
        + ": Int, __: Int } type Mutation { user: Int }"
    ).replace(", __: Int", ", _: Int")
    api = imported(sdl)
    names = {each.operation: each.tool for each in api.report.operations}
    assert names["query user"] == "user"
    assert names["query getHTTPInfo2"] == "get_http_info2"
    assert names["query _x"] == "x"
    assert names["query _"] == "call"
    assert names["query get_http_info2"] != "get_http_info2"
    assert len(set(names.values())) == len(names)
    assert all(name is not None and len(name) <= 64 for name in names.values())
    again = imported(sdl, names={"query user": "find_user", "mutation user": "user", "query gone": "x"})
    kept = {each.operation: each.tool for each in again.report.operations}
    assert (kept["query user"], kept["mutation user"]) == ("find_user", "user")
    assert kept["query _x"] not in {"x", None}


@pytest.mark.requirement("graphql.import_losses")
def test_subscriptions_and_what_serves_a_gateway_are_left_out_and_said_to_be() -> None:
    api = imported(
        "type Query { a: Int _service: S _entities(r: [Int!]!): Int } type S { sdl: String } "
        "type Subscription { b: Int }"
    )
    assert [tool.name for tool in api.tools] == ["a"]
    assert "left out: only a gateway asks it" in losses(api, "query _service")
    assert "left out: a subscription has more than one answer" in losses(api, "subscription b")
    assert api.report.summary()["left_out"] == 3


@pytest.mark.requirement("graphql.import_losses")
def test_an_operation_that_cannot_be_one_is_left_out_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "MAX_ARGUMENTS", 1)
    api = imported("type Query { a(b: Int, c: Int): Int d: Int }")
    assert [tool.name for tool in api.tools] == ["d"]
    assert "left out: Query.a has 2 arguments and 1 is the most; give SDL with fewer" in losses(api, "query a")

    def spoil(*_: Any) -> str:
        return "query A { nothing }"

    monkeypatch.setattr("toolcrib.kinds.graphql.importer.importer._document", spoil)
    spoiled = imported("type Query { a: Int }")
    assert spoiled.tools == ()
    [why] = losses(spoiled, "query a")
    assert why.startswith("left out: its operation would not be valid: Cannot query field 'nothing'")
    assert spoiled.groups == ()


@pytest.mark.requirement("graphql.import_losses")
def test_an_operation_whose_text_is_too_long_is_left_out() -> None:
    fields = " ".join(f"{'f' * 196}{number:04}: Int" for number in range(5_000))
    api = imported(f"type Query {{ a: A b: Int }} type A {{ {fields} }}", limits=SelectionLimits(cost=5_000))
    assert [tool.name for tool in api.tools] == ["b"]
    [why] = losses(api, "query a")
    assert why.startswith("left out: 1 validation error for GraphqlImplementation")


@pytest.mark.requirement("graphql.import_schema")
def test_descriptions_that_are_no_unicode_or_endless_do_no_harm() -> None:
    schema = build_schema("type Query { a(n: Int): A } type A { id: ID }")
    told: Any = introspection_from_schema(schema)
    query = next(each for each in told["__schema"]["types"] if each["name"] == "Query")
    query["fields"][0]["description"] = "bad \ud800 end"
    query["fields"][0]["args"][0]["description"] = "\udfff" + "x" * 1_000_000
    [tool] = import_graphql(read_schema(told).schema, name="api", base_url="https://api.example").tools
    assert tool.description == "bad ? end"
    assert len(tool.model_dump_json()) < 2_000
    assert tool.content_hash().startswith("sha256:")


# Arguments ------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("graphql.schemas")
def test_scalars_lists_and_null_are_described_exactly() -> None:
    found = properties(
        "type Query { a(i: Int!, n: Int, f: Float!, s: String!, b: Boolean!, d: ID!, l: [Int!]!, m: [[String]]): Int }"
    )
    int32 = {"minimum": -(2**31), "maximum": 2**31 - 1}
    assert found == {
        "i": {"type": "integer", **int32},
        "n": {"type": ["integer", "null"], **int32},
        "f": {"type": "number"},
        "s": {"type": "string"},
        "b": {"type": "boolean"},
        "d": {"type": ["string", "integer"]},
        "l": {"type": "array", "items": {"type": "integer", **int32}},
        "m": {"type": ["array", "null"], "items": {"type": ["array", "null"], "items": {"type": ["string", "null"]}}},
    }


@pytest.mark.requirement("graphql.schemas")
def test_what_has_to_be_given_is_required_unless_the_server_has_a_default() -> None:
    tool = one("type Query { a(b: Int!, c: Int! = 3, d: Int = 4, e: I): Int } input I { x: Int! y: Int! = 1 }")
    assert tool.input_schema["required"] == ["b"]
    assert tool.input_schema["additionalProperties"] is False
    assert tool.input_schema["properties"]["c"]["default"] == 3
    assert tool.input_schema["$defs"]["I"]["required"] == ["x"]
    assert document(tool) == "query A($b: Int!, $c: Int, $d: Int, $e: I) { a(b: $b, c: $c, d: $d, e: $e) }"


@pytest.mark.requirement("graphql.schemas")
def test_input_objects_may_hold_themselves_and_take_nothing_else() -> None:
    tool = one('type Query { a(w: Where): Int } "A filter." input Where { and: [Where!], not: Where, name: String }')
    where = tool.input_schema["$defs"]["Where"]
    assert where["description"] == "A filter."
    assert where["additionalProperties"] is False
    assert where["properties"]["and"] == {"type": ["array", "null"], "items": {"$ref": "#/$defs/Where"}}
    assert where["properties"]["not"] == {"anyOf": [{"$ref": "#/$defs/Where"}, {"type": "null"}]}
    validator = compile_schema(tool.input_schema)
    assert not validator.problems({"w": {"and": [{"not": {"name": "x"}}, {"name": None}]}})
    assert validator.problems({"w": {"and": [{"nope": 1}]}})


@pytest.mark.requirement("graphql.schemas")
def test_of_a_one_of_exactly_one_field_is_given_and_not_null() -> None:
    tool = one("type Query { a(by: By!): Int } input By @oneOf { id: ID, name: String }")
    validator = compile_schema(tool.input_schema)
    assert not validator.problems({"by": {"id": "1"}})
    for wrong in ({}, {"id": None}, {"id": "1", "name": "x"}):
        assert validator.problems({"by": wrong})


@pytest.mark.requirement("graphql.schemas")
def test_enums_have_their_values_with_what_is_said_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    sdl = 'type Query { a(s: S): S! } "Stages." enum S { A "Is won." B C @deprecated(reason: "no") }'
    tool = one(sdl)
    said = {"type": "string", "enum": ["A", "B", "C"], "description": "Stages. B: Is won. C: (deprecated)"}
    assert tool.input_schema["$defs"]["S"] == said
    assert tool.output_schema == said
    monkeypatch.setattr("toolcrib.kinds.graphql.importer.inputs.MAX_ENUM_VALUES", 2)
    assert one(sdl).output_schema == {"type": "string", "description": "A value of the enum S."}
    assert one("type Query { a: S } enum S { A B }").output_schema == {
        "type": ["string", "null"],
        "enum": ["A", "B", None],
    }


@pytest.mark.requirement("graphql.schemas")
@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        ("scalar DateTime", {"type": ["string", "null"], "format": "date-time"}),
        ("scalar UUID", {"type": ["string", "null"], "format": "uuid"}),
        ('scalar When @specifiedBy(url: "https://tools.ietf.org/html/rfc3339")', {"format": "date-time"}),
        ('scalar Who @specifiedBy(url: "https://tools.ietf.org/html/rfc4122")', {"format": "uuid"}),
        ("scalar Long", {"type": ["integer", "string", "null"]}),
        ("scalar JSONObject", {"type": ["object", "null"]}),
        ("scalar JSON", {"type": ["string", "number", "boolean", "object", "array", "null"]}),
    ],
)
def test_custom_scalars_are_open_unless_they_are_well_known(declared: str, expected: JsonSchema) -> None:
    name = declared.split()[1]
    found = properties(f"{declared} type Query {{ a(x: {name}): Int }}")["x"]
    assert expected.items() <= found.items()
    assert found["description"] == f"The scalar {name}, as the server writes it."


@pytest.mark.requirement("graphql.import_losses")
def test_an_open_scalar_is_said_to_be_open() -> None:
    api = imported("scalar Money type Query { a(x: Money, y: Money): Money! b: [Money] }")
    assert losses(api, "query a")["taken as any JSON value"].what == "scalar Money"
    assert [tool.output_schema for tool in api.tools] == [{}, {"type": ["array", "null"], "items": {}}]


@pytest.mark.requirement("graphql.schemas")
def test_descriptions_and_deprecation_are_kept() -> None:
    found = properties('type Query { a("How many." n: Int @deprecated(reason: "use m"), m: Int): Int }')
    assert found["n"]["description"] == "How many. Deprecated: use m"
    assert found["n"]["deprecated"] is True
    assert "description" not in found["m"]


@pytest.mark.requirement("graphql.schemas")
@pytest.mark.parametrize(
    ("declared", "default"),
    [
        ("[Int!] = 1", [1]),
        ("[[Int]] = [[1, null], null]", [[1, None], None]),
        ("Float = 1", 1.0),
        ("ID = 7", "7"),
        ("String = null", None),
        ('String = "a\\n"', "a\n"),
        ("Boolean! = true", True),
        ("E = X", "X"),
        ("I = {n: 1, i: {n: 2}}", {"n": 1, "i": {"n": 2}}),
        ("O = {b: 1}", {"b": 1}),
        ('Any = "x"', "x"),
        ("Any = 7", 7),
    ],
)
def test_defaults_are_said_as_json(declared: str, default: Any) -> None:
    sdl = f"type Query {{ a(x: {declared}): Int }} enum E {{ X }} input I {{ n: Int! i: I }} scalar Any "
    tool = one(f"{sdl} input O @oneOf {{ b: Int c: Int }}")
    assert tool.input_schema["properties"]["x"]["default"] == default
    assert not compile_schema(tool.input_schema).invalid_defaults


@pytest.mark.requirement("graphql.schemas")
@pytest.mark.parametrize(
    "declared",
    ["Any = 9999999999999999999999", "Any = 1e999", "Any = {a: 1}", "Any = [1]", "Date = 7", "Float = 1e999"],
)
def test_a_default_that_json_cannot_say_stays_with_the_server(declared: str) -> None:
    found = properties(f"type Query {{ a(x: {declared}): Int }} scalar Any scalar Date")
    assert "default" not in found["x"]


@pytest.mark.requirement("graphql.schemas")
@pytest.mark.parametrize(
    "declared",
    [
        "Int = 9999999999",
        'Int = "a"',
        "E = Z",
        'E = "X"',
        "I = 3",
        "I = {m: 1}",
        "I = {}",
        "I = {n: null}",
        "O = {b: 1, c: 2}",
        "O = {b: null}",
        "Boolean = 1",
        "[Int!] = [null]",
    ],
)
def test_a_default_that_does_not_fit_is_not_said(declared: str) -> None:
    sdl = f"type Query {{ a(x: {declared}): Int }} enum E {{ X }} input I {{ n: Int! }} scalar Any "
    schema = build_schema(f"{sdl} input O @oneOf {{ b: Int c: Int }}", assume_valid=True)
    found = InputSchemas().of("Query.a", schema.type_map["Query"].fields["a"], Losses())  # type: ignore[attr-defined]
    assert "default" not in found["properties"]["x"]


@pytest.mark.requirement("graphql.import_losses", "graphql.schemas")
def test_input_types_that_are_too_many_are_open_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "MAX_INPUT_TYPES", 2)
    api = imported("type Query { a(x: A): Int } input A { b: B } input B { c: C e: E } input C { n: Int } enum E { X }")
    [tool] = api.tools
    assert tool.input_schema["$defs"]["C"] == {"type": "object", "description": "A C of the server's schema."}
    assert tool.input_schema["$defs"]["E"]["enum"] == ["X"]
    assert "open objects: the arguments need more than 2 input types" in losses(api, "query a")


@pytest.mark.requirement("graphql.schemas")
def test_a_default_that_was_made_in_python_stays_with_the_server() -> None:
    argument = GraphQLArgument(GraphQLString, default_value="x")
    query = GraphQLObjectType("Query", {"a": GraphQLField(GraphQLString, args={"b": argument})})
    api = import_graphql(GraphQLSchema(query), name="api", base_url="https://api.example")
    assert api.tools[0].input_schema["properties"]["b"] == {"type": ["string", "null"]}


# Answers --------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("graphql.selections")
def test_an_answer_is_asked_for_with_names_first_and_within_the_depth() -> None:
    tool = one(
        "type Query { a: A } type A { z: Int name: String b: B! id: ID! } "
        "type B { c: C x: Int } type C { id: ID title: String deep: D more: Int } type D { x: Int }"
    )
    assert document(tool) == "query A { a { id name z b { x c { id title } } } }"
    assert tool.output_schema == {
        "type": ["object", "null"],
        "properties": {
            "id": {"type": ["string", "integer"]},
            "name": {"type": ["string", "null"]},
            "z": {"type": ["integer", "null"]},
            "b": {
                "type": "object",
                "properties": {
                    "x": {"type": ["integer", "null"]},
                    "c": {
                        "type": ["object", "null"],
                        "properties": {
                            "id": {"type": ["string", "integer", "null"]},
                            "title": {"type": ["string", "null"]},
                        },
                        "required": ["id", "title"],
                    },
                },
                "required": ["x", "c"],
            },
        },
        "required": ["id", "name", "z", "b"],
    }


DEEP = (
    "type Query { a: A } type A { id: ID b: B } type B { id: ID n: Int c: C } type C { id: ID d: D } type D { n: Int }"
)


@pytest.mark.requirement("graphql.selections", "graphql.import_losses")
@pytest.mark.parametrize(
    ("depth", "expected"),
    [
        (1, "query A { a { id } }"),
        (2, "query A { a { id b { id } } }"),
        (3, "query A { a { id b { id n c { id } } } }"),
        (4, "query A { a { id b { id n c { id } } } }"),
        (5, "query A { a { id b { id n c { id d { n } } } } }"),
    ],
)
def test_the_depth_is_the_one_that_is_asked_for(depth: int, expected: str) -> None:
    api = imported(DEEP, limits=SelectionLimits(depth=depth))
    assert document(api.tools[0]) == expected
    assert (f"names only, or nothing: deeper than {depth}" in losses(api, "query a")) is (depth < 5)


@pytest.mark.requirement("graphql.selections", "graphql.import_losses")
def test_the_cost_bounds_what_is_asked_for_and_lists_cost_more() -> None:
    fields = " ".join(f"f{number}: Int" for number in range(30))
    sdl = f"type Query {{ a: A }} type A {{ {fields} one: B many: [B!]! }} type B {{ {fields} }}"
    api = imported(sdl, limits=SelectionLimits(cost=66))
    text = document(api.tools[0])
    one_, many = text.split("one {")[1].split("many {")
    assert one_.count("f") == 30
    assert many.count("f") == 2
    places = losses(api, "query a")["not asked for: the cost of 66 is used up"].places
    assert "B.f29" in places
    assert len(places) == 28
    small = imported(sdl, limits=SelectionLimits(cost=30))
    assert "one" not in document(small.tools[0])
    assert "A.one" in losses(small, "query a")["not asked for: the cost of 30 is used up"].places


@pytest.mark.requirement("graphql.selections")
@pytest.mark.parametrize("limits", [{"depth": 0}, {"depth": 11}, {"cost": 0}, {"cost": 5_001}])
def test_limits_out_of_range_are_refused(limits: dict[str, int]) -> None:
    [(name, value)] = limits.items()
    with pytest.raises(InvalidDefinition, match=f"the {name} of a selection is {value}; give one from 1 to"):
        SelectionLimits(**limits)


@pytest.mark.requirement("graphql.selections", "graphql.import_losses")
def test_a_type_inside_of_itself_is_asked_for_its_names() -> None:
    api = imported(
        "type Query { a: A } type A { id: ID n: Int up: A b: B } type B { a: A, all: [N] } type N { n: Int }"
    )
    assert document(api.tools[0]) == "query A { a { id n up { id } b { a { id } } } }"
    assert "A.up" in losses(api, "query a")["names only, or nothing: it leads back to a type around it"].places


@pytest.mark.requirement("graphql.selections", "graphql.import_losses")
def test_fields_that_need_arguments_and_deprecated_ones_are_left_out() -> None:
    api = imported(
        "type Query { a: A } type A { id: ID old: Int @deprecated b(n: Int!): Int c(n: Int! = 1): Int d(n: Int): Int }"
    )
    assert document(api.tools[0]) == "query A { a { id c d } }"
    assert losses(api, "query a")["not asked for: it needs arguments"].places == ("A.b",)
    assert losses(api, "query a")["not asked for: it is deprecated"].places == ("A.old",)


@pytest.mark.requirement("graphql.selections")
def test_an_object_with_nothing_to_ask_for_is_asked_for_its_type() -> None:
    tool = one("type Query { a: A b: [B!] } type A { x(n: Int!): Int } type B { a: A! id: ID }")
    assert document(tool) == "query A { a { __typename } }"
    inside = one("type Query { a: A b: [B!] } type A { x(n: Int!): Int } type B { a: A! id: ID }", "b")
    assert document(inside) == "query B { b { id a { __typename } } }"
    cramped = imported(
        "type Query { b: B! } type A { x(n: Int!): Int } type B { a: A! id: ID }", limits=SelectionLimits(cost=1)
    )
    assert document(cramped.tools[0]) == "query B { b { id } }"


@pytest.mark.requirement("graphql.selections")
def test_unions_are_asked_for_each_of_their_types_with_aliases_where_answers_differ() -> None:
    tool = one(
        "type Query { a: [U!]! } union U = A | B | C "
        "type A { id: ID! n: Int same: S o: O } type B { id: ID! n: String same: S o: P n_B: Int } "
        "type C { x(n: Int!): Int } type S { id: ID } type O { k: Int } type P { k: Int! }"
    )
    assert document(tool) == (
        "query A { a { __typename ... on A { id n same { id } o { k } } "
        "... on B { id n_B: n n_B_2: n_B same { id } o_B: o { k } } } }"
    ).replace("n_B_2: n_B", "n_B_B: n_B")
    assert tool.output_schema is not None
    items = tool.output_schema["items"]
    assert items["required"] == ["__typename"]
    assert list(items["properties"]) == ["__typename", "id", "n", "same", "o", "n_B", "n_B_B", "o_B"]


@pytest.mark.requirement("graphql.selections")
def test_interfaces_are_asked_for_what_all_have_and_what_each_adds() -> None:
    tool = one(
        "type Query { a: I } interface I { id: ID! n: Int up: I } "
        "type A implements I { id: ID! n: Int! up: A x: Int } type B implements I { id: ID! n: Int up: I x: String }"
    )
    assert document(tool) == ("query A { a { __typename id n up { id } ... on A { x } ... on B { x_B: x } } }")
    assert tool.output_schema is not None
    assert tool.output_schema["required"] == ["__typename", "id", "n", "up"]


@pytest.mark.requirement("graphql.selections", "graphql.import_losses")
def test_only_some_possible_types_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selections, "MAX_POSSIBLE_TYPES", 1)
    api = imported("type Query { a: U } union U = A | B type A { n: Int } type B { n: Int }")
    assert document(api.tools[0]) == "query A { a { __typename ... on A { n } } }"
    assert losses(api, "query a")["not asked for: there are too many possible types"].places == ("U as B",)


@pytest.mark.requirement("graphql.selections")
def test_a_union_that_cannot_be_paid_for_is_not_asked_for() -> None:
    sdl = "type Query { a: A! } type A { id: ID us: [[U]] } union U = B type B { n: Int }"
    assert document(one(sdl, limits=SelectionLimits(cost=5))) == "query A { a { id } }"
    assert document(one(sdl, limits=SelectionLimits(cost=10))) == "query A { a { id us { __typename } } }"
    assert document(
        one("type Query { u: U } union U = A type A { id: ID u: U }", "u", limits=SelectionLimits(depth=2))
    ) == ("query U { u { __typename ... on A { id } } }")


PAGES = (
    "type Query { a(first: Int, after: String): XConnection! } "
    "type PageInfo { hasNextPage: Boolean! endCursor: String } "
    "type X { id: ID n: Int kids(first: Int): YConnection other(max: Int): YConnection } type Y { id: ID n: Int x: X } "
)
EDGES = (
    "edges: [{0}Edge] pageInfo: PageInfo! totalCount: Int {1} }} "
    "type {0}Edge {{ cursor: String! role: Int node: {0} }} "
)


@pytest.mark.requirement("graphql.selections", "graphql.import_losses")
def test_connections_take_no_level_and_nested_ones_ask_for_the_first() -> None:
    edges = "".join(f"type {name}Connection {{ {EDGES.format(name, '')}" for name in ("X", "Y"))
    page = "pageInfo { hasNextPage endCursor }"
    api = imported(PAGES + edges)
    inner = f"totalCount edges {{ cursor role node {{ id n x {{ id }} }} }} {page}"
    assert document(api.tools[0]) == (
        "query A($first: Int, $after: String) { a(first: $first, after: $after) { totalCount edges { cursor role "
        f"node {{ id n kids(first: 10) {{ {inner} }} other {{ {inner} }} }} }} {page} }} }}"
    )
    assert losses(api, "query a")["the first 10 only"].places == ("X.kids",)
    shallow = imported(PAGES + edges, limits=SelectionLimits(depth=2))
    assert "kids(first: 10) { totalCount }" in document(shallow.tools[0])


@pytest.mark.requirement("graphql.selections")
def test_of_a_connection_with_nodes_the_nodes_are_asked_for() -> None:
    nodes = "".join(
        f"type {name}Connection {{ nodes: [{name}!] {EDGES.format(name, 'extra: Extra')}" for name in ("X", "Y")
    )
    api = imported(PAGES + nodes + "type Extra { n: Int }", limits=SelectionLimits(depth=2))
    assert document(api.tools[0]).startswith(
        "query A($first: Int, $after: String) { a(first: $first, after: $after) { totalCount nodes { id n "
        "kids(first: 10) { totalCount } other { totalCount } } pageInfo { hasNextPage endCursor }"
    )
    assert "not asked for: the nodes are asked for directly" in losses(api, "query a")


@pytest.mark.requirement("graphql.selections")
@pytest.mark.parametrize(
    ("connection", "expected"),
    [
        ("{ pageInfo: P! edges: [Int] }", "edges pageInfo { n }"),
        ("{ pageInfo: P! edges: [E] } type E { id: ID }", "pageInfo { n } edges { id }"),
        ("{ pageInfo: P! edges: [E] } type E { node(n: Int!): P id: ID }", "pageInfo { n } edges { id }"),
        ("{ pageInfo: P! edges: [E] } type E { node: Int }", "pageInfo { n } edges { node }"),
        ("{ pageInfo(n: Int!): P! nodes(n: Int!): [E] id: ID } type E { node: Int }", "id"),
        ("{ nodes: [E] } type E { id: ID }", "nodes { id }"),
    ],
)
def test_what_only_looks_like_a_connection_is_asked_for_like_any_other_type(connection: str, expected: str) -> None:
    sdl = f"type Query {{ a: AConnection }} type P {{ n: Int }} type AConnection {connection}"
    assert document(one(sdl)) == f"query A {{ a {{ {expected} }} }}"


@pytest.mark.requirement("graphql.selections")
def test_the_work_for_one_answer_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selections, "MAX_CANDIDATES", 4)
    monkeypatch.setattr(selections, "MAX_PLACES", 1)
    api = imported("type Query { a: A } type A { b: B c: B d: B } type B { id: ID }")
    assert document(api.tools[0]) == "query A { a { b { id } c { __typename } d { __typename } } }"
    assert losses(api, "query a")["not asked for: the cost of 200 is used up"].places == ("A.c",)

"""Schemas are read from SDL and from introspection; what is none, or too large, is refused with the reason."""

import json
from typing import Any

import pytest
from graphql import build_schema, introspection_from_schema, print_schema

from toolcrib.contracts import InvalidDefinition
from toolcrib.kinds.graphql.importer import schema as reading
from toolcrib.kinds.graphql.importer.importer import import_graphql
from toolcrib.kinds.graphql.importer.schema import read_schema

SDL = "type Query { a(b: [Int!]! = [1]): String } enum E { X Y } input I { e: E }"


def introspection(sdl: str = SDL) -> dict[str, Any]:
    """What a server of this schema says."""
    return dict(introspection_from_schema(build_schema(sdl)))


@pytest.mark.requirement("graphql.import_schema")
@pytest.mark.parametrize(
    ("source", "form"),
    [
        (SDL, "GraphQL SDL"),
        ("\ufeff" + SDL, "GraphQL SDL"),
        (SDL.encode(), "GraphQL SDL"),
        (b"\xef\xbb\xbf" + SDL.encode(), "GraphQL SDL"),
        (introspection(), "GraphQL introspection"),
        ({"data": introspection()}, "GraphQL introspection"),
        ("  " + json.dumps({"data": introspection()}), "GraphQL introspection"),
    ],
)
def test_a_schema_is_read_from_every_form(source: Any, form: str) -> None:
    found = read_schema(source)
    assert found.form == form
    assert print_schema(found.schema) == print_schema(build_schema(SDL))


@pytest.mark.requirement("graphql.import_schema")
def test_directives_that_nobody_defines_are_left_aside() -> None:
    sdl = 'type Query @key(fields: "a") @key(fields: "b") { a: String @auth(roles: [ADMIN]) }'
    assert "a" in read_schema(sdl).schema.type_map["Query"].fields  # type: ignore[attr-defined]


NESTED = 5_000


REFUSED: list[tuple[Any, str]] = [
    ("", "no SDL that can be read"),
    ("type Query {", "no SDL that can be read: Syntax Error: .* in line 1; correct it"),
    ("hello", "no SDL that can be read"),
    ("\ud800", "no SDL that can be read"),
    (b"\xff\xfe", "no UTF-8 text"),
    ("{", "begins as JSON does and is invalid"),
    ("{}", "holds no '__schema'"),
    ({"data": None}, "holds no '__schema'"),
    ({"data": [1]}, "holds no '__schema'"),
    ({"__schema": 3}, "holds no '__schema'"),
    ({"__schema": {}}, "not valid"),
    ({"__schema": {"types": 3}}, "not valid"),
    ({"__schema": {"types": [3], "queryType": {"name": "Q"}}}, "not valid"),
    ({"__schema": {"types": [{"kind": "OBJECT", "name": []}], "queryType": {"name": "Q"}}}, "not valid"),
    ({"__schema": {"types": [], "queryType": {"name": "Query"}}}, "unknown type: Query"),
    ("type Query { a: Unknown }", "Unknown type 'Unknown'"),
    ("type Query { a: String } type Query { b: String }", "There can be only one type named 'Query'"),
    ("type Query { a: I } input I { b: Int }", "must be Output Type"),
    ("type Query { a(i: I): Int } input I { i: I! }", "cannot be provided a finite value"),
    ("type Query { __a: Int }", "must not begin with"),
    ("query { a }", "not valid"),
    ("type Nothing { a: Int }", "Query root type must be provided"),
    ("type Query { a: X b: Y }", r"not valid: Unknown type 'X'.* \(and 1 more\)"),
    ("type Query { a(b: Int = " + "[" * NESTED + "]" * NESTED + "): Int }", "nested too deeply"),
    ("type Query { a: " + "[" * NESTED + "Int" + "]" * NESTED + " }", "nested too deeply"),
    ("type Query { a: " + "[" * 13 + "Int" + "]" * 13 + " }", "13 lists .* 12 is the most"),
    ("type Query { a(b: " + "[" * 13 + "Int" + "]" * 13 + "): Int }", "13 lists .* 12 is the most"),
    ("type Query { " + "a" * 201 + ": Int }", "201 characters and 200 is the most"),
    ("type Query { a: Int } enum E { " + "a" * 201 + " }", "201 characters and 200 is the most"),
]


@pytest.mark.requirement("graphql.import_refused")
@pytest.mark.parametrize(("source", "message"), REFUSED)
def test_what_is_no_schema_is_refused_with_the_reason(source: Any, message: str) -> None:
    with pytest.raises(InvalidDefinition, match=message):
        read_schema(source)


@pytest.mark.requirement("graphql.import_refused")
def test_introspection_that_is_nested_or_named_with_malice_is_refused() -> None:
    wrapped: Any = {"kind": "SCALAR", "name": "Int"}
    for _ in range(NESTED):
        wrapped = {"kind": "LIST", "ofType": wrapped}
    found = introspection()
    query = next(each for each in found["__schema"]["types"] if each["name"] == "Query")
    query["fields"][0]["type"] = wrapped
    with pytest.raises(InvalidDefinition, match="nests 65 levels and 64 is the most"):
        read_schema(found)
    query["fields"][0]["type"] = {"kind": "LIST"}
    with pytest.raises(InvalidDefinition, match=r"not valid: .*Decorated type"):
        read_schema(found)
    query["fields"][0]["type"] = {"kind": "SCALAR", "name": "Int"}
    query["fields"][0]["name"] = "a) { b } #"
    with pytest.raises(InvalidDefinition, match="not valid"):
        read_schema(found)
    query["fields"][0]["name"] = "a"
    query["fields"][0]["args"][0]["defaultValue"] = "[" * NESTED
    with pytest.raises(InvalidDefinition, match="nested too deeply"):
        read_schema(found)
    query["fields"][0]["args"][0]["defaultValue"] = "}"
    with pytest.raises(InvalidDefinition, match=r"not valid: .*Syntax Error: Unexpected '}'"):
        read_schema(found)


@pytest.mark.requirement("graphql.import_refused")
@pytest.mark.parametrize(
    ("limit", "message"),
    [
        ("MAX_BYTES", "the schema has .* bytes and 1 is the most; give an SDL file with the part that you need"),
        ("MAX_TYPES", "types and 1 is the most"),
        ("MAX_FIELDS", "more than 1 fields and arguments and 1 is the most"),
        ("MAX_OPERATIONS", "the query and mutation types have 2 fields and 1 is the most"),
        ("MAX_TOKENS", "no SDL that can be read"),
        ("MAX_COMMENTS", "no SDL that can be read"),
    ],
)
def test_every_limit_is_named(monkeypatch: pytest.MonkeyPatch, limit: str, message: str) -> None:
    monkeypatch.setattr(reading, limit, 1)
    with pytest.raises(InvalidDefinition, match=message):
        read_schema("# one\n# two\ntype Query { a: String b: Int }")


@pytest.mark.requirement("graphql.import_refused")
@pytest.mark.parametrize(("limit", "message"), [("MAX_NODES", "more than 1 values"), ("MAX_TYPES", "types and 1 is")])
def test_introspection_is_bounded_before_it_is_read(monkeypatch: pytest.MonkeyPatch, limit: str, message: str) -> None:
    monkeypatch.setattr(reading, limit, 1)
    with pytest.raises(InvalidDefinition, match=message):
        read_schema(introspection())


@pytest.mark.requirement("graphql.import_refused")
def test_a_schema_that_was_made_in_python_is_checked_too() -> None:
    with pytest.raises(InvalidDefinition, match="Query root type must be provided"):
        import_graphql(build_schema("type A { b: Int }"), name="x", base_url="https://x.example")

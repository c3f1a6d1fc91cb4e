"""Random GraphQL schemas: operations are valid, arguments that fit can be sent, and answers fit what was promised."""

from random import Random
from typing import Any, cast

import pytest
from graphql import (
    GraphQLEnumType,
    GraphQLInterfaceType,
    GraphQLObjectType,
    GraphQLSchema,
    GraphQLUnionType,
    build_schema,
    introspection_from_schema,
    is_abstract_type,
    parse,
    validate,
    validate_schema,
)
from graphql import graphql_sync as _execute  # pyright: ignore[reportUnknownVariableType] - generic without end
from graphql.execution.values import get_variable_values
from hypothesis import given, settings
from hypothesis import strategies as st

from toolcrib.contracts import JsonObject, JsonSchema, ToolDefinition
from toolcrib.core.registry import compile_schema
from toolcrib.kinds.graphql.importer.importer import import_graphql
from toolcrib.kinds.graphql.importer.inputs import inner_of, is_list, is_non_null
from toolcrib.kinds.graphql.importer.schema import read_schema
from toolcrib.kinds.graphql.importer.selections import SelectionLimits
from toolcrib.kinds.graphql.shape import GraphqlImplementation

pytestmark = pytest.mark.requirement("graphql.properties")

SCALARS = ("Int", "Float", "String", "Boolean", "ID", "DateTime", "JSON")
FIELDS = ("id", "name", "a", "b", "c", "nodes", "edges", "node", "pageInfo", "a_T1", "b_T2")
EXECUTE = cast("Any", _execute)
seeds = st.integers(0, 2**32)


class Author:
    """Writes a schema by chance."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.objects = [f"T{number}" for number in range(chance.randint(1, 4))]
        self.objects += [name for name in ("T1Connection", "T0Edge") if chance.random() < 0.4]
        self.interfaces = ["I0"] * (chance.random() < 0.6)
        self.unions = ["U0"] * (chance.random() < 0.6)
        self.inputs = [f"In{number}" for number in range(chance.randint(1, 3))]

    def write(self) -> str:
        """The SDL."""
        parts = ["scalar DateTime scalar JSON enum E { X Y Z }"]
        shared = {name: self.output() for name in self.names(3)}
        parts += [f"interface {name} {{ {self.fields(shared, shared)} }}" for name in self.interfaces]
        for name in self.objects:
            implements = bool(self.interfaces) and self.chance.random() < 0.6
            own = {field: self.output() for field in self.names(5)} | (shared if implements else {})
            head = f"type {name} implements I0" if implements else f"type {name}"
            parts.append(f"{head} {{ {self.fields(own, shared if implements else {})} }}")
        parts += [f"union {name} = {' | '.join(self.objects)}" for name in self.unions]
        for name in self.inputs:
            one_of = self.chance.random() < 0.3
            members = " ".join(f"{field}: {self.input(nullable=one_of)}" for field in ("x", "y", "z"))
            parts.append(f"input {name}{' @oneOf' * one_of} {{ {members} }}")
        roots = [f"f{number}{self.arguments()}: {self.output()}" for number in range(3)]
        parts += [f"type Query {{ {' '.join(roots)} }} type Mutation {{ {' '.join(roots)} }}"]
        return "\n".join(parts)

    def names(self, most: int) -> list[str]:
        """Some names of fields."""
        return self.chance.sample(FIELDS, self.chance.randint(1, most))

    def wrapped(self, name: str) -> str:
        """A type with lists and marks."""
        for _ in range(self.chance.choice([0, 0, 0, 1, 1, 2])):
            name = f"[{name}{'!' * (self.chance.random() < 0.3)}]"
        return name + "!" * (self.chance.random() < 0.4)

    def output(self) -> str:
        """The type of a field."""
        composite = [*self.objects, *self.interfaces, *self.unions]
        return self.wrapped(self.chance.choice([*SCALARS, "E", *composite, *composite]))

    def input(self, *, nullable: bool = False) -> str:
        """The type of an argument; input objects may be null, so that every value is finite."""
        name = self.chance.choice([*SCALARS, "E", *self.inputs])
        if nullable or name in self.inputs:
            return name
        default = self.chance.choice([" = 1", " = [1]", ""]) if name == "Int" else ""
        wrapped = self.wrapped(name)
        return wrapped + (default if wrapped in {"Int", "Int!"} and "[" not in default else "")

    def arguments(self) -> str:
        """Arguments of a root field."""
        names = ("first", "p", "q")[: self.chance.randint(0, 3)]
        return f"({', '.join(f'{name}: {self.input()}' for name in names)})" if names else ""

    def fields(self, own: dict[str, str], shared: dict[str, str]) -> str:
        """Members of a type."""
        written: list[str] = []
        for name, type_ in own.items():
            extra = "" if name in shared else self.chance.choice(["", "", "(n: Int!)", "(n: Int)", "(first: Int)"])
            written.append(f"{name}{extra}: {type_}")
        return " ".join(written)


class Answers:
    """Answers whatever a schema promises."""

    def __init__(self, schema: GraphQLSchema, chance: Random) -> None:
        self.schema = schema
        self.chance = chance

    def resolve(self, _source: Any, info: Any, **_arguments: Any) -> Any:
        """A value of a field's type."""
        return self.value(info.return_type)

    def value(self, type_: Any) -> Any:
        """A value of a type."""
        if is_non_null(type_):
            return self.present(inner_of(type_))
        return None if self.chance.random() < 0.2 else self.present(type_)

    def present(self, type_: Any) -> Any:
        """A value that is not null."""
        if is_list(type_):
            return [self.value(inner_of(type_)) for _ in range(self.chance.randint(0, 2))]
        if isinstance(type_, GraphQLEnumType):
            return self.chance.choice(list(type_.values))
        if is_abstract_type(type_):
            return {"__typename": self.chance.choice(self.schema.get_possible_types(type_)).name}
        if isinstance(type_, GraphQLObjectType):
            return {}
        return {
            "Int": self.chance.randint(-(2**31), 2**31 - 1),
            "Float": self.chance.random(),
            "Boolean": self.chance.random() < 0.5,
            "DateTime": self.chance.choice(["2026-01-31T12:00:00Z", 7]),
            "JSON": self.chance.choice([{"a": [1]}, "x", 1.5, [None]]),
        }.get(type_.name, self.chance.choice(["", "x"]))


def type_name_of(value: JsonObject, *_: Any) -> str:
    """The type of an interface's or a union's value."""
    return value["__typename"]


def usable(sdl: str) -> GraphQLSchema | None:
    """The schema, if every interface has a type and it is valid."""
    try:
        schema = build_schema(sdl)
    except TypeError:
        return None
    abstract = [each for each in schema.type_map.values() if isinstance(each, GraphQLInterfaceType | GraphQLUnionType)]
    if validate_schema(schema):
        return None
    return schema if all(schema.get_possible_types(each) for each in abstract) else None


def random_value(schema: JsonSchema, definitions: JsonObject, chance: Random, depth: int = 0) -> Any:
    """A value that fits one of our input schemas."""
    if "$ref" in schema:
        return random_value(definitions[schema["$ref"].rpartition("/")[2]], definitions, chance, depth)
    if "anyOf" in schema:
        chosen = schema["anyOf"][1] if depth > 3 else chance.choice(schema["anyOf"])
        return random_value(chosen, definitions, chance, depth)
    if "enum" in schema:
        return chance.choice(schema["enum"])
    said: Any = schema["type"]
    kinds: list[str] = [said] if isinstance(said, str) else said
    kind = "null" if depth > 3 and "null" in kinds else chance.choice(kinds)
    match kind:
        case "object":
            return random_object(schema, definitions, chance, depth + 1)
        case "array":
            count = 0 if depth > 3 else chance.randint(0, 2)
            items = schema.get("items", {"type": "string"})
            return [random_value(items, definitions, chance, depth) for _ in range(count)]
        case "integer":
            return chance.choice([0, 1, -7, schema.get("maximum", 3), schema.get("minimum", 3)])
        case "number":
            return chance.choice([0, 1.5, -1e300])
        case "boolean":
            return chance.random() < 0.5
        case "string":
            return chance.choice(["", "é", '"}'])
        case _:
            return None


def random_object(schema: JsonSchema, definitions: JsonObject, chance: Random, depth: int = 0) -> JsonObject:
    """An object that fits."""
    names = list(schema.get("properties", {}))
    chosen = [name for name in names if name in schema.get("required", ()) or chance.random() < 0.5]
    if "minProperties" in schema:
        chosen = [chance.choice(names)]
    return {name: random_value(schema["properties"][name], definitions, chance, depth) for name in chosen}


def operation(tool: ToolDefinition) -> GraphqlImplementation:
    """What a tool sends."""
    assert isinstance(tool.implementation, GraphqlImplementation)
    return tool.implementation


@given(seeds, st.integers(1, 5), st.sampled_from([1, 7, 40, 200, 2_000]))
@settings(max_examples=150, deadline=None)
def test_every_operation_is_valid_and_what_fits_goes_there_and_comes_back(seed: int, depth: int, cost: int) -> None:
    chance = Random(seed)
    schema = usable(Author(chance).write())
    if schema is None:
        return
    told = read_schema(dict(introspection_from_schema(schema, input_value_deprecation=True, one_of=True))).schema
    limits = SelectionLimits(depth=depth, cost=cost)
    imported = import_graphql(told, name="api", base_url="https://api.example", limits=limits)
    assert len(imported.tools) == 6, imported.report
    answers = Answers(schema, chance)
    for tool in imported.tools:
        sent = operation(tool)
        document = parse(sent.document)
        assert validate(schema, document) == []
        arguments = random_object(tool.input_schema, tool.input_schema.get("$defs", {}), chance)
        validator = compile_schema(tool.input_schema)
        assert not validator.problems(arguments)
        assert not validator.invalid_defaults
        parsed: Any = document.definitions[0]
        coerced = get_variable_values(schema, parsed.variable_definitions or [], arguments)
        assert not isinstance(coerced, list), coerced
        result = EXECUTE(
            schema,
            sent.document,
            variable_values=arguments,
            operation_name=sent.operation_name,
            field_resolver=answers.resolve,
            type_resolver=type_name_of,
        )
        assert result.errors is None
        assert result.data is not None
        assert tool.output_schema is not None
        output = result.data[sent.output_key or ""]
        assert not compile_schema(tool.output_schema).problems(output)

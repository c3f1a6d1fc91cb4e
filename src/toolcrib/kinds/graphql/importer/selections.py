"""Chooses what a tool selects of a root field, within limits of depth and cost, and makes its output schema.

The selection is built breadth first. Of each type it takes identifying fields (`id`, `name`) first, then other plain
values, then nested objects. Objects at the last level, and objects of a type that already contains them, get
identifying fields only. Deprecated fields and fields with required arguments are left out.

A Relay connection is selected with its nodes, page information and other plain values, and adds no level of depth.
Nested connections are limited to their first nodes, because many servers require a limit. An interface or union is
selected with `__typename` and with fragments for each possible type; fields that conflict between types get an alias.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final, Literal, TypeAlias

from graphql import (
    GraphQLEnumType,
    GraphQLField,
    GraphQLInterfaceType,
    GraphQLNamedType,
    GraphQLObjectType,
    GraphQLScalarType,
    GraphQLSchema,
    is_required_argument,
)

from toolcrib.contracts import InvalidDefinition, JsonSchema
from toolcrib.kinds.graphql.importer.inputs import (
    enum_schema,
    inner_of,
    is_list,
    is_non_null,
    is_plain,
    named_type_of,
    note,
    nullable,
    output_scalar,
    type_of,
)

MAX_DEPTH: Final = 10
MAX_COST: Final = 5_000
MAX_CANDIDATES: Final = 20_000
"""Maximum number of fields that are considered for one selection."""
MAX_POSSIBLE_TYPES: Final = 12
"""Maximum number of types of an interface or a union in a selection."""
MAX_PLACES: Final = 100
"""Fields that the report names for one reason."""
NESTED_NODES: Final = 10
"""Number of nodes that are requested of a nested connection."""

_LIST_WEIGHT: Final = 3
_TYPE_NAME: Final = "__typename"
_NAMES: Final = ("id", "key", "code", "slug", "name", "title")
"""What names a thing."""
_INDENT: Final = "  "

Why: TypeAlias = Literal["arguments", "cost", "cycle", "deprecated", "depth", "first", "paging", "types"]
"""Why a field is not selected, or only in part."""


@dataclass(frozen=True, slots=True)
class SelectionLimits:
    """The limits of a selection.

    Raises:
        InvalidDefinition: A limit is out of range.
    """

    depth: int = 3
    """Levels of objects, the root field's own included; connections take none."""
    cost: int = 200
    """Maximum number of fields; each counts three times inside a list, nine times inside a list in a list."""

    def __post_init__(self) -> None:
        for name, value, most in (("depth", self.depth, MAX_DEPTH), ("cost", self.cost, MAX_COST)):
            if not 1 <= value <= most:
                raise InvalidDefinition(f"the {name} of a selection is {value}; give one from 1 to {most}")


@dataclass(frozen=True, slots=True)
class Selection:
    """The selection of a root field."""

    text: str
    """The selection set with its braces; empty for a field that is a plain value."""
    schema: JsonSchema
    """Of what comes back."""
    cuts: Mapping[Why, Sequence[str]]
    """The fields that are left out or shortened, as `Type.field`, by reason."""


@dataclass(slots=True)
class _Node:
    """One selected field, with its own selection."""

    name: str
    type: Any
    description: str | None = None
    arguments: str = ""
    place: str = ""
    depth: int = 1
    weight: int = 1
    path: frozenset[str] = frozenset()
    """Names of the types around it."""
    names_only: bool = False
    common: list["_Node"] = field(default_factory=list["_Node"])
    by_type: dict[str, list["_Node"]] = field(default_factory=dict[str, list["_Node"]])
    """What only some possible types have."""
    has_type_name: bool = False

    @property
    def named(self) -> Any:
        """Its type without lists and non-null marks."""
        return named_type_of(self)

    @property
    def is_empty(self) -> bool:
        """Whether its selection is empty."""
        return not (self.common or any(self.by_type.values()))


class Selections:
    """Makes the selections of one schema; the selection of a type is reused.

    Args:
        schema: The schema.
        limits: The limits of each selection.
    """

    def __init__(self, schema: GraphQLSchema, limits: SelectionLimits) -> None:
        self._schema = schema
        self._limits = limits
        self._known: dict[str, _Growth] = {}

    def of(self, root: GraphQLField) -> Selection:
        """The selection of a root field."""
        named = named_type_of(root)
        if named.name not in self._known:
            self._known[named.name] = _Growth(self._schema, self._limits, type_of(root))
        grown = self._known[named.name]
        written = _Writer().write(grown.root)
        return Selection(written.text, _wrapped(type_of(root), written.schema), grown.cuts)


class _Growth:
    """The growth of one selection."""

    def __init__(self, schema: GraphQLSchema, limits: SelectionLimits, type_: Any) -> None:
        self._schema = schema
        self._limits = limits
        self._left = limits.cost
        self._candidates = 0
        self._found: dict[Why, dict[str, None]] = {}
        self._waiting: deque[_Node] = deque()
        self.root = _Node("", type_)
        if not is_plain(self.root):
            self._grow()

    @property
    def cuts(self) -> dict[Why, tuple[str, ...]]:
        """What was left out or shortened."""
        return {why: tuple(places) for why, places in self._found.items()}

    def _grow(self) -> None:
        self._waiting.append(self.root)
        while self._waiting:
            self._fill(self._waiting.popleft())
        self._prune(self.root)
        if self.root.is_empty:
            self.root.has_type_name = True

    def _fill(self, node: _Node) -> None:
        if self._candidates >= MAX_CANDIDATES or node.weight > self._left:
            self._cut("cost", node.place)
            return
        named = node.named
        if isinstance(named, GraphQLObjectType):
            found = _connection_fields(named)
            if found is None:
                self._take(node, named, node.common, named.fields)
            else:
                self._take_connection(node, named, found)
            return
        if not node.names_only and self._pay(node.weight):
            node.has_type_name = True
        common: Mapping[str, GraphQLField] = named.fields if isinstance(named, GraphQLInterfaceType) else {}
        self._take(node, named, node.common, common)
        if node.names_only:
            return
        possible = list(self._schema.get_possible_types(named))
        for left_out in possible[MAX_POSSIBLE_TYPES:]:
            self._cut("types", f"{named.name} as {left_out.name}")
        for each in possible[:MAX_POSSIBLE_TYPES]:
            own = {name: member for name, member in each.fields.items() if name not in common}
            self._take(node, each, node.by_type.setdefault(each.name, []), own)

    def _take(
        self,
        node: _Node,
        owner: GraphQLNamedType,
        into: list[_Node],
        members: Mapping[str, GraphQLField],
        *,
        names_only: bool | None = None,
    ) -> None:
        """Ask for the plain values of a type, and let its objects wait."""
        is_short = node.names_only if names_only is None else names_only
        later: list[_Node] = []
        known = [name for name in _NAMES if name in members]
        for name in known if is_short else chain(known, (name for name in members if name not in _NAMES)):
            self._candidates += 1
            member, place = members[name], f"{owner.name}.{name}"
            if member.deprecation_reason is not None:
                self._cut("deprecated", place)
            elif not _is_free(member):
                self._cut("arguments", place)
            elif is_plain(member):
                self._add(node, into, name, member, place)
            elif not is_short:
                later += self._object(node, owner, name, member)
        into += later
        self._waiting += later

    def _add(self, node: _Node, into: list[_Node], name: str, member: GraphQLField, place: str) -> None:
        if self._pay(node.weight):
            into.append(_Node(name, type_of(member), member.description, place=place))
        else:
            self._cut("cost", place)

    def _object(self, node: _Node, owner: GraphQLNamedType, name: str, member: GraphQLField) -> Iterator[_Node]:
        """The node of an object that may be selected; null if it is too deep, or the limit is reached."""
        place, named = f"{owner.name}.{name}", named_type_of(member)
        depth = node.depth + 1
        path = node.path | {node.named.name, owner.name}
        if depth > self._limits.depth:
            self._cut("depth", place)
            return
        if self._left <= 0:
            self._cut("cost", place)
            return
        is_last, is_cycle = depth == self._limits.depth, named.name in path
        connection = _connection_fields(named) if isinstance(named, GraphQLObjectType) else None
        if is_last or is_cycle:
            self._cut("cycle" if is_cycle else "depth", place)
        arguments = ""
        if connection is not None and _takes_first(member):
            arguments = f"(first: {NESTED_NODES})"
            if not (is_last or is_cycle):
                self._cut("first", place)
        yield _Node(
            name,
            type_of(member),
            member.description,
            arguments,
            place,
            depth,
            node.weight * _weight(type_of(member)),
            path,
            names_only=is_last or is_cycle,
        )

    def _take_connection(self, node: _Node, named: GraphQLObjectType, connection: tuple[str, ...]) -> None:
        """Ask a connection for its nodes, its page and its plain values; a short one for these values only."""
        chosen = connection[0]
        plain = {name: member for name, member in named.fields.items() if is_plain(member)}
        is_short = node.names_only
        self._take(node, named, node.common, plain, names_only=False)
        for name, member in named.fields.items():
            place = f"{named.name}.{name}"
            if name in plain:
                continue
            if is_short:
                self._cut("depth", place)
            elif name in connection[1:]:
                self._cut("paging", place)
            elif name in (chosen, "pageInfo") and _is_free(member):
                self._enter(node, named, name, member)
            else:
                self._take(node, named, node.common, {name: member})

    def _enter(self, node: _Node, owner: GraphQLNamedType, name: str, member: GraphQLField) -> None:
        """Let a part of a connection wait, on the same level as the connection."""
        path = node.path | {owner.name}
        weight = node.weight * _weight(type_of(member))
        inside = _Node(name, type_of(member), member.description, "", f"{owner.name}.{name}", node.depth, weight, path)
        edge = named_type_of(member)
        if name == "edges" and isinstance(edge, GraphQLObjectType):
            self._enter_edge(inside, edge)
        else:
            inside.names_only = edge.name in path
            self._waiting.append(inside)
        node.common.append(inside)

    def _enter_edge(self, edges: _Node, edge: GraphQLObjectType) -> None:
        plain = {name: member for name, member in edge.fields.items() if is_plain(member)}
        self._take(edges, edge, edges.common, plain)
        member = edge.fields["node"]
        if not is_plain(member):
            self._enter(edges, edge, "node", member)

    def _prune(self, node: _Node) -> None:
        """Remove objects with an empty selection."""
        for into in (node.common, *node.by_type.values()):
            kept: list[_Node] = []
            for child in into:
                if not is_plain(child):
                    self._prune(child)
                    if child.is_empty and not child.has_type_name and not self._has_only_type_name(child):
                        if not child.names_only:
                            self._cut("cost", child.place)
                        continue
                kept.append(child)
            into[:] = kept

    def _has_only_type_name(self, node: _Node) -> bool:
        """Whether only the type name of an object can be selected, which it then is."""
        if node.names_only or not self._pay(node.weight):
            return False
        node.has_type_name = True
        return True

    def _pay(self, weight: int) -> bool:
        if weight > self._left:
            return False
        self._left -= weight
        return True

    def _cut(self, why: Why, place: str) -> None:
        places = self._found.setdefault(why, {})
        if len(places) < MAX_PLACES:
            places[place] = None


@dataclass(frozen=True, slots=True)
class _Written:
    text: str
    schema: JsonSchema


@dataclass(frozen=True, slots=True)
class _KeyUse:
    """Who answers under a key."""

    name: str
    signature: str
    types: set[str] = field(default_factory=set[str])
    """The possible types with it; empty for what all have."""


class _Writer:
    """Writes a selection as text, and what comes back as a schema."""

    def write(self, node: _Node, level: int = 1) -> _Written:
        """The selection below a node."""
        named = node.named
        if isinstance(named, GraphQLScalarType):
            return _Written("", output_scalar(named))
        if isinstance(named, GraphQLEnumType):
            return _Written("", enum_schema(named))
        lines: list[str] = []
        properties: JsonSchema = {}
        key_uses: dict[str, _KeyUse] = {}
        if node.has_type_name:
            lines.append(_TYPE_NAME)
            properties[_TYPE_NAME] = {"type": "string"}
            key_uses[_TYPE_NAME] = _KeyUse(_TYPE_NAME, "")
        for child in node.common:
            written = self.write(child, level + 1)
            key_uses[child.name] = _KeyUse(child.name, "")
            lines.append(f"{child.name}{child.arguments}{written.text}")
            properties[child.name] = _described(child, written)
        required = list(properties)
        for type_name, children in node.by_type.items():
            inside: list[str] = []
            for child in children:
                written = self.write(child, level + 2)
                key = _key(key_uses, type_name, child, written)
                alias = "" if key == child.name else f"{key}: "
                inside.append(f"{alias}{child.name}{child.arguments}{written.text}")
                properties.setdefault(key, _described(child, written))
            if inside:
                lines.append(f"... on {type_name}{_braces(inside, level + 1)}")
        schema: JsonSchema = {"type": "object", "properties": properties, "required": required}
        return _Written(_braces(lines, level), schema)


def _key(key_uses: dict[str, _KeyUse], type_name: str, child: _Node, written: _Written) -> str:
    """The key under which a field of one possible type answers: its name, or an alias that nothing else has."""
    signature = f"{child.type} {child.arguments} {written.text}"
    key, number = child.name, 1
    while True:
        known = key_uses.get(key)
        if known is None:
            key_uses[key] = _KeyUse(child.name, signature, {type_name})
            return key
        fits = (known.name, known.signature) == (child.name, signature)
        if fits and known.types and type_name not in known.types:
            known.types.add(type_name)
            return key
        key = f"{child.name}_{type_name}" + (f"_{number}" if number > 1 else "")
        number += 1


def _braces(lines: Sequence[str], level: int) -> str:
    inner, outer = _INDENT * (level + 1), _INDENT * level
    return " {\n" + "".join(f"{inner}{line}\n" for line in lines) + f"{outer}}}"


def _described(child: _Node, written: _Written) -> JsonSchema:
    schema = _wrapped(child.type, written.schema)
    text = note(child.description)
    return {**schema, "description": text} if text else schema


def _wrapped(type_: Any, schema: JsonSchema) -> JsonSchema:
    """The schema of a type with its lists and its null."""
    if is_non_null(type_):
        return _present(inner_of(type_), schema)
    return nullable(_present(type_, schema))


def _present(type_: Any, schema: JsonSchema) -> JsonSchema:
    if is_list(type_):
        return {"type": "array", "items": _wrapped(inner_of(type_), schema)}
    return schema


def _weight(type_: Any) -> int:
    """How often a field counts because of the lists around it."""
    weight, inner = 1, type_
    while is_list(inner) or is_non_null(inner):
        weight *= _LIST_WEIGHT if is_list(inner) else 1
        inner = inner_of(inner)
    return weight


def _connection_fields(named: GraphQLObjectType) -> tuple[str, ...] | None:
    """The fields of a connection that lead to its nodes, the best one first; null if it is no connection."""
    if not named.name.endswith("Connection") or "pageInfo" not in named.fields:
        return None
    found: list[str] = []
    for name in ("nodes", "edges"):
        member = named.fields.get(name)
        inner = None if member is None else named_type_of(member)
        if name == "edges" and not (isinstance(inner, GraphQLObjectType) and _is_free(inner.fields.get("node"))):
            continue
        if inner is not None and not is_plain(member):
            found.append(name)
    return tuple(found) or None


def _is_free(member: GraphQLField | None) -> bool:
    """Whether there is a field, and it needs no arguments."""
    return member is not None and not any(map(is_required_argument, member.args.values()))


def _takes_first(member: GraphQLField) -> bool:
    argument = member.args.get("first")
    return argument is not None and str(type_of(argument)) in {"Int", "Int!"}

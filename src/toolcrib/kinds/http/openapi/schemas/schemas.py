"""Converts Schema Objects of every OpenAPI version to JSON Schema 2020-12 with internal references only.

Each `$ref` becomes a reference to the schema's own `$defs`; unused definitions are left out, and recursive ones are
supported. Malformed parts are repaired or dropped and reported, so the result is always valid. Requests have no
`readOnly` properties, responses no `writeOnly` ones. Pure: nothing is fetched.
"""

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Final, Literal, TypeAlias, cast

import orjson

from toolcrib.contracts import Json, JsonSchema
from toolcrib.core.providers.imports import Losses, lean
from toolcrib.kinds.http.openapi.read.documents import Document, Library, base_uri
from toolcrib.kinds.http.openapi.read.nodes import Node, child, last
from toolcrib.kinds.http.openapi.schemas.keywords import (
    ANNOTATIONS,
    CONTAINERS,
    LIST_KEYWORDS,
    MAP_KEYWORDS,
    RESOLVED,
    SCHEMA_KEYWORDS,
    compiles,
    drop_wrong_defaults,
    is_known,
    is_valid,
)
from toolcrib.kinds.http.openapi.schemas.legacy import modern

_ALTERNATIVES: Final = ("oneOf", "anyOf")
_MOST_SUBTYPES: Final = 100


@dataclass(frozen=True, slots=True)
class Subtype:
    """A schema that extends a base, and the value of the base's discriminator that means it."""

    field: str
    value: str
    node: Node


class Subtypes:
    """The subtypes of schemas that have a discriminator but name no alternatives: those that extend them by `allOf`."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._known: dict[str, list[Subtype]] = {}

    def of(self, base: Node) -> list[Subtype]:
        """The subtypes of a base; none if it is no base."""
        if "discriminator" not in base.object or any(keyword in base.object for keyword in _ALTERNATIVES):
            return []
        if base.place not in self._known:
            self._known[base.place] = self._find(base)
        return self._known[base.place]

    def _find(self, base: Node) -> list[Subtype]:
        field = field_of(base.get("discriminator"))
        mapped = {value: node for value, node in mapping(base, self._library).items() if node.place != base.place}
        if not mapped:
            mapped = {last(child.place): child for child in self._children.get(base.place, ())}
        return [Subtype(field, value, node) for value, node in mapped.items()][:_MOST_SUBTYPES] if field else []

    @cached_property
    def _children(self) -> dict[str, list[Node]]:
        """Components by the place of what they extend."""
        found: dict[str, list[Node]] = {}
        root = self._library.root
        for container in (root.get("components").get("schemas"), root.get("definitions")):
            for _, component in container.members():
                for part in component.get("allOf").entries():
                    parent = self._library.peek(part.object.get("$ref"), part.base)
                    if parent is not None:
                        found.setdefault(parent.place, []).append(component)
        return found


def field_of(discriminator: Node) -> str:
    """The discriminating property: the whole discriminator in OpenAPI 2.0, its `propertyName` since."""
    return discriminator.value if isinstance(discriminator.value, str) else discriminator.text("propertyName")


def mapping(node: Node, library: Library) -> dict[str, Node]:
    """Schemas by the discriminator's value, as the document maps them."""
    found: dict[str, Node] = {}
    for value, target in node.get("discriminator").get("mapping").members():
        schema = _target(target, library)
        if schema is not None:
            found[value] = schema
    return found


def tell_apart(node: Node, result: JsonSchema, library: Library, losses: Losses) -> None:
    """Give each alternative of a converted schema the constant of its discriminator.

    Args:
        node: The Schema Object with a discriminator.
        result: What it was converted to; its alternatives get a `const`.
        library: Where the mapping leads.
        losses: Receives what could not be expressed.
    """
    discriminator = node.get("discriminator")
    field = field_of(discriminator)
    keyword = next((keyword for keyword in _ALTERNATIVES if keyword in result), None)
    if keyword is None or not field:
        why = "names no alternatives here; heeded where something refers to this schema"
        losses.add_dropped(discriminator.place, "annotation" if field else "invalid", "discriminator", why)
        return
    by_place: dict[str, list[str]] = {}
    mapped = mapping(node, library)
    for value, target in mapped.items():
        by_place.setdefault(target.place, []).append(value)
    for value, written in discriminator.get("mapping").members():
        if value not in mapped:
            losses.add_dropped(written.place, "reference", f"mapping {value}", "leads to nothing known")
    branches: list[JsonSchema] = result[keyword]
    for index, entry in enumerate(node.get(keyword).entries()):
        target = library.find(entry.object.get("$ref"), entry.base)
        values = by_place.pop(target.place, [last(target.place)]) if target is not None else []
        branch = branches[index]
        if values and "$ref" in branch and "properties" not in branch:
            branches[index] = {**branch, "properties": {field: _one_of(values)}, "required": [field]}
        elif "$ref" not in entry.object:
            losses.add_dropped(
                entry.place, "unsupported", "discriminator", "an alternative without a name is not told apart"
            )
    for values in by_place.values():
        losses.add_dropped(
            child(discriminator.place, "mapping"), "invalid", f"mapping {values[0]}", "is not an alternative"
        )
    for name in discriminator.object.keys() - {"propertyName", "mapping"}:
        losses.add_dropped(child(discriminator.place, name), "extension", name, "no meaning known")


def _one_of(values: list[str]) -> JsonSchema:
    return {"const": values[0]} if len(values) == 1 else {"enum": values}


def _target(target: Node, library: Library) -> Node | None:
    """A mapping's value is the name of a component, or a reference."""
    if not isinstance(target.value, str):
        return None
    component = library.root.get("components").get("schemas").get(target.value)
    return component if component.value is not None else library.find(target.value, target.base)


Direction: TypeAlias = Literal["request", "response"]

MAX_DEFINITIONS_BYTES: Final[dict[Direction, int]] = {"request": 64 * 1024, "response": 24 * 1024}
"""What the definitions of one schema may take as JSON; those farther from the root are left open beyond it."""

_HIDDEN: Final = {"request": "readOnly", "response": "writeOnly"}
_COMPOSED: Final = ("$ref", "allOf", "anyOf", "oneOf")
_REFERENCES: Final = frozenset({"$ref", "$dynamicRef", "$recursiveRef"})
_BESIDE_REFERENCES: Final = frozenset({"$ref", "description", "nullable", "x-nullable"})
"""What OpenAPI 3.0 documents write beside a reference with a meaning, although nothing is allowed there."""
_NULLABLE: Final = frozenset({"nullable", "x-nullable"})
_LATER: Final = _NULLABLE | {"discriminator", "readOnly", "writeOnly"}
_MAX_EXAMPLE: Final = 100
_LOCAL: Final = "#/$defs/"


@dataclass(frozen=True, slots=True)
class _Definition:
    schema: JsonSchema
    references: tuple[str, ...]
    """Names of the definitions that it refers to."""
    bytes: int
    losses: Losses


class SchemaConverter:
    """Converts the schemas of one document in one direction; each component is converted once.

    Args:
        document: Where references lead.
        direction: Whether the schemas are of requests or of responses.
    """

    def __init__(self, document: Document, direction: Direction) -> None:
        self._document = document
        self._library = document.library
        self._direction: Direction = direction
        self._hidden = _HIDDEN[direction]
        self._subtypes = Subtypes(document.library)
        self._names: dict[str, str] = {}
        self._numbers: dict[str, int] = {}
        """How often a stem of a name was taken, with its numbered ones."""
        self._targets: dict[str, Node] = {}
        self._definitions: dict[str, _Definition] = {}
        self._checked: set[str] = set()

    def convert(self, schema: Node, losses: Losses) -> JsonSchema:
        """One schema; its references point into `$defs`, which `bundle` adds."""
        found = self._schema(schema, losses)
        return found if isinstance(found, dict) else _from_flag(accepted=found)

    def property(self, schema: Node, losses: Losses) -> JsonSchema:
        """One property of an object whose requirements are known already."""
        found = self.convert(schema, losses)
        required = schema.object.get("required")
        if required is not None and not isinstance(required, list):
            self._note_requirement(schema, losses)
        return found

    def hides(self, schema: Node) -> bool:
        """Whether a property is one that this direction does not have."""
        if schema.flag(self._hidden):
            return True
        if not isinstance(schema.object.get("$ref"), str):
            return False
        target = self._library.find(schema.object["$ref"], schema.base)
        return target is not None and target.flag(self._hidden)

    def follow(self, schema: JsonSchema) -> JsonSchema:
        """A converted schema with its outermost reference replaced by what it refers to."""
        for _ in range(8):
            reference = schema.get("$ref")
            if reference is None:
                break
            rest = {keyword: value for keyword, value in schema.items() if keyword != "$ref"}
            schema = {**self._definition(reference.removeprefix(_LOCAL)).schema, **rest}
        return schema

    def bundle(self, schema: JsonSchema, place: str, losses: Losses) -> JsonSchema:
        """The schema with the definitions that it needs, nearest first, as far as they fit.

        Args:
            schema: As converted.
            place: Its position, for the report of losses.
            losses: Takes what is lost, and the definitions that lost something.
        """
        limit = MAX_DEFINITIONS_BYTES[self._direction]
        definitions: dict[str, JsonSchema] = {}
        size = 0
        waiting = deque(_references(schema))
        while waiting:
            name = waiting.popleft()
            if name in definitions:
                continue
            definition = self._definition(name)
            if size + definition.bytes > limit:
                definitions[name] = {}
                kind = "bound" if self._direction == "request" else "response"
                why = f"left open: those of one schema take more than {limit} bytes"
                losses.add_dropped(self._targets[name].place, kind, f"definitions of the {self._direction}", why)
                continue
            losses.uses(self._targets[name].place, definition.losses)
            size += definition.bytes
            definitions[name] = definition.schema
            waiting.extend(definition.references)
        found = {**schema, "$defs": dict(sorted(definitions.items()))} if definitions else schema
        if self._direction == "request":
            self._drop_defaults(found, place, losses)
        return found

    def _drop_defaults(self, schema: JsonSchema, place: str, losses: Losses) -> None:
        definitions: dict[str, JsonSchema] = schema.get("$defs", {})
        for name in definitions.keys() - self._checked:
            self._checked.add(name)
            target, known = self._targets[name], self._definitions[name]
            drop_wrong_defaults(known.schema, definitions, target.place, known.losses)
            losses.uses(target.place, known.losses)
        bare = {keyword: value for keyword, value in schema.items() if keyword != "$defs"}
        drop_wrong_defaults(bare, definitions, place, losses)

    def _definition(self, name: str) -> _Definition:
        known = self._definitions.get(name)
        if known is None:
            losses = Losses()
            schema = self.convert(self._targets[name], losses)
            references = tuple(dict.fromkeys(_references(schema)))
            known = _Definition(schema, references, len(orjson.dumps(schema)), losses)
            self._definitions[name] = known
        return known

    def _schema(self, node: Node, losses: Losses, *, inherited: bool = False) -> JsonSchema | bool:
        value: Json = node.value
        if isinstance(value, bool):
            return value
        if not isinstance(value, dict):
            why = f"{type(value).__name__} is not a schema; any value is taken"
            losses.add_dropped(node.place, "invalid", "schema", why)
            return {}
        if "$id" in node.object:
            node = Node(node.value, node.place, base_uri(node))
        source = modern(self._alone(node, losses), losses)
        result: JsonSchema = {}
        for keyword, value in source.items():
            if keyword not in _LATER:
                self._keyword(result, keyword, Node(value, child(node.place, keyword), node.base), losses)
        if "$ref" in result and not inherited:
            self._offer_subtypes(result, node, losses)
        if "properties" in result:
            self._hide(node, result, losses)
        self._later(node, result, losses)
        return _nullable(result) if any(node.flag(keyword) for keyword in _NULLABLE) else result

    def _alone(self, node: Node, losses: Losses) -> Node:
        """Before OpenAPI 3.1, fields beside a reference are ignored."""
        if self._document.dialect == "3.1" or not isinstance(node.object.get("$ref"), str):
            return node
        for keyword in node.object.keys() - _BESIDE_REFERENCES:
            why = f"stands beside a $ref, where it counts for nothing in OpenAPI {self._document.dialect}"
            losses.add_dropped(child(node.place, keyword), "invalid", f"keyword {keyword}", why)
        kept = {key: value for key, value in node.object.items() if key in _BESIDE_REFERENCES}
        return Node(kept, node.place, node.base)

    def _keyword(self, result: JsonSchema, keyword: str, node: Node, losses: Losses) -> None:
        value = node.value
        if keyword in _REFERENCES:
            self._reference(result, keyword, node, losses)
        elif keyword == "description":
            result |= {"description": text} if (text := lean(value, node.place, losses)) else {}
        elif keyword in SCHEMA_KEYWORDS and isinstance(value, dict | bool):
            result[keyword] = self._schema(node, losses)
        elif keyword in LIST_KEYWORDS and isinstance(value, list) and value:
            inherited = keyword == "allOf"
            result[keyword] = [self._schema(entry, losses, inherited=inherited) for entry in node.entries()]
        elif keyword in MAP_KEYWORDS and isinstance(value, dict):
            self._members(result, keyword, node, losses)
        elif keyword in {"const", "enum"} or is_valid(keyword, value):
            result[keyword] = value
        else:
            self._unkept(result, keyword, node, losses)

    def _members(self, result: JsonSchema, keyword: str, node: Node, losses: Losses) -> None:
        found: JsonSchema = {}
        for name, member in node.members():
            if keyword == "patternProperties" and not compiles(name):
                why = "does not match in linear time, or is not a regular expression"
                losses.add_dropped(member.place, "unsupported", "keyword patternProperties", why)
            elif keyword == "properties" and name.startswith("x-") and not isinstance(member.value, dict):
                losses.add_dropped(member.place, "extension", name, "no meaning known")
            else:
                found[name] = self._schema(member, losses)
        result[keyword] = found

    def _unkept(self, result: JsonSchema, keyword: str, node: Node, losses: Losses) -> None:
        """Keywords that are annotations, of another place or of nothing."""
        if keyword in {"default", "example", "examples"}:
            self._annotate(result, keyword, node, losses)
        elif keyword in RESOLVED or keyword in ANNOTATIONS:
            losses.add_dropped(node.place, "annotation", keyword, "not needed for a call")
        elif keyword in CONTAINERS and isinstance(node.value, dict):
            for name, member in node.members():
                losses.add_dropped(
                    member.place, "unused", f"definition {name}", "taken only where something refers to it"
                )
        elif keyword.startswith("x-"):
            losses.add_dropped(node.place, "extension", keyword, "no meaning known")
        elif keyword == "required" or is_known(keyword) or keyword in SCHEMA_KEYWORDS | LIST_KEYWORDS | MAP_KEYWORDS:
            if keyword != "required":
                losses.add_dropped(node.place, "invalid", f"keyword {keyword}", "has no valid value")
        else:
            losses.add_dropped(node.place, "invalid", f"keyword {keyword}", "is not in JSON Schema 2020-12")

    def _annotate(self, result: JsonSchema, keyword: str, node: Node, losses: Losses) -> None:
        """Examples that are short, and defaults, tell a caller what to send."""
        if self._direction == "response":
            losses.add_dropped(node.place, "annotation", keyword, "an answer needs none")
        elif keyword == "default":
            result["default"] = node.value
        else:
            examples = node.list if keyword == "examples" and node.list else [node.value]
            if len(orjson.dumps(examples)) <= _MAX_EXAMPLE and "examples" not in result:
                result["examples"] = examples
            else:
                losses.add_dropped(
                    node.place, "annotation", keyword, f"more than {_MAX_EXAMPLE} bytes, or a second one"
                )

    def _reference(self, result: JsonSchema, keyword: str, node: Node, losses: Losses) -> None:
        target = self._library.find(node.value, node.base)
        if target is None:
            shown = repr(node.value)[:200]
            losses.add_dropped(
                node.place, "reference", f"reference {shown}", "leads to nothing known; any value is taken"
            )
            return
        self._library.note_correction(Node({"$ref": node.value}, node.place, node.base), losses)
        if keyword != "$ref":
            losses.add_changed(node.place, "unsupported", f"keyword {keyword}", "taken as $ref")
        result["$ref"] = _LOCAL + self._name(target)

    def _name(self, target: Node) -> str:
        name = self._names.get(target.place)
        if name is None:
            stem = re.sub(r"[^A-Za-z0-9_.-]+", "_", last(target.place))[:64] or "schema"
            name = stem
            while name in self._targets:
                self._numbers[stem] = self._numbers.get(stem, 1) + 1
                name = f"{stem}_{self._numbers[stem]}"
            self._names[target.place] = name
            self._targets[name] = target
        return name

    def _offer_subtypes(self, result: JsonSchema, node: Node, losses: Losses) -> None:
        """A reference to a base whose discriminator names its subtypes means any of them."""
        target = self._library.find(node.get("$ref").value, node.base)
        found = self._subtypes.of(target) if target is not None else []
        if target is None or not found or self._direction == "response":
            return
        branches: list[JsonSchema] = []
        for subtype in found:
            condition = {"properties": {subtype.field: {"const": subtype.value}}, "required": [subtype.field]}
            branches.append({"$ref": _LOCAL + self._name(subtype.node), **condition})
        base = result.pop("$ref")
        result["anyOf"] = [*branches, {"$ref": base}]
        names = ", ".join(subtype.value for subtype in found)
        losses.add_changed(target.place, "unsupported", "discriminator", f"offered as alternatives: {names}"[:300])

    def _hide(self, node: Node, result: JsonSchema, losses: Losses) -> None:
        """Leave out the properties that this direction does not have; require those that say so themselves."""
        properties: JsonSchema = result["properties"]
        required: list[str] = list(result.get("required", ()))
        for name, member in node.get("properties").members():
            if name not in properties:
                continue
            if self.hides(member):
                del properties[name]
                losses.add_dropped(member.place, "direction", f"property {name}", f"is {self._hidden}")
                required = [other for other in required if other != name]
            elif "required" in member.object and not isinstance(member.object["required"], list):
                if member.flag("required") and name not in required:
                    required.append(name)
                self._note_requirement(member, losses)
        if required:
            result["required"] = required
        else:
            result.pop("required", None)

    def _note_requirement(self, member: Node, losses: Losses) -> None:
        why = "taken as the object's requirement of the property"
        losses.add_changed(child(member.place, "required"), "invalid", "keyword required", why)

    def _later(self, node: Node, result: JsonSchema, losses: Losses) -> None:
        if node.has("discriminator") and "discriminator" not in result:
            tell_apart(node, result, self._library, losses)
        for keyword in ("readOnly", "writeOnly"):
            if node.has(keyword):
                losses.add_dropped(
                    child(node.place, keyword), "annotation", keyword, "heeded where it hides a property"
                )


def _nullable(schema: JsonSchema) -> JsonSchema:
    """The schema, or null."""
    if any(keyword in schema for keyword in _COMPOSED):
        outer = {key: schema[key] for key in ("description", "default", "examples") if key in schema}
        inner = {key: value for key, value in schema.items() if key not in outer}
        return {**outer, "anyOf": [inner, {"type": "null"}]}
    found = dict(schema)
    types = found.get("type")
    if isinstance(types, str):
        found["type"] = list(dict.fromkeys([types, "null"]))
    elif isinstance(types, list):
        found["type"] = list(dict.fromkeys([*cast("list[str]", types), "null"]))
    if "enum" in found and None not in found["enum"]:
        found["enum"] = [*found["enum"], None]
    return found


def _from_flag(*, accepted: bool) -> JsonSchema:
    return {} if accepted else {"not": {}}


def _references(schema: Json) -> Iterator[str]:
    """Names of the definitions that a converted schema refers to, in order."""
    if not isinstance(schema, dict):
        return
    schema = cast("JsonSchema", schema)
    if "$ref" in schema:
        yield schema["$ref"].removeprefix(_LOCAL)
    for keyword, value in schema.items():
        if keyword in SCHEMA_KEYWORDS:
            yield from _references(value)
        elif keyword in LIST_KEYWORDS:
            yield from chain.from_iterable(map(_references, value))
        elif keyword in MAP_KEYWORDS:
            yield from chain.from_iterable(map(_references, value.values()))

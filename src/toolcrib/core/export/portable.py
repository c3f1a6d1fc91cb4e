"""Translates the schema of a tool's arguments to the dialect of a vendor, and lists what cannot be said there.

What a dialect has no keyword for is written into the description of its place, so that a model still reads it. The
executor checks arguments against the whole schema in any case.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

import orjson

from toolcrib.contracts import Json, JsonObject, JsonSchema, resolve_pointer
from toolcrib.core.export.dialects import RULES, DialectRules, SchemaDialect, child, lint_schema
from toolcrib.llm.base.json_values import arr, obj, text
from toolcrib.llm.base.strict import strict_schema

_MOST_PARTS: Final = 5_000
"""Schemas inside one, references written out; what is beyond is cut."""
_DEEPEST: Final = 8
"""Combinations inside one another; what is beyond, which may contain itself, is not looked at."""
_DEEPEST_PLACE: Final = 200
"""Steps of the path to a schema; what is deeper, which may contain itself, is cut."""
_SILENT: Final = frozenset(
    {"$anchor", "$comment", "$defs", "$id", "$schema", "definitions", "deprecated", "discriminator", "examples"}
)
"""Keywords that say nothing of what is valid."""
_OF_TYPES: Final[Mapping[str, frozenset[str]]] = {
    "string": frozenset({"format", "maxLength", "minLength", "pattern"}),
    "array": frozenset({"items", "maxItems", "minItems"}),
    "object": frozenset({"additionalProperties", "maxProperties", "minProperties", "properties", "required"}),
    "number": frozenset({"exclusiveMaximum", "exclusiveMinimum", "maximum", "minimum", "multipleOf"}),
}
_JSON_TYPES: Final[Mapping[type, str]] = {
    bool: "boolean",
    dict: "object",
    float: "number",
    int: "integer",
    list: "array",
    str: "string",
    type(None): "null",
}


@dataclass(frozen=True, slots=True)
class PortableSchema:
    """A schema in the dialect of a vendor."""

    schema: JsonSchema
    lost: tuple[str, ...] = ()
    """What the whole schema says and this one does not, each with its place."""
    refused: tuple[str, ...] = ()
    """Why the vendor would refuse it all the same: the dialect has no form for these places."""


def translate_schema(schema: JsonSchema, dialect: SchemaDialect) -> PortableSchema:
    """The schema of a tool's arguments in the dialect of a vendor.

    In `openai_strict` an optional property is required and may be null; give what the model wrote to `drop_nulls`.

    Args:
        schema: JSON Schema 2020-12 of an object.
        dialect: `openai`, `openai_strict`, `anthropic` or `gemini`.

    Example:
        from toolcrib.core.export import translate_schema

        portable = translate_schema(search_deals.definition.input_schema, "gemini")
        print(portable.schema, portable.lost)
    """
    whole: JsonSchema = {"type": "object", "properties": {}, **schema}
    rules = RULES[dialect]
    exact = strict_schema(whole, "openai") if rules.is_closed and not rules.root_refused & whole.keys() else None
    if exact is not None:
        return PortableSchema(exact)
    translation = _Translation(whole, rules)
    made = translation.of_root()
    return PortableSchema(made, tuple(translation.lost), tuple(lint_schema(made, dialect)))


def drop_nulls(arguments: JsonObject, schema: JsonSchema) -> JsonObject:
    """The arguments without the nulls that a strict schema demands for optional properties.

    Args:
        arguments: As a model wrote them for the strict form of the schema.
        schema: The tool's own schema. A null that it allows is kept.

    Example:
        from toolcrib.core.export import drop_nulls

        schema = {"type": "object", "properties": {"stage": {"type": "string"}}}
        print(drop_nulls({"stage": None}, schema))  # {}
    """
    return cast("JsonObject", _without_nulls(arguments, schema, schema))


def _without_nulls(value: Json, schema: Any, root: JsonSchema) -> Json:
    node = _resolved(schema, root)
    if isinstance(value, list):
        return [_without_nulls(item, node.get("items"), root) for item in arr(value)]
    if not isinstance(value, dict):
        return value
    properties, required = _members(node, root)
    return {
        name: _without_nulls(item, properties.get(name), root)
        for name, item in obj(value).items()
        if item is not None or name in required or name not in properties or _takes_null(properties[name], root)
    }


def _members(node: JsonSchema, root: JsonSchema, left: int = _DEEPEST) -> tuple[dict[str, Any], set[str]]:
    """The properties of an object and of the schemas that it combines, and those that all of them require."""
    properties, required = dict(obj(node.get("properties"))), set(arr(node.get("required")))
    if not left:
        return properties, required
    for part in arr(node.get("allOf")):
        more, needed = _members(_resolved(part, root), root, left - 1)
        properties, required = {**more, **properties}, required | needed
    for keyword in ("anyOf", "oneOf"):
        for part in arr(node.get(keyword)):
            properties = {**_members(_resolved(part, root), root, left - 1)[0], **properties}
    return properties, required


def _takes_null(schema: Any, root: JsonSchema, left: int = _DEEPEST) -> bool:
    if schema is True or not left:
        return True
    node = _resolved(schema, root)
    if "const" in node or "enum" in node:
        return None in (arr(node.get("enum")) or [node.get("const", ...)])
    branches = [*arr(node.get("anyOf")), *arr(node.get("oneOf"))]
    kinds = arr(node.get("type")) or [node.get("type")]
    return (
        "null" in kinds or any(_takes_null(branch, root, left - 1) for branch in branches) or not (branches or kinds[0])
    )


def _resolved(schema: Any, root: JsonSchema) -> JsonSchema:
    """A schema with the references at its top written out; one that leads back to itself is left."""
    node, seen = obj(schema), set[str]()
    while (reference := text(node.get("$ref"))) and reference not in seen:
        seen.add(reference)
        rest = {keyword: value for keyword, value in node.items() if keyword != "$ref"}
        node = {**obj(resolve_pointer(root, reference)), **rest}
    return node


class _Translation:
    """One pass over one schema.

    Args:
        root: The schema.
        rules: Of the dialect.
    """

    def __init__(self, root: JsonSchema, rules: DialectRules) -> None:
        self._root = root
        self._rules = rules
        self._left = _MOST_PARTS
        self.lost: list[str] = []

    def of_root(self) -> JsonSchema:
        node = self._flatten(self._root)
        if self._rules.keywords is None:
            return node
        return self._part({keyword: value for keyword, value in node.items() if keyword != "$defs"}, "", frozenset())

    def _flatten(self, root: JsonSchema) -> JsonSchema:
        """The whole schema as one object; what holds between its properties is left to the description."""
        node = self._merged(_resolved(root, root), "")
        branches = [
            self._merged(_resolved(branch, root), "")
            for keyword in ("anyOf", "oneOf")
            for branch in arr(node.get(keyword))
        ]
        if branches:
            self.lost.append("(root): which properties go together")
            properties = _alternatives([node, *branches])
            common = set[str].intersection(*(set(arr(branch.get("required"))) for branch in branches))
            required = [*arr(node.get("required")), *sorted(common - set(arr(node.get("required"))))]
            groups = ", or ".join(" with ".join(arr(branch.get("required"))) or "nothing more" for branch in branches)
            node = {**node, "properties": properties, "description": _said(node, f"Give {groups}.")}
            node = {**node, "required": required} if required else node
        for keyword in sorted(self._rules.root_refused & node.keys() - {"anyOf", "oneOf"}):
            self.lost.append(f"(root): {keyword}")
        return {keyword: value for keyword, value in node.items() if keyword not in self._rules.root_refused}

    def _part(self, value: Any, path: str, above: frozenset[str]) -> JsonSchema:
        self._left -= 1
        node = obj(value)
        if path.count(".") > _DEEPEST_PLACE:
            return self._cut(node, path, "what is deeper than this")
        while reference := text(node.get("$ref")):
            if reference in above or self._left < 0:
                return self._cut(node, path, f"the reference {reference} to a schema that contains it")
            above |= {reference}
            rest = {keyword: one for keyword, one in node.items() if keyword != "$ref"}
            node = {**obj(resolve_pointer(self._root, reference)), **rest}
        node = self._merged(node, path)
        if "oneOf" in node:
            self._lose(path, "that only one of its choices may hold")
            node = {**node, "anyOf": [*arr(node.get("anyOf")), *node["oneOf"]]}
        if "anyOf" in node:
            node = {**node, "anyOf": [self._part(one, child(path, "anyOf"), above) for one in arr(node["anyOf"])]}
        if "properties" in node:
            inner = obj(node["properties"]).items()
            made = {name: self._part(one, child(path, f"properties.{name}"), above) for name, one in inner}
            node = {**node, "properties": made}
        if isinstance(node.get("items"), dict):
            node = {**node, "items": self._part(node["items"], child(path, "items"), above)}
        return self._finish(self._typed(node), path)

    def _cut(self, node: JsonSchema, path: str, what: str) -> JsonSchema:
        self._lose(path, what)
        cut: JsonSchema = {"type": "object", "properties": {}, "additionalProperties": False}
        return self._finish({**cut, "description": text(node.get("description"))}, path)

    def _merged(self, node: JsonSchema, path: str, left: int = _DEEPEST) -> JsonSchema:
        """A node with all that it combines by `allOf`."""
        if "allOf" not in node:
            return node
        made = {keyword: value for keyword, value in node.items() if keyword != "allOf"}
        for part in arr(node["allOf"]) if left else ():
            for keyword, value in self._merged(_resolved(part, self._root), path, left - 1).items():
                if keyword == "properties":
                    made[keyword] = {**obj(value), **obj(made.get(keyword))}
                elif keyword == "required":
                    made[keyword] = list(dict.fromkeys((*arr(made.get(keyword)), *arr(value))))
                elif made.setdefault(keyword, value) != value and keyword not in {"description", "title"}:
                    self._lose(path, f"{keyword} {_json(value)}, which it must meet too")
        return made

    def _typed(self, node: JsonSchema) -> JsonSchema:
        """A node that says its type, if its keywords or values tell."""
        if node.keys() & {"type", "anyOf"}:
            return node
        values = arr(node.get("enum")) or ([node["const"]] if "const" in node else [])
        kinds = {_JSON_TYPES[type(value)] for value in values}
        if not kinds:
            kinds = {kind for kind, keywords in _OF_TYPES.items() if keywords & node.keys()}
        if not kinds:
            return node
        return {**node, "type": sorted(kinds)[0] if len(kinds) == 1 else sorted(kinds)}

    def _finish(self, node: JsonSchema, path: str) -> JsonSchema:
        """A node whose parts are in the dialect, in the dialect."""
        node = _as_openapi(node) if self._rules.is_openapi else node
        if self._rules.is_openapi and "anyOf" in node and len(node["anyOf"]) == 1:
            rest = {keyword: value for keyword, value in node.items() if keyword != "anyOf"}
            node = {**node["anyOf"][0], **rest}
        if self._rules.is_closed:
            node = self._closed(node, path)
        made: JsonSchema = {}
        said: list[str] = []
        for keyword, value in node.items():
            if self._keeps(keyword, value, node):
                made[keyword] = value
            elif keyword not in _SILENT and not (keyword == "oneOf" or _is_vain(keyword, value)):
                said.append(f"{keyword}: {_json(value)}")
                if keyword != "default":
                    self._lose(path, f"{keyword} {_json(value)}")
        if said:
            made["description"] = _said(made, f"({'; '.join(said)})")
        elif not made.get("description", True):
            del made["description"]
        return made

    def _keeps(self, keyword: str, value: Json, node: JsonSchema) -> bool:
        if keyword not in (self._rules.keywords or ()):
            return False
        if keyword == "enum" and self._rules.is_openapi:
            return node.get("type") == "STRING"
        return keyword != "format" or value in (self._rules.formats or ())

    def _closed(self, node: JsonSchema, path: str) -> JsonSchema:
        """An object with no other properties, all of them required; those that were optional may be null."""
        if node.get("type") != "object" and not ("properties" in node and "object" in arr(node.get("type"))):
            return node
        properties = obj(node.get("properties"))
        more = node.get("additionalProperties", True)
        if more is not False:
            self._lose(path, f"other properties ({_json(more)})")
            if not properties and path:
                return {**node, "additionalProperties": more}  # an object of any properties has no form: lint says so
        required = arr(node.get("required"))
        made = {name: part if name in required else _nullable(part) for name, part in properties.items()}
        return {**node, "properties": made, "required": list(made), "additionalProperties": False}

    def _lose(self, path: str, what: str) -> None:
        entry = f"{path or '(root)'}: {what}"
        if entry not in self.lost:
            self.lost.append(entry)


def _alternatives(objects: Sequence[JsonSchema]) -> dict[str, Any]:
    """The properties of some objects; one that differs among them has a choice of its schemas."""
    found: dict[str, list[Any]] = {}
    for one in objects:
        for name, part in obj(one.get("properties")).items():
            known = found.setdefault(name, [])
            if part not in known:
                known.append(part)
    return {name: parts[0] if len(parts) == 1 else {"anyOf": parts} for name, parts in found.items()}


def _nullable(part: JsonSchema) -> JsonSchema:
    if "anyOf" in part:
        has_null = any(one.get("type") == "null" for one in part["anyOf"])
        return part if has_null else {**part, "anyOf": [*part["anyOf"], {"type": "null"}]}
    if "const" in part or "enum" in part or "type" not in part:
        described = {"description": part["description"]} if "description" in part else {}
        rest = {keyword: value for keyword, value in part.items() if keyword != "description"}
        return {"anyOf": [rest, {"type": "null"}], **described}
    kinds = arr(part["type"]) or [part["type"]]
    return part if "null" in kinds else {**part, "type": [*kinds, "null"]}


def _as_openapi(node: JsonSchema) -> JsonSchema:
    """Types in upper case and one at a time, null as `nullable`, a constant as an enum."""
    made = {keyword: value for keyword, value in node.items() if keyword not in {"const", "type"}}
    if "const" in node:
        made["enum"] = [node["const"]]
    branches = [one for one in arr(node.get("anyOf")) if one.get("type") != "NULL"]
    is_nullable = len(branches) < len(arr(node.get("anyOf")))
    kinds = [str(kind) for kind in arr(node.get("type")) or ([node["type"]] if "type" in node else [])]
    if "null" in kinds and len(kinds) > 1:
        is_nullable, kinds = True, [kind for kind in kinds if kind != "null"]
    if "enum" in made and None in arr(made["enum"]):
        made["enum"] = [value for value in arr(made["enum"]) if value is not None]
    for low, high in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if kinds == ["integer"] and low in made and high not in made and isinstance(made[low], int):
            made[high] = made.pop(low) + (1 if high == "minimum" else -1)
    if len(kinds) > 1:
        of_types = frozenset[str]().union(*_OF_TYPES.values())
        made["anyOf"] = branches = [_of_kind(kind, made) for kind in kinds]
        made = {keyword: value for keyword, value in made.items() if keyword not in of_types | {"enum"}}
    elif kinds:
        made["type"] = kinds[0].upper()
    if branches:
        made["anyOf"] = branches
    return {**made, "nullable": True} if is_nullable else made


def _of_kind(kind: str, node: JsonSchema) -> JsonSchema:
    """One of the types of a node with what it says of that type."""
    keywords = _OF_TYPES.get("number" if kind == "integer" else kind, frozenset())
    made: JsonSchema = {"type": kind.upper()}
    made |= {keyword: node[keyword] for keyword in sorted(keywords & node.keys() & (RULES["gemini"].keywords or set()))}
    texts = [value for value in arr(node.get("enum")) if isinstance(value, str)]
    return {**made, "enum": texts} if kind == "string" and texts else made


def _is_vain(keyword: str, value: Json) -> bool:
    """Whether a keyword excludes nothing that a model would write."""
    return keyword == "additionalProperties" and isinstance(value, bool)


def _said(node: JsonSchema, words: str) -> str:
    return " ".join(filter(None, (text(node.get("description")), words)))


def _json(value: Json) -> str:
    return orjson.dumps(value).decode()

"""Converts Schema Objects of OpenAPI 2.0 and 3.0, and of older drafts of JSON Schema, to keywords of 2020-12.

It converts one Schema Object at a time, without its subschemas. An equivalent conversion is no loss; an interpretation
of non-standard notation is reported as `changed`.
"""

from typing import Final, cast

from toolcrib.contracts import Json, JsonObject
from toolcrib.core.providers.imports import Losses
from toolcrib.kinds.http.openapi.read.nodes import Node, child
from toolcrib.kinds.http.openapi.schemas.keywords import TYPES, is_known, is_valid, other_type, repair_value

MAX_ENUM_BYTES: Final = 16 * 1024
_EXCLUSIVE: Final = (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum"))
_SPECIAL: Final = frozenset({"type", "enum", "required"})
_LISTED: Final = frozenset({"allOf", "anyOf", "oneOf"})
_SCALARS: Final[dict[str, type | tuple[type, ...]]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
}


def modern(node: Node, losses: Losses) -> JsonObject:
    """The keywords of a Schema Object under their present names, with values that are valid where that was possible."""
    source = dict(node.object)
    _bounds(source)
    _tuples(source)
    _dependencies(source, node, losses)
    for keyword in [keyword for keyword in source if is_known(keyword) and keyword not in _SPECIAL]:
        if not is_valid(keyword, source[keyword]):
            _repair(source, keyword, node, losses)
    for keyword in _LISTED & source.keys():
        if isinstance(source[keyword], dict):
            source[keyword] = [source[keyword]]
            losses.add_changed(child(node.place, keyword), "invalid", f"keyword {keyword}", "taken as a list of one")
    if "type" in source:
        _type(source, node, losses)
    if "enum" in source:
        _enum(source, node, losses)
    if "required" in source:
        _check_required(source, node, losses)
    return source


def _bounds(source: JsonObject) -> None:
    """`exclusiveMinimum` of 3.0 is a flag of `minimum`."""
    for bound, exclusive in _EXCLUSIVE:
        flag = source.get(exclusive)
        if flag in ("true", "false"):
            flag = flag == "true"
        if isinstance(flag, bool):
            del source[exclusive]
            if flag and bound in source:
                source[exclusive] = source.pop(bound)


def _tuples(source: JsonObject) -> None:
    """A list of `items` is `prefixItems` since 2020-12, and `additionalItems` are the `items` after them."""
    if isinstance(source.get("items"), list) and "prefixItems" not in source:
        source["prefixItems"] = source.pop("items")
        if "additionalItems" in source:
            source["items"] = source.pop("additionalItems")


def _dependencies(source: JsonObject, node: Node, losses: Losses) -> None:
    found = source.pop("dependencies", None)
    if not isinstance(found, dict):
        if found is not None:
            losses.add_dropped(child(node.place, "dependencies"), "invalid", "keyword dependencies", "is not an object")
        return
    members = cast("JsonObject", found)
    names: JsonObject = {name: value for name, value in members.items() if isinstance(value, list)}
    schemas = {name: value for name, value in members.items() if name not in names}
    if names:
        source.setdefault("dependentRequired", names)
    if schemas:
        source.setdefault("dependentSchemas", schemas)


def _repair(source: JsonObject, keyword: str, node: Node, losses: Losses) -> None:
    place, value = child(node.place, keyword), source.pop(keyword)
    better = repair_value(keyword, value)
    if better is None:
        why = (
            "does not match in linear time, or is not a regular expression"
            if keyword == "pattern"
            else "has no valid value"
        )
        losses.add_dropped(place, "unsupported" if keyword == "pattern" else "invalid", f"keyword {keyword}", why)
    else:
        source[keyword] = better
        losses.add_changed(place, "invalid", f"keyword {keyword}", f"{_short(value)} was taken as {_short(better)}")


def _type(source: JsonObject, node: Node, losses: Losses) -> None:
    written = source["type"]
    if is_valid("type", written):
        return
    place = child(node.place, "type")
    del source["type"]
    if isinstance(written, list):
        names = [str(name).lower() for name in cast("list[Json]", written)]
        known = list(dict.fromkeys(name for name in names if name in TYPES))
        if known and len(known) == len(set(names)):
            source["type"] = known
            losses.add_changed(place, "invalid", "keyword type", f"{_short(written)} was taken as {_short(known)}")
            return
    keywords = other_type(written) if isinstance(written, str) else None
    if keywords is None:
        losses.add_dropped(place, "invalid", "keyword type", f"{_short(written)} is not a type; any value is taken")
        return
    source.update({key: value for key, value in keywords.items() if key not in source})
    losses.add_changed(
        place, "invalid", "keyword type", f"{_short(written)} was taken as {_short(keywords) if keywords else 'any'}"
    )


def _enum(source: JsonObject, node: Node, losses: Losses) -> None:
    listed = cast("list[Json]", source["enum"])
    place = child(node.place, "enum")
    if not isinstance(source["enum"], list) or not listed:
        del source["enum"]
        losses.add_dropped(place, "invalid", "keyword enum", "is not a list of values")
        return
    if sum(len(str(value)) for value in listed) > MAX_ENUM_BYTES:
        del source["enum"]
        why = f"{len(listed)} values take more than {MAX_ENUM_BYTES} bytes; any value is taken"
        losses.add_dropped(place, "bound", "keyword enum", why)
        return
    kind = source.get("type")
    values = [value for value in listed if value is not None]
    if not isinstance(kind, str) or kind not in _SCALARS or not values or any(_is_of(kind, value) for value in values):
        return
    converted = [_as(kind, value) for value in values]
    kinds = _kinds(values)
    if None not in converted:
        source["enum"] = [*converted, *(value for value in listed if value is None)]
        losses.add_changed(place, "invalid", "keyword enum", f"its values were taken as {kind}")
    elif kinds:
        source["type"] = kinds
        losses.add_changed(child(node.place, "type"), "invalid", "keyword type", "taken from the values of enum")


def _check_required(source: JsonObject, node: Node, losses: Losses) -> None:
    value = source["required"]
    if is_valid("required", value):
        return
    if isinstance(value, bool) or value in ("true", "false"):
        return  # of a property, as in draft 3: the object that holds it says so
    _repair(source, "required", node, losses)


def _kinds(values: list[Json]) -> list[str]:
    """The types of some values."""
    names = [next((name for name in _SCALARS if _is_of(name, value)), "") for value in values]
    return [] if "" in names else list(dict.fromkeys(names))


def _is_of(kind: str, value: Json) -> bool:
    return isinstance(value, _SCALARS[kind]) and (kind == "boolean" or not isinstance(value, bool))


def _as(kind: str, value: Json) -> Json:
    """The value of a type that was written as one of another."""
    if kind == "string" and isinstance(value, bool):
        return "true" if value else "false"
    if kind == "string" and isinstance(value, int | float):
        return str(value)
    if kind in {"integer", "number"} and isinstance(value, str):
        return repair_value("minimum", value)
    return {"true": True, "false": False}.get(value.lower()) if kind == "boolean" and isinstance(value, str) else None


def _short(value: Json) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."

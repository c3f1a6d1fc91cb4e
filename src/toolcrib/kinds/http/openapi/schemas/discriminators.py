"""Discriminators as plain JSON Schema: each alternative says the value that tells it apart."""

from dataclasses import dataclass
from functools import cached_property
from typing import Final

from toolcrib.contracts import JsonSchema
from toolcrib.core.providers.imports import Losses
from toolcrib.kinds.http.openapi.read.library import Library
from toolcrib.kinds.http.openapi.read.nodes import Node, child, last

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
    """The property that tells: the whole discriminator in OpenAPI 2.0, its `propertyName` since."""
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
        losses: Takes what could not be told.
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
            child(discriminator.place, "mapping"), "invalid", f"mapping {values[0]}", "is no alternative"
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

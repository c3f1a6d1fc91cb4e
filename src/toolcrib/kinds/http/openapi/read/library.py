"""A document and those that it refers to: `Library.find` follows `$ref`s wherever the given documents lead.

References are resolved as RFC 3986 and JSON Schema 2020-12 say: against the base URI, through `$id`, to a JSON pointer
or an anchor. Nothing is fetched: a document that was not given is one that cannot be found. A reference that leads
nowhere as written but plainly means a component of that name is taken for it, and said to be.
"""

import posixpath
from collections.abc import Mapping
from typing import Final, cast
from urllib.parse import urldefrag, urljoin, urlsplit

from toolcrib.contracts import InvalidDefinition, Json, JsonObject
from toolcrib.core.providers.losses import Losses
from toolcrib.kinds.http.openapi.read.limits import Bounds
from toolcrib.kinds.http.openapi.read.nodes import Node
from toolcrib.kinds.http.openapi.read.pointers import Nothing, child, find, last, normal
from toolcrib.kinds.http.openapi.read.sources_part import read_source

_MOST_HOPS: Final = 32
_PROSE: Final = frozenset({"summary", "description"})
_ANCHORS: Final = ("$anchor", "$dynamicAnchor")
_SECTIONS: Final = ("schemas", "parameters", "responses", "requestBodies", "headers", "pathItems", "securitySchemes")


class Library:
    """The main document and others by URI.

    Args:
        root: The main document.
        uri: Where it came from; empty if unknown.
        documents: Texts, or what they parse to, by URI, absolute or relative to the main document.
        bounds: Limits of each of them.
        losses: Takes what had to be put right in them.
    """

    def __init__(
        self,
        root: JsonObject,
        *,
        uri: str = "",
        documents: Mapping[str, Json] | None = None,
        bounds: Bounds | None = None,
        losses: Losses | None = None,
    ) -> None:
        self.root: Final = Node(root, "", uri)
        self._waiting = {uri_of(uri, key): text for key, text in (documents or {}).items()}
        self._bounds = bounds or Bounds()
        self._losses = Losses() if losses is None else losses
        self._resources: dict[str, Node] = {}
        self._anchors: dict[tuple[str, str], Node] = {}
        self._found: dict[tuple[str, str], Node | None] = {}
        self._corrected: dict[tuple[str, str], str] = {}
        self.reached: set[str] = set()
        """Places of everything that was asked for."""
        self._resources[uri] = self.root
        self._unindexed = [self.root]

    def find(self, reference: Json, base: str) -> Node | None:
        """What a `$ref` under a base URI leads to, one step; null if nothing."""
        found = self.peek(reference, base)
        if found is not None:
            self.reached.add(found.place)
        return found

    def peek(self, reference: Json, base: str) -> Node | None:
        """The same for who only looks and uses nothing."""
        if not isinstance(reference, str):
            return None
        key = (reference, base)
        if key not in self._found:
            self._found[key] = self._look(reference, base) or self._guess(reference, base)
        return self._found[key]

    def resolve(self, node: Node, losses: Losses) -> Node:
        """The node, or what its chain of references leads to; a null node if that is nothing, which is a loss."""
        start = node
        for _ in range(_MOST_HOPS):
            reference = node.object.get("$ref")
            if not isinstance(reference, str):
                return node
            for sibling in node.object.keys() - {"$ref"}:
                kind = "text" if sibling in _PROSE else "invalid"
                losses.dropped(child(node.place, sibling), kind, sibling, "stands beside a $ref, which replaces it")
            found = self.find(reference, node.base)
            self.note_correction(node, losses)
            if found is None:
                losses.dropped(start.place, "reference", f"reference {reference[:200]!r}", "leads to nothing known")
                return Node(None, start.place, start.base)
            node = found
        losses.dropped(start.place, "reference", "reference", "leads in a circle")
        return Node(None, start.place, start.base)

    def note_correction(self, node: Node, losses: Losses) -> None:
        """Report that a node's reference was taken for another one."""
        reference = cast("str", node.object.get("$ref"))
        taken = self._corrected.get((reference, node.base))
        if taken is not None:
            losses.changed(
                node.place, "reference", f"reference {reference[:200]!r}", f"leads to nothing; taken for {taken}"
            )

    def _look(self, reference: str, base: str) -> Node | None:
        try:
            uri, fragment = urldefrag(uri_of(base, reference))
        except ValueError:
            return None
        resource = self._resource(uri)
        if resource is None:
            return None
        if not fragment:
            return resource
        if not fragment.startswith("/"):
            self._index()
            return self._anchors.get((uri, normal(fragment)))
        value = find(resource.value, fragment)
        return None if isinstance(value, Nothing) else Node(value, resource.place + normal(fragment), resource.base)

    def _guess(self, reference: str, base: str) -> Node | None:
        """The component that a wrong reference means: `#/definitions/Deal` in OpenAPI 3, or `Deal` alone."""
        pointer = reference.partition("#")[2]
        if base != self.root.base and pointer.startswith("/"):
            value = find(self.root.value, pointer)
            if not isinstance(value, Nothing):
                self._corrected[reference, base] = f"#{pointer} of the main document"
                return Node(value, normal(pointer), self.root.base)
        name = last(reference)
        if not pointer and ("." in name or ":" in reference):
            return None
        for container in (*(self.root.get("components").get(section) for section in _SECTIONS), *self._legacy()):
            if name in container.object:
                self._corrected[reference, base] = child(container.place, name)
                return container.get(name)
        return None

    def _legacy(self) -> tuple[Node, ...]:
        return tuple(self.root.get(section) for section in ("definitions", "parameters", "responses"))

    def _resource(self, uri: str) -> Node | None:
        """A document or an identified schema, read when it is first asked for."""
        if uri not in self._resources and uri in self._waiting:
            text = self._waiting.pop(uri)
            try:
                value = read_source(_text(text), self._bounds, self._losses, f"{uri}#")
            except InvalidDefinition as problem:
                self._losses.dropped(f"{uri}#", "reference", "document", str(problem))
            else:
                self._resources[uri] = Node(value, f"{uri}#", uri)
                self._unindexed.append(self._resources[uri])
        if uri not in self._resources:
            self._index()
        return self._resources.get(uri)

    def _index(self) -> None:
        """Find `$id`s and anchors. Most documents have neither, and are never gone through for them."""
        waiting, self._unindexed = self._unindexed, []
        while waiting:
            found = waiting.pop()
            if isinstance(found.value, dict):
                found = self._identify(found)
                waiting.extend(member for _, member in found.members() if isinstance(member.value, dict | list))
            else:
                waiting.extend(entry for entry in found.entries() if isinstance(entry.value, dict | list))

    def _identify(self, node: Node) -> Node:
        base = identified(node)
        if base != node.base:
            node = Node(node.value, node.place, base)
            self._resources.setdefault(base, node)
        for keyword in _ANCHORS:
            if name := node.text(keyword):
                self._anchors.setdefault((node.base, name), node)
        return node


def identified(node: Node) -> str:
    """The base URI inside of a schema, which its `$id` may change."""
    written = node.text("$id")
    if not written or written.startswith("#"):
        return node.base
    try:
        return urldefrag(uri_of(node.base, written))[0]
    except ValueError:
        return node.base


def uri_of(base: str, reference: str) -> str:
    """A reference as an absolute URI, or as a normal path where the base is none either."""
    joined = urljoin(base, reference)
    parts = urlsplit(joined)
    if parts.scheme or not parts.path:
        return joined
    return parts._replace(path=posixpath.normpath(parts.path)).geturl()


def _text(value: Json) -> "bytes | str | Mapping[str, Json]":
    if isinstance(value, bytes | str):
        return value
    return cast("Mapping[str, Json]", value) if isinstance(value, Mapping) else {}

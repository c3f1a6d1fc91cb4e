"""A document of a known OpenAPI version and the documents that it refers to: fetches them and resolves references.

References are resolved as RFC 3986 and JSON Schema 2020-12 require: against the base URI, through `$id`, to a JSON
pointer or an anchor. A wrong reference that clearly means a component of the same name resolves to it, and is
reported. `fetch_documents` uses the caller's fetch function within limits, and requests documents of the same origin
only, unless the caller allows others. Missing documents are left out, and the import reports references to them.
"""

import asyncio
import posixpath
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, cast
from urllib.parse import urldefrag, urljoin, urlsplit

from toolcrib.contracts import InvalidDefinition, Json, JsonObject, ToolcribError
from toolcrib.core.providers.imports import Losses
from toolcrib.infrastructure.net.origins import origin_of
from toolcrib.kinds.http.openapi.read.nodes import Node, Nothing, child, find, last, normal
from toolcrib.kinds.http.openapi.read.sources import read_source
from toolcrib.kinds.http.shape import Bounds

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
        """Places of all values that were read."""
        self._resources[uri] = self.root
        self._unindexed = [self.root]

    def find(self, reference: Json, base: str) -> Node | None:
        """The target of a `$ref` under a base URI, in one step; null if there is none."""
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
        """The node, or the target of its chain of references; a null node, and a loss, if there is none."""
        start = node
        for _ in range(_MOST_HOPS):
            reference = node.object.get("$ref")
            if not isinstance(reference, str):
                return node
            for sibling in node.object.keys() - {"$ref"}:
                kind = "text" if sibling in _PROSE else "invalid"
                losses.add_dropped(child(node.place, sibling), kind, sibling, "stands beside a $ref, which replaces it")
            found = self.find(reference, node.base)
            self.note_correction(node, losses)
            if found is None:
                losses.add_dropped(start.place, "reference", f"reference {reference[:200]!r}", "leads to nothing known")
                return Node(None, start.place, start.base)
            node = found
        losses.add_dropped(start.place, "reference", "reference", "leads in a cycle")
        return Node(None, start.place, start.base)

    def note_correction(self, node: Node, losses: Losses) -> None:
        """Report that a node's reference was taken for another one."""
        reference = cast("str", node.object.get("$ref"))
        correction = self._corrected.get((reference, node.base))
        if correction is not None:
            losses.add_changed(
                node.place, "reference", f"reference {reference[:200]!r}", f"leads to nothing; taken for {correction}"
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
                self._losses.add_dropped(f"{uri}#", "reference", "document", str(problem))
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
        base = base_uri(node)
        if base != node.base:
            node = Node(node.value, node.place, base)
            self._resources.setdefault(base, node)
        for keyword in _ANCHORS:
            if name := node.text(keyword):
                self._anchors.setdefault((node.base, name), node)
        return node


def base_uri(node: Node) -> str:
    """The base URI inside of a schema, which its `$id` may change."""
    written = node.text("$id")
    if not written or written.startswith("#"):
        return node.base
    try:
        return urldefrag(uri_of(node.base, written))[0]
    except ValueError:
        return node.base


def uri_of(base: str, reference: str) -> str:
    """A reference as an absolute URI, or as a normalized path if the base is not absolute either."""
    joined = urljoin(base, reference)
    parts = urlsplit(joined)
    if parts.scheme or not parts.path:
        return joined
    return parts._replace(path=posixpath.normpath(parts.path)).geturl()


def _text(value: Json) -> "bytes | str | Mapping[str, Json]":
    if isinstance(value, bytes | str):
        return value
    return cast("Mapping[str, Json]", value) if isinstance(value, Mapping) else {}


Dialect: TypeAlias = Literal["2.0", "3.0", "3.1"]
"""What a Schema Object and a reference mean; 3.2 says the same as 3.1."""

_DIALECTS: Final[dict[str, Dialect]] = {"2.0": "2.0", "2": "2.0", "3.0": "3.0", "3": "3.0", "3.1": "3.1", "3.2": "3.1"}


@dataclass(frozen=True, slots=True)
class Document:
    """A document, its version, and everything that it refers to."""

    library: Library
    dialect: Dialect
    version: str
    """As written: `3.0.3`."""

    @property
    def root(self) -> Node:
        """The whole document."""
        return self.library.root


def read_document(
    source: bytes | str | Mapping[str, Json],
    losses: Losses,
    *,
    uri: str = "",
    documents: Mapping[str, Json] | None = None,
    bounds: Bounds | None = None,
) -> Document:
    """Read a document from JSON, YAML or an already parsed mapping.

    Args:
        source: The document.
        losses: Takes what had to be put right in its text.
        uri: Where it came from, for references that are relative to it.
        documents: Other documents by URI.
        bounds: Limits of each document.

    Raises:
        InvalidDefinition: It is too large, too deep, no JSON or YAML, or no OpenAPI 2.0, 3.0, 3.1 or 3.2 document.
    """
    bounds = bounds or Bounds()
    root = read_source(source, bounds, losses)
    if not isinstance(root, dict):
        raise InvalidDefinition(f"an OpenAPI document is an object, found {_describe_value(root)}")
    document = cast("JsonObject", root)
    written = [str(document[key]).strip() for key in ("openapi", "swagger") if key in document]
    version = next((version for version in written if _dialect(version) is not None), "")
    dialect = _dialect(version)
    if dialect is None:
        finding = f"version {written[0][:50]!r}" if written else "neither 'openapi' nor 'swagger'"
        raise InvalidDefinition(f"found {finding}; OpenAPI 2.0, 3.0, 3.1 and 3.2 are read: convert it to one of them")
    return Document(Library(document, uri=uri, documents=documents, bounds=bounds, losses=losses), dialect, version)


def _dialect(version: str) -> Dialect | None:
    return _DIALECTS.get(".".join(version.split(".")[:2]))


def _describe_value(root: Json) -> str:
    """Describes a value that is not a document, for the error about a wrong file or address."""
    if root is None:
        return "nothing"
    if isinstance(root, str):
        return f"text that begins with {' '.join(root.split())[:40]!r}"
    return "a list" if isinstance(root, list) else f"the value {root!r}"[:80]


MAX_DOCUMENTS: Final = 50
"""Documents of one import, the first included."""

Fetch: TypeAlias = Callable[[str], Awaitable[bytes]]
"""Asks for the bytes at an address; raises a `ToolcribError` if there are none."""


async def fetch_documents(
    url: str, fetch: Fetch, *, origins: Collection[str] = (), bounds: Bounds | None = None
) -> dict[str, bytes]:
    """The document at a URL and all that it refers to, by URL.

    Args:
        url: Where the main document is.
        fetch: Called once for each document.
        origins: Further origins that may be asked, like `https://schemas.example.com`.
        bounds: Limits of each document; all of them together take at most `max_bytes`.

    Raises:
        ToolcribError: The main document cannot be had.
        InvalidDefinition: It exceeds a bound or cannot be read.
    """
    bounds = bounds or Bounds()
    allowed = {origin_of(url), *map(origin_of, origins)} - {None}
    main = await fetch(url)
    bounds.check_bytes(len(main))
    documents = {url: main}
    waiting = deque(await asyncio.to_thread(_others, url, main, bounds))
    size = len(main)
    known = {url}
    while waiting and len(known) < MAX_DOCUMENTS:
        found = waiting.popleft()
        if found in known or origin_of(found) not in allowed:
            continue
        known.add(found)
        try:
            text = await fetch(found)
            size += len(text)
            bounds.check_bytes(size)
            waiting += await asyncio.to_thread(_others, found, text, bounds)
        except ToolcribError:
            continue  # the references that lead there are reported
        documents[found] = text
    return documents


def _others(base: str, text: bytes, bounds: Bounds) -> Sequence[str]:
    """The documents that one refers to, each once. Reading a large one takes seconds, so not in the event loop."""
    return list(dict.fromkeys(_references_in(base, text, bounds)))


def _references_in(base: str, text: bytes, bounds: Bounds) -> Iterator[str]:
    waiting: list[Json] = [read_source(text, bounds, Losses())]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            members = cast("JsonObject", value)
            reference = members.get("$ref")
            if isinstance(reference, str) and not reference.startswith("#"):
                yield from _address(base, reference)
            waiting.extend(members.values())
        elif isinstance(value, list):
            waiting.extend(cast("list[Json]", value))


def _address(base: str, reference: str) -> Iterator[str]:
    try:
        yield urldefrag(uri_of(base, reference))[0]
    except ValueError:
        return

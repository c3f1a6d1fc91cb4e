"""The operations of a document, each with what its path adds and with its references resolved.

This is the form from which tools are made, whatever the document's version: parameters are Parameter Objects, a body is
a Request Body Object, and nothing above them has to be looked up again.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from toolcrib.contracts import HttpMethod, JsonObject
from toolcrib.providers.openapi.document import Document
from toolcrib.providers.openapi.losses import Losses
from toolcrib.providers.openapi.views import objects

METHODS: Final[Mapping[str, HttpMethod]] = {
    "get": "GET",
    "put": "PUT",
    "post": "POST",
    "delete": "DELETE",
    "options": "OPTIONS",
    "head": "HEAD",
    "patch": "PATCH",
    "trace": "TRACE",
}


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one path."""

    method: HttpMethod
    path: str
    source: JsonObject
    """The Operation Object."""
    parameters: tuple[JsonObject, ...]
    """Parameter Objects of the operation and its path; the operation's win."""
    servers: tuple[JsonObject, ...]
    """Server Objects of the operation or its path alone, not those of the document."""
    losses: Losses = field(compare=False)

    @property
    def key(self) -> str:
        """`GET /deals/{id}`."""
        return f"{self.method} {self.path}"

    @property
    def operation_id(self) -> str | None:
        """The document's own name for it."""
        found = self.source.get("operationId")
        return found if isinstance(found, str) and found else None


def read_operations(document: Document) -> Iterator[Operation]:
    """Every operation in the document's order."""
    paths = document.resolve(document.root.get("paths")) or {}
    for path, value in paths.items():
        item = document.resolve(value)
        if item is None or not path.startswith("/"):
            continue
        for name, method in METHODS.items():
            source = document.resolve(item.get(name))
            if source is not None:
                yield _operation(document, method, path, item, source)


def _operation(document: Document, method: HttpMethod, path: str, item: JsonObject, source: JsonObject) -> Operation:
    losses = Losses(f"{method} {path}")
    found: dict[tuple[str, str], JsonObject] = {}
    for raw in [*objects(item.get("parameters")), *objects(source.get("parameters"))]:
        parameter = document.resolve(raw)
        name, place = (parameter or {}).get("name"), (parameter or {}).get("in")
        if parameter is None or not isinstance(name, str) or place not in {"path", "query", "header", "cookie"}:
            losses.note(f"parameter {name or raw.get('$ref')}", "left out: it has no name, no place, or leads nowhere")
        else:
            found[str(place), name] = parameter
    servers = objects(source.get("servers")) or objects(item.get("servers"))
    return Operation(method, path, source, tuple(found.values()), tuple(servers), losses)

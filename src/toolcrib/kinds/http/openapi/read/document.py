"""A document of a known version of OpenAPI, ready to be read: `read_document`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, cast

from toolcrib.contracts import InvalidDefinition, Json, JsonObject
from toolcrib.core.providers.losses import Losses
from toolcrib.kinds.http.openapi.read.library import Library
from toolcrib.kinds.http.openapi.read.limits import Bounds
from toolcrib.kinds.http.openapi.read.nodes import Node
from toolcrib.kinds.http.openapi.read.sources_part import read_source

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
        raise InvalidDefinition(f"an OpenAPI document is an object, found {_described(root)}")
    document = cast("JsonObject", root)
    written = [str(document[key]).strip() for key in ("openapi", "swagger") if key in document]
    version = next((version for version in written if _dialect(version) is not None), "")
    dialect = _dialect(version)
    if dialect is None:
        told = f"version {written[0][:50]!r}" if written else "neither 'openapi' nor 'swagger'"
        raise InvalidDefinition(f"found {told}; OpenAPI 2.0, 3.0, 3.1 and 3.2 are read: convert it to one of them")
    return Document(Library(document, uri=uri, documents=documents, bounds=bounds, losses=losses), dialect, version)


def _dialect(version: str) -> Dialect | None:
    return _DIALECTS.get(".".join(version.split(".")[:2]))


def _described(root: Json) -> str:
    """What stands there instead of a document, for whoever gave the wrong file or address."""
    if root is None:
        return "nothing"
    if isinstance(root, str):
        return f"text that begins with {' '.join(root.split())[:40]!r}"
    return "a list" if isinstance(root, list) else f"the value {root!r}"[:80]

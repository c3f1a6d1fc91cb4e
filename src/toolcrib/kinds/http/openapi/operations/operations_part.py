"""The operations of a document in its order, whatever its version. The rest of the package sees only their parts."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeAlias

from toolcrib.contracts import HttpMethod
from toolcrib.core.providers.losses import Losses
from toolcrib.kinds.http.openapi.operations.openapi3 import OpenApi3
from toolcrib.kinds.http.openapi.operations.operations import OpenApi2
from toolcrib.kinds.http.openapi.operations.parts import Operation
from toolcrib.kinds.http.openapi.operations.paths import Path, read_path
from toolcrib.kinds.http.openapi.read.document import Document
from toolcrib.kinds.http.openapi.read.fields import OPERATION, PATH_ITEM, account
from toolcrib.kinds.http.openapi.read.limits import MAX_OPERATIONS
from toolcrib.kinds.http.openapi.read.nodes import Node

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

Reader: TypeAlias = Callable[[Path, HttpMethod, Node, Losses], Operation]


def read_operations(document: Document, losses: Losses) -> Iterator[Operation]:
    """Every operation in the document's order.

    Args:
        document: The document.
        losses: Takes paths that are none; what an operation loses is its own.
    """
    reader: Reader = (OpenApi2 if document.dialect == "2.0" else OpenApi3)(document).operation
    count = 0
    for written, node in document.root.get("paths").members():
        if written.startswith("x-"):
            losses.dropped(node.place, "extension", written, "no meaning known")
            continue
        shared = Losses()
        item = _item(document, node, shared)
        account(item, PATH_ITEM, shared)
        path = read_path(written, item, shared)
        found = [name for name in METHODS if isinstance(item.object.get(name), dict)]
        count += len(found)
        if not found:
            losses.dropped(node.place, "invalid", f"path {written[:200]}", "has no operation")
            losses.uses(path.place, shared)
        if count > MAX_OPERATIONS:
            losses.dropped(node.place, "bound", f"path {written[:200]}", f"more than {MAX_OPERATIONS} operations")
            continue
        for name in found:
            own = Losses()
            own.uses(path.place, shared)
            operation = document.library.resolve(item.get(name), own)
            account(operation, OPERATION, own)
            yield reader(path, METHODS[name], operation, own)


def _item(document: Document, node: Node, losses: Losses) -> Node:
    """A Path Item Object; what stands beside its `$ref` is added to what the reference leads to."""
    if not isinstance(node.object.get("$ref"), str):
        return node
    target = document.library.resolve(Node({"$ref": node.object["$ref"]}, node.place, node.base), losses)
    own = {key: value for key, value in node.object.items() if key != "$ref"}
    if not own:
        return target
    both = sorted(own.keys() & target.object.keys())
    for key in both:
        losses.dropped(f"{target.place}/{key}", "duplicate", f"path item field {key}", "stands beside the $ref as well")
    return Node({**target.object, **own}, target.place, target.base)

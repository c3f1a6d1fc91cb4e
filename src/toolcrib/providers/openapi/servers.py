"""Where an API is: the base address of the document, or of the operations that live elsewhere."""

from collections.abc import Sequence

from toolcrib.contracts import InvalidDefinition, JsonObject
from toolcrib.providers.openapi.document import Document
from toolcrib.providers.openapi.losses import Losses
from toolcrib.providers.openapi.operations import Operation
from toolcrib.providers.openapi.views import members, objects
from toolcrib.providers.origins import origin_of


def document_base(document: Document, given: str | None, losses: Losses) -> str:
    """The provider's base address, without a slash at the end.

    Args:
        document: Its first server counts.
        given: An address that replaces it.
        losses: Takes the servers that are not used.

    Raises:
        InvalidDefinition: There is no absolute address.
    """
    servers = objects(document.root.get("servers"))
    if given is None and len(servers) > 1:
        losses.note("servers", f"only the first of {len(servers)} is used")
    base = given if given is not None else _first(servers)
    if not _is_absolute(base):
        raise InvalidDefinition(
            f"base address {base!r} is not absolute; give base_url, like 'https://api.example.com/v1'"
        )
    return base.rstrip("/")


def operation_base(operation: Operation, base: str, *, given: bool) -> str | None:
    """The base address of an operation with servers of its own on another origin; `None` where the provider's holds.

    Args:
        operation: The operation.
        base: The provider's base address.
        given: Whether that address replaces the document's, and with it every server in it.
    """
    own = _first(operation.servers).rstrip("/")
    if given or not _is_absolute(own) or own == base:
        return None
    return own


def _is_absolute(url: str) -> bool:
    return origin_of(url) is not None and not {"{", "}"} & set(url)


def _first(servers: Sequence[JsonObject]) -> str:
    """The first server's URL with the defaults of its variables."""
    if not servers:
        return ""
    url = servers[0].get("url")
    found = url if isinstance(url, str) else ""
    for name, variable in members(servers[0].get("variables")).items():
        default = members(variable).get("default")
        if isinstance(default, str):
            found = found.replace(f"{{{name}}}", default)
    return found

"""The base address of a document, and of operations with their own servers."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urljoin

from toolcrib.contracts import InvalidDefinition, ServerVariable
from toolcrib.core.providers.imports import Losses
from toolcrib.infrastructure.net.origins import origin_of
from toolcrib.kinds.http.openapi.operations.parts import ApiOperation
from toolcrib.kinds.http.openapi.read.documents import Document
from toolcrib.kinds.http.openapi.read.fields import SERVER, VARIABLE, account
from toolcrib.kinds.http.openapi.read.nodes import Node

UNKNOWN_HOST: Final = "host"
"""The variable for the host of a document without an address."""
_NOWHERE: Final = "base-url-is-not-set.invalid"
"""No such host can exist (RFC 6761, section 6.4), so a call fails before anything is sent, and its error says why."""
_VARIABLE: Final = re.compile(r"\{([^{}]*)\}")
_HOST: Final = re.compile(r"[a-z0-9-]+(\.[a-z0-9-]+)+(:[0-9]+)?(/.*)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """A base address without a slash at the end, with `{name}` for its variables."""

    url: str
    variables: dict[str, ServerVariable] = field(default_factory=dict[str, ServerVariable])

    @property
    def address(self) -> str:
        """The address with the defaults of its variables."""
        return _VARIABLE.sub(lambda found: self.variables[found[1]].default, self.url)


def document_server(document: Document, given: str | None, losses: Losses) -> ServerAddress:
    """The provider's base address.

    Args:
        document: Its first server with an address counts; https comes before http.
        given: An address that replaces it.
        losses: Takes the servers that are not used.

    Raises:
        InvalidDefinition: The given address is not absolute.
    """
    if given is not None:
        if origin_of(given) is None or _VARIABLE.search(given):
            raise InvalidDefinition(
                f"base address {given!r} is not absolute; give one like 'https://api.example.com/v1'"
            )
        return ServerAddress(given.rstrip("/"))
    found = _swagger(document, losses) if document.dialect == "2.0" else _first(document, losses)
    if found is not None:
        return found
    why = "there is no absolute address: give base_url, or a value for the variable 'host'"
    losses.add_changed("/servers", "server", "servers", why)
    host = ServerVariable(default=_NOWHERE, description="The document names no address.")
    return ServerAddress(f"https://{{{UNKNOWN_HOST}}}", {UNKNOWN_HOST: host})


def operation_server(operation: ApiOperation, base: ServerAddress, document: Document, *, given: bool) -> str | None:
    """The base address of an operation with servers of its own; `None` where the provider's holds.

    Args:
        operation: The operation.
        base: The provider's base address.
        document: Relative addresses belong to where it came from.
        given: Whether that address replaces the document's, and with it every server in it.
    """
    uri, losses = document.root.base or base.address, operation.losses
    chosen = None if given else _choose(operation.servers, uri)
    found = None if chosen is None else read_server(chosen, uri, losses)
    for node in operation.servers:
        if node is not chosen:
            losses.add_dropped(node.place, "server", "server", f"called at {(found or base).url}")
    return None if found is None or found.address == base.address else found.address


def read_server(node: Node, uri: str, losses: Losses) -> ServerAddress | None:
    """One Server Object as an absolute address; `None` if it is invalid."""
    account(node, SERVER, losses)
    url = _absolute(node.text("url").strip(), uri, node, losses)
    if url is None:
        return None
    written = dict(node.get("variables").members())
    variables = {name: _variable(name, written.get(name), node, losses) for name in _VARIABLE.findall(url)}
    for name in written.keys() - variables.keys():
        losses.add_dropped(written[name].place, "unused", f"server variable {name}", "the address has no place for it")
    server = ServerAddress(url.rstrip("/"), variables)
    return server if origin_of(server.address) is not None else None


def _first(document: Document, losses: Losses) -> ServerAddress | None:
    servers, uri = list(document.root.get("servers").entries()), document.root.base
    chosen = _choose(servers, uri)
    found = None if chosen is None else read_server(chosen, uri, losses)
    for node in servers:
        if node is not chosen:
            why = "is not an absolute address" if found is None else f"calls go to {found.url}"
            losses.add_dropped(node.place, "server", f"server {node.text('url')[:200]}", why)
    if found is None and not document.root.get("servers").value and origin_of(document.root.base):
        return ServerAddress(urljoin(document.root.base, "/").rstrip("/"))
    return found


def _choose(nodes: Sequence[Node], uri: str) -> Node | None:
    """The Server Object that is used: the first with an address, but https before http, of the same host if it can be.

    Args:
        nodes: Server Objects, in their order.
        uri: What relative addresses belong to.
    """
    found = [(node, server) for node in nodes if (server := read_server(node, uri, Losses())) is not None]
    if not found:
        return None
    secure = [(node, server) for node, server in found if server.address.startswith("https:")]
    if not secure or secure[0] == found[0]:
        return found[0][0]
    host = _host(found[0][1])
    return next((node for node, server in secure if _host(server) == host), secure[0][0])


def _host(server: ServerAddress) -> str:
    return re.split(r"[/:]", server.address.partition("://")[2], maxsplit=1)[0].lower()


def _absolute(url: str, uri: str, node: Node, losses: Losses) -> str | None:
    bare = re.split(r"[?#]", url, maxsplit=1)[0]
    if bare != url:
        losses.add_dropped(node.place, "server", f"server {url[:200]}", "what follows its path is left out")
    if re.match(r"https?://", bare, re.IGNORECASE):
        return bare
    if _HOST.fullmatch(bare):
        losses.add_changed(node.place, "server", f"server {url[:200]}", "taken with https:// before it")
        return f"https://{bare}"
    if bare.startswith("//"):
        return f"https:{bare}"
    if "://" in bare or origin_of(uri) is None:
        return None
    return urljoin(uri, bare)


def _variable(name: str, node: Node | None, server: Node, losses: Losses) -> ServerVariable:
    if node is not None:
        account(node, VARIABLE, losses)
    values = tuple(str(entry.value) for entry in node.get("enum").entries()) if node is not None else ()
    default = node.object.get("default") if node is not None else None
    if not isinstance(default, str | int | float) or isinstance(default, bool):
        default = values[0] if values else name
        losses.add_changed(server.place, "server", f"server variable {name}", f"has no default; taken as {default!r}")
    if values and str(default) not in values:
        values = (*values, str(default))
    return ServerVariable(
        default=str(default), enum=values, description=node.text("description") if node is not None else ""
    )


def _swagger(document: Document, losses: Losses) -> ServerAddress | None:
    """`schemes`, `host` and `basePath` of OpenAPI 2.0."""
    root = document.root
    schemes = [entry.value for entry in root.get("schemes").entries() if entry.value in {"https", "http"}]
    came_from = origin_of(root.base)
    scheme = "https" if "https" in schemes or not schemes else "http"
    for entry in root.get("schemes").entries():
        if entry.value != scheme:
            losses.add_dropped(entry.place, "server", f"scheme {entry.value}", f"calls go by {scheme}")
    host = re.sub(r"^[a-z]+://", "", root.text("host").strip().rstrip("/"))
    path = root.text("basePath").strip().strip("/")
    if not host and came_from is not None:
        host = root.base.split("/")[2]
        scheme = came_from[0] if not schemes else scheme
    server = ServerAddress(f"{scheme}://{host}/{path}".rstrip("/"))
    if _VARIABLE.search(server.url):
        node = Node({"url": server.url}, "/host", root.base)
        return read_server(node, root.base, losses)
    return server if origin_of(server.url) is not None else None

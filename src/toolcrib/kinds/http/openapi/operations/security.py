"""The credentials that an API requires: named schemes whose secrets are references, and the schemes of each operation.

Secrets are never read from a document, only named: `${env:CRM_TOKEN}`. If a document declares one simple scheme for
everything, it becomes the provider's authentication; otherwise the provider gets named schemes and alternatives.

Some APIs, such as Slack's, repeat the bearer token as a parameter. A parameter counts as such only if its name and its
description say so and at least half of the authenticated operations have it, because `token` can also be a genuine
argument. Authentication fills it in, and the tool does not ask for it.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from toolcrib.contracts import (
    ApiKeyAuth,
    AuthorizationCodeAuth,
    BasicAuth,
    BearerAuth,
    NoAuth,
    OAuth2Auth,
    ProviderAuth,
    SecurityRequirement,
)
from toolcrib.core.providers.imports import Losses
from toolcrib.infrastructure.net.origins import origin_of
from toolcrib.kinds.http.openapi.operations.parts import ApiOperation
from toolcrib.kinds.http.openapi.read.documents import Document
from toolcrib.kinds.http.openapi.read.fields import TEXT, Fields, account
from toolcrib.kinds.http.openapi.read.nodes import Node

Credential: TypeAlias = tuple[str, str]
"""Place and name of what authentication fills in; names of headers in lower case."""
Alternatives: TypeAlias = tuple[SecurityRequirement, ...]

_SCHEME: Final = Fields(
    "security scheme",
    {
        "type": TEXT,
        "name": TEXT,
        "in": TEXT,
        "scheme": TEXT,
        "flows": dict,
        "openIdConnectUrl": TEXT,
        "flow": TEXT,
        "tokenUrl": TEXT,
    },
    frozenset(
        {"authorizationUrl", "bearerFormat", "deprecated", "description", "oauth2MetadataUrl", "refreshUrl", "scopes"}
    ),
)
_FLOW: Final = Fields("OAuth flow", {"tokenUrl": TEXT}, frozenset({"authorizationUrl", "refreshUrl", "scopes"}))
_MACHINE_FLOWS: Final = ("clientCredentials", "application")


@dataclass(frozen=True, slots=True)
class Security:
    """What a provider offers and its operations need."""

    auth: ProviderAuth = field(default_factory=NoAuth)
    """The one way to authenticate, where nothing else is said."""
    schemes: dict[str, ProviderAuth] = field(default_factory=dict[str, ProviderAuth])
    known: Mapping[str, ProviderAuth] = field(default_factory=dict[str, ProviderAuth])
    """What the document calls them, also where there is one way only."""
    given: bool = False
    """Whether `auth` is the caller's, and what the document says counts for nothing."""
    needed: Alternatives | None = None
    """For operations that say nothing; null for `auth`."""

    def credentials(self) -> frozenset[Credential]:
        """What authentication fills in, so that no argument is asked for it."""
        found = (self.auth, *self.schemes.values())
        return frozenset(
            (auth.place, auth.name.lower() if auth.place == "header" else auth.name)
            for auth in found
            if isinstance(auth, ApiKeyAuth)
        )

    def of(self, operation: ApiOperation) -> Alternatives | None:
        """What one operation needs, if it differs from what the provider says; empty for nothing."""
        if operation.security is None:
            return None
        if self.given:
            return () if operation.security.value == [] else None
        wanted = _alternatives(operation.security, self.known, operation.losses)
        if not self.schemes:
            return () if not isinstance(self.auth, NoAuth) and not any(wanted) else None
        return None if wanted == self.needed else wanted


def read_security(
    document: Document, operations: Sequence[ApiOperation], provider: str, base: str, losses: Losses
) -> Security:
    """The schemes of a document.

    Args:
        document: The document.
        operations: Those that are imported.
        provider: Name of the provider, from which the names of secrets are made.
        base: The provider's address, which relative addresses of token endpoints belong to.
        losses: Takes the schemes that cannot be used.
    """
    schemes = _Schemes(provider, base, losses).read(document)
    root = document.root.get("security")
    named = [root, *(found.security for found in operations if found.security is not None)]
    used = {name for node in named for entry in node.entries() for name in entry.object}
    for name in schemes.keys() - used:
        place = _scheme_nodes(document)[name].place
        losses.add_dropped(place, "unused", f"security scheme {name}", "no operation that is imported asks for it")
    found = {name: scheme for name, scheme in schemes.items() if name in used}
    if not used and len(schemes) == 1:
        found = schemes  # declared and never asked for: an oversight of many documents
    needed = _alternatives(root, found, losses) if root.value is not None else ()
    if len(found) == 1 and _is_one_way(named, next(iter(found))):
        (auth,) = found.values()
        if not isinstance(auth, OAuth2Auth):
            return Security(auth, known=found)
    return Security(schemes=found, known=found, needed=needed) if found else Security()


def _is_one_way(named: list[Node], scheme: str) -> bool:
    """Whether every list of alternatives is empty, or has one that is the scheme alone."""
    return all(
        node.value is None or not node.value or any(set(entry.object) <= {scheme} for entry in node.entries())
        for node in named
    ) and any(scheme in entry.object for entry in named[0].entries()) | (not any(node.value for node in named))


def _alternatives(node: Node, known: Mapping[str, ProviderAuth], losses: Losses) -> Alternatives:
    """The alternatives that can be met; reports the others."""
    found: list[SecurityRequirement] = []
    for entry in node.entries():
        unknown = sorted(entry.object.keys() - known.keys())
        if unknown:
            why = f"left out: {' and '.join(unknown)[:200]} cannot be used here"
            losses.add_dropped(entry.place, "security", " and ".join(entry.object)[:200] or "security", why)
            continue
        for name, scopes in entry.members():
            if scopes.value and not isinstance(known.get(name), OAuth2Auth):
                losses.add_dropped(scopes.place, "annotation", "scopes", "the credentials given have them, or not")
        requirement = {
            name: tuple(scope.value for scope in scopes.entries() if isinstance(scope.value, str))
            for name, scopes in entry.members()
        }
        if requirement not in found:
            found.append(requirement)
    if node.value and not found:
        losses.add_dropped(node.place, "security", "security", "none of its alternatives can be met; called without")
    return tuple(found)


def _scheme_nodes(document: Document) -> dict[str, Node]:
    root = document.root
    found = (
        root.get("securityDefinitions") if document.dialect == "2.0" else root.get("components").get("securitySchemes")
    )
    return dict(found.members())


def given_security(document: Document, auth: ProviderAuth, losses: Losses) -> Security:
    """The caller's way to authenticate instead of the document's schemes."""
    for name, node in _scheme_nodes(document).items():
        losses.add_dropped(node.place, "annotation", f"security scheme {name}", "the caller says how to authenticate")
    return Security(auth, given=True)


class _Schemes:
    """Reads the schemes of one document."""

    def __init__(self, provider: str, base: str, losses: Losses) -> None:
        self._prefix = re.sub(r"[^A-Z0-9]+", "_", provider.upper()).strip("_")
        self._base = base
        self._losses = losses

    def read(self, document: Document) -> dict[str, ProviderAuth]:
        """Those that can be used, by name. With several of them the names of secrets name the scheme as well."""
        nodes = {name: document.library.resolve(node, self._losses) for name, node in _scheme_nodes(document).items()}
        many = len(nodes) > 1
        found: dict[str, ProviderAuth] = {}
        for name, node in nodes.items():
            account(node, _SCHEME, self._losses)
            own = re.sub(r"[^A-Z0-9]+", "_", name.upper()).strip("_")
            auth = self._auth(node, f"{self._prefix}_{own}" if many and own else self._prefix)
            if auth is None:
                kind = f"{node.text('type')} {node.text('scheme')}".strip() or "no type"
                self._losses.add_dropped(
                    node.place, "security", f"security scheme {name}", f"cannot be used here: {kind}"
                )
            else:
                found[name] = auth
        return found

    def _auth(self, node: Node, secret: str) -> ProviderAuth | None:
        kind, scheme = node.text("type").lower(), node.text("scheme").lower()
        token = f"${{env:{secret}_TOKEN}}"
        if kind == "oauth2":
            return self._oauth2(node, secret)
        if kind == "openidconnect":
            return self._openid(node, secret)
        if kind == "basic" or (kind == "http" and scheme == "basic"):
            return BasicAuth(username=f"${{env:{secret}_USERNAME}}", password=f"${{env:{secret}_PASSWORD}}")
        if kind == "http" and scheme == "bearer":
            return BearerAuth(token=token)
        name, place = node.text("name"), node.text("in").lower()
        if kind == "apikey" and name and place in {"header", "query", "cookie"}:
            return ApiKeyAuth.model_validate({"key": token, "place": place, "name": name})
        return None

    def _oauth2(self, node: Node, secret: str) -> ProviderAuth:
        flows = dict(node.get("flows").members()) or {node.text("flow"): node}
        for found in flows.values():
            if found is not node:
                account(found, _FLOW, self._losses)
        flow = next((flows[name] for name in _MACHINE_FLOWS if name in flows), None)
        url = self._absolute(flow.text("tokenUrl")) if flow is not None else None
        others = ", ".join(name for name in flows if flow is None or flows[name] is not flow)
        if flow is None or url is None:
            why = f"needs a person ({others})" if flow is None else "has no token endpoint with an absolute address"
            self._losses.add_changed(node.place, "security", "oauth2", f"{why}: give the access token itself")
            return BearerAuth(token=f"${{env:{secret}_TOKEN}}")
        if others:
            self._losses.add_dropped(
                node.place, "security", "oauth2", f"tokens come from {flow.place}; not used: {others}"
            )
        return OAuth2Auth(
            token_url=url, client_id=f"${{env:{secret}_CLIENT_ID}}", client_secret=f"${{env:{secret}_CLIENT_SECRET}}"
        )

    def _openid(self, node: Node, secret: str) -> ProviderAuth:
        url = self._absolute(node.text("openIdConnectUrl"))
        if url is None:
            why = "has no absolute address: give the access token itself"
            self._losses.add_changed(node.place, "security", "openIdConnect", why)
            return BearerAuth(token=f"${{env:{secret}_TOKEN}}")
        self._losses.add_changed(node.place, "security", "openIdConnect", "tokens come by client credentials")
        return OAuth2Auth(
            discovery_url=url,
            client_id=f"${{env:{secret}_CLIENT_ID}}",
            client_secret=f"${{env:{secret}_CLIENT_SECRET}}",
        )

    def _absolute(self, url: str) -> str | None:
        if url.startswith("/") and not url.startswith("//"):
            origin = re.match(r"https?://[^/]+", self._base)
            url = origin[0] + url if origin else url
        return url if origin_of(url) is not None else None


_NAMES: Final = frozenset({"access_token", "api_token", "auth_token", "oauth_token", "token"})
_DESCRIBED: Final = re.compile(
    r"\b(auth(entication|orization)?|access|api|bearer|oauth)[ _-]?(token|key)\b", re.IGNORECASE
)


def repeated_tokens(operations: Sequence[ApiOperation], security: Security) -> frozenset[str]:
    """Names of the parameters and form fields that repeat the bearer token; empty if there is no token."""
    ways = (security.auth, *security.schemes.values())
    if not any(isinstance(way, BearerAuth | OAuth2Auth | AuthorizationCodeAuth) for way in ways):
        return frozenset()
    asking = [operation for operation in operations if authenticates(operation)]
    counts = Counter(name for operation in asking for name in set(_tokens(operation)))
    return frozenset(name for name, count in counts.items() if 2 * count >= len(asking))


def authenticates(operation: ApiOperation) -> bool:
    """Whether an operation does not say that it needs no credentials."""
    return operation.security is None or operation.security.value != []


def _tokens(operation: ApiOperation) -> Iterator[str]:
    for parameter in operation.parameters:
        if _is_token(parameter.name, parameter.node.get("description")):
            yield parameter.name
    for media in operation.body.media if operation.body is not None else ():
        for part in media.fields:
            if part.description is not None and _is_token(part.name, part.description):
                yield part.name
        for name, schema in media.schema.get("properties").members():
            if _is_token(name, schema.get("description")):
                yield name


def _is_token(name: str, description: Node) -> bool:
    text = description.value
    return name in _NAMES and isinstance(text, str) and _DESCRIBED.search(text) is not None

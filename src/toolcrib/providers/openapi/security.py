"""Which credentials an API asks for, as one `ProviderAuth` whose secrets are references to the environment.

A provider has one way to authenticate. Of the schemes that a document declares, the one that most operations accept
wins; an operation that needs another one says so in its losses. OAuth 2 tokens are sent, never fetched.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from toolcrib.contracts import ApiKeyAuth, BasicAuth, BearerAuth, Json, JsonObject, NoAuth, ProviderAuth
from toolcrib.providers.openapi.document import Document
from toolcrib.providers.openapi.losses import Losses
from toolcrib.providers.openapi.operations import Operation
from toolcrib.providers.openapi.views import objects

_TOKEN_SCHEMES: Final = frozenset({"oauth2", "openIdConnect"})


def choose_auth(document: Document, operations: Sequence[Operation], provider: str, losses: Losses) -> ProviderAuth:
    """The authentication that fits most operations; `NoAuth` if the document declares none that can be sent."""
    schemes = _schemes(document, provider, losses)
    if not schemes:
        return NoAuth()
    accepted = Counter(
        name
        for operation in operations
        for name in {next(iter(found)) for found in _requirements(document, operation) if len(found) == 1}
    )
    chosen = max(schemes, key=lambda name: accepted[name])
    for operation in operations:
        _compare(chosen, _requirements(document, operation), operation.losses)
    if _declared(document)[chosen].get("type") in _TOKEN_SCHEMES:
        losses.note(
            f"security scheme {chosen}", "tokens are not fetched; provide an access token as the provider's token"
        )
    return schemes[chosen]


def _declared(document: Document) -> dict[str, JsonObject]:
    components = document.resolve(document.root.get("components")) or {}
    found = document.resolve(components.get("securitySchemes")) or {}
    return {name: scheme for name, value in found.items() if (scheme := document.resolve(value)) is not None}


def _schemes(document: Document, provider: str, losses: Losses) -> Mapping[str, ProviderAuth]:
    schemes: dict[str, ProviderAuth] = {}
    for name, scheme in _declared(document).items():
        auth = _auth(scheme, re.sub(r"[^A-Z0-9]+", "_", provider.upper()))
        if auth is None:
            losses.note(
                f"security scheme {name}", f"left out: {scheme.get('type')} {scheme.get('scheme', '')}".rstrip()
            )
        else:
            schemes[name] = auth
    return schemes


def _auth(scheme: JsonObject, prefix: str) -> ProviderAuth | None:
    kind = scheme.get("type"), str(scheme.get("scheme", "")).lower()
    token = f"${{env:{prefix}_TOKEN}}"
    if kind[0] in _TOKEN_SCHEMES or kind == ("http", "bearer"):
        return BearerAuth(token=token)
    if kind == ("http", "basic"):
        return BasicAuth(username=f"${{env:{prefix}_USERNAME}}", password=f"${{env:{prefix}_PASSWORD}}")
    name, place = scheme.get("name"), scheme.get("in")
    if kind[0] == "apiKey" and isinstance(name, str) and place in {"header", "query", "cookie"}:
        return ApiKeyAuth(key=token, place=place, name=name)
    return None


def _requirements(document: Document, operation: Operation) -> list[JsonObject]:
    """The alternatives of which a request has to meet one."""
    own: Json = operation.source.get("security")
    return objects(own if isinstance(own, list) else document.root.get("security"))


def _compare(chosen: str, requirements: list[JsonObject], losses: Losses) -> None:
    if not requirements or any(set(requirement) <= {chosen} for requirement in requirements):
        return
    asked = " or ".join(" and ".join(requirement) for requirement in requirements)
    losses.note("security", f"asks for {asked}; the provider authenticates with {chosen} only")

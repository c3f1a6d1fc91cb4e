"""The credentials that an API requires: named schemes whose secrets are references, and the schemes of each operation.

Secrets are never read from a document, only named: `${env:CRM_TOKEN}`. If a document declares one simple scheme for
everything, it becomes the provider's authentication; otherwise the provider gets named schemes and alternatives.

Some APIs, such as Slack's, repeat the bearer token as a parameter. A parameter counts as such only if its name and its
description say so and at least half of the authenticated operations have it, because `token` can also be a genuine
argument. Authentication fills it in, and the tool does not ask for it.

Other documents have no security scheme and declare their credentials as parameters, such as `api_key`. These are no
arguments either: they become schemes. What counts as a credential follows from name, place, description, and how many
operations have it.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal, TypeAlias

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
from toolcrib.core.registry import references_of
from toolcrib.infrastructure.net.origins import origin_of
from toolcrib.kinds.http.openapi.operations.parts import ApiOperation, Body, choose_media, encoding_of
from toolcrib.kinds.http.openapi.read.documents import Document, Library
from toolcrib.kinds.http.openapi.read.fields import TEXT, Fields, account
from toolcrib.kinds.http.openapi.read.nodes import Node
from toolcrib.kinds.http.openapi.schemas.keywords import shape_of

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
    demands: Mapping[str, Mapping[str, bool]] = field(default_factory=dict[str, Mapping[str, bool]])
    """Schemes made of parameters, by the place of the operation that declares them, and whether it requires them."""
    unsent: frozenset[Credential] = frozenset()
    """Parameters that are credentials and that no call sends."""

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
        wanted = self._declared(operation)
        if not self.demands:
            return wanted
        demanded = self.demands.get(operation.node.place, {})
        if not self.schemes:
            return None if demanded else ()
        others = (self.needed if wanted is None else wanted) or ({},)
        required: SecurityRequirement = {name: () for name, is_required in demanded.items() if is_required}
        every: SecurityRequirement = dict.fromkeys(demanded, ())
        found = [{**other, **every} for other in others]
        if required != every:
            optional = [{name: ()} for name in every if name not in required] if len(every) - len(required) > 1 else []
            found += [{**other, **required, **one} for one in (*optional, {}) for other in others]
        return wanted if not demanded else tuple(found)

    def _declared(self, operation: ApiOperation) -> Alternatives | None:
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


SIGNATURE_4: Final = """AWS Signature 4, which signs each request with a key; \
AWS refuses the calls unless base_url names a proxy that signs"""
_SIGNED: Final = frozenset(
    {
        "x-amz-algorithm",
        "x-amz-content-sha256",
        "x-amz-credential",
        "x-amz-date",
        "x-amz-expires",
        "x-amz-security-token",
        "x-amz-signature",
        "x-amz-signedheaders",
    }
)
"""Headers and query parameters of AWS Signature 4, which belong to one request only."""
_SIGNATURE: Final = frozenset({"x-amz-credential", "x-amz-signature", "x-amz-signedheaders"})


def is_signature_4(scheme: Node) -> bool:
    """Whether a security scheme is AWS Signature 4, which documents of AWS declare as an API key."""
    return scheme.text("x-amazon-apigateway-authtype").lower() == "awssigv4"


class _Schemes:
    """Reads the schemes of one document."""

    def __init__(self, provider: str, base: str, losses: Losses) -> None:
        self._prefix = _prefix(provider)
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
                why = f"cannot be used here: {SIGNATURE_4 if is_signature_4(node) else kind}"
                self._losses.add_dropped(node.place, "security", f"security scheme {name}", why)
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
        if is_signature_4(node):
            return None
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


_Place: TypeAlias = Literal["header", "query", "cookie", "body"]


@dataclass(slots=True)
class _Found:
    """A parameter that may be a credential, over all operations."""

    place: _Place
    name: str
    text: str = ""
    """The first description."""
    places: list[str] = field(default_factory=list[str])
    operations: dict[str, bool] = field(default_factory=dict[str, bool])
    """Whether it is required, by the place of the operation."""

    @property
    def credential(self) -> Credential:
        return self.place, self.name.lower() if self.place == "header" else self.name

    @property
    def is_required(self) -> bool:
        return any(self.operations.values())


_CERTAIN: Final = re.compile(
    r"(x?api(access|auth)?(key|secret|token)|(access|oauth|auth|authentication)token|auth(entication)?key"
    r"|(api)?secret(access)?key|(api)?accesskey(id)?|(app|client|shared|api)secret|(ocpapim)?subscriptionkey)"
)
"""Names without their separators that mean a credential nearly everywhere."""
_CERTAIN_HEADER: Final = re.compile(r".*(apikey|token|secret|secretkey|accesskey|appkey|authkey|authorization)")
_AMBIGUOUS: Final = frozenset({"appid", "appkey", "auth", "key", "password", "secret", "signature", "token"})
"""Names that mean a credential if most operations have them, and something else otherwise."""
_OTHER_TOKEN: Final = re.compile(
    r"page|paging|pagination|next|continuation|cursor|sync|resume|upload|csrf|xsrf|captcha|device|push|lock|reset"
    r"|confirm|verif|invit|request|idempoten|customer|copysource|bypass"
)
"""In names of tokens that are no credentials of the API."""
_SECRET_TEXT: Final = re.compile(
    r"\b(api|access|auth\w*|bearer|oauth|app(lication)?|developer|secret|subscription|account)"
    r"('s)?[ _-]*(key|token|secret|id|password)\b|\bauthenticat|\bcredential|\bauthori[sz]",
    re.IGNORECASE,
)
_RARE: Final = 0.25
"""Share of the operations below which a described name must be described as a credential."""


def with_credentials(
    security: Security,
    operations: Sequence[ApiOperation],
    library: Library,
    *,
    provider: str,
    tokens: frozenset[str],
    losses: Losses,
) -> Security:
    """The security of an API whose document declares credentials as parameters.

    Args:
        security: What its security schemes say.
        operations: Those that are imported.
        library: Finds what bodies refer to.
        provider: Name of the provider, from which the names of secrets are made.
        tokens: Parameters that repeat the bearer token.
        losses: Takes each credential, with what to set.
    """
    is_open = not security.given and not security.schemes and isinstance(security.auth, NoAuth)
    found = _candidates(operations, library if is_open else None)
    unsent = _signed(found, losses)
    is_open = is_open and not unsent
    known = security.credentials()
    made: dict[str, tuple[_Found, ProviderAuth]] = {}
    for each in found.values():
        if each.credential in known or each.credential in unsent or each.name in tokens:
            continue
        is_whole = each.credential == ("header", "authorization")
        if not _is_credential(each, len(operations)) or (not is_open and (is_whole or each.place == "body")):
            continue
        what = f"parameter {each.name}"
        if security.given or not (is_open or each.is_required):
            why = "a credential, so no argument: calls send others; to send this one, import with auth that names it"
            losses.add_all("dropped", each.places, "security", what, why)
            unsent |= {each.credential}
            continue
        name = each.name if each.name not in security.known and each.name not in made else f"{each.name}_{each.place}"
        auth = _auth_of(each, _prefix(provider))
        made[name] = each, auth
        variables = " and ".join(references_of(auth))
        why = f"a credential, so no argument: calls send {variables}; set it, or import with auth"
        losses.add_all("changed", each.places, "security", what, why)
    return replace(_joined(security, made), unsent=unsent)


def _joined(security: Security, made: Mapping[str, tuple[_Found, ProviderAuth]]) -> Security:
    if not made:
        return security
    demands: dict[str, dict[str, bool]] = {}
    for name, (each, _) in made.items():
        for place, required in each.operations.items():
            demands.setdefault(place, {})[name] = required
    added = {name: auth for name, (_, auth) in made.items()}
    if isinstance(security.auth, NoAuth) and not security.schemes and len(made) == 1:
        ((each, auth),) = made.values()
        if all(each.operations.values()):
            return replace(security, auth=auth, known=added, demands=demands)
    schemes, needed = security.schemes, security.needed or ()
    if not schemes and not isinstance(security.auth, NoAuth):
        schemes = dict(security.known)
        needed = (dict.fromkeys(schemes, ()),)
    return replace(security, auth=NoAuth(), schemes=schemes | added, needed=needed, demands=demands)


def _candidates(operations: Sequence[ApiOperation], library: Library | None) -> dict[Credential, _Found]:
    """The parameters outside of paths, and the fields of bodies if there is a library to read them."""
    found: dict[Credential, _Found] = {}
    for operation in operations:
        here: list[tuple[_Place, str, str, bool, str]] = [
            (each.place, each.name, each.node.text("description"), each.required, each.node.place)
            for each in operation.parameters
            if each.place != "path"
        ]
        if library is not None and operation.body is not None:
            here += _body_fields(operation.body, library)
        for place, name, text, required, where in here:
            new = _Found(place, name)
            each = found.setdefault(new.credential, new)
            each.text = each.text or text
            each.places.append(where)
            each.operations[operation.node.place] = required or each.operations.get(operation.node.place, False)
    return found


def _body_fields(body: Body, library: Library) -> Iterator[tuple[_Place, str, str, bool, str]]:
    """Name, description, whether they are required, and place of the fields whose names can be credentials."""
    if not body.media:
        return
    media = choose_media(body.media, files=False)
    for part in media.fields:
        text = part.description.value if part.description is not None else ""
        yield "body", part.name, str(text or ""), part.required, part.schema.place
    if not media.fields and encoding_of(media.type) in {"json", "form", "multipart"}:
        shape = shape_of(library, media.schema)
        if shape.plain and not (body.required is False and shape.required):  # then its properties are arguments
            for name, schema in shape.properties.items():
                yield "body", name, schema.text("description"), name in shape.required, schema.place


def _signed(found: Mapping[Credential, _Found], losses: Losses) -> frozenset[Credential]:
    """The parameters of AWS Signature 4, which no caller can know."""
    signed = {credential: each for credential, each in found.items() if each.name.lower() in _SIGNED}
    if not {each.name.lower() for each in signed.values()} & _SIGNATURE:
        return frozenset()
    for each in signed.values():
        losses.add_all("dropped", each.places, "security", "parameters of AWS Signature 4", f"not sent: {SIGNATURE_4}")
    return frozenset(signed)


def _is_credential(found: _Found, operations: int) -> bool:
    name = re.sub(r"[^a-z0-9]", "", found.name.lower())
    share = len(found.operations) / operations
    described = _SECRET_TEXT.search(found.text) is not None
    if _OTHER_TOKEN.search(name):
        return False
    certain = _CERTAIN.fullmatch(name) is not None
    certain = certain or (found.place == "header" and _CERTAIN_HEADER.fullmatch(name) is not None)
    if certain and share < _RARE:
        return found.place != "body" and found.is_required and (described or not found.text)
    if certain:
        return found.is_required or described or share >= 0.5
    return name in _AMBIGUOUS and found.place != "body" and share >= 0.5 and (described or not found.text)


def _auth_of(found: _Found, prefix: str) -> ProviderAuth:
    """How a credential is sent. A whole `Authorization` header is of the kind that its description says."""
    own = re.sub(r"^X_+|^_+|_+$", "", re.sub(r"[^A-Z0-9]+", "_", found.name.upper()))
    secret = own if own.startswith(f"{prefix}_") else f"{prefix}_{own}"
    if found.credential == ("header", "authorization"):
        if re.search(r"\bbasic\b", found.text, re.IGNORECASE):
            return BasicAuth(username=f"${{env:{prefix}_USERNAME}}", password=f"${{env:{prefix}_PASSWORD}}")
        if re.search(r"\bbearer\b", found.text, re.IGNORECASE):
            return BearerAuth(token=f"${{env:{prefix}_TOKEN}}")
    return ApiKeyAuth(key=f"${{env:{secret}}}", place=found.place, name=found.name)


def _prefix(provider: str) -> str:
    """What the names of a provider's secrets begin with."""
    return re.sub(r"[^A-Z0-9]+", "_", provider.upper()).strip("_")

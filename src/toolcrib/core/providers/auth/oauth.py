"""OAuth 2: the authorization request and its answer (RFC 6749, section 4.1, with PKCE), and grants without a person.

The latter are client credentials and refresh tokens (RFC 6749, sections 4.4 and 6). Pure: nothing is requested or
stored.
"""

import base64
import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Final, TypeAlias
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import orjson

from toolcrib.contracts import (
    AuthorizationCodeAuth,
    InvalidInput,
    JsonObject,
    OAuth2Auth,
    ProtectedResourceAuth,
    ProviderDefinition,
    Reason,
    digest,
)
from toolcrib.core.executor import CallFailed, error
from toolcrib.core.providers.auth.tokens import FORM, Endpoints, IssuedToken, basic
from toolcrib.infrastructure.net.origins import origin_of


@dataclass(frozen=True, slots=True)
class Client:
    """Who asks a token endpoint (RFC 6749, section 2.3.1)."""

    client_id: str = field(repr=False)
    client_secret: str | None = field(repr=False)
    in_body: bool
    """Whether the secret goes into the body instead of the header."""
    is_known: bool = False
    """Whether the id stands in the definition, so that there is nothing to hide."""

    @classmethod
    def of(cls, auth: OAuth2Auth | AuthorizationCodeAuth, values: Mapping[str, str]) -> "Client":
        """The client of a definition, with the secrets by reference."""
        return cls.named(auth.client_id, auth.client_secret, values, in_body=auth.client_auth == "body")

    @classmethod
    def named(cls, client_id: str, secret: str | None, values: Mapping[str, str], *, in_body: bool = False) -> "Client":
        """The client of an id and of a secret, each the value itself or a reference to it."""
        found = values.get(client_id)
        return cls(found or client_id, None if secret is None else values[secret], in_body, is_known=found is None)

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not be shown."""
        client_id = () if self.is_known else (self.client_id,)
        if self.client_secret is None:
            return client_id
        return (*client_id, self.client_secret, basic(self.client_id, self.client_secret))

    def request(self, fields: Mapping[str, str]) -> tuple[dict[str, str], bytes]:
        """Headers and body of a request that this client makes."""
        sent = dict(fields)
        if self.client_secret is not None and not self.in_body:
            pair = basic(self.client_id, self.client_secret)
            return {**FORM, "authorization": f"Basic {pair}"}, urlencode(sent).encode()
        sent["client_id"] = self.client_id
        if self.client_secret is not None:
            sent["client_secret"] = self.client_secret
        return dict(FORM), urlencode(sent).encode()


@dataclass(frozen=True, slots=True)
class Grant:
    """What a token is asked for with: the definition, and the secrets behind its references."""

    auth: OAuth2Auth
    scopes: tuple[str, ...]
    client: Client
    refresh_token: str | None = field(repr=False)

    @classmethod
    def of(cls, auth: OAuth2Auth, scopes: tuple[str, ...], values: Mapping[str, str]) -> "Grant":
        """The grant of a definition, with the secrets by reference."""
        refresh_token = None if auth.refresh_token is None else values[auth.refresh_token]
        return cls(auth, scopes, Client.of(auth, values), refresh_token)

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not be shown."""
        return self.client.secrets + ((self.refresh_token,) if self.refresh_token else ())

    def key(self) -> str:
        """Equal for grants that get the same token; holds no secret."""
        client = self.client
        described = [self.auth.model_dump(mode="json"), self.scopes]
        return digest(orjson.dumps([described, client.client_id, client.client_secret, self.refresh_token]))

    async def fetch(self, endpoints: Endpoints, refresh_token: str | None) -> IssuedToken:
        """A new token; see `TokenSource.fetch`."""
        auth = self.auth
        url = await endpoints.token_url(auth.token_url, auth.discovery_url)
        fields = {"grant_type": auth.grant}
        if auth.grant == "refresh_token":
            fields["refresh_token"] = refresh_token or self.refresh_token or ""
        if self.scopes:
            fields["scope"] = " ".join(self.scopes)
        if auth.audience is not None:
            fields["audience"] = auth.audience
        try:
            return await endpoints.issue(url, *self.client.request(fields))
        except CallFailed as failure:
            if failure.metadata.get("oauth_error") == "invalid_grant":
                tool_error = failure.error
                message = f"{tool_error.message}: its grant has ended, so reconnect: get a new refresh token and set it"
                failure.error = error(tool_error.code, Reason.RECONNECT_REQUIRED, message)
            raise


_OURS: Final = frozenset(
    [
        "response_type",
        "client_id",
        "redirect_uri",
        "scope",
        "state",
        "code_challenge",
        "code_challenge_method",
        "resource",
    ]
)
_MAX_WORDS: Final = 300


@dataclass(frozen=True, slots=True)
class AuthorizationServer:
    """An authorization server as one provider uses it."""

    authorization_url: str
    token_url: str
    revocation_url: str | None
    issuer: str | None
    """Null if it was not discovered, so that nobody knows it."""
    names_issuer: bool
    """Whether its answers are sure to say who it is (RFC 9207)."""


Answer: TypeAlias = Mapping[str, str]
"""Parameters of the redirect that brings a person back."""


def server_of(auth: AuthorizationCodeAuth, metadata: JsonObject) -> AuthorizationServer:
    """The server, from the definition and from what was discovered; the definition counts more.

    Raises:
        InvalidInput: An endpoint is missing, is not for a browser, or the server does not take PKCE with S256.
    """
    urls = {
        name: given or metadata.get(f"{name}_endpoint")
        for name, given in (("authorization", auth.authorization_url), ("token", auth.token_url))
    }
    for name, url in urls.items():
        if not isinstance(url, str) or not is_protected(url):
            msg = f"the {name} endpoint {str(url)[:_MAX_WORDS]!r} is not https, nor http on this machine; correct it"
            raise InvalidInput(msg)
    methods = metadata.get("code_challenge_methods_supported")
    if isinstance(methods, list) and "S256" not in methods:
        msg = f"{urls['authorization']} takes no PKCE with S256, so that a stolen code could be used; ask its owner"
        raise InvalidInput(msg)
    revocation = auth.revocation_url or metadata.get("revocation_endpoint")
    return AuthorizationServer(
        str(urls["authorization"]),
        str(urls["token"]),
        revocation if isinstance(revocation, str) and is_protected(revocation) else None,
        str(metadata["issuer"]) if "issuer" in metadata else None,
        metadata.get("authorization_response_iss_parameter_supported") is True,
    )


def is_protected(url: str) -> bool:
    """Whether a URL is one of https, or of http on this machine (RFC 8252, section 7.3); no other scheme counts."""
    origin = origin_of(url)
    if origin is None or urlsplit(url).fragment:
        return False
    return origin[0] == "https" or (origin[0] == "http" and _is_loopback(origin[1]))


def authorization_url(
    server: AuthorizationServer,
    auth: AuthorizationCodeAuth,
    *,
    client_id: str,
    redirect_uri: str,
    state: str,
    verifier: str,
) -> str:
    """The URL that a person's browser is sent to."""
    ours = {
        "response_type": "code",
        "client_id": client_id,
        "redirect_uri": redirect_uri,
        "scope": " ".join(auth.scopes),
        "state": state,
        "code_challenge": challenge_of(verifier),
        "code_challenge_method": "S256",
        "resource": auth.resource or "",
    }
    parts = urlsplit(server.authorization_url)
    kept = [(name, value) for name, value in parse_qsl(parts.query, keep_blank_values=True) if name not in _OURS]
    added = [(name, value) for name, value in auth.parameters.items() if name not in _OURS]
    query = [*kept, *added, *((name, value) for name, value in ours.items() if value)]
    return urlunsplit(parts._replace(query=urlencode(query)))


def challenge_of(verifier: str) -> str:
    """The challenge of a verifier: S256 of RFC 7636, section 4.2."""
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")


def answer_of(redirected: str) -> Answer:
    """The parameters of the URL to which a person was sent back.

    Raises:
        InvalidInput: One of them stands twice.
    """
    pairs = parse_qsl(urlsplit(redirected).query, keep_blank_values=True)
    if len(dict(pairs)) < len(pairs):
        raise InvalidInput("the redirect has a parameter twice; connect again, and paste the URL as the browser has it")
    return dict(pairs)


def code_of(answer: Answer, *, issuer: str | None, names_issuer: bool) -> str:
    """The code in an answer.

    Raises:
        InvalidInput: The server refused, or the answer is another server's (RFC 9207, section 2.4).
    """
    sender = answer.get("iss")
    if issuer is not None and (names_issuer or sender is not None) and not hmac.compare_digest(sender or "", issuer):
        other = str(sender)[:_MAX_WORDS]
        msg = f"the person was sent to {issuer}, and the answer is from {other!r}; do not use it, connect again"
        raise InvalidInput(msg)
    if "error" in answer:
        words = ": ".join(answer[name][:_MAX_WORDS] for name in ("error", "error_description") if answer.get(name))
        raise InvalidInput(f"the authorization server refused: {words}; connect again and grant what is asked for")
    if not answer.get("code"):
        raise InvalidInput("the answer of the authorization server has no code; connect again")
    return answer["code"]


BrowserAuth: TypeAlias = AuthorizationCodeAuth | ProtectedResourceAuth
"""How people connect in a browser."""


def binding_of(provider: ProviderDefinition, auth: BrowserAuth) -> str:
    """What a consent was given for: where tokens come from and where they go.

    It changes when the definition would send them elsewhere; then the person has to be asked again.
    """
    if isinstance(auth, ProtectedResourceAuth):
        chosen = (auth.authorization_servers, auth.client_id, auth.client_metadata_url)
        return digest(repr((provider.address, auth.kind, chosen)).encode())
    given = () if auth.revocation_url is None else (auth.revocation_url,)
    fixed = (auth.authorization_url, auth.token_url, auth.discovery_url, auth.client_id, auth.resource, *given)
    return digest(repr((origin_of(provider.address), fixed)).encode())


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"

"""Where a provider that is a protected resource wants its tokens from (RFC 9728), and which client we are there.

The provider answers a request without a token with a challenge. It leads to a document that names the authorization
servers and the scopes; the document of the server names the endpoints (RFC 8414). Without a client of the definition's,
one is registered (RFC 7591). Nothing is trusted that is for another resource than the provider, or of another issuer
than it names.
"""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast
from urllib.parse import urlsplit

import msgspec
import orjson

from toolcrib.contracts import (
    AuthorizationCodeAuth,
    ErrorCode,
    InvalidInput,
    JsonObject,
    McpConnection,
    ProtectedResourceAuth,
    ProviderDefinition,
    Reason,
)
from toolcrib.core.executor import CallFailed, error
from toolcrib.core.providers.auth.oauth import Client, is_protected
from toolcrib.core.providers.auth.tokens import Endpoints, checked_metadata, documents_of, json_object
from toolcrib.infrastructure.net.origins import origin_of

_PARAMETER: Final = re.compile(r'(\w+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,]+))')
_JSON: Final = {"accept": "application/json", "content-type": "application/json"}
_MAX_WORDS: Final = 300
_MOST_SCOPES: Final = 100
_OFFLINE: Final = "offline_access"


class RegisteredClient(msgspec.Struct, frozen=True):
    """A client at one authorization server; kept sealed."""

    client_id: str
    client_secret: str | None = None
    in_body: bool = False

    def as_client(self) -> Client:
        """As token endpoints are asked."""
        return Client(self.client_id, self.client_secret, self.in_body, is_known=True)


@dataclass(frozen=True, slots=True)
class ResourceRoute:
    """How a person connects to a provider now."""

    auth: AuthorizationCodeAuth
    """With the endpoints, the client and the scopes that were found."""
    metadata: JsonObject
    """Of the authorization server."""
    client: RegisteredClient


Registered: TypeAlias = Callable[[str, Callable[[], Awaitable[RegisteredClient]]], Awaitable[RegisteredClient]]
"""The client that is kept for an issuer (first), or the one that the function (second) registers."""


def challenge_of(header: str) -> Mapping[str, str]:
    """The parameters of a `WWW-Authenticate` header (RFC 9110, section 11.6.1), by name in lower case."""
    found = ((match[1].lower(), match[2], match[3]) for match in _PARAMETER.finditer(header[:8_192]))
    return {name: re.sub(r"\\(.)", r"\1", quoted) if quoted is not None else bare for name, quoted, bare in found}


def wanted_scopes(header: str) -> tuple[str, ...]:
    """The scopes that a token lacks, by the challenge that refused it (RFC 6750, section 3.1)."""
    challenge = challenge_of(header)
    return scopes_of(challenge.get("scope")) if challenge.get("error") == "insufficient_scope" else ()


def scopes_of(text: object) -> tuple[str, ...]:
    """The scopes in a list, or in a text that is separated by spaces."""
    words = text.split() if isinstance(text, str) else cast("list[object]", text) if isinstance(text, list) else []
    return tuple(dict.fromkeys(word for word in words if isinstance(word, str) and word))[:_MOST_SCOPES]


async def find_route(
    endpoints: Endpoints,
    provider: ProviderDefinition,
    auth: ProtectedResourceAuth,
    redirect_uri: str,
    *,
    given: Client | None,
    granted: Sequence[str],
    registered: Registered,
) -> ResourceRoute:
    """Where to send a person who connects to a provider.

    Args:
        endpoints: The way out.
        provider: The protected resource.
        auth: Its definition.
        redirect_uri: Where the person comes back to.
        given: The client of the definition; null if it has none.
        granted: Scopes of the connection that there is, and those that calls have lacked: they are asked for again.
        registered: Keeps clients.

    Raises:
        InvalidInput: The provider says that it is another resource, names no server that may be used, or the server
            knows no way to register a client.
        CallFailed: A document cannot be read.
    """
    challenge, described = await _description(endpoints, provider)
    issuer = _issuer(provider, auth, described)
    metadata = await server_metadata(endpoints, issuer)
    client = await _client(endpoints, auth, metadata, redirect_uri, given=given, registered=registered)
    wanted = scopes_of(challenge.get("scope")) or scopes_of(described.get("scopes_supported"))
    offline = (_OFFLINE,) if _OFFLINE in scopes_of(metadata.get("scopes_supported")) else ()
    found = AuthorizationCodeAuth(
        authorization_url=cast("str | None", metadata.get("authorization_endpoint")),
        token_url=cast("str | None", metadata.get("token_endpoint")),
        client_id=client.client_id,
        scopes=tuple(dict.fromkeys((*granted, *wanted, *auth.scopes, *(offline if wanted or granted else ())))),
        resource=str(described.get("resource") or provider.address),
        shared=auth.shared,
    )
    return ResourceRoute(found, metadata, client)


async def _description(endpoints: Endpoints, provider: ProviderDefinition) -> tuple[Mapping[str, str], JsonObject]:
    """The challenge of a provider, and what it says about itself (RFC 9728, sections 3 and 5).

    Raises:
        InvalidInput: It says nothing, or is another resource.
    """
    is_mcp = isinstance(provider.connection, McpConnection)
    method, body = ("POST", b"{}") if is_mcp else ("GET", None)
    answer = await endpoints.ask(method, provider.address, _JSON, body)
    challenge = challenge_of(answer.headers.get("www-authenticate", ""))
    parts = urlsplit(provider.address)
    root = f"{parts.scheme}://{parts.netloc}/.well-known/oauth-protected-resource"
    places = [challenge.get("resource_metadata", ""), f"{root}{parts.path.rstrip('/')}", root]
    for place in dict.fromkeys(filter(None, places)):
        described = await _document(endpoints, place)
        if described is not None:
            _check_resource(provider, described)
            return challenge, described
    msg = (
        f"provider {provider.name!r} does not say where its tokens come from: there is no document of RFC 9728 at "
        f"{root}; give its auth as authorization_code, with the addresses of its authorization server"
    )
    raise InvalidInput(msg)


async def _document(endpoints: Endpoints, url: str) -> JsonObject | None:
    """The JSON object at an address; null if there is none."""
    answer = await endpoints.ask("GET", url, {"accept": "application/json"})
    return json_object(url, answer) if answer.status == 200 else None


def _check_resource(provider: ProviderDefinition, described: JsonObject) -> None:
    """Refuse a document of another resource, with which its owner would get tokens for that one (section 3.3)."""
    resource = str(described.get("resource"))
    ours, theirs = urlsplit(provider.address).path.rstrip("/"), urlsplit(resource).path.rstrip("/")
    same = origin_of(resource) is not None and origin_of(resource) == origin_of(provider.address)
    if not same or not f"{ours}/".startswith(f"{theirs}/"):
        msg = (
            f"provider {provider.name!r} is at {provider.address} and says that it is {resource[:_MAX_WORDS]!r}, so a "
            "token for it could be used elsewhere; people are not sent to sign in: correct base_url, or ask its owner"
        )
        raise InvalidInput(msg)


def _issuer(provider: ProviderDefinition, auth: ProtectedResourceAuth, described: JsonObject) -> str:
    named = scopes_of(described.get("authorization_servers"))
    usable = [issuer for issuer in named if issuer in auth.authorization_servers or not auth.authorization_servers]
    if not usable:
        others = ", ".join(named)[:_MAX_WORDS] or "none"
        msg = (
            f"provider {provider.name!r} names the authorization servers {others}, and its definition allows "
            f"{', '.join(auth.authorization_servers) or 'any'}; correct authorization_servers if that is right"
        )
        raise InvalidInput(msg)
    return usable[0]


async def server_metadata(endpoints: Endpoints, issuer: str) -> JsonObject:
    """The document of an authorization server, which must be that very issuer's (RFC 8414, section 3.3).

    Raises:
        InvalidInput: It is not protected, or another issuer's.
        CallFailed: There is none.
    """
    if not is_protected(issuer):
        msg = f"the authorization server {issuer[:_MAX_WORDS]!r} is not https, nor http on this machine"
        raise InvalidInput(msg)
    for url in documents_of(issuer):
        document = await _document(endpoints, url)
        if document is not None and document.get("issuer") != issuer:
            other = str(document.get("issuer"))[:_MAX_WORDS]
            msg = f"{url} is of the issuer {other!r}, and {issuer!r} was expected; people are not sent there"
            raise InvalidInput(msg)
        if document is not None:
            return checked_metadata(url, document)
    message = f"authorization server {issuer[:_MAX_WORDS]} has no document about itself (RFC 8414); ask its owner"
    raise CallFailed(error(ErrorCode.PROVIDER_ERROR, Reason.BAD_RESPONSE, message))


async def _client(
    endpoints: Endpoints,
    auth: ProtectedResourceAuth,
    metadata: JsonObject,
    redirect_uri: str,
    *,
    given: Client | None,
    registered: Registered,
) -> RegisteredClient:
    """Who we are at a server: the client of the definition, one that describes itself, or one that is registered."""
    methods = scopes_of(metadata.get("token_endpoint_auth_methods_supported")) or ("client_secret_basic",)
    in_body = "client_secret_basic" not in methods and "client_secret_post" in methods
    if given is not None:
        return RegisteredClient(given.client_id, given.client_secret, in_body)
    url, issuer = metadata.get("registration_endpoint"), str(metadata["issuer"])
    takes_documents = metadata.get("client_id_metadata_document_supported") is True
    if auth.client_metadata_url is not None and (takes_documents or not isinstance(url, str)):
        return RegisteredClient(auth.client_metadata_url)
    if not isinstance(url, str) or not is_protected(url):
        msg = f"{issuer} registers no clients; make one there, and give client_id and authorization_servers"
        raise InvalidInput(msg)
    method = next((name for name in methods if name in {"none", "client_secret_basic", "client_secret_post"}), "none")

    async def register() -> RegisteredClient:
        return await _register(endpoints, url, redirect_uri, method)

    return await registered(f"{issuer} {redirect_uri}", register)


async def _register(endpoints: Endpoints, url: str, redirect_uri: str, method: str) -> RegisteredClient:
    """Register a client (RFC 7591, section 3)."""
    wanted: JsonObject = {
        "client_name": "Toolcrib",
        "redirect_uris": [redirect_uri],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": method,
        "application_type": "native" if urlsplit(redirect_uri).scheme == "http" else "web",
    }
    answer = await endpoints.ask("POST", url, _JSON, orjson.dumps(wanted))
    found: dict[str, Any] = json_object(url, answer) if answer.status in {200, 201} else {}
    client_id, secret = found.get("client_id"), found.get("client_secret")
    if not isinstance(client_id, str) or not client_id:
        message = f"{url} registered no client: status {answer.status}; make one there, and give its client_id"
        raise CallFailed(error(ErrorCode.AUTH_REQUIRED, Reason.REQUEST_REFUSED, message), http_status=answer.status)
    used = found.get("token_endpoint_auth_method", method)
    keeps_secret = isinstance(secret, str) and used != "none"
    return RegisteredClient(client_id, secret if keeps_secret else None, used == "client_secret_post")

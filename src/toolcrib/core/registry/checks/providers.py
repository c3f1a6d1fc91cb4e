"""Is a provider well formed? Its address, its authentication, and that it holds secrets by reference only.

Nothing is opened for it.
"""

import re
from collections.abc import Iterator
from typing import Final, assert_never, cast

from toolcrib.contracts import (
    NAME_PATTERN,
    SECRET_REFERENCE,
    ApiKeyAuth,
    AuthorizationCodeAuth,
    BasicAuth,
    BearerAuth,
    DatabaseConnection,
    GrpcConnection,
    HttpConnection,
    InvalidDefinition,
    InvalidExpression,
    Json,
    JsonObject,
    McpConnection,
    MutualTlsAuth,
    NoAuth,
    OAuth2Auth,
    ProtectedResourceAuth,
    ProviderAuth,
    ProviderDefinition,
    TwoStepAuth,
)
from toolcrib.core.expressions.jsonpath import check_path

ABSOLUTE: Final = re.compile(r"https?://[^/?#\s]+([/?#][^\x00-\x1f\x7f]*)?", re.IGNORECASE)
"""A space may stand behind the host, also in the name of a placeholder: it is encoded when it is sent."""

_GRPC: Final = re.compile(r"grpcs?://[^/?#\s]+", re.IGNORECASE)


_PLACEHOLDER: Final = re.compile(r"\{([^{}]*)\}")


def check_provider(provider: ProviderDefinition) -> None:
    """Refuse a provider whose address or authentication could not be used.

    Raises:
        InvalidDefinition: Names the provider, the field, what is wrong and what to do.
    """
    problem = next(_provider_problems(provider), None)
    if problem is not None:
        raise InvalidDefinition(f"provider {provider.name!r}: {problem}")


def _provider_problems(provider: ProviderDefinition) -> Iterator[str]:
    for name, variable in provider.variables.items():
        used = variable.default if variable.value is None else variable.value
        if variable.enum and used not in variable.enum:
            yield f"variable {name!r} is {used!r}; it may be {', '.join(variable.enum)}"
    unknown = [name for name in _PLACEHOLDER.findall(provider.base_url) if name not in provider.variables]
    if unknown:
        yield f"base_url holds {{{unknown[0]}}}, which its variables do not have; define it, or write the value"
    else:
        yield from _address_problems(provider)
    yield from _authentication_problems(provider)


def check_provider_name(name: str) -> None:
    """Refuse a name that no provider can have.

    Raises:
        InvalidDefinition: The name, and what it may consist of.
    """
    if not re.fullmatch(NAME_PATTERN, name):
        msg = f"{name[:200]!r} is not a valid provider name: use 1 to 128 letters, digits and _ . -, the first a letter"
        raise InvalidDefinition(msg)


def _address_problems(provider: ProviderDefinition) -> Iterator[str]:
    """What is wrong with a provider's address, and with the address for this kind of connection."""
    address = provider.address
    match provider.connection:
        case McpConnection() as mcp:
            yield from _mcp_problems(mcp, address)
        case HttpConnection():
            yield from _web_problems(address)
        case GrpcConnection():
            if not _GRPC.fullmatch(address):
                yield f"base_url {address!r} names no gRPC server; write it as grpc://host:port or grpcs://host:port"
        case DatabaseConnection():
            if address:
                yield "a database has its URL in connection.url, not in base_url; take base_url away"
        case _:
            assert_never(provider.connection)


def _mcp_problems(connection: McpConnection, address: str) -> Iterator[str]:
    if connection.transport != "stdio":
        yield from _web_problems(address)
        if connection.command or connection.environment:
            yield f"an MCP server over {connection.transport} starts no program; take command and environment away"
        return
    if not connection.command:
        yield "an MCP server over stdio has a command; give the program and its arguments"
    if address:
        yield f"an MCP server over stdio has no base_url, and this one has {address!r}; take it away"


def _web_problems(address: str) -> Iterator[str]:
    if not ABSOLUTE.fullmatch(address):
        yield f"base_url {address!r} is not absolute; write it as https://host/path"


CREDENTIAL_NAME: Final = re.compile(
    r"(?i)(^|[-_])(authorization|cookie|passw(or)?d|passphrase|secret|token|credentials?|(api|auth|access|private)[-_]?key)"
    r"($|[-_])|apikey|(client|app)secret|(access|auth|refresh)token"
)
"""Names of headers and fields that hold a credential."""
REFERENCE_HINT: Final = "a reference such as ${env:CRM_TOKEN} or ${secret:CRM_TOKEN}"


def references_of(auth: ProviderAuth) -> tuple[str, ...]:
    """The references to secrets in a way to authenticate, each once."""
    if isinstance(auth, TwoStepAuth):
        texts = (*auth.login.headers.values(), *(text for _, text in _texts("", auth.login.body)))
        found = [match[0] for text in texts for match in SECRET_REFERENCE.finditer(text)]
    else:
        found = [text for _, text in _secrets(auth)]
        named = isinstance(auth, OAuth2Auth | AuthorizationCodeAuth | ProtectedResourceAuth)
        if named and auth.client_id is not None and SECRET_REFERENCE.fullmatch(auth.client_id):
            found.append(auth.client_id)
    return tuple(dict.fromkeys(found))


def all_references_of(provider: ProviderDefinition) -> tuple[str, ...]:
    """The references to secrets in a provider, those of its connection included, each once."""
    found = [reference for auth in (provider.auth, *provider.schemes.values()) for reference in references_of(auth)]
    for _, text in (*_connection_texts(provider), *_texts("", provider.imported_from)):
        found += [match[0] for match in SECRET_REFERENCE.finditer(text)]
    return tuple(dict.fromkeys(found))


def _authentication_problems(provider: ProviderDefinition) -> Iterator[str]:
    """What is wrong with a provider's ways to authenticate, and with credentials where they do not belong."""
    for name, auth in {"auth": provider.auth, **provider.schemes}.items():
        yield from (f"{name}: {problem}" for problem in _problems(auth, provider))
    for requirement in provider.security or ():
        for name in set(requirement) - set(provider.schemes):
            known = ", ".join(provider.schemes) or "it has no schemes"
            yield f"security needs {name!r}, which its schemes do not have: {known}"
    for name in provider.headers:
        if CREDENTIAL_NAME.search(name):
            yield f"the default header {name!r} would hold a credential; give it as auth, by {REFERENCE_HINT}"
    yield from _connection_problems(provider)


def _connection_problems(provider: ProviderDefinition) -> Iterator[str]:
    is_database = isinstance(provider.connection, DatabaseConnection)
    for name, text in _connection_texts(provider):
        is_value = not SECRET_REFERENCE.fullmatch(text) and not text.startswith("/")  # a path names a file of secrets
        if is_value and (is_database or CREDENTIAL_NAME.search(name)):
            what = f"its connection has {name!r} as a text of {len(text)} characters"
            yield f"{what} instead of {REFERENCE_HINT}; set it there"


def _connection_texts(provider: ProviderDefinition) -> list[tuple[str, str]]:
    """What of a connection may be a secret, with its name."""
    match provider.connection:
        case McpConnection() as server:
            return list(server.environment.items())
        case DatabaseConnection(url=str(url)):
            return [("url", url)]
        case _:
            return []


def _problems(auth: ProviderAuth, provider: ProviderDefinition) -> Iterator[str]:
    for field, text in _secrets(auth):
        if not SECRET_REFERENCE.fullmatch(text):
            yield f"{field} holds a text of {len(text)} characters instead of {REFERENCE_HINT}; set it there"
    match auth:
        case OAuth2Auth():
            yield from _oauth_problems(auth)
        case AuthorizationCodeAuth():
            yield from _code_problems(auth)
        case ProtectedResourceAuth():
            yield from _resource_problems(auth)
        case TwoStepAuth():
            yield from _login_problems(auth)
        case MutualTlsAuth():
            yield from _tls_problems(auth, provider)
        case NoAuth() | BearerAuth() | BasicAuth() | ApiKeyAuth():
            pass
        case _:
            assert_never(auth)


def _secrets(auth: ProviderAuth) -> list[tuple[str, str]]:
    """The fields that are a reference and nothing else, with what they hold."""
    match auth:
        case NoAuth() | TwoStepAuth():
            names = ()
        case BearerAuth():
            names = ("token",)
        case BasicAuth():
            names = ("username", "password")
        case ApiKeyAuth():
            names = ("key",)
        case OAuth2Auth():
            names = ("client_secret", "refresh_token")
        case AuthorizationCodeAuth() | ProtectedResourceAuth():
            names = ("client_secret",)
        case MutualTlsAuth():
            names = ("certificate", "key", "password", "ca")
        case _:
            assert_never(auth)
    return [(name, text) for name in names if (text := getattr(auth, name)) is not None]


def _oauth_problems(auth: OAuth2Auth) -> Iterator[str]:
    if (auth.token_url is None) == (auth.discovery_url is None):
        yield "give either token_url or discovery_url"
    yield from _url_problems(auth.token_url, auth.discovery_url)
    if auth.grant == "refresh_token" and auth.refresh_token is None:
        yield "the grant refresh_token needs a refresh_token; give its reference"
    if auth.grant == "client_credentials" and auth.client_secret is None:
        yield "the grant client_credentials needs a client_secret; give its reference"


def _code_problems(auth: AuthorizationCodeAuth) -> Iterator[str]:
    if auth.discovery_url is None and (auth.authorization_url is None or auth.token_url is None):
        yield "give authorization_url and token_url, or discovery_url"
    yield from _url_problems(auth.authorization_url, auth.token_url, auth.revocation_url, auth.discovery_url)
    for name in auth.parameters:
        if CREDENTIAL_NAME.search(name):
            yield f"parameters has {name!r}, which would show a credential in a browser; take it away"


def _resource_problems(auth: ProtectedResourceAuth) -> Iterator[str]:
    yield from _url_problems(*auth.authorization_servers, auth.client_metadata_url)
    if auth.client_id is None and auth.client_secret is not None:
        yield "client_secret is of a client that is not named; give client_id too"
    if auth.client_id is not None and len(auth.authorization_servers) != 1:
        yield "client_id is of a client at one server; name its issuer in authorization_servers, and no other"


def _login_problems(auth: TwoStepAuth) -> Iterator[str]:
    if not auth.login.url.startswith("/"):
        yield from _url_problems(auth.login.url)
    if "{token}" not in auth.template:
        yield f"template {auth.template!r} has no place for the token; write e.g. 'Token {{token}}'"
    for path in filter(None, (auth.path, auth.life_path)):
        try:
            check_path(path)
        except InvalidExpression as problem:
            yield f"the path {path!r} cannot be applied: {problem}"
    if auth.login.method == "GET" and auth.login.body is not None:
        yield "a login with GET has no body; use POST, or headers"
    for name, text in (*auth.login.headers.items(), *_texts("", auth.login.body)):
        if CREDENTIAL_NAME.search(name) and not SECRET_REFERENCE.search(text):
            yield f"login.{name} holds a text of {len(text)} characters instead of {REFERENCE_HINT}"
    if not references_of(auth):
        yield f"its login names no secret, so anybody could do it; write each secret as {REFERENCE_HINT}"


def _tls_problems(auth: MutualTlsAuth, provider: ProviderDefinition) -> Iterator[str]:
    if auth.certificate is None and auth.ca is None:
        yield "give a certificate with its key, a ca, or all of them"
    if (auth.certificate is None) != (auth.key is None):
        yield "certificate and key belong together; give both"
    if not provider.address.lower().startswith(("https:", "grpcs:")):
        yield f"base_url {provider.address!r} is without TLS, so that no certificate is shown; write it with https://"


def _url_problems(*urls: str | None) -> Iterator[str]:
    for url in urls:
        if url is not None and not ABSOLUTE.fullmatch(url):
            yield f"{url!r} is not absolute; write it as https://host/path"


def _texts(name: str, value: Json) -> Iterator[tuple[str, str]]:
    """Every text in a body, under the name of the member that it is in."""
    if isinstance(value, str):
        yield name, value
    elif isinstance(value, dict):
        for key, item in cast("JsonObject", value).items():
            yield from _texts(key, item)
    elif isinstance(value, list):
        for item in cast("list[Json]", value):
            yield from _texts(name, item)

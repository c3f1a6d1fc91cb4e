"""Authentication of providers, as it is judged when it is saved."""

from typing import Any

import pytest

from toolcrib.contracts import (
    ApiKeyAuth,
    AuthorizationCodeAuth,
    BasicAuth,
    BearerAuth,
    DatabaseConnection,
    InvalidDefinition,
    LoginRequest,
    McpConnection,
    MutualTlsAuth,
    NoAuth,
    OAuth2Auth,
    ProviderAuth,
    ProviderDefinition,
    TwoStepAuth,
)
from toolcrib.core.registry import all_references_of, references_of
from toolcrib.core.registry.checks.providers import check_provider

VALUE = "sk-live-0123456789"
REF = "${secret:CRM}"
OTHER = "${env:OTHER}"


def provider(auth: ProviderAuth, **changes: Any) -> ProviderDefinition:
    fields: dict[str, Any] = {"name": "crm", "base_url": "https://api.test", "auth": auth}
    return ProviderDefinition(**fields | changes)


def code(**changes: Any) -> AuthorizationCodeAuth:
    fields: dict[str, Any] = {"discovery_url": "https://auth.test/.well-known/openid-configuration", "client_id": "us"}
    return AuthorizationCodeAuth(**fields | changes)


def mcp(**environment: str) -> McpConnection:
    return McpConnection(transport="stdio", command=("server",), environment=environment)


def login(**changes: Any) -> TwoStepAuth:
    request: dict[str, Any] = {"url": "/session", "body": {"password": REF}}
    request |= {name: changes.pop(name) for name in set(changes) & set(LoginRequest.model_fields)}
    return TwoStepAuth(login=LoginRequest(**request), **changes)


@pytest.mark.requirement("registry.authentication")
@pytest.mark.parametrize(
    ("auth", "references"),
    [
        (NoAuth(), ()),
        (BearerAuth(token=REF), (REF,)),
        (BasicAuth(username=OTHER, password=REF), (OTHER, REF)),
        (ApiKeyAuth(key=REF, name="X-Key"), (REF,)),
        (OAuth2Auth(token_url="https://a.test/t", client_id=OTHER, client_secret=REF), (REF, OTHER)),
        (OAuth2Auth(token_url="https://a.test/t", client_id="us", client_secret=REF), (REF,)),
        (code(), ()),
        (code(client_secret=REF, client_id=OTHER), (REF, OTHER)),
        (login(headers={"X-App": f"app {OTHER}"}, body={"a": [{"password": f"{REF}{OTHER}"}], "n": 1}), (OTHER, REF)),
        (login(method="GET", body=None, headers={"Authorization": f"Key {REF}"}), (REF,)),
        (MutualTlsAuth(certificate=OTHER, key=REF), (OTHER, REF)),
        (MutualTlsAuth(ca=REF), (REF,)),
    ],
)
def test_a_way_to_authenticate_is_saved_and_names_its_secrets(auth: Any, references: tuple[str, ...]) -> None:
    check_provider(provider(auth))
    assert references_of(auth) == references


@pytest.mark.requirement("registry.authentication", "secrets.references")
@pytest.mark.parametrize(
    "auth",
    [
        BearerAuth(token=VALUE),
        BearerAuth(token=f"Bearer {REF}"),
        BasicAuth(username=REF, password=VALUE),
        BasicAuth(username=VALUE, password=REF),
        ApiKeyAuth(key=VALUE, name="X-Key"),
        OAuth2Auth(token_url="https://a.test/t", client_id=REF, client_secret=VALUE),
        OAuth2Auth(token_url="https://a.test/t", client_id="us", grant="refresh_token", refresh_token=VALUE),
        code(client_secret=VALUE),
        login(body={"user": REF, "password": VALUE}),
        login(headers={"X-Api-Key": VALUE}),
        MutualTlsAuth(certificate=REF, key=f"-----BEGIN PRIVATE KEY-----\n{VALUE}"),
    ],
)
def test_a_value_in_the_place_of_a_reference_is_refused_and_not_repeated(auth: Any) -> None:
    for definition in (provider(auth), provider(NoAuth(), schemes={"own": auth})):
        with pytest.raises(InvalidDefinition, match=r"instead of a reference such as \$\{env:CRM_TOKEN\}") as caught:
            check_provider(definition)
        assert VALUE not in str(caught.value)


@pytest.mark.requirement("registry.authentication")
@pytest.mark.parametrize(
    ("auth", "problem"),
    [
        (code(discovery_url=None), "give authorization_url and token_url, or discovery_url"),
        (code(authorization_url="javascript:alert(1)"), "'javascript:alert(1)' is not absolute"),
        (code(parameters={"client_secret": VALUE}), "parameters has 'client_secret', which would show a credential"),
        (login(template="Token"), "template 'Token' has no place for the token"),
        (login(path="$..["), "the path '$..[' cannot be applied"),
        (login(life_path="nope"), "the path 'nope' cannot be applied"),
        (login(method="GET"), "a login with GET has no body"),
        (login(url="session"), "'session' is not absolute"),
        (login(body={"user": "guest"}), "its login names no secret"),
        (MutualTlsAuth(), "give a certificate with its key, a ca, or all of them"),
        (MutualTlsAuth(certificate=REF), "certificate and key belong together"),
    ],
)
def test_what_could_not_be_used_is_refused(auth: Any, problem: str) -> None:
    with pytest.raises(InvalidDefinition) as caught:
        check_provider(provider(auth))
    assert f"provider 'crm': auth: {problem}" in str(caught.value)
    assert VALUE not in str(caught.value)


@pytest.mark.requirement("registry.authentication")
def test_a_certificate_is_for_an_address_with_tls() -> None:
    with pytest.raises(InvalidDefinition, match=r"'http://api\.test' is without TLS"):
        check_provider(provider(MutualTlsAuth(ca=REF), base_url="http://api.test"))


@pytest.mark.requirement("registry.authentication")
@pytest.mark.parametrize(
    "name",
    [
        "Authorization",
        "proxy-authorization",
        "Cookie",
        "X-Api-Key",
        "apikey",
        "X-Auth-Token",
        "X-Client-Secret",
        "Token",
    ],
)
def test_a_default_header_that_would_hold_a_credential_is_refused(name: str) -> None:
    with pytest.raises(InvalidDefinition, match=f"the default header {name!r} would hold a credential"):
        check_provider(provider(NoAuth(), headers={name: VALUE}))


@pytest.mark.requirement("registry.authentication")
def test_an_ordinary_default_header_is_no_credential() -> None:
    names = ("X-Tenant", "Accept-Language", "X-Monkey", "Tokenizer", "X-Keyboard", "Stripe-Version")
    check_provider(provider(NoAuth(), headers=dict.fromkeys(names, "x")))


@pytest.mark.requirement("registry.authentication")
@pytest.mark.parametrize(
    ("connection", "problem"),
    [
        (
            DatabaseConnection(url="postgresql://app:sk-live-0123456789@db/app"),
            "its connection has 'url' as a text of 42",
        ),
        (DatabaseConnection(url=f"{REF}/app"), "its connection has 'url' as a text of"),
        (mcp(GITHUB_TOKEN=VALUE), "its connection has 'GITHUB_TOKEN' as a text of 18 characters"),
    ],
)
def test_a_connection_names_its_secrets_too(connection: Any, problem: str) -> None:
    with pytest.raises(InvalidDefinition, match=problem) as caught:
        check_provider(provider(NoAuth(), base_url="", connection=connection))
    assert VALUE not in str(caught.value)


@pytest.mark.requirement("registry.authentication")
def test_all_references_of_a_provider_are_found_those_of_its_connection_included() -> None:
    ways = provider(BearerAuth(token=REF), schemes={"key": ApiKeyAuth(key=OTHER, name="X-Key")})
    assert all_references_of(ways) == (REF, OTHER)
    started = provider(NoAuth(), base_url="", connection=mcp(GITHUB_TOKEN=REF, CREDENTIALS="/etc/app.json", MODE="x"))
    check_provider(started)
    assert all_references_of(started) == (REF,)
    kept = provider(NoAuth(), base_url="", connection=DatabaseConnection(url=OTHER))
    check_provider(kept)
    assert all_references_of(kept) == (OTHER,)
    assert all_references_of(provider(NoAuth(), base_url="", connection=DatabaseConnection())) == ()

"""Credentials of providers."""

from typing import Any

import pytest

from toolcrib.contracts import (
    ApiKeyAuth,
    BasicAuth,
    BearerAuth,
    ErrorCode,
    NoAuth,
    ProviderAuth,
    ProviderDefinition,
    Reason,
)
from toolcrib.executor import CallFailed
from toolcrib.providers import Credentials, credentials_for
from toolcrib.providers.origins import origin_of

SECRETS = {"${env:T}": "token-1", "${env:U}": "user", "${env:P}": "pass"}
KEY = "${env:T}"


def credentials(auth: ProviderAuth, url: str = "https://api.test/v1/deals", **secrets: str) -> Credentials:
    provider = ProviderDefinition(name="crm", base_url="https://API.test:443/v1", auth=auth)
    return credentials_for(provider, url, (SECRETS | secrets).get)


@pytest.mark.requirement("providers.auth_applied")
@pytest.mark.parametrize(
    ("auth", "expected"),
    [
        (NoAuth(), Credentials()),
        (BearerAuth(token=KEY), Credentials({"authorization": "Bearer token-1"}, secrets=("token-1",))),
        (
            BasicAuth(username="${env:U}", password="${env:P}"),
            Credentials({"authorization": "Basic dXNlcjpwYXNz"}, secrets=("user", "pass", "dXNlcjpwYXNz")),
        ),
        (ApiKeyAuth(key=KEY, name="X-Key"), Credentials({"x-key": "token-1"}, secrets=("token-1",))),
        (ApiKeyAuth(key=KEY, name="key", place="query"), Credentials(query={"key": "token-1"}, secrets=("token-1",))),
        (
            ApiKeyAuth(key=KEY, name="sid", place="cookie"),
            Credentials(cookies={"sid": "token-1"}, secrets=("token-1",)),
        ),
    ],
)
def test_each_kind_becomes_parts_of_a_request_and_names_its_secrets(auth: Any, expected: Credentials) -> None:
    assert credentials(auth) == expected
    assert "token-1" not in repr(credentials(auth))


@pytest.mark.requirement("providers.auth_missing")
def test_a_missing_secret_names_the_reference_to_set() -> None:
    with pytest.raises(CallFailed, match=r"provider 'crm' needs \$\{env:NONE\}") as caught:
        credentials(BearerAuth(token="${env:NONE}"))
    assert (caught.value.error.code, caught.value.error.reason) == (ErrorCode.AUTH_REQUIRED, Reason.MISSING_SECRET)


@pytest.mark.requirement("providers.auth_origin")
@pytest.mark.parametrize(
    "url",
    [
        "http://api.test/v1",
        "https://api.test:444/v1",
        "https://api.test.evil.test/v1",
        "https://evil.test/https://api.test",
        "https://api.test@evil.test/",
        "https://evil.test\\@api.test/",
        "https://{host}/v1",
        "//api.test/v1",
    ],
)
def test_credentials_are_for_the_origin_of_their_provider_only(url: str) -> None:
    with pytest.raises(CallFailed, match="calls another origin") as caught:
        credentials(BearerAuth(token=KEY), url)
    assert caught.value.error.code == ErrorCode.POLICY_DENIED
    assert credentials(NoAuth(), url) == Credentials()


@pytest.mark.requirement("providers.auth_origin")
@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("HTTPS://Api.test", ("https", "api.test", 443)),
        ("http://[::1]:8080/x", ("http", "[::1]", 8080)),
        ("http://a.test?x", ("http", "a.test", 80)),
        ("ftp://a.test", None),
        ("https://a.test:port/", None),
    ],
)
def test_an_origin_is_scheme_host_and_port(url: str, origin: Any) -> None:
    assert origin_of(url) == origin

"""Credentials of providers."""

from typing import Any

import pytest

from tests.twins import DictSecrets, ManualClock, make_holder
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
from toolcrib.core.executor import CallFailed
from toolcrib.core.providers import CredentialOwner, Credentials, credentials_for
from toolcrib.infrastructure.net import HttpSession
from toolcrib.infrastructure.net.origins import origin_of

SECRETS = {"${env:T}": "token-1", "${env:U}": "user", "${env:P}": "pass"}
KEY = "${env:T}"
NO_AUTH = NoAuth()


def holder(session: HttpSession) -> CredentialOwner:
    return make_holder(session, ManualClock(), DictSecrets(SECRETS))


async def credentials(
    auth: ProviderAuth = NO_AUTH, url: str = "https://api.test/v1/deals", security: Any = None, **more: Any
) -> Credentials:
    provider = ProviderDefinition(name="crm", base_url="https://API.test:443/v1", auth=auth, **more)
    async with HttpSession() as session:
        return await credentials_for(provider, url, holder(session), security)


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
async def test_each_kind_becomes_parts_of_a_request_and_names_its_secrets(auth: Any, expected: Credentials) -> None:
    found = await credentials(auth)
    assert found == expected
    assert "token-1" not in repr(found)


@pytest.mark.requirement("providers.auth_missing")
async def test_a_missing_secret_names_the_reference_to_set() -> None:
    with pytest.raises(CallFailed, match=r"provider 'crm' needs \$\{env:NONE\}") as caught:
        await credentials(BearerAuth(token="${env:NONE}"))
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
async def test_credentials_are_for_the_origin_of_their_provider_only(url: str) -> None:
    with pytest.raises(CallFailed, match="calls another origin") as caught:
        await credentials(BearerAuth(token=KEY), url)
    assert caught.value.error.code == ErrorCode.POLICY_DENIED
    assert await credentials(NoAuth(), url) == Credentials()


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


NOTHING: dict[str, Any] = {}
SCHEMES: dict[str, ProviderAuth] = {
    "bearer": BearerAuth(token=KEY),
    "key": ApiKeyAuth(key="${env:U}", name="X-Key"),
    "unset": BasicAuth(username="${env:NONE}", password="${env:P}"),
    "unset_key": ApiKeyAuth(key="${env:MISSING}", name="X-Key"),
}


@pytest.mark.requirement("authentication.alternatives")
@pytest.mark.parametrize(
    ("security", "headers"),
    [
        ([{"bearer": ()}], {"authorization": "Bearer token-1"}),
        ([{"bearer": (), "key": ()}], {"authorization": "Bearer token-1", "x-key": "user"}),
        ([{"unset": ()}, {"key": ()}, {"bearer": ()}], {"x-key": "user"}),
        ([{"unset": (), "bearer": ()}, {"key": ()}], {"x-key": "user"}),
        ([NOTHING, {"bearer": ()}], {"authorization": "Bearer token-1"}),
        ([NOTHING, {"unset": ()}], NOTHING),
        ([], NOTHING),
        ([NOTHING], NOTHING),
    ],
)
async def test_the_first_alternative_whose_secrets_are_all_there_is_met(security: Any, headers: Any) -> None:
    assert (await credentials(schemes=SCHEMES, security=security)).headers == headers


@pytest.mark.requirement("authentication.alternatives")
async def test_an_operation_without_security_has_its_providers_and_without_that_its_one_auth() -> None:
    found = await credentials(schemes=SCHEMES)
    assert found == Credentials()
    provider = ProviderDefinition(
        name="crm", base_url="https://api.test", auth=BearerAuth(token=KEY), schemes=SCHEMES, security=({"key": ()},)
    )
    async with HttpSession() as session:
        found = await credentials_for(provider, "https://api.test/x", holder(session))
        assert found.headers == {"x-key": "user"}
        plain = provider.model_copy(update={"security": None})
        found = await credentials_for(plain, "https://api.test/x", holder(session))
        assert found.headers == {"authorization": "Bearer token-1"}


@pytest.mark.requirement("authentication.alternatives", "providers.auth_missing")
async def test_no_alternative_with_all_secrets_names_what_each_of_them_lacks() -> None:
    with pytest.raises(CallFailed) as caught:
        await credentials(schemes=SCHEMES, security=[{"unset": (), "unset_key": ()}, {"unset_key": ()}])
    assert caught.value.error.code == ErrorCode.AUTH_REQUIRED
    assert "needs ${env:NONE} and ${env:MISSING}, or ${env:MISSING}, which are not set" in caught.value.error.message


@pytest.mark.requirement("authentication.alternatives")
async def test_a_scheme_that_the_provider_does_not_define_is_named() -> None:
    with pytest.raises(CallFailed, match="scheme 'other', which provider 'crm' does not define; it has: bearer, key"):
        await credentials(schemes=SCHEMES, security=[{"other": ()}])


@pytest.mark.requirement("providers.auth_origin")
async def test_an_anonymous_operation_may_be_anywhere_and_one_with_credentials_may_not() -> None:
    assert await credentials(BearerAuth(token=KEY), "https://other.test/", security=[]) == Credentials()
    with pytest.raises(CallFailed, match="calls another origin"):
        await credentials(url="https://other.test/", schemes=SCHEMES, security=[{"key": ()}])

"""From a tool to its provider."""

from typing import Any

import pytest

from tests.twins import DictSecrets, ManualClock, make_access, make_tool
from toolcrib.contracts import (
    OWNER,
    AuthorizationCodeAuth,
    BearerAuth,
    ErrorCode,
    LoginRequest,
    OAuth2Auth,
    Principal,
    ProviderAuth,
    ProviderDefinition,
    Reason,
    TwoStepAuth,
)
from toolcrib.core.executor import CallFailed, SecretResolver
from toolcrib.core.providers import ProviderAccess
from toolcrib.core.providers.auth.credentials import hosts_of
from toolcrib.infrastructure.net import HttpSession
from toolcrib.infrastructure.secrets import EnvironmentSecrets, Safe, ScopedSecrets, Vault
from toolcrib.infrastructure.store import MemoryStore

CRM = ProviderDefinition(name="crm", base_url="https://api.test", auth=BearerAuth(token="${env:T}"))


def access(session: HttpSession, secrets: SecretResolver, **changes: Any) -> ProviderAccess:
    known = {("default", "crm"): CRM.model_copy(update=changes)}
    return make_access(session, ManualClock(), secrets, lambda realm, name: known.get((realm, name)))


@pytest.mark.requirement("providers.enabled")
async def test_a_provider_is_found_in_the_realm_of_its_tool_and_must_be_enabled() -> None:
    async with HttpSession() as session:
        assert access(session, DictSecrets()).require(make_tool(), "crm") == CRM
        with pytest.raises(CallFailed, match="provider 'crm', which does not exist; define it") as caught:
            access(session, DictSecrets()).require(make_tool(realm="other"), "crm")
        assert caught.value.error.code == ErrorCode.AUTH_REQUIRED
        with pytest.raises(CallFailed, match="provider 'crm', which is disabled; enable it") as caught:
            access(session, DictSecrets(), enabled=False).require(make_tool(), "crm")
        assert (caught.value.error.code, caught.value.error.reason) == (
            ErrorCode.POLICY_DENIED,
            Reason.PROVIDER_DISABLED,
        )


@pytest.mark.requirement("providers.auth_applied")
async def test_credentials_are_those_of_the_principal_who_calls() -> None:
    secrets = DictSecrets({"${env:T}": "token-1"})
    async with HttpSession() as session:
        found = await access(session, secrets).credentials(CRM, "https://api.test/x", OWNER)
    assert found.headers == {"authorization": "Bearer token-1"}
    assert {who for _, who in secrets.asked} == {OWNER.id}


@pytest.mark.requirement("secrets.references")
async def test_a_secret_outside_of_authentication_fails_the_call_if_it_is_no_reference() -> None:
    async with HttpSession() as session:
        vault = Vault(Safe(MemoryStore().sealed, None))
        ways = access(session, ScopedSecrets(EnvironmentSecrets({"T": "value"}, ("*",)), vault))
        assert await ways.secret("${env:T}", OWNER) == "value"
        with pytest.raises(CallFailed) as caught:
            await ways.secret("pasted-value", OWNER)
    assert (caught.value.error.code, caught.value.error.reason) == (ErrorCode.AUTH_REQUIRED, Reason.MISSING_SECRET)
    assert "pasted" not in caught.value.error.message


@pytest.mark.requirement("secrets.released_where")
async def test_a_variable_goes_only_to_the_hosts_that_it_is_released_for_and_from_no_other_realm() -> None:
    released = EnvironmentSecrets({"T": "value-of-t"}, ("T:api.test",))
    secrets = ScopedSecrets(released, Vault(Safe(MemoryStore().sealed, None)))
    rival = Principal(id="mallory", realm="rivals")
    collector = CRM.model_copy(update={"base_url": "https://collector.test"})
    async with HttpSession() as session:
        ways = access(session, secrets)
        found = await ways.credentials(CRM, "https://api.test/x", OWNER)
        refused: list[str] = []
        for provider, who in ((CRM, rival), (collector, OWNER)):
            with pytest.raises(CallFailed) as caught:
                await ways.credentials(provider, f"{provider.base_url}/x", who)
            refused.append(caught.value.error.message)
        assert await ways.secret("${env:T}", OWNER) is None  # for a program or a database: anywhere

    assert found.headers == {"authorization": "Bearer value-of-t"}
    assert all("needs ${env:T}, which is not set or not released" in message for message in refused)


@pytest.mark.requirement("secrets.released_where")
@pytest.mark.parametrize(
    ("auth", "hosts"),
    [
        (BearerAuth(token="${env:T}"), ["api.test"]),
        (OAuth2Auth(token_url="https://login.test/token", client_id="c", client_secret="${env:T}"), ["login.test"]),
        (OAuth2Auth(discovery_url="https://id.test/x", client_id="c", client_secret="${env:T}"), ["id.test"]),
        (
            AuthorizationCodeAuth(
                authorization_url="https://id.test/a",
                token_url="https://login.test/token",
                revocation_url="https://other.test/revoke",
                client_id="c",
                client_secret="${env:T}",
            ),
            ["login.test", "other.test"],
        ),
        (
            TwoStepAuth(login=LoginRequest(url="https://login.test/go")),
            ["login.test"],
        ),
        (TwoStepAuth(login=LoginRequest(url="/login")), ["api.test"]),
    ],
)
def test_a_secret_is_sent_to_the_hosts_of_its_way_to_authenticate(auth: ProviderAuth, hosts: list[str]) -> None:
    assert list(hosts_of(auth, CRM)) == hosts


@pytest.mark.requirement("secrets.released_where")
def test_an_address_without_a_host_is_no_released_host() -> None:
    for address in ("", "https://[", "not a url"):
        provider = CRM.model_copy(update={"base_url": address})
        assert list(hosts_of(provider.auth, provider)) == [""]

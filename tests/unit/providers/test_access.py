"""From a tool to its provider."""

from typing import Any

import pytest

from tests.twins import DictSecrets, ManualClock, make_access, make_tool
from toolcrib.contracts import OWNER, BearerAuth, ErrorCode, ProviderDefinition, Reason
from toolcrib.core.executor import CallFailed, SecretResolver
from toolcrib.core.providers import ProviderAccess
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

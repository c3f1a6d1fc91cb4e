"""References to secrets, and the variables that they lead to."""

import pytest

from toolcrib.contracts import InvalidDefinition, InvalidSettings
from toolcrib.infrastructure.secrets import EnvironmentSecrets, reference_parts

ENVIRONMENT = {
    "CRM_TOKEN": "crm-value",
    "CRM_EMPTY": "",
    "DATABASE_URL": "postgresql://server",
    "TOOLCRIB_PEPPER": "p" * 32,
    "TOOLCRIB_MASTER_KEYS": "k1:abc",
}


@pytest.mark.requirement("secrets.references")
def test_a_reference_names_where_a_secret_is_kept_and_what_it_is_called_there():
    assert reference_parts("${env:CRM_TOKEN}") == ("env", "CRM_TOKEN")
    assert reference_parts("${secret:_x9}") == ("secret", "_x9")


@pytest.mark.requirement("secrets.references")
@pytest.mark.parametrize(
    "text",
    ["sk-live-0123456789", "", "${env:}", "${env:9A}", "${env:A-B}", " ${env:A}", "${env:A}\n", "$env:A", "${vault:A}"],
)
def test_what_is_no_reference_is_refused_without_repeating_it(text: str):
    with pytest.raises(InvalidDefinition) as caught:
        reference_parts(text)

    assert str(caught.value).endswith(f"this is something else ({len(text)} characters)")
    assert "sk-live" not in str(caught.value)


@pytest.mark.requirement("secrets.released")
@pytest.mark.parametrize(
    ("name", "released", "value"),
    [
        ("CRM_TOKEN", ("CRM_*",), "crm-value"),
        ("CRM_TOKEN", ("OTHER", "CRM_TOKEN"), "crm-value"),
        ("CRM_TOKEN", (), None),
        ("CRM_TOKEN", ("crm_*",), None),
        ("CRM_TOKEN", ("CRM",), None),
        ("DATABASE_URL", ("CRM_*",), None),
        ("CRM_EMPTY", ("CRM_*",), None),
        ("CRM_ABSENT", ("CRM_*",), None),
        ("TOOLCRIB_PEPPER", ("*",), None),
        ("TOOLCRIB_MASTER_KEYS", ("TOOLCRIB_MASTER_KEYS",), None),
    ],
)
def test_only_a_released_variable_with_a_value_resolves_and_never_one_of_our_own(
    name: str, released: tuple[str, ...], value: str | None
):
    assert EnvironmentSecrets(ENVIRONMENT, released).find(name, "default") == value


@pytest.mark.requirement("secrets.released_where")
@pytest.mark.parametrize(
    ("release", "realm", "hosts", "is_released"),
    [
        ("CRM_*", "default", (), True),
        ("CRM_*", "default", ("anywhere.example",), True),
        ("CRM_*", "sales", (), False),
        ("CRM_*@sales", "sales", ("anywhere.example",), True),
        ("CRM_*@sales", "default", (), False),
        ("CRM_*@*", "any", (), True),
        ("CRM_*:api.example.com", "default", ("API.example.com",), True),
        ("CRM_*:api.example.com", "default", ("evil.example",), False),
        ("CRM_*:api.example.com", "default", ("api.example.com.evil.example",), False),
        ("CRM_*:api.example.com", "default", ("api.example.com", "evil.example"), False),
        ("CRM_*:api.example.com", "default", ("",), False),
        ("CRM_*:api.example.com", "default", (), False),
        ("CRM_*@sales:*.example.com", "sales", ("api.example.com",), True),
        ("CRM_*@sales:*.example.com", "default", ("api.example.com",), False),
    ],
)
def test_a_variable_is_released_to_a_realm_and_for_hosts(
    release: str, realm: str, hosts: tuple[str, ...], is_released: bool
):
    assert EnvironmentSecrets(ENVIRONMENT, (release,)).is_released("CRM_TOKEN", realm, hosts) is is_released


@pytest.mark.requirement("secrets.released_where")
def test_each_host_may_have_a_release_of_its_own():
    two = EnvironmentSecrets(ENVIRONMENT, ("CRM_*:api.example.com", "CRM_*:login.example.com"))
    assert two.is_released("CRM_TOKEN", "default", ("api.example.com", "login.example.com"))


@pytest.mark.requirement("secrets.released_where")
@pytest.mark.parametrize("text", ["", "CRM TOKEN", "CRM_*@", "CRM_*:", "A@b@c", "A:b:c", "https://x"])
def test_a_release_in_another_form_is_refused_with_the_forms(text: str):
    with pytest.raises(InvalidSettings, match=r"NAMES@REALM:HOST"):
        EnvironmentSecrets(ENVIRONMENT, (text,))

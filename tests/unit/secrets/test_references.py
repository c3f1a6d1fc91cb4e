"""References to secrets, and the variables that they lead to."""

import pytest

from toolcrib.contracts import InvalidDefinition
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
    assert EnvironmentSecrets(ENVIRONMENT, released).find(name) == value

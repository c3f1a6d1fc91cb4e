"""References to secrets, and where they resolve."""

import pytest

from toolcrib.contracts import OWNER, InvalidDefinition
from toolcrib.secrets import EnvironmentSecrets, environment_name

ENVIRONMENT = {"CRM_TOKEN": "crm-value", "CRM_EMPTY": "", "DATABASE_URL": "postgresql://server"}


@pytest.mark.requirement("secrets.references")
def test_a_reference_names_its_variable():
    assert environment_name("${env:CRM_TOKEN}") == "CRM_TOKEN"
    assert environment_name("${env:_x9}") == "_x9"


@pytest.mark.requirement("secrets.references")
@pytest.mark.parametrize(
    "text",
    ["sk-live-0123456789", "", "${env:}", "${env:9A}", "${env:A-B}", " ${env:A}", "${env:A}\n", "$env:A", "${vault:A}"],
)
def test_what_is_no_reference_is_refused_without_repeating_it(text: str):
    with pytest.raises(InvalidDefinition) as caught:
        environment_name(text)

    assert str(caught.value).endswith(f"this is something else ({len(text)} characters)")
    assert "sk-live" not in str(caught.value)


@pytest.mark.requirement("secrets.released")
@pytest.mark.parametrize(
    ("reference", "released", "value"),
    [
        ("${env:CRM_TOKEN}", ("CRM_*",), "crm-value"),
        ("${env:CRM_TOKEN}", ("OTHER", "CRM_TOKEN"), "crm-value"),
        ("${env:CRM_TOKEN}", (), None),
        ("${env:CRM_TOKEN}", ("crm_*",), None),
        ("${env:CRM_TOKEN}", ("CRM",), None),
        ("${env:DATABASE_URL}", ("CRM_*",), None),
        ("${env:CRM_EMPTY}", ("CRM_*",), None),
        ("${env:CRM_ABSENT}", ("CRM_*",), None),
    ],
)
async def test_only_a_released_variable_with_a_value_resolves(
    reference: str, released: tuple[str, ...], value: str | None
):
    assert await EnvironmentSecrets(ENVIRONMENT, released).resolve(reference, OWNER) == value

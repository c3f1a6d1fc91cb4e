"""HTTP contracts: what earlier releases stored stays readable under its old name, and kinds are told apart."""

from typing import Any

import pytest
from pydantic import ValidationError

from toolcrib.contracts import BearerAuth, ProviderDefinition, ServerVariable, ToolDefinition
from toolcrib.kinds.http.shape import (
    CursorPaging,
    HttpImplementation,
    LinkPaging,
    NextUrlPaging,
    OffsetPaging,
    PageNumberPaging,
    Paging,
)

STORED: dict[str, Any] = {
    "name": "deals",
    "implementation": {
        "kind": "http",
        "method": "POST",
        "url": "https://api.test/deals/{id}",
        "parameters": [
            {
                "name": "id",
                "argument": "id",
                "place": "path",
                "style": "simple",
                "explode": False,
                "required": True,
                "allow_reserved": False,
            }
        ],
        "body": {"content_type": "application/json", "argument": None, "fields": {"after": "after"}, "required": True},
        "headers": {},
        "provider": "crm",
        "paging": {
            "cursor_in": "after",
            "cursor_out": "$.next",
            "items": "rows",
            "limit_argument": None,
            "page_size": 50,
            "max_pages": 100,
        },
    },
}
"""As release 0.1 wrote it, before paging had kinds."""
STORED_HASH = "sha256:b9497b61d45e888dbfc2a020d999bc2b446e5a20fa35e74a35be5773fd562340"


def tool(paging: Paging) -> ToolDefinition:
    return ToolDefinition(name="deals", implementation=HttpImplementation(method="GET", url="/x", paging=paging))


@pytest.mark.requirement("contracts.old_definitions")
def test_an_operation_of_an_earlier_release_is_read_and_keeps_its_hash() -> None:
    definition = ToolDefinition.model_validate(STORED)
    assert definition.content_hash() == STORED_HASH
    implementation = definition.implementation
    assert isinstance(implementation, HttpImplementation)
    assert isinstance(implementation.paging, CursorPaging)
    assert ToolDefinition.model_validate(definition.model_dump(mode="json")) == definition


@pytest.mark.requirement("contracts.old_definitions")
def test_a_provider_of_an_earlier_release_is_read() -> None:
    auth = {"kind": "bearer", "token": "${env:T}"}
    stored = {"name": "crm", "title": None, "base_url": "https://api.test", "auth": auth, "headers": {}, "metadata": {}}
    provider = ProviderDefinition.model_validate(stored)
    assert provider.auth == BearerAuth(token="${env:T}")
    assert (provider.security, provider.schemes, provider.address) == (None, {}, "https://api.test")


@pytest.mark.requirement("contracts.paging_kinds")
@pytest.mark.parametrize(
    ("paging", "argument"),
    [
        (CursorPaging(cursor_in="after", cursor_out="$.next"), "after"),
        (CursorPaging(cursor_in="/body/after", cursor_out="$.next"), None),
        (OffsetPaging(argument="skip"), "skip"),
        (PageNumberPaging(argument="skip"), "skip"),
        (LinkPaging(argument="skip"), "skip"),
        (LinkPaging(), None),
        (NextUrlPaging(url_out="$.next", argument="skip"), "skip"),
    ],
)
def test_each_kind_of_paging_reads_what_it_writes_and_knows_its_argument(paging: Paging, argument: str | None) -> None:
    definition = tool(paging)
    assert ToolDefinition.model_validate_json(definition.model_dump_json()) == definition
    assert paging.start_argument == argument


@pytest.mark.requirement("contracts.paging_kinds", "contracts.content_hash")
def test_kinds_of_paging_with_equal_fields_have_different_hashes() -> None:
    same = [OffsetPaging(argument="p"), PageNumberPaging(argument="p"), LinkPaging(argument="p")]
    assert len({tool(paging).content_hash() for paging in same}) == len(same)


@pytest.mark.requirement("contracts.paging_kinds")
def test_an_unknown_kind_of_paging_is_refused() -> None:
    with pytest.raises(ValidationError, match="does not match any of the expected tags"):
        HttpImplementation.model_validate({"method": "GET", "url": "/x", "paging": {"kind": "scroll"}})


@pytest.mark.requirement("contracts.server_variables")
def test_an_address_has_its_variables_filled_in() -> None:
    variables = {"region": ServerVariable(default="eu", value="us"), "version": ServerVariable(default="v1")}
    provider = ProviderDefinition(
        name="crm", base_url="https://{region}.api.test/{version}/{other}", variables=variables
    )
    assert provider.address == "https://us.api.test/v1/{other}"
    assert provider.locate("/deals/{id}") == "https://us.api.test/v1/{other}/deals/{id}"
    assert provider.locate(f"{provider.base_url}/x/{{region}}") == "https://us.api.test/v1/{other}/x/{region}"
    assert provider.locate("https://else.test/{region}") == "https://else.test/{region}"

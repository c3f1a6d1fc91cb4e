"""What a person is shown of a call before it happens."""

from typing import Any

import pytest

from tests.twins import AT, make_tool
from toolcrib.contracts import OWNER, Approval, ApprovalPreview, Json, ProviderDefinition, ToolDefinition
from toolcrib.core.registry import Providers
from toolcrib.crib.runs.approvals import preview_of
from toolcrib.infrastructure.store import MemoryStore
from toolcrib.kinds.entity.shape import EntityColumn, EntityImplementation, EntityOperation
from toolcrib.kinds.http.runtime import preview_request
from toolcrib.kinds.http.shape import HttpImplementation, HttpParameter

pytestmark = pytest.mark.requirement("approvals.preview")


async def preview(arguments: dict[str, Json], *providers: ProviderDefinition, **fields: Any) -> ApprovalPreview:
    """The preview of a call of a tool that is made of the fields."""
    known = Providers(MemoryStore().definitions)
    for provider in providers:
        await known.save(provider, realm=OWNER.realm, made_by=OWNER.id, at=AT)
    tool = make_tool(side_effects="writes", title="Change it", **fields)
    approval = Approval(
        approval_id="apr_1",
        realm=OWNER.realm,
        run_id="r1",
        position="call",
        root_run_id="r1",
        call_id="c1",
        tool=tool.name,
        version=tool.version,
        content_hash=tool.content_hash,
        arguments_hash="sha256:a",
        side_effects="writes",
        input=arguments,
        requested_by="owner",
        acting="owner",
        requested_at=AT,
    )
    return preview_of(approval, tool, known)


def http(**fields: Any) -> HttpImplementation:
    values: dict[str, Any] = {"method": "PUT", "url": "https://api.example.com/deals", **fields}
    return HttpImplementation(**values)


async def test_an_http_call_is_shown_with_its_provider_and_its_parameters():
    crm = ProviderDefinition(name="crm", base_url="https://crm.example.com/v2")
    implementation = http(
        provider="crm", url="/deals/{id}", parameters=(HttpParameter(argument="id", name="id", place="path"),)
    )
    shown = await preview({"id": "d/1"}, crm, implementation=implementation)

    assert (shown.method, shown.url) == ("PUT", "https://crm.example.com/v2/deals/d%2F1")
    assert (shown.title, shown.side_effects, shown.arguments) == ("Change it", "writes", {"id": "d/1"})


async def test_what_a_call_would_ask_for_is_left_out_where_nobody_can_say_it():
    unknown = await preview({}, implementation=http(provider="crm", url="/deals"))
    missing = await preview({}, implementation=http(url="https://api.example.com/{id}"))

    assert [(shown.method, shown.url) for shown in (unknown, missing)] == [("PUT", None), ("PUT", None)]


@pytest.mark.parametrize(
    ("operation", "arguments", "rows"),
    [
        ("search", {"filter": "amount > 5"}, "amount > 5"),
        ("count", {}, None),
        ("create", {"id": 1}, None),
        ("update", {"id": 1, "stage": "won"}, {"id": 1}),
        ("delete", {"id": 1}, {"id": 1}),
    ],
)
async def test_a_call_on_an_entity_is_shown_with_its_rows(
    operation: EntityOperation, arguments: dict[str, Json], rows: Json
):
    implementation = EntityImplementation(
        provider="db", operation=operation, table="deals", columns={"id": EntityColumn(type="integer")}, key=("id",)
    )
    shown = await preview(arguments, implementation=implementation)

    assert (shown.entity, shown.operation, shown.filter) == ("deals", operation, rows)


async def test_any_other_call_is_shown_with_its_arguments():
    shown = await preview({"n": 1})
    assert (shown.arguments, shown.url, shown.entity) == ({"n": 1}, None, None)
    plain = ToolDefinition(name="plain", implementation=make_tool().definition.implementation)
    assert preview_request(plain, {}, None, idempotency_key="k") is None

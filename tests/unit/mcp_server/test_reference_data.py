"""Reference data as resources, for keys that may read the provider."""

import json
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError

from tests.unit.mcp_server.served import REVISIONS, client_of, mcp_server
from tests.unit.server.client import Server, http_tool
from toolcrib import ReferenceSource, tool
from toolcrib.contracts import McpServerDefinition, NoAuth, ProviderDefinition
from toolcrib.kinds.http.shape import HttpImplementation

pytestmark = pytest.mark.requirement("mcp_server.reference_data")

PLACE = "toolcrib://reference-data"
CRM = ProviderDefinition(
    name="crm",
    base_url="https://crm.example",
    auth=NoAuth(),
    reference_data=(
        ReferenceSource(name="stages", tool="list_stages"),
        ReferenceSource(name="channels", values=({"id": "mail", "label": "E-mail"},)),
    ),
)


@tool(side_effects="reads")
async def list_stages() -> list[dict[str, str]]:
    """The stages of deals."""
    return [{"id": "won", "label": "Won", "color": "green"}, {"id": "lost", "label": "Lost"}]


async def add_crm(server: Server) -> None:
    server.crib.add(list_stages)
    await server.crib.save_provider(CRM)


def content_of(read: Any) -> Any:
    """The JSON of a resource."""
    return json.loads(read.contents[0].text)


@pytest.mark.parametrize("mode", REVISIONS)
async def test_a_key_that_may_read_the_provider_lists_its_reference_data_and_reads_the_values(mode: str) -> None:
    async with mcp_server() as (server, url):
        await add_crm(server)
        [stages, _] = await server.crib.reference_data.sync("crm")
        async with client_of(url, mode) as client:
            listed = {str(each.uri): each.title for each in (await client.list_resources()).resources}
            read = content_of(await client.read_resource(f"{PLACE}/crm/stages"))
            fixed = content_of(await client.read_resource(f"{PLACE}/crm/channels"))
            templates = (await client.list_resource_templates()).resource_templates

    assert listed[f"{PLACE}/crm/stages"] == "stages of crm"
    assert (read["id"], read["name"]) == (stages.id, "stages")
    assert read["values"] == [
        {"value": "won", "label": "Won", "extra": {"color": "green"}},
        {"value": "lost", "label": "Lost", "extra": {}},
    ]
    assert (fixed["values"][0]["value"], fixed["id"], fixed["fetched_at"]) == ("mail", None, None)
    assert f"{PLACE}/{{provider}}/{{list}}" in {each.uri_template for each in templates}


@pytest.mark.parametrize("key", ["reader", "colleague"])
async def test_to_a_key_without_the_grant_the_reference_data_is_unknown(key: str) -> None:
    async with mcp_server() as (server, url):
        await add_crm(server)
        await server.crib.reference_data.sync("crm")
        async with client_of(url, key=key) as client:
            listed = [str(each.uri) for each in (await client.list_resources()).resources]
            refusals: list[str] = []
            for name in ("crm/stages", "erp/stages"):
                with pytest.raises(MCPError) as refused:
                    await client.read_resource(f"{PLACE}/{name}")
                refusals.append(refused.value.message.replace(name, "NAME"))

    assert not [uri for uri in listed if uri.startswith(PLACE)]
    assert refusals[0] == refusals[1]
    assert "there is no resource" in refusals[0]


async def test_another_realm_has_no_such_reference_data() -> None:
    async with mcp_server() as (server, url):
        await add_crm(server)
        async with client_of(url, key="stranger") as client:
            assert (await client.list_resources()).resources == []
            with pytest.raises(MCPError, match="no provider 'crm' in realm 'elsewhere'"):
                await client.read_resource(f"{PLACE}/crm/channels")


async def test_who_may_read_the_provider_is_told_how_a_list_is_read_that_never_was() -> None:
    async with mcp_server() as (server, url):
        await add_crm(server)
        async with client_of(url) as client:
            with pytest.raises(MCPError, match="toolcrib reference sync crm stages"):
                await client.read_resource(f"{PLACE}/crm/stages")
            with pytest.raises(MCPError, match="regions"):
                await client.read_resource(f"{PLACE}/crm/regions")


async def test_a_virtual_server_shows_the_reference_data_of_the_providers_of_its_tools() -> None:
    async with mcp_server() as (server, url):
        await add_crm(server)
        request = HttpImplementation(method="GET", url="https://crm.example/deals", provider="crm")
        await server.crib.save(http_tool("crm_deals").model_copy(update={"implementation": request}))
        for name, selected in (("with_crm", "crm_deals"), ("without", "search")):
            await server.crib.mcp_servers.save(McpServerDefinition(name=name, tools=(selected,)))
        async with client_of(f"{url}/servers/with_crm") as client:
            shown = [str(each.uri) for each in (await client.list_resources()).resources]
            read = content_of(await client.read_resource(f"{PLACE}/crm/channels"))
        async with client_of(f"{url}/servers/without") as client:
            hidden = [str(each.uri) for each in (await client.list_resources()).resources]
            with pytest.raises(MCPError, match="there is no resource"):
                await client.read_resource(f"{PLACE}/crm/channels")

    assert (shown, hidden) == ([f"{PLACE}/crm/stages", f"{PLACE}/crm/channels"], [])
    assert read["values"] == [{"value": "mail", "label": "E-mail", "extra": {}}]

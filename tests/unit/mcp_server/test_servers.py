"""Virtual servers: a selection of tools with its own address, and addresses of single tools."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import httpx2
import pytest
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError

from tests.unit.mcp_server.served import REVISIONS, client_of, mcp_server
from tests.unit.mcp_server.test_commands import client_for
from tests.unit.mcp_server.test_http import HEADERS, HELLO
from tests.unit.mcp_server.test_waiting import Person, decides
from tests.unit.server.client import Server
from toolcrib import Crib, tool
from toolcrib.contracts import InvalidDefinition, JsonObject, McpOffer, McpServerDefinition

both = pytest.mark.parametrize("mode", REVISIONS)


@tool(name="crm.find_deals", side_effects="none", tags=("deals",))
async def find_deals(company: str) -> JsonObject:
    """Find the deals of a company."""
    return {"company": company}


@tool(name="crm.delete_deal", side_effects="writes", tags=("deals",))
async def delete_deal(deal_id: str) -> JsonObject:
    """Delete a deal."""
    return {"deleted": deal_id}


@tool(name="crm.handbook", side_effects="none", mcp=McpOffer(show_as="resource", uri="crm://handbook"))
async def handbook() -> str:
    """How deals are handled."""
    return "# Handbook"


@tool(name="mail.send", side_effects="writes")
async def send(to: str) -> JsonObject:
    """Send an email."""
    return {"to": to}


@asynccontextmanager
async def crm_server() -> AsyncGenerator[tuple[Server, str]]:
    """A server with tools, two virtual servers, and the address of its MCP endpoint."""
    async with mcp_server() as (server, url):
        server.crib.add(find_deals, delete_deal, handbook, send)
        server.crib.mcp_server("crm", ["crm.*"], excluded_tools=["crm.delete_*"], description="Look up deals.")
        server.crib.mcp_server("tagged", ["tag:deals"])
        await server.crib.open()
        yield server, url


async def names(client: Client) -> list[str]:
    return [each.name for each in (await client.list_tools()).tools]


@pytest.mark.parametrize("mode", ["legacy", "auto"])
@pytest.mark.requirement("mcp_server.virtual")
async def test_a_virtual_server_offers_what_it_selects_and_nothing_else(mode: str) -> None:
    async with crm_server() as (_, url), client_of(f"{url}/servers/crm", mode) as client:
        listed = await names(client)
        resources = {str(each.uri) for each in (await client.list_resources()).resources}
        called = await client.call_tool("crm_find_deals", {"company": "Acme"})
        with pytest.raises(MCPError, match="no tool 'mail_send'"):
            await client.call_tool("mail_send", {"to": "ann@example.com"})
        with pytest.raises(MCPError, match="no tool 'crm_delete_deal'"):
            await client.call_tool("crm_delete_deal", {"deal_id": "1"})
        instructions = client.instructions or ""
    assert listed == ["crm_find_deals"]
    assert "crm://handbook" in resources
    assert called.structured_content == {"company": "Acme"}
    assert instructions.startswith("Look up deals.\n\n")


@pytest.mark.requirement("mcp_server.virtual")
async def test_a_virtual_server_grants_nothing() -> None:
    async with crm_server() as (_, url), client_of(f"{url}/servers/crm", key="reader") as client:
        assert await names(client) == []
        with pytest.raises(MCPError, match="no tool"):
            await client.call_tool("crm_find_deals", {"company": "Acme"})


@both
@pytest.mark.requirement("mcp_server.virtual")
async def test_a_virtual_server_shows_runs_of_its_own_tools_only(mode: str) -> None:
    async with crm_server() as (_, url):
        async with client_of(url, mode) as everything:
            mail = await everything.call_tool("mail_send", {"to": "ann@example.com"})
            deals = await everything.call_tool("crm_find_deals", {"company": "Acme"})
        sent, found = (f"toolcrib://runs/{(each.meta or {})['toolcrib/run_id']}" for each in (mail, deals))
        async with client_of(f"{url}/servers/crm", mode) as client:
            listed = {str(each.uri) for each in (await client.list_resources()).resources}
            await client.read_resource(found)
            with pytest.raises(MCPError, match="does not offer"):
                await client.read_resource(sent)
    assert found in listed
    assert sent not in listed


@both
@pytest.mark.requirement("mcp_server.virtual")
async def test_a_changed_selection_counts_from_the_next_request_on(mode: str) -> None:
    async with crm_server() as (server, url), client_of(f"{url}/servers/tagged", mode) as client:
        before = await names(client)
        await server.crib.mcp_servers.save(McpServerDefinition(name="tagged", tools=("mail.send",)))
        after = await names(client)
        server.crib.add(tool(name="mail.read", side_effects="none")(_read))
        await server.crib.mcp_servers.save(McpServerDefinition(name="tagged", tools=("mail.*",)))
        wider = await names(client)
    assert before == ["crm_delete_deal", "crm_find_deals"]
    assert after == ["mail_send"]
    assert wider == ["mail_read", "mail_send"]


async def _read(mailbox: str) -> JsonObject:
    """Read a mailbox."""
    return {"mailbox": mailbox}


@pytest.mark.requirement("mcp_server.virtual")
async def test_an_address_without_a_server_or_a_tool_is_not_found() -> None:
    async with crm_server() as (server, url), httpx2.AsyncClient(headers=HEADERS, trust_env=False) as http:
        await server.crib.mcp_servers.save(McpServerDefinition(name="off", tools=("*",), enabled=False))
        unknown = await http.post(f"{url}/servers/crn", json=HELLO)
        disabled = await http.post(f"{url}/servers/off", json=HELLO)
        stranger = await http.post(
            f"{url}/servers/crm", json=HELLO, headers={"Authorization": "Bearer stranger"}
        )  # of another realm
        no_tool = await http.post(f"{url}/tools/crm.nothing", json=HELLO)
        not_granted = await http.post(f"{url}/tools/mail.send", json=HELLO, headers={"Authorization": "Bearer reader"})
        page = await http.post(f"{url}/servers/crm", json=HELLO, headers={"Origin": "https://evil.example"})
    assert [each.status_code for each in (unknown, disabled, stranger, no_tool, not_granted)] == [404] * 5
    assert "the closest: crm" in unknown.text
    assert "disabled" in disabled.text
    assert page.status_code == 403


@both
@pytest.mark.requirement("mcp_server.virtual")
async def test_each_tool_has_an_address_of_its_own(mode: str) -> None:
    async with crm_server() as (_, url), client_of(f"{url}/tools/crm.find_deals", mode) as client:
        assert await names(client) == ["crm_find_deals"]
        called = await client.call_tool("crm_find_deals", {"company": "Acme"})
    assert called.structured_content == {"company": "Acme"}


async def search_for(client: Client, query: str) -> JsonObject:
    return cast("JsonObject", (await client.call_tool("search_tools", {"query": query})).structured_content)


@both
@pytest.mark.requirement("mcp_server.search")
async def test_a_server_that_searches_lists_a_pair_of_tools(mode: str) -> None:
    async with crm_server() as (server, url):
        server.crib.mcp_server("all", ["crm.*", "mail.*"], excluded_tools=["crm.delete_*"], offer="search")
        await server.crib.open()
        async with client_of(f"{url}/servers/all", mode) as client:
            [search, call] = (await client.list_tools()).tools
            found = await search_for(client, "deals of a company")
            arguments = {"name": "crm_find_deals", "arguments": {"company": "Acme"}}
            called = await client.call_tool("call_tool", arguments)
            hidden = await search_for(client, "delete a deal")
            nothing = await search_for(client, "xyzzy")
            wrong = [
                await client.call_tool("call_tool", {"name": "crm_delete_deal", "arguments": {"deal_id": "1"}}),
                await client.call_tool("call_tool", {"tool": "crm_find_deals"}),
                await client.call_tool("search_tools", {"query": ""}),
            ]
        run = await server.crib.store.journal.run((called.meta or {})["toolcrib/run_id"])
    assert (search.name, call.name) == ("search_tools", "call_tool")
    assert "2 tools can be found" in (search.description or "")
    assert found["tools"][0]["name"] == "crm_find_deals"
    assert found["tools"][0]["inputSchema"]["required"] == ["company"]
    assert called.structured_content == {"company": "Acme"}
    assert run.request.tool_name == "crm.find_deals"
    assert "crm_delete_deal" not in [each["name"] for each in hidden["tools"]]
    assert nothing == {"tools": [], "hint": "Nothing fits. Use other words, or leave the group out."}
    assert [each.is_error for each in wrong] == [True, True, True]
    assert "there is no tool 'crm_delete_deal'" in wrong[0].content[0].text  # type: ignore[union-attr]


@both
@pytest.mark.requirement("mcp_server.search", "mcp_server.waiting")
async def test_a_call_by_the_pair_waits_and_continues_like_every_other(mode: str) -> None:
    person = Person(decides("approve"))
    async with mcp_server() as (server, url):
        server.app.state.mcp.self_approval = True
        server.crib.mcp_server("all", ["update"], offer="search")
        await server.crib.open()
        async with client_of(f"{url}/servers/all", mode, answer=person) as client:
            done = await client.call_tool("call_tool", {"name": "update", "arguments": {"stage": "Won"}})
    assert done.structured_content == {"stage": "Won"}
    assert len(person.forms) == 1


@pytest.mark.requirement("mcp_server.virtual")
async def test_a_command_serves_one_virtual_server(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'crib.db'}"
    async with Crib(store) as crib:
        crib.add(find_deals, send)
        crib.mcp_server("crm", ["group:general/deals", "crm.find_deals"], title="CRM")
        await crib.open()
    async with client_for("mcp", "--store", store, "--server", "crm", folder=tmp_path) as client:
        listed = await names(client)
        async with Crib(store) as crib:
            await crib.mcp_servers.remove("crm")
        with pytest.raises(MCPError, match="there is no mcp server 'crm'"):
            await client.list_tools()
    assert listed == ["crm_find_deals"]


@pytest.mark.requirement("mcp_server.virtual")
async def test_a_selection_that_could_not_be_meant_is_refused() -> None:
    crib = Crib("memory://")
    with pytest.raises(InvalidDefinition, match=r"MCP server 'crm'.*'crm.find@1' must be a name"):
        crib.mcp_server("crm", ["crm.find@1"])
    with pytest.raises(InvalidDefinition, match="at least 1 item"):
        crib.mcp_server("crm", [])

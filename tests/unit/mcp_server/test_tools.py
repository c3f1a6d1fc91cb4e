"""Listing and calling tools over MCP, with the SDK's own client, in both ways that the protocol has."""

from typing import Any

import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

from tests.unit.mcp_server.served import REVISIONS, client_of, mcp_server
from tests.unit.server.client import http_tool
from toolcrib import tool

both = pytest.mark.parametrize("mode", REVISIONS)


@both
@pytest.mark.requirement("mcp_server.list")
async def test_a_client_lists_the_tools_that_its_key_may_execute(mode: str) -> None:
    async with mcp_server() as (server, url):

        @tool(side_effects="none")
        async def blocked_tool() -> str:
            """Never called."""
            return ""

        server.crib.add(blocked_tool)
        await server.crib.save(http_tool("step_only", available_as=("workflow_step",)))
        await server.crib.lifecycle.block("blocked_tool")
        async with client_of(url, mode) as client:
            own = {each.name: each for each in (await client.list_tools()).tools}
        async with client_of(url, mode, key="reader") as client:
            readers = [each.name for each in (await client.list_tools()).tools]
        async with client_of(url, mode, key="stranger") as client:
            assert (await client.list_tools()).tools == []

    assert {"search", "update", "pick"} <= own.keys()
    assert own.keys().isdisjoint({"blocked_tool", "step_only"})
    assert own["search"].input_schema["required"] == ["company"]
    assert own["search"].annotations is not None
    assert own["search"].annotations.read_only_hint
    assert readers == ["search"]


@both
@pytest.mark.requirement("mcp_server.call", "mcp_server.errors")
async def test_a_call_is_a_run_with_its_output_or_its_error(mode: str) -> None:
    async with mcp_server() as (server, url), client_of(url, mode) as client:
        found = await client.call_tool("search", {"company": "Acme"})
        failed = await client.call_tool("search", {"company": "Broken"})
        wrong = await client.call_tool("search", {"compny": "Acme"})
        run_id = str((found.meta or {})["toolcrib/run_id"])
        run = await server.crib.store.journal.run(run_id)

    assert not found.is_error
    assert text_of(found) == '[{"name":"Acme"}]'
    assert found.structured_content == (None if mode == "legacy" else [{"name": "Acme"}])
    assert (run.status, run.made_by, run.request.tool_name) == ("completed", "owner", "search")
    assert failed.is_error
    assert "the CRM is down" in text_of(failed)
    assert wrong.is_error
    assert "company" in text_of(wrong)
    assert text_of(wrong).startswith("VALIDATION_ERROR: ")


@both
@pytest.mark.requirement("mcp_server.unknown")
async def test_a_tool_that_the_key_may_not_execute_is_unknown_to_it(mode: str) -> None:
    async with mcp_server() as (_, url), client_of(url, mode, key="reader") as client:
        refusals: list[str] = []
        for name in ("update", "no_such_tool"):
            with pytest.raises(MCPError) as refused:
                await client.call_tool(name, {"stage": "won"})
            assert refused.value.code == types.INVALID_PARAMS
            refusals.append(refused.value.message.replace(name, "NAME"))
    assert refusals[0] == refusals[1]


@pytest.mark.requirement("mcp_server.list")
async def test_a_long_list_comes_in_pages() -> None:
    async with mcp_server() as (server, url):
        for number in range(230):

            @tool(name=f"numbered.tool{number:03}", side_effects="none")
            async def numbered() -> str:
                """One of many."""
                return ""

            server.crib.add(numbered)
        async with client_of(url) as client:
            names: list[str] = []
            cursor: str | None = None
            sizes: list[int] = []
            while True:
                page = await client.list_tools(cursor=cursor)
                sizes.append(len(page.tools))
                names += [each.name for each in page.tools]
                cursor = page.next_cursor
                if cursor is None:
                    break
            called = await client.call_tool("numbered_tool117", {})
            with pytest.raises(MCPError, match="not of this server"):
                await client.list_tools(cursor="?")
    assert sizes[:2] == [100, 100]
    assert len(set(names)) == len(names)
    assert {f"numbered_tool{number:03}" for number in range(230)} <= set(names)
    assert not called.is_error


def text_of(result: types.CallToolResult) -> str:
    """The text that a model reads."""
    block: Any = result.content[0]
    return str(block.text)

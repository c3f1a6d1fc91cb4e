"""What tools ask of a client besides its person, and what they log."""

from typing import Any

import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

from tests.unit.mcp_server.served import REVISIONS, client_of, mcp_server
from tests.unit.mcp_server.test_tools import text_of
from toolcrib import Ask, Crib, ToolContext, tool
from toolcrib.contracts import McpOffer

both = pytest.mark.parametrize("mode", REVISIONS)


async def sample(context: Any, params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
    del context
    [said] = params.messages
    assert isinstance(said.content, types.TextContent)
    answer = types.TextContent(text=f"{said.content.text} ({params.max_tokens})")
    return types.CreateMessageResult(role="assistant", content=answer, model="theirs")


async def roots(context: Any) -> types.ListRootsResult:
    del context
    return types.ListRootsResult(roots=[types.Root.model_validate({"uri": "file:///work", "name": "work"})])


def add_tools(crib: Crib) -> None:
    @tool(side_effects="none")
    async def consult(context: ToolContext) -> list[Any]:
        """Consult the client."""
        return await context.ask_all(Ask.of_model("Greet", max_tokens=7), Ask.of_roots())

    @tool(side_effects="none", mcp=McpOffer(show_as="prompt"))
    async def review(context: ToolContext) -> str:
        """Review."""
        return f"Review {await context.ask('Which deal?')}"

    @tool(side_effects="none")
    async def chatter(context: ToolContext) -> str:
        """Log."""
        context.log("detail", "debug")
        context.log("trouble", "error")
        return "done"

    crib.add(consult, review, chatter)


@both
@pytest.mark.requirement("mcp_server.client_requests")
async def test_a_tool_asks_the_model_of_its_client_and_for_its_roots(mode: str) -> None:
    async with mcp_server() as (server, url):
        add_tools(server.crib)
        async with client_of(url, mode, sampling_callback=sample, list_roots_callback=roots) as client:
            done = await client.call_tool("consult", {})
    assert text_of(done) == '["Greet (7)",[{"uri":"file:///work","name":"work"}]]'


@both
@pytest.mark.requirement("mcp_server.client_requests")
async def test_a_client_without_a_model_is_told_and_the_run_is_cancelled(mode: str) -> None:
    async with mcp_server() as (server, url):
        add_tools(server.crib)
        async with client_of(url, mode) as client:
            if mode == "legacy":
                said = text_of(await client.call_tool("consult", {}))
            else:
                with pytest.raises(MCPError) as refused:
                    await client.call_tool("consult", {})
                said = str(refused.value)
                assert refused.value.error.data == {"requiredCapabilities": {"roots": {}, "sampling": {}}}
        [run] = await server.crib.store.journal.runs("default", limit=5)
    assert "needs roots, sampling of its client" in said
    assert run.status == "cancelled"


@both
@pytest.mark.requirement("mcp_server.client_requests")
async def test_a_prompt_asks_the_person_at_the_client(mode: str) -> None:
    async def fill(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        del context, params
        return types.ElicitResult(action="accept", content={"answer": "Acme"})

    async with mcp_server() as (server, url):
        add_tools(server.crib)
        async with client_of(url, mode, answer=fill) as client:
            found = await client.get_prompt("review")
        async with client_of(url, mode) as client:
            with pytest.raises(MCPError, match=r"Which deal\?"):
                await client.get_prompt("review")
    assert found.messages[0].content == types.TextContent(text="Review Acme")


@both
@pytest.mark.requirement("mcp_server.logs")
async def test_a_client_hears_what_a_tool_logs_from_the_level_on_that_it_has_asked_for(mode: str) -> None:
    heard: list[tuple[str, str | None, Any]] = []

    async def hear(line: types.LoggingMessageNotificationParams) -> None:
        heard.append((line.level, line.logger, line.data))

    async with mcp_server() as (server, url):
        add_tools(server.crib)
        async with client_of(url, mode, logging_callback=hear) as client:
            await client.call_tool("chatter", {})
        silent = list(heard)
        level = None if mode == "legacy" else "warning"
        async with client_of(url, mode, logging_callback=hear, log_level=level) as client:
            if mode == "legacy":
                request = types.SetLevelRequest(params=types.SetLevelRequestParams(level="warning"))
                await client.session.send_request(request, types.EmptyResult)
            await client.call_tool("chatter", {})
    assert silent == []
    assert heard == [("error", "chatter", "trouble")]

"""Tools that MCP clients see as resources and prompts, and values for their arguments."""

from typing import Any

import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

from tests.docs.test_snippets import shown
from tests.twins import make_definition
from tests.twins.builders import ToolChanges
from tests.unit.mcp_server.served import REVISIONS, client_of, mcp_server
from tests.unit.server.client import Server
from toolcrib import tool
from toolcrib.contracts import InvalidDefinition, JsonObject, McpOffer
from toolcrib.core.registry import check_definition

both = pytest.mark.parametrize("mode", REVISIONS)

STAGE: JsonObject = {"type": "string", "enum": ["lead", "lost", "won"]}
STAGES: JsonObject = {"type": "object", "properties": {"stage": STAGE}}


@tool(side_effects="none", mcp=McpOffer(show_as="resource", uri="crm://handbook", mime_type="text/markdown"))
async def handbook() -> str:
    """How deals are handled."""
    return "# Handbook"


@tool(
    side_effects="none",
    mcp=McpOffer(show_as="resource", uri="crm://stages/{stage}/top/{count}"),
    input_schema={
        **STAGES,
        "properties": {"stage": STAGE, "count": {"type": "integer"}},
        "required": ["stage", "count"],
    },
)
async def top_deals(stage: str, count: int) -> list[str]:
    """The largest deals of a stage."""
    return [f"{stage} {number}" for number in range(count)]


@tool(side_effects="none", mcp=McpOffer(show_as="prompt"), input_schema={**STAGES, "required": ["stage"]})
async def review(stage: str) -> JsonObject:
    """Review the deals of a stage."""
    said = [{"role": "user", "content": f"Review {stage}."}, {"role": "assistant", "content": "With pleasure."}]
    return {"messages": said, "description": "A review"}


@tool(side_effects="none", mcp=McpOffer(show_as="prompt"))
async def greet() -> str:
    """Greet."""
    return "Say hello."


def add_all(server: Server) -> None:
    server.crib.add(handbook, top_deals, review, greet)


@both
@pytest.mark.requirement("mcp_server.surfaces")
async def test_a_tool_is_read_as_a_resource(mode: str) -> None:
    async with mcp_server() as (server, url), client_of(url, mode) as client:
        add_all(server)
        tools = {each.name for each in (await client.list_tools()).tools}
        [listed] = (await client.list_resources()).resources
        templates = [each.uri_template for each in (await client.list_resource_templates()).resource_templates]
        [fixed] = (await client.read_resource("crm://handbook")).contents
        [filled] = (await client.read_resource("crm://stages/won/top/2")).contents
        for uri in ("crm://stages/won/top/many", "crm://nothing", "file:///etc/passwd"):
            with pytest.raises(MCPError) as refused:
                await client.read_resource(uri)
            assert refused.value.code == types.INVALID_PARAMS
        async with client_of(url, mode, key="reader") as reader:
            assert (await reader.list_resources()).resources == []
            with pytest.raises(MCPError, match="there is no resource"):
                await reader.read_resource("crm://handbook")

    assert tools.isdisjoint({"handbook", "top_deals", "review", "greet"})
    assert (listed.uri, listed.name, listed.mime_type) == ("crm://handbook", "handbook", "text/markdown")
    assert templates[0] == "crm://stages/{stage}/top/{count}"
    assert (text_of(fixed), fixed.mime_type) == ("# Handbook", "text/markdown")
    assert (text_of(filled), filled.mime_type) == ('["won 0","won 1"]', "application/json")


@both
@pytest.mark.requirement("mcp_server.surfaces")
async def test_a_tool_is_a_prompt(mode: str) -> None:
    async with mcp_server() as (server, url), client_of(url, mode) as client:
        add_all(server)
        prompts = {each.name: each for each in (await client.list_prompts()).prompts}
        one = await client.get_prompt("greet")
        two = await client.get_prompt("review", {"stage": "won"})
        runs = [run.request.tool_name for run in await server.crib.store.journal.runs("default")]
        for name, arguments in (("review", {"stage": "gone"}), ("search", {"company": "Acme"})):
            with pytest.raises(MCPError) as refused:
                await client.get_prompt(name, arguments)
            assert refused.value.code == types.INVALID_PARAMS

    assert prompts.keys() == {"review", "greet"}
    [argument] = prompts["review"].arguments or []
    assert (argument.name, argument.required) == ("stage", True)
    assert [(said.role, text_of(said.content)) for said in one.messages] == [("user", "Say hello.")]
    assert [said.role for said in two.messages] == ["user", "assistant"]
    assert two.description == "A review"
    assert runs == ["review", "greet"]


@both
@pytest.mark.requirement("mcp_server.completion")
async def test_values_of_arguments_are_completed(mode: str) -> None:
    prompt = types.PromptReference(name="review")
    resource = types.ResourceTemplateReference(uri="crm://stages/{stage}/top/{count}")
    async with mcp_server() as (server, url), client_of(url, mode) as client:
        add_all(server)
        found = [
            (await client.complete(ref, {"name": "stage", "value": begun})).completion.values
            for ref, begun in ((prompt, "L"), (resource, "w"), (prompt, ""))
        ]
        with pytest.raises(MCPError, match="to complete an argument of"):
            await client.complete(types.PromptReference(name="search"), {"name": "company", "value": ""})
    assert found == [["lead", "lost"], ["won"], ["lead", "lost", "won"]]


@pytest.mark.requirement("mcp_server.surfaces")
@pytest.mark.parametrize(
    ("offer", "fields", "told"),
    [
        (McpOffer(show_as="resource", uri="crm://x"), {"side_effects": "writes"}, "writes"),
        (McpOffer(show_as="resource"), {}, "give a resource an address"),
        (McpOffer(show_as="resource", uri="no address"), {}, "give a resource an address"),
        (McpOffer(show_as="prompt", uri="crm://x"), {}, "a prompt none"),
        (McpOffer(show_as="resource", uri="crm://{stage}/{other}"), {}, "'other' stands in only one of"),
        (McpOffer(show_as="resource", uri="crm://all"), {"input_schema": {**STAGES, "required": ["stage"]}}, "'stage'"),
        (McpOffer(show_as="resource", uri="crm://{stage}/{stage}"), {}, "stands twice"),
    ],
)
def test_what_cannot_be_offered_so_is_refused(offer: McpOffer, fields: ToolChanges, told: str) -> None:
    changes: ToolChanges = {"input_schema": STAGES, "mcp": offer, **fields}
    with pytest.raises(InvalidDefinition) as refused:
        check_definition(make_definition("deals", **changes))
    assert told in str(refused.value)


def text_of(part: Any) -> str:
    return str(part.text)


@pytest.mark.requirement("docs.snippets")
async def test_the_tools_of_the_page_are_a_resource_and_a_prompt() -> None:
    async with mcp_server() as (server, url), client_of(url) as client:
        names = await shown("mcp-server", server.crib)
        server.crib.add(names["deal_notes"], names["weekly_review"])
        [read] = (await client.read_resource("crm://deals/d1")).contents
        prompt = await client.get_prompt("weekly_review", {"region": "Europe"})
    assert text_of(read) == "# Notes on d1"
    assert text_of(prompt.messages[0].content) == "Review this week's deals in Europe."

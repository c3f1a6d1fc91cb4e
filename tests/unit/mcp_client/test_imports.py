"""What a server lists as tools and as a report; the pure half is fed by hand, the other by a server."""

from typing import Any

import pytest

from tests.unit.mcp_client.server import RpcError, Server, crib_for, running, tool
from toolcrib.contracts import InvalidInput, McpConnection, ProviderDefinition
from toolcrib.core.providers import ImportedApi
from toolcrib.kinds.mcp.importer import import_mcp, read_listing
from toolcrib.kinds.mcp.shape import McpImplementation

THERE = ProviderDefinition(name="there", connection=McpConnection(), base_url="https://mcp.example")


def imported(*tools: Any, **options: Any) -> ImportedApi:
    """An import of these entries."""
    return import_mcp(read_listing({"tools": list(tools)}, {"name": "s", "version": "1"}), THERE, **options)


def losses(found: ImportedApi) -> str:
    """What is said about what was not kept."""
    return "\n".join(f"{loss.effect} {loss.what}: {loss.why}" for loss in found.losses)


@pytest.mark.parametrize(
    ("hints", "side_effects", "idempotent"),
    [
        ({"readOnlyHint": True}, "reads", True),
        ({"readOnlyHint": False}, "writes", False),
        ({"readOnlyHint": "true"}, "writes", False),
        ({"destructiveHint": False}, "writes", False),
        ({"idempotentHint": True}, "writes", True),
        (None, "writes", False),
        ({}, "writes", False),
    ],
)
@pytest.mark.requirement("mcp_client.claims")
def test_only_a_plain_hint_that_it_reads_makes_a_tool_that_reads(hints: Any, side_effects: str, idempotent: bool):
    (found,) = imported(tool(annotations=hints)).tools
    assert (found.side_effects, found.idempotent) == (side_effects, idempotent)


@pytest.mark.requirement("mcp_client.claims")
def test_words_of_the_server_lose_what_shows_nothing_and_are_bounded():
    hidden = "Looks\u200b it\u202e up\x1b[31m.\U000e0041"
    schema = {"type": "object", "properties": {"a": {"type": "string", "description": "an\u2066 a"}}}
    result = imported(tool(description=hidden, title="T" * 200, inputSchema=schema))
    (found,) = result.tools
    assert found.description == "Looks it up[31m."
    assert found.title is not None
    assert len(found.title) == 100
    assert found.input_schema["properties"]["a"]["description"] == "an a"
    assert "show nothing" in losses(result)
    assert "cut to 100 characters" in losses(result)


@pytest.mark.parametrize(
    "entry",
    [
        tool(inputSchema={"type": "string"}),
        tool(inputSchema={"type": "object", "properties": {"a": {"$ref": "https://evil.example/schema.json"}}}),
        tool(inputSchema={"type": "object", "properties": {"a": {"$ref": "file:///etc/passwd"}}}),
        tool(inputSchema={"type": "object", "properties": 1}),
        tool(inputSchema={"type": "object", "properties": {"a": {"pattern": "("}}}),
        tool(outputSchema={"type": "nonsense"}),
        tool(name=""),
        {"description": "without a name"},
        "text",
        None,
    ],
)
@pytest.mark.requirement("mcp_client.import")
def test_an_entry_that_cannot_be_a_tool_is_left_out_with_a_reason_and_the_others_stay(entry: Any):
    result = imported(entry, tool("fine"))
    assert [found.name for found in result.tools] == ["fine"]
    assert "left out" in losses(result)
    assert result.report.summary()["left_out"] == 1


@pytest.mark.requirement("mcp_client.import")
def test_names_that_are_listed_twice_are_left_out_both_times():
    result = imported(tool("a"), tool("b"), tool("a", description="Shadow"))
    assert [found.name for found in result.tools] == ["b"]
    assert losses(result).count("lists 2 of this name") == 2
    assert result.report.summary()["left_out"] == 2


@pytest.mark.requirement("mcp_client.import")
def test_tuples_of_draft_7_are_read():
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {"pair": {"type": "array", "items": [{"type": "string"}], "additionalItems": False}},
    }
    (found,) = imported(tool(inputSchema=schema)).tools
    assert found.input_schema["properties"]["pair"] == {
        "type": "array",
        "prefixItems": [{"type": "string"}],
        "items": False,
    }


@pytest.mark.requirement("mcp_client.import")
def test_schemas_that_are_deeper_than_anything_are_left_alone_or_left_out():
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(300):
        schema = {"type": "object", "properties": {"a": schema}}
    result = imported(tool(inputSchema=schema), tool("fine"))
    assert [found.name for found in result.tools] == ["fine"]


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        ("get_thing", "get_thing"),
        ("get-thing", "get-thing"),
        ("files.read", "files_read"),
        ("files/read it", "files_read_it"),
        ("1st", "tool_1st"),
        ("!!!", "tool"),
    ],
)
@pytest.mark.requirement("mcp_client.names")
def test_names_are_made_legal(name: str, pattern: str):
    (found,) = imported(tool(name)).tools
    assert found.name == pattern
    assert isinstance(found.implementation, McpImplementation)
    assert found.implementation.name == name


@pytest.mark.requirement("mcp_client.names")
def test_a_look_alike_gets_a_name_with_a_hash_and_not_the_one_that_it_imitates():
    result = imported(tool("s\u0435nd_mail"), tool("send_mail"), tool("send\u200b_mail"), tool("send.mail"))
    made = [(found.name, found.implementation) for found in result.tools]
    names = {by.name: name for name, by in made if isinstance(by, McpImplementation)}
    assert names["send_mail"] == "send_mail"
    assert len(set(names.values())) == 4
    assert names["send.mail"] == "there_send_mail"
    assert all(name.isascii() and len(name) <= 64 for name in names.values())


@pytest.mark.requirement("mcp_client.names")
def test_names_that_others_have_get_the_providers_name_in_front_and_stay_afterwards():
    first = imported(tool("look"), names_in_use={"look"})
    assert [found.name for found in first.tools] == ["there_look"]
    again = imported(tool("look"), known={("tool", "look"): "there_look"})
    assert [found.name for found in again.tools] == ["there_look"]


@pytest.mark.requirement("mcp_client.names")
def test_names_that_are_too_long_are_cut_and_stay_apart():
    result = imported(*(tool("x" * 100 + str(number)) for number in range(3)))
    names = [found.name for found in result.tools]
    assert len(set(names)) == 3
    assert all(len(name) <= 64 for name in names)


@pytest.mark.requirement("mcp_client.import")
async def test_entries_that_break_the_specification_are_reported_and_hide_no_other():
    bad: list[Any] = [
        {"name": "no_schema"},
        {"name": "wrong", "inputSchema": []},
        {"inputSchema": {"type": "object"}},
        7,
    ]
    async with running(Server(tools=[*bad, tool()])) as server, crib_for(server) as crib:
        found = await crib.imports.mcp(server.url, name="there")
        assert (await crib.call("look")).ok
    assert [made.name for made in found.tools] == ["look"]
    assert found.report.summary()["left_out"] == 4


@pytest.mark.requirement("mcp_client.bounds")
@pytest.mark.parametrize("cursor", ["always the same", None])
async def test_a_list_without_an_end_is_an_error(cursor: str | None):
    pages = iter(range(10_000))

    def endless(_params: dict[str, Any]) -> dict[str, Any]:
        page = next(pages)
        return {"tools": [tool(f"t{page}")], "nextCursor": cursor or f"page {page}"}

    async with running(Server(handlers={"tools/list": endless})) as server, crib_for(server) as crib:
        with pytest.raises(InvalidInput, match="does not end"):
            await crib.imports.mcp(server.url, name="there")
        assert crib.providers.find("default", "there") is None
    assert server.asked.count("tools/list") <= 200


@pytest.mark.requirement("mcp_client.import")
async def test_a_server_that_knows_no_templates_though_it_has_resources_is_imported():
    server = Server(resources=[{"uri": "a:b", "name": "B"}])

    def unknown(_params: dict[str, Any]) -> dict[str, Any]:
        raise RpcError(-32601, "no templates")

    server.handlers["resources/templates/list"] = unknown
    async with running(server), crib_for(server) as crib:
        found = await crib.imports.mcp(server.url, name="there")
    assert [made.name for made in found.tools] == ["look", "read_B"]


@pytest.mark.requirement("mcp_client.surfaces")
async def test_a_sync_takes_in_what_is_new_and_keeps_names_and_settings():
    async with running() as server, crib_for(server) as crib:
        await crib.imports.mcp(server.url, name="there")
        provider = crib.providers.find("default", "there")
        assert provider is not None
        await crib.save_provider(provider.model_copy(update={"timeout_s": 9.0}))
        server.tools.append(tool("more"))
        found = await crib.imports.sync("there")
        assert (await crib.call("more")).ok
    assert [made.name for made in found.tools] == ["look", "more"]
    assert found.provider.timeout_s == 9.0


@pytest.mark.requirement("mcp_client.import")
def test_a_tool_that_requires_tasks_is_left_out_and_told():
    """`simulate-research-query` of the reference server: `taskSupport: required`."""
    result = imported(
        tool("research", execution={"taskSupport": "required"}),
        tool("either", execution={"taskSupport": "optional"}),
    )
    assert [found.name for found in result.tools] == ["either"]
    assert "left out: the server executes it only as a task (execution.taskSupport)" in losses(result)


@pytest.mark.requirement("mcp_client.import", "providers.large_inputs")
def test_an_mcp_input_schema_over_16_kb_is_told():
    properties = {f"field_{number}": {"type": "string", "description": "x" * 200} for number in range(100)}
    result = imported(tool("large", inputSchema={"type": "object", "properties": properties}))
    assert "the input schema of tool 'large' has" in losses(result)


@pytest.mark.requirement("mcp_client.cut_off")
async def test_trouble_with_page_two_of_a_list_keeps_page_one_and_says_so():
    server = Server()

    def pages(params: dict[str, Any]) -> dict[str, Any]:
        if "cursor" not in params:
            return {"tools": [tool("first")], "nextCursor": "2"}
        if broken:
            raise RpcError(-32603, "page 2 is lost")
        return {"tools": [tool("second")]}

    broken = False
    server.handlers["tools/list"] = pages
    async with running(server), crib_for(server) as crib:
        whole = await crib.imports.mcp(server.url, name="there")
        assert [found.name for found in whole.tools] == ["first", "second"]
        broken = True
        cut = await crib.imports.sync("there")
        assert [found.name for found in cut.tools] == ["first"]
        assert "left out: the list is not complete: its 1 entries are used, and page 2 is not there" in losses(cut)
        assert "page 2 is lost" in losses(cut)
        assert cut.outcome is not None
        assert cut.outcome.counts() == {"unchanged": 1}, "what was not read is not gone"
        assert (await crib.call("first")).status == "success"
        broken = False
        assert (await crib.call("second")).status == "success"

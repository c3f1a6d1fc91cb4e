"""A GraphQL API is imported from Python, over REST and from the command line, and its tools are called."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.command import toolcrib
from tests.unit.graphql.server import SDL, local
from tests.unit.server.client import checked, serving
from toolcrib import Crib
from toolcrib.contracts import Conflict, InvalidInput
from toolcrib.kinds.graphql.commands import GraphqlSource

pytestmark = pytest.mark.requirement("graphql.surfaces")


async def test_python_imports_an_api_calls_its_tools_and_keeps_their_names(port: int) -> None:
    url = f"http://127.0.0.1:{port}/graphql"
    async with Crib("memory://", egress=local(port)) as crib:
        imported = await crib.imports.read(GraphqlSource(name="crm", url=url))
        found = await crib.call("deal", id="1")
        await crib.call("create_deal", input={"name": "Wire"})
        again = await crib.imports.read(GraphqlSource(name="crm", url=url, schema_text=SDL))
    assert found.output["id"] == "1"
    assert {tool.name: tool.side_effects for tool in imported.tools}["create_deal"] == "writes"
    assert {tool.name for tool in again.tools} == {tool.name for tool in imported.tools}


async def test_a_tool_of_another_provider_keeps_its_name(port: int) -> None:
    url = f"http://127.0.0.1:{port}/graphql"
    async with Crib("memory://", egress=local(port)) as crib:
        await crib.imports.read(GraphqlSource(name="crm", url=url))
        other = await crib.imports.read(GraphqlSource(name="other", url=url, schema_text="type Query { deal: Int }"))
        assert [tool.name for tool in other.tools] == ["other_deal"]
        with pytest.raises(InvalidInput, match="cannot be asked what it offers"):
            await crib.imports.sync("other")
        with pytest.raises(Conflict, match="crm"):
            await crib.imports.read(GraphqlSource(name="crm", url="http://other.test/graphql", schema_text=SDL))


async def test_a_client_imports_an_api(port: int) -> None:
    def make(*arguments: Any, **options: Any) -> Crib:
        return Crib(*arguments, **{**options, "egress": local(port)})

    body = {"name": "crm", "url": f"http://127.0.0.1:{port}/graphql", "depth": 1}
    async with serving(make_crib=make) as server:
        made = await server.post("/ai/tools/import-graphql", body, 201)
        listed = await server.client.get("/api/v1/ai/tools", params={"kind": "graphql"})
        async with server.client_of("reader") as reader:
            checked(await reader.post("/api/v1/ai/tools/import-graphql", json=body), 403)
        await server.post("/ai/tools/import-graphql", {**body, "depth": 99}, 422)
    assert "deal@1.0.0" in made["tools"]
    assert made["report"]["format"] == "GraphQL introspection"
    assert {tool["definition"]["implementation"]["kind"] for tool in listed.json()["items"]} == {"graphql"}


def test_the_command_line_imports_a_schema_file(tmp_path: Path) -> None:
    store, file = f"sqlite:///{tmp_path / 'crib.db'}", tmp_path / "crm.graphql"
    file.write_text(SDL, encoding="utf-8")
    line = ("tool", "import-graphql", "https://crm.test/graphql", "--name", "crm", "--schema")

    told = toolcrib(*line, str(file), "--token", "${env:TOOLCRIB_SECRET_T}", "--json", store=store)
    missing = toolcrib(*line, "nowhere.graphql", store=store)

    assert told.exit_code == 0, told.stderr
    assert json.loads(told.stdout)["format"] == "GraphQL SDL"
    assert missing.exit_code == 2
    assert "'nowhere.graphql' cannot be read" in missing.stderr.replace("\n", " ")

"""`kind: import` from addresses: asked when the document is new or has changed, or with `sync`."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from tests.unit.a2a.other_agent import other_agent
from tests.unit.graphql.server import Api, api_server
from tests.unit.grpc.server import Crm, crm_server
from tests.unit.mcp_client.server import Server, running, tool
from toolcrib import Crib, EgressPolicy
from toolcrib.crib.project import InvalidProject, Project, prepare
from toolcrib.kinds.entity.importer.engines import open_engine

pytestmark = pytest.mark.requirement("projects.imports")


def project(folder: Path, text: str) -> Project:
    """A project of one document."""
    (folder / "there").mkdir(exist_ok=True)
    (folder / "there" / "import.yaml").write_text(f"kind: import\nname: there\n{text}\n")
    return Project.read(folder / "there")


def crib_at(folder: Path, port: int = 1, **environment: str) -> Crib:
    allowed = EgressPolicy(allow=(f"127.0.0.1:{port}",))
    return Crib(f"sqlite:///{folder}/crib.db", egress=allowed, environment=environment)


async def check(crib: Crib, wanted: Project, close: Any) -> set[str]:
    """Apply it, and again when the other side has gone; the names of its tools."""
    prepared = await prepare(crib, wanted)
    assert {each.action for each in prepared.plan.changes} == {"create"}
    assert list(crib.registry.names("default")) == []
    await prepared.apply(crib)
    await close()
    again = await prepare(crib, wanted)
    assert {each.action for each in again.plan.changes} == {"unchanged"}
    assert not again.is_needed
    with pytest.raises(InvalidProject, match="import 'there'"):
        await prepare(crib, wanted, sync=True)
    return set(crib.registry.names("default"))


async def test_an_mcp_server(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(running())
        async with crib_at(tmp_path, server.port) as crib:
            assert await check(crib, project(tmp_path, f"mcp: {server.url}"), stack.aclose) == {"look"}


async def test_a_graphql_api(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        port = await stack.enter_async_context(api_server(Api()))
        async with crib_at(tmp_path, port) as crib:
            wanted = project(tmp_path, f"graphql: http://127.0.0.1:{port}/graphql")
            assert (await prepare(crib, wanted)).plan.warnings  # subscriptions are left out
            assert {"echo", "deal"} <= await check(crib, wanted, stack.aclose)


async def test_an_agent_of_another_system(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(other_agent())
        async with crib_at(tmp_path, server.port) as crib:
            assert await check(crib, project(tmp_path, f"a2a: {server.url}"), stack.aclose) == {"there"}


async def test_a_grpc_server_with_its_descriptors(tmp_path: Path) -> None:
    async with crm_server(Crm()) as port, crib_at(tmp_path, port) as crib:
        wanted = project(tmp_path, f"grpc: grpc://127.0.0.1:{port}")
        await (await prepare(crib, wanted)).apply(crib)
        assert not (await prepare(crib, wanted)).is_needed
        envelope = await crib.call("DealService_GetDeal", {"id": "7"})
        assert envelope.output["display_name"] == "Acme"


async def test_a_database_by_reference(tmp_path: Path) -> None:
    file = tmp_path / "shop.sqlite"
    file.touch()
    engine = open_engine(f"sqlite:///{file}")
    with engine.begin() as connection:
        for table in ("hats", "coats"):
            connection.execute(sa.text(f"CREATE TABLE {table} (id integer PRIMARY KEY, colour text)"))
    engine.dispose()

    async def close() -> None:
        await asyncio.to_thread(file.unlink)

    async with crib_at(tmp_path, URL=f"sqlite:///{file}") as crib:
        names = await check(crib, project(tmp_path, 'database: "${env:URL}"\ntables: [hats]'), close)
        assert "search_hats" in names
        assert "search_coats" not in names


async def test_a_changed_document_and_sync_ask_again_and_a_removed_one_removes_its_tools(tmp_path: Path) -> None:
    async with running(Server()) as server, crib_at(tmp_path, server.port) as crib:
        wanted = project(tmp_path, f"mcp: {server.url}")
        await (await prepare(crib, wanted)).apply(crib)
        server.tools.append(tool("find"))
        assert not (await prepare(crib, wanted)).plan.to_do
        synced = await prepare(crib, wanted, sync=True)
        assert ("create", "find") in {(each.action, each.name) for each in synced.plan.to_do}
        changed = project(tmp_path, f"mcp: {server.url}?more")
        assert "find" in {each.name for each in (await prepare(crib, changed)).plan.to_do}

        await crib.registry.remove("default", "look")
        assert "look" in {each.name for each in (await prepare(crib, wanted)).plan.to_do}  # asked again

        other = tmp_path / "there" / "import.yaml"
        other.write_text("kind: project\nname: there\n")
        removed = (await prepare(crib, Project.read(tmp_path / "there"))).plan.to_do
        assert {(each.action, each.name) for each in removed} == {("remove", "there")}


async def test_an_address_that_is_down_is_told_and_nothing_is_written(tmp_path: Path) -> None:
    async with running(Server()) as server:
        port = server.port
    async with crib_at(tmp_path, port) as crib:
        with pytest.raises(InvalidProject, match=r"import.yaml:1: import 'there'"):
            await prepare(crib, project(tmp_path, f"mcp: http://127.0.0.1:{port}/mcp"))
        assert list(crib.registry.names("default")) == []


@pytest.mark.parametrize("text", ["auth: {kind: none}", "mcp: https://a.example/mcp\ngrpc: grpcs://a.example:1"])
def test_an_import_has_one_source(text: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidProject, match="must have exactly one of openapi, graphql, grpc, mcp, a2a, database"):
        project(tmp_path, text)

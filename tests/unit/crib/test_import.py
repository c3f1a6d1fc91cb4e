"""OpenAPI documents into a crib: text, data, or a URL of a server in this process."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml
from aiohttp import web

from tests.twins import make_definition
from tests.unit.net.servers import serving
from toolcrib import Crib, EgressPolicy
from toolcrib.contracts import Conflict, InvalidDefinition, InvalidInput
from toolcrib.kinds.http.shape import ToolOverride

pytestmark = pytest.mark.requirement("crib.import_openapi")


def document(base: str) -> dict[str, Any]:
    """An API with one operation."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "CRM", "version": "1"},
        "servers": [{"url": base}],
        "paths": {
            "/deals/{id}": {
                "get": {
                    "operationId": "getDeal",
                    "parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}],
                    "responses": {"200": {"description": "ok"}},
                }
            }
        },
    }


@asynccontextmanager
async def api() -> AsyncGenerator[str]:
    """A server with the API and its document; yields its origin."""

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        if request.path == "/openapi.json":
            return web.json_response(document(f"http://{request.host}"))
        if request.path.startswith("/deals/"):
            return web.json_response({"id": request.path.removeprefix("/deals/")})
        return web.json_response({"error": "nothing here"}, status=404)

    async with serving(answer) as port:
        yield f"http://127.0.0.1:{port}"


def local(origin: str) -> EgressPolicy:
    """A policy that lets this server be reached."""
    return EgressPolicy(allow=(origin.removeprefix("http://"),))


@pytest.mark.parametrize("form", ["url", "json", "yaml", "bytes", "data"])
async def test_a_document_in_any_form_becomes_tools_that_run(form: str):
    async with api() as origin, Crib("memory://", egress=local(origin)) as crib:
        content = document(origin)
        forms: dict[str, Any] = {
            "url": f"{origin}/openapi.json",
            "json": orjson.dumps(content).decode(),
            "yaml": yaml.safe_dump(content),
            "bytes": orjson.dumps(content),
            "data": content,
        }
        imported = await crib.imports.openapi(forms[form], name="crm")
        [imported_tool] = imported.tools
        envelope = await crib.call(imported_tool.name, id="d1")

    assert imported.provider.name == "crm"
    assert (envelope.output, envelope.http_status, envelope.side_effects) == ({"id": "d1"}, 200, "reads")


async def test_a_document_at_a_url_may_refer_to_others_of_its_origin():
    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        if request.path == "/docs/openapi.json":
            return web.json_response({**document(f"http://{request.host}"), "paths": {"/a": {"$ref": "paths/a.json"}}})
        if request.path == "/docs/paths/a.json":
            return web.json_response({"get": {"operationId": "readA"}})
        return web.json_response({}, status=404)

    async with serving(answer) as port:
        origin = f"http://127.0.0.1:{port}"
        async with Crib("memory://", egress=local(origin)) as crib:
            api = await crib.imports.openapi(f"{origin}/docs/openapi.json", name="crm")
    assert [found.name for found in api.tools] == ["readA"]


async def test_a_second_import_keeps_the_names_of_the_first():
    def grown(*paths: str) -> dict[str, Any]:
        operations = {path: {"get": {"operationId": "list.deals"}} for path in paths}
        return {**document("https://api.test"), "paths": operations}

    async with Crib("memory://") as crib:
        [first] = (await crib.imports.openapi(grown("/b"), name="crm")).tools
        second = await crib.imports.openapi(grown("/a", "/b"), name="crm")
        other = await crib.imports.openapi(grown("/a", "/b"), name="other")
    names = {found.operation: found.tool for found in second.report.operations}
    assert (first.name, names["GET /b"]) == ("list_deals", "list_deals")
    assert {found.operation: found.tool for found in other.report.operations}["GET /a"] == "other_list_deals"


async def test_a_url_without_a_document_is_said_to_have_none():
    async with api() as origin, Crib("memory://", egress=local(origin)) as crib:
        with pytest.raises(InvalidInput, match=rf"no OpenAPI document at {origin}/x: it answered with status 404"):
            await crib.imports.openapi(f"{origin}/x", name="crm")


async def test_what_is_no_document_is_refused_and_nothing_is_saved():
    async with Crib("memory://") as crib:
        with pytest.raises(InvalidDefinition):
            await crib.imports.openapi('{"hello": 1}', name="crm")
        assert crib.registry.names("default") == []
        assert crib.providers.find("default", "crm") is None


@pytest.mark.requirement("crib.reopen")
async def test_imported_tools_run_in_the_next_process(tmp_path: Path):
    url = f"sqlite:///{tmp_path / 'crib.db'}"
    async with api() as origin:
        async with Crib(url, egress=local(origin)) as crib:
            [imported] = (await crib.imports.openapi(document(origin), name="crm")).tools
        async with Crib(url, egress=local(origin)) as crib:
            assert crib.providers.find("default", "crm") is not None
            assert (await crib.call(imported.name, id="d1")).output == {"id": "d1"}


@pytest.mark.requirement("crib.import_names")
async def test_tools_of_another_provider_keep_their_names_and_the_new_ones_get_their_providers():
    async with Crib("memory://") as crib:
        await crib.imports.openapi(document("https://first.example"), name="first")
        for _ in range(2):
            again = await crib.imports.openapi(document("https://second.example"), name="second.eu")
            assert [found.name for found in again.tools] == ["second_eu_getDeal"]
            assert [entry.tool for entry in again.report.operations] == ["second_eu_getDeal"]
        providers = {tool.name: tool.definition.category for tool in crib.registry.current("default")}

    assert providers == {"getDeal": "first", "second_eu_getDeal": "second.eu"}


@pytest.mark.requirement("crib.import_names")
async def test_a_name_with_its_provider_is_still_legal_for_every_model():
    async with Crib("memory://") as crib:
        await crib.imports.openapi(document("https://first.example"), name="first")
        [made] = (await crib.imports.openapi(document("https://second.example"), name="a" * 100)).tools

    assert (len(made.name), made.name[:55]) == (64, "a" * 55)


@pytest.mark.requirement("crib.import_names")
async def test_an_override_cannot_give_a_tool_the_name_of_another_s():
    async with Crib("memory://") as crib:
        crib.add(make_definition("getDeal"))
        override = {"getDeal": ToolOverride(name="getDeal")}
        with pytest.raises(Conflict, match="of provider 'crm' would replace the tool 'getDeal'"):
            await crib.imports.openapi(document("https://crm.example"), name="crm", overrides=override)

        assert crib.providers.find("default", "crm") is None


async def test_paths_that_differ_in_their_fragments_only_can_be_imported_again():
    paths = {path: {"get": {"operationId": name}} for path, name in (("/a", "plain"), ("/a#b", "other"))}
    async with Crib("memory://") as crib:
        first = await crib.imports.openapi({**document("https://api.test"), "paths": paths}, name="crm")
        again = await crib.imports.openapi({**document("https://api.test"), "paths": paths}, name="crm")

    assert [tool.name for tool in again.tools] == [tool.name for tool in first.tools]

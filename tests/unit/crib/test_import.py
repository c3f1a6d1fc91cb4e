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
from tests.unit.cli.command import toolcrib
from tests.unit.net.servers import serving
from toolcrib import Crib, EgressPolicy
from toolcrib.contracts import Conflict, InvalidDefinition, InvalidInput
from toolcrib.kinds.http.shape import Bounds, ToolOverride

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


@pytest.mark.requirement("providers.import_bounds")
async def test_one_bound_holds_for_a_document_from_a_url_and_from_text():
    """A document larger than `egress.max_bytes` is imported from a URL too, up to the import's own bound."""

    async with api() as origin:
        policy = EgressPolicy(allow=(origin.removeprefix("http://"),), max_bytes=100)
        async with Crib("memory://", egress=policy) as crib:
            imported = await crib.imports.openapi(f"{origin}/openapi.json", name="crm")
            assert [tool.name for tool in imported.tools] == ["getDeal"]
            text = orjson.dumps(document(origin))
            for source in (text, f"{origin}/openapi.json"):
                with pytest.raises(InvalidDefinition, match=r"raise the bound max_bytes of the import \(bounds=Bounds"):
                    await crib.imports.openapi(source, name="crm", bounds=Bounds(max_bytes=200))
            paths: dict[str, Any] = {f"/{number}": {"get": {}} for number in range(3)}
            some = await crib.imports.openapi(
                {**document(origin), "paths": paths}, name="many", bounds=Bounds(max_operations=2)
            )
            assert len(some.tools) == 2
            assert any(loss.kind == "bound" and "max_operations" in loss.why for loss in some.losses)


@pytest.mark.requirement("providers.import_bounds")
def test_the_command_line_takes_bounds(tmp_path: Path):
    file, store = tmp_path / "api.json", f"sqlite:///{tmp_path / 'crib.db'}"
    file.write_bytes(orjson.dumps(document("https://crm.test")))
    short = toolcrib("tool", "import", file, "--name", "crm", "--bound", "max_bytes=100", store=store)
    assert short.exit_code == 2
    assert "the limit is 100" in short.output
    assert (
        toolcrib("tool", "import", file, "--name", "crm", "--bound", "max_bytes=90000000", store=store).exit_code == 0
    )
    wrong = toolcrib("tool", "import", file, "--name", "crm", "--bound", "size=1", store=store)
    assert "max_bytes, max_depth, max_values, max_operations" in wrong.output

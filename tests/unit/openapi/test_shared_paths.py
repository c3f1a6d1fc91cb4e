"""Operations whose paths differ only after `#`, as in documents of AWS, Azure and Box."""

from pathlib import Path
from typing import Any

import orjson
import pytest
from aiohttp import web

from tests.unit.cli.command import toolcrib
from tests.unit.net.servers import serving
from tests.unit.openapi.documents import document, http, imported, tool, whys
from toolcrib import Crib, EgressPolicy
from toolcrib.contracts import InvalidDefinition
from toolcrib.kinds.http.shape import ToolOverride

pytestmark = pytest.mark.requirement("providers.fragments")


def named(name: str, value: str, place: str) -> dict[str, Any]:
    return {"name": name, "in": place, "required": True, "schema": {"type": "string", "enum": [value]}}


def targets(service: str, *actions: str) -> dict[str, Any]:
    """Operations as AWS describes them for its JSON protocol."""
    content = {"application/json": {"schema": {"type": "object", "properties": {"arn": {"type": "string"}}}}}
    return {
        f"/#X-Amz-Target={service}.{action}": {
            "post": {
                "operationId": action,
                "parameters": [named("X-Amz-Target", f"{service}.{action}", "header")],
                "requestBody": {"content": content, "required": True},
            }
        }
        for action in actions
    }


def actions(*names: str) -> dict[str, Any]:
    """Operations as AWS describes them for its query protocol."""
    limit = {"name": "Limit", "in": "query", "schema": {"type": "integer"}}
    return {
        f"/#Action={name}": {
            "get": {
                "operationId": f"GET_{name}",
                "parameters": [named("Action", name, "query"), named("Version", "2012-11-05", "query"), limit],
            }
        }
        for name in names
    }


async def test_a_name_of_one_api_never_ends_at_another_one() -> None:
    async with Crib("memory://") as crib:
        await crib.imports.openapi(document(targets("AppRunner", "CreateService", "DeleteService")), name="apprunner")
        second = document(targets("Containers", "CreateCluster", "CreateService", "DeleteService"))
        api = await crib.imports.openapi(second, name="ecs")
        assert api.outcome is not None
        assert [tool.name for tool in api.tools] == ["CreateCluster", "ecs_CreateService", "ecs_DeleteService"]
        assert api.outcome.stored == ("CreateCluster", "ecs_CreateService", "ecs_DeleteService")
        again = await crib.imports.openapi(second, name="ecs")
        assert [tool.name for tool in again.tools] == [tool.name for tool in api.tools]
        assert again.outcome is not None
        assert again.outcome.counts() == {"unchanged": 3}
        found = crib.registry.require("default", "DeleteService").definition
        assert http(found).headers == {"X-Amz-Target": "AppRunner.DeleteService"}


async def test_the_same_document_can_be_imported_under_a_second_name() -> None:
    source = document(targets("AppRunner", "CreateService", "UpdateVpcIngressConnection"))
    async with Crib("memory://") as crib:
        await crib.imports.openapi(source, name="aws1")
        api = await crib.imports.openapi(source, name="aws2")
    assert [tool.name for tool in api.tools] == ["aws2_CreateService", "aws2_UpdateVpcIngressConnection"]


def test_an_override_names_one_operation_of_a_shared_path() -> None:
    paths = targets("AppRunner", "CreateService", "ListServices")
    key = "POST /#X-Amz-Target=AppRunner.ListServices"
    api = imported(paths, overrides={key: ToolOverride(side_effects="reads")})
    assert [found.side_effects for found in api.tools] == ["writes", "reads"]
    assert [found.operation for found in api.report.operations] == [
        "POST /#X-Amz-Target=AppRunner.CreateService",
        key,
    ]
    with pytest.raises(InvalidDefinition, match="has no operation 'POST /'"):
        imported(paths, overrides={"POST /": ToolOverride(side_effects="reads")})


async def test_what_the_fragment_says_is_sent_where_the_api_reads_it() -> None:
    seen: list[tuple[str, str | None, bytes]] = []

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        seen.append((request.raw_path, request.headers.get("X-Amz-Target"), await request.read()))
        return web.json_response({})

    async with serving(answer) as port:
        allowed = EgressPolicy(allow=(f"127.0.0.1:{port}",))
        async with Crib("memory://", egress=allowed) as crib:
            paths = targets("AppRunner", "CreateService") | actions("ListQueues")
            server = [{"url": f"http://127.0.0.1:{port}"}]
            api = await crib.imports.openapi({**document(paths), "servers": server}, name="aws")
            assert [list(tool.input_schema["properties"]) for tool in api.tools] == [["arn"], ["Limit"]]
            assert (await crib.call("CreateService", arn="a")).status == "success"
            assert (await crib.call("GET_ListQueues", Limit=3)).status == "success"
    assert seen == [
        ("/", "AppRunner.CreateService", b'{"arn":"a"}'),
        ("/?Action=ListQueues&Version=2012-11-05&Limit=3", None, b""),
    ]


def test_a_fragment_without_a_parameter_is_a_name_and_what_it_does_not_send_is_told() -> None:
    api = imported(
        {
            "/tag": {"post": {}},
            "/tag#overload=stream": {"post": {}},
            "/links/{id}": {"put": {}},
            "/links/{id}#update_shared_link": {"put": {}},
            "/old#Action=List": {"get": {}},
        }
    )
    assert [http(found).url.removeprefix("https://api.test/v1") for found in api.tools] == [
        "/tag",
        "/tag",
        "/links/{id}",
        "/links/{id}",
        "/old?Action=List",
    ]
    assert len({found.name for found in api.tools}) == 5
    assert [key for key in whys(api) if "stream" in key] == ["POST /tag#overload=stream overload=stream"]


def test_the_count_that_is_printed_is_the_count_that_is_stored(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'crib.db'}"
    for name, source in (
        ("apprunner", targets("AppRunner", "CreateService", "DeleteService")),
        ("ecs", targets("Containers", "CreateService", "DeleteService", "ListClusters")),
    ):
        file = tmp_path / f"{name}.json"
        file.write_bytes(orjson.dumps(document(source)))
        said = toolcrib("tool", "import", file, "--name", name, store=store)
        assert said.exit_code == 0, said.output
        assert f"imported {len(source)} tools of provider '{name}'" in said.output
    listed = orjson.loads(toolcrib("tool", "list", "--json", store=store).stdout)
    assert len(listed) == 5


@pytest.mark.requirement("providers.flat_arguments")
def test_names_of_query_parameters_are_case_sensitive_and_those_of_headers_are_not() -> None:
    def parameter(name: str, place: str) -> dict[str, Any]:
        return {"name": name, "in": place, "schema": {"type": "string"}}

    given = [parameter("maxResults", "query"), parameter("MaxResults", "query")]
    given += [parameter("X-Trace", "header"), parameter("x-trace", "header")]
    found = tool({"parameters": given}, "get")
    assert list(found.input_schema["properties"]) == ["maxResults", "MaxResults", "x-trace"]
    assert [each.name for each in http(found).parameters] == ["maxResults", "MaxResults", "x-trace"]


@pytest.mark.requirement("providers.servers")
@pytest.mark.parametrize(
    ("servers", "base"),
    [
        (["http://a.test", "https://a.test"], "https://a.test"),
        (["http://a.test", "https://b.test", "https://a.test/v2"], "https://a.test/v2"),
        (["http://localhost:8080", "https://b.test"], "https://b.test"),
        (["http://a.test", "http://b.test"], "http://a.test"),
        (["https://a.test", "https://b.test"], "https://a.test"),
    ],
)
def test_https_is_chosen_before_http(servers: list[str], base: str) -> None:
    offered = [{"url": url} for url in servers]
    api = imported({"/a": {"get": {}}, "/b": {"get": {"servers": offered}}}, servers=offered)
    assert api.provider.base_url == base
    assert [http(found).url for found in api.tools] == [f"{base}/a", f"{base}/b"]
    assert len([loss for loss in api.report.losses if loss.kind == "server"]) == len(servers) - 1

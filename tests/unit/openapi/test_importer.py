"""Whole documents: providers, overrides, selection, losses."""

from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from tests.unit.openapi.documents import NEXT, PAGE, answering, document, http, imported, whys
from toolcrib.contracts import (
    ApiKeyAuth,
    BasicAuth,
    BearerAuth,
    InvalidDefinition,
    NoAuth,
    OAuth2Auth,
    RateLimit,
    RetryPolicy,
    ServerVariable,
    content_hash,
)
from toolcrib.kinds.http.openapi import import_openapi
from toolcrib.kinds.http.shape import ToolOverride

CRM = Path(__file__).parents[3] / "examples" / "crm" / "openapi.yaml"
AFTER = {"name": "after", "in": "query", "schema": {"type": "string"}}


@pytest.mark.requirement("providers.flat_arguments", "providers.schemas_valid", "providers.cursor_paging")
def test_the_crm_is_imported_without_a_loss_that_matters() -> None:
    api = import_openapi(
        CRM.read_bytes(),
        name="crm",
        base_url="http://crm.test:8123/",
        overrides={"search_deals": ToolOverride(side_effects="reads", idempotent=True)},
    )
    tools = {tool.name: tool for tool in api.tools}
    assert whys(api) == {}
    assert api.provider.auth == BearerAuth(token="${env:CRM_TOKEN}")
    assert api.provider.base_url == "http://crm.test:8123"
    assert {tool.category for tool in api.tools} == {"crm"}
    assert {tool.source for tool in api.tools} == {"imported"}
    for tool in api.tools:
        jsonschema_rs.Draft202012Validator(tool.input_schema)
        jsonschema_rs.Draft202012Validator(tool.output_schema or {})
    assert tools["search_deals"].retry.count == 3
    assert tools["update_deal"].idempotency_key == "header:Idempotency-Key"
    assert list(tools["update_deal"].input_schema["properties"]) == ["deal_id", "If-Match", "properties"]
    assert [name for name, tool in tools.items() if http(tool).paging] == [
        "search_deals",
        "search_companies",
        "search_contacts",
    ]


@pytest.mark.requirement("providers.overrides")
def test_an_override_replaces_the_given_fields_and_keeps_the_others() -> None:
    override = ToolOverride(
        name="find",
        description="Finds.",
        side_effects="reads",
        timeout_s=5,
        rate_limit=RateLimit(count=1, per_s=1),
        cache="ttl",
        cache_ttl_s=60,
    )
    (tool,) = imported({"/find": {"post": {"summary": "Find"}}}, overrides={"post_find": override}).tools
    assert (tool.name, tool.description, tool.title, tool.side_effects) == ("find", "Finds.", "Find", "reads")
    assert (tool.timeout_s, tool.cache, tool.cache_ttl_s, tool.retry.count) == (5, "ttl", 60, 3)
    assert tool.rate_limit == RateLimit(count=1, per_s=1)


@pytest.mark.requirement("providers.overrides")
def test_an_override_adds_headers_that_every_request_sends() -> None:
    override = ToolOverride(headers={"X-Api-Version": "2"})
    (tool,) = imported({"/find": {"get": {}}}, overrides={"GET /find": override}).tools
    assert http(tool).headers == {"X-Api-Version": "2"}


@pytest.mark.requirement("providers.overrides", "providers.retries")
def test_an_override_can_take_back_idempotence_and_set_retries() -> None:
    paths: dict[str, Any] = {"/a": {"put": {}}}
    (unsafe,) = imported(paths, overrides={"PUT /a": ToolOverride(idempotent=False)}).tools
    (patient,) = imported(paths, overrides={"PUT /a": ToolOverride(retry=RetryPolicy(count=9))}).tools
    assert (unsafe.idempotent, unsafe.retry.count, patient.retry.count) == (False, 0, 9)


@pytest.mark.requirement("providers.overrides", "providers.cursor_paging")
def test_an_override_of_null_turns_paging_off() -> None:
    paths = {"/a": {"get": answering(PAGE, operationId="list", parameters=[AFTER])}}
    components = {"schemas": {"Next": NEXT}}
    (paged,) = imported(paths, components=components).tools
    (single,) = imported(paths, components=components, overrides={"list": ToolOverride(paging=None)}).tools
    assert http(paged).paging is not None
    assert http(single).paging is None


@pytest.mark.requirement("providers.overrides")
def test_only_the_selected_operations_are_imported() -> None:
    source = document({"/a": {"get": {"operationId": "first"}, "post": {}}, "/b": {"get": {}}})
    api = import_openapi(source, name="crm", include=["first", "GET /b"])
    assert [tool.name for tool in api.tools] == ["first", "get_b"]


@pytest.mark.requirement("providers.overrides")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"include": ["frist"]}, "no operation 'frist'; did you mean 'first'"),
        ({"overrides": {"zzz": ToolOverride()}}, "no operation 'zzz'; use an operationId or 'GET /path'"),
        ({"overrides": {"first": ToolOverride(name="get_b")}}, "two tools would be named 'get_b'"),
    ],
)
def test_what_names_no_operation_or_one_name_twice_is_refused(options: Any, message: str) -> None:
    source = document({"/a": {"get": {"operationId": "first"}}, "/b": {"get": {}}})
    with pytest.raises(InvalidDefinition, match=message):
        import_openapi(source, name="crm", **options)


@pytest.mark.requirement("providers.any_document")
@pytest.mark.parametrize("name", ["", "1x!", "a b", "a" * 129])
def test_a_name_that_no_provider_can_have_is_refused(name: str) -> None:
    with pytest.raises(InvalidDefinition, match="is not a valid provider name: use 1 to 128 letters"):
        import_openapi(document({}), name=name)


@pytest.mark.requirement("providers.servers")
def test_the_first_server_is_used_with_its_variables() -> None:
    server = {
        "url": "https://{host}/v{n}/",
        "variables": {"host": {"default": "a.test"}, "n": {"default": "2", "enum": ["1", "2"]}, "z": {"default": ""}},
    }
    api = imported({"/x": {"get": {}}}, servers=[server, {"url": "https://b.test"}])
    assert (api.provider.base_url, http(api.tools[0]).url) == ("https://{host}/v{n}", "https://{host}/v{n}/x")
    assert api.provider.address == "https://a.test/v2"
    assert api.provider.variables["n"] == ServerVariable(default="2", enum=("1", "2"))
    assert whys(api, all_of_them=True) == {
        "server https://b.test": "calls go to https://{host}/v{n}",
        "server variable z": "the address has no place for it",
    }


@pytest.mark.requirement("providers.servers")
@pytest.mark.parametrize(
    "servers",
    [
        [],
        [{"url": "/v3"}],
        [{"url": "ftp://a.test"}],
        [{}],
        [{"url": "https://[a.test"}],
    ],
)
def test_a_document_without_an_absolute_address_can_be_called_once_somebody_gives_one(servers: Any) -> None:
    api = imported({}, servers=servers)
    assert api.provider.base_url == "https://{host}"
    assert api.provider.variables["host"].default.endswith(".invalid")
    assert "give base_url" in whys(api)["servers"]
    api = import_openapi(document({}, servers=servers), name="crm", base_url="https://a.test")
    assert api.provider.base_url == "https://a.test"


@pytest.mark.requirement("providers.servers")
def test_an_operation_elsewhere_keeps_its_address_and_gets_no_credentials() -> None:
    paths: dict[str, Any] = {
        "/near": {"get": {"servers": [{"url": "https://api.test/v2"}]}},
        "/far": {"servers": [{"url": "https://files.test:444"}], "get": {}},
        "/relative": {"get": {"servers": [{"url": "/v9"}]}},
    }
    api = imported(paths)
    near, far, relative = map(http, api.tools)
    assert (near.url, near.provider) == ("https://api.test/v2/near", "crm")
    assert (far.url, far.provider) == ("https://files.test:444/far", None)
    assert (relative.url, relative.provider) == ("https://api.test/v9/relative", "crm")
    assert "without credentials" in whys(api)["GET /far server"]


@pytest.mark.requirement("providers.servers")
def test_an_address_from_the_caller_replaces_all_servers_of_the_document() -> None:
    paths = {"/far": {"get": {"servers": [{"url": "https://files.test"}]}}}
    (tool,) = import_openapi(document(paths), name="crm", base_url="http://local.test:8000").tools
    assert (http(tool).url, http(tool).provider) == ("http://local.test:8000/far", "crm")


@pytest.mark.requirement("providers.import_auth")
@pytest.mark.parametrize(
    ("scheme", "auth"),
    [
        ({"type": "http", "scheme": "Bearer"}, BearerAuth(token="${env:MY_CRM_TOKEN}")),
        (
            {"type": "http", "scheme": "basic"},
            BasicAuth(username="${env:MY_CRM_USERNAME}", password="${env:MY_CRM_PASSWORD}"),
        ),
        (
            {"type": "apiKey", "in": "cookie", "name": "sid"},
            ApiKeyAuth(key="${env:MY_CRM_TOKEN}", place="cookie", name="sid"),
        ),
        ({"type": "oauth2", "flows": {"implicit": {}}}, BearerAuth(token="${env:MY_CRM_TOKEN}")),
        ({"type": "openIdConnect", "openIdConnectUrl": "x"}, BearerAuth(token="${env:MY_CRM_TOKEN}")),
        ({"type": "mutualTLS"}, NoAuth()),
        ({"type": "http", "scheme": "digest"}, NoAuth()),
        ({"type": "apiKey", "in": "body", "name": "sid"}, NoAuth()),
    ],
)
def test_security_schemes_become_references_to_secrets(scheme: Any, auth: Any) -> None:
    source = document({"/a": {"get": {}}}, components={"securitySchemes": {"s": scheme}}, security=[{"s": []}])
    api = import_openapi(source, name="my-crm")
    assert api.provider.auth == auth
    assert bool(whys(api)) is (isinstance(auth, NoAuth) or scheme["type"] in {"oauth2", "openIdConnect"})


@pytest.mark.requirement("providers.import_auth", "providers.losses")
def test_several_schemes_become_alternatives_of_the_provider_and_of_operations() -> None:
    schemes = {
        "key": {"type": "apiKey", "in": "header", "name": "K"},
        "token": {"type": "http", "scheme": "bearer"},
    }
    paths: dict[str, Any] = {
        "/a": {"get": {"security": [{"key": []}]}, "post": {}, "put": {"security": []}},
        "/b": {"get": {"security": [{"key": [], "token": []}]}, "post": {"security": [{"key": []}, {}]}, "put": {}},
        "/c": {"get": {}},
    }
    api = imported(paths, components={"securitySchemes": schemes}, security=[{"token": []}, {"token": ["x"]}])
    assert api.provider.schemes == {
        "key": ApiKeyAuth(key="${env:CRM_KEY_TOKEN}", name="K"),
        "token": BearerAuth(token="${env:CRM_TOKEN_TOKEN}"),
    }
    assert api.provider.security == ({"token": ()}, {"token": ("x",)})
    assert [http(tool).security for tool in api.tools] == [
        ({"key": ()},),
        (),
        None,
        ({"key": (), "token": ()},),
        None,
        ({"key": ()}, {}),
        None,
    ]
    assert whys(api) == {}


@pytest.mark.requirement("providers.import_auth")
def test_authentication_from_the_caller_wins_over_the_document() -> None:
    source = document({"/a": {"get": {}}}, components={"securitySchemes": {"s": {"type": "mutualTLS"}}})
    auth = BearerAuth(token="${env:OTHER}")
    api = import_openapi(source, name="crm", auth=auth)
    assert (api.provider.auth, whys(api)) == (auth, {})


@pytest.mark.requirement("providers.losses")
def test_webhooks_and_callbacks_are_reported() -> None:
    api = imported({"/a": {"post": {"callbacks": {"paid": {}}}}}, webhooks={"new": {}})
    assert whys(api, all_of_them=True) == {
        "webhooks": "a tool receives no requests",
        "POST /a callbacks": "a tool receives no requests",
    }


@pytest.mark.requirement("providers.document_formats")
def test_the_provider_says_which_document_it_came_from() -> None:
    source = document({"x-not-a-path": {"get": {}}, "/broken": "text"})
    api = import_openapi(source, name="crm")
    assert api.tools == ()
    assert api.provider.title == "Test"
    assert api.provider.metadata == {
        "openapi": "3.1.0",
        "document_version": "1",
        "document_hash": content_hash(source),
        "import": api.report.summary(),
    }


@pytest.mark.requirement("providers.servers")
@pytest.mark.parametrize(
    ("root", "uri", "base"),
    [
        ({"servers": [{"url": "/v2"}]}, "https://a.test/docs/api.json", "https://a.test/v2"),
        ({"servers": [{"url": "v2"}]}, "https://a.test/docs/api.json", "https://a.test/docs/v2"),
        ({}, "https://a.test/docs/api.json", "https://a.test"),
        ({"servers": [{"url": "ws://a.test"}, {"url": "https://b.test/?x=1#y"}]}, "", "https://b.test"),
        ({"servers": [{"url": "a.test/v1"}]}, "", "https://a.test/v1"),
        ({"servers": [{"url": "//a.test/v1"}]}, "", "https://a.test/v1"),
        ({"servers": [{"url": "https://{t}.test"}]}, "", "https://{t}.test"),
        ({"host": "a.test", "basePath": "/v1"}, "", "https://a.test/v1"),
        ({"host": "http://a.test/", "schemes": ["http"]}, "", "http://a.test"),
        ({"basePath": "/v1"}, "http://a.test:8080/docs", "http://a.test:8080/v1"),
        ({"host": "{region}.a.test", "schemes": ["http", "https"]}, "", "https://{region}.a.test"),
        ({"host": "", "schemes": ["ws"]}, "", "https://{host}"),
    ],
)
def test_the_address_is_found_wherever_a_document_says_it(root: dict[str, Any], uri: str, base: str) -> None:
    version = {"openapi": "3.1.0"} if not root or "servers" in root else {"swagger": "2.0"}
    api = import_openapi({**version, "paths": {"/a": {"get": {}}}, **root}, name="api", uri=uri)
    assert api.provider.base_url == base
    assert http(api.tools[0]).url == f"{base}/a"


@pytest.mark.requirement("providers.import_auth")
def test_oauth_2_and_openid_connect_fetch_their_tokens_where_no_person_is_needed() -> None:
    flows = {"clientCredentials": {"tokenUrl": "/token", "scopes": {"read": ""}}, "implicit": {}}
    schemes = {
        "machine": {"type": "oauth2", "flows": flows},
        "lost": {"type": "oauth2", "flows": {"clientCredentials": {"tokenUrl": "token"}}},
        "id": {"type": "openIdConnect", "openIdConnectUrl": "https://id.test/.well-known/openid-configuration"},
    }
    security: Any = [{"machine": ["read"]}, {"lost": []}, {"id": []}]
    api = imported({"/a": {"get": {}}}, components={"securitySchemes": schemes}, security=security)
    machine, lost, identity = (api.provider.schemes[name] for name in ("machine", "lost", "id"))
    assert isinstance(machine, OAuth2Auth)
    assert (machine.token_url, machine.client_id) == ("https://api.test/token", "${env:CRM_MACHINE_CLIENT_ID}")
    assert lost == BearerAuth(token="${env:CRM_LOST_TOKEN}")
    assert isinstance(identity, OAuth2Auth)
    assert identity.discovery_url == "https://id.test/.well-known/openid-configuration"
    assert api.provider.security == ({"machine": ("read",)}, {"lost": ()}, {"id": ()})


@pytest.mark.requirement("providers.any_document", "providers.losses")
def test_paths_are_taken_as_they_are_meant_and_others_go_on() -> None:
    paths: dict[str, Any] = {
        "deals": {"get": {}},
        "/a/{id*}": {"get": {"parameters": [{"name": "id", "in": "path", "required": True, "schema": {}}]}},
        "/b#Action": {"get": {}},
        "/c": {"$ref": "#/components/pathItems/C", "summary": "d", "get": {"operationId": "own"}},
        "/d": None,
        "/e": {"trace": {}, "get": {}},
    }
    items = {"C": {"get": {"operationId": "theirs"}, "put": {}}}
    api = imported(paths, components={"pathItems": items})
    assert [http(found).url.removeprefix("https://api.test/v1") for found in api.tools] == [
        "/deals",
        "/a/{id}",
        "/b",
        "/c",
        "/c",
        "/e",
    ]
    assert [found.operation for found in api.report.operations if found.tool is None] == ["TRACE /e"]
    assert {"path /d", "GET /c path item field get"} <= whys(api).keys()
    assert "GET /b#Action fragment Action" in whys(api, all_of_them=True)


@pytest.mark.requirement("providers.groups")
def test_tools_are_folded_into_groups_by_tag_or_path() -> None:
    paths: dict[str, Any] = {
        "/v1/deals": {"get": {"tags": ["Sales Deals", "crm"]}},
        "/api/v2/{id}/companies": {"get": {}},
        "/{id}": {"get": {"tags": [7]}},
    }
    tags = [{"name": "Sales Deals", "description": "word " * 100}, {"name": "unused"}]
    api = imported(paths, tags=tags)
    assert [(group.name, group.tools) for group in api.groups] == [("sales-deals", 1), ("companies", 1), ("other", 1)]
    assert api.groups[0].description.endswith("word…")
    assert [found.tags for found in api.tools] == [("sales-deals", "crm"), ("companies",), ("other",)]

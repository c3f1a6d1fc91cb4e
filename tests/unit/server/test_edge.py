import asyncio
import logging
from collections.abc import AsyncIterator

import httpx2
import pytest
from starlette.types import Receive, Scope, Send

from tests.unit.server.client import Server, body_of, checked, http_tool, serving
from toolcrib import Crib
from toolcrib.contracts import Principal, Unavailable
from toolcrib.interfaces.server import create_app
from toolcrib.interfaces.server.app import MAX_BODY_BYTES, OPEN_PATHS
from toolcrib.interfaces.server.http.middleware import Failures, ShutdownResponses
from toolcrib.interfaces.server.http.requests import JsonRoute


@pytest.mark.requirement("server.authentication")
async def test_every_path_but_the_open_ones_needs_a_key(server: Server) -> None:
    document = (await server.client.get("/openapi.json")).json()
    async with server.client_of(None) as nobody:
        for path, operations in document["paths"].items():
            for method in operations:
                response = await nobody.request(method.upper(), path)
                if path in OPEN_PATHS:
                    assert response.status_code == 200
                else:
                    problem = checked(response, 401)
                    assert problem.get("error", problem)["code"] == "unauthenticated"  # OpenAI's clients have theirs
                    assert response.headers["www-authenticate"] == 'Bearer realm="toolcrib"'
        assert (await nobody.get("/docs")).status_code == 200
        assert (await nobody.get("/not/there")).status_code == 401
        assert (await nobody.get("/health/")).status_code == 401


@pytest.mark.requirement("server.authentication")
@pytest.mark.parametrize("header", ["Basic b3duZXI6", "Bearer", "Bearer  ", "owner", "Bearer nobody"])
async def test_other_credentials_are_refused(server: Server, header: str) -> None:
    response = await server.client.get("/api/v1/ai/tools", headers={"Authorization": header})
    assert "send" in checked(response, 401)["detail"]


@pytest.mark.requirement("server.errors")
async def test_unknown_paths_and_methods_say_where_the_paths_are(server: Server) -> None:
    missing = checked(await server.client.get("/api/v1/nothing"), 404)
    assert missing["code"] == "not_found"
    assert "/openapi.json" in missing["detail"]
    response = await server.client.put("/health")
    assert checked(response, 405)["code"] == "method_not_allowed"
    assert response.headers["allow"] == "GET"


@pytest.mark.requirement("server.errors")
async def test_errors_of_the_tree_keep_code_and_status(server: Server) -> None:
    response = await server.client.get("/api/v1/ai/tools/serch")
    assert response.headers["content-type"] == "application/problem+json"
    assert checked(response, 404) == {
        "type": "troubleshooting.html#not_found",
        "title": "Not found",
        "status": 404,
        "detail": "no tool 'serch' in realm 'default'; did you mean 'search'?",
        "instance": "/api/v1/ai/tools/serch",
        "code": "not_found",
    }


@pytest.mark.requirement("server.errors")
async def test_an_unexpected_failure_is_logged_under_an_id_and_shows_nothing_internal(
    server: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: str) -> None:
        raise RuntimeError("password is swordfish")

    monkeypatch.setattr(server.crib.registry, "index", fail)
    with caplog.at_level(logging.ERROR):
        response = await server.client.get("/api/v1/ai/tools")
    error = checked(response, 500)
    assert error["code"] == "internal_error"
    assert "swordfish" not in response.text
    assert error["details"]["incident"] in caplog.text


@pytest.mark.requirement("server.errors")
@pytest.mark.parametrize("failure", [RuntimeError("half way"), Unavailable("half way")])
async def test_a_failure_after_the_answer_has_begun_ends_the_connection(failure: Exception) -> None:
    async def break_off(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise failure

    transport = httpx2.ASGITransport(Failures(break_off))
    async with httpx2.AsyncClient(transport=transport, base_url="http://crib") as client:
        with pytest.raises(type(failure), match="half way"):
            await client.get("/")


@pytest.mark.requirement("server.process")
@pytest.mark.parametrize("started", [False, True])
async def test_a_stopping_server_says_where_the_run_is_found(*, started: bool) -> None:
    async def hang(_scope: Scope, _receive: Receive, send: Send) -> None:
        if started:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b""})
        raise asyncio.CancelledError

    transport = httpx2.ASGITransport(ShutdownResponses(hang))
    async with httpx2.AsyncClient(transport=transport, base_url="http://crib") as client:
        response = await client.get("/")
    if started:
        assert (response.status_code, response.content) == (200, b"")
    else:
        assert "GET /api/v1/executions" in checked(response, 503)["detail"]
        assert response.headers["retry-after"] == "1"


@pytest.mark.requirement("server.errors")
async def test_a_store_that_is_not_there_is_503_also_while_authenticating() -> None:
    async def no_store(_: str) -> Principal:
        raise Unavailable("the database cannot be reached; try again")

    app = create_app(Crib("memory://"), no_store)
    server = Server(app, app.state.crib, None)  # pyright: ignore[reportArgumentType] - only makes a client
    async with server.client_of("owner") as client:
        assert checked(await client.get("/api/v1/ai/tools"), 503)["code"] == "unavailable"


@pytest.mark.requirement("repository.start_up")
async def test_a_route_reads_its_parameters_and_bodies_with_its_first_request_and_those_of_others_not(server: Server):
    routes = {route.name: route for route in server.app.routes if isinstance(route, JsonRoute)}
    assert len(routes) > 100
    assert not any("dependant" in vars(route) for route in routes.values())

    assert (await server.client.get("/api/v1/ai/tools")).status_code == 200

    assert [route.path for route in routes.values() if "dependant" in vars(route)] == ["/api/v1/ai/tools"]
    used = next(route for route in routes.values() if "dependant" in vars(route))
    with pytest.raises(AttributeError, match="'JsonRoute' object has no attribute 'nothing'"):
        used.nothing  # noqa: B018


@pytest.mark.requirement("server.bodies")
async def test_a_body_that_is_announced_too_large_is_refused_unread(server: Server) -> None:
    response = await server.client.post(
        "/api/v1/ai/tools", content=b"{", headers={"Content-Length": str(MAX_BODY_BYTES + 1)}
    )
    assert "5242880 bytes" in checked(response, 413)["detail"]


@pytest.mark.requirement("server.bodies")
async def test_a_body_that_grows_too_large_is_cut_off(server: Server) -> None:
    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b" " * 2**20

    headers = {"Content-Type": "application/json"}
    response = await server.client.post("/api/v1/ai/tools", content=endless(), headers=headers)
    assert checked(response, 413)["code"] == "content_too_large"


@pytest.mark.requirement("server.bodies")
@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"{", "EOF"),
        (b'{"params": {"company": NaN}}', "expected value"),
        (b'{"params": ' + b"[" * 100_000, "recursion limit"),
        (b'{"params": {"n": 1' + b"0" * 5000 + b"}}", "number out of range"),
        (b'{"params": {"company": "\\ud800"}}', "hex escape"),
    ],
)
async def test_what_is_not_plain_json_is_refused_with_the_place(server: Server, body: bytes, reason: str) -> None:
    headers = {"Content-Type": "application/json"}
    response = await server.client.post("/api/v1/ai/tools/search/invoke", content=body, headers=headers)
    error = checked(response, 422)
    assert error["code"] == "invalid_input"
    assert reason in error["detail"]
    assert [problem["path"] for problem in error["details"]["problems"]] == ["body"]


@pytest.mark.requirement("server.bodies")
async def test_nesting_that_the_journal_cannot_keep_is_refused(server: Server) -> None:
    deep: object = "x"
    for _ in range(150):
        deep = [deep]
    for path in ("invoke", "execute", "validate"):
        response = await server.client.post(f"/api/v1/ai/tools/search/{path}", json={"params": {"company": deep}})
        assert response.status_code in {200, 422}
        assert "nested" in response.text or "deep" in response.text


@pytest.mark.requirement("server.bodies")
async def test_large_integers_stay_exact(server: Server) -> None:
    definition = http_tool("exact", input_schema={"type": "object", "maxProperties": 2**70 + 1})
    stored = await server.post("/ai/tools", body_of(definition), status=201)
    assert stored["definition"]["input_schema"]["maxProperties"] == 2**70 + 1


@pytest.mark.requirement("server.bodies")
async def test_a_body_of_another_type_is_refused(server: Server) -> None:
    for headers in ({"Content-Type": "text/plain"}, {}):
        response = await server.client.post("/api/v1/ai/tools", content=b"{}", headers=headers)
        assert "Content-Type: application/json" in checked(response, 415)["detail"]


@pytest.mark.requirement("server.bodies")
async def test_problems_with_a_body_name_the_fields_and_never_repeat_what_was_sent(server: Server) -> None:
    body = {"name": "x y", "secret": "swordfish", "implementation": {"kind": "http", "method": "GOT", "url": 5}}
    response = await server.client.post("/api/v1/ai/tools", json=body)
    problems = {found["path"] for found in checked(response, 422)["details"]["problems"]}
    assert problems == {"body.name", "body.secret", "body.implementation.http.method", "body.implementation.http.url"}
    assert "swordfish" not in response.text


@pytest.mark.requirement("server.schemas")
async def test_schemas_and_an_openapi_document_are_served(server: Server) -> None:
    schemas = await server.get("/schemas")
    assert schemas["ToolEnvelope"]["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    document = (await server.client.get("/openapi.json")).json()
    assert document["openapi"].startswith("3.1")
    operation = document["paths"]["/api/v1/ai/tools/{name}/invoke"]["post"]
    assert operation["security"] == [{"HTTPBearer": []}]
    assert operation["responses"]["404"] == {"$ref": "#/components/responses/NotFound"}


@pytest.mark.requirement("server.authentication")
async def test_health_is_open_and_names_the_version() -> None:
    async with serving(driven=False) as server, server.client_of(None) as nobody:
        assert checked(await nobody.get("/health"), 200) == {"status": "ok", "version": "0.1.0"}

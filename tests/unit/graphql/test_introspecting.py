"""A server is asked for its schema as it is asked for everything else; where it does not tell it, the error says so."""

import json
import subprocess
import sys
from typing import Any

import pytest
from aiohttp import web
from starlette.responses import Response

from tests.twins import DictSecrets, ManualClock, make_access
from tests.unit.graphql import server as servers
from tests.unit.graphql.server import Api, adopt, local
from tests.unit.net.servers import serving
from toolcrib import Crib, EgressPolicy
from toolcrib.contracts import (
    OWNER,
    ApiKeyAuth,
    BearerAuth,
    EgressDenied,
    InvalidDefinition,
    InvalidInput,
    NoAuth,
    ProviderAuth,
    ProviderDefinition,
    ReconnectRequired,
    ToolcribError,
    Unavailable,
)
from toolcrib.core.executor import CallFailed
from toolcrib.infrastructure.net import HttpSession
from toolcrib.kinds.graphql.importer import schema as introspecting
from toolcrib.kinds.graphql.importer.importer import import_graphql
from toolcrib.kinds.graphql.importer.schema import introspect, read_schema


async def ask(
    port: int, *, auth: ProviderAuth | None = None, policy: EgressPolicy | None = None, **changes: Any
) -> dict[str, Any]:
    """What a server says of its schema."""
    fields: dict[str, Any] = {"base_url": f"http://127.0.0.1:{port}/graphql", **changes}
    provider = ProviderDefinition(name="crm", auth=auth or NoAuth(), **fields)
    async with HttpSession(policy or local(port, 1)) as session:
        access = make_access(session, ManualClock(), DictSecrets({"${env:T}": "s3cret"}), provider)
        return await introspect(session, access, provider, OWNER, within_s=5)


@pytest.mark.requirement("graphql.import_server")
async def test_a_server_is_imported_by_what_it_says_of_itself(port: int, api: Api) -> None:
    reading = read_schema(await ask(port, headers={"X-Tenant": "t1"}))
    assert reading.form == "GraphQL introspection"
    assert len(api.bodies) == 1
    assert api.headers[0]["x-tenant"] == "t1"
    address = f"http://127.0.0.1:{port}/graphql"
    imported = import_graphql(reading.schema, name="crm", base_url=address, source=reading.form)
    given = import_graphql(read_schema(servers.SDL).schema, name="crm", base_url=address, source=reading.form)
    assert [(t.name, t.implementation, t.input_schema) for t in imported.tools] == [
        (t.name, t.implementation, t.input_schema) for t in given.tools
    ]
    async with Crib("memory://", egress=local(port)) as crib:
        await adopt(crib, imported)
        envelope = await crib.call("deal", id="1")
    assert envelope.output["name"] == "Acme"


@pytest.mark.requirement("graphql.import_server")
async def test_a_server_that_knows_only_older_introspection_is_asked_again(port: int, api: Api) -> None:
    api.introspection_error = "isOneOf"
    found = await ask(port)
    assert "types" in found["__schema"]
    assert ["isOneOf" in body for body in api.bodies] == [True, False]


@pytest.mark.requirement("graphql.import_server")
async def test_introspection_that_is_off_is_said_to_be(api: Api) -> None:
    api.introspection = False
    async with servers.api_server(api) as port:
        with pytest.raises(InvalidInput, match=r"introspection may be turned off .* give the schema as an SDL file"):
            await ask(port)
    assert len(api.bodies) == 2


@pytest.mark.requirement("graphql.import_server")
async def test_credentials_are_sent_and_a_refusal_of_them_is_told(port: int, api: Api) -> None:
    api.token = "Bearer s3cret"
    assert "__schema" in await ask(port, auth=BearerAuth(token="${env:T}"))
    api.token = "Bearer other"
    with pytest.raises(ReconnectRequired, match=r"refused the credentials with 401: .* check or renew them"):
        await ask(port, auth=ApiKeyAuth(key="${env:T}", name="authorization"))
    with pytest.raises(CallFailed, match="needs"):
        await ask(port, auth=BearerAuth(token="${env:OTHER}"))


@pytest.mark.requirement("graphql.import_server", "graphql.import_refused")
@pytest.mark.parametrize(
    ("status", "body", "error", "message"),
    [
        (200, "<html>", InvalidInput, "answered 200 and no GraphQL; give the address"),
        (404, "no", InvalidInput, "answered 404 and no GraphQL"),
        (403, "no", ReconnectRequired, "refused the credentials with 403"),
        (429, "no", Unavailable, "answered 429; try again later"),
        (503, "no", Unavailable, "answered 503; try again later"),
        (200, '{"data": {"__schema": null}}', InvalidInput, "introspection may be turned off"),
        (200, '{"data": {}}', InvalidInput, "introspection may be turned off"),
        (
            200,
            '{"errors": [{"message": "who?", "extensions": {"code": "UNAUTHENTICATED"}}]}',
            ReconnectRequired,
            "refused the credentials with 200: who",
        ),
        (500, '{"errors": [{"message": "broken"}]}', InvalidInput, "500: broken"),
        (200, '{"errors": [{"message": "' + "x" * 5_000 + '"}]}', InvalidInput, "turned off"),
    ],
)
async def test_every_other_answer_ends_in_an_error_that_says_what_to_do(
    port: int, api: Api, *, status: int, body: str, error: type[ToolcribError], message: str
) -> None:
    api.answer = Response(body, status)
    with pytest.raises(error, match=message) as raised:
        await ask(port)
    assert "give the schema as an SDL file instead" in str(raised.value)
    assert len(str(raised.value)) < 700


@pytest.mark.requirement("graphql.import_server", "graphql.import_refused")
async def test_a_server_that_is_not_there_late_or_forbidden_is_told(
    port: int, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Unavailable):
        await ask(1)
    with pytest.raises(EgressDenied):
        await ask(port, policy=EgressPolicy())
    with pytest.raises(InvalidInput, match="cannot be asked: header 'x-a' would hold a line break"):
        await ask(port, headers={"X-A": "a\nb"})
    monkeypatch.setattr(introspecting, "MAX_BYTES", 100)
    with pytest.raises(InvalidDefinition, match="bytes and 100 is the most; give the schema as an SDL file instead"):
        await ask(port)


@pytest.mark.requirement("graphql.import_server")
async def test_introspection_is_not_redirected() -> None:
    async def move(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=307, headers={"location": "/other"})

    async with serving(move) as port:
        with pytest.raises(InvalidInput, match="answered 307 and no GraphQL"):
            await ask(port)


@pytest.mark.requirement("graphql.lean")
def test_a_process_that_imports_no_api_does_not_load_graphql_core() -> None:
    program = (
        "import json, sys, toolcrib, toolcrib.crib, toolcrib.kinds.graphql.runtime as r, toolcrib.kinds.dispatch\n"
        "print(json.dumps([name for name in sys.modules if name.partition('.')[0] == 'graphql']))"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert json.loads(told.stdout) == []

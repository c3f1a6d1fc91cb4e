"""A hostile service behind an HTTP tool: it echoes what it was sent, and gets nothing into a receipt or a journal.

The whole house runs: the crib with a store in memory, its executor and its way out.
"""

import json
from typing import Any

import pytest
from aiohttp import web

from tests.unit.net.servers import serving
from toolcrib import Crib, EgressPolicy
from toolcrib.contracts import ApiKeyAuth, OAuth2Auth, ProviderDefinition, ToolDefinition
from toolcrib.infrastructure.secrets import PLACEHOLDER
from toolcrib.kinds.http.shape import HttpImplementation, HttpParameter, LinkPaging

SECRETS = {"ID": "client-id-0123456789", "SECRET": "client-secret-0123456789", "KEY": "api-key-0123456789"}
ISSUED = "issued-token-0123456789"


def operation(base: str, path: str, **changes: Any) -> ToolDefinition:
    implementation = HttpImplementation(method="GET", url=base + path, provider="svc", **changes)
    return ToolDefinition(name="probe", side_effects="reads", implementation=implementation)


@pytest.mark.requirement("authentication.tokens_secret", "runtime_http.credentials")
@pytest.mark.parametrize("status", [200, 400, 401])
async def test_an_echoed_token_is_in_no_receipt_and_in_no_journal(status: int) -> None:
    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        if request.path == "/token":
            return web.json_response({"access_token": ISSUED, "expires_in": 600})
        seen = {"headers": dict(request.headers), "url": request.raw_path, ISSUED: [ISSUED]}
        return web.json_response(seen, status=status, headers={"X-Request-Id": ISSUED, "Link": request.raw_path})

    async with serving(handle) as port:
        base = f"http://127.0.0.1:{port}"
        crib = Crib("memory://", egress=EgressPolicy(allow=(f"127.0.0.1:{port}",)), environment=SECRETS)
        async with crib:
            oauth = OAuth2Auth(token_url=f"{base}/token", client_id="${env:ID}", client_secret="${env:SECRET}")
            key = ApiKeyAuth(key="${env:KEY}", place="query", name="key")
            schemes: dict[str, Any] = {"oauth": oauth, "key": key}
            await crib.save_provider(
                ProviderDefinition(name="svc", base_url=base, schemes=schemes, security=({"oauth": (), "key": ()},))
            )
            crib.add(operation(base, "/probe"))
            result = await crib.invoke("probe", {}, as_call=True)
            told = json.dumps([event.model_dump(mode="json") for event in result.events])
    assert PLACEHOLDER in told
    for secret in (ISSUED, *SECRETS.values()):
        assert secret not in told


@pytest.mark.requirement("runtime_http.path_safety", "runtime_http.header_safety", "runtime_http.paging_origin")
@pytest.mark.parametrize(
    "arguments",
    [
        {"id": ".."},
        {"id": "%2e%2e/admin"},
        {"id": "..%2fadmin"},
        {"id": "x/../../admin"},
        {"id": "x?key=evil#"},
        {"id": "x", "q": "a&key=evil"},
        {"id": "x", "q": {"key": "evil"}},
        {"id": "x", "note": "a\r\nAuthorization: evil"},
        {"id": "x", "session": "a; admin=1"},
        {"id": "\ud83d"},
    ],
)
async def test_hostile_arguments_reach_no_other_path_and_set_no_other_field(arguments: Any) -> None:
    seen: list[web.BaseRequest] = []

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        seen.append(request)
        return web.json_response([1], headers={"Link": "<https://evil.test/?key=x>; rel=next"})

    parameters = (
        HttpParameter(name="id", argument="id", place="path", style="simple", required=True),
        HttpParameter(name="q", argument="q", place="query"),
        HttpParameter(name="X-Note", argument="note", place="header", style="simple"),
        HttpParameter(name="session", argument="session", place="cookie"),
    )
    async with serving(handle) as port:
        base = f"http://127.0.0.1:{port}"
        crib = Crib("memory://", egress=EgressPolicy(allow=(f"127.0.0.1:{port}",)), environment=SECRETS)
        async with crib:
            key = ApiKeyAuth(key="${env:KEY}", place="query", name="key")
            await crib.save_provider(ProviderDefinition(name="svc", base_url=base, auth=key))
            crib.add(operation(base, "/items/{id}/notes", parameters=parameters, paging=LinkPaging()))
            result = await crib.invoke("probe", arguments)
    [envelope] = result.envelopes
    assert not result.ok or envelope.metadata["paging"]["complete"] is False  # the next page is at another origin
    for request in seen:
        first, items, _, notes = request.raw_path.partition("?")[0].split("/")
        assert (first, items, notes) == ("", "items", "notes")
        assert request.query.getall("key") == [SECRETS["KEY"]]
        assert "Authorization" not in request.headers
        assert set(request.cookies) <= {"session"}

"""Calls whose credentials come from a login of the system's own, and calls with a client certificate."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.twins import DictSecrets, ManualClock, make_access, make_context, make_tool
from tests.unit.net.certificates import authority, issued, server_context
from tests.unit.net.servers import serving
from tests.unit.runtimes_http.service import Seen, service
from toolcrib.contracts import (
    BearerAuth,
    ErrorCode,
    LoginRequest,
    MutualTlsAuth,
    ProviderDefinition,
    Reason,
    TwoStepAuth,
)
from toolcrib.core.executor import CallFailed, Dispatch
from toolcrib.infrastructure.net import EgressPolicy, HttpSession
from toolcrib.infrastructure.store import MemoryStore
from toolcrib.kinds.http.runtime import HttpRuntime
from toolcrib.kinds.http.shape import HttpImplementation

SECRETS = {"${env:USER}": "robot", "${secret:PASS}": 'pa"ss ${env:USER}'}
BODY = {"user": "${env:USER}", "password": "${secret:PASS}", "keep": [True, {"for": "${env:USER}@crm"}]}


def login(**changes: Any) -> TwoStepAuth:
    request: dict[str, Any] = {"url": "/session", "body": BODY}
    request |= {name: changes.pop(name) for name in set(changes) & set(LoginRequest.model_fields)}
    fields: dict[str, Any] = {"path": "$.data.key", "template": "Token {token}"}
    return TwoStepAuth(login=LoginRequest(**request), **fields | changes)


def system(refused: int = 0, answer: Any = None) -> Any:
    """A system that gives a numbered key at its door, and refuses the first few calls."""
    refusals = [web.Response(status=401) for _ in range(refused)]
    given: list[str] = []

    def handle(seen: Seen) -> web.Response:
        if seen.path == "/session":
            given.append(f"session-key-{len(given) + 1}")
            return answer or web.json_response({"data": {"key": given[-1], "ttl": "120"}})
        return refusals.pop() if refusals else web.json_response(seen.headers.get("authorization"))

    return handle


@pytest.mark.requirement("authentication.login")
async def test_a_login_is_made_of_its_template_and_its_token_sent_as_the_template_says() -> None:
    async with service(system(), auth=login(headers={"X-App": "app-${env:USER}"}), secrets=SECRETS) as svc:
        outcome = await svc.run(svc.tool())
        assert outcome.output == "Token session-key-1"
        asked = svc.seen[0]
        assert (asked.method, asked.path, asked.headers["x-app"]) == ("POST", "/session", "app-robot")
        assert asked.json == {
            "user": "robot",
            "password": 'pa"ss ${env:USER}',
            "keep": [True, {"for": "robot@crm"}],
        }
        assert {"session-key-1", "robot", 'pa"ss ${env:USER}'} <= set(outcome.secrets)


@pytest.mark.requirement("authentication.login")
@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"place": "query", "name": "sid", "template": "{token}"}, ("query", ("sid", "session-key-1"))),
        ({"place": "cookie", "name": "sid", "template": "{token}"}, ("cookie", "sid=session-key-1")),
    ],
)
async def test_a_token_may_go_into_the_query_or_a_cookie(changes: Any, part: Any) -> None:
    async with service(system(), auth=login(**changes), secrets=SECRETS) as svc:
        await svc.run(svc.tool())
        seen = svc.seen[1]
        kind, expected = part
        assert (expected in seen.query) if kind == "query" else (seen.headers["cookie"] == expected)


@pytest.mark.requirement("authentication.login")
async def test_a_login_may_be_a_form_and_elsewhere() -> None:
    form = {"user": "${env:USER}", "n": 1}
    async with service(system(), auth=login(), secrets=SECRETS) as svc:
        svc.provide(auth=login(body=form, encoding="form", url=f"{svc.url}/session"))
        await svc.run(svc.tool())
        assert svc.seen[0].body == b"user=robot&n=1"
        svc.provide(auth=login(method="GET", body=None, headers={"X-Key": "${env:USER}"}))
        await svc.run(svc.tool())
        assert (svc.seen[2].method, svc.seen[2].headers["x-key"], svc.seen[2].body) == ("GET", "robot", b"")


@pytest.mark.requirement("authentication.login_kept")
async def test_fifty_calls_log_in_once_and_again_when_the_token_is_old() -> None:
    async with service(system(), auth=login(life_path="$.data.ttl"), secrets=SECRETS) as svc:
        await asyncio.gather(*(svc.run(svc.tool()) for _ in range(50)))
        assert [seen.path for seen in svc.seen].count("/session") == 1
        svc.clock.advance(110)
        assert (await svc.run(svc.tool())).output == "Token session-key-2"
        svc.provide(auth=login(life_s=1000))
        await svc.run(svc.tool())
        svc.clock.advance(900)
        assert (await svc.run(svc.tool())).output == "Token session-key-3"


@pytest.mark.requirement("authentication.login_kept")
@pytest.mark.parametrize(("refused", "logins"), [(1, 2), (2, 2)])
async def test_a_refused_token_is_replaced_once(refused: int, logins: int) -> None:
    async with service(system(refused), auth=login(), secrets=SECRETS) as svc:
        if refused == 1:
            assert (await svc.run(svc.tool())).output == "Token session-key-2"
        else:
            failed = await svc.failure(svc.tool())
            assert (failed.error.code, failed.error.reason) == (ErrorCode.AUTH_REQUIRED, Reason.REQUEST_REFUSED)
        assert [seen.path for seen in svc.seen].count("/session") == logins


@pytest.mark.requirement("authentication.login_refused")
@pytest.mark.parametrize(
    ("answer", "code", "message"),
    [
        (web.Response(status=403), ErrorCode.AUTH_REQUIRED, "answered with status 403"),
        (web.Response(status=429), ErrorCode.RATE_LIMIT, "answered with status 429"),
        (web.Response(status=500), ErrorCode.PROVIDER_ERROR, "answered with status 500"),
        (web.Response(text="hello"), ErrorCode.PROVIDER_ERROR, "did not answer with a JSON object"),
        (web.json_response({"data": 1}), ErrorCode.PROVIDER_ERROR, r"without a text at \$.data.key"),
        (web.json_response({"data": {"key": 7}}), ErrorCode.PROVIDER_ERROR, r"without a text at \$.data.key"),
    ],
)
async def test_a_login_that_brings_no_token_fails_the_call(answer: Any, code: ErrorCode, message: str) -> None:
    async with service(system(answer=answer), auth=login(), secrets=SECRETS) as svc:
        failed = await svc.failure(svc.tool())
        assert failed.error.code == code
        assert message.replace("\\", "") in failed.error.message
        assert {"robot", SECRETS["${secret:PASS}"]} <= set(failed.secrets)
        assert 'pa"ss' not in failed.error.model_dump_json()


@pytest.mark.requirement("authentication.login_refused")
async def test_a_login_without_its_secrets_is_not_tried() -> None:
    async with service(system(), auth=login(), secrets={"${env:USER}": "robot"}) as svc:
        failed = await svc.failure(svc.tool())
        assert failed.error.reason == Reason.MISSING_SECRET
        assert "${secret:PASS}" in failed.error.message
        assert svc.seen == []


CLIENT = issued("toolcrib", "clients")
PEM = {
    "${secret:CERT}": CLIENT.pem,
    "${secret:KEY}": CLIENT.key("open sesame"),
    "${secret:WORD}": "open sesame",
    "${secret:CA}": authority("servers").pem,
    "${env:T}": "token-0123456789",
}
MTLS = MutualTlsAuth(certificate="${secret:CERT}", key="${secret:KEY}", password="${secret:WORD}", ca="${secret:CA}")


async def call_over_tls(folder: Path, secrets: dict[str, str], **changes: Any) -> Any:
    """The outcome of a call to a server that lets in only who has a certificate of its clients' authority."""

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        assert request.transport is not None
        certificate: dict[str, Any] = request.transport.get_extra_info("peercert")
        name: str = certificate["subject"][0][0][1]
        if request.path == "/session":
            return web.json_response({"data": {"key": f"key-of-{name}"}})
        return web.json_response([name, request.headers.get("authorization")])

    context = server_context(folder, issued("server", "servers", "127.0.0.1"), authority("clients"))
    async with serving(handle, tls=context) as port, HttpSession(EgressPolicy(allow=(f"127.0.0.1:{port}",))) as session:
        provider = ProviderDefinition(name="crm", base_url=f"https://127.0.0.1:{port}", **changes)
        clock = ManualClock()
        access = make_access(session, clock, DictSecrets(secrets), provider)
        runtime = HttpRuntime(session, access, blob_sink=MemoryStore().blobs, clock=clock)
        tool = make_tool("deals", implementation=HttpImplementation(method="GET", url="/x", provider="crm"))
        return await runtime.run(
            Dispatch(
                tool=tool,
                input={},
                auth={},
                idempotency_key="k",
                position="t1.c1",
                attempt=1,
                context=make_context(),
            )
        )


@pytest.mark.requirement("authentication.mutual_tls")
async def test_a_client_certificate_is_shown_and_its_key_is_a_secret(tmp_path: Path) -> None:
    outcome = await call_over_tls(tmp_path, PEM, auth=MTLS)
    assert outcome.output == ["toolcrib", None]
    assert {PEM["${secret:KEY}"], "open sesame"} <= set(outcome.secrets)


@pytest.mark.requirement("authentication.mutual_tls")
async def test_a_certificate_goes_together_with_a_bearer_token_and_with_a_login(tmp_path: Path) -> None:
    schemes = {
        "bearer": BearerAuth(token="${env:T}"),
        "tls": MTLS,
        "login": login(headers={"X": "${env:T}"}, body=None),
    }
    for name, expected in (("bearer", "Bearer token-0123456789"), ("login", "Token key-of-toolcrib")):
        needed = ({name: (), "tls": ()},)
        outcome = await call_over_tls(tmp_path, PEM, schemes=schemes, security=needed)
        assert outcome.output == ["toolcrib", expected]


@pytest.mark.requirement("authentication.mutual_tls")
@pytest.mark.parametrize(
    ("secrets", "code"),
    [
        ({name: text for name, text in PEM.items() if "KEY" not in name}, ErrorCode.AUTH_REQUIRED),
        (PEM | {"${secret:CA}": authority("else").pem}, ErrorCode.NETWORK_ERROR),
        (PEM | {"${secret:WORD}": "wrong"}, ErrorCode.AUTH_REQUIRED),
    ],
)
async def test_without_the_right_certificate_the_call_fails(
    tmp_path: Path, secrets: dict[str, str], code: ErrorCode
) -> None:
    with pytest.raises(CallFailed) as caught:
        await call_over_tls(tmp_path, secrets, auth=MTLS)
    assert caught.value.error.code == code
    assert "BEGIN" not in caught.value.error.message

"""With which credentials a tool's requests arrive."""

from typing import Any

import pytest
from aiohttp import web

from tests.unit.net.servers import no_answer, serving
from tests.unit.runtimes_http.service import BEARER, TOKEN, Seen, parameter, service
from toolcrib.contracts import ApiKeyAuth, BasicAuth, ErrorCode, Limits, OAuth2Auth, Reason, ServerVariable
from toolcrib.kinds.http.shape import LinkPaging

KEY = ApiKeyAuth(key="${env:KEY}", name="X-Key")
SESSION = ApiKeyAuth(key="${env:TOKEN}", name="sid", place="cookie")
OAUTH: Any = {"client_id": "${env:ID}", "client_secret": "${env:SECRET}"}
SECRETS = {"${env:ID}": "client-0123", "${env:SECRET}": "secret-0123456789"}


def issuing(refused: int = 0) -> Any:
    """A service that issues tokens and refuses the first few calls that are made with one."""
    refusals = [web.Response(status=401) for _ in range(refused)]
    issued: list[str] = []

    def answer(seen: Seen) -> web.Response:
        if seen.path == "/token":
            issued.append(f"issued-token-{len(issued) + 1}")
            return web.json_response({"access_token": issued[-1], "expires_in": 600})
        return refusals.pop() if refusals else web.json_response({"with": seen.headers.get("authorization")})

    return answer


@pytest.mark.requirement("authentication.alternatives", "runtime_http.credentials")
@pytest.mark.parametrize(
    ("security", "arrived"),
    [
        (({"key": ()}, {"bearer": ()}), {"authorization": f"Bearer {TOKEN}"}),
        (({"bearer": (), "session": ()},), {"authorization": f"Bearer {TOKEN}", "cookie": f"sid={TOKEN}"}),
        ((), {}),
        (None, {"cookie": f"sid={TOKEN}"}),
    ],
)
async def test_an_operations_alternatives_replace_its_providers(security: Any, arrived: Any) -> None:
    async with service() as svc:
        svc.provide(schemes={"key": KEY, "bearer": BEARER, "session": SESSION}, security=({"session": ()},))
        seen = await svc.sent(svc.tool(security=security))
        found = {name: seen.headers[name] for name in ("authorization", "cookie", "x-key") if name in seen.headers}
        assert found == arrived


@pytest.mark.requirement("authentication.alternatives")
async def test_without_any_secret_nothing_is_sent_and_the_variables_are_named() -> None:
    async with service() as svc:
        basic = BasicAuth(username="${env:USER}", password="${env:TOKEN}")
        svc.provide(schemes={"key": KEY, "basic": basic}, security=({"key": ()}, {"basic": ()}))
        failed = await svc.failure(svc.tool())
        assert (failed.error.code, failed.error.reason) == (ErrorCode.AUTH_REQUIRED, Reason.MISSING_SECRET)
        assert "needs ${env:KEY}, or ${env:USER}, which are not set" in failed.error.message
        assert failed.error.details is not None
        assert failed.error.details["alternatives"] == [["${env:KEY}"], ["${env:USER}"]]
        assert svc.seen == []


@pytest.mark.requirement("authentication.tokens", "authentication.tokens_secret")
async def test_a_token_is_fetched_sent_kept_and_named_as_a_secret() -> None:
    async with service(issuing(), secrets=SECRETS) as svc:
        svc.provide(auth=OAuth2Auth(token_url=f"{svc.url}/token", **OAUTH))
        svc.limits = Limits(max_requests=2)
        outcome = await svc.run(svc.tool())
        assert outcome.output == {"with": "Bearer issued-token-1"}
        assert {"issued-token-1", "secret-0123456789", "client-0123"} <= set(outcome.secrets)
        await svc.run(svc.tool())
        assert [seen.path for seen in svc.seen] == ["/token", "/", "/"]


@pytest.mark.requirement("authentication.tokens_kept", "runtime_http.requests_counted")
@pytest.mark.parametrize(
    ("refused", "paths"), [(1, ["/token", "/", "/token", "/"]), (9, ["/token", "/", "/token", "/"])]
)
async def test_a_refused_token_is_fetched_anew_once(refused: int, paths: list[str]) -> None:
    async with service(issuing(refused), secrets=SECRETS) as svc:
        svc.provide(auth=OAuth2Auth(token_url=f"{svc.url}/token", **OAUTH))
        if refused == 1:
            outcome = await svc.run(svc.tool(method="POST"))
            assert outcome.output == {"with": "Bearer issued-token-2"}
            assert {"issued-token-1", "issued-token-2"} <= set(outcome.secrets)
        else:
            failed = await svc.failure(svc.tool(method="POST"))
            assert failed.error.code == ErrorCode.AUTH_REQUIRED
            assert {"issued-token-1", "issued-token-2"} <= set(failed.secrets)
        assert [seen.path for seen in svc.seen] == ["/token", "/", "/token", "/"]


@pytest.mark.requirement("authentication.tokens_kept")
async def test_a_refused_token_that_was_not_fetched_is_not_tried_again() -> None:
    async with service(lambda _: web.Response(status=401), auth=BEARER) as svc:
        assert (await svc.failure(svc.tool())).error.code == ErrorCode.AUTH_REQUIRED
        assert len(svc.seen) == 1


@pytest.mark.requirement("runtime_http.requests_counted")
async def test_the_second_try_is_counted_too() -> None:
    async with service(issuing(1), secrets=SECRETS) as svc:
        svc.provide(auth=OAuth2Auth(token_url=f"{svc.url}/token", **OAUTH))
        svc.limits = Limits(max_requests=1)
        assert (await svc.failure(svc.tool())).error.reason == Reason.MAX_REQUESTS_EXCEEDED


@pytest.mark.requirement("authentication.tokens_refused", "authentication.tokens_secret")
async def test_a_token_that_is_not_given_fails_the_call_without_a_request() -> None:
    async with service(lambda _: web.json_response({"error": "secret-0123456789"}, status=400), secrets=SECRETS) as svc:
        svc.provide(auth=OAuth2Auth(token_url=f"{svc.url}/token", **OAUTH))
        failed = await svc.failure(svc.tool())
        assert failed.error.code == ErrorCode.AUTH_REQUIRED
        assert "secret-0123456789" in failed.secrets
        assert [seen.path for seen in svc.seen] == ["/token"]


@pytest.mark.requirement("runtime_http.paging_origin", "runtime_http.credentials")
async def test_no_credentials_follow_a_redirect_to_another_origin() -> None:
    arrived: list[dict[str, str]] = []

    async def other(request: web.BaseRequest) -> web.StreamResponse:
        arrived.append({name.lower(): value for name, value in request.headers.items()} | dict(request.query))
        return web.json_response([1])

    async with serving(other) as port:
        elsewhere = f"http://127.0.0.1:{port}/"
        redirect = web.Response(status=302, headers={"Location": elsewhere})
        schemes = {"bearer": BEARER, "session": SESSION, "key": KEY}
        async with service(lambda _: redirect, ports=(port,), secrets={"${env:KEY}": "key-0123456789"}) as svc:
            svc.provide(schemes=schemes, security=({"bearer": (), "session": (), "key": ()},), headers={"X-Own": "1"})
            tool = svc.tool(parameters=(parameter("X-Arg", "header"), parameter("c", "cookie")))
            await svc.run(tool, {"X-Arg": "a", "c": "b"})
    (headers,) = arrived
    assert not {"authorization", "cookie", "x-key", "x-own", "x-arg"} & set(headers)


@pytest.mark.requirement("runtime_http.paging_origin")
async def test_a_page_behind_a_redirect_does_not_widen_where_pages_may_be() -> None:
    async with serving(no_answer) as port:
        link = f"<http://127.0.0.1:{port}/>; rel=next"
        async with service(lambda _: web.json_response([1], headers={"Link": link}), ports=(port,)) as svc:
            outcome = await svc.run(svc.tool(paging=LinkPaging()))
            assert "on another origin, http://127.0.0.1" in outcome.metadata["paging"]["trouble"]
            assert (outcome.output, len(svc.seen)) == ([1], 1)


@pytest.mark.requirement("runtime_http.base_address")
@pytest.mark.parametrize(
    ("base", "url", "path"),
    [
        ("{url}/{version}", "/deals/{id}", "/v2/deals/7"),
        ("{url}/{version}/", "/deals/{id}", "/v2/deals/7"),
        ("{url}/{version}", "{url}/{version}/deals/{id}?fixed=1", "/v2/deals/7?fixed=1"),
        ("{url}", "{url}/deals/{id}", "/deals/7"),
    ],
)
async def test_an_operation_is_found_below_its_providers_address(base: str, url: str, path: str) -> None:
    async with service(auth=BEARER) as svc:
        variables = {"version": ServerVariable(default="v1", value="v2"), "unused": ServerVariable(default="x")}
        svc.provide(base_url=base.replace("{url}", svc.url), variables=variables)
        tool = svc.tool(url=url.replace("{url}", svc.url), parameters=(parameter("id", "path"),))
        seen = await svc.sent(tool, {"id": 7})
        assert "?".join(filter(None, [seen.path, seen.raw_query])) == path
        assert seen.headers["authorization"] == f"Bearer {TOKEN}"


@pytest.mark.requirement("runtime_http.base_address", "authentication.alternatives")
async def test_a_variable_decides_to_which_host_credentials_go() -> None:
    async with service(auth=BEARER) as svc:
        host = {"host": ServerVariable(default="127.0.0.1")}
        svc.provide(base_url=f"http://{{host}}:{svc.port}", variables=host)
        await svc.sent(svc.tool(url=f"http://{{host}}:{svc.port}/x"))
        svc.provide(variables={"host": ServerVariable(default="127.0.0.1", value="other.test")})
        failed = await svc.failure(svc.tool("/x"))
        assert "credentials of provider 'svc' are for http://other.test" in failed.error.message


@pytest.mark.requirement("runtime_http.header_safety")
@pytest.mark.parametrize("value", ["a; sid=evil", "a\r\nSet-Cookie: b", 'a"b', "a,b"])
async def test_no_argument_adds_a_cookie(value: str) -> None:
    async with service(auth=SESSION) as svc:
        seen = await svc.sent(svc.tool(parameters=(parameter("c", "cookie"),)), {"c": value})
        names = [pair.partition("=")[0].strip() for pair in seen.headers["cookie"].split(";")]
        assert names == ["c", "sid"]
        tool = svc.tool(parameters=(parameter("sid", "cookie"), parameter("o", "cookie")))
        seen = await svc.sent(tool, {"sid": "evil", "o": {"sid": "evil"}})
        assert seen.headers["cookie"] == f"sid={TOKEN}"

"""Access tokens from a token endpoint on loopback."""

import asyncio
import base64
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

import pytest
from aiohttp import web

from tests.twins import DictSecrets, ManualClock, make_holder
from tests.unit.net.servers import serving
from toolcrib.contracts import ErrorCode, OAuth2Auth, ProviderDefinition, Reason
from toolcrib.core.executor import CallFailed
from toolcrib.core.providers import CredentialOwner, Credentials, credentials_for
from toolcrib.core.providers.auth import tokens
from toolcrib.core.providers.auth.oauth import Grant
from toolcrib.infrastructure.net import EgressPolicy, HttpSession

SECRETS = {"${env:ID}": "client:1", "${env:SECRET}": "s3cret/long+enough", "${env:REFRESH}": "refresh-token-1"}


@dataclass
class Endpoint:
    """A running token endpoint."""

    url: str
    holder: CredentialOwner
    clock: ManualClock
    asked: list[tuple[str, dict[str, str], dict[str, str]]] = field(default_factory=list[Any])
    """Method and path, headers and form fields of each request."""

    def auth(self, **changes: Any) -> OAuth2Auth:
        fields: dict[str, Any] = {
            "token_url": f"{self.url}/token",
            "client_id": "${env:ID}",
            "client_secret": "${env:SECRET}",
        }
        return OAuth2Auth(**fields | changes)

    async def credentials(self, auth: OAuth2Auth | None = None, scopes: tuple[str, ...] = ()) -> Credentials:
        provider = ProviderDefinition(
            name="crm", base_url="https://api.test", schemes={"o": auth or self.auth()}, security=({"o": scopes},)
        )
        return await credentials_for(provider, "https://api.test/x", self.holder)

    async def failure(self, auth: OAuth2Auth | None = None) -> CallFailed:
        with pytest.raises(CallFailed) as caught:
            await self.credentials(auth)
        for secret in SECRETS.values():
            assert secret not in caught.value.error.model_dump_json()
        return caught.value


Answer = Callable[[int], web.Response | Awaitable[web.Response]]


def issued(number: int, **more: Any) -> web.Response:
    return web.json_response({"access_token": f"token-{number}", "token_type": "Bearer", "expires_in": 3600} | more)


@asynccontextmanager
async def endpoint(answer: Answer = issued, *, reachable: bool = True) -> AsyncGenerator[Endpoint]:
    """An endpoint whose n-th answer is `answer(n)`."""
    found: list[Endpoint] = []

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        fields = dict(parse_qsl((await request.read()).decode(), keep_blank_values=True))
        headers = {name.lower(): value for name, value in request.headers.items()}
        found[0].asked.append((f"{request.method} {request.path}", headers, fields))
        answered = answer(len(found[0].asked))
        return answered if isinstance(answered, web.Response) else await answered

    async with serving(handle) as port:
        clock = ManualClock()
        policy = EgressPolicy(allow=(f"127.0.0.1:{port}",) if reachable else ())
        async with HttpSession(policy) as session:
            found.append(Endpoint(f"http://127.0.0.1:{port}", make_holder(session, clock, DictSecrets(SECRETS)), clock))
            yield found[0]


@pytest.mark.requirement("authentication.tokens")
async def test_client_credentials_get_a_token_that_becomes_a_bearer() -> None:
    async with endpoint() as place:
        found = await place.credentials(place.auth(scopes=("a", "b"), audience="https://api.test"))
        assert found.headers == {"authorization": "Bearer token-1"}
        ((line, headers, fields),) = place.asked
        assert line == "POST /token"
        pair = base64.b64encode(b"client%3A1:s3cret%2Flong%2Benough").decode()
        assert headers["authorization"] == f"Basic {pair}"
        assert headers["content-type"] == "application/x-www-form-urlencoded"
        assert fields == {"grant_type": "client_credentials", "scope": "a b", "audience": "https://api.test"}


@pytest.mark.requirement("authentication.tokens")
async def test_a_clients_secret_may_go_into_the_body_and_scopes_may_be_the_operations() -> None:
    async with endpoint() as place:
        await place.credentials(place.auth(client_auth="body"), scopes=("deals.read",))
        ((_, headers, fields),) = place.asked
        assert "authorization" not in headers
        assert fields == {
            "grant_type": "client_credentials",
            "scope": "deals.read",
            "client_id": "client:1",
            "client_secret": "s3cret/long+enough",
        }


@pytest.mark.requirement("authentication.tokens")
async def test_a_refresh_token_is_replaced_by_the_one_that_the_endpoint_gives() -> None:
    async with endpoint(lambda number: issued(number, refresh_token=f"refresh-{number}")) as place:
        auth = place.auth(grant="refresh_token", refresh_token="${env:REFRESH}", client_secret=None)
        await place.credentials(auth)
        place.clock.advance(3600)
        await place.credentials(auth)
        assert [fields for *_, fields in place.asked] == [
            {"grant_type": "refresh_token", "refresh_token": "refresh-token-1", "client_id": "client:1"},
            {"grant_type": "refresh_token", "refresh_token": "refresh-1", "client_id": "client:1"},
        ]


@pytest.mark.requirement("authentication.tokens_kept")
@pytest.mark.parametrize(
    ("life", "used"),
    [(3600, 3570.0), ("3600", 3570.0), (100, 90.0), (None, 270.0), ("soon", 270.0), ("nan", 270.0), (-1, 0.0)],
)
async def test_a_token_is_used_until_shortly_before_it_expires(life: Any, used: float) -> None:
    async with endpoint(lambda number: issued(number, expires_in=life)) as place:
        await place.credentials()
        if used:
            place.clock.advance(used - 1)
            assert (await place.credentials()).fetched == ("token-1",)
            place.clock.advance(1)
        assert (await place.credentials()).fetched == ("token-2",)


@pytest.mark.requirement("authentication.tokens_kept")
async def test_calls_that_come_together_fetch_one_token() -> None:
    asked, go = asyncio.Event(), asyncio.Event()

    async def slowly(number: int) -> web.Response:
        asked.set()
        await go.wait()
        return issued(number)

    async with endpoint(slowly) as place:
        waiting = [asyncio.create_task(place.credentials()) for _ in range(20)]
        await asked.wait()
        go.set()
        found = await asyncio.gather(*waiting)
        assert {credentials.fetched for credentials in found} == {("token-1",)}
        assert len(place.asked) == 1


@pytest.mark.requirement("authentication.tokens_kept")
async def test_a_call_that_is_cancelled_while_it_fetches_leaves_the_others_a_token() -> None:
    asked, go = asyncio.Event(), asyncio.Event()

    async def slowly(number: int) -> web.Response:
        asked.set()
        await go.wait()
        return issued(number)

    async with endpoint(slowly) as place:
        first, second = (asyncio.create_task(place.credentials()) for _ in range(2))
        await asked.wait()
        first.cancel()
        go.set()
        assert (await second).fetched == ("token-2",)


@pytest.mark.requirement("authentication.tokens_kept")
async def test_other_scopes_another_client_and_another_endpoint_have_tokens_of_their_own() -> None:
    async with endpoint() as place:
        for auth in (place.auth(), place.auth(scopes=("x",)), place.auth(client_id="${env:SECRET}"), place.auth()):
            await place.credentials(auth)
        assert len(place.asked) == 3


@pytest.mark.requirement("authentication.tokens_kept")
async def test_the_tokens_that_are_kept_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "_MAX_KEPT", 2)
    async with endpoint() as place:
        for scope in ("a", "b", "c", "c", "a"):
            await place.credentials(place.auth(scopes=(scope,)))
        assert [fields["scope"] for *_, fields in place.asked] == ["a", "b", "c", "a"]


@pytest.mark.requirement("authentication.tokens_kept")
async def test_a_refused_token_is_forgotten_and_no_other() -> None:
    async with endpoint() as place:
        first = await place.credentials()
        other = await place.credentials(place.auth(scopes=("x",)))
        assert place.holder.tokens.forget(first.fetched) is True
        assert (await place.credentials()).fetched == ("token-3",)
        assert (await place.credentials(place.auth(scopes=("x",)))) == other
        assert place.holder.tokens.forget(Credentials().fetched) is False


@pytest.mark.requirement("authentication.tokens_refused", "authentication.tokens_secret")
@pytest.mark.parametrize(
    ("answer", "code", "reason", "message"),
    [
        (
            web.json_response({"error": "invalid_client", "error_description": "who?"}, status=401),
            ErrorCode.AUTH_REQUIRED,
            Reason.REQUEST_REFUSED,
            "answered with status 401 (invalid_client: who?); check the client",
        ),
        (web.Response(status=400), ErrorCode.AUTH_REQUIRED, Reason.REQUEST_REFUSED, "answered with status 400;"),
        (web.Response(status=429), ErrorCode.RATE_LIMIT, Reason.RATE_LIMITED, "status 429"),
        (web.Response(status=503), ErrorCode.PROVIDER_ERROR, Reason.TOOL_FAILED, "status 503"),
        (
            web.Response(status=302, headers={"Location": "/other"}),
            ErrorCode.AUTH_REQUIRED,
            Reason.REQUEST_REFUSED,
            "status 302",
        ),
        (web.json_response({}), ErrorCode.PROVIDER_ERROR, Reason.BAD_RESPONSE, "without an access token"),
        (web.json_response({"access_token": ""}), ErrorCode.PROVIDER_ERROR, Reason.BAD_RESPONSE, "without an access"),
        (web.json_response([]), ErrorCode.PROVIDER_ERROR, Reason.BAD_RESPONSE, "did not answer with a JSON object"),
        (web.Response(text="<p>"), ErrorCode.PROVIDER_ERROR, Reason.BAD_RESPONSE, "did not answer with a JSON object"),
        (issued(1, token_type="mac"), ErrorCode.PROVIDER_ERROR, Reason.BAD_RESPONSE, "of type bearer"),
    ],
)
async def test_an_endpoint_that_gives_no_token_fails_the_call(
    answer: web.Response, code: ErrorCode, reason: Reason, message: str
) -> None:
    async with endpoint(lambda _: answer) as place:
        failed = await place.failure()
        assert (failed.error.code, failed.error.reason) == (code, reason)
        assert message in failed.error.message
        assert "s3cret/long+enough" in failed.secrets
        assert len(place.asked) == 1


@pytest.mark.requirement("authentication.tokens_refused")
async def test_a_failure_is_not_kept() -> None:
    async with endpoint(lambda number: web.Response(status=503) if number == 1 else issued(number)) as place:
        await place.failure()
        assert (await place.credentials()).fetched == ("token-2",)


@pytest.mark.requirement("authentication.tokens_refused")
async def test_a_token_endpoint_is_under_the_egress_policy() -> None:
    async with endpoint(reachable=False) as place:
        failed = await place.failure()
        assert (failed.error.code, failed.error.reason) == (ErrorCode.POLICY_DENIED, Reason.SSRF_BLOCKED)
        assert place.asked == []


@pytest.mark.requirement("authentication.tokens_refused")
async def test_an_endpoint_that_cannot_be_reached_or_is_slow_is_said_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    async with endpoint() as place:
        url = place.url
    never = asyncio.Event()

    async def silent(_: int) -> web.Response:
        await never.wait()
        return web.Response()

    async with endpoint(silent) as place:
        monkeypatch.setattr(tokens, "_TIMEOUTS", tokens.Timeouts(total_s=0.05))
        assert (await place.failure()).error.code == ErrorCode.TIMEOUT
        never.set()
        policy = EgressPolicy(allow=(url.removeprefix("http://"),))
        async with HttpSession(policy) as session:
            place.holder = make_holder(session, place.clock, DictSecrets(SECRETS))
            failed = await place.failure(place.auth(token_url=f"{url}/token"))
            assert failed.error.code == ErrorCode.NETWORK_ERROR


@pytest.mark.requirement("authentication.tokens_secret")
async def test_a_token_and_its_secrets_are_named_and_not_shown() -> None:
    async with endpoint() as place:
        found = await place.credentials()
        assert {"token-1", "s3cret/long+enough", "client:1"} <= set(found.secrets)
        assert "token-1" not in repr(found)
        grant = Grant.of(place.auth(), (), SECRETS)
        assert "s3cret" not in repr(grant) + grant.key()


def configuration(place: list[Endpoint], **changes: Any) -> Answer:
    def answer(number: int) -> web.Response:
        url = place[0].url
        if place[0].asked[-1][0].startswith("GET"):
            return web.json_response({"issuer": url, "token_endpoint": f"{url}/found"} | changes)
        return issued(number)

    return answer


@pytest.mark.requirement("authentication.discovery")
async def test_a_token_endpoint_is_discovered_once() -> None:
    found: list[Endpoint] = []
    async with endpoint(configuration(found)) as place:
        found.append(place)
        auth = place.auth(token_url=None, discovery_url=f"{place.url}/.well-known/openid-configuration")
        assert (await place.credentials(auth)).fetched == ("token-2",)
        place.clock.advance(4000)
        assert (await place.credentials(auth)).fetched == ("token-3",)
        lines = [line for line, *_ in place.asked]
        assert lines == ["GET /.well-known/openid-configuration", "POST /found", "POST /found"]
        assert "authorization" not in place.asked[0][1]


@pytest.mark.requirement("authentication.discovery")
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"issuer": "https://evil.test"}, "is the configuration of another issuer, 'https://evil.test'"),
        ({"issuer": None}, "is the configuration of another issuer"),
        ({"token_endpoint": None}, "names no token endpoint"),
        ({"token_endpoint": "file:///etc/passwd"}, "names no token endpoint"),
    ],
)
async def test_a_document_that_is_not_its_issuers_own_is_not_used(changes: Any, message: str) -> None:
    found: list[Endpoint] = []
    async with endpoint(configuration(found, **changes)) as place:
        found.append(place)
        auth = place.auth(token_url=None, discovery_url=f"{place.url}/.well-known/openid-configuration")
        failed = await place.failure(auth)
        assert failed.error.reason == Reason.BAD_RESPONSE
        assert message in failed.error.message


@pytest.mark.requirement("authentication.discovery")
async def test_a_discovery_document_that_is_not_there_is_said_to_be() -> None:
    async with endpoint(lambda _: web.Response(status=404)) as place:
        failed = await place.failure(place.auth(token_url=None, discovery_url=f"{place.url}/x"))
        assert "answered with status 404 instead of its configuration" in failed.error.message


@pytest.mark.requirement("authentication.reconnect")
async def test_a_refresh_token_of_the_operators_that_has_ended_asks_for_a_new_one() -> None:
    async with endpoint(lambda _: web.json_response({"error": "invalid_grant"}, status=400)) as place:
        failed = await place.failure(place.auth(grant="refresh_token", refresh_token="${env:REFRESH}"))
        assert (failed.error.code, failed.error.reason) == (ErrorCode.AUTH_REQUIRED, Reason.RECONNECT_REQUIRED)
        assert "so reconnect: get a new refresh token and set it" in failed.error.message

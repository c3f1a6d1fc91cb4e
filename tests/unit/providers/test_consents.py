"""Connections that people make: begun, finished, used, refreshed by one of many, revoked."""

import asyncio
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from tests.unit.providers.authority import REDIRECT, Desk, desk
from toolcrib.contracts import OWNER, ErrorCode, InvalidInput, InvalidSettings, NotFound, Principal, Reason
from toolcrib.core.executor import CallFailed
from toolcrib.infrastructure.secrets import Safe
from toolcrib.infrastructure.store import MemoryStore

ANN, BEN = Principal(id="ann"), Principal(id="ben")
AGENT = Principal(id="helper", kind="agent", acts_for="ann")


async def failure(place: Desk, who: Principal = OWNER) -> CallFailed:
    with pytest.raises(CallFailed) as caught:
        await place.credentials(who)
    return caught.value


@pytest.mark.requirement("authentication.consent")
async def test_a_person_connects_and_their_calls_carry_a_bearer_token() -> None:
    async with desk(resource="https://api.test/", parameters={"prompt": "consent", "state": "mine"}) as place:
        request = await place.begin()
        asked = dict(parse_qsl(urlsplit(request.url).query))
        assert request.url.startswith(f"{place.authority.url}/authorize?")
        assert asked | {"state": "", "code_challenge": ""} == {
            "response_type": "code",
            "client_id": "toolcrib-client",
            "redirect_uri": REDIRECT,
            "scope": "deals.read offline_access",
            "state": "",
            "code_challenge": "",
            "code_challenge_method": "S256",
            "resource": "https://api.test/",
            "prompt": "consent",
        }
        assert asked["state"] == request.state
        consent = await place.finish(place.authority.grant(request.url))
        assert (consent.provider, consent.user, consent.status) == ("crm", "owner", "connected")
        assert (consent.refreshable, consent.scopes) == (True, ("deals.read", "offline_access"))
        found = await place.credentials()
        assert found.headers == {"authorization": "Bearer access-token-1"}
        assert {"access-token-1", "client-secret-0123"} <= set(found.secrets)
        kind, fields = place.authority.asked[0]
        assert (kind, fields["resource"], fields["authorization"][:6]) == (
            "authorization_code",
            "https://api.test/",
            "Basic ",
        )


@pytest.mark.requirement("authentication.consent")
async def test_a_public_client_needs_no_secret_and_endpoints_may_be_given() -> None:
    async with desk() as place:
        url = place.authority.url
        place.define(
            client_secret=None,
            discovery_url=None,
            authorization_url=f"{url}/authorize?tenant=a&state=x",
            token_url=f"{url}/token",
        )
        await place.connect()
        _, fields = place.authority.asked[0]
        assert (fields["client_id"], fields["authorization"], "client_secret" in fields) == (
            "toolcrib-client",
            "",
            False,
        )
        sent = parse_qsl(urlsplit((await place.begin()).url).query)
        assert [value for name, value in sent if name == "tenant"] == ["a"]
        assert len([value for name, value in sent if name == "state"]) == 1


@pytest.mark.requirement("authentication.consent_state")
async def test_a_state_is_used_once_belongs_to_who_began_and_expires() -> None:
    async with desk() as place:
        request = await place.begin(ANN)
        back = place.authority.grant(request.url)
        for who in (BEN, Principal(id="ann", realm="other")):
            with pytest.raises(NotFound, match="this state is unknown, used, or older than 600 s"):
                await place.finish(back, who)
        await place.finish(back, ANN)
        with pytest.raises(NotFound, match="connect again"):
            await place.finish(back, ANN)
        late = place.authority.grant((await place.begin(ANN)).url)
        place.clock.advance(600)
        with pytest.raises(NotFound):
            await place.finish(late, ANN)
        with pytest.raises(NotFound):
            await place.finish(REDIRECT, ANN)
        assert len(place.authority.asked) == 1


@pytest.mark.requirement("authentication.consent_state")
async def test_of_two_who_come_with_the_same_state_one_gets_the_connection() -> None:
    async with desk() as place:
        back = place.authority.grant((await place.begin()).url)
        ends = await asyncio.gather(*(place.finish(back) for _ in range(5)), return_exceptions=True)
        assert sorted(type(end).__name__ for end in ends) == ["Consent", *["NotFound"] * 4]
        assert len(place.authority.asked) == 1


@pytest.mark.requirement("authentication.consent_state")
async def test_what_people_did_not_finish_is_forgotten_in_time() -> None:
    async with desk() as place:
        await place.begin()
        place.clock.advance(601)
        await place.begin()
        assert len(await place.safe.list("default")) == 1


@pytest.mark.requirement("authentication.consent_issuer")
@pytest.mark.parametrize("said", ["https://evil.test", ""])
async def test_an_answer_of_another_server_is_not_used(said: str) -> None:
    async with desk() as place:
        back = place.authority.grant((await place.begin()).url, iss=said)
        with pytest.raises(InvalidInput, match=r"the answer is from .* do not use it, connect again"):
            await place.finish(back)
        assert place.authority.asked == []


@pytest.mark.requirement("authentication.consent")
async def test_a_refusal_is_said_in_the_servers_words() -> None:
    async with desk() as place:
        url = (await place.begin()).url
        back = place.authority.grant(url, code="", error="access_denied", error_description="not today")
        with pytest.raises(InvalidInput, match="the authorization server refused: access_denied: not today"):
            await place.finish(back)
        with pytest.raises(InvalidInput, match="has no code"):
            await place.finish(place.authority.grant((await place.begin()).url, code=""))
        with pytest.raises(InvalidInput, match="has a parameter twice"):
            await place.finish(f"{place.authority.grant((await place.begin()).url)}&code=other")


@pytest.mark.requirement("authentication.consent_endpoints")
@pytest.mark.parametrize(
    "url",
    [
        "http://auth.test/authorize",
        "javascript:alert(1)",
        "file:///etc/passwd",
        "https://auth.test/#fragment",
        "//auth.test/a",
        "http://127.0.0.1.evil.test/",
        "http://localhost@evil.test/",
        None,
    ],
)
async def test_a_person_is_sent_to_https_only(url: Any) -> None:
    async with desk(discovery_url=None, authorization_url=url, token_url="https://auth.test/token") as place:
        with pytest.raises(InvalidInput, match=r"the authorization endpoint .* http on this machine"):
            await place.begin()


@pytest.mark.requirement("authentication.consent_endpoints")
@pytest.mark.parametrize("uri", ["http://app.test/callback", "myapp://callback", "javascript:x", ""])
async def test_a_redirect_comes_back_to_https_or_this_machine(uri: str) -> None:
    async with desk() as place:
        with pytest.raises(InvalidInput, match="the redirect URI"):
            await place.begin(redirect=uri)


@pytest.mark.requirement("authentication.consent_endpoints")
async def test_a_server_without_safe_pkce_is_refused() -> None:
    async with desk() as place:
        place.authority.document = {"code_challenge_methods_supported": ["plain"]}
        with pytest.raises(InvalidInput, match="takes no PKCE with S256"):
            await place.begin()


@pytest.mark.requirement("authentication.consent_users")
async def test_each_user_has_a_connection_of_their_own_which_their_agents_use() -> None:
    async with desk() as place:
        place.authority.rotates = False
        await place.connect(ANN)
        await place.connect(BEN)
        headers = [(await place.credentials(who)).headers["authorization"] for who in (ANN, BEN, AGENT)]
        assert headers == ["Bearer access-token-1", "Bearer access-token-2", "Bearer access-token-1"]
        for who in (OWNER, Principal(id="ann", realm="other")):
            failed = await failure(place, who)
            assert (failed.error.code, failed.error.reason) == (ErrorCode.AUTH_REQUIRED, Reason.RECONNECT_REQUIRED)
            assert "there is no connection yet; reconnect with `toolcrib provider connect crm`" in str(failed)


@pytest.mark.requirement("authentication.consent_users")
async def test_a_shared_connection_is_made_by_one_and_used_by_all_of_the_realm() -> None:
    async with desk(shared=True) as place:
        consent = await place.connect(ANN)
        assert (consent.user, consent.made_by) == (None, "ann")
        assert (await place.credentials(BEN)).fetched == ("access-token-1",)
        assert [(entry.user, entry.made_by) for entry in await place.consents.list(BEN)] == [(None, "ann")]


@pytest.mark.requirement("authentication.consent_users")
async def test_a_list_has_ones_own_and_shared_connections_and_no_tokens() -> None:
    async with desk() as place:
        await place.connect(ANN)
        listed = await place.consents.list(ANN)
        assert [(entry.provider, entry.user) for entry in listed] == [("crm", "ann")]
        assert await place.consents.list(BEN) == []
        assert "token-1" not in repr(listed)
        for row in await place.safe.list("default"):
            assert "token-1" not in row.sealed


@pytest.mark.requirement("authentication.refresh")
async def test_fifty_calls_that_find_an_expired_token_refresh_it_once() -> None:
    async with desk() as place:
        await place.connect()
        place.clock.advance(3600)
        go = asyncio.Event()
        place.authority.before = go.wait
        calls = [asyncio.create_task(place.credentials()) for _ in range(50)]
        await place.authority.reached.wait()
        go.set()
        found = await asyncio.gather(*calls)
        assert {each.fetched for each in found} == {("access-token-2",)}
        assert [kind for kind, _ in place.authority.asked] == ["authorization_code", "refresh_token"]


@pytest.mark.requirement("authentication.refresh")
async def test_of_several_processes_one_uses_a_rotating_refresh_token() -> None:
    async with desk() as place:
        await place.connect()
        places = [place, *(place.elsewhere() for _ in range(3))]
        for turn in range(2, 6):
            place.clock.advance(3600)
            found = await asyncio.gather(*(each.credentials() for each in places for _ in range(5)))
            assert {each.fetched for each in found} == {(f"access-token-{turn}",)}
        assert (len(place.authority.asked), place.authority.ended) == (5, False)


@pytest.mark.requirement("authentication.refresh")
async def test_a_process_that_died_while_it_refreshed_holds_the_others_up_for_a_minute_only() -> None:
    async with desk() as place:
        await place.connect()
        place.clock.advance(3600)
        stuck = asyncio.Event()
        place.authority.before = stuck.wait
        dying = asyncio.create_task(place.credentials())
        await place.authority.reached.wait()
        place.authority.before = None
        found = await place.elsewhere().credentials()
        assert found.fetched == ("access-token-2",)
        assert place.clock.monotonic() == pytest.approx(3660)
        stuck.set()
        assert (await dying).fetched == ("access-token-2",)


async def _ended(task: "asyncio.Task[Any]") -> BaseException | None:
    (end,) = await asyncio.gather(task, return_exceptions=True)
    return end


@pytest.mark.requirement("authentication.refresh")
async def test_what_a_call_that_gave_up_has_asked_for_is_kept() -> None:
    async with desk() as place:
        await place.connect()
        place.clock.advance(3600)
        go = asyncio.Event()
        place.authority.before = go.wait
        call = asyncio.create_task(place.credentials())
        await place.authority.reached.wait()
        call.cancel()
        assert isinstance(await _ended(call), asyncio.CancelledError)
        other = asyncio.create_task(place.credentials())
        go.set()
        assert (await other).fetched == ("access-token-2",)
        assert (len(place.authority.asked), place.authority.ended) == (2, False)


@pytest.mark.requirement("authentication.refresh")
async def test_who_closes_waits_for_a_refresh_that_is_under_way() -> None:
    async with desk() as place:
        await place.connect()
        place.clock.advance(3600)
        go = asyncio.Event()
        place.authority.before = go.wait
        call = asyncio.create_task(place.credentials())
        await place.authority.reached.wait()
        call.cancel()
        await _ended(call)
        go.set()
        await place.consents.settle()
        assert (await place.elsewhere().credentials()).fetched == ("access-token-2",)
        assert len(place.authority.asked) == 2


@pytest.mark.requirement("authentication.refresh")
async def test_a_token_that_is_refused_before_it_expires_is_refreshed() -> None:
    async with desk() as place:
        await place.connect()
        place.consents.forget((await place.credentials()).fetched)
        assert (await place.credentials()).fetched == ("access-token-2",)
        assert (await place.credentials()).fetched == ("access-token-2",)


@pytest.mark.requirement("authentication.refresh")
async def test_a_server_that_gives_no_new_refresh_token_gets_the_old_one_again() -> None:
    async with desk() as place:
        place.authority.rotates = False
        await place.connect()
        for turn in (2, 3):
            place.clock.advance(3600)
            assert (await place.credentials()).fetched == (f"access-token-{turn}",)


@pytest.mark.requirement("authentication.reconnect")
async def test_a_grant_that_has_ended_asks_for_a_reconnect_and_says_so_ever_after() -> None:
    async with desk() as place:
        await place.connect()
        place.authority.ended = True
        place.clock.advance(3600)
        for _ in range(2):
            failed = await failure(place)
            assert (failed.error.code, failed.error.reason) == (ErrorCode.AUTH_REQUIRED, Reason.RECONNECT_REQUIRED)
            assert "its grant has ended; reconnect" in failed.error.message
        assert len(place.authority.asked) == 2
        (consent,) = await place.consents.list(OWNER)
        assert (consent.status, consent.problem) == ("reconnect_required", "its grant has ended")
        place.authority.ended = False
        await place.connect()
        assert (await place.credentials()).fetched == ("access-token-2",)


@pytest.mark.requirement("authentication.reconnect")
async def test_a_server_that_is_down_ends_no_connection() -> None:
    async with desk() as place:
        await place.connect()
        place.clock.advance(3600)
        place.authority.refusal = 503
        failed = await failure(place)
        assert (failed.error.code, failed.error.reason) == (ErrorCode.PROVIDER_ERROR, Reason.TOOL_FAILED)
        assert {"refresh-token-1", "client-secret-0123"} <= set(failed.secrets)
        place.authority.refusal = None
        assert (await place.credentials()).fetched == ("access-token-2",)


@pytest.mark.requirement("authentication.reconnect")
async def test_without_a_refresh_token_an_expired_connection_has_to_be_made_again() -> None:
    async with desk() as place:
        await place.connect()
        (row,) = await place.safe.list("default")
        opened = await place.safe.take(row.place)
        assert opened is not None
        text = opened.value.replace('"refresh-token-1"', "null")
        await place.safe.put(row.place, text, after=opened.version, made_by="owner", at=place.clock.now())
        place.clock.advance(3600)
        assert "expired or was refused, and cannot be refreshed" in str(await failure(place))


@pytest.mark.requirement("authentication.consent_bound")
@pytest.mark.parametrize(
    "change",
    [
        {"base_url": "https://evil.test"},
        {"auth": {"token_url": "https://evil.test/token"}},
        {"auth": {"client_id": "another-client"}},
    ],
)
async def test_tokens_go_nowhere_that_the_person_has_not_seen(change: dict[str, Any]) -> None:
    async with desk() as place:
        await place.connect()
        back = place.authority.grant((await place.begin()).url)
        place.define(**change.get("auth", {}))
        place.provider = place.provider.model_copy(update={"base_url": change.get("base_url", "https://api.test")})
        failed = await failure(place)
        assert failed.error.reason == Reason.RECONNECT_REQUIRED
        assert "has been changed since" in failed.error.message
        with pytest.raises(InvalidInput, match="provider 'crm' has changed meanwhile"):
            await place.finish(back)
        assert len(place.authority.asked) == 1


@pytest.mark.requirement("authentication.revocation")
async def test_a_revoked_connection_is_gone_at_once_and_its_tokens_are_taken_back() -> None:
    async with desk() as place:
        await place.connect()
        told = await place.consents.revoke("crm", OWNER, shared=False, way=(place.provider, place.client, place.auth))
        assert (told.revoked, told.message) == (
            True,
            "the connection to 'crm' is forgotten here, its tokens are revoked",
        )
        assert place.authority.revoked == [{"token": "refresh-token-1", "token_type_hint": "refresh_token"}]
        assert "there is no connection" in str(await failure(place))
        with pytest.raises(NotFound, match="there is no connection to provider 'crm' of yours"):
            await place.consents.revoke("crm", OWNER, shared=False, way=None)


@pytest.mark.requirement("authentication.revocation")
async def test_a_revocation_that_did_not_reach_the_server_says_so() -> None:
    async with desk() as place:
        await place.connect()
        place.authority.refusal = 503
        told = await place.consents.revoke("crm", OWNER, shared=False, way=(place.provider, place.client, place.auth))
        assert not told.revoked
        assert "its tokens may still work: the server answered with status 503; revoke the access at" in told.message
        place.authority.refusal = None
        await place.connect()
        told = await place.consents.revoke("crm", OWNER, shared=False, way=None)
        assert "the provider was removed or its authentication has changed" in told.message
        url = place.authority.url
        place.define(discovery_url=None, authorization_url=f"{url}/authorize", token_url=f"{url}/token")
        await place.connect()
        told = await place.consents.revoke("crm", OWNER, shared=False, way=(place.provider, place.client, place.auth))
        assert "the server has no endpoint to revoke them" in told.message
        place.define(revocation_url="http://127.0.0.1:1/revoke")
        await place.connect()
        told = await place.consents.revoke("crm", OWNER, shared=False, way=(place.provider, place.client, place.auth))
        assert "egress denied" in told.message


@pytest.mark.requirement("authentication.revocation", "authentication.consent_bound")
@pytest.mark.parametrize("field", ["revocation_url", "discovery_url"])
async def test_tokens_are_not_taken_back_at_a_server_that_did_not_issue_them(field: str) -> None:
    async with desk() as place, desk() as evil:
        await place.connect()
        place.define(**{field: f"{evil.authority.url}/revoke"})
        told = await place.consents.revoke("crm", OWNER, shared=False, way=(place.provider, place.client, place.auth))
        assert not told.revoked
        assert "they are sent to no other server; revoke the access at the system itself" in told.message
        assert evil.authority.revoked == place.authority.revoked == []


@pytest.mark.requirement("authentication.revocation")
async def test_a_connection_that_is_revoked_while_it_is_refreshed_stays_revoked() -> None:
    async with desk() as place:
        await place.connect()
        place.clock.advance(3600)

        async def meanwhile() -> None:
            await place.elsewhere().consents.revoke("crm", OWNER, shared=False, way=None)

        place.authority.before = meanwhile
        assert "there is no connection" in str(await failure(place))
        assert await place.consents.list(OWNER) == []


@pytest.mark.requirement("secrets.master_keys")
async def test_without_master_keys_nobody_is_sent_anywhere() -> None:
    async with desk() as place:
        with pytest.raises(InvalidSettings, match="TOOLCRIB_MASTER_KEYS"):
            await place.elsewhere(Safe(MemoryStore().sealed, None)).begin()

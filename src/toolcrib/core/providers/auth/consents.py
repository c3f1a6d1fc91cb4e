"""Connections that people make to providers: begin, finish, use, refresh and revoke.

Tokens are stored encrypted, per provider and user, or per realm if the connection is shared. One call of one process
refreshes a token, after claiming it with a new version, and the others wait. A refresh token is never used twice.
"""

import asyncio
import contextlib
import hashlib
import secrets
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import Final, TypeAlias
from weakref import WeakValueDictionary

import msgspec

from toolcrib.contracts import (
    AuthorizationCodeAuth,
    Conflict,
    Consent,
    ConsentRequest,
    ErrorCode,
    InvalidInput,
    NotFound,
    Principal,
    ProtectedResourceAuth,
    ProviderDefinition,
    Reason,
    Revocation,
)
from toolcrib.core.executor import CallFailed, Clock, error
from toolcrib.core.providers.auth.oauth import (
    Answer,
    AuthorizationServer,
    BrowserAuth,
    Client,
    authorization_url,
    binding_of,
    code_of,
    is_protected,
    server_of,
)
from toolcrib.core.providers.auth.protected_resources import RegisteredClient, ResourceRoute, find_route
from toolcrib.core.providers.auth.tokens import Endpoints, IssuedToken, usable_s
from toolcrib.infrastructure.secrets import Safe
from toolcrib.infrastructure.store import SealedKey

WAIT_S: Final = 600.0
"""Seconds that a person has to connect."""

_LOGIN: Final = "login"
_CLIENT: Final = "oauth_client"
_SCOPE: Final = "consent"
_CLAIM_S: Final = 60.0
"""Seconds after which the refresh of a process that died may be repeated; longer than a request can take."""
_MAX_REFUSED: Final = 10_000
_LOOK_S: Final = 0.1
"""Seconds between looks at a refresh of another process."""


class PendingLogin(msgspec.Struct, frozen=True):
    """What is remembered while a person is away, sealed."""

    provider: str
    principal: str
    user: str | None
    verifier: str
    redirect_uri: str
    binding: str
    token_url: str
    issuer: str | None
    names_issuer: bool
    expires_at: datetime
    route: "ConnectedRoute | None" = None


class ConnectedRoute(msgspec.Struct, frozen=True):
    """What was found out when a person began to connect to a protected resource."""

    client: RegisteredClient
    scopes: tuple[str, ...]
    resource: str | None
    revocation_url: str | None


class SealedConnection(msgspec.Struct, frozen=True):
    """A connection, sealed."""

    token: str
    expires_at: datetime
    """From when on the token is not used."""
    refresh_token: str | None
    scopes: tuple[str, ...]
    binding: str
    token_url: str
    claimed_until: datetime | None = None
    """Until when somebody refreshes it."""
    problem: str | None = None
    """Why it has to be made again."""
    route: ConnectedRoute | None = None
    """How it was made, if it was found out."""
    wanted: tuple[str, ...] = ()
    """Scopes that calls have lacked."""


Way: TypeAlias = tuple[ProviderDefinition, Client | None, BrowserAuth]
"""A provider, who asks its authorization server, and how; the client is null if it is found out."""


class Consents:
    """The connections of all realms.

    Args:
        endpoints: The way to authorization servers.
        safe: Where they are kept.
        clock: Time.
    """

    def __init__(self, endpoints: Endpoints, safe: Safe, clock: Clock) -> None:
        self._endpoints = endpoints
        self._safe = safe
        self._clock = clock
        self._locks: WeakValueDictionary[SealedKey, asyncio.Lock] = WeakValueDictionary()
        """One caller of this process looks after a place at a time, so that the others need not poll."""
        self._refreshing: set[asyncio.Future[str]] = set()
        self._refused: set[str] = set()
        """Digests of access tokens that a provider has refused before they expired."""

    # Making one -------------------------------------------------------------------------------------------------------

    async def begin(
        self,
        provider: ProviderDefinition,
        auth: BrowserAuth,
        client: Client | None,
        principal: Principal,
        redirect_uri: str,
    ) -> ConsentRequest:
        """Where to send a person, and the state with which they come back.

        Raises:
            InvalidInput: The redirect or an endpoint is not https, nor http on this machine; or a protected resource is
                another one than the provider, or names no authorization server that may be used.
            InvalidSettings: There are no master keys.
            CallFailed: The server's document cannot be read.
        """
        if not is_protected(redirect_uri):
            msg = f"the redirect URI {redirect_uri[:200]!r} must be https, or http on this machine"
            raise InvalidInput(msg)
        route: ConnectedRoute | None = None
        binding = binding_of(provider, auth)
        if isinstance(auth, ProtectedResourceAuth):
            found = await self._find_route(provider, auth, client, principal, redirect_uri)
            auth, client, server = found.auth, found.client.as_client(), server_of(found.auth, found.metadata)
            route = ConnectedRoute(found.client, auth.scopes, auth.resource, server.revocation_url)
        else:
            server = await self._server(auth)
        state, verifier = secrets.token_urlsafe(32), secrets.token_urlsafe(48)
        now = self._clock.now()
        login = PendingLogin(
            provider=provider.name,
            principal=principal.id,
            user=None if auth.shared else principal.user,
            verifier=verifier,
            redirect_uri=redirect_uri,
            binding=binding,
            token_url=server.token_url,
            issuer=server.issuer,
            names_issuer=server.names_issuer,
            expires_at=now + timedelta(seconds=WAIT_S),
            route=route,
        )
        await self._forget_old_logins(principal.realm, now)
        await self._safe.put(_login_place(principal.realm, state), _text(login), after=0, made_by=principal.id, at=now)
        url = authorization_url(
            server, auth, client_id=_given(client).client_id, redirect_uri=redirect_uri, state=state, verifier=verifier
        )
        return ConsentRequest(
            provider=provider.name, url=url, state=state, redirect_uri=redirect_uri, expires_at=login.expires_at
        )

    async def login(self, principal: Principal, state: str) -> PendingLogin:
        """What a state stands for. It stays valid.

        Raises:
            NotFound: It is unknown, used, expired, or somebody else's.
        """
        found = await self._safe.take(_login_place(principal.realm, state))
        login = None if found is None else msgspec.json.decode(found.value, type=PendingLogin)
        if login is None or login.principal != principal.id or login.expires_at <= self._clock.now():
            msg = f"this state is unknown, used, or older than {WAIT_S:g} s; connect again"
            raise NotFound(msg)
        return login

    def ticket(self, principal: Principal, state: str) -> str:
        """What a browser keeps while the person is away, to come back in their name: with this state only."""
        return self._safe.stamp(principal.model_dump_json(), _login_place(principal.realm, state)._replace(realm=""))

    def holder_of(self, ticket: str, state: str) -> Principal | None:
        """Who has got a ticket for this state; null if it is none."""
        found = self._safe.read_stamp(ticket, _login_place("", state))
        return None if found is None else Principal.model_validate_json(found)

    async def finish(
        self,
        provider: ProviderDefinition,
        auth: BrowserAuth,
        client: Client | None,
        principal: Principal,
        answer: Answer,
    ) -> Consent:
        """Exchange the code that a person came back with, and keep the connection. The state is used up by it.

        Raises:
            NotFound: As `login`; also for the second of two who come with the same state.
            InvalidInput: The server refused, the answer is another server's, or the definition has changed since.
            CallFailed: The token endpoint did not give a token.
        """
        state = answer.get("state", "")
        login = await self.login(principal, state)
        if not await self._safe.remove(_login_place(principal.realm, state)):
            raise NotFound("this state has just been used; connect again")
        code = code_of(answer, issuer=login.issuer, names_issuer=login.names_issuer)
        if login.binding != binding_of(provider, auth):
            msg = f"provider {provider.name!r} has changed meanwhile; connect again"
            raise InvalidInput(msg)
        fields = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": login.redirect_uri,
            "code_verifier": login.verifier,
        }
        resource, scopes = _sent_to(auth, login.route)
        if resource:
            fields["resource"] = resource
        asking = client if login.route is None else login.route.client.as_client()
        issued = await self._endpoints.issue(login.token_url, *_given(asking).request(fields))
        kept = SealedConnection(
            token=issued.token,
            expires_at=self._until(issued),
            refresh_token=issued.refresh_token,
            scopes=scopes if issued.scopes is None else issued.scopes,
            binding=login.binding,
            token_url=login.token_url,
            route=login.route,
        )
        place = _place(principal.realm, provider.name, login.user)
        known = await self._safe.look(place)
        await self._put(place, kept, after=known.version if known else 0, made_by=principal.id)
        return _consent(place, kept, principal.id, self._clock.now())

    # Using one --------------------------------------------------------------------------------------------------------

    async def token(
        self, provider: ProviderDefinition, auth: BrowserAuth, client: Client | None, principal: Principal
    ) -> str:
        """The access token of a principal's connection, refreshed if it has expired.

        Raises:
            CallFailed: `AUTH_REQUIRED` with reason `reconnect_required` if there is no connection or it has ended; else
                why it could not be refreshed.
        """
        place = _place(principal.realm, provider.name, None if auth.shared else principal.user)
        lock = self._locks.setdefault(place, asyncio.Lock())
        async with lock:
            while True:
                kept, version = await self._current(place, provider.name, binding_of(provider, auth))
                now = self._clock.now()
                if now < kept.expires_at and _digest(kept.token) not in self._refused:
                    return kept.token
                if kept.refresh_token is None:
                    raise _reconnect(provider.name, "its token has expired or was refused, and cannot be refreshed")
                if kept.claimed_until is not None and now < kept.claimed_until:
                    await self._clock.sleep(_LOOK_S)
                    continue
                with contextlib.suppress(Conflict):  # somebody was quicker, or has changed it meanwhile: look again
                    asking = client if kept.route is None else kept.route.client.as_client()
                    refresh = asyncio.ensure_future(self._refresh(place, kept, version, _given(asking), principal))
                    self._refreshing.add(refresh)
                    refresh.add_done_callback(self._on_refresh_end)
                    return await asyncio.shield(refresh)  # who asked may give up; what the server gives must be kept

    async def settle(self) -> None:
        """Wait until what is being refreshed is kept; a refresh token that was used already would be lost."""
        while self._refreshing:
            await asyncio.wait(self._refreshing)

    async def note_wanted_scopes(
        self, provider: ProviderDefinition, auth: BrowserAuth, principal: Principal, scopes: tuple[str, ...]
    ) -> None:
        """Remember that a call has lacked these scopes, so that the next connection is made with them."""
        place = _place(principal.realm, provider.name, None if auth.shared else principal.user)
        found = await self._safe.take(place)
        if found is None:
            return
        kept = msgspec.json.decode(found.value, type=SealedConnection)
        if kept.claimed_until is None and not set(scopes) <= set(kept.wanted):
            noted = msgspec.structs.replace(kept, wanted=tuple(dict.fromkeys((*kept.wanted, *scopes))))
            with contextlib.suppress(Conflict):  # somebody has connected or refreshed meanwhile; the next call notes it
                await self._put(place, noted, after=found.version, made_by=principal.id)

    def forget(self, tokens: Sequence[str]) -> None:
        """These tokens were refused: the next call refreshes them, if they are of a connection."""
        if len(self._refused) > _MAX_REFUSED:
            self._refused.clear()
        self._refused.update(map(_digest, tokens))

    async def _current(self, place: SealedKey, provider: str, binding: str) -> tuple[SealedConnection, int]:
        """The connection at a place, and its version, if it can be used or refreshed."""
        found = await self._safe.take(place)
        if found is None:
            raise _reconnect(provider, "there is no connection yet")
        kept = msgspec.json.decode(found.value, type=SealedConnection)
        if kept.binding != binding:
            raise _reconnect(provider, "its address or its authorization server has been changed since")
        if kept.problem is not None:
            raise _reconnect(provider, kept.problem)
        return kept, found.version

    async def _refresh(
        self, place: SealedKey, kept: SealedConnection, version: int, client: Client, principal: Principal
    ) -> str:
        """A new token. The place is claimed first; raises `Conflict` if it has changed since it was read."""
        claim = msgspec.structs.replace(kept, claimed_until=self._clock.now() + timedelta(seconds=_CLAIM_S))
        version = await self._put(place, claim, after=version, made_by=principal.id)
        fields = {"grant_type": "refresh_token", "refresh_token": str(kept.refresh_token)}
        if kept.route is not None and kept.route.resource:
            fields["resource"] = kept.route.resource
        try:
            issued = await self._endpoints.issue(kept.token_url, *client.request(fields))
        except CallFailed as failure:
            failure.secrets += (kept.token, str(kept.refresh_token), *client.secrets)
            problem = "its grant has ended" if failure.metadata.get("oauth_error") == "invalid_grant" else None
            released = msgspec.structs.replace(kept, problem=problem, claimed_until=None)
            await self._put(place, released, after=version, made_by=principal.id)
            if problem is not None:
                raise _reconnect(place.name, problem) from failure
            raise
        renewed = msgspec.structs.replace(
            kept,
            token=issued.token,
            expires_at=self._until(issued),
            refresh_token=issued.refresh_token or kept.refresh_token,
            scopes=kept.scopes if issued.scopes is None else issued.scopes,
            claimed_until=None,
        )
        await self._put(place, renewed, after=version, made_by=principal.id)
        return issued.token

    def _on_refresh_end(self, refresh: "asyncio.Future[str]") -> None:
        """Note that a refresh is over; if nobody waits for it any more, its failure is the next caller's to find."""
        self._refreshing.discard(refresh)
        if not refresh.cancelled():
            refresh.exception()

    # Looking and giving up --------------------------------------------------------------------------------------------

    async def list(self, principal: Principal) -> Sequence[Consent]:
        """The connections that a principal's calls use: their user's and the shared ones, by provider."""
        scopes = (_SCOPE, f"{_SCOPE}:{principal.user}")
        found: list[Consent] = []
        for row in await self._safe.list(principal.realm):
            opened = await self._safe.take(row.place) if row.place.scope in scopes else None
            if opened is not None:
                kept = msgspec.json.decode(opened.value, type=SealedConnection)
                found.append(_consent(row.place, kept, row.made_by, row.created_at))
        return sorted(found, key=lambda consent: (consent.provider, consent.user or ""))

    async def revoke(self, name: str, principal: Principal, *, shared: bool, way: Way | None) -> Revocation:
        """Forget a connection, and ask the server to take its tokens back (RFC 7009).

        Args:
            name: Of the provider.
            principal: Whose connection.
            shared: Whether the realm's is meant.
            way: Who asks, and how; null if the provider says that no more.

        Raises:
            NotFound: There is no such connection.
        """
        user = None if shared else principal.user
        place = _place(principal.realm, name, user)
        found = await self._safe.take(place)
        if found is None or not await self._safe.remove(place):
            msg = f"there is no connection to provider {name!r}{' of the realm' if shared else ' of yours'}"
            raise NotFound(msg)
        kept = msgspec.json.decode(found.value, type=SealedConnection)
        if way is None:
            problem = "the provider was removed or its authentication has changed"
        else:
            problem = await self._take_back(kept, *way)
        outcome = "its tokens are revoked" if problem is None else f"but its tokens may still work: {problem}"
        advice = "" if problem is None else "; revoke the access at the system itself"
        message = f"the connection to {name!r} is forgotten here, {outcome}{advice}"
        return Revocation(provider=name, user=user, revoked=problem is None, message=message)

    async def _take_back(
        self, kept: SealedConnection, provider: ProviderDefinition, client: Client | None, auth: BrowserAuth
    ) -> str | None:
        """Revoke at the server that has issued them; returns why that did not work."""
        if kept.binding != binding_of(provider, auth):
            return "the definition has been changed since, and they are sent to no other server"
        try:
            if kept.route is not None:
                url, client = kept.route.revocation_url, kept.route.client.as_client()
            else:
                url = None if isinstance(auth, ProtectedResourceAuth) else (await self._server(auth)).revocation_url
            if url is None:
                return "the server has no endpoint to revoke them"
            kind = "access_token" if kept.refresh_token is None else "refresh_token"
            fields = {"token": kept.refresh_token or kept.token, "token_type_hint": kind}
            headers, body = _given(client).request(fields)
            answer = await self._endpoints.ask("POST", url, headers, body)
        except (CallFailed, InvalidInput) as failure:
            return str(failure)
        return None if answer.status == 200 else f"the server answered with status {answer.status}"

    # ------------------------------------------------------------------------------------------------------------------

    async def _find_route(
        self,
        provider: ProviderDefinition,
        auth: ProtectedResourceAuth,
        client: Client | None,
        principal: Principal,
        redirect_uri: str,
    ) -> ResourceRoute:
        """How a person connects to a protected resource now, with the scopes of the connection that there is."""
        found = await self._safe.take(_place(principal.realm, provider.name, None if auth.shared else principal.user))
        kept = None if found is None else msgspec.json.decode(found.value, type=SealedConnection)
        granted = () if kept is None or kept.binding != binding_of(provider, auth) else (*kept.scopes, *kept.wanted)

        async def registered(key: str, register: Callable[[], Awaitable[RegisteredClient]]) -> RegisteredClient:
            place = SealedKey(principal.realm, _CLIENT, _digest(f"{provider.name} {key}"))
            known = await self._safe.take(place)
            if known is not None:
                return msgspec.json.decode(known.value, type=RegisteredClient)
            made = await register()
            with contextlib.suppress(Conflict):  # another process has registered one meanwhile; both are good
                await self._safe.put(place, _text(made), after=0, made_by=principal.id, at=self._clock.now())
            return made

        return await find_route(
            self._endpoints, provider, auth, redirect_uri, given=client, granted=granted, registered=registered
        )

    async def _server(self, auth: AuthorizationCodeAuth) -> AuthorizationServer:
        return server_of(auth, {} if auth.discovery_url is None else await self._endpoints.metadata(auth.discovery_url))

    async def _forget_old_logins(self, realm: str, now: datetime) -> None:
        for row in await self._safe.list(realm):
            if row.place.scope == _LOGIN and row.created_at + timedelta(seconds=WAIT_S) < now:
                await self._safe.remove(row.place)

    async def _put(self, place: SealedKey, kept: SealedConnection, *, after: int, made_by: str) -> int:
        return await self._safe.put(place, _text(kept), after=after, made_by=made_by, at=self._clock.now())

    def _until(self, issued: IssuedToken) -> datetime:
        return self._clock.now() + timedelta(seconds=usable_s(issued.life_s))


def _text(value: PendingLogin | SealedConnection | RegisteredClient) -> str:
    return msgspec.json.encode(value).decode()


def _given(client: Client | None) -> Client:
    """A client that a definition of this kind always has."""
    assert client is not None  # noqa: S101 - only that of a protected resource is found out, and kept with its route
    return client


def _sent_to(auth: BrowserAuth, route: ConnectedRoute | None) -> tuple[str | None, tuple[str, ...]]:
    """The resource that a token is for, and the scopes that were asked for."""
    if route is not None:
        return route.resource, route.scopes
    return getattr(auth, "resource", None), auth.scopes


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _login_place(realm: str, state: str) -> SealedKey:
    return SealedKey(realm, _LOGIN, _digest(state))


def _place(realm: str, provider: str, user: str | None) -> SealedKey:
    return SealedKey(realm, _SCOPE if user is None else f"{_SCOPE}:{user}", provider)


def _reconnect(provider: str, why: str) -> CallFailed:
    message = f"provider {provider!r} is not connected: {why}; reconnect with `toolcrib provider connect {provider}`"
    return CallFailed(error(ErrorCode.AUTH_REQUIRED, Reason.RECONNECT_REQUIRED, message, provider=provider))


def _consent(place: SealedKey, kept: SealedConnection, made_by: str, at: datetime) -> Consent:
    _, _, user = place.scope.partition(":")
    return Consent(
        provider=place.name,
        user=user or None,
        status="connected" if kept.problem is None else "reconnect_required",
        problem=kept.problem,
        scopes=kept.scopes,
        expires_at=kept.expires_at,
        refreshable=kept.refresh_token is not None,
        made_by=made_by,
        updated_at=at,
    )

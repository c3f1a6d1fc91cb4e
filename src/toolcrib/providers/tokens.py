"""Access tokens of OAuth 2 (RFC 6749): fetched through the guarded session, kept in memory, never stored or shown.

Each token is fetched once, however many calls wait for it, and used until shortly before it expires. Where the endpoint
is found by OpenID Connect Discovery 1.0, the document has to be its issuer's own, and may not lead to a less protected
scheme. Requests to a token endpoint are no part of a call's budget of requests: another call may have caused them.
"""

import asyncio
import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Final, cast
from urllib.parse import quote_plus, urlencode

import orjson

from toolcrib.contracts import EgressDenied, ErrorCode, JsonObject, OAuth2Auth, Reason, digest
from toolcrib.executor import CallFailed, Clock, error
from toolcrib.net import HttpResponse, HttpSession, NetworkError, TimedOut, Timeouts
from toolcrib.providers.origins import origin_of

LEEWAY_S: Final = 30.0
"""Seconds before its expiry from which on a token is not used any more; a tenth of a shorter life."""
LIFE_S: Final = 300.0
"""Seconds that a token is used whose endpoint does not say how long it lives."""

_MAX_BYTES: Final = 2**18
_MAX_KEPT: Final = 1_000
_MAX_WORDS: Final = 300
_WELL_KNOWN: Final = "/.well-known/openid-configuration"
_TIMEOUTS: Final = Timeouts(connect_s=10.0, read_idle_s=30.0, total_s=30.0)


@dataclass(frozen=True, slots=True)
class Grant:
    """What a token is asked for with: the definition, and the secrets behind its references."""

    auth: OAuth2Auth
    scopes: tuple[str, ...]
    client_id: str = field(repr=False)
    client_secret: str | None = field(repr=False)
    refresh_token: str | None = field(repr=False)

    @classmethod
    def of(cls, auth: OAuth2Auth, scopes: tuple[str, ...], values: Mapping[str, str]) -> "Grant":
        """The grant of a definition, with the secrets by reference."""
        return cls(
            auth,
            scopes,
            values[auth.client_id],
            None if auth.client_secret is None else values[auth.client_secret],
            None if auth.refresh_token is None else values[auth.refresh_token],
        )

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not be shown."""
        values = (self.client_id, self.client_secret, self.refresh_token, _basic(self))
        return tuple(value for value in values if value)

    def key(self) -> str:
        """Equal for grants that get the same token; holds no secret."""
        described = [self.auth.model_dump(mode="json"), self.scopes]
        return digest(orjson.dumps([described, self.client_id, self.client_secret, self.refresh_token]))


@dataclass(slots=True)
class _Kept:
    """What is known of one grant."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    token: str | None = field(default=None, repr=False)
    until: float = 0.0
    refresh_token: str | None = field(default=None, repr=False)
    """The latest one that the endpoint gave."""


class Tokens:
    """Tokens of this process.

    Args:
        session: The way out.
        clock: Time.
    """

    def __init__(self, session: HttpSession, clock: Clock) -> None:
        self._session = session
        self._clock = clock
        self._kept: dict[str, _Kept] = {}
        self._endpoints: dict[str, str] = {}
        """Token endpoint by discovery URL."""

    async def token(self, grant: Grant) -> str:
        """A token that is valid now; fetched if there is none.

        Raises:
            CallFailed: `AUTH_REQUIRED` if the endpoint refuses; `POLICY_DENIED`, `NETWORK_ERROR`, `TIMEOUT`,
                `RATE_LIMIT` or `PROVIDER_ERROR` if it cannot be asked or does not answer as it should.
        """
        kept = self._kept.get(key := grant.key())
        if kept is None:
            if len(self._kept) >= _MAX_KEPT:
                del self._kept[next(iter(self._kept))]  # the oldest; all of them would be a rush at the endpoints
            kept = self._kept[key] = _Kept()
        async with kept.lock:
            if kept.token is None or self._clock.monotonic() >= kept.until:
                try:
                    await self._fetch(grant, kept)
                except CallFailed as failure:
                    failure.secrets = grant.secrets
                    raise
            return cast("str", kept.token)

    def forget(self, tokens: tuple[str, ...]) -> bool:
        """Do not use these tokens again; returns whether there is anything to ask for anew."""
        for kept in self._kept.values():
            if kept.token in tokens:
                kept.token = None
        return bool(tokens)

    async def _fetch(self, grant: Grant, kept: _Kept) -> None:
        endpoint = grant.auth.token_url or await self._discover(str(grant.auth.discovery_url))
        headers, body = _request(grant, kept.refresh_token or grant.refresh_token)
        answer = await self._ask("POST", endpoint, headers, body)
        if answer.status != 200:
            raise _refused(endpoint, answer)
        found = _object(endpoint, answer)
        token = found.get("access_token")
        if not isinstance(token, str) or not token or str(found.get("token_type", "bearer")).lower() != "bearer":
            raise _unusable(endpoint, "answered without an access token of type bearer")
        life = _seconds(found.get("expires_in"))
        kept.token, kept.until = token, self._clock.monotonic() + life - min(LEEWAY_S, life / 10)
        if isinstance(found.get("refresh_token"), str):
            kept.refresh_token = found["refresh_token"]

    async def _discover(self, url: str) -> str:
        """The token endpoint of an OpenID provider."""
        known = self._endpoints.get(url)
        if known is not None:
            return known
        answer = await self._ask("GET", url, {"accept": "application/json"}, None)
        if answer.status != 200:
            raise _unusable(url, f"answered with status {answer.status} instead of its configuration")
        found = _object(url, answer)
        endpoint, issuer = found.get("token_endpoint"), str(found.get("issuer")).rstrip("/")
        if issuer + _WELL_KNOWN != url:
            raise _unusable(url, f"is the configuration of another issuer, {issuer[:_MAX_WORDS]!r}")
        origin = origin_of(endpoint) if isinstance(endpoint, str) else None
        if origin is None or (url.lower().startswith("https:") and origin[0] != "https"):
            raise _unusable(url, "names no token endpoint that is as well protected as itself")
        self._endpoints[url] = str(endpoint)
        return str(endpoint)

    async def _ask(self, method: str, url: str, headers: dict[str, str], body: bytes | None) -> HttpResponse:
        try:
            return await self._session.request(
                method,
                url,
                headers=headers,
                body=body,
                timeout=_TIMEOUTS,
                max_bytes=_MAX_BYTES,
                follow_redirects=method == "GET",
            )
        except EgressDenied as problem:
            raise CallFailed(error(ErrorCode.POLICY_DENIED, Reason.SSRF_BLOCKED, f"no token: {problem}")) from None
        except TimedOut as problem:
            raise CallFailed(error(ErrorCode.TIMEOUT, Reason.TOOL_TIMEOUT, f"no token: {problem}")) from None
        except NetworkError as problem:
            raise CallFailed(error(ErrorCode.NETWORK_ERROR, Reason.TOOL_FAILED, f"no token: {problem}")) from None


def _request(grant: Grant, refresh_token: str | None) -> tuple[dict[str, str], bytes]:
    auth = grant.auth
    fields = {"grant_type": auth.grant}
    if auth.grant == "refresh_token":
        fields["refresh_token"] = refresh_token or ""
    if grant.scopes:
        fields["scope"] = " ".join(grant.scopes)
    if auth.audience is not None:
        fields["audience"] = auth.audience
    headers = {"accept": "application/json", "content-type": "application/x-www-form-urlencoded"}
    pair = _basic(grant)
    if pair is not None:
        headers["authorization"] = f"Basic {pair}"
    else:
        fields["client_id"] = grant.client_id
        if grant.client_secret is not None:
            fields["client_secret"] = grant.client_secret
    return headers, urlencode(fields).encode()


def _basic(grant: Grant) -> str | None:
    """Client id and secret as RFC 6749, section 2.3.1, wants them: each encoded as in a form, then as a pair."""
    if grant.auth.client_auth != "basic" or grant.client_secret is None:
        return None
    pair = f"{quote_plus(grant.client_id)}:{quote_plus(grant.client_secret)}"
    return base64.b64encode(pair.encode()).decode()


def _seconds(value: object) -> float:
    """The life of a token; some servers write the number as text."""
    try:
        seconds = float(cast("str", value))
    except (TypeError, ValueError):
        return LIFE_S
    return max(seconds, 0.0) if isfinite(seconds) else LIFE_S


def _object(url: str, answer: HttpResponse) -> JsonObject:
    try:
        found = orjson.loads(answer.body)
    except orjson.JSONDecodeError:
        found = None
    if not isinstance(found, dict):
        raise _unusable(url, "did not answer with a JSON object")
    return cast("JsonObject", found)


def _unusable(url: str, problem: str) -> CallFailed:
    return CallFailed(error(ErrorCode.PROVIDER_ERROR, Reason.BAD_RESPONSE, f"no token: {url} {problem}"))


def _refused(url: str, answer: HttpResponse) -> CallFailed:
    """An error answer (RFC 6749, section 5.2) in our codes."""
    if answer.status == 429:
        code, reason = ErrorCode.RATE_LIMIT, Reason.RATE_LIMITED
    elif answer.status >= 500:
        code, reason = ErrorCode.PROVIDER_ERROR, Reason.TOOL_FAILED
    else:
        code, reason = ErrorCode.AUTH_REQUIRED, Reason.REQUEST_REFUSED
    try:
        found = _object(url, answer)
    except CallFailed:
        found = JsonObject()
    said = ": ".join(str(found[name])[:_MAX_WORDS] for name in ("error", "error_description") if found.get(name))
    message = f"no token: {url} answered with status {answer.status}{f' ({said})' if said else ''}; check the client"
    return CallFailed(error(code, reason, message), http_status=answer.status)

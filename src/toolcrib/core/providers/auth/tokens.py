"""Requests to token endpoints, and the token cache of this process.

Requests obey the egress policy and do not count towards a call's request budget, because several calls share a token.
A token is fetched once for all waiting calls, kept in memory until shortly before it expires, and never stored or
shown. A `TokenSource` is an OAuth 2 grant or a login request.
"""

import asyncio
import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Final, Protocol, cast
from urllib.parse import quote_plus, urlsplit

import orjson

from toolcrib.contracts import EgressDenied, ErrorCode, InvalidInput, JsonObject, Reason
from toolcrib.core.executor import CallFailed, Clock, error
from toolcrib.infrastructure.net import HttpResponse, HttpSession, NetworkError, TimedOut, Timeouts, TlsIdentity
from toolcrib.infrastructure.net.origins import origin_of

LIFE_S: Final = 300.0
"""Seconds that a token is used whose endpoint does not say how long it lives."""

FORM: Final = {"accept": "application/json", "content-type": "application/x-www-form-urlencoded"}
"""Headers of a request to a token endpoint."""

_MAX_BYTES: Final = 2**18
_MAX_WORDS: Final = 300
_TIMEOUTS: Final = Timeouts(connect_s=10.0, read_idle_s=30.0, total_s=30.0)


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """What an endpoint gave."""

    token: str = field(repr=False)
    life_s: float = LIFE_S
    refresh_token: str | None = field(default=None, repr=False)
    scopes: tuple[str, ...] | None = None
    """Null for those that were asked for."""


class Endpoints:
    """The way to authorization servers.

    Args:
        session: The way out.
    """

    def __init__(self, session: HttpSession) -> None:
        self._session = session
        self._metadata: dict[str, JsonObject] = {}
        """Documents by discovery URL."""

    async def ask(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None = None,
        *,
        tls: TlsIdentity | None = None,
    ) -> HttpResponse:
        """One request; any status is an answer.

        Raises:
            CallFailed: `POLICY_DENIED`, `TIMEOUT` or `NETWORK_ERROR`: there was no answer.
        """
        try:
            return await self._session.request(
                method,
                url,
                headers=headers,
                body=body,
                timeout=_TIMEOUTS,
                max_bytes=_MAX_BYTES,
                follow_redirects=method == "GET",
                tls=tls,
            )
        except EgressDenied as problem:
            raise CallFailed(error(ErrorCode.POLICY_DENIED, Reason.SSRF_BLOCKED, f"no token: {problem}")) from None
        except TimedOut as problem:
            raise CallFailed(error(ErrorCode.TIMEOUT, Reason.TOOL_TIMEOUT, f"no token: {problem}")) from None
        except NetworkError as problem:
            raise CallFailed(error(ErrorCode.NETWORK_ERROR, Reason.TOOL_FAILED, f"no token: {problem}")) from None
        except InvalidInput as problem:
            raise CallFailed(error(ErrorCode.AUTH_REQUIRED, Reason.MISSING_SECRET, f"no token: {problem}")) from None

    async def issue(self, url: str, headers: Mapping[str, str], body: bytes) -> IssuedToken:
        """A token from a token endpoint (RFC 6749, section 5).

        Raises:
            CallFailed: As `ask`; `AUTH_REQUIRED`, `RATE_LIMIT` or `PROVIDER_ERROR` if it refuses or makes no sense.
        """
        answer = await self.ask("POST", url, headers, body)
        if answer.status != 200:
            raise token_failure(url, answer)
        found = json_object(url, answer)
        token = found.get("access_token")
        if not isinstance(token, str) or not token or str(found.get("token_type", "bearer")).lower() != "bearer":
            raise unusable(url, "answered without an access token of type bearer")
        refresh_token, scopes = found.get("refresh_token"), found.get("scope")
        return IssuedToken(
            token,
            seconds(found.get("expires_in")),
            refresh_token if isinstance(refresh_token, str) else None,
            tuple(scopes.split()) if isinstance(scopes, str) else None,
        )

    async def metadata(self, url: str) -> JsonObject:
        """The document of an authorization server about itself, which has to be its issuer's own. Read once.

        Raises:
            CallFailed: It is not there, another issuer's, or names an endpoint that is less protected than itself.
        """
        known = self._metadata.get(url)
        if known is not None:
            return known
        answer = await self.ask("GET", url, {"accept": "application/json"})
        if answer.status != 200:
            raise unusable(url, f"answered with status {answer.status} instead of its configuration")
        found = checked_metadata(url, json_object(url, answer))
        self._metadata[url] = found
        return found

    async def token_url(self, given: str | None, discovery_url: str | None) -> str:
        """The token endpoint: the given one, or what is discovered. Raises as `metadata`."""
        if given is not None:
            return given
        found = (await self.metadata(str(discovery_url))).get("token_endpoint")
        if not isinstance(found, str):
            raise unusable(str(discovery_url), "names no token endpoint")
        return found


def checked_metadata(url: str, found: JsonObject) -> JsonObject:
    """The document of an authorization server that was read at an address.

    Raises:
        CallFailed: It is another issuer's, or names an endpoint that is less protected than itself.
    """
    issuer = str(found.get("issuer"))
    if url not in documents_of(issuer):
        raise unusable(url, f"is the configuration of another issuer, {issuer[:_MAX_WORDS]!r}")
    for name, endpoint in found.items():
        if name.endswith("_endpoint") and endpoint is not None:
            _require_protected(url, name, endpoint)
    return found


def basic(user: str, password: str) -> str:
    """Client id and secret as RFC 6749, section 2.3.1, wants them: each encoded as in a form, then as a pair."""
    return base64.b64encode(f"{quote_plus(user)}:{quote_plus(password)}".encode()).decode()


def seconds(value: object, otherwise: float = LIFE_S) -> float:
    """The life of a token; some servers write the number as text."""
    try:
        found = float(cast("str", value))
    except (TypeError, ValueError):
        return otherwise
    return max(found, 0.0) if isfinite(found) else otherwise


def json_object(url: str, answer: HttpResponse) -> JsonObject:
    """The object that an endpoint answered with.

    Raises:
        CallFailed: It is something else.
    """
    try:
        found = orjson.loads(answer.body)
    except orjson.JSONDecodeError:
        found = None
    if not isinstance(found, dict):
        raise unusable(url, "did not answer with a JSON object")
    return cast("JsonObject", found)


def unusable(url: str, problem: str) -> CallFailed:
    """An answer that cannot be used."""
    return CallFailed(
        error(ErrorCode.PROVIDER_ERROR, Reason.BAD_RESPONSE, f"no token: {_without_query(url)} {problem}")
    )


def token_failure(url: str, answer: HttpResponse) -> CallFailed:
    """An error answer (RFC 6749, section 5.2) in our codes."""
    if answer.status == 429:
        code, reason = ErrorCode.RATE_LIMIT, Reason.RATE_LIMITED
    elif answer.status >= 500:
        code, reason = ErrorCode.PROVIDER_ERROR, Reason.TOOL_FAILED
    else:
        code, reason = ErrorCode.AUTH_REQUIRED, Reason.REQUEST_REFUSED
    try:
        found = json_object(url, answer)
    except CallFailed:
        found = JsonObject()
    message = ": ".join(str(found[name])[:_MAX_WORDS] for name in ("error", "error_description") if found.get(name))
    what = f"{_without_query(url)} answered with status {answer.status}{f' ({message})' if message else ''}"
    failure = error(code, reason, f"no token: {what}; check the client and its credentials")
    return CallFailed(failure, http_status=answer.status, metadata={"oauth_error": found.get("error")})


def _without_query(url: str) -> str:
    """A URL without its query, which may hold a key."""
    return url.partition("?")[0]


def documents_of(issuer: str) -> tuple[str, ...]:
    """Where an issuer's document may be: OpenID Connect Discovery 1.0, section 4, and RFC 8414, section 3."""
    parts = urlsplit(issuer)
    origin, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    oauth, openid = "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"
    return tuple(dict.fromkeys((f"{origin}{oauth}{path}", f"{origin}{openid}{path}", f"{origin}{path}{openid}")))


def _require_protected(url: str, name: str, endpoint: object) -> None:
    origin = origin_of(endpoint) if isinstance(endpoint, str) else None
    if origin is None or (url.lower().startswith("https:") and origin[0] != "https"):
        raise unusable(url, f"names no {name.replace('_', ' ')} that is as well protected as itself")


LEEWAY_S: Final = 30.0
"""Seconds before its expiry from which on a token is not used any more; a tenth of a shorter life."""

_MAX_KEPT: Final = 1_000


def usable_s(life_s: float) -> float:
    """Seconds that a token is used which lives so long."""
    return life_s - min(LEEWAY_S, life_s / 10)


class TokenSource(Protocol):
    """What a token is asked for with."""

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not be shown."""
        ...

    def key(self) -> str:
        """Equal for sources that get the same token; holds no secret."""
        ...

    async def fetch(self, endpoints: Endpoints, refresh_token: str | None) -> IssuedToken:
        """A new token.

        Args:
            endpoints: The way out.
            refresh_token: The latest one that this source was given; null if it was given none.

        Raises:
            CallFailed: There is none.
        """
        ...


@dataclass(slots=True)
class _Kept:
    """What is known of one source."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    token: str | None = field(default=None, repr=False)
    until: float = 0.0
    refresh_token: str | None = field(default=None, repr=False)
    """The latest one that the endpoint gave."""


class Tokens:
    """Tokens by source.

    Args:
        session: The way out.
        clock: Time.
    """

    def __init__(self, session: HttpSession, clock: Clock) -> None:
        self.endpoints: Final = Endpoints(session)
        self._clock = clock
        self._kept: dict[str, _Kept] = {}

    async def token(self, source: TokenSource) -> str:
        """A token that is valid now; fetched if there is none.

        Raises:
            CallFailed: `AUTH_REQUIRED` if the endpoint refuses; `POLICY_DENIED`, `NETWORK_ERROR`, `TIMEOUT`,
                `RATE_LIMIT` or `PROVIDER_ERROR` if it cannot be asked or does not answer as it should.
        """
        kept = self._kept.get(key := source.key())
        if kept is None:
            if len(self._kept) >= _MAX_KEPT:
                del self._kept[next(iter(self._kept))]  # the oldest; all of them would be a rush at the endpoints
            kept = self._kept[key] = _Kept()
        async with kept.lock:
            if kept.token is None or self._clock.monotonic() >= kept.until:
                try:
                    issued = await source.fetch(self.endpoints, kept.refresh_token)
                except CallFailed as failure:
                    failure.secrets += source.secrets
                    raise
                kept.token, kept.until = issued.token, self._clock.monotonic() + usable_s(issued.life_s)
                kept.refresh_token = issued.refresh_token or kept.refresh_token
            return kept.token

    def forget(self, tokens: tuple[str, ...]) -> bool:
        """Do not use these tokens again; returns whether there is anything to ask for anew."""
        for kept in self._kept.values():
            if kept.token in tokens:
                kept.token = None
        return bool(tokens)

"""Access tokens of an authorization server: this server as a protected resource for MCP clients (RFC 9728, RFC 9068).

A token is a JWT that the issuer of the settings has signed for this server. Its scopes become grants by the settings,
and nothing else of it does. The signing keys come from the issuer's own document, through the egress policy; a token
cannot name keys of its own, and only algorithms with a public key are known.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import urlsplit

from toolcrib.contracts import JsonObject, Principal, Unauthenticated, Unavailable
from toolcrib.contracts.base.errors import missing_extra
from toolcrib.core.executor import CallFailed, Clock
from toolcrib.core.providers.auth.protected_resources import scopes_of, server_metadata
from toolcrib.core.providers.auth.tokens import Endpoints, json_object, unusable
from toolcrib.crib.settings import AuthorizationSettings
from toolcrib.infrastructure.net import HttpSession

if TYPE_CHECKING:
    from jwt import PyJWK

WELL_KNOWN: Final = "/.well-known/oauth-protected-resource"
"""Where clients find who issues tokens for this server."""

_LONGEST: Final = 16_384
_MOST_KEYS: Final = 100
_KEYS_S: Final = 3_600.0
"""Seconds after which keys are fetched again."""
_AGAIN_S: Final = 30.0
"""Seconds between fetches for a key that is not known: a new one, or one that somebody has made up."""
_PREFIX: Final = "oauth:"
"""Of the ids of principals, so that no subject is taken for a principal of this server."""


@dataclass(slots=True)
class _Keys:
    """The signing keys of the issuer."""

    by_id: Mapping[str, "PyJWK"]
    fetched_at: float


class AccessTokens:
    """Recognises the access tokens of one issuer.

    Args:
        settings: The issuer, this server as its tokens name it, and what scopes grant.
        session: The way out.
        clock: Time, for expiry.
    """

    def __init__(self, settings: AuthorizationSettings, session: HttpSession, clock: Clock) -> None:
        self._settings = settings
        self._endpoints = Endpoints(session)
        self._clock = clock
        self._keys: _Keys | None = None
        self._fetching = asyncio.Lock()

    async def authenticate(self, text: str) -> Principal:
        """The principal of a token.

        Raises:
            Unauthenticated: It is not a valid token of the issuer for this server; says why, and nothing of it.
            Unavailable: The issuer's keys cannot be had.
        """
        try:
            import jwt  # noqa: PLC0415 - needed only where an issuer is set
        except ImportError as problem:
            raise Unavailable(missing_extra("access tokens", problem.name, "mcp")) from problem
        if len(text) > _LONGEST:
            msg = f"the access token has {len(text)} characters; {_LONGEST} is the limit"
            raise Unauthenticated(msg)
        try:
            header = jwt.get_unverified_header(text)
            algorithm, key_id = header.get("alg"), header.get("kid")
            if algorithm not in self._settings.algorithms or "crit" in header:
                raise _refused("is signed in a way that is not accepted here")
            key = await self._key(key_id if isinstance(key_id, str) else None, str(algorithm))
            claims = jwt.decode(
                text,
                key,
                algorithms=[str(algorithm)],
                audience=self._settings.audience,
                issuer=self._settings.issuer,
                options={
                    "require": ["iss", "aud", "exp", "sub"],
                    "verify_exp": False,  # by our clock, below
                    "verify_nbf": False,
                    "verify_iat": False,
                },
            )
        except jwt.PyJWTError as problem:
            raise _refused(f"is not valid here ({type(problem).__name__})") from None
        self._check_times(claims)
        return self._principal(claims)

    def scopes_needed(self) -> Sequence[str]:
        """The scopes that grant something here."""
        return list(self._settings.grants_by_scope())

    def metadata(self) -> JsonObject:
        """What this server says about itself (RFC 9728, section 2)."""
        return {
            "resource": self._settings.audience,
            "authorization_servers": [self._settings.issuer],
            "scopes_supported": list(self.scopes_needed()),
            "bearer_methods_supported": ["header"],
            "resource_name": "Toolcrib",
        }

    def challenge(self, error: str | None) -> str:
        """The `WWW-Authenticate` of a refusal (RFC 6750, section 3; RFC 9728, section 5.1).

        Args:
            error: Its error code; null if no token was sent.
        """
        parts = urlsplit(str(self._settings.audience))
        metadata = f"{parts.scheme}://{parts.netloc}{WELL_KNOWN}{parts.path.rstrip('/')}"
        fields = {"realm": "toolcrib", "resource_metadata": metadata, "scope": " ".join(self.scopes_needed())}
        if error is not None:
            fields["error"] = error
        return "Bearer " + ", ".join(f'{name}="{value}"' for name, value in fields.items() if value)

    # Inside -----------------------------------------------------------------------------------------------------------

    async def _key(self, key_id: str | None, algorithm: str) -> "PyJWK":
        now = self._clock.monotonic()
        keys = self._keys
        if keys is None or now - keys.fetched_at > _KEYS_S or self._find(keys, key_id) is None:
            keys = await self._fetched(key_id)
        key = self._find(keys, key_id)
        if key is None or key.algorithm_name != algorithm:
            raise _refused("is signed with a key that its issuer does not have for this")
        return key

    @staticmethod
    def _find(keys: _Keys, key_id: str | None) -> "PyJWK | None":
        """The key of an id; without an id, the only one there is."""
        if key_id is None:
            return next(iter(keys.by_id.values())) if len(keys.by_id) == 1 else None
        return keys.by_id.get(key_id)

    async def _fetched(self, key_id: str | None) -> _Keys:
        """The keys, fetched anew unless that was done a moment ago."""
        async with self._fetching:
            known, now = self._keys, self._clock.monotonic()
            age = None if known is None else now - known.fetched_at
            if known is not None and age is not None:
                has_key = self._find(known, key_id) is not None and age <= _KEYS_S
                if has_key or age < _AGAIN_S:
                    return known
            try:
                self._keys = _Keys(await self._fetch(), now)
            except CallFailed as failure:
                if known is None:
                    msg = f"the keys of {self._settings.issuer} cannot be had: {failure.error.message}"
                    raise Unavailable(msg) from failure
                known.fetched_at = now  # they were good until now; the next look is after a while
            return cast("_Keys", self._keys)

    async def _fetch(self) -> Mapping[str, "PyJWK"]:
        from jwt import PyJWK, PyJWTError  # noqa: PLC0415 - see above

        url = self._settings.jwks_url
        if url is None:
            url = str((await server_metadata(self._endpoints, str(self._settings.issuer))).get("jwks_uri"))
        answer = await self._endpoints.ask("GET", url, {"accept": "application/json"})
        listed = json_object(url, answer).get("keys") if answer.status == 200 else None
        if not isinstance(listed, list):
            raise unusable(url, f"answered with status {answer.status} and without keys")
        found: dict[str, PyJWK] = {}
        for number, each in enumerate(cast("list[Any]", listed)[:_MOST_KEYS]):
            described = cast("JsonObject", each) if isinstance(each, dict) else {}
            if described.get("kty") == "oct" or described.get("use", "sig") != "sig":
                continue  # a shared secret would let everybody who reads the keys sign
            try:
                found[str(described.get("kid", number))] = PyJWK(described)
            except PyJWTError:
                continue  # of an algorithm that is not known here
        return found

    def _check_times(self, claims: Mapping[str, Any]) -> None:
        now, leeway = self._clock.now().timestamp(), self._settings.leeway_s
        times = {name: claims[name] for name in ("exp", "nbf", "iat") if name in claims}
        if not all(isinstance(value, int | float) for value in times.values()):
            raise _refused("has a time that is no number")
        if times["exp"] <= now - leeway:
            raise _refused("has expired; get a new one")
        if max(times.get("nbf", 0), times.get("iat", 0)) > now + leeway:
            raise _refused("is not valid yet; compare the clocks of the issuer and of this server")

    def _principal(self, claims: Mapping[str, Any]) -> Principal:
        subject = str(claims["sub"])
        if not subject or not subject.isprintable() or len(subject) > 150:
            raise _refused("has a subject that cannot be the id of a principal")
        by_scope = self._settings.grants_by_scope()
        held = scopes_of(claims.get("scope") or claims.get("scp"))
        grants = tuple(dict.fromkeys(grant for scope in held for grant in by_scope.get(scope, ())))
        return Principal(id=f"{_PREFIX}{subject}", realm=self._settings.realm, grants=grants)


def is_access_token(text: str) -> bool:
    """Whether a bearer token has the form of a signed JWT, which no API key has."""
    return text.count(".") == 2


def _refused(why: str) -> Unauthenticated:
    return Unauthenticated(f"the access token {why}")

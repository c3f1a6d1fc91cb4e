"""Connection tests of providers: the port, and its implementation for HTTP."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final, Protocol
from urllib.parse import quote

from toolcrib.contracts import (
    Discovery,
    ErrorCode,
    HttpConnection,
    InvalidInput,
    MutualTlsAuth,
    NoAuth,
    Principal,
    ProviderDefinition,
    Reason,
)
from toolcrib.core.executor import CallFailed, error
from toolcrib.core.providers.auth.credentials import Credentials, ProviderAccess
from toolcrib.infrastructure.net import EgressDenied, HttpSession, NetworkError, TimedOut, Timeouts, TlsIdentity

_TIMEOUTS: Final = Timeouts(connect_s=10.0, read_idle_s=10.0, total_s=15.0)
_DOCUMENTS: Final = (
    "/openapi.json",
    "/openapi.yaml",
    "/swagger.json",
    "/v3/api-docs",
    "/v2/api-docs",
    "/api/openapi.json",
    "/.well-known/openapi.json",
)
"""Where systems customarily describe themselves."""
_MARKS: Final = (b'"openapi"', b'"swagger"', b"openapi:", b"swagger:")
_HEAD: Final = 4_096
_REFUSED: Final = frozenset({401, 403})
_TOO_MANY: Final = 429
_FAILED: Final = 500


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """What a probe saw."""

    message: str
    authenticated: bool | None
    http_status: int | None = None


class Probe(Protocol):
    """Looks at providers of one kind of connection. It changes nothing there."""

    async def test(self, provider: ProviderDefinition, principal: Principal) -> ProbeResult:
        """Reach the provider with a principal's credentials.

        Raises:
            CallFailed: It was not reached, or there are no credentials.
        """
        ...

    async def discover(self, provider: ProviderDefinition, principal: Principal) -> Discovery:
        """What could be imported. Raises as `test`."""
        ...


def has_credentials(provider: ProviderDefinition) -> bool:
    """Whether a provider asks for credentials."""
    return not isinstance(provider.auth, NoAuth) or bool(provider.security)


def let_in(provider: ProviderDefinition) -> bool | None:
    """Whether an answer means that the credentials were accepted; null if the provider asks for none."""
    return True if has_credentials(provider) else None


def discovery(provider: ProviderDefinition, items: Iterable[str], kind: str, how: str) -> Discovery:
    """What a provider offers.

    Args:
        provider: The provider.
        items: Names of what it offers.
        kind: What they are: `tools`, `services`, `tables`.
        how: The command that imports them.
    """
    return Discovery(provider=provider.name, items=tuple(sorted(items)), kind=kind, message=f"import them: {how}")


class HttpProbe:
    """Asks the provider's base address or its `test_path`. The bodies of the answers are not read.

    Args:
        session: The way out.
        providers: Has the credentials.
    """

    def __init__(self, session: HttpSession, providers: ProviderAccess) -> None:
        self._session = session
        self._providers = providers

    async def test(self, provider: ProviderDefinition, principal: Principal) -> ProbeResult:
        """Ask with GET, and once more without credentials; see `Probe.test`.

        401 and 403 mean that the credentials are not accepted. They are accepted if only the request without them is
        refused so. If both get on alike, the answer tells nothing of the credentials.
        """
        connection = provider.connection
        path = connection.test_path if isinstance(connection, HttpConnection) else None
        url = provider.address if path is None else provider.locate(path)
        status, _ = await self._head(url, provider, principal, 0)
        if status in _REFUSED:
            return ProbeResult(
                f"it answers with status {status}: the credentials are not accepted",
                authenticated=False,
                http_status=status,
            )
        if not has_credentials(provider):
            said, accepted = "it needs no credentials here", None
        elif await self._tells_nothing(url, provider, principal, status):
            where = "this path" if path else "its base address"
            advice = "set connection.test_path to the path of a GET that needs them, such as '/me'"
            said, accepted = f"which does not tell whether it accepts the credentials at {where}; {advice}", None
        else:
            said, accepted = "and accepts the credentials", True
        return ProbeResult(f"it answers with status {status}, {said}", authenticated=accepted, http_status=status)

    async def _tells_nothing(self, url: str, provider: ProviderDefinition, principal: Principal, status: int) -> bool:
        """Whether an answer is no sign of accepted credentials: who has none gets on as well, or it was a failure."""
        if status == _TOO_MANY or status >= _FAILED:
            return True
        try:
            anonymous, _ = await self._head(url, provider, principal, 0, anonymous=True)
        except CallFailed:
            return not isinstance(provider.auth, MutualTlsAuth)  # without our certificate there is no connection
        return anonymous not in _REFUSED

    async def discover(self, provider: ProviderDefinition, principal: Principal) -> Discovery:
        """Look for OpenAPI documents where they customarily are; see `Probe.discover`."""
        base = provider.address.rstrip("/")
        found = [base + path for path in _DOCUMENTS if await self._is_document(base + path, provider, principal)]
        advice = (
            "import one: `toolcrib tool import URL --name NAME`" if found else "none found; import from a file or URL"
        )
        return Discovery(provider=provider.name, items=tuple(sorted(found)), kind="documents", message=advice)

    async def _is_document(self, url: str, provider: ProviderDefinition, principal: Principal) -> bool:
        status, head = await self._head(url, provider, principal, _HEAD)
        return status == 200 and any(mark in head for mark in _MARKS)

    async def _head(
        self, url: str, provider: ProviderDefinition, principal: Principal, size: int, *, anonymous: bool = False
    ) -> tuple[int, bytes]:
        """Status and first bytes of what is at a URL of the provider."""
        held = await self._providers.credentials(provider, url, principal)
        if anonymous:
            held = Credentials(secrets=held.secrets, tls=_without_certificate(held.tls))
        cookies = {"cookie": "; ".join(f"{name}={text}" for name, text in held.cookies.items())} if held.cookies else {}
        query = "&".join(f"{quote(name, safe='')}={quote(text, safe='')}" for name, text in held.query.items())
        try:
            async with self._session.stream(
                "GET",
                f"{url}?{query}" if query else url,
                headers={**provider.headers, **held.headers, **cookies},
                timeout=_TIMEOUTS,
                tls=held.tls,
            ) as answer:
                head = b""
                async for chunk in answer.chunks:
                    head += chunk
                    if len(head) >= size:
                        break
                return answer.status, head[:size]
        except EgressDenied as problem:
            raise _probe_failure(ErrorCode.POLICY_DENIED, Reason.SSRF_BLOCKED, problem, held.secrets) from None
        except TimedOut as problem:
            raise _probe_failure(ErrorCode.TIMEOUT, Reason.TOOL_TIMEOUT, problem, held.secrets) from None
        except NetworkError as problem:
            raise _probe_failure(ErrorCode.NETWORK_ERROR, Reason.TOOL_FAILED, problem, held.secrets) from None
        except InvalidInput as problem:
            raise _probe_failure(ErrorCode.AUTH_REQUIRED, Reason.MISSING_SECRET, problem, held.secrets) from None


def _without_certificate(tls: TlsIdentity | None) -> TlsIdentity | None:
    """How the server is known, without who we are."""
    return None if tls is None else replace(tls, certificate=None, key=None, password=None)


def _probe_failure(code: ErrorCode, reason: Reason, problem: Exception, secrets: tuple[str, ...]) -> CallFailed:
    return CallFailed(error(code, reason, str(problem)), secrets=secrets)

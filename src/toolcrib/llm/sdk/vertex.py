"""The transport for Google's models at Vertex AI: it adds an access token to each request.

Google's SDK for these models has no raw requests, so only its credentials (`google-auth`) are used. That library
renews them through its own HTTP client, in a thread.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

from toolcrib.contracts.base.errors import InvalidSettings, ModelError, missing_extra
from toolcrib.infrastructure.net import HttpResponse, HttpStream, Timeouts
from toolcrib.llm.base.transport import Transport
from toolcrib.llm.sdk.cloud_addresses import SdkSettings

if TYPE_CHECKING:
    from google.auth.credentials import Credentials

_SCOPE = "https://www.googleapis.com/auth/cloud-platform"


class VertexTransport:
    """The `Transport` of one place.

    Args:
        inner: Carries the requests.
        settings: For its name; project and location are in the address.
    """

    def __init__(self, inner: Transport, settings: SdkSettings) -> None:
        self._inner = inner
        self._settings = settings
        self._credentials: Credentials | None = None
        self._renewing = asyncio.Lock()

    async def post(self, url: str, body: bytes, headers: Mapping[str, str], timeouts: Timeouts) -> HttpResponse:
        """See `Transport.post`.

        Raises:
            InvalidSettings: `google-auth` is not installed.
            ModelError: As `Transport.post`, and `auth` if there is no credential.
        """
        return await self._inner.post(url, body, await self._sign_headers(headers), timeouts)

    @asynccontextmanager
    async def stream(
        self, url: str, body: bytes, headers: Mapping[str, str], timeouts: Timeouts
    ) -> AsyncGenerator[HttpStream]:
        """See `Transport.stream`; raises as `post`."""
        async with self._inner.stream(url, body, await self._sign_headers(headers), timeouts) as stream:
            yield stream

    async def _sign_headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        async with self._renewing:
            if self._credentials is None or not self._credentials.valid:
                self._credentials = await asyncio.to_thread(self._renew_credentials, self._credentials)
            return {**headers, "authorization": f"Bearer {self._credentials.token}"}

    def _renew_credentials(self, credentials: "Credentials | None") -> "Credentials":
        """Credentials with a fresh token; blocks."""
        try:
            import google.auth  # noqa: PLC0415 - an optional package
            from google.auth.exceptions import GoogleAuthError  # noqa: PLC0415 - as above
            from google.auth.transport.requests import Request  # noqa: PLC0415 - as above
        except ImportError as error:
            raise InvalidSettings(missing_extra(self._settings.provider, error.name, "google")) from error
        try:
            if credentials is None:
                credentials, _ = cast("tuple[Credentials, str]", cast("Any", google.auth).default(scopes=[_SCOPE]))
            cast("Any", credentials).refresh(Request())
        except GoogleAuthError as error:
            raise ModelError("auth", f"{self._settings.provider}: no access token: {error}") from error
        return credentials

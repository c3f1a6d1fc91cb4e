"""Clients of Anthropic's SDK without other dependencies. Importing this module loads the SDK."""

from typing import Any, cast

import httpx2
from anthropic import (
    AnthropicError,
    APIConnectionError,
    APIStatusError,
    AsyncAnthropic,
    AsyncAnthropicFoundry,
    AsyncStream,
)
from anthropic.lib.bedrock import AsyncAnthropicBedrock
from anthropic.lib.vertex import AsyncAnthropicVertex

from toolcrib.infrastructure.net import Timeouts
from toolcrib.llm.base.transport import Transport
from toolcrib.llm.sdk._http import http_client, httpx_timeout
from toolcrib.llm.sdk.cloud_addresses import SdkSettings
from toolcrib.llm.sdk.entra import entra_token
from toolcrib.llm.sdk.sdk_transport import Post, connection_error, credential_error

_SCOPE = "https://ai.azure.com/.default"


def plain(inner: Transport, settings: SdkSettings) -> Post:
    """See `clients.plain_anthropic`."""
    made = AsyncAnthropic(
        api_key=settings.key(),
        base_url=settings.base_url,
        max_retries=0,
        open_telemetry=False,
        http_client=http_client(inner),
    )
    return raw(made, settings, TypeError, AnthropicError)


def foundry(inner: Transport, settings: SdkSettings) -> Post:
    """See `clients.foundry_anthropic`."""
    key = settings.key()
    made = AsyncAnthropicFoundry(
        api_key=key,
        azure_ad_token_provider=None if key else entra_token(settings, _SCOPE),
        base_url=settings.base_url,
        max_retries=0,
        open_telemetry=False,
        http_client=http_client(inner),
    )
    return raw(made, settings)


def raw(
    made: AsyncAnthropic | AsyncAnthropicBedrock | AsyncAnthropicVertex,
    settings: SdkSettings,
    *no_credential: type[Exception],
) -> Post:
    """A client used for raw requests, and what it raises when it has nothing to sign them with."""

    async def post(path: str, body: dict[str, Any], timeouts: Timeouts) -> httpx2.Response:
        try:
            answer = await made.post(
                path,
                cast_to=httpx2.Response,
                body=body,
                options={"timeout": httpx_timeout(timeouts)},
                stream=True,
                stream_cls=AsyncStream[Any],
            )
        except APIStatusError as error:
            return error.response
        except APIConnectionError as error:
            raise connection_error(settings, error) from error
        except no_credential as error:
            raise credential_error(settings, error) from error
        return cast("httpx2.Response", answer)

    return post

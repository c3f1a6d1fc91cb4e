"""Clients of OpenAI's SDK. Importing this module loads the SDK."""

from typing import Any, cast

import httpx2
from openai import APIConnectionError, APIStatusError, AsyncAzureOpenAI, AsyncOpenAI, AsyncStream, OpenAIError

from toolcrib.contracts.base.errors import InvalidSettings
from toolcrib.infrastructure.net import Timeouts
from toolcrib.llm.base.transport import Transport
from toolcrib.llm.sdk._http import http_client, httpx_timeout
from toolcrib.llm.sdk.cloud_addresses import SdkSettings
from toolcrib.llm.sdk.entra import entra_token
from toolcrib.llm.sdk.sdk_transport import Post, connection_error

_API_VERSION = "2024-10-21"
"""Azure's last dated version that is generally available."""
_SCOPE = "https://cognitiveservices.azure.com/.default"


def plain(inner: Transport, settings: SdkSettings) -> Post:
    """See `clients.plain_openai`."""
    try:
        made = AsyncOpenAI(
            api_key=settings.key(), base_url=settings.base_url, max_retries=0, http_client=http_client(inner)
        )
    except OpenAIError as error:
        raise InvalidSettings(f"{settings.provider}: {error}") from None
    return _raw(made, settings)


def azure(inner: Transport, settings: SdkSettings) -> Post:
    """See `clients.azure_openai`. The model's name is the deployment's."""
    key, token = settings.key(), settings.environment.get("AZURE_OPENAI_AD_TOKEN")
    made = AsyncAzureOpenAI(
        api_key=key,
        azure_ad_token=None if key else token,
        azure_ad_token_provider=None if key or token else entra_token(settings, _SCOPE),
        api_version=settings.environment.get("OPENAI_API_VERSION") or _API_VERSION,
        base_url=settings.base_url,
        max_retries=0,
        http_client=http_client(inner),
    )
    return _raw(made, settings)


def _raw(made: AsyncOpenAI, settings: SdkSettings) -> Post:
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
        return cast("httpx2.Response", answer)

    return post

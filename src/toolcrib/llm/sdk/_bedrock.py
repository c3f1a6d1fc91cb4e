"""The client of Anthropic's SDK for Amazon Bedrock. Importing this module loads both SDKs."""

from collections.abc import Mapping
from typing import cast

from anthropic.lib.bedrock import AsyncAnthropicBedrock
from botocore import exceptions

from toolcrib.llm.base.transport import Transport
from toolcrib.llm.sdk._anthropic import raw
from toolcrib.llm.sdk._http import http_client
from toolcrib.llm.sdk.cloud_addresses import SdkSettings, bedrock_region
from toolcrib.llm.sdk.sdk_transport import Post


def bedrock(inner: Transport, settings: SdkSettings) -> Post:
    """See `clients.bedrock_anthropic`."""
    key = settings.key()
    signing: Mapping[str, str] = {} if key else settings.environment
    made = AsyncAnthropicBedrock(
        api_key=key,
        aws_region=bedrock_region(settings.environment),
        aws_access_key=signing.get("AWS_ACCESS_KEY_ID"),
        aws_secret_key=signing.get("AWS_SECRET_ACCESS_KEY"),
        aws_session_token=signing.get("AWS_SESSION_TOKEN"),
        aws_profile=signing.get("AWS_PROFILE"),
        base_url=settings.base_url,
        max_retries=0,
        open_telemetry=False,
        http_client=http_client(inner),
    )
    return raw(made, settings, RuntimeError, cast("type[Exception]", exceptions.BotoCoreError))

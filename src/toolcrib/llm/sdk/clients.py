"""One function per cloud that signs in through an SDK, used as the `connect` of an `SdkTransport`.

The SDK is loaded when a function is called.

Raises:
    InvalidSettings: The SDK is not installed, or has no credentials.
"""

from toolcrib.contracts.base.errors import InvalidSettings, missing_extra
from toolcrib.llm.base.transport import Transport
from toolcrib.llm.sdk.cloud_addresses import SdkSettings
from toolcrib.llm.sdk.sdk_transport import Post


def plain_openai(inner: Transport, settings: SdkSettings) -> Post:
    """OpenAI itself, for whatever its SDK finds to sign in with."""
    try:
        from toolcrib.llm.sdk import _openai  # noqa: PLC0415 - loads the SDK
    except ImportError as error:
        raise _missing(settings, "openai", error) from error
    return _openai.plain(inner, settings)


def azure_openai(inner: Transport, settings: SdkSettings) -> Post:
    """A deployment in Azure: by key, by a given Entra token, or by the machine's Entra identity."""
    try:
        from toolcrib.llm.sdk import _openai  # noqa: PLC0415 - loads the SDK
    except ImportError as error:
        raise _missing(settings, "openai", error) from error
    return _openai.azure(inner, settings)


def plain_anthropic(inner: Transport, settings: SdkSettings) -> Post:
    """Anthropic itself, for whatever its SDK finds to sign in with."""
    try:
        from toolcrib.llm.sdk import _anthropic  # noqa: PLC0415 - loads the SDK
    except ImportError as error:
        raise _missing(settings, "anthropic", error) from error
    return _anthropic.plain(inner, settings)


def bedrock_anthropic(inner: Transport, settings: SdkSettings) -> Post:
    """Claude at Amazon Bedrock: by a Bedrock key, or signed with the credentials that the AWS SDK finds."""
    try:
        from toolcrib.llm.sdk import _bedrock  # noqa: PLC0415 - loads the SDKs
    except ImportError as error:
        raise _missing(settings, "bedrock", error) from error
    return _bedrock.bedrock(inner, settings)


def vertex_anthropic(inner: Transport, settings: SdkSettings) -> Post:
    """Claude at Vertex AI, with Google's application default credentials."""
    try:
        from toolcrib.llm.sdk import _vertex  # noqa: PLC0415 - loads the SDKs
    except ImportError as error:
        raise _missing(settings, "anthropic,google", error) from error
    return _vertex.vertex(inner, settings)


def foundry_anthropic(inner: Transport, settings: SdkSettings) -> Post:
    """Claude at Microsoft Foundry: by key, or by the machine's Entra identity."""
    try:
        from toolcrib.llm.sdk import _anthropic  # noqa: PLC0415 - loads the SDK
    except ImportError as error:
        raise _missing(settings, "anthropic", error) from error
    return _anthropic.foundry(inner, settings)


def _missing(settings: SdkSettings, extra: str, error: ImportError) -> InvalidSettings:
    return InvalidSettings(missing_extra(settings.provider, error.name, extra))

"""Microsoft Entra tokens for the machine's identity (`azure-identity`'s default credential).

The library caches and renews tokens through its own HTTP client.
"""

from collections.abc import Awaitable, Callable

from toolcrib.contracts.base.errors import InvalidSettings, ModelError
from toolcrib.llm.sdk.cloud_addresses import SdkSettings


def entra_token(settings: SdkSettings, scope: str) -> Callable[[], Awaitable[str]]:
    """What gives a token for a scope, asked before each request; it raises `ModelError`, `auth`, without one.

    Raises:
        InvalidSettings: `azure-identity` is not installed.
    """
    try:
        from azure.core.exceptions import AzureError  # noqa: PLC0415 - an optional package
        from azure.identity.aio import DefaultAzureCredential, get_bearer_token_provider  # noqa: PLC0415 - as above
    except ImportError as error:
        raise InvalidSettings(
            f"{settings.provider} has no API key, and for the machine's identity a package is missing ({error}); "
            "export the key, or pip install 'toolcrib[azure]'"
        ) from error
    provide = get_bearer_token_provider(DefaultAzureCredential(), scope)

    async def token() -> str:
        try:
            return await provide()
        except AzureError as error:
            raise ModelError("auth", f"{settings.provider}: no Entra token: {error}") from error

    return token

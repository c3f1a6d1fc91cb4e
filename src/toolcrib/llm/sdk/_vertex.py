"""The client of Anthropic's SDK for Vertex AI. Importing this module loads the SDK and Google's credentials."""

from anthropic.lib.vertex import AsyncAnthropicVertex
from google.auth.exceptions import GoogleAuthError

from toolcrib.llm.base.transport import Transport
from toolcrib.llm.sdk._anthropic import raw
from toolcrib.llm.sdk._http import http_client
from toolcrib.llm.sdk.cloud_addresses import SdkSettings, vertex_location, vertex_project
from toolcrib.llm.sdk.sdk_transport import Post


def vertex(inner: Transport, settings: SdkSettings) -> Post:
    """See `clients.vertex_anthropic`."""
    made = AsyncAnthropicVertex(
        project_id=vertex_project(settings.environment),
        region=vertex_location(settings.environment),
        base_url=settings.base_url,
        max_retries=0,
        open_telemetry=False,
        http_client=http_client(inner),
    )
    return raw(made, settings, RuntimeError, GoogleAuthError)

"""Official SDK clients as authenticated transports, for clouds whose sign-in only their SDK implements.

The SDK sets the address and signs a request. Our wires write the request and read the answer, and the given transport
sends it, so egress policy, limits and error kinds are the same as for other models. SDKs load with the first request.
Typed requests, retries and tracing of an SDK are not used. Only `llm.models` imports this package.
"""

from typing import TYPE_CHECKING

from toolcrib.contracts.base import names_on_use

if TYPE_CHECKING:
    from toolcrib.llm.sdk.clients import (
        azure_openai,
        bedrock_anthropic,
        foundry_anthropic,
        plain_anthropic,
        plain_openai,
        vertex_anthropic,
    )
    from toolcrib.llm.sdk.cloud_addresses import SdkSettings
    from toolcrib.llm.sdk.sdk_transport import Connect, SdkTransport
    from toolcrib.llm.sdk.vertex import VertexTransport
else:
    __getattr__ = names_on_use(
        __name__,
        {
            "toolcrib.llm.sdk.clients": (
                "azure_openai bedrock_anthropic foundry_anthropic plain_anthropic plain_openai vertex_anthropic"
            ),
            "toolcrib.llm.sdk.cloud_addresses": "SdkSettings",
            "toolcrib.llm.sdk.sdk_transport": "Connect SdkTransport",
            "toolcrib.llm.sdk.vertex": "VertexTransport",
        },
    )

__all__ = [
    "Connect",
    "SdkSettings",
    "SdkTransport",
    "VertexTransport",
    "azure_openai",
    "bedrock_anthropic",
    "foundry_anthropic",
    "plain_anthropic",
    "plain_openai",
    "vertex_anthropic",
]

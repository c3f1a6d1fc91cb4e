"""Official SDK clients as authenticated transports, for the places whose sign-in is theirs to know.

An SDK's client addresses and signs a request (`clients`); what is sent and what the answer means stays with our wires,
and the bytes travel through the transport that it is given, so that the egress policy, the limits and the error kinds
are the same as for every other model. Nothing here loads an SDK before the first request that needs it.

Not here: typed requests and answers of an SDK, its retries, its tracing.
"""

from toolcrib.llm.sdk.clients import (
    azure_openai,
    bedrock_anthropic,
    foundry_anthropic,
    plain_anthropic,
    plain_openai,
    vertex_anthropic,
)
from toolcrib.llm.sdk.places import SdkSettings
from toolcrib.llm.sdk.sdk_transport import Connect, SdkTransport
from toolcrib.llm.sdk.vertex import VertexTransport

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

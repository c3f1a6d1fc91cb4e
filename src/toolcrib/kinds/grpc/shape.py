"""The shape of a gRPC tool: a method of a gRPC service, called without generated code."""

from typing import Literal

from pydantic import Field

from toolcrib.contracts.base.base import JsonObject
from toolcrib.contracts.base.implementations import Implementation


class GrpcImplementation(Implementation):
    """One unary or server-streaming method. Address and credentials come from its provider."""

    kind: Literal["grpc"] = "grpc"
    has_outside_text = True

    provider: str
    method: str
    """`/package.Service/Method`."""
    request: str
    """Full name of the message that is sent: `package.Message`."""
    response: str
    """Full name of the message, or of each message, that comes back."""
    descriptors: str
    """Digest of the blob with the `FileDescriptorSet` that describes both."""
    server_streaming: bool = False
    """The output is the list of messages."""
    max_messages: int = Field(default=1000, ge=1)
    """Messages of a stream, after which it is cancelled and the envelope says that there may be more."""

    @property
    def provider_name(self) -> str:
        """Name of the provider, the gRPC server."""
        return self.provider

    def client_operation(self) -> JsonObject:
        """The method, and the message that it takes."""
        return {"provider": self.provider, "method": self.method, "request": self.request}

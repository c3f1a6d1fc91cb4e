"""Executes tools that are methods of gRPC services: arguments become a message, the response an output.

`calls` does all of this and loads grpcio; `runtime` imports it at the first call. No status is retried here, except a
refused token. Imported by `kinds.grpc`.
"""

from toolcrib.kinds.grpc.runtime.runtime import GrpcRuntime

__all__ = ["GrpcRuntime"]

"""Runs tools that are methods of gRPC services: arguments become a message, what comes back JSON or a failed call.

`messages` writes and reads messages, `calls` sends them, `failures` says what a status means. No status is tried again
here, but for a refused token.
"""

from toolcrib.kinds.grpc.runtime.runtime import GrpcRuntime

__all__ = ["GrpcRuntime"]

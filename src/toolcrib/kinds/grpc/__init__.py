"""Tools of kind `grpc`: methods of gRPC services.

Imported by `kinds.table`; other packages import the modules.
"""

from typing import TYPE_CHECKING

from toolcrib.core.kinds import KindSpec
from toolcrib.kinds.grpc.commands import CONNECTION, IMPORTERS
from toolcrib.kinds.grpc.shape import GrpcImplementation

if TYPE_CHECKING:
    from toolcrib.core.kinds import Runtime, RuntimeParts


def _open_runtime(parts: "RuntimeParts") -> "Runtime":
    from toolcrib.kinds.grpc.runtime import GrpcRuntime

    return GrpcRuntime(parts.session, parts.access, parts.blobs)


KIND = KindSpec(
    GrpcImplementation,
    open_runtime=_open_runtime,
    importers=IMPORTERS,
    connection=CONNECTION,
)

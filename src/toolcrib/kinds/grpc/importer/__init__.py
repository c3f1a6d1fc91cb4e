"""Creates providers and tools from gRPC servers, and opens channels to them. Loads grpcio (the extra `grpc`).

The only methods that this package calls are those of server reflection; `kinds.grpc.runtime` calls the others.
Imported within `kinds.grpc`.
"""

from toolcrib.kinds.grpc.importer.channels import Channels, as_is
from toolcrib.kinds.grpc.importer.descriptors import pool_of, read_set
from toolcrib.kinds.grpc.importer.importer import GrpcApi, import_grpc
from toolcrib.kinds.grpc.importer.reflection import Reflected, reflect
from toolcrib.kinds.grpc.importer.schemas import VALUE, is_wrapped

__all__ = [
    "VALUE",
    "Channels",
    "GrpcApi",
    "Reflected",
    "as_is",
    "import_grpc",
    "is_wrapped",
    "pool_of",
    "read_set",
    "reflect",
]

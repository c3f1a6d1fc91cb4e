"""The methods of services: what each promises about its effects, and the name of its tool."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from google.api import annotations_pb2
from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto, MethodOptions

from toolcrib.contracts import SideEffects
from toolcrib.core.providers.names import MAX_NAME, hashed

_INFRASTRUCTURE: Final = "grpc."
"""Package of the services that serve gRPC itself: reflection, health, channelz."""
_ILLEGAL: Final = re.compile(r"[^A-Za-z0-9_]+")


def service_names(files: Iterable[FileDescriptorProto]) -> Iterator[str]:
    """Full names of the services that files define."""
    for file in files:
        prefix = f"{file.package}." if file.package else ""
        yield from (prefix + service.name for service in file.service)


def is_infrastructure(service: str) -> bool:
    """Whether a service serves gRPC itself and nobody's purpose."""
    return service.startswith(_INFRASTRUCTURE)


def path_of(service: ServiceDescriptor, method: MethodDescriptor) -> str:
    """`/package.Service/Method`."""
    return f"/{service.full_name}/{method.name}"


def why_not(method: MethodDescriptor) -> str | None:
    """Why a method cannot be a tool; null if it can."""
    if method.client_streaming:
        return "the client sends a stream" + (", and so does the server" if method.server_streaming else "")
    return None


def effects(options: MethodOptions) -> tuple[SideEffects, bool]:
    """Side effects and whether calls are idempotent.

    As the method's `idempotency_level` says, else as the HTTP method of its `google.api.http` does, else it writes.
    """
    if options.idempotency_level == MethodOptions.NO_SIDE_EFFECTS:
        return "reads", True
    if options.idempotency_level == MethodOptions.IDEMPOTENT:
        return "writes", True
    extended: Any = options  # the stubs know no FieldDescriptor as the key of an extension
    verb = extended.Extensions[annotations_pb2.http].WhichOneof("pattern")
    return ("reads", True) if verb == "get" else ("writes", verb in {"put", "delete"})


def tool_names(paths: Sequence[str], known: Mapping[str, str]) -> dict[str, str]:
    """One name per method path, `Service_Method`, or what an earlier import called it.

    Of several that come to the same name the first by path keeps it; the others get a hash of their path.

    Args:
        paths: `/package.Service/Method` of every method.
        known: Names of an earlier import by path.
    """
    names: dict[str, str] = {path: known[path] for path in paths if path in known}
    taken = set(known.values())
    for path in sorted(set(paths) - names.keys()):
        service, method = path.removeprefix("/").split("/", 1)
        name = _ILLEGAL.sub("_", f"{service.rpartition('.')[2]}_{method}").strip("_")
        name = name if name[:1].isalpha() else f"Call_{name}"
        if name in taken or len(name) > MAX_NAME:
            name = hashed(name, path)
        names[path] = name
        taken.add(name)
    return {path: names[path] for path in paths}

"""Reads Protocol Buffers files from untrusted bytes, builds descriptor pools, and describes service methods.

Nothing is registered globally: each set of files has its own `DescriptorPool`. The files of `google/protobuf/` always
come from the installed library, so a server cannot redefine a type such as Timestamp. Of a method, this module reads
the declared effects and derives the name of its tool.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final

from google.api import annotations_pb2, field_behavior_pb2
from google.protobuf import (
    any_pb2,
    api_pb2,
    descriptor_pb2,
    duration_pb2,
    empty_pb2,
    field_mask_pb2,
    source_context_pb2,
    struct_pb2,
    timestamp_pb2,
    type_pb2,
    wrappers_pb2,
)
from google.protobuf.descriptor import FileDescriptor, MethodDescriptor, ServiceDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet, MethodOptions
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError

from toolcrib.contracts import InvalidDefinition, SideEffects
from toolcrib.core.providers.imports import MAX_NAME, with_hash

MAX_BYTES: Final = 16 * 2**20
"""Of all files together."""
MAX_FILES: Final = 5_000

_OURS: Final[tuple[FileDescriptor, ...]] = tuple(
    module.DESCRIPTOR
    for module in (
        any_pb2,
        api_pb2,
        descriptor_pb2,
        duration_pb2,
        empty_pb2,
        field_mask_pb2,
        source_context_pb2,
        struct_pb2,
        timestamp_pb2,
        type_pb2,
        wrappers_pb2,
    )
)
_LENT: Final[tuple[FileDescriptor, ...]] = (annotations_pb2.DESCRIPTOR, field_behavior_pb2.DESCRIPTOR)
"""Used where a set names them and does not hold them."""
_RESERVED: Final = "google.protobuf"
_RESERVED_FOLDER: Final = "google/protobuf/"


def read_set(data: bytes) -> list[FileDescriptorProto]:
    """The files of a serialized `FileDescriptorSet`, as `protoc --descriptor_set_out` or `buf build` write it.

    Raises:
        InvalidDefinition: It is not a descriptor set, is empty, or is too large.
    """
    check_size(1, len(data))
    try:
        files = list(FileDescriptorSet.FromString(data).file)
    except DecodeError:
        files = []
    if not any(file.name for file in files):
        msg = "these bytes are no FileDescriptorSet; make one: protoc --include_imports --descriptor_set_out=api.binpb"
        raise InvalidDefinition(msg)
    check_size(len(files), len(data))
    return files


def check_size(files: int, size: int) -> None:
    """Refuse more than can be handled.

    Raises:
        InvalidDefinition: Names the limit.
    """
    if size > MAX_BYTES:
        msg = f"the descriptors have {size} bytes and {MAX_BYTES} is the most; leave out services, or source info"
        raise InvalidDefinition(msg)
    if files > MAX_FILES:
        raise InvalidDefinition(f"the descriptors have {files} files and {MAX_FILES} is the most; leave out services")


def complete(files: Iterable[FileDescriptorProto]) -> dict[str, FileDescriptorProto]:
    """The files by name, each after what it imports, with the library's own in the place of foreign ones.

    Raises:
        InvalidDefinition: One is missing, imports itself, or defines what only the library may define.
    """
    found = {file.name: file for file in files if not file.name.startswith(_RESERVED_FOLDER)}
    for file in found.values():
        if file.package == _RESERVED or file.package.startswith(f"{_RESERVED}."):
            raise InvalidDefinition(f"{file.name!r} defines types of {_RESERVED}, which are not its own; leave it out")
    known = {file.name: file for file in _with_imports((*_OURS, *_LENT))}
    graph = {name: list(file.dependency) for name, file in found.items()}
    waiting = [(name, importer) for importer, imports in graph.items() for name in imports]
    while waiting:
        name, importer = waiting.pop()
        if name in graph:
            continue
        if name not in known:
            msg = f"{importer!r} imports {name!r}, which is not there; make the set with --include_imports"
            raise InvalidDefinition(msg)
        found[name] = FileDescriptorProto.FromString(known[name].serialized_pb)
        graph[name] = list(found[name].dependency)
        waiting += [(more, name) for more in graph[name]]
    try:
        order = list(TopologicalSorter(graph).static_order())
    except CycleError as cycle:
        raise InvalidDefinition(f"these files import each other in a cycle: {', '.join(cycle.args[1])}") from None
    return {name: found[name] for name in order}


def pool_of(files: Iterable[FileDescriptorProto]) -> DescriptorPool:
    """A pool of files that are in order.

    Raises:
        InvalidDefinition: They do not fit together.
    """
    pool = DescriptorPool()
    for file in files:
        try:
            pool.AddSerializedFile(file.SerializeToString(deterministic=True))
        except (TypeError, DecodeError) as problem:
            msg = f"{file.name!r} is not well formed: {str(problem)[:300]}; compile it with protoc to see more"
            raise InvalidDefinition(msg) from None
    return pool


def closure(files: Mapping[str, FileDescriptorProto], names: Iterable[str]) -> list[str]:
    """The names of some files and of all that they import, in the order of `files`."""
    reached, waiting = set[str](), list(names)
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += files[name].dependency
    return [name for name in files if name in reached]


def messages_only(files: Iterable[FileDescriptorProto]) -> bytes:
    """A set without comments and services: what it takes to read and write messages.

    So it stays the same when a service gets another method or a comment changes.
    """
    kept = FileDescriptorSet()
    for file in files:
        copy = kept.file.add()
        copy.CopyFrom(file)
        copy.ClearField("source_code_info")
        copy.ClearField("service")
    return kept.SerializeToString(deterministic=True)


def _with_imports(files: Iterable[FileDescriptor]) -> Iterator[FileDescriptor]:
    for file in files:
        yield file
        yield from _with_imports(file.dependencies)


_INFRASTRUCTURE: Final = "grpc."
"""Package of the services that serve gRPC itself: reflection, health, channelz."""
_ILLEGAL: Final = re.compile(r"[^A-Za-z0-9_]+")


def service_names(files: Iterable[FileDescriptorProto]) -> Iterator[str]:
    """Full names of the services that files define."""
    for file in files:
        prefix = f"{file.package}." if file.package else ""
        yield from (prefix + service.name for service in file.service)


def is_infrastructure(service: str) -> bool:
    """Whether a service belongs to gRPC itself, such as reflection and health checks."""
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
    names_in_use = set(known.values())
    for path in sorted(set(paths) - names.keys()):
        service, method = path.removeprefix("/").split("/", 1)
        name = _ILLEGAL.sub("_", f"{service.rpartition('.')[2]}_{method}").strip("_")
        name = name if name[:1].isalpha() else f"Call_{name}"
        if name in names_in_use or len(name) > MAX_NAME:
            name = with_hash(name, path)
        names[path] = name
        names_in_use.add(name)
    return {path: names[path] for path in paths}

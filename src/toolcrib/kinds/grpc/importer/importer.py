"""The services of a gRPC server as a provider and its tools: `import_grpc`, a pure function over descriptors.

Each unary and server-streaming method becomes a tool. Methods with client streaming are left out and reported. The
caller stores `GrpcApi.descriptors`, which calls of the tools need.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool

from toolcrib.contracts import (
    GrpcConnection,
    InvalidDefinition,
    JsonSchema,
    LossReport,
    NoAuth,
    OperationImport,
    ProviderAuth,
    ProviderDefinition,
    RetryPolicy,
    ToolDefinition,
    digest,
)
from toolcrib.core.providers.imports import (
    MAX_GROUP_DESCRIPTION,
    Group,
    ImportedApi,
    Losses,
    cut_text,
    slug,
    tell_large_input,
)
from toolcrib.kinds.grpc.importer.descriptors import (
    closure,
    complete,
    effects,
    is_infrastructure,
    messages_only,
    path_of,
    pool_of,
    service_names,
    tool_names,
    why_not,
)
from toolcrib.kinds.grpc.importer.schemas import MessageSchemas, read_comments
from toolcrib.kinds.grpc.shape import GrpcImplementation

MAX_METHODS: Final = 10_000

_NO_NAMES: Final[Mapping[str, str]] = MappingProxyType({})
_RETRIES: Final = RetryPolicy(count=3)
"""For methods that may be repeated."""
_MAX_LONG: Final = 20_000
_ANY: Final = "google/protobuf/any.proto"


@dataclass(frozen=True, slots=True)
class GrpcApi(ImportedApi):
    """What a server's descriptors became."""

    descriptors: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    """The `FileDescriptorSet`s that the tools name, by digest."""


def import_grpc(
    files: Iterable[FileDescriptorProto],
    *,
    name: str,
    base_url: str,
    source: str = "FileDescriptorSet",
    services: Collection[str] | None = None,
    auth: ProviderAuth | None = None,
    authority: str | None = None,
    names: Mapping[str, str] = _NO_NAMES,
) -> GrpcApi:
    """Make a provider and one tool per method.

    Args:
        files: The files that define the services, and what they import, in any order.
        name: Name of the provider.
        base_url: `grpc://host:port`, or `grpcs://host:port` over TLS.
        source: Where the descriptors come from, for the report.
        services: Full names of the services that are served; null for all that the files define.
        auth: How calls authenticate.
        authority: Name that the server's certificate must have, if it is not the host.
        names: Tools' names of an earlier import by `/package.Service/Method`, which stay.

    Returns:
        Definitions and descriptors that are not stored anywhere yet, and everything that was left out.

    Raises:
        InvalidDefinition: The files do not fit together, or they have too many methods.
    """
    given = list(files)
    found = complete(given)
    reader = _Reader(found, pool_of(found.values()), name)
    losses = Losses()
    reader.read(service_names(given) if services is None else services, losses, names)
    report = LossReport(format=source, losses=losses.report(), operations=tuple(reader.operations))
    provider = ProviderDefinition(
        name=name,
        connection=GrpcConnection(authority=authority),
        base_url=base_url,
        auth=auth or NoAuth(),
        metadata={"services": sorted(reader.services), "import": report.summary()},
    )
    sizes = Counter(tool.tags[0] for tool in reader.tools)
    groups = tuple(Group(tag, size, reader.services_by_tag[tag]) for tag, size in sizes.items())
    return GrpcApi(provider, tuple(reader.tools), groups, report, descriptors=reader.descriptors)


class _Reader:
    """Makes the tools of one set of files."""

    def __init__(self, files: Mapping[str, FileDescriptorProto], pool: DescriptorPool, provider: str) -> None:
        self._files = files
        self._pool = pool
        self._provider = provider
        self._comments = read_comments(files.values())
        self._requests = MessageSchemas("input", self._comments)
        self._responses = MessageSchemas("output", self._comments)
        self._digests: dict[tuple[str, ...], str] = {}
        """Of stored sets by the names of their files."""
        self.tools: list[ToolDefinition] = []
        self.operations: list[OperationImport] = []
        self.services: list[str] = []
        self.services_by_tag: dict[str, str] = {}
        """What each group is for."""
        self.descriptors: dict[str, bytes] = {}

    def read(self, services: Iterable[str], losses: Losses, names: Mapping[str, str]) -> None:
        """Make a tool of every method that can be one."""
        found = [service for name in dict.fromkeys(services) if (service := self._service(name, losses)) is not None]
        methods = [(service, method) for service in found for method in service.methods]
        if len(methods) > MAX_METHODS:
            raise InvalidDefinition(
                f"there are {len(methods)} methods and {MAX_METHODS} is the most; leave out services"
            )
        if not methods:
            losses.add_dropped("", "operation", "services", "there is no method: no tool comes of these descriptors")
        called = tool_names([path_of(*method) for method in methods], names)
        for service, method in methods:
            self._method(service, method, called[path_of(service, method)])

    def _service(self, name: str, losses: Losses) -> ServiceDescriptor | None:
        if is_infrastructure(name):
            losses.add_dropped(name, "annotation", f"service {name}", "left out: it serves gRPC itself")
            return None
        try:
            service = self._pool.FindServiceByName(name)
        except KeyError:
            losses.add_dropped(name[:200], "reference", f"service {name[:200]}", "left out: nothing describes it")
            return None
        self.services.append(name)
        tag = slug(service.name) or "service"
        self.services_by_tag.setdefault(tag, cut_text(self._comments.get(name, ""), MAX_GROUP_DESCRIPTION))
        return service

    def _method(self, service: ServiceDescriptor, method: MethodDescriptor, name: str) -> None:
        path, losses = path_of(service, method), Losses()
        tool: ToolDefinition | None = None
        why = why_not(method)
        if why is None:
            try:
                tool = self._tool(service, method, name)
                self._account(method, losses)
                tell_large_input(name, tool.input_schema, method.full_name, losses)
            except InvalidDefinition as problem:
                why = str(problem)
        if why is not None:
            losses.add_dropped(method.full_name, "operation", "operation", f"left out: {why}"[:300])
        if tool is not None:
            self.tools.append(tool)
        self.operations.append(
            OperationImport(
                operation=path,
                place=method.full_name,
                tool=None if tool is None else tool.name,
                group=None if tool is None else tool.tags[0],
                kept=() if tool is None else _message_types(method),
                losses=losses.report(),
            )
        )

    def _tool(self, service: ServiceDescriptor, method: MethodDescriptor, name: str) -> ToolDefinition:
        side_effects, idempotent = effects(method.GetOptions())
        text = self._comments.get(method.full_name, "") or f"{method.name} of {service.full_name}."
        if method.GetOptions().deprecated:
            text = f"Deprecated. {text}"
        return ToolDefinition(
            name=name,
            description=cut_text(text),
            long_description=cut_text(text, _MAX_LONG) if cut_text(text) != text else None,
            category=self._provider,
            tags=(slug(service.name) or "service",),
            source="imported",
            input_schema=self._requests.of(method.input_type),
            output_schema=self._output(method),
            side_effects=side_effects,
            idempotent=idempotent,
            retry=_RETRIES if idempotent else RetryPolicy(),
            implementation=GrpcImplementation(
                provider=self._provider,
                method=path_of(service, method),
                request=method.input_type.full_name,
                response=method.output_type.full_name,
                descriptors=self._describe(method),
                server_streaming=method.server_streaming,
            ),
        )

    def _output(self, method: MethodDescriptor) -> JsonSchema:
        schema = self._responses.of(method.output_type)
        if not method.server_streaming:
            return schema
        definitions: JsonSchema = {"$defs": schema["$defs"]} if "$defs" in schema else {}
        item = {keyword: part for keyword, part in schema.items() if keyword != "$defs"}
        return {"type": "array", "items": item, **definitions}

    def _describe(self, method: MethodDescriptor) -> str:
        """The digest of the set that the method's messages need: all files if they may hold any message."""
        needed = closure(self._files, (method.input_type.file.name, method.output_type.file.name))
        key = tuple(self._files) if _ANY in needed else tuple(needed)
        if key not in self._digests:
            data = messages_only(self._files[name] for name in key)
            self._digests[key] = digest(data)
            self.descriptors[self._digests[key]] = data
        return self._digests[key]

    def _account(self, method: MethodDescriptor, losses: Losses) -> None:
        for name in self._requests.type_names(method.input_type):
            for written in self._requests.left_out.get(name, ()):
                losses.add_dropped(f"{name}.{written}", "direction", f"field {written}", "only the server writes it")


def _message_types(method: MethodDescriptor) -> tuple[str, str]:
    many = "stream of " if method.server_streaming else ""
    return f"request {method.input_type.full_name}", f"response {many}{method.output_type.full_name}"

"""What the library knows of one kind of tool, and what its runtime is made from.

Nothing is imported here but contracts: the table of kinds is loaded with the first definition that is read.
"""

import inspect
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Generic, Protocol, Self, TypeAlias, TypeVar, runtime_checkable

from toolcrib.contracts import (
    DELEGATES,
    Contract,
    Implementation,
    JsonObject,
    JsonSchema,
    Principal,
    ProviderDefinition,
    RunKind,
    ToolDefinition,
    ToolRevision,
)

if TYPE_CHECKING:
    from toolcrib.core.executor import Clock, Dispatch, Outcome
    from toolcrib.core.providers import ImportedApi, ProviderAccess
    from toolcrib.core.providers.probes import Probe
    from toolcrib.core.registry import Registry
    from toolcrib.core.runs import Program
    from toolcrib.infrastructure.net import HttpSession
    from toolcrib.infrastructure.sandbox import Sandboxes
    from toolcrib.infrastructure.store import Blobs, Transactions

ShapeT = TypeVar("ShapeT", bound=Implementation)
ShapeT_contra = TypeVar("ShapeT_contra", bound=Implementation, contravariant=True)

Require: TypeAlias = Callable[[str], ToolRevision]
"""The tool that a reference means; raises `NotFound`."""


class Preview(Protocol[ShapeT_contra]):
    """Says what a call would do, without doing it."""

    def __call__(
        self,
        tool: ToolDefinition,
        shape: ShapeT_contra,
        arguments: JsonObject,
        *,
        provider: ProviderDefinition | None,
        idempotency_key: str,
    ) -> JsonObject:
        """Fields of `ApprovalPreview`.

        Args:
            tool: The tool.
            shape: What it is made of.
            arguments: Of the call, valid.
            provider: The provider that the tool names, if there is one.
            idempotency_key: Of the call.
        """
        ...


@dataclass(frozen=True, slots=True)
class PluginHost:
    """What a plugin gets of the crib."""

    http: "HttpSession"
    """The way out, under the crib's egress policy."""
    secret: Callable[[str, Principal], Awaitable[str | None]]
    """The value behind `${env:NAME}` for whoever calls; what is used goes into `Outcome.secrets`."""
    clock: "Clock"


@runtime_checkable
class PluginRuntime(Protocol):
    """Executes the tools of one name."""

    @property
    def config_schema(self) -> JsonSchema:
        """JSON Schema 2020-12 of `PluginImplementation.config`."""
        ...

    async def run(self, dispatch: "Dispatch") -> "Outcome":
        """Execute once.

        Raises:
            CallFailed: The tool failed in a way it can describe. Anything else is told as `UNKNOWN`.
        """
        ...


class Runtime(Protocol):
    """Executes one kind of implementation."""

    async def run(self, dispatch: "Dispatch") -> "Outcome":
        """Execute once.

        Raises:
            CallFailed: The tool failed in a way it can describe.
        """
        ...


@dataclass(frozen=True, slots=True)
class RuntimeParts:
    """What the runtimes of a crib are made from."""

    session: "HttpSession"
    """Sends what the egress policy allows."""
    access: "ProviderAccess"
    """Finds providers, and the credentials for them."""
    blobs: "Blobs"
    clock: "Clock"
    transactions: "Transactions"
    """Of the store, for functions that write in its database."""
    environment: Mapping[str, str]
    mcp_commands: tuple[str, ...]
    """Programs that may be started as MCP servers."""
    plugins: Callable[[PluginHost], Mapping[str, PluginRuntime]]
    """Makes the runtimes of other packages."""
    resolve_secret: Callable[[str, Principal], Awaitable[str | None]]


@dataclass(frozen=True, slots=True)
class ProgramParts:
    """What the programs of kinds whose calls are runs are made from."""

    sandbox: "Sandboxes"
    registry: "Registry"


@dataclass(frozen=True, slots=True)
class Option:
    """How a field of an `ImportSource` is given on the command line; a field without one is not."""

    flag: str | None = None
    """`--name`; null for the positional argument."""
    metavar: str | None = None
    help: str = ""
    value: Any = None
    """What the field becomes if the flag is given, for flags that take no value."""


class ImportSource(Contract):
    """What an import reads, and how: one subclass per importer.

    It is the argument of `crib.imports.read`, the body of the REST route and the options of the command.
    """

    name: Annotated[str, Option("--name", "N", "Name of the provider.")]
    """Name of the provider that it becomes."""
    accept: Annotated[
        bool, Option("--accept-changes", help="Accept changes that could break callers, without a review.")
    ] = False
    """Accept changes that could break callers, which otherwise wait for a review."""

    @property
    def references(self) -> tuple[str, ...]:
        """What may be a reference to a secret: whoever imports needs a grant for each."""
        return ()

    @property
    def is_partial(self) -> bool:
        """Whether it reads a part of what the other system offers, so that tools which are not there are not gone."""
        return False

    @property
    def is_repeatable(self) -> bool:
        """Whether reading it again asks the other system again, instead of repeating what a caller has given."""
        return True

    @classmethod
    def of_options(cls, options: Mapping[str, Any]) -> Self:
        """The source that the options of the command mean.

        Args:
            options: By field; those that were given.

        Raises:
            InvalidInput: They contradict each other.
        """
        return cls(**options)


SourceT = TypeVar("SourceT", bound=ImportSource)
RuntimeT = TypeVar("RuntimeT")


class FindRuntime(Protocol):
    """Finds the runtime of a class among those of the crib."""

    def __call__(self, runtime: type[RuntimeT], /) -> RuntimeT:
        """The runtime."""
        ...


@dataclass(frozen=True, slots=True)
class ImportContext:
    """What an importer is given."""

    who: Principal
    """In whose realm and name it reads."""
    session: "HttpSession"
    access: "ProviderAccess"
    """Has the credentials for providers."""
    runtime: FindRuntime
    """Has the connections of each kind."""
    provider: ProviderDefinition | None
    """The provider of this name, if it was imported before."""
    tools: Collection[ToolRevision]
    """All tools of the realm."""
    blobs: "Blobs"


@dataclass(frozen=True, slots=True)
class Importer(Generic[SourceT]):
    """One way to import tools of a kind."""

    source: type[SourceT]
    read: "Callable[[SourceT, ImportContext], Awaitable[ImportedApi]]"
    """Reads what the other system offers. It calls no tool, and starts nothing that the operator has not allowed."""
    command: str | None = None
    """`import-mcp`: of `toolcrib tool` and, unless `path` says otherwise, of the REST route below `/ai/tools`. Null for
    what `toolcrib tool import` and `POST /ai/tools/import` read."""
    path: str | None = None
    """Of the REST route, if it is not the command."""

    @property
    def summary(self) -> str:
        """What the command and the route do, from the docstring of the source: it begins with `A` or `An`."""
        described = str(inspect.getdoc(self.source))
        return f"Import {described[0].lower()}{described[1:]}"


@dataclass(frozen=True, slots=True)
class ConnectionKind:
    """How providers of one kind of connection are looked at."""

    connection: type[Contract]
    open_probe: "Callable[[ImportContext], Probe]"
    sync: "Callable[[ProviderDefinition, ImportContext], Awaitable[ImportedApi]] | None" = None
    """Asks a provider again what it offers; null if it cannot be asked."""


@dataclass(frozen=True, slots=True)
class KindSpec(Generic[ShapeT]):
    """One kind of tool. What is null, the kind does not need.

    A kind's package imports nothing but its shape; everything else is imported by the functions below, when it is used.
    """

    shape: type[ShapeT]
    check: Callable[[ToolDefinition, ShapeT], None] | None = None
    """Refuses a definition that is not well formed, with `InvalidDefinition`."""
    complete: Callable[[ToolDefinition, ShapeT, Require], ToolDefinition] | None = None
    """Checks a definition against the tools that it names, and fills in what follows from them."""
    open_runtime: Callable[[RuntimeParts], Runtime] | None = None
    """Makes what executes calls; nothing is connected. Null for kinds whose calls are runs."""
    open_program: "Callable[[ProgramParts], Program] | None" = None
    """Makes the program of the runs, for kinds whose calls are runs. Agents and workflows have theirs elsewhere."""
    preview: Preview[ShapeT] | None = None
    """Says what a call would do, for the person who approves it."""
    importers: tuple[Importer[Any], ...] = ()
    """Make tools of this kind from what another system offers."""
    connection: ConnectionKind | None = None
    """How the providers of its tools are reached, if in a way of their own."""

    @property
    def name(self) -> str:
        """The `kind` of its shape."""
        return self.shape.model_fields["kind"].default

    @property
    def run_kind(self) -> RunKind:
        """The kind of a run of its tools: one of its own if a call is a run, else `tool`."""
        return self.name if self.name in DELEGATES else "tool"


AnyKind: TypeAlias = KindSpec[Any]

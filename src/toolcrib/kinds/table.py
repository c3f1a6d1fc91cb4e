"""The table of kinds, one line for each. To add a kind, add its line here."""

from collections.abc import Iterator
from typing import Any, Final

from toolcrib.contracts import AgenticImplementation, AgentImplementation, Implementation, ProviderDefinition
from toolcrib.contracts.workflows import WorkflowImplementation
from toolcrib.core.kinds import AnyKind, ConnectionKind, Importer, ImportSource, KindSpec
from toolcrib.kinds import a2a, code, composite, entity, graphql, grpc, http, mcp, plugin, python

KINDS: Final[tuple[AnyKind, ...]] = (
    python.KIND,
    http.KIND,
    mcp.KIND,
    grpc.KIND,
    graphql.KIND,
    a2a.KIND,
    entity.KIND,
    code.KIND,
    composite.KIND,
    KindSpec(AgenticImplementation),
    KindSpec(AgentImplementation),
    KindSpec(WorkflowImplementation),
    plugin.KIND,
)

SHAPES: Final[tuple[type[Implementation], ...]] = tuple(kind.shape for kind in KINDS)
"""The members of the union that a tool's `implementation` is."""


def importers() -> Iterator[Importer[Any]]:
    """All importers of all kinds."""
    for kind in KINDS:
        yield from kind.importers


def importer_of(source: ImportSource) -> Importer[Any]:
    """The importer that reads a source."""
    return next(importer for importer in importers() if importer.source is type(source))


def connection_kind(provider: ProviderDefinition) -> ConnectionKind:
    """How a provider is tested, by its kind of connection."""
    kinds = (kind.connection for kind in KINDS if kind.connection is not None)
    return next(kind for kind in kinds if kind.connection is type(provider.connection))

"""The table of kinds, one line for each. To add a kind, add its line here."""

from collections.abc import Iterable, Iterator
from typing import Any, Final, cast

from pydantic import ValidationError
from pydantic_core import to_jsonable_python

from toolcrib.contracts import (
    AgenticImplementation,
    AgentImplementation,
    Contract,
    Implementation,
    InvalidDefinition,
    JsonObject,
    ProviderDefinition,
)
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


def recorded_source(source: ImportSource) -> JsonObject | None:
    """A source as a provider keeps it, so that a sync can read it again; null if that would ask nobody."""
    if not source.is_repeatable:
        return None
    kind = next(kind for kind in KINDS if any(each.source is type(source) for each in kind.importers))
    fields: JsonObject = {
        name: _said(value)
        for name, field in type(source).model_fields.items()
        if name not in {"name", "accept"}
        and (value := getattr(source, name)) != field.get_default(call_default_factory=True)
    }
    return {"kind": kind.name, **to_jsonable_python(fields)}


def _said(value: object) -> Any:
    """What was given, at any depth; a field that was not given can mean something else than its default."""
    match value:
        case Contract():
            names = (*(name for name in type(value).model_fields if name == "kind" or name in value.model_fields_set),)
            return {name: _said(getattr(value, name)) for name in names}
        case dict():
            return {name: _said(each) for name, each in cast("JsonObject", value).items()}
        case list() | tuple() | set() | frozenset():
            return [_said(each) for each in cast("Iterable[object]", value)]
        case _:
            return value


def source_of(provider: ProviderDefinition) -> ImportSource | None:
    """What a sync of a provider reads; null if the provider itself is asked, or cannot be.

    Raises:
        InvalidDefinition: Its `imported_from` is no import source.
    """
    recorded = provider.imported_from
    if recorded is None:
        return None
    fields = {**recorded, "name": provider.name}
    name = fields.pop("kind", None)
    found = [importer for kind in KINDS if kind.name == name for importer in kind.importers]
    what = f"provider {provider.name!r}: imported_from"
    if not found:
        known = ", ".join(kind.name for kind in KINDS if kind.importers)
        raise InvalidDefinition(f"{what} has kind {str(name)[:60]!r}; it is one of {known}, or leave it out")
    try:
        source = found[0].source.model_validate(fields)
    except ValueError as problem:
        errors = problem.errors() if isinstance(problem, ValidationError) else []
        told = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in errors)
        raise InvalidDefinition(f"{what} is no source of kind {name!r}: {told}; correct it, or leave it out") from None
    if not source.is_repeatable or source.accept:
        raise InvalidDefinition(f"{what} must name what can be asked again, and accepts no changes; leave it out")
    return source


def connection_kind(provider: ProviderDefinition) -> ConnectionKind:
    """How a provider is tested, by its kind of connection."""
    kinds = (kind.connection for kind in KINDS if kind.connection is not None)
    return next(kind for kind in kinds if kind.connection is type(provider.connection))

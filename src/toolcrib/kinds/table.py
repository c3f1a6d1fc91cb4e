"""The table of kinds, one line for each. To add a kind, add its line here."""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, Self, cast

from pydantic import ValidationError
from pydantic_core import to_jsonable_python

from toolcrib.contracts import (
    NAME_PATTERN,
    SECRET_REFERENCE,
    AgenticImplementation,
    AgentImplementation,
    Contract,
    Implementation,
    InvalidDefinition,
    InvalidInput,
    InvalidSettings,
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


_WEB: Final = ("http://", "https://")
_ADDRESSES: Final[Mapping[str, tuple[str, str]]] = {
    "openapi": ("http", "document"),
    "graphql": ("graphql", "url"),
    "grpc": ("grpc", "address"),
    "mcp": ("mcp", "url"),
    "a2a": ("a2a", "url"),
    "database": ("entity", "url"),
}
"""What can be imported from an address: the kind of its tools, and the field of its source that takes the address."""


def source_at(form: str, address: str, **fields: Any) -> ImportSource:
    """The source of what is at an address.

    Args:
        form: `openapi`, `graphql`, `grpc`, `mcp`, `a2a` or `database`.
        address: Where it is; the path of a file for `openapi` too; a reference to a URL for `database`.
        fields: The others of the source.

    Raises:
        InvalidInput: The file cannot be read.
    """
    kind, field = _ADDRESSES[form]
    given: str | bytes = address
    if form == "openapi" and not address.startswith(_WEB):
        try:
            given = Path(address).read_bytes()
        except OSError as problem:
            raise InvalidInput(f"{address} cannot be read: {problem.strerror}; name another file or a URL") from None
    importer = next(importer for each in KINDS if each.name == kind for importer in each.importers)
    return importer.source(**{field: given, **fields})


class StartImport(NamedTuple):
    """What is imported whenever a process begins to serve."""

    name: str
    """Of the provider."""
    form: str
    address: str

    @classmethod
    def read(cls, text: str) -> Self:
        """Read `NAME=FORM:ADDRESS`, such as `shop=database:${env:SHOP_URL}`.

        Raises:
            InvalidSettings: It is not that.
        """
        name, _, rest = text.partition("=")
        form, _, address = rest.partition(":")
        if not (re.fullmatch(NAME_PATTERN, name) and form in _ADDRESSES and address):
            forms = ", ".join(_ADDRESSES)
            what = f"{text.partition(':')[0][:100]!r} is no import; write NAME=FORM:ADDRESS"
            raise InvalidSettings(f"{what} with one of {forms}, such as crm=openapi:https://crm.example/openapi.json")
        if form == "database" and not SECRET_REFERENCE.fullmatch(address):
            raise InvalidSettings(f"the import {name!r} has a database's URL as a text; write ${{env:NAME}} instead")
        return cls(name, form, address)


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

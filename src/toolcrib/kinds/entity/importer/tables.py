"""Converts a mapped class or a table to an `Entity`: a table with named fields.

Of a mapped class, only the columns of its table are used; relationships are mentioned in the description.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

import sqlalchemy as sa
from sqlalchemy.exc import NoInspectionAvailable
from sqlalchemy.orm import Mapper, RelationshipProperty

from toolcrib.contracts import InvalidDefinition
from toolcrib.kinds.entity.importer.names import field_names
from toolcrib.kinds.entity.importer.options import EntityOptions, options_of

Column: TypeAlias = sa.Column[Any]
Table: TypeAlias = sa.Table[Any]


@dataclass(frozen=True, slots=True)
class Entity:
    """A table and what its tools are to be."""

    table: Table
    fields: Mapping[str, Column]
    """By field name, in the table's order."""
    options: EntityOptions
    name: str
    """What it is called where it comes from: a class, or a table."""
    relations: tuple[str, ...] = ()
    """Relationships in words: `customer: one of customers`."""
    version: str | None = None
    """Field that the mapping makes the version of a row."""
    version_by_database: bool = False
    """Whether the database changes that field."""
    doc: str = field(default="")
    """What the class says of itself."""


def as_entity(thing: type | Table | Entity, options: EntityOptions | None = None, *, keyless: bool = False) -> Entity:
    """A mapped class or a table as an entity.

    Args:
        thing: A mapped class, a table or an entity; an entity is returned unchanged.
        options: Choices for a table; a class has them by its decorator.
        keyless: Whether it may be without a primary key, as a view is.

    Raises:
        InvalidDefinition: It is not mapped, spans several tables, has no primary key, or its choices name no field.
    """
    if isinstance(thing, Entity):
        return thing
    made = _of_table(thing, options) if isinstance(thing, sa.Table) else _of_class(thing, options)
    if not made.table.primary_key.columns and not keyless:
        msg = f"{made.name} has no primary key, by which a row could be named; give its table one"
        raise InvalidDefinition(msg)
    _check_options(made)
    return made


def field_of(entity: Entity, column: Column) -> str:
    """The field that a column is."""
    return next(name for name, known in entity.fields.items() if known is column)


def _of_table(table: Table, options: EntityOptions | None) -> Entity:
    columns = list(table.columns)
    names = field_names([column.name for column in columns])
    return Entity(table, dict(zip(names, columns, strict=True)), options or EntityOptions(), table.name)


def _of_class(model: type, options: EntityOptions | None) -> Entity:
    mapper = _mapper(model)
    table: object = mapper.local_table
    if mapper.inherits is not None or not isinstance(table, sa.Table):
        msg = f"{model.__name__} inherits from another entity or spans several tables; add the class of one whole table"
        raise InvalidDefinition(msg)
    table = cast("Table", table)
    attributes = {column: attribute.key for attribute in mapper.column_attrs for column in attribute.columns}
    columns = [column for column in table.columns if column in attributes]
    names = field_names([attributes[column] for column in columns])
    fields = dict(zip(names, columns, strict=True))
    version = mapper.version_id_col
    return Entity(
        table,
        fields,
        options or options_of(model),
        model.__name__,
        relations=tuple(_relation(name, link) for name, link in mapper.relationships.items()),
        version=next((name for name, column in fields.items() if column is version), None),
        version_by_database=mapper.version_id_generator is False,
        doc=(vars(model).get("__doc__") or "").strip(),
    )


def _mapper(model: type) -> Mapper[Any]:
    try:
        mapper: object = sa.inspect(model)
    except NoInspectionAvailable:
        mapper = None
    if not isinstance(mapper, Mapper):
        msg = f"{getattr(model, '__name__', model)!r} is neither a class that SQLAlchemy maps nor a table"
        raise InvalidDefinition(msg)
    return cast("Mapper[Any]", mapper)


def _relation(name: str, link: RelationshipProperty[Any]) -> str:
    return f"{name}: {'several' if link.uselist else 'one'} of {getattr(link.target, 'name', 'another table')}"


def _check_options(entity: Entity) -> None:
    options = entity.options
    named = [*(options.searchable or ()), *options.read_only, *filter(None, [options.version])]
    unknown = next((name for name in named if name not in entity.fields), None)
    if unknown is not None:
        msg = f"{entity.name} has no field {unknown!r}; its fields are {', '.join(entity.fields)}"
        raise InvalidDefinition(msg)

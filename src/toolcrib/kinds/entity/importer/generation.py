"""Makes the tools of an entity: search, get, create, update, delete and count (`search_orders`, `get_order`, …).

Pure functions of tables and options. The report lists, by column, what a tool cannot support.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Any, Final, cast

import sqlalchemy as sa
from pydantic import ValidationError
from sqlalchemy.types import TypeEngine

from toolcrib.contracts import (
    SECRET_REFERENCE,
    DatabaseConnection,
    InvalidDefinition,
    JsonObject,
    JsonSchema,
    Loss,
    LossReport,
    OperationImport,
    ProviderDefinition,
    RetryPolicy,
    ToolDefinition,
    content_hash,
)
from toolcrib.core.providers.imports import MAX_NAME, Group, ImportedApi, Losses, tell_large_input, with_hash
from toolcrib.kinds.entity.importer.names import plural_of, singular_of, snake
from toolcrib.kinds.entity.importer.options import operation_name
from toolcrib.kinds.entity.importer.tables import Entity, field_of
from toolcrib.kinds.entity.shape import ROW_VERSION, ColumnType, EntityColumn, EntityImplementation, EntityOperation

_MOST_WORDS: Final = 500
"""Maximum number of characters of a column's description."""
_MOST_VALUES: Final = 100
"""Values of an enumeration that a schema lists."""
_FORMATS: Final[dict[ColumnType, JsonSchema]] = {
    "array": {"type": "array"},
    "boolean": {"type": "boolean"},
    "bytes": {"type": "string", "contentEncoding": "base64"},
    "date": {"type": "string", "format": "date"},
    "datetime": {"type": "string"},
    "decimal": {"type": "string"},
    "integer": {"type": "integer"},
    "json": {},
    "number": {"type": "number"},
    "string": {"type": "string"},
    "time": {"type": "string"},
    "uuid": {"type": "string", "format": "uuid"},
}

# In this order: a type is the first that it is an instance of.
_KINDS: Final[tuple[tuple[type, ColumnType], ...]] = (
    (sa.Boolean, "boolean"),
    (sa.Enum, "string"),
    (sa.Integer, "integer"),
    (sa.Float, "number"),
    (sa.Numeric, "decimal"),
    (sa.DateTime, "datetime"),
    (sa.Date, "date"),
    (sa.Time, "time"),
    (sa.Uuid, "uuid"),
    (sa.JSON, "json"),
    (sa.LargeBinary, "bytes"),
    (sa.types.BINARY, "bytes"),
    (sa.types.VARBINARY, "bytes"),
    (sa.ARRAY, "array"),
    (sa.String, "string"),
)
_AS_TEXT: Final = frozenset({"CIDR", "CITEXT", "INET", "MACADDR", "MACADDR8"})
"""Types of PostgreSQL that are text to everybody else."""


@dataclass(frozen=True, slots=True)
class FieldType:
    """What a column is to a tool."""

    type: ColumnType
    items: ColumnType | None = None


def field_type(column_type: TypeEngine[Any]) -> FieldType | None:
    """What a column of this type is to a tool; null if a tool cannot have it."""
    bare: object = getattr(column_type, "impl_instance", column_type)  # of a type that an application made
    found: list[ColumnType] = [kind for known, kind in _KINDS if isinstance(cast("object", bare), known)]
    if not found:
        return FieldType("string") if type(bare).__name__.upper() in _AS_TEXT else None
    if not isinstance(bare, sa.ARRAY):
        return FieldType(found[0])
    array = cast("sa.ARRAY[Any]", bare)
    element = field_type(array.item_type)
    return None if element is None or array.dimensions not in {None, 1} else FieldType("array", element.type)


def written_schema(column: sa.Column[Any], kind: FieldType, *, new: bool) -> JsonSchema:
    """The schema of a value that is given for a column, of a row that is new or of one that is there."""
    schema = dict(_FORMATS[kind.type])
    if kind.items is not None:
        schema["items"] = dict(_FORMATS[kind.items])
    if kind.type == "decimal":
        schema["type"] = ["string", "number"]
    values = enum_values(column.type)
    length = getattr(column.type, "length", None)
    if values:
        schema["enum"] = list(values)
    elif kind.type == "string" and isinstance(length, int):
        schema["maxLength"] = length
    if column.nullable:
        _allow_null(schema)
    words = describe_column(column, kind, new=new)
    return {**schema, "description": words} if words else schema


def read_schema(column: sa.Column[Any], kind: FieldType) -> JsonSchema:
    """The schema of a value that is read from a column: what its type promises, not what its constraints do."""
    schema: JsonSchema = {"type": _FORMATS[kind.type]["type"]} if kind.type != "json" else {}
    if column.nullable or kind.type == "number":  # a number that is not finite is null
        _allow_null(schema)
    words = comment_of(column)
    return {**schema, "description": words} if words else schema


def enum_values(column_type: TypeEngine[Any]) -> tuple[str, ...]:
    """The values that a column may have, as the database has them; empty for any."""
    return tuple(column_type.enums) if isinstance(column_type, sa.Enum) and column_type.enums else ()


def comment_of(column: sa.Column[Any]) -> str:
    """What the author of a column says about it; its name, if that says more than the field's."""
    words = column.doc or column.info.get("description") or column.comment
    words = words or ("" if column.name.isascii() else f"Column {column.name}")
    return " ".join(str(words).split())[:_MOST_WORDS]


def describe_column(column: sa.Column[Any], kind: FieldType, *, new: bool) -> str:
    """All that a caller has to know about a column to give a value for it."""
    keys = [f"Key of {target}." for key in column.foreign_keys if (target := _target(key))]
    parts = [_sentence(comment_of(column)), *keys, _form(column, kind), "Unique." if column.unique else ""]
    return " ".join(filter(None, [*parts, _default(column) if new else ""]))


def _allow_null(schema: JsonSchema) -> None:
    if "type" in schema:
        given = schema["type"]
        schema["type"] = [*([given] if isinstance(given, str) else given), "null"]
    if "enum" in schema:
        schema["enum"] = [*schema["enum"], None]


def _sentence(words: str) -> str:
    return words if not words or words.endswith((".", "!", "?")) else f"{words}."


def _target(key: sa.ForeignKey) -> str:
    return key.target_fullname


def _form(column: sa.Column[Any], kind: FieldType) -> str:
    match kind.type:
        case "decimal":
            scale = getattr(column.type, "scale", None)
            digits = "" if scale is None else f" with at most {scale} digits behind the point"
            return f"A decimal number{digits}, as text."
        case "datetime" if getattr(column.type, "timezone", False):
            return "Date and time with an offset, such as 2026-01-31T12:00:00Z."
        case "datetime":
            return "Date and time without an offset, such as 2026-01-31T12:00:00."
        case "time":
            return "Time of day, such as 12:30:00."
        case _:
            return ""


def _default(column: sa.Column[Any]) -> str:
    """What a row gets that is made without a value."""
    default = column.default
    if isinstance(default, sa.ColumnDefault) and default.is_scalar:
        return f"Default: {_word(column, default.arg)}."[:_MOST_WORDS]
    if column.server_default is None:
        return "" if default is None else "Filled in if it is left out."
    return "The database fills it in if it is left out."


def _word(column: sa.Column[Any], default: object) -> object:
    """A default as the database has it."""
    if not isinstance(default, Enum):
        return default
    return default.name if default.name in enum_values(column.type) else default.value


MAX_SKIP: Final = 100_000
"""Rows that a search may leave out before its first."""
MAX_FILTER: Final = 2_000
"""Characters of a filter."""

_FILTER: Final = (
    "OData 4.01 $filter over {fields}. Operators: eq ne gt ge lt le in and or not, add sub mul. Functions: contains "
    "startswith endswith tolower toupper trim length year month day hour minute second now. Text stands in single "
    "quotes, times as 2026-01-31T12:00:00Z. Example: {example}"
)
_NO_NAMES: Final[Mapping[str, str]] = MappingProxyType({})
_RETRIES: Final = RetryPolicy(count=2)
_HARMLESS: Final = frozenset[EntityOperation]({"search", "get", "count"})
_OF_MANY: Final = frozenset[EntityOperation]({"search", "count"})


@dataclass(frozen=True, slots=True)
class _Plan:
    """One entity with everything that its tools share."""

    entity: Entity
    provider: str
    singular: str
    plural: str
    types: Mapping[str, FieldType]
    """By field, in the table's order; what a tool cannot have is left out."""
    columns: dict[str, EntityColumn]
    key: tuple[str, ...]
    version: str | None
    version_by_database: bool

    @property
    def place(self) -> str:
        table = self.entity.table
        return f"/{table.schema}/{table.name}" if table.schema else f"/{table.name}"

    @property
    def about(self) -> str:
        table = self.entity.table
        words = self.entity.options.description or self.entity.doc or str(table.comment or "")
        return " ".join(words.split()) or ("" if table.name.isascii() else f"Table {table.name}")


def generate(
    name: str,
    entities: Sequence[Entity],
    *,
    names: Mapping[str, str] = _NO_NAMES,
    url: str | None = None,
    losses: Sequence[Loss] = (),
) -> ImportedApi:
    """Make a provider of a database and the tools of its entities.

    Where two tables come to the same name of a tool, the second one's gets a hash of its table.

    Args:
        name: The provider's.
        entities: What the tools work on.
        names: Tools' names of an earlier import by `search orders`, which stay.
        url: Reference to the database's URL; null if the application binds an engine.
        losses: What was lost before, of the database as a whole.

    Raises:
        InvalidDefinition: The provider's name is invalid.
    """
    tools: list[ToolDefinition] = []
    operations: list[OperationImport] = []
    groups: list[Group] = []
    names_in_use = set(names.values())
    for entity in entities:
        plan, lost = _plan(name, entity)
        made, report = _operations(plan, lost, names, names_in_use)
        tools += made
        operations += report
        groups.append(Group(plan.plural, len(made), plan.about[:200]))
    report = LossReport(format="Database", losses=tuple(losses), operations=tuple(operations))
    shape = content_hash([tool.model_dump(mode="json") for tool in tools])
    metadata: JsonObject = {"tables_hash": shape, "import": report.summary()}
    provider = provider_of(name, url).model_copy(update={"metadata": metadata})
    return ImportedApi(provider, tuple(tools), tuple(groups), report)


def provider_of(name: str, url: str | None) -> ProviderDefinition:
    """The provider that a database is.

    Raises:
        InvalidDefinition: The name is invalid, or the URL is no reference; the message does not repeat it.
    """
    if url is not None and not SECRET_REFERENCE.fullmatch(url):
        msg = "a database's URL is given by reference, such as ${env:SHOP_DATABASE_URL}; put it into that variable"
        raise InvalidDefinition(msg)
    try:
        return ProviderDefinition(name=name, connection=DatabaseConnection(url=url))
    except ValidationError as problem:
        msg = f"{name[:200]!r} is not a valid provider name: {problem.errors()[0]['msg']}"
        raise InvalidDefinition(msg) from None


def _plan(provider: str, entity: Entity) -> tuple[_Plan, tuple[Loss, ...]]:
    options, table = entity.options, entity.table
    called = snake(entity.name) or "row"
    singular = options.singular or singular_of(called)
    plural = options.plural or (plural_of(singular) if singular != called else plural_of(called))
    key = tuple(field_of(entity, column) for column in table.primary_key.columns)
    types: dict[str, FieldType] = {}
    losses: list[Loss] = []
    for field, column in entity.fields.items():
        kind = field_type(column.type)
        if kind is not None:
            types[field] = kind
            continue
        why = f"type {type(column.type).__name__} has no form in JSON"
        losses.append(Loss(effect="dropped", kind="unsupported", what=f"column {column.name}", why=why, places=()))
    changes = not {"update", "delete"} <= set(options.exclude)
    version = options.version or entity.version or ROW_VERSION
    plan = _Plan(
        entity,
        provider,
        singular,
        plural,
        types,
        {field: _column(entity, field, kind, version) for field, kind in types.items()},
        key,
        version if changes else None,
        entity.version_by_database and version == entity.version,
    )
    places = (plan.place,)
    return plan, tuple(loss.model_copy(update={"places": places}) for loss in losses)


def _column(entity: Entity, field: str, kind: FieldType, version: str) -> EntityColumn:
    column, options = entity.fields[field], entity.options
    automatic = (
        column is entity.table.autoincrement_column
        or column.computed is not None
        or (column.identity is not None and bool(column.identity.always))
        or column.onupdate is not None
        or column.server_onupdate is not None
    )
    comparable = kind.type not in {"json", "bytes", "array"}
    return EntityColumn(
        type=kind.type,
        items=kind.items,
        column=None if column.name == field else column.name,
        searchable=comparable and (options.searchable is None or field in options.searchable),
        writable=not automatic and field != version and field not in options.read_only,
    )


def _operations(
    plan: _Plan, lost: tuple[Loss, ...], names: Mapping[str, str], names_in_use: set[str]
) -> tuple[list[ToolDefinition], list[OperationImport]]:
    tools: list[ToolDefinition] = []
    report: list[OperationImport] = []
    for operation in plan.entity.options.operations:
        what = operation_name(operation, plan.entity.table.schema, plan.entity.table.name)
        why = _impossible(plan, operation)
        losses = lost
        if why is not None:
            left_out = Loss(effect="dropped", kind="operation", what="operation", why=why, places=(plan.place,))
            losses = (*lost, left_out)
        tool = (
            None
            if why is not None
            else _tool(plan, operation, names.get(what) or _free_name(plan, operation, names_in_use))
        )
        if tool is not None:
            tools.append(tool)
            noted = Losses()
            tell_large_input(tool.name, tool.input_schema, plan.place, noted)
            losses = (*losses, *noted.report())
        report.append(
            OperationImport(
                operation=what,
                place=plan.place,
                tool=None if tool is None else tool.name,
                group=None if tool is None else plan.plural,
                kept=() if tool is None else tuple(f"column {field}" for field in plan.columns),
                losses=losses,
            )
        )
    return tools, report


def _free_name(plan: _Plan, operation: EntityOperation, names_in_use: set[str]) -> str:
    """The name of a new tool, which then is taken."""
    name = f"{operation}_{plan.plural if operation in _OF_MANY else plan.singular}"
    if name in names_in_use or len(name) > MAX_NAME:
        what = operation_name(operation, plan.entity.table.schema, plan.entity.table.name)
        name = with_hash(name, what)
    names_in_use.add(name)
    return name


def _impossible(plan: _Plan, operation: EntityOperation) -> str | None:
    """Why an operation gets no tool, if it gets none."""
    missing = next((field for field in plan.key if field not in plan.types), None)
    if missing is not None:
        return f"left out: the key has {missing}, which a tool can neither give nor show"
    needed = [field for field in _required_fields(plan) if field not in plan.types or not plan.columns[field].writable]
    if needed and operation == "create":
        return f"left out: a row needs {needed[0]}, which a tool cannot give"
    if operation == "update" and not _changeable(plan):
        return "left out: there is nothing that a tool may change"
    return None


def _required_fields(plan: _Plan) -> list[str]:
    """Fields without which no row can be made."""
    return [
        field
        for field, column in plan.entity.fields.items()
        if (column.primary_key or not column.nullable)
        and column.default is None
        and column.server_default is None
        and column.identity is None
        and column.computed is None
        and column is not plan.entity.table.autoincrement_column
        and field != plan.version
    ]


def _changeable(plan: _Plan) -> list[str]:
    return [field for field, column in plan.columns.items() if column.writable and field not in plan.key]


def _tool(plan: _Plan, operation: EntityOperation, name: str) -> ToolDefinition:
    entity, options = plan.entity, plan.entity.options
    reads = operation in _HARMLESS
    repeatable = operation != "create"
    relations = f" Relations: {'; '.join(entity.relations)}." if entity.relations else ""
    description = _describe(plan, operation)
    return ToolDefinition(
        name=name,
        title=f"{operation.capitalize()} {(plan.plural if operation in _OF_MANY else plan.singular).replace('_', ' ')}",
        description=description,
        long_description=f"{description}{relations}" if relations else None,
        category=options.category or plan.provider,
        tags=tuple(dict.fromkeys((plan.plural, *options.tags))),
        source="auto_generated",
        input_schema=_INPUTS[operation](plan),
        output_schema=_output(plan, operation),
        side_effects="reads" if reads else "writes",
        idempotent=repeatable,
        transactional=not reads,
        retry=_RETRIES if repeatable else RetryPolicy(),
        implementation=EntityImplementation(
            provider=plan.provider,
            operation=operation,
            table=entity.table.name,
            table_schema=entity.table.schema,
            columns=plan.columns,
            key=plan.key,
            version_field=plan.version,
            version_by="database" if plan.version_by_database else "tool",
            max_rows=options.max_rows,
        ),
    )


def _describe(plan: _Plan, operation: EntityOperation) -> str:
    one, many = plan.singular.replace("_", " "), plan.plural.replace("_", " ")
    about = f" {plan.about.rstrip('.')}." if plan.about else ""
    by = " and ".join(plan.key)
    match operation:
        case "search":
            return f"Find {many} that meet a filter.{about}"
        case "count":
            return f"Count {many} that meet a filter.{about}"
        case "get":
            return f"Read one {one} by {by}.{about}"
        case "create":
            return f"Make one {one}.{about}"
        case "update":
            return (
                f"Change fields of one {one}; those that are left out stay. {plan.version} is the one that was read "
                f"with the {one}: if somebody has changed it since, nothing is written.{about}"
            )
        case "delete":
            return (
                f"Delete one {one} by {by}. {plan.version} is the one that was read with it: if somebody has changed "
                f"it since, it stays.{about}"
            )


def _filter_schema(plan: _Plan) -> JsonSchema:
    fields = [field for field, column in plan.columns.items() if column.searchable]
    words = _FILTER.format(fields=", ".join(fields) or "no field", example=_example(plan, fields))
    return {"type": "string", "maxLength": MAX_FILTER, "description": words}


def _example(plan: _Plan, fields: Sequence[str]) -> str:
    examples = {"string": "{} eq 'x'", "integer": "{} ge 1", "boolean": "{} eq true", "decimal": "{} lt 9.99"}
    found: list[str] = []
    for field in fields:
        values = enum_values(plan.entity.fields[field].type)
        kind = plan.columns[field].type
        found += [f"{field} eq '{values[0]}'"] if values else [examples[kind].format(field)] if kind in examples else []
    return " and ".join(found[:2]) or f"{plan.key[0]} ne null"


def _search_input(plan: _Plan) -> JsonSchema:
    searchable = [field for field, column in plan.columns.items() if column.searchable]
    most = plan.entity.options.max_rows
    return _object(
        {
            "filter": _filter_schema(plan),
            "order_by": {
                "type": "string",
                "maxLength": 500,
                "description": f"Fields, each with asc or desc, parted by commas: of {', '.join(searchable)}.",
            },
            "top": {"type": "integer", "minimum": 1, "maximum": most, "description": f"Most rows; {most} if left out."},
            "skip": {
                "type": "integer",
                "minimum": 0,
                "maximum": MAX_SKIP,
                "description": "Rows to leave out first; next_skip of the answer before goes on from there.",
            },
            "select": {
                "type": "array",
                "items": {"enum": list(plan.columns)},
                "minItems": 1,
                "description": "The fields that are wanted; all if left out.",
            },
        }
    )


def _count_input(plan: _Plan) -> JsonSchema:
    return _object({"filter": _filter_schema(plan)})


def _key_input(plan: _Plan) -> JsonSchema:
    return _object(_key(plan), required=plan.key)


def _create_input(plan: _Plan) -> JsonSchema:
    given = {field: _field_schema(plan, field, new=True) for field, column in plan.columns.items() if column.writable}
    return _object(given, required=_required_fields(plan))


def _update_input(plan: _Plan) -> JsonSchema:
    version_argument = _version_argument(plan)
    changes = {field: _field_schema(plan, field) for field in _changeable(plan)}
    return _object({**_key(plan), **version_argument, **changes}, required=[*plan.key, *version_argument])


def _delete_input(plan: _Plan) -> JsonSchema:
    version_argument = _version_argument(plan)
    return _object({**_key(plan), **version_argument}, required=[*plan.key, *version_argument])


_INPUTS: Final[Mapping[EntityOperation, Callable[[_Plan], JsonSchema]]] = {
    "search": _search_input,
    "count": _count_input,
    "get": _key_input,
    "create": _create_input,
    "update": _update_input,
    "delete": _delete_input,
}


def _key(plan: _Plan) -> JsonObject:
    return {field: _field_schema(plan, field) for field in plan.key}


def _version_argument(plan: _Plan) -> JsonObject:
    """The argument that says which version of the row was seen."""
    if plan.version is None:
        return {}
    words = "As it was read; the row is changed only if it still has it."
    if plan.version == ROW_VERSION:
        return {ROW_VERSION: {"type": "string", "description": words}}
    schema = _field_schema(plan, plan.version)
    return {plan.version: {**schema, "description": words}}


def _field_schema(plan: _Plan, field: str, *, new: bool = False) -> JsonSchema:
    return written_schema(plan.entity.fields[field], plan.types[field], new=new)


def _output(plan: _Plan, operation: EntityOperation) -> JsonSchema:
    row: JsonSchema = {"type": "object", "properties": _row(plan)}
    match operation:
        case "search":
            more = {"type": "boolean", "description": "Whether there are further rows."}
            skip = {"type": ["integer", "null"], "description": "The skip of the next call, if there are."}
            properties = {"items": {"type": "array", "items": row}, "more": more, "next_skip": skip}
            return _object(properties, required=list(properties))
        case "count":
            return _object({"count": {"type": "integer"}}, required=["count"])
        case "delete":
            return _object({"deleted": {"type": "boolean"}}, required=["deleted"])
        case _:
            return row


def _row(plan: _Plan) -> JsonObject:
    row: JsonObject = {field: read_schema(plan.entity.fields[field], kind) for field, kind in plan.types.items()}
    if plan.version == ROW_VERSION:
        row[ROW_VERSION] = {"type": "string", "description": "For an update or a deletion."}
    return row


def _object(properties: JsonObject, *, required: Sequence[str] = ()) -> JsonSchema:
    schema: JsonSchema = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**schema, "required": list(required)} if required else schema

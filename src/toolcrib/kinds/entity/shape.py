"""The shape of an entity tool: one operation on the rows of one table."""

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

from pydantic import Field

from toolcrib.contracts.base.base import Contract, JsonObject
from toolcrib.contracts.base.implementations import Implementation

EntityOperation: TypeAlias = Literal["search", "get", "create", "update", "delete", "count"]
ColumnType: TypeAlias = Literal[
    "array", "boolean", "bytes", "date", "datetime", "decimal", "integer", "json", "number", "string", "time", "uuid"
]

ROW_VERSION: Final = "row_version"
"""The field for a row's version if no column has it: a hash of the row's values."""


class EntityColumn(Contract):
    """A column as a tool sees it."""

    type: ColumnType
    items: ColumnType | None = None
    """What an array is made of."""
    column: str | None = None
    """Name in the database; the field's own if null."""
    searchable: bool = True
    """It may be used in filters and orders."""
    writable: bool = True
    """It may be given when a row is made or changed; one of the key only when it is made."""


class EntityImplementation(Implementation):
    """One operation on one table. The statement is made of bound parameters and of the names below, never of text."""

    kind: Literal["entity"] = "entity"
    provider: str
    """The database."""
    operation: EntityOperation
    table: str
    table_schema: str | None = None
    """The database's schema that holds the table."""
    columns: dict[str, EntityColumn]
    """By field name; the only columns that are read or written."""
    key: tuple[str, ...]
    """Fields of the primary key; empty for a view, which is only searched and counted."""
    version_field: str | None = None
    """Field that changes with each update: an update or a deletion names the one that it has seen. A column, or
    `ROW_VERSION`; null if nothing of the table is updated or deleted."""
    version_by: Literal["tool", "database"] = "tool"
    """Who changes a column that is the version: an update counts an integer up and renews anything else, or the
    database does it."""
    max_rows: int = Field(default=100, ge=1, le=1000)
    """Rows of one answer."""

    @property
    def provider_name(self) -> str:
        """Name of the provider, the database."""
        return self.provider

    def deletes(self, arguments: Mapping[str, Any]) -> bool:
        """Whether the operation is `delete`."""
        del arguments
        return self.operation == "delete"

    def client_operation(self) -> JsonObject:
        """The operation, and the table."""
        return {"provider": self.provider, "operation": self.operation, "table": self.table}

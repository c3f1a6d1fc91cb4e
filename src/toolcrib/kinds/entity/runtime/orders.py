"""The order of rows: `created_at desc, id`, over the searchable columns of one table."""

import re
from collections.abc import Mapping
from typing import Any, Final

import sqlalchemy as sa

from toolcrib.contracts import InvalidInput
from toolcrib.kinds.entity.runtime.values import Field

MAX_FIELDS: Final = 8
_ENTRY: Final = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*)(?:\s+(asc|desc))?\s*")


def read_order(text: str, fields: Mapping[str, Field], *, dialect: str) -> list[sa.ColumnElement[Any]]:
    """What rows are ordered by. Null comes before everything else, as in OData 4.01 (URL conventions, 5.1.5).

    Args:
        text: Fields, each with `asc` or `desc`, parted by commas.
        fields: Those of the tool.
        dialect: Name of the database's.

    Raises:
        InvalidInput: It is no order, or one by what there is not.
    """
    entries = text.split(",")
    if len(entries) > MAX_FIELDS:
        raise InvalidInput(f"order_by names {len(entries)} fields, and {MAX_FIELDS} are the most; leave some out")
    return [_read_entry(entry, fields, dialect) for entry in entries]


def _read_entry(entry: str, fields: Mapping[str, Field], dialect: str) -> sa.ColumnElement[Any]:
    match = _ENTRY.fullmatch(entry)
    field = fields.get(match[1]) if match else None
    if match is None or field is None or not field.about.searchable:
        known = ", ".join(name for name, each in fields.items() if each.about.searchable)
        raise InvalidInput(f"order_by has {entry.strip()[:100]!r}, which is no field to order by; there are: {known}")
    descending = match[2] == "desc"
    ordered = field.compared.desc() if descending else field.compared.asc()
    if dialect != "postgresql" or not field.column.nullable:
        return ordered
    return ordered.nulls_last() if descending else ordered.nulls_first()

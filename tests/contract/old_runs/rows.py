"""All rows of a store as one compressed JSON document, and back into a database: any engine, any newer schema."""

import base64
import lzma
from pathlib import Path
from typing import Any, Final

import orjson
import sqlalchemy as sa

from toolcrib.infrastructure.store.database.dialect import Dialect
from toolcrib.infrastructure.store.database.postgres import Postgres
from toolcrib.infrastructure.store.database.schema import migrate
from toolcrib.infrastructure.store.database.sqlite import Sqlite

_CHUNK: Final = 500
_BYTES: Final = "blob_bytes"


def _dialect(url: str) -> Dialect:
    return Sqlite(url) if url.startswith("sqlite") else Postgres(url)


def export(url: str, file: Path, **beside: Any) -> None:
    """Write the rows of a store that nobody has open, and whatever else is to be kept with them."""
    document: dict[str, Any] = {**beside, "tables": {}, "blobs": {}}
    with _dialect(url).create() as connection:
        document["revision"] = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar_one()
        for name in sorted(sa.inspect(connection).get_table_names()):
            table = sa.Table(name, sa.MetaData(), autoload_with=connection)
            found = connection.execute(sa.select(table).order_by(*table.primary_key.columns)).all()
            if name != "alembic_version" and found:
                rows = [[_packed(value) for value in row] for row in found]
                document["tables"][name] = {"columns": [column.name for column in table.columns], "rows": rows}
    for blob in sorted(path for path in _blobs(url).rglob("*") if path.is_file()):
        document["blobs"][str(blob.relative_to(_blobs(url)))] = _packed(blob.read_bytes())
    packed = lzma.compress(orjson.dumps(document), preset=9 | lzma.PRESET_EXTREME)
    file.write_bytes(packed)


def read(file: Path) -> dict[str, Any]:
    """What `export` wrote."""
    return orjson.loads(lzma.decompress(file.read_bytes()))


def load(url: str, document: dict[str, Any]) -> None:
    """Make a database as the release left it, in which all that waits for a moment has waited long enough."""
    dialect = _dialect(url)
    with dialect.create() as connection:
        dialect.begin(connection.connection.cursor())
        migrate(connection, document["revision"])
        tables = sa.MetaData()
        tables.reflect(connection)
        for table in tables.sorted_tables:
            kept = document["tables"].get(table.name)
            if kept is not None:
                _insert(connection, table, [dict(zip(kept["columns"], row, strict=True)) for row in kept["rows"]])
        connection.connection.commit()
    for path, data in document["blobs"].items():
        blob = _blobs(url) / path
        blob.parent.mkdir(parents=True, exist_ok=True)
        blob.write_bytes(base64.b85decode(data))
    let_waits_be_over(url)


def let_waits_be_over(url: str) -> None:
    """Have every run that waits for a moment, or whose process has died, be one that can go on."""
    with _dialect(url).create() as connection:
        connection.exec_driver_sql("UPDATE runs SET claimable_at = 1 WHERE claimable_at IS NOT NULL")
        connection.connection.commit()


def _blobs(url: str) -> Path:
    """Where a store on SQLite has its blobs; one on PostgreSQL has them in rows."""
    file = Path(url.removeprefix("sqlite:///"))
    return file.with_name(f"{file.stem}-blobs")


def _insert(connection: sa.Connection, table: sa.Table, rows: list[dict[str, Any]]) -> None:
    if table.name == _BYTES:
        rows = [{**row, "data": base64.b85decode(row["data"])} for row in rows]
    for start in range(0, len(rows), _CHUNK):
        connection.execute(sa.insert(table), rows[start : start + _CHUNK])


def _packed(value: Any) -> Any:
    return base64.b85encode(value).decode() if isinstance(value, bytes) else value

"""Opens a store by URL, and imports only that store."""

from pathlib import Path

from toolcrib.contracts import InvalidSettings, Unavailable
from toolcrib.contracts.base.errors import missing_extra
from toolcrib.infrastructure.store.blobs.files import FolderObjects, open_objects
from toolcrib.infrastructure.store.memory.memory_store import MemoryStore
from toolcrib.infrastructure.store.ports.store import Store

_CHOICES = (
    "use memory:// or sqlite:///path/to/file.db (relative to the working directory) or "
    "postgresql://user:password@host/database"
)


def open_store(url: str, *, blobs: str | None = None) -> Store:
    """The store that a URL names, not connected yet: `await store.open()` does that.

    Args:
        url: `memory://`, or `sqlite:///path`, relative to the working directory (`sqlite:////path` is absolute), or
            `postgresql://user:password@host:port/database?parameter=…`, as libpq reads it.
        blobs: Where blobs lie, as `open_objects` reads it. If null, in the folder `crib-blobs` beside `crib.db`, or in
            the database itself if that is PostgreSQL.

    Raises:
        InvalidSettings: No store, or no place of blobs, has such a URL, or the store keeps its blobs itself.
        Unavailable: The driver of PostgreSQL is not installed.
    """
    scheme, separator, path = url.partition("://")
    if scheme == "memory" and separator and path in {"", "/"}:
        if blobs is not None:
            raise InvalidSettings(
                "a store in memory keeps its blobs in memory; use another store to choose their location"
            )
        return MemoryStore()
    if scheme == "sqlite" and path.startswith("/") and path.strip("/") not in {"", ":memory:"}:
        return _sqlite(url, Path(path[1:]), blobs)
    if scheme == "sqlite":
        msg = f"store URL {url!r} names no file; {_CHOICES}"
        raise InvalidSettings(msg)
    if scheme in {"postgresql", "postgres"}:
        return _postgres(url, blobs)
    if not separator or not scheme.replace("+", "").isalnum():  # may have a password
        msg = f"a store URL begins with a scheme and '://'; {_CHOICES}"
        raise InvalidSettings(msg)
    msg = f"store URL with unknown scheme {scheme!r}; {_CHOICES}"
    raise InvalidSettings(msg)


def _sqlite(url: str, file: Path, blobs: str | None) -> Store:
    from toolcrib.infrastructure.store.database.sqlite import Sqlite  # noqa: PLC0415 - loads SQLAlchemy, which a memory store does not need
    from toolcrib.infrastructure.store.sql.sql_store import SqlStore  # noqa: PLC0415 - as above

    beside = FolderObjects(file.with_name(f"{file.stem}-blobs"))
    return SqlStore(Sqlite(url), blobs=beside if blobs is None else open_objects(blobs))


def _postgres(url: str, blobs: str | None) -> Store:
    from toolcrib.infrastructure.store.sql.sql_store import SqlStore  # noqa: PLC0415 - loads SQLAlchemy, which a memory store does not need

    try:
        from toolcrib.infrastructure.store.database.postgres import Postgres  # noqa: PLC0415 - an optional driver
    except ModuleNotFoundError as missing:
        raise Unavailable(missing_extra("a store on PostgreSQL", missing.name, "postgres")) from missing
    return SqlStore(Postgres(url), blobs=None if blobs is None else open_objects(blobs))

"""From a URL to a store. Only the store that is asked for is imported."""

from pathlib import Path

from toolcrib.contracts import InvalidSettings
from toolcrib.store.memory import MemoryStore
from toolcrib.store.ports import Store

_CHOICES = "use memory:// or sqlite:///path/to/file.db (relative to the working directory)"


def open_store(url: str) -> Store:
    """The store that a URL names, not connected yet: `await store.open()` does that.

    Args:
        url: `memory://`, or `sqlite:///path`, relative to the working directory (`sqlite:////path` is absolute). The
            blobs of `crib.db` are files in the folder `crib-blobs` beside it.

    Raises:
        InvalidSettings: No store has such a URL.
    """
    scheme, separator, path = url.partition("://")
    if scheme == "memory" and separator and path in {"", "/"}:
        return MemoryStore()
    if scheme == "sqlite" and path.startswith("/") and path.strip("/") not in {"", ":memory:"}:
        return _sqlite(url, Path(path[1:]))
    if scheme == "sqlite":
        msg = f"store URL {url!r} names no file; {_CHOICES}"
        raise InvalidSettings(msg)
    msg = f"store URL with unknown scheme {scheme!r}; {_CHOICES}"
    raise InvalidSettings(msg)


def _sqlite(url: str, file: Path) -> Store:
    from toolcrib.store.sql import SqlStore  # noqa: PLC0415 - loads SQLAlchemy, which a memory store does not need

    return SqlStore(url, blobs=file.with_name(f"{file.stem}-blobs"))

"""Names of tools that every model provider takes; what is too long or not unique ends in a hash of where it is from."""

from typing import Final

from toolcrib.contracts import digest

MAX_NAME: Final = 64
"""Characters of a tool's name that every model provider takes."""
_HASH: Final = 8


def hashed(name: str, origin: str) -> str:
    """The name, shortened if need be, with a hash of what nothing else is named by."""
    stem = name[: MAX_NAME - _HASH - 1].rstrip("_-")
    return f"{stem}_{digest(origin.encode(errors='replace'))[:_HASH]}"


def fitting(name: str) -> str:
    """The name, or its beginning and its hash if it is too long."""
    return name if len(name) <= MAX_NAME else hashed(name, name)

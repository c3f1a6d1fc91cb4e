"""JSON pointers (RFC 6901): the names in them, and what they lead to in a document."""

import re
from typing import Final, cast

from toolcrib.contracts.base.base import Json, JsonObject

_INDEX: Final = re.compile(r"[0-9]{1,9}")


def escaped(name: str) -> str:
    """A name as it is written in a pointer: `a/b` as `a~1b`."""
    return name.replace("~", "~0").replace("/", "~1")


def unescaped(written: str) -> str:
    """The name that is written in a pointer: `a~1b` as `a/b`."""
    return written.replace("~1", "/").replace("~0", "~")


def pointer_names(pointer: str) -> list[str]:
    """The names in a pointer, `deals` and `0` in `/deals/0`; a `#` before it, as in a `$ref`, is passed over."""
    return [unescaped(written) for written in pointer.removeprefix("#").split("/")[1:]]


def pointed(document: Json, pointer: str) -> Json:
    """What a pointer leads to; null if that is nowhere."""
    node = document
    for name in pointer_names(pointer):
        if isinstance(node, dict):
            node = cast("JsonObject", node).get(name)
        elif isinstance(node, list) and _INDEX.fullmatch(name):
            items = cast("list[Json]", node)
            node = items[int(name)] if int(name) < len(items) else None
        else:
            return None
    return node

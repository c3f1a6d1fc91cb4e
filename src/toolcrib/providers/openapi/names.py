"""Names of tools and arguments: legal for every model provider, unique, and the same however the document grows."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

from toolcrib.contracts import digest
from toolcrib.providers.openapi.operations import Operation

MAX_NAME: Final = 64

_ILLEGAL_IN_TOOL: Final = re.compile(r"[_-]*[^A-Za-z0-9_-][^A-Za-z0-9]*")
_ILLEGAL_IN_ARGUMENT: Final = re.compile(r"[^A-Za-z0-9_.-]+")
_PLACEHOLDER: Final = re.compile(r"\{([^{}]*)\}")


def tool_names(operations: Sequence[Operation]) -> list[str]:
    """One name per operation, `[A-Za-z][A-Za-z0-9_-]{0,63}`.

    It is the operationId, made legal; without one, method and path. Where two operations come to the same name, the one
    whose operationId is that name keeps it, else the first; the others get a hash of their method and path.
    """
    wanted = [_tool_name(operation) for operation in operations]
    owners: dict[str, int] = {}
    for index, (name, operation) in enumerate(zip(wanted, operations, strict=True)):
        if name not in owners or (operation.operation_id == name and operations[owners[name]].operation_id != name):
            owners[name] = index
    return [
        name if owners[name] == index else _hashed(name, operation.key)
        for index, (name, operation) in enumerate(zip(wanted, operations, strict=True))
    ]


def argument_names(wanted: Sequence[tuple[str, str]]) -> list[str]:
    """One argument name per (place, name on the wire), in order of precedence.

    The first of several equal names keeps it; the others get their place as a suffix: `id`, `id_query`, `id_body`.
    """
    stems = [_legal(_ILLEGAL_IN_ARGUMENT, name) or place for place, name in wanted]
    firsts = {stem: index for index, stem in reversed(list(enumerate(stems)))}
    taken = Counter(firsts.keys())
    names: list[str] = []
    for index, (stem, (place, _)) in enumerate(zip(stems, wanted, strict=True)):
        name = stem if firsts[stem] == index else f"{stem[: MAX_NAME - 10]}_{place}"
        if name != stem or firsts[stem] != index:
            taken[name] += 1
            if taken[name] > 1:
                name = f"{name}_{taken[name]}"
        names.append(name)
    return names


def _tool_name(operation: Operation) -> str:
    written = operation.operation_id or operation.method.lower() + _PLACEHOLDER.sub(r"by_\1", operation.path)
    name = _ILLEGAL_IN_TOOL.sub("_", written).strip("_-")
    if not name[:1].isalpha():
        name = f"{operation.method.lower()}_{name}".rstrip("_")
    return name if len(name) <= MAX_NAME else _hashed(name, written)


def _hashed(name: str, origin: str) -> str:
    return f"{name[: MAX_NAME - 9].rstrip('_-')}_{digest(origin.encode())[:8]}"


def _legal(illegal: re.Pattern[str], name: str) -> str:
    return illegal.sub("_", name).strip("_")[:MAX_NAME]

"""Names of tools and arguments: legal for every model provider, unique, and the same however the document grows."""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

from toolcrib.core.providers.names import MAX_NAME, hashed
from toolcrib.kinds.http.openapi.operations.parts import Operation

_ILLEGAL_IN_TOOL: Final = re.compile(r"[_-]*[^A-Za-z0-9_-][^A-Za-z0-9]*")
_ILLEGAL_IN_ARGUMENT: Final = re.compile(r"[^A-Za-z0-9_.-]+")
_PLACEHOLDER: Final = re.compile(r"\{([^{}]*)\}")


def tool_names(operations: Sequence[Operation], known: Mapping[str, str]) -> list[str]:
    """One name per operation, `[A-Za-z][A-Za-z0-9_-]{0,63}`.

    It is the operationId, made legal; without one, method and path. So nothing but the operation itself decides, except
    where several come to the same name: the one whose operationId is that very name keeps it, else the first by path
    and method, whatever the order of the document; the others get a hash of their method and path. A name that an
    operation has had in an earlier import it keeps in any case.

    Args:
        operations: All of a document.
        known: Names of an earlier import by `GET /path`.
    """
    claims: defaultdict[str, list[tuple[bool, bool, str, str]]] = defaultdict(list)
    wanted = [_tool_name(operation) for operation in operations]
    for name, operation in zip(wanted, operations, strict=True):
        kept = known.get(operation.key) == name
        claims[name].append((not kept, operation.operation_id != name, operation.path, operation.method))
    best = {name: min(claimed) for name, claimed in claims.items()}
    taken = set(known.values())
    names: list[str] = []
    for name, operation in zip(wanted, operations, strict=True):
        is_new, _, *first = best[name]
        owns = first == [operation.path, operation.method] and (name not in taken or not is_new)
        names.append(known.get(operation.key) or (name if owns else hashed(name, operation.key)))
    return names


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
    return name if len(name) <= MAX_NAME else hashed(name, written)


def _legal(illegal: re.Pattern[str], name: str) -> str:
    return illegal.sub("_", name).strip("_")[:MAX_NAME]

"""Proof that an import loses nothing in silence: take each leaf of a document away, or change it, and import again.

A leaf counts as told if the tools, the provider or the groups change with it, or if the report names its place or one
above. What is left says nothing: either it repeats what holds anyway, so that changing it is seen, or it is lost.
"""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any, NamedTuple, cast

import orjson

from toolcrib.contracts import InvalidDefinition, JsonObject
from toolcrib.core.providers import ImportedApi
from toolcrib.kinds.http.openapi import import_openapi


class Leaf(NamedTuple):
    """A scalar or an empty container of a document."""

    place: str
    parent: Any
    key: Any


def silent_losses(document: JsonObject, *, every: int = 1, start: int = 0) -> list[str]:
    """Places of the leaves that are neither in the import nor in its report.

    Args:
        document: A parsed document.
        every: Only each leaf of so many is tried, for large documents.
        start: The first leaf that is tried.
    """
    document = deepcopy(document)
    before = _import(document)
    told = _places(before)
    content = _content(before)
    return [
        leaf.place
        for leaf in list(_leaves(document, ""))[start::every]
        if not _is_told(leaf.place, told) and not _is_seen(document, leaf, content)
    ]


def members(value: Any) -> list[tuple[Any, Any]]:
    """Keys and values of an object, or places and values of a list."""
    if isinstance(value, dict):
        return list(cast("JsonObject", value).items())
    return list(enumerate(cast("list[Any]", value))) if isinstance(value, list) else []


def _leaves(value: Any, place: str) -> Iterator[Leaf]:
    for key, member in members(value):
        here = f"{place}/{str(key).replace('~', '~0').replace('/', '~1')}"
        if isinstance(member, dict | list) and member:
            yield from _leaves(member, here)
        else:
            yield Leaf(here, value, key)


def _is_told(place: str, told: frozenset[str]) -> bool:
    parts = place.split("/")
    return any("/".join(parts[:length]) in told for length in range(1, len(parts) + 1))


def _is_seen(document: JsonObject, leaf: Leaf, content: bytes) -> bool:
    old = leaf.parent[leaf.key]
    try:
        for new in _others(old):
            leaf.parent[leaf.key] = new
            if _content(_import(document)) != content:
                return True
    finally:
        leaf.parent[leaf.key] = old
    return False


def _others(value: Any) -> list[Any]:
    """Values that a document could have instead of one."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int | float):
        return [value + 1]
    if isinstance(value, str):
        return [f"{value}x", "", "false" if value == "true" else "true"]
    return [["x"], {"x": {}}, "x"]


def _import(document: JsonObject) -> ImportedApi | None:
    try:
        return import_openapi(document, name="api")
    except InvalidDefinition:
        return None


def _places(api: ImportedApi | None) -> frozenset[str]:
    return frozenset(place for loss in api.losses for place in loss.places) if api else frozenset()


def _content(api: ImportedApi | None) -> bytes:
    if api is None:
        return b"refused"
    metadata = {key: value for key, value in api.provider.metadata.items() if key != "document_hash"}
    provider = api.provider.model_copy(update={"metadata": metadata})
    tools = [tool.model_dump(mode="json") for tool in api.tools]
    groups = [(group.name, group.tools, group.description) for group in api.groups]
    losses = [loss.model_dump(mode="json") for loss in api.losses]
    return orjson.dumps([provider.model_dump(mode="json"), tools, groups, losses], option=orjson.OPT_SORT_KEYS)

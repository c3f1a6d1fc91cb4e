"""The document as a whole: the fields above its operations, and the components that no operation uses."""

from collections.abc import Iterator
from typing import cast

from toolcrib.contracts import Json, JsonObject
from toolcrib.providers.openapi.document import Document
from toolcrib.providers.openapi.fields import COMPONENTS, DOCUMENT, INFO, account
from toolcrib.providers.openapi.losses import Losses

_CONTAINERS = ("schemas", "parameters", "responses", "requestBodies", "headers", "pathItems", "mediaTypes")
_LEGACY_CONTAINERS = ("definitions", "parameters", "responses")


def account_document(document: Document, losses: Losses) -> None:
    """Report what the document says beside its operations and no tool can say."""
    root = document.root
    account(root, DOCUMENT, losses)
    account(root.get("info"), INFO, losses)
    if root.get("info").has("description"):
        losses.dropped("/info/description", "annotation", "description", "no tool says it")
    components = root.get("components")
    account(components, COMPONENTS, losses)
    if not root.get("paths").object:
        losses.dropped("/paths", "operation", "paths", "there is none: no tool comes of this document")


def account_components(document: Document, converted: frozenset[str], losses: Losses) -> None:
    """Report the shared parts that nothing uses.

    Args:
        document: The document.
        converted: Places of the schemas that tools are made of.
        losses: Takes those that neither they nor the operations reach.
    """
    root = document.root
    components = root.get("components")
    used = _used(document) | converted
    legacy = [root.get(name) for name in _LEGACY_CONTAINERS] if document.dialect == "2.0" else []
    for container in (*(components.get(name) for name in _CONTAINERS), *legacy):
        for name, member in container.members():
            if member.place not in used:
                losses.dropped(member.place, "unused", f"component {name}", "no operation refers to it")


def _used(document: Document) -> frozenset[str]:
    """Places of all components that are reached from the operations by references."""
    found: set[str] = set()
    waiting = [document.root.get("paths")]
    while waiting:
        node = waiting.pop()
        for reference in _references(node.value):
            target = document.library.find(reference, node.base)
            if target is not None and target.place not in found:
                found.add(target.place)
                waiting.append(target)
    return frozenset(found)


def _references(value: Json) -> Iterator[str]:
    """All texts that stand as `$ref` or `$dynamicRef`."""
    waiting: list[Json] = [value]
    while waiting:
        here = waiting.pop()
        if isinstance(here, dict):
            members = cast("JsonObject", here)
            for key in ("$ref", "$dynamicRef"):
                if isinstance(members.get(key), str):
                    yield members[key]
            waiting.extend(members.values())
        elif isinstance(here, list):
            waiting.extend(cast("list[Json]", here))

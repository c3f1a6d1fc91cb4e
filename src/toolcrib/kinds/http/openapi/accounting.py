"""The document as a whole: the fields above its operations, and the components that no tool is made of."""

from collections.abc import Iterable
from typing import Final

from toolcrib.core.providers.losses import Losses
from toolcrib.kinds.http.openapi.read.document import Document
from toolcrib.kinds.http.openapi.read.fields import COMPONENTS, DOCUMENT, INFO, account

_CONTAINERS: Final = ("schemas", "parameters", "responses", "requestBodies", "headers", "pathItems", "mediaTypes")
_LEGACY_CONTAINERS: Final = ("definitions", "parameters", "responses")


def account_document(document: Document, losses: Losses) -> None:
    """Report what the document says beside its operations and no tool can say."""
    root = document.root
    account(root, DOCUMENT, losses)
    account(root.get("info"), INFO, losses)
    if root.get("info").has("description"):
        losses.dropped("/info/description", "annotation", "description", "no tool says it")
    for key in ("consumes", "produces"):
        for entry in root.get(key).entries():
            losses.changed(entry.place, "annotation", key, "holds for the operations that do not say it themselves")
    account(root.get("components"), COMPONENTS, losses)
    if not root.get("paths").object:
        losses.dropped("/paths", "operation", "paths", "there is none: no tool comes of this document")


def account_components(document: Document, losses: Losses) -> None:
    """Report the shared parts that nothing has asked for, once all tools are made."""
    root, reached = document.root, _with_ancestors(document.library.reached)
    legacy = [root.get(name) for name in _LEGACY_CONTAINERS] if document.dialect == "2.0" else []
    for container in (*(root.get("components").get(name) for name in _CONTAINERS), *legacy):
        for name, member in container.members():
            if member.place not in reached:
                losses.dropped(member.place, "unused", f"component {name}", "no tool is made of it")


def _with_ancestors(places: Iterable[str]) -> set[str]:
    """Places, and those that they stand inside of."""
    found: set[str] = set()
    for place in places:
        inside = place
        while inside and inside not in found:
            found.add(inside)
            inside = inside.rpartition("/")[0]
    return found

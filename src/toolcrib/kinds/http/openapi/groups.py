"""Groups of operations that a model can search: by tag, else by the first telling segment of the path."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

from toolcrib.core.providers.imports import MAX_GROUP_DESCRIPTION, Group, slug
from toolcrib.core.providers.losses import Losses
from toolcrib.core.providers.prose import plain, trimmed
from toolcrib.kinds.http.openapi.operations.parts import Operation
from toolcrib.kinds.http.openapi.read.document import Document
from toolcrib.kinds.http.openapi.read.fields import TAG, account

_ELSEWHERE: Final = "other"
_NOT_TELLING: Final = re.compile(r"(v?[0-9]+([._-][0-9a-z]+)*|api|apis|rest|\{.*\}|)", re.IGNORECASE)


def group_of(operation: Operation) -> str:
    """The name of an operation's group."""
    for tag in operation.tags:
        if name := slug(tag):
            return name
    for segment in operation.path.partition("?")[0].split("/"):
        if not _NOT_TELLING.fullmatch(segment) and (name := slug(segment)):
            return name
    return _ELSEWHERE


def read_groups(document: Document, names: Sequence[str], losses: Losses) -> tuple[Group, ...]:
    """The groups of some tools in the order of their first tool, each with what the document says about its tag.

    Args:
        document: Its Tag Objects describe groups.
        names: The group of each tool.
        losses: Takes the tags that are not used.
    """
    sizes = Counter(names)
    described: dict[str, str] = {}
    for node in document.root.get("tags").entries():
        account(node, TAG, losses)
        name = slug(node.text("name"))
        if name not in sizes:
            losses.dropped(node.place, "unused", f"tag {node.text('name')[:100]}", "no operation is grouped by it")
            continue
        text = plain(node.text("description"))
        if len(text) > MAX_GROUP_DESCRIPTION:
            place = node.get("description").place
            losses.changed(place, "text", "description of a tag", f"cut to {MAX_GROUP_DESCRIPTION} characters")
        described.setdefault(name, trimmed(text, MAX_GROUP_DESCRIPTION))
    return tuple(Group(name, size, described.get(name, "")) for name, size in sizes.items())

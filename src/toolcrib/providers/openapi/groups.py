"""Groups of operations that a model can search: by tag, else by the first telling segment of the path."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

from toolcrib.providers.imported import MAX_GROUP_DESCRIPTION, Group, slug
from toolcrib.providers.losses import Losses
from toolcrib.providers.openapi.document import Document
from toolcrib.providers.openapi.fields import TAG, account
from toolcrib.providers.openapi.parts import Operation
from toolcrib.providers.prose import plain, trimmed

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

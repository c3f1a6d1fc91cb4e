"""Reads YAML with the value types of JSON, and finds the line of a value in YAML or JSON for error messages.

`2026-01-31T12:00:00Z` is text, as in JSON.
"""

from typing import TYPE_CHECKING, ClassVar, Final

from yaml import SafeLoader

_TIMESTAMP: Final = "tag:yaml.org,2002:timestamp"


class JsonLoader(SafeLoader):
    """Reads plain YAML, except that it makes no dates."""

    yaml_implicit_resolvers: ClassVar = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag != _TIMESTAMP]
        for first, resolvers in SafeLoader.yaml_implicit_resolvers.items()
    }


if TYPE_CHECKING:
    from yaml import Node


def line_of(text: str, pointer: str) -> int:
    """The line, from 1, of what a JSON pointer leads to, or of the last part of the way that there is.

    Args:
        text: YAML, or JSON, that can be read.
        pointer: RFC 6901.
    """
    import yaml

    node = yaml.SafeLoader(text).get_single_node()
    line = 1
    for part in pointer.split("/")[1:]:
        found = None if node is None else _below(node, part.replace("~1", "/").replace("~0", "~"))
        if found is None:
            break
        line, node = found
    return line


def _below(node: "Node", part: str) -> "tuple[int, Node] | None":
    import yaml

    if isinstance(node, yaml.MappingNode):
        for name, value in node.value:
            if name.value == part:
                return name.start_mark.line + 1, value
    elif isinstance(node, yaml.SequenceNode) and part.isdecimal() and int(part) < len(node.value):
        found = node.value[int(part)]
        return found.start_mark.line + 1, found
    return None

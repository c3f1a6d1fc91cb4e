"""Reads YAML with the value types of JSON, and finds the line of a value in YAML or JSON for error messages.

`2026-01-31T12:00:00Z` is text, as in JSON. A file can have several documents, separated by `---`.
"""

from collections.abc import Iterator
from typing import Any, ClassVar, Final, NamedTuple, cast

import yaml
from yaml import Node, SafeLoader

from toolcrib.contracts import Json

_TIMESTAMP: Final = "tag:yaml.org,2002:timestamp"
_MOST_VALUES: Final = 500_000
"""Of one document, each alias counted as what it stands for."""


class JsonLoader(SafeLoader):
    """Reads plain YAML, except that it makes only what JSON has: no dates, bytes or sets."""

    yaml_implicit_resolvers: ClassVar = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag != _TIMESTAMP]
        for first, resolvers in SafeLoader.yaml_implicit_resolvers.items()
    }


for _tag in ("binary", "omap", "pairs", "set", "timestamp"):
    JsonLoader.add_constructor(f"tag:yaml.org,2002:{_tag}", cast("Any", JsonLoader).construct_undefined)


class YamlDocument(NamedTuple):
    """One document of a file."""

    content: Json
    node: Node

    def line_of(self, pointer: str) -> int:
        """The line, from 1, of what a JSON pointer leads to, or of the last part of the way that there is."""
        return _line_in(self.node, pointer)

    def repeated_names(self) -> Iterator[tuple[int, str]]:
        """Line and name of each name that stands twice in one mapping; YAML would use the last one."""
        return _repeated(self.node)


def documents_in(text: str) -> Iterator[YamlDocument]:
    """The documents of a text, without those that are empty.

    Raises:
        yaml.YAMLError: It is not YAML, has a type that JSON does not have, is nested too deeply, or its aliases make it
            too large.
    """
    loader: Any = JsonLoader(text)
    try:
        while loader.check_node():
            node = loader.get_node()
            _size_of(node, {})
            content = loader.construct_document(node)
            if content is not None:
                yield YamlDocument(content, node)
    except RecursionError as problem:
        mark = loader.get_mark()
        raise yaml.MarkedYAMLError(problem="it is nested too deeply; take levels out", problem_mark=mark) from problem
    finally:
        loader.dispose()


def _size_of(node: Node, known: dict[int, int | None]) -> int:
    """Values of a document when its aliases are written out; `known` has those of its parts, null while inside.

    Raises:
        yaml.YAMLError: There are too many, or endlessly many.
    """
    if id(node) not in known:
        known[id(node)] = None
        size = 1 + sum(_size_of(part, known) for part in _parts(node))
        if size > _MOST_VALUES:
            problem = f"with its aliases it has more than {_MOST_VALUES:,} values; use fewer aliases, or divide it"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
        known[id(node)] = size
    found = known[id(node)]
    if found is None:
        problem = "an anchor contains an alias of itself; write it out"
        raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
    return found


def _parts(node: Node) -> Iterator[Node]:
    if isinstance(node, yaml.SequenceNode):
        yield from node.value
    elif isinstance(node, yaml.MappingNode):
        for pair in node.value:
            yield from pair


def line_of(text: str, pointer: str) -> int:
    """The line, from 1, of what a JSON pointer leads to, or of the last part of the way that there is.

    Args:
        text: YAML, or JSON, that can be read.
        pointer: RFC 6901.
    """
    return _line_in(yaml.SafeLoader(text).get_single_node(), pointer)


def _line_in(node: Node | None, pointer: str) -> int:
    line = 1 if node is None else node.start_mark.line + 1
    for part in pointer.split("/")[1:]:
        found = None if node is None else _below(node, part.replace("~1", "/").replace("~0", "~"))
        if found is None:
            break
        line, node = found
    return line


def _below(node: Node, part: str) -> tuple[int, Node] | None:
    if isinstance(node, yaml.MappingNode):
        for name, value in node.value:
            if name.value == part:
                return name.start_mark.line + 1, value
    elif isinstance(node, yaml.SequenceNode) and part.isdecimal() and int(part) < len(node.value):
        found = node.value[int(part)]
        return found.start_mark.line + 1, found
    return None


def _repeated(node: Node) -> Iterator[tuple[int, str]]:
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _repeated(item)
    elif isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for name, value in node.value:
            if name.value in seen:
                yield name.start_mark.line + 1, str(name.value)
            seen.add(str(name.value))
            yield from _repeated(value)
